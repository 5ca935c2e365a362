"""A context goes in; the peaks of its device come out, measured: arithmetic, memory, and what a dispatch takes."""

from time import perf_counter

from texelflow.gpu_delegate import opengl
from texelflow.gpu_delegate.context import Context, compile_compute
from texelflow.gpu_delegate.layout import TEXEL_BYTES
from texelflow.gpu_delegate.opengl import GL
from texelflow.gpu_delegate.roofline import Peaks
from texelflow.gpu_delegate.shader import load

_GROUP = 64  # threads of a work-group
_ROUND_MACS = 48  # of one thread in peak_macs.comp: 4 steps of 3 vectors of 4
_ROUNDS = 256
_MAC_GROUPS = 256  # of the first kind of run; slow devices take 10 ms for them
_COPY_TEXELS = 1 << 16  # 1 MiB, a large tensor: caches help the copy as much as they help the kernels
_LEAST_S = 0.005  # a shorter run measures the driver rather than the device
_REPEATS = 4


def measure_peaks(context: Context) -> Peaks:
    """The peaks of the context's device, in less than a second. Raises DeviceError if the driver refuses."""
    context.check_thread()
    return Peaks(_measure_macs(context), _measure_bytes(context), _measure_dispatch(context))


def _measure_macs(context: Context) -> float:
    macs = _ROUND_MACS * _ROUNDS * _GROUP
    source = load("peak_macs.comp", {"GROUP": _GROUP, "ROUNDS": _ROUNDS})
    most = min(context.limits.work_group_count[0], context.limits.storage_block_bytes // (_GROUP * TEXEL_BYTES))
    return macs * _best_rate(context, source, min(most, _MAC_GROUPS))


def _measure_bytes(context: Context) -> float:
    source = load("peak_copy.comp", {"GROUP": _GROUP})
    return 2 * _GROUP * TEXEL_BYTES * _best_rate(context, source, _COPY_TEXELS // _GROUP)


def _measure_dispatch(context: Context) -> float:
    """Seconds of a dispatch of one work-group that waits for the one before it."""
    return 1 / _best_rate(context, load("peak_copy.comp", {"GROUP": _GROUP}), 1)


def _best_rate(context: Context, source: str, groups: int) -> float:
    """Work-groups per second of a shader that reads one buffer and writes another, a texel a thread."""
    gl, size_bytes = context.gl, groups * _GROUP * TEXEL_BYTES
    program, texture = compile_compute(context, source, "peak"), gl.generate("Textures")
    read, written = _zeros(gl, size_bytes), _zeros(gl, size_bytes)
    try:
        gl.glActiveTexture(opengl.TEXTURE0)
        gl.glBindTexture(opengl.TEXTURE_BUFFER, texture)
        gl.glTexBuffer(opengl.TEXTURE_BUFFER, opengl.RGBA32F, read)
        gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 0, written)
        gl.glUseProgram(program)
        rate = groups / min(_time(context, groups) for _ in range(_REPEATS))
        context.check_errors("measuring the machine's peaks")
        return rate
    finally:
        gl.glDeleteProgram(program)
        gl.delete("Textures", texture)
        gl.delete("Buffers", read)
        gl.delete("Buffers", written)


def _zeros(gl: GL, size_bytes: int) -> int:
    """A new buffer of zeros."""
    name = gl.generate("Buffers")
    gl.glBindBuffer(opengl.SHADER_STORAGE_BUFFER, name)
    gl.glBufferData(opengl.SHADER_STORAGE_BUFFER, size_bytes, None, opengl.DYNAMIC_COPY)
    gl.clear_buffer(opengl.SHADER_STORAGE_BUFFER, 0, size_bytes)
    return name


def _time(context: Context, groups: int) -> float:
    """Seconds of one dispatch, from as many in a row as give a significant time."""
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
        context.gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)
        context.gl.glDispatchCompute(groups, 1, 1)
    context.gl.glFinish()
    return perf_counter() - start
