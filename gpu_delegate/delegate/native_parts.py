"""Which parts of a model run in the CPU's own code, where TensorFlow Lite runs the rest on the same CPU.

The partitioner and the rule are those of partitions on the GPU (selection.py). Since both sides are one CPU here, the
rule does not rest at estimates: each part that would pay is timed once, by itself and in TensorFlow Lite, so that no
model takes longer for being cut. What was measured is kept on disk.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.disk_cache import DiskCache
from ..base.errors import TexelflowError
from ..cpu.interpreter_module import load_interpreter_module
from ..cpu.reference import Reference
from ..cpu.runtime_trial import package_of
from ..model.graph import Graph
from ..model.partition import subgraph
from ..plan.compiled_parts import CompiledParts, compile_parts
from ..programs.model_sharing import ModelSharing
from ..targets.llvm.compiler import native_target
from ..targets.llvm.loading import image_key
from ..targets.llvm.native_runtime import NativeNetwork
from ..targets.llvm.native_states import NativeStates
from ..targets.llvm.native_tuning import cpu_device
from ..targets.llvm.pool import WorkerPool
from .selection import COSTS_MORE, NOTHING_LEFT, DelegationRates, kept_by_partitions, selection

# On a core of a server (AVX2). Costs: 1 to 16 partitions of one ABS of 64 bytes each between operators of TensorFlow
# Lite; conversion to planes. Worth: as on a GPU.
NATIVE_RATES = DelegationRates(0.06, 0.001, 4e9, 50e9, 30e9)
NativeParts = CompiledParts[NativeNetwork]
TimesOf = Callable[[Graph, NativeNetwork, int | None, Collection[int]], "PartTimes"]  # as kept_times
_KIND = "backends"  # of entries in the cache
_TURNS_S, _LEAST_TURNS, _MOST_TURNS = 1.0, 4, 100
_WORTHWHILE = 0.95  # of what TensorFlow Lite takes: measurements are off by some hundredths


@dataclass(frozen=True)
class PartTimes:
    """Milliseconds of one run of a part: in native code, copies included, and in TensorFlow Lite; 0: it fails."""

    native_ms: float
    tflite_ms: float

    @property
    def reason(self) -> str:
        """Why it is TensorFlow Lite's; "" if it is not."""
        if not 0 < _WORTHWHILE * self.tflite_ms < self.native_ms:
            return ""
        theirs = f"{self.tflite_ms:.2f} ms in TensorFlow Lite, of which it has to save a twentieth"
        return f"{COSTS_MORE}{self.native_ms:.2f} ms against {theirs}"


UNTIMED = PartTimes(0.0, 0.0)  # of what runs in native code whatever it takes


def native_parts(
    graph: Graph,
    pool: WorkerPool,
    threads: int | None = None,
    weights_cache: ModelSharing | None = None,
    every_part: bool = False,
    times_of: TimesOf | None = None,
    left: Mapping[int, str] = NOTHING_LEFT,
    states: NativeStates | None = None,
) -> NativeParts:
    """The parts that pay, ready to run in a pool, beside TensorFlow Lite with so many threads. Refuses no graph.

    With `every_part` whatever has native code runs there, but for operators that are `left` already, by their
    positions. `times_of` measures a part; variables are in `states`. Raises DeviceError without LLVM, UsageError.
    """
    pays_off, measure = selection(NATIVE_RATES), times_of or kept_times

    def loaded(part: Graph, _: float) -> NativeNetwork:
        return NativeNetwork.load(part, pool=pool, weights_cache=weights_cache, states=states)

    def select(found: NativeParts) -> Mapping[int, str]:
        if before := {number: why for number, why in left.items() if number not in found.reasons}:
            return before
        if every_part:
            return {}
        kept = kept_by_partitions(found.graph, found.partitions)
        return pays_off(found) or {
            number: why
            for partition, network in zip(found.partitions, found.compiled, strict=True)
            if (why := measure(subgraph(found.graph, partition), network, threads, kept).reason)
            for number in partition.computed
        }

    return compile_parts(graph, cpu_device(native_target()), loaded, select=select)


def kept_times(part: Graph, network: NativeNetwork, threads: int | None, kept: Collection[int] = ()) -> PartTimes:
    """The times that are on disk, else those that are measured now, beside TensorFlow Lite with so many threads.

    Tensors that are `kept` are handed from part to part as they are.
    """
    shared = sorted({*part.inputs, *part.outputs}.intersection(kept))
    runtime = package_of(load_interpreter_module(newer=True).__name__)
    cache, key = (
        DiskCache(),
        f"part {runtime} {threads} {shared} {image_key(part, native_target(), network.pool.threads)}",
    )
    times = parse_part_times(cache.get(_KIND, key) or b"")
    if times is None:
        times = measured_part(part, network.copy(), threads, shared)
        cache.put(_KIND, key, json.dumps(asdict(times)).encode())
    return times


def parse_part_times(data: bytes) -> PartTimes | None:
    """What was kept; None for anything else."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"native_ms", "tflite_ms"}:
        return None
    native_ms, tflite_ms = found["native_ms"], found["tflite_ms"]
    if not all(type(ms) is float and 0 <= ms < math.inf for ms in (native_ms, tflite_ms)):
        return None
    return PartTimes(native_ms, tflite_ms)


def measured_part(part: Graph, network: NativeNetwork, threads: int | None, shared: Collection[int] = ()) -> PartTimes:
    """The least of some turns of both, on zeros."""
    inputs = [np.zeros(shape, dtype) for shape, dtype in zip(network.input_shapes, network.input_dtypes, strict=True)]
    given = {tensor: values for tensor, values in zip(part.inputs, inputs, strict=True) if tensor not in shared}
    asked = [tensor for tensor in part.outputs if tensor not in shared]
    native_ms, tflite_ms = list[float](), list[float]()
    try:
        reference = Reference(part, threads, quick=True)
        end = perf_counter() + _TURNS_S
        while len(native_ms) < _LEAST_TURNS or (len(native_ms) < _MOST_TURNS and perf_counter() < end):
            native_ms.append(_run_ms(network, given, asked))
            reference.run(inputs)
            tflite_ms.append(reference.invoke_ms)
        reference.close()
    except TexelflowError:  # of values, or of what TensorFlow Lite does not run alone
        return PartTimes(0.0, 0.0)
    return PartTimes(min(native_ms) + NATIVE_RATES.hand_over_ms, min(tflite_ms))


def _run_ms(network: NativeNetwork, given: Mapping[int, npt.NDArray[Any]], asked: Sequence[int]) -> float:
    start = perf_counter()
    for tensor, values in given.items():
        network.write(tensor, values)
    network.compute()
    for tensor in asked:
        network.read(tensor)
    return (perf_counter() - start) * 1e3
