"""Runs the cases of the table of ops, and names those that the GPU or native code computes unlike TensorFlow Lite.

`make op-cases` runs all of them: .venv/bin/python -m tests.op_table --seeds 3 [NAME ...]
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import MappingProxyType

from tests.helpers.case_group import CaseGroup
from tests.helpers.engine import DEVICES, run
from tests.helpers.native import native_networks
from texelflow.gpu_delegate.cases.op_case import CaseArray, OpCase
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.programs.support import unsupported_reason
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph


def on_own_kernels(group: CaseGroup) -> Reference:
    """TensorFlow Lite with a group's model, without XNNPACK."""
    return Reference(group.graph, keep_all_tensors=True)


@cache
def ops_on_gpu() -> tuple[str, ...]:
    """Those that have a kernel, or that passes say by others that have; custom ones TensorFlow Lite has not."""
    return tuple(op for op in SUPPORTED_OPS if cases_of(op) and unsupported_reason(op) is None and not is_custom(op))


@cache
def chosen(op: str) -> tuple[OpCase, ...]:
    """Of an op's cases the fewest, in their order, that have between them all that any has: see `_traits`."""
    found, seen = list[OpCase](), set[object]()
    for case in cases_of(op):
        traits = _traits(case)
        if not traits <= seen:
            found.append(case)
            seen |= traits
    return tuple(found)


def _traits(case: OpCase) -> set[object]:
    """Options, types, numbers of inputs and of constants; whether lanes are left empty, whether maps are several."""
    example = case.example
    shape = (*example.shapes, *example.constants)[0]
    return {
        example.attributes,
        (example.dtype, example.out_dtype, case.whole),
        (len(example.shapes), len(example.constants)),
        ("channels", shape[-1] if shape[-1:] in {(1,), (4,)} else shape[-1:] and shape[-1] % 4 > 0),
        ("maps", len(shape), len(shape) == 4 and shape[0] > 1),
    }


def is_custom(op: str) -> bool:
    """Whether TensorFlow Lite alone cannot run it."""
    form = OPS[op].file
    return form is not None and form.is_custom


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
            reference = on_own_kernels(group)
            wanted = [reference.run(values) for values in inputs]
            for way, run in ways(context, group):
                for seed, (values, theirs) in enumerate(zip(inputs, wanted, strict=True)):
                    for name, error in group.differing(run(values), theirs).items():
                        print(f"{way}, seed {seed}: {name} is {error:.2g} off", flush=True)
                        wrong += 1
            print(f"{op}: {len(group.cases)} cases", flush=True)
    print(f"{wrong} of them differ" if wrong else "all agree with TensorFlow Lite")
    return int(wrong > 0)


def ways(
    context: Context, group: CaseGroup
) -> Iterator[tuple[str, Callable[[Sequence[CaseArray]], Sequence[CaseArray]]]]:
    """A group's model in every way of computing it, one after the other."""
    for way, (device, fuse) in GL_WAYS.items():
        with Program(context, compile_graph(group.graph, DEVICES[device], CompileOptions(fuse=fuse))) as program:
            yield way, lambda values, program=program: run(program, values)  # type: ignore[misc]
    for fuse in (True, False):
        yield "native" if fuse else "native unfused", native_networks({0: group.graph}, fuse=fuse)[0].run


GL_WAYS = MappingProxyType({**{name: (name, True) for name in DEVICES}, "unfused": ("software", False)})

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
