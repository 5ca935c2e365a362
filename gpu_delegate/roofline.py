"""A kernel's work and a machine's peaks go in; which of the two roofs bounds it comes out.

A dispatch can be no faster than its multiply-accumulates (MAC) at the device's peak, nor than its bytes at the
memory's. Both peaks are measured by a shader each. A MAC counts once, whether the device fuses it or not.
"""

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from gpu_delegate import opengl
from gpu_delegate.context import Context, compile_compute
from gpu_delegate.kernel import Kernel
from gpu_delegate.layout import TEXEL_BYTES, shape_of
from gpu_delegate.program import Blueprint
from gpu_delegate.shader import load

Roof = Literal["compute", "memory"]

_GROUP = 64  # threads of a work-group
_ROUND_MACS = 48  # of one thread in peak_macs.comp: 4 steps of 3 vectors of 4
_ROUNDS = 256
_MAC_GROUPS = 256  # of the first kind of run; slow devices take 10 ms for them
_COPY_BYTES = 4 << 20  # a large tensor: caches help the copy as much as they help the kernels
_LEAST_S = 0.005  # a shorter run says more about the driver than about the device
_REPEATS = 4


@dataclass(frozen=True)
class Cost:
    """What a dispatch does at least: every byte that it needs moves once."""

    macs: int
    read_bytes: int  # inputs and weights
    written_bytes: int

    @property
    def moved_bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    @property
    def intensity(self) -> float:
        """MAC per byte."""
        return self.macs / self.moved_bytes if self.moved_bytes else 0.0


@dataclass(frozen=True)
class Peaks:
    """What a machine does at best."""

    macs_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """MAC per byte from which on the arithmetic bounds, not the memory."""
        return self.macs_per_s / self.bytes_per_s

    def roof(self, cost: Cost) -> Roof:
        """Which of the two bounds a dispatch."""
        return "compute" if cost.intensity > self.ridge else "memory"

    def least_ms(self, cost: Cost) -> float:
        """The time below which no dispatch of this cost gets."""
        return max(cost.macs / self.macs_per_s, cost.moved_bytes / self.bytes_per_s) * 1e3


def cost_of(blueprint: Blueprint, kernel: Kernel) -> Cost:
    """The cost of one of the blueprint's kernels."""

    def size_bytes(tensors: Iterable[int]) -> int:
        shapes = blueprint.graph.tensors
        return sum(shape_of(shapes[tensor]).stored_bytes(tensor in blueprint.plain) for tensor in tensors)

    return Cost(kernel.macs, size_bytes(kernel.inputs) + kernel.weights.nbytes, size_bytes(kernel.outputs))


def measure_peaks(context: Context) -> Peaks:
    """Both peaks of the context's device, in less than a second. Raises DeviceError if the driver refuses."""
    context.check_thread()
    return Peaks(_measure_macs(context), _measure_bytes(context))


def _measure_macs(context: Context) -> float:
    macs = _ROUND_MACS * _ROUNDS * _GROUP
    source = load("peak_macs.comp", {"GROUP": _GROUP, "ROUNDS": _ROUNDS})
    most = min(context.limits.work_group_count[0], context.limits.storage_block_bytes // (_GROUP * TEXEL_BYTES))
    return macs * _best_rate(context, source, min(most, _MAC_GROUPS), buffers=1)


def _measure_bytes(context: Context) -> float:
    source = load("peak_copy.comp", {"GROUP": _GROUP})
    size_bytes = min(_COPY_BYTES, context.limits.storage_block_bytes)
    groups = min(size_bytes // (_GROUP * TEXEL_BYTES), context.limits.work_group_count[0])
    return 2 * _GROUP * TEXEL_BYTES * _best_rate(context, source, groups, buffers=2)


def _best_rate(context: Context, source: str, groups: int, buffers: int) -> float:
    """Work-groups per second of a shader over buffers of one texel a thread, the best of several runs."""
    gl = context.gl
    program, names = compile_compute(context, source, "peak"), [gl.generate("Buffers") for _ in range(buffers)]
    try:
        for binding, name in enumerate(names):
            gl.glBindBuffer(opengl.SHADER_STORAGE_BUFFER, name)
            size_bytes = groups * _GROUP * TEXEL_BYTES
            gl.glBufferData(opengl.SHADER_STORAGE_BUFFER, size_bytes, None, opengl.DYNAMIC_COPY)
            zero = (ctypes.c_float * 1)(0.0)
            gl.glClearBufferSubData(
                opengl.SHADER_STORAGE_BUFFER, opengl.R32F, 0, size_bytes, opengl.RED, opengl.FLOAT, zero
            )
            gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, binding, name)
        gl.glUseProgram(program)
        rate = groups / min(_time(context, groups) for _ in range(_REPEATS))
        context.check_errors("measuring the machine's peaks")
        return rate
    finally:
        gl.glDeleteProgram(program)
        for name in names:
            gl.delete("Buffers", name)


def _time(context: Context, groups: int) -> float:
    """Seconds of one dispatch, from as many in a row as make a time worth taking."""
    count = 1
    while True:
        seconds = _run(context, groups, count)
        if seconds > _LEAST_S or count >= 1 << 12:
            return seconds / count
        count *= 4


def _run(context: Context, groups: int, count: int) -> float:
    context.gl.glFinish()
    start = perf_counter()
    for _ in range(count):
        context.gl.glDispatchCompute(groups, 1, 1)
    context.gl.glFinish()
    return perf_counter() - start
