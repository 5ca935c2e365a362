"""A model's file, a backend, a way to share weights and a number of instances go in; what they take comes out, as JSON.

Runs as a process of its own (measuring_process.py): the peak of its memory is that of these instances alone.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate.context import open_context
from texelflow.gpu_delegate.errors import TexelflowError
from texelflow.gpu_delegate.graph import Graph
from texelflow.gpu_delegate.llvm.planes import FLOAT_BYTES
from texelflow.gpu_delegate.llvm.runtime import NativeNetwork
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.reading.reader import model_file_bytes, read_model
from texelflow.gpu_delegate.runtime import Program
from texelflow.gpu_delegate.tuning.store import tuned_device
from texelflow.gpu_delegate.weights_cache import WeightsCache

from ..process_usage import process_usage

_THREADS = 1  # of the CPU's code: instances share the machine


@dataclass(frozen=True)
class SharingInstance:
    """A model that is ready, one of several in this process."""

    run: Callable[[], None]  # one inference, to its end
    weights: Mapping[int, int]  # bytes of what holds them; who shares it has the same key
    tensor_bytes: int


MakeInstance = Callable[[Graph], SharingInstance]


@contextlib.contextmanager
def on_gl(cache: WeightsCache | None) -> Iterator[MakeInstance]:
    """Programs in one context, with or without a cache. Raises DeviceError."""
    with open_context() as context, contextlib.ExitStack() as stack:
        device = tuned_device(context)

        def make(graph: Graph) -> SharingInstance:
            compiled = cache.compile(compile_graph, graph, device) if cache else compile_graph(graph, device)
            program = stack.enter_context(Program(context, compiled, weights_cache=cache))

            def run() -> None:
                program.run()
                context.gl.glFinish()

            held = program.buffer_bytes - program.tensor_bytes
            return SharingInstance(run, {id(cache or program): held}, program.tensor_bytes)

        yield make


@contextlib.contextmanager
def on_cpu(cache: WeightsCache | None) -> Iterator[MakeInstance]:
    """Networks in machine code of our own, with or without a cache. Raises DeviceError."""
    with contextlib.ExitStack() as stack:

        def make(graph: Graph) -> SharingInstance:
            network = NativeNetwork.load(graph, _THREADS, weights_cache=cache)
            stack.enter_context(contextlib.closing(network))
            weights, arena_bytes = network.image.weights, FLOAT_BYTES * network.image.arena_floats
            return SharingInstance(network.compute, {weights.ctypes.data: weights.nbytes}, arena_bytes)

        yield make


BACKENDS: Mapping[str, Callable[[WeightsCache | None], contextlib.AbstractContextManager[MakeInstance]]]
BACKENDS = MappingProxyType({"gl": on_gl, "native": on_cpu})
CACHES = ("none", "soft", "hard")


def measure(path: Path, backend: str, cache_kind: str, count: int, runs: int) -> dict[str, Any]:
    """Make so many instances, finalize the cache and run them in turn: the figures of all of it.

    With a soft cache the first instance is made before it is finalized and the others after it, with a hard one all are
    made before. Raises ModelError, UnsupportedError, DeviceError.
    """
    cache = None if cache_kind == "none" else WeightsCache()
    data = model_file_bytes(path)
    with BACKENDS[backend](cache) as make:
        before = process_usage()
        made, init_ms = list[SharingInstance](), list[float]()
        for number in range(count):
            start = perf_counter()
            made.append(make(read_model(data, path.stem)))
            init_ms.append((perf_counter() - start) * 1e3)
            if cache and cache_kind == "soft" and not number:
                cache.finalize_soft()
        if cache and cache_kind == "hard":
            cache.finalize_hard()
        times_ms = [_timed_ms(instance) for _ in range(runs + 1) for instance in made][count:]  # the first warms up
        after = process_usage()
    weights = {key: held for instance in made for key, held in instance.weights.items()}
    return {
        "weights_bytes": sum(weights.values()),
        "tensor_bytes": sum(instance.tensor_bytes for instance in made),
        "before_bytes": before.resident_bytes,
        "resident_bytes": after.resident_bytes,
        "peak_bytes": after.peak_bytes,
        "init_ms": round(init_ms[0], 2),
        "second_init_ms": round(init_ms[1], 2) if count > 1 else None,
        "further_init_ms": round(median(init_ms[1:]), 2) if count > 1 else None,
        "ms": round(median(times_ms), 3),
    }


def _timed_ms(instance: SharingInstance) -> float:
    start = perf_counter()
    instance.run()
    return (perf_counter() - start) * 1e3


def main(arguments: Sequence[str]) -> int:
    """Path, backend, cache, instances, runs: the exit code."""
    path, backend, cache_kind, count, runs = arguments
    try:
        print(json.dumps(measure(Path(path), backend, cache_kind, int(count), int(runs))))
    except TexelflowError as error:
        print(f"texelflow: {error}", file=sys.stderr)
        return 2
    return 0
