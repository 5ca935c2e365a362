"""The limits of the current context's device, as OpenGL says them."""

import ctypes

from ...device.limits import HALF_EXTENSIONS, Limits
from .opengl import GL, VERSION


def read_limits(gl: GL) -> Limits:
    """The limits of the current context; those of compute shaders are 0, and OpenGL errors, below OpenGL 4.3."""
    return Limits(
        texture_buffer_texels=gl.integer(0x8C2B) if gl.texture_buffers else 0,
        texture_buffer_alignment_bytes=gl.integer(0x919F) if gl.texture_buffers else 1,
        storage_alignment_bytes=gl.integer(0x90DF),
        storage_bindings=gl.integer(0x90DB),
        fragment_storage_bindings=gl.integer(0x90DA),
        storage_block_bytes=gl.integer64(0x90DE),
        uniform_block_bytes=gl.integer(0x8A30),
        uniform_alignment_bytes=gl.integer(0x8A34),
        uniform_blocks=gl.integer(0x91BB),
        work_group_count=_triple(gl, 0x91BE),
        work_group_size=_triple(gl, 0x91BF),
        work_group_invocations=gl.integer(0x90EB),
        shared_memory_bytes=gl.integer(0x8262),
        texture_size=gl.integer(0x0D33),
        compute_textures=gl.integer(0x91BC),
        image_units=gl.integer(0x8F38),
        viewport_size=_pair(gl, 0x0D3A),
        half_arithmetic=_half_arithmetic(gl),
    )


def _half_arithmetic(gl: GL) -> str:
    """Mesa's compilers have mediump, too, but make floats of halves that are loaded, and halves of those again."""
    if gl.is_es:
        return "" if "Mesa" in gl.string(VERSION) else "mediump"
    return next((name for name in HALF_EXTENSIONS if name in gl.extensions), "")


def _triple(gl: GL, name: int) -> tuple[int, int, int]:
    """Three unsigned numbers: some drivers allow 2**32 - 1, which OpenGL's integer query gives as -1."""
    x, y, z = (gl.integer(name, axis) % (1 << 32) for axis in range(3))
    return x, y, z


def _pair(gl: GL, name: int) -> tuple[int, int]:
    values = (ctypes.c_int * 2)()
    gl.glGetIntegerv(name, values)
    return values[0], values[1]
