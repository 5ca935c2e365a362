"""Measures what instances of a model take on one backend with one way to share weights, and prints it as JSON.

Runs as a process of its own (measuring_process.py): the peak of its memory is that of these instances alone.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol

from texelflow.app.process_usage import process_usage
from texelflow.gpu_delegate.base.errors import DeviceError, TexelflowError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.reading.bundles import model_file_bytes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.tuning.store import tuned_device

_THREADS = 1  # of the CPU's code: instances share the machine


class SharingInstances(Protocol):
    """Instances of models on one backend, with or without a cache."""

    def add(self, graph: Graph) -> Callable[[], object]:
        """Make one: what runs it to the end. Raises UnsupportedError, DeviceError."""

    @property
    def weights_bytes(self) -> int: ...
    @property
    def tensor_bytes(self) -> int | None:
        """Of what is between the steps, inputs and outputs, of all of them; None where that is not told."""


class _OnGl:
    """Programs in one context. Raises DeviceError."""

    def __init__(self, cache: ModelSharing | None, stack: contextlib.ExitStack) -> None:
        self._cache, self._stack = cache, stack
        self._context = stack.enter_context(open_context())
        self._device, self._programs = tuned_device(self._context), list[Program]()

    def add(self, graph: Graph) -> Callable[[], object]:
        """See SharingInstances."""
        compiled = (
            self._cache.compile(compile_graph, graph, self._device)
            if self._cache
            else compile_graph(graph, self._device)
        )
        program = Program(self._context, compiled, weights_cache=self._cache)
        self._programs.append(self._stack.enter_context(program))

        def run() -> None:
            program.run()
            self._context.gl.glFinish()

        return run

    @property
    def weights_bytes(self) -> int:
        """In buffers: others are in the shaders."""
        if self._cache:
            return self._cache.weights_bytes
        return sum(program.buffer_bytes - program.tensor_bytes for program in self._programs)

    @property
    def tensor_bytes(self) -> int:
        """See SharingInstances."""
        own = sum(program.tensor_bytes for program in self._programs)
        return own + (self._cache.arena_bytes if self._cache else 0)


class _OnCpu:
    """Networks in machine code of our own. Raises DeviceError."""

    def __init__(self, cache: ModelSharing | None, stack: contextlib.ExitStack) -> None:
        self._cache, self._stack = cache, stack
        self._networks = list[NativeNetwork]()

    def add(self, graph: Graph) -> Callable[[], object]:
        """See SharingInstances."""
        network = NativeNetwork.load(graph, _THREADS, weights_cache=self._cache)
        self._networks.append(self._stack.enter_context(contextlib.closing(network)))
        return network.compute

    @property
    def weights_bytes(self) -> int:
        """See SharingInstances."""
        pieces = {each.image.weights.ctypes.data: each.image.weights.nbytes for each in self._networks}
        return sum(pieces.values())

    @property
    def tensor_bytes(self) -> int:
        """See SharingInstances."""
        images = [each.image for each in self._networks]
        if self._cache is None:
            return sum(FLOAT_BYTES * image.arena_floats for image in images)
        own = sum(FLOAT_BYTES * (image.arena_floats - image.shared_floats) for image in images)
        return own + self._cache.arena_bytes


class _OnTflite:
    """Interpreters of TensorFlow Lite, which share what XNNPACK packs. Raises DeviceError where they cannot."""

    def __init__(self, cache: ModelSharing | None, stack: contextlib.ExitStack) -> None:
        # Takes memory and time: it is loaded in those processes alone that need it, ahead of the first instance
        from texelflow.app.bench.model_times.model_inputs import random_values
        from texelflow.gpu_delegate.cpu.reference import Reference

        self._load, self._random_values = Reference, random_values
        self._cache, self._stack = cache, stack
        self._constants_bytes: list[int] = []

    def add(self, graph: Graph) -> Callable[[], object]:
        """See SharingInstances."""
        reference = self._load(graph, _THREADS, weights_cache=self._cache)
        self._stack.callback(reference.close)
        if reference.unshared:
            raise DeviceError(reference.unshared)
        self._constants_bytes.append(sum(each.data.nbytes for each in graph.tensors.values() if each.data is not None))
        return partial(reference.run, self._random_values(reference.input_shapes, reference.input_dtypes))

    @property
    def weights_bytes(self) -> int:
        """As large as in the file: XNNPACK does not tell what it packs them to."""
        return sum(self._constants_bytes[: 1 if self._cache else None])

    @property
    def tensor_bytes(self) -> int | None:
        """See SharingInstances."""
        return None


BACKENDS: Mapping[str, Callable[[ModelSharing | None, contextlib.ExitStack], SharingInstances]] = MappingProxyType(
    {"gl": _OnGl, "native": _OnCpu, "tflite": _OnTflite}
)
CACHES = ("none", "soft", "hard")


def measure_instances(path: Path, backend: str, cache_kind: str, count: int, runs: int) -> dict[str, Any]:
    """Make so many instances, finalize the cache and run them in turn: the figures of all of it.

    With a soft cache the first instance is made before it is finalized and the others after it, with a hard one all are
    made before. Raises ModelError, UnsupportedError, DeviceError.
    """
    cache = None if cache_kind == "none" else ModelSharing()
    data, read = model_file_bytes(path), cache.read_model if cache else read_model
    with contextlib.ExitStack() as stack:
        instances = BACKENDS[backend](cache, stack)
        before = process_usage()
        made, init_ms = list[Callable[[], object]](), list[float]()
        for number in range(count):
            start = perf_counter()
            made.append(instances.add(read(data, path.stem)))
            init_ms.append((perf_counter() - start) * 1e3)
            if cache and cache_kind == "soft" and not number:
                cache.finalize_soft()
        del data  # what needs the file's bytes keeps them
        if cache and cache_kind == "hard":
            cache.finalize_hard()
        times_ms = [_timed_ms(run) for _ in range(runs + 1) for run in made][count:]  # the first ones warm up
        after = process_usage()
        weights_bytes, tensor_bytes = instances.weights_bytes, instances.tensor_bytes
    return {
        "weights_bytes": weights_bytes,
        "tensor_bytes": tensor_bytes,
        "before_bytes": before.resident_bytes,
        "resident_bytes": after.resident_bytes,
        "peak_bytes": after.peak_bytes,
        "init_ms": round(init_ms[0], 2),
        "second_init_ms": round(init_ms[1], 2) if count > 1 else None,
        "further_init_ms": round(median(init_ms[1:]), 2) if count > 1 else None,
        "ms": round(median(times_ms), 3),
    }


def _timed_ms(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return (perf_counter() - start) * 1e3


def main(arguments: Sequence[str]) -> int:
    """Path, backend, cache, instances, runs: the exit code."""
    path, backend, cache_kind, count, runs = arguments
    try:
        print(json.dumps(measure_instances(Path(path), backend, cache_kind, int(count), int(runs))))
    except TexelflowError as error:
        print(f"texelflow: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
