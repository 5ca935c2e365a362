"""Decides which way of running a model is taken: by counted costs which ones are worth measuring, then by their times.

Counted costs are bounds, far apart: what lies between them depends on the model, the CPU and the driver. A way whose
least is more than another one's most is not tried. Of measured ways the plainest is taken that no other beats by more
than measurements are off.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from ..model.graph import ABSENT, Graph, Opaque
from ..model.quantization import BYTE_DTYPES, is_quantized
from ..ops.nodes import record_of

# "parts": TensorFlow Lite, with what can run in the CPU's own code, or on the GPU, there
WayName = Literal["tflite", "native", "native parts", "gl", "gl parts"]
Renderer = Literal["none", "software", "hardware"]  # what OpenGL computes on, as far as it is known without opening it

GAIN = 0.97  # of the time of a plainer way: what takes more than this does not take its place
_CLEAR = 0.7
_FEW_MACS, _MANY_MACS = 1_000_000, 150_000_000  # of what is too short for two threads, and for one, without a trial


@dataclass(frozen=True)
class RunChoice:
    """A way to run a model, with so many threads; None: as the way itself decides from run to run."""

    way: WayName
    threads: int | None = None

    def __str__(self) -> str:
        return self.way if self.threads is None else f"{self.way}, {self.threads} thread{'s' * (self.threads > 1)}"


@dataclass(frozen=True)
class ModelWork:
    """What a run of a model has to do, whoever does it."""

    operators: int
    macs: int  # multiply-accumulates
    moved_bytes: int  # that operators read and write one by one, weights included
    border_bytes: int  # of inputs and outputs


@dataclass(frozen=True)
class CountedMs:
    """Milliseconds between which a run lies by counting."""

    least: float
    most: float


@dataclass(frozen=True)
class _Rates:
    """The best and the worst that is to be expected of a way."""

    fixed_ms: tuple[float, float]
    operator_ms: tuple[float, float]
    macs_per_s: tuple[float, float]  # of one thread; of a GPU
    bytes_per_s: tuple[float, float]
    border_bytes_per_s: float


# Best: AVX-512 at 3 GHz, from its caches; an NVIDIA H200, with upload, wait and readback (docs/hardware.md), eight
# operators a dispatch. Worst: ops without vector kernels on a slow core; a GPU of a small board.
_CPU_BEST, _CPU_WORST = 120e9, 0.5e9
_CPU_RATES = _Rates((0.001, 0.02), (0.0, 0.003), (_CPU_BEST, _CPU_WORST), (400e9, 1e9), 50e9)
_NATIVE_RATES = replace(_CPU_RATES, fixed_ms=(0.005, 0.1), operator_ms=(0.0, 0.005))
_GL_RATES = _Rates((0.25, 5.0), (0.0004, 0.05), (30e12, 5e9), (3e12, 2e9), 12e9)
_RATES: Mapping[WayName, _Rates] = MappingProxyType(
    {
        "tflite": _CPU_RATES,
        "native": _NATIVE_RATES,
        "native parts": replace(_NATIVE_RATES, fixed_ms=(0.015, 0.2)),
        "gl": _GL_RATES,
        "gl parts": _GL_RATES,
    }
)
GL_WAYS: tuple[WayName, ...] = ("gl", "gl parts")
WAYS: tuple[WayName, ...] = tuple(_RATES)  # the plainest first


def model_work(graph: Graph) -> ModelWork:
    """Counted from a graph as it is read; operators that no rule reads count by their bytes alone."""
    macs = moved = 0
    for node in graph.nodes:
        if not isinstance(node.attributes, Opaque):
            macs += record_of(node).macs(graph, node)
        moved += sum(_bytes(graph, index) for index in (*node.inputs, *node.outputs) if index != ABSENT)
    border = sum(_bytes(graph, index) for index in (*graph.inputs, *graph.outputs))
    return ModelWork(len(graph.nodes), macs, moved, border)


def _bytes(graph: Graph, index: int) -> int:
    tensor = graph.tensors[index]
    item = np.dtype(tensor.dtype).itemsize if tensor.dtype in _SIZED else 4
    return item * int(np.prod(tensor.shape, dtype=np.int64))


_SIZED = ("bool", "float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")


def counted_ms(way: WayName, work: ModelWork, threads: int) -> CountedMs:
    """What a run takes by a way; threads are the most that it may have."""
    rates, bounds = _RATES[way], list[float]()
    for place, cores in enumerate((1 if way in GL_WAYS else threads, 1)):
        seconds = work.macs / (rates.macs_per_s[place] * cores) + work.moved_bytes / (rates.bytes_per_s[place] * cores)
        seconds += work.border_bytes / rates.border_bytes_per_s
        bounds.append(rates.fixed_ms[place] + work.operators * rates.operator_ms[place] + 1e3 * seconds)
    return CountedMs(*bounds)


def worth_measuring(counted: Mapping[WayName, CountedMs]) -> tuple[WayName, ...]:
    """The ways that may be the quickest, in the order in which they are given."""
    if not counted:
        return ()
    bound = min(ms.most for ms in counted.values())
    return tuple(way for way, ms in counted.items() if ms.least <= bound)


def thread_candidates(work: ModelWork, threads: int | None, default: int) -> tuple[int, ...]:
    """Numbers of threads to try TensorFlow Lite with: the one asked for, or what may pay of one and `default`."""
    if threads is not None:
        return (threads,)
    if default == 1 or work.macs + work.moved_bytes < _FEW_MACS:
        return (1,)
    return (default,) if work.macs > _MANY_MACS else (1, default)


def eligible_ways(
    can_run: Collection[WayName], renderer: Renderer, has_bytes: bool, exact: bool
) -> tuple[tuple[WayName, ...], Mapping[WayName, str]]:
    """The ways that come into question of those that can run a model wholly, and why the others do not.

    `has_bytes`: it computes with 8-bit steps, which are those of the reference kernels on the GPU and in native code
    alone. A software renderer has the same CPU as the others, and takes several times as long: it is for what nothing
    else runs.
    """
    reasons, left = dict[WayName, str](), [way for way in WAYS if way in can_run]

    def leave(way: WayName, why: str) -> None:
        if way in left and len(left) > 1:
            left.remove(way)
            reasons[way] = why

    for way in GL_WAYS if renderer != "hardware" else ():
        leave(way, "OpenGL has no GPU here: a software renderer takes several times as long as code for the CPU")
    if has_bytes and exact:
        leave("tflite", "its 8-bit results are not those of the reference kernels (exact=False allows that)")
    return tuple(left), reasons


def computes_bytes(graph: Graph) -> bool:
    """Whether operators compute with 8-bit steps: not where weights alone are bytes."""
    return any(
        is_quantized(graph.tensors[index]) and graph.tensors[index].dtype in BYTE_DTYPES
        for node in graph.nodes
        for index in node.outputs
    )


def quickest(times_ms: Mapping[RunChoice, float]) -> RunChoice:
    """The plainest of those that none beats clearly; ways come plainest first, of one way the fewest threads.

    Raises ValueError without any.
    """
    taken, *others = sorted(times_ms, key=lambda each: (WAYS.index(each.way), each.threads or 0))
    for each in others:
        if times_ms[each] < GAIN * times_ms[taken]:
            taken = each
    return taken


def is_clear(times_ms: Mapping[RunChoice, float]) -> bool:
    """Whether other work on the machine while it was measured would not have changed which one is the quickest."""
    least, *others = sorted(times_ms.values())
    return not others or least < _CLEAR * others[0]


def turn_calls(first_s: float, turn_s: float, most: int) -> int:
    """How many calls of one way make a turn, by how long a call took."""
    return max(1, min(most, int(turn_s / max(first_s, 1e-7))))


def still_close(first_s: Mapping[RunChoice, float], long_s: float, long_gain: float) -> tuple[RunChoice, ...]:
    """Of candidates that ran once those that may be the quickest: long runs tell more by one, short ones nothing."""
    least = min(first_s.values(), default=0.0)
    bound = least * long_gain if least >= long_s else max(long_s, 4 * least)
    return tuple(each for each, seconds in first_s.items() if seconds <= bound)
