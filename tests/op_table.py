"""Cases of the table of ops go in; those that the GPU, or this CPU's code, computes unlike TensorFlow Lite come out.

`make op-cases` runs all of them: .venv/bin/python -m tests.op_table --seeds 3 [NAME ...]
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType

import numpy as np

from tests.engine import DEVICES, run
from tests.native import native_networks
from texelflow.gpu_delegate.cases.op_case import OpCase, Values, joined_graph
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.compile_options import CompileOptions
from texelflow.gpu_delegate.context import Context, open_context
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.runtime import Program
from texelflow.gpu_delegate.support import unsupported_reason


class CaseGroup:
    """Several cases as one model: TensorFlow Lite, a GL program and machine code are begun once for all of them."""

    def __init__(self, cases: Sequence[OpCase], seed: int = 0) -> None:
        self.cases = cases
        self.graphs = [case.graph(seed) for case in cases]
        self.graph = joined_graph(self.graphs)
        self._reference = Reference(self.graph, keep_all_tensors=True)

    def inputs(self, seed: int) -> list[Values]:
        """Of all cases."""
        return [
            values
            for number, (case, graph) in enumerate(zip(self.cases, self.graphs, strict=True))
            for values in case.inputs(graph, seed + number)
        ]

    def on_cpu(self, inputs: Sequence[Values]) -> Sequence[Values]:
        """What TensorFlow Lite's own kernels give."""
        return self._reference.run(inputs)

    def differing(self, found: Sequence[Values], wanted: Sequence[Values]) -> dict[str, float]:
        """The cases whose outputs are further apart than they may be, and how far."""
        errors = {}
        for case, ours, theirs in zip(self.cases, self._by_case(found), self._by_case(wanted), strict=True):
            error = max(distance(a, b) for a, b in zip(ours, theirs, strict=True))
            if not error <= case.tolerance:
                errors[case.name] = error
        return errors

    def _by_case(self, outputs: Sequence[Values]) -> Iterator[Sequence[Values]]:
        at = 0
        for graph in self.graphs:
            yield outputs[at : at + len(graph.outputs)]
            at += len(graph.outputs)


def ops_on_gpu() -> tuple[str, ...]:
    """Those that have a kernel, or that passes say by others that have."""
    return tuple(op for op in SUPPORTED_OPS if cases_of(op) and unsupported_reason(op) is None)


def distance(found: Values, wanted: Values) -> float:
    """The largest difference, in parts of the largest magnitude or of 1; infinite for other types and shapes."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return np.inf
    first, second = found.astype(np.float64), wanted.astype(np.float64)
    return float(np.abs(first - second).max() / max(1.0, np.abs(second).max()))


def main(arguments: Sequence[str]) -> int:
    """Every case of all ops, or of those named, in every way and with several seeds; 1 if any differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.op_table", description=main.__doc__)
    parser.add_argument("ops", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    options = parser.parse_args(arguments)
    os.environ.setdefault("GALLIVM_PERF", "nopt")  # of kernels that run a few times, most of the time is compilation
    wrong = 0
    with open_context() as context:
        for op in options.ops or ops_on_gpu():
            group = CaseGroup(cases_of(op))
            inputs = [group.inputs(1000 * seed) for seed in range(options.seeds)]
            wanted = [group.on_cpu(values) for values in inputs]
            for way, run in ways(context, group):
                for seed, (values, theirs) in enumerate(zip(inputs, wanted, strict=True)):
                    for name, error in group.differing(run(values), theirs).items():
                        print(f"{way}, seed {seed}: {name} is {error:.2g} off", flush=True)
                        wrong += 1
            print(f"{op}: {len(group.cases)} cases", flush=True)
    print(f"{wrong} of them differ" if wrong else "all agree with TensorFlow Lite")
    return int(wrong > 0)


def ways(context: Context, group: CaseGroup) -> Iterator[tuple[str, Callable[[Sequence[Values]], Sequence[Values]]]]:
    """A group's model in every way of computing it, one after the other."""
    for way, (device, fuse) in _GL_WAYS.items():
        with Program(context, compile_graph(group.graph, DEVICES[device], CompileOptions(fuse=fuse))) as program:
            yield way, lambda values, program=program: run(program, values)  # type: ignore[misc]
    yield "native", native_networks({0: group.graph})[0].run


_GL_WAYS = MappingProxyType(
    {"software": ("software", True), "hardware": ("hardware", True), "unfused": ("software", False)}
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
