"""Reads linked programs as the driver's own binaries, and loads them again.

GL_ARB_get_program_binary, part of OpenGL 4.1 and ES 3.0. A driver may refuse what it made itself, after an update for
one, and says so by the program's link status.
"""

import ctypes

from .opengl import GL, LINK_STATUS

MOST_BINARY_BYTES = 4 << 20  # of one program

_HEAD_BYTES = 4  # the driver's number of the format, in front of the binary
_FORMAT_COUNT, _FORMATS, _LENGTH, _RETRIEVABLE_HINT = 0x87FE, 0x87FF, 0x8741, 0x8257


def binary_formats(gl: GL) -> frozenset[int]:
    """The formats that the driver knows; none at all are allowed."""
    count = gl.integer(_FORMAT_COUNT) if gl.program_binaries else 0
    formats = (ctypes.c_int * max(count, 1))()
    if count > 0:
        gl.glGetIntegerv(_FORMATS, formats)
    return frozenset(number & 0xFFFFFFFF for number in formats[: max(count, 0)])


def ask_for_binary(gl: GL, program: int) -> None:
    """Say, before a program is linked, that its binary will be read."""
    gl.glProgramParameteri(program, _RETRIEVABLE_HINT, 1)


def read_binary(gl: GL, program: int) -> bytes | None:
    """A linked program as bytes, None where the driver does not give it, or too much."""
    length, binary_format = ctypes.c_int(), ctypes.c_uint()
    gl.glGetProgramiv(program, _LENGTH, ctypes.byref(length))
    if not 0 < length.value <= MOST_BINARY_BYTES:
        return None
    content = ctypes.create_string_buffer(length.value)
    gl.glGetProgramBinary(program, length.value, ctypes.byref(length), ctypes.byref(binary_format), content)
    return binary_format.value.to_bytes(_HEAD_BYTES, "little") + content.raw[: max(length.value, 0)]


def load_binary(gl: GL, content: bytes, formats: frozenset[int]) -> int:
    """The name of a program of such bytes, linked; 0 where the driver refuses them or does not know their format."""
    binary_format = int.from_bytes(content[:_HEAD_BYTES], "little")
    if binary_format not in formats or len(content) <= _HEAD_BYTES:
        return 0
    program, linked = gl.glCreateProgram(), ctypes.c_int()
    gl.glProgramBinary(program, binary_format, content[_HEAD_BYTES:], len(content) - _HEAD_BYTES)
    gl.glGetProgramiv(program, LINK_STATUS, ctypes.byref(linked))
    if not linked.value:
        gl.glDeleteProgram(program)
        return 0
    return program
