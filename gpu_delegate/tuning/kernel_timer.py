"""Measures one kernel on the GPU: milliseconds of a dispatch, and what it computes.

Programs stay compiled between the measurements of one search. A kernel that the driver refuses has
no time.
"""

from functools import partial

from ..base.errors import DeviceError
from ..targets.gl.context import Context
from ..targets.gl.runtime import Program
from ..targets.gl.span_clock import SpanClock, mean_seconds
from ..targets.glsl.compiled_graph import CompiledGraph
from ..targets.glsl.glsl_kernel import Kernel
from .candidates import HARDWARE_FACTS, SOFTWARE_FACTS
from .isolated import MakeAlone, sample
from .outputs import Results
from .variants import KernelKey, key_of

_SPAN_S = 0.001  # of the repeats of one dispatch


class KernelTimer:
    """Measures on the context's thread. release() frees what is compiled."""

    def __init__(self, context: Context, clock: SpanClock | None = None) -> None:
        """Raises DeviceError where nothing can be measured."""
        self.clock = clock or SpanClock(context)
        if self.clock.choice.kind == "none":
            raise DeviceError(f"kernels cannot be tuned on {context.renderer}: {self.clock.choice.line}")
        self.facts = SOFTWARE_FACTS if context.is_software else HARDWARE_FACTS
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

    def outputs(self, kernel: Kernel, alone: MakeAlone) -> Results | None:
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
        with self._context.programs.paused():  # of many, few are used again
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
