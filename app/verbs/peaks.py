"""Measures the peaks of a device: arithmetic, memory, and what a dispatch takes.

Work-groups are added until the rate grows no further: a large GPU holds hundreds of thousands of threads at a time.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from texelflow.gpu_delegate.model.layout import TEXEL_BYTES
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.gl_buffers import device_buffer
from texelflow.gpu_delegate.targets.gl.opengl import GL
from texelflow.gpu_delegate.targets.gl.span_clock import SpanClock, mean_seconds
from texelflow.gpu_delegate.targets.glsl.roofline import Peaks
from texelflow.gpu_delegate.targets.glsl.shader import load

_GROUP = 64  # threads of a work-group
_ROUND_MACS = 48  # of one thread in peak_macs.comp: 4 steps of 3 vectors of 4
_ROUNDS = 256
_MAC_GROUPS = 256  # to begin with; slow devices take 10 ms for them
_COPY_GROUPS = 1 << 10  # likewise: 1 MiB, a large tensor; caches help the copy as much as they help the kernels
_MOST_GROUPS = 1 << 16  # 4 million threads, 64 MiB
_MORE = 4  # times as many groups, as long as that ...
_FASTER = 1.05  # ... makes the rate grow by so much
_LEAST_S = 0.005  # a shorter run measures the driver rather than the device
_REPEATS = 4
_HALF_EXTENSIONS = ("GL_AMD_gpu_shader_half_float", "GL_NV_gpu_shader5")


class ShaderVector(NamedTuple):
    """A type of GLSL, and the precision that stands in front of it where it is declared."""

    type: str
    precision: str


RateOf = Callable[[int], float | None]  # of so many groups, in groups per second; None where there is no time


def measure_peaks(context: Context) -> Peaks | None:
    """The peaks of the context's device, in about a second; None if its driver executes nothing. Raises DeviceError."""
    context.check_thread()
    clock = SpanClock(context)
    macs, moved = _measure_macs(context, clock, ShaderVector("vec4", "highp")), _measure_bytes(context, clock)
    dispatches = _measure_dispatches(context, clock)
    if macs is None or moved is None or dispatches is None:
        return None
    return Peaks(macs, moved, 1 / dispatches)


def measure_half_macs(context: Context) -> float | None:
    """Multiply-accumulates a second in half precision; None where shaders have none. Raises DeviceError."""
    vector = half_vector(context.gl.extensions, context.gl.is_es and not context.is_software)
    return None if vector is None else _measure_macs(context, SpanClock(context), vector)


def half_vector(extensions: Collection[str], has_mediump: bool) -> ShaderVector | None:
    """GLSL's vector of four halves: a type of an extension, or, on GPUs with OpenGL ES, a precision."""
    if any(name in extensions for name in _HALF_EXTENSIONS):
        return ShaderVector("f16vec4", "")
    return ShaderVector("vec4", "mediump") if has_mediump else None


def fullest_rate(rate: RateOf, groups: int, most: int) -> float | None:
    """The highest rate, of `groups` to begin with and of more as long as that pays, up to `most`."""
    groups = min(groups, most)
    best = rate(groups)
    while best is not None and (groups := groups * _MORE) <= most:
        more = rate(groups)
        if more is None or more < _FASTER * best:
            return max(best, more or 0.0)
        best = more
    return best


def _measure_macs(context: Context, clock: SpanClock, vector: ShaderVector) -> float | None:
    source = load(
        "peak_macs.comp", {"GROUP": _GROUP, "ROUNDS": _ROUNDS, "VECTOR": vector.type, "PRECISION": vector.precision}
    )
    with _loaded(context, source) as program:
        groups = fullest_rate(partial(_rate, context, clock, program), _MAC_GROUPS, _most(context, _MAC_GROUPS))
    return None if groups is None else _ROUND_MACS * _ROUNDS * _GROUP * groups


def _measure_bytes(context: Context, clock: SpanClock) -> float | None:
    with _loaded(context, load("peak_copy.comp", {"GROUP": _GROUP})) as program:
        groups = fullest_rate(partial(_rate, context, clock, program), _COPY_GROUPS, _most(context, _COPY_GROUPS))
    return None if groups is None else 2 * _GROUP * TEXEL_BYTES * groups


def _measure_dispatches(context: Context, clock: SpanClock) -> float | None:
    """Dispatches a second, each of one work-group that waits for the one before it."""
    with _loaded(context, load("peak_copy.comp", {"GROUP": _GROUP})) as program:
        return _rate(context, clock, program, 1)


def _most(context: Context, first: int) -> int:
    """Work-groups that the device takes and has room for; few threads fill a CPU."""
    limits, group_bytes = context.limits, _GROUP * TEXEL_BYTES
    texels = limits.texture_buffer_texels // _GROUP
    allowed = min(limits.work_group_count[0], limits.storage_block_bytes // group_bytes, texels, _MOST_GROUPS)
    return min(allowed, first) if context.is_software else allowed


@contextlib.contextmanager
def _loaded(context: Context, source: str) -> Iterator[int]:
    program = compile_compute(context, source, "peak")
    try:
        yield program
    finally:
        context.gl.glDeleteProgram(program)


def _rate(context: Context, clock: SpanClock, program: int, groups: int) -> float | None:
    """Work-groups per second of a shader that reads one buffer and writes another, a texel a thread."""
    gl, size_bytes = context.gl, groups * _GROUP * TEXEL_BYTES
    zeros = np.zeros(size_bytes, np.uint8)
    read, written = (device_buffer(context, size_bytes, zeros) for _ in range(2))
    texture = gl.generate("Textures")
    try:
        gl.glActiveTexture(opengl.TEXTURE0)
        gl.glBindTexture(opengl.TEXTURE_BUFFER, texture)
        gl.glTexBuffer(opengl.TEXTURE_BUFFER, opengl.RGBA32F, read)
        gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 0, written)
        gl.glUseProgram(program)
        times_s = [mean_seconds(clock, partial(_dispatch, gl, groups), _LEAST_S)[1] for _ in range(_REPEATS)]
        context.check_errors("measuring the machine's peaks")
    finally:
        gl.delete("Textures", texture)
        gl.delete("Buffers", read)
        gl.delete("Buffers", written)
    known = [seconds for seconds in times_s if seconds]
    return groups / min(known) if known else None


def _dispatch(gl: GL, groups: int, times: int) -> None:
    for _ in range(times):
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)
        gl.glDispatchCompute(groups, 1, 1)
