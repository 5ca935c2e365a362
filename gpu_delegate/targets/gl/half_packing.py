"""Tests whether a driver's packHalf2x16 rounds floats to halves as kernels need it.

OpenGL lets a driver round either way, and flush what is too small for a normal half. Where it rounds to the nearest,
ties to even, kernels that store halves use it (shaders/halves_packed.glsl). Elsewhere they convert with integers, by
about three times as many instructions (shaders/halves.glsl).
"""

import numpy as np
import numpy.typing as npt

from ...model.packing import Float32Array
from ..glsl.shader import load
from . import opengl
from .context import Context, compile_compute
from .gl_buffers import device_buffer, read_buffer
from .opengl import BufferRange

_GROUP = 64  # threads of a work-group, each with four values
_LARGEST = 65504.0
_STEP = 8  # one in so many normal halves is tried


def packs_halves(context: Context) -> bool:
    """Try it: finite halves, what lies between them, infinities and what is no number. Raises DeviceError."""
    values = trial_values()
    gl, halves_bytes = context.gl, values.nbytes // 2
    program = compile_compute(context, load("half_packing.comp"), "half packing")
    given, found = device_buffer(context, values.nbytes, values), device_buffer(context, halves_bytes)
    try:
        for binding, (buffer, size_bytes) in enumerate(((given, values.nbytes), (found, halves_bytes))):
            gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, binding, buffer, 0, size_bytes)
        gl.glUseProgram(program)
        gl.glDispatchCompute(len(values) // (4 * _GROUP), 1, 1)
        gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)
        return are_nearest(values, read_buffer(context, BufferRange(found, 0, halves_bytes)).view(np.float16))
    finally:
        gl.glDeleteProgram(program)
        gl.delete("Buffers", given)
        gl.delete("Buffers", found)


def trial_values() -> Float32Array:
    """Each small half and some of the others, the middle to the next one, and the floats on both sides of that."""
    bits = np.concatenate([np.arange(0x400), np.arange(0x400, 0x7C00, _STEP), [0x7BFF]]).astype(np.uint16)
    halves = bits.view(np.float16).astype(np.float32)
    above = np.append((bits[:-1] + np.uint16(1)).view(np.float16).astype(np.float32), np.float32(65536))
    middles = (halves + above) / 2
    least, infinity = np.float32(1e-45), np.float32(np.inf)
    others = np.array([least, 1e-8, 65505, 65519, 65521, 1e9, infinity, np.nan], np.float32)
    positive = np.concatenate([halves, middles, np.nextafter(middles, 0), np.nextafter(middles, infinity), others])
    values = np.concatenate([positive, -positive]).astype(np.float32)
    return np.pad(values, (0, -len(values) % (4 * _GROUP)))


def are_nearest(values: Float32Array, halves: npt.NDArray[np.float16]) -> bool:
    """Whether these halves are the nearest to the values, ties to even, the largest for what is larger."""
    wanted = np.clip(values, -_LARGEST, _LARGEST).astype(np.float16)
    same = (wanted.view(np.uint16) == halves.view(np.uint16)) | (np.isnan(wanted) & np.isnan(halves))
    return bool(same.all())
