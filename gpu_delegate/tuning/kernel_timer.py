"""A kernel alone and a context go in; milliseconds of one dispatch come out, and whether its results are the default's.

Programs stay compiled between the measurements of one search. A kernel that the driver refuses, or that computes
something else, has no time.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compare import HALF_ERROR, TOLERANCE
from ..context import Context
from ..errors import DeviceError
from ..kernel import Kernel
from ..program import CompiledGraph
from ..runtime import Program
from ..span_clock import SpanClock, mean_seconds
from .isolated import sample
from .variants import KernelKey, key_of

_SPAN_S = 0.001  # of the repeats of one dispatch

Outputs = Sequence[npt.NDArray[Any]]
MakeAlone = Callable[[Kernel], CompiledGraph]  # a graph of this kernel alone


class KernelTimer:
    """Measures on the context's thread. release() frees what is compiled."""

    def __init__(self, context: Context) -> None:
        """Raises DeviceError where nothing can be measured."""
        self.clock = SpanClock(context)
        if self.clock.choice.kind == "none":
            raise DeviceError(f"kernels cannot be tuned on {context.renderer}: {self.clock.choice.line}")
        self._context = context
        self._programs: dict[KernelKey, tuple[Program, int]] = {}
        self._failed: set[KernelKey] = set()

    def ms(self, kernel: Kernel, alone: MakeAlone) -> float | None:
        """Milliseconds of a dispatch, the mean over a span; None for a kernel that does not compile."""
        found = self._program(kernel, alone)
        if found is None:
            return None
        program, repeats = found
        program.repeat(0, 1)
        seconds = self.clock.seconds(partial(program.repeat, 0, repeats))
        return None if seconds is None else seconds * 1e3 / repeats

    def outputs(self, kernel: Kernel, alone: MakeAlone) -> Outputs | None:
        """What it computes from sample inputs."""
        found = self._program(kernel, alone)
        if found is None:
            return None
        program = found[0]
        program.run()
        return [program.read(tensor) for tensor in kernel.outputs]

    def release(self) -> None:
        """Free all programs; a second call does nothing."""
        for program, _ in self._programs.values():
            program.release()
        self._programs.clear()

    def _program(self, kernel: Kernel, alone: MakeAlone) -> tuple[Program, int] | None:
        """The compiled program with its inputs written, and how often to repeat it."""
        key = key_of(kernel)
        if key not in self._programs and key not in self._failed:
            try:
                self._programs[key] = self._compiled(alone(kernel))
            except DeviceError:
                self._failed.add(key)
        return self._programs.get(key)

    def _compiled(self, alone: CompiledGraph) -> tuple[Program, int]:
        program = Program(self._context, alone)
        try:
            for tensor in alone.graph.inputs:
                program.write(tensor, sample(alone.graph, tensor))
            repeats, seconds = mean_seconds(self.clock, partial(program.repeat, 0), _SPAN_S)
            self._context.check_errors("timing a kernel")
            if seconds is None:
                raise DeviceError("the device gives no times")
        except BaseException:
            program.release()
            raise
        return program, repeats


def same_bits(found: Outputs | None, wanted: Outputs | None) -> bool:
    """Whether there are both, and all values are equal, NaN included."""
    if found is None or wanted is None:
        return False
    return all(np.array_equal(mine, other, equal_nan=mine.dtype.kind == "f") for mine, other in _pairs(found, wanted))


def agrees(found: Outputs | None, wanted: Outputs | None, halves: bool) -> bool:
    """Whether they differ no more than the GPU may from the CPU: by TOLERANCE of the magnitude, HALF_ERROR for halves.

    Outputs of different shapes (partial sums of more or fewer work-groups) are not compared; one of the same shape is
    needed.
    """
    if found is None or wanted is None:
        return False
    pairs, share = _pairs(found, wanted), HALF_ERROR if halves else TOLERANCE
    return bool(pairs) and all(_is_near(mine, other, share) for mine, other in pairs)


def _pairs(found: Outputs, wanted: Outputs) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    return [(mine, other) for mine, other in zip(found, wanted, strict=True) if mine.shape == other.shape]


def _is_near(mine: npt.NDArray[Any], other: npt.NDArray[Any], share: float) -> bool:
    finite = other[np.isfinite(other)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    return np.allclose(mine, other, rtol=0.0, atol=share * scale, equal_nan=True)
