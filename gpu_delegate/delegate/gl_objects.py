"""Checks the caller's textures and buffers, and binds them to tensors.

Whatever does not fit is a UsageError: another size, a format that shaders do not read or write, an object of another
context, or one that has been released.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import moderngl
import numpy as np

from ..base.errors import DeviceError, UsageError
from ..model.graph import Tensor
from ..model.layout import PHWC4, PLAIN, MapShape, shape_of
from ..model.quantization import BYTE_DTYPES
from ..targets.gl import opengl
from ..targets.gl.context import Context
from ..targets.gl.opengl import BufferRange
from .repacking import array_bytes

CallersContext = moderngl.Context
# A texture may be its name, a buffer (its name, an offset in bytes).
GlObject = moderngl.Texture | moderngl.Buffer | tuple[int, int] | int
BufferLayout = Literal["BHWC", "PHWC4"]

_WRITTEN: Mapping[int, tuple[str, int]] = MappingProxyType(
    {
        0x8229: ("R8", 1), 0x822B: ("RG8", 2), 0x8058: ("RGBA8", 4),
        0x822D: ("R16F", 1), 0x822F: ("RG16F", 2), 0x881A: ("RGBA16F", 4),
        0x822E: ("R32F", 1), 0x8230: ("RG32F", 2), 0x8814: ("RGBA32F", 4),
    }
)  # fmt: skip
_READ: Mapping[int, tuple[str, int]] = MappingProxyType(
    {
        **_WRITTEN,
        0x8051: ("RGB8", 3), 0x881B: ("RGB16F", 3), 0x8815: ("RGB32F", 3),
        0x822A: ("R16", 1), 0x822C: ("RG16", 2), 0x8054: ("RGB16", 3), 0x805B: ("RGBA16", 4),
    }
)  # fmt: skip


@dataclass(frozen=True)
class BoundTexture:
    """A texture of a tensor's size."""

    source: moderngl.Texture | int
    name: int
    image_format: int  # OpenGL's internal format

    def check(self, context: Context, tensor: Tensor) -> None:
        """Raise UsageError if it is not there any more."""
        if isinstance(self.source, int):
            _check_texture(context, tensor, self.source)
        else:
            _check_there(self.source, tensor)


@dataclass(frozen=True)
class BoundBuffer:
    """A range of a buffer that holds a tensor."""

    source: moderngl.Buffer | tuple[int, int]
    span: BufferRange
    layout: BufferLayout

    def check(self, context: Context, tensor: Tensor) -> None:
        """Raise UsageError if it is not there any more, or has become too small."""
        bound_buffer(context, tensor, self.source, self.layout)


Bound = BoundTexture | BoundBuffer


def bound_object(
    context: Context, tensor: Tensor, given: GlObject, layout: BufferLayout, is_written: bool = False
) -> Bound:
    """What a tensor is bound to, to be read before a run, or to be written after it. Raises UsageError."""
    if tensor.dtype not in ("float32", *BYTE_DTYPES):
        known = ", ".join(("float32", *BYTE_DTYPES))
        raise UsageError(f"{tensor.name} is {tensor.dtype}: only tensors of the types {known} can be bound")
    if layout not in ("BHWC", "PHWC4"):
        raise UsageError(f"layout is BHWC or PHWC4, not {layout!r}")
    if isinstance(given, moderngl.Texture) or type(given) is int:
        if layout != "BHWC":
            raise UsageError(f"{tensor.name}: a texture has no layout; leave it out")
        if tensor.dtype == "int8":
            raise UsageError(f"{tensor.name} is int8, and textures have bytes without a sign; bind a buffer")
        return _bound_texture(context, tensor, given, is_written)
    return bound_buffer(context, tensor, given, layout)  # type: ignore[arg-type]  # which looks at what it is


def is_gl_object(value: object) -> bool:
    """Whether it is a texture or a buffer of moderngl's; names of such are numbers, which tell nothing."""
    return isinstance(value, moderngl.Texture | moderngl.Buffer)


def bound_buffer(
    context: Context, tensor: Tensor, given: moderngl.Buffer | tuple[int, int], layout: BufferLayout
) -> BoundBuffer:
    """A tensor's range in a buffer as large as the tensor is or larger. Raises UsageError."""
    name, offset_bytes = _name_and_offset(context, tensor, given)
    gl, size = context.gl, ctypes.c_int64()
    gl.glBindBuffer(opengl.COPY_READ_BUFFER, name)
    gl.glGetBufferParameteri64v(opengl.COPY_READ_BUFFER, opengl.BUFFER_SIZE, ctypes.byref(size))
    shape = shape_of(tensor)
    as_array = array_bytes(shape) // PLAIN.value_bytes * np.dtype(tensor.dtype).itemsize
    wanted_bytes = PHWC4.size_bytes(shape) if layout == "PHWC4" else as_array
    if size.value - offset_bytes < wanted_bytes:
        raise UsageError(
            f"{tensor.name} {list(tensor.shape)} takes {wanted_bytes} bytes as {layout}, "
            f"the buffer has {max(size.value - offset_bytes, 0)}"
        )
    return BoundBuffer(given, BufferRange(name, offset_bytes, wanted_bytes), layout)


def _name_and_offset(context: Context, tensor: Tensor, given: object) -> tuple[int, int]:
    if isinstance(given, moderngl.Buffer):
        _check_there(given, tensor)
        _check_context(context, tensor, given)
        return given.glo, 0
    if isinstance(given, tuple) and len(given) == 2 and all(type(part) is int for part in given):
        name, offset_bytes = given
        if not 0 < name < 1 << 32 or not context.gl.glIsBuffer(name):
            raise UsageError(f"{tensor.name}: there is no buffer {name} in this OpenGL context")
        if offset_bytes < 0 or offset_bytes % 4:
            raise UsageError(f"{tensor.name}: an offset is a multiple of 4 bytes, not {offset_bytes}")
        return name, offset_bytes
    raise UsageError(
        f"{tensor.name} is bound to a moderngl.Texture, a moderngl.Buffer, the name of a texture or (name of a buffer, "
        f"offset in bytes), not {type(given).__name__}"
    )


def _bound_texture(context: Context, tensor: Tensor, given: moderngl.Texture | int, is_written: bool) -> BoundTexture:
    if isinstance(given, int):
        _check_texture(context, tensor, given)
    else:
        _check_there(given, tensor)
        _check_context(context, tensor, given)
    if is_written and context.gl.is_es:
        raise UsageError(f"{tensor.name}: OpenGL ES does not write to textures of moderngl; bind a buffer")
    if not isinstance(given, int) and given.samples:
        raise UsageError(f"{tensor.name}: a texture with several samples a pixel cannot be bound")
    formats = _WRITTEN if is_written else _READ
    if tensor.dtype == "uint8":
        formats = {number: found for number, found in formats.items() if found[0].endswith("8")}
    name = given if isinstance(given, int) else given.glo
    width, height, image_format = _of_texture(context, name)
    if image_format not in formats:
        names = ", ".join(name for name, _ in formats.values())
        raise UsageError(f"{tensor.name}: a texture has one of the formats {names}, not {image_format:#x}")
    _check_size(tensor, shape_of(tensor), (width, height), *formats[image_format])
    return BoundTexture(given, name, image_format)


def _check_size(tensor: Tensor, shape: MapShape, size: tuple[int, int], image_format: str, components: int) -> None:
    if shape.batch != 1:
        raise UsageError(f"{tensor.name} {list(tensor.shape)} is a batch of {shape.batch}: a texture holds one picture")
    if size != (shape.width, shape.height) or shape.channels > components:
        raise UsageError(
            f"{tensor.name} takes a texture of {shape.width}x{shape.height} with at least {shape.channels} components, "
            f"not {size[0]}x{size[1]} {image_format}"
        )


def _of_texture(context: Context, name: int) -> tuple[int, int, int]:
    """(width, height, internal format) of a texture's first level."""
    gl, value = context.gl, ctypes.c_int()
    gl.glActiveTexture(opengl.TEXTURE0)
    gl.glBindTexture(opengl.TEXTURE_2D, name)
    found = []
    for what in (opengl.TEXTURE_WIDTH, opengl.TEXTURE_HEIGHT, opengl.TEXTURE_INTERNAL_FORMAT):
        gl.glGetTexLevelParameteriv(opengl.TEXTURE_2D, 0, what, ctypes.byref(value))
        found.append(value.value)
    return found[0], found[1], found[2]


def _check_texture(context: Context, tensor: Tensor, name: int) -> None:
    """Raise UsageError if a name is not that of a plain texture in two dimensions."""
    is_there = 0 < name < 1 << 32 and bool(context.gl.glIsTexture(name))
    if is_there:
        context.check_errors("what came before a texture was bound")
        context.gl.glActiveTexture(opengl.TEXTURE0)
        context.gl.glBindTexture(opengl.TEXTURE_2D, name)
        try:
            context.check_errors("binding a texture")
        except DeviceError:
            is_there = False
    if not is_there:
        raise UsageError(f"{tensor.name}: there is no texture {name} in two dimensions in this OpenGL context")


def _check_there(given: moderngl.Texture | moderngl.Buffer, tensor: Tensor) -> None:
    if isinstance(given.mglo, moderngl.InvalidObject):
        raise UsageError(f"{tensor.name} is bound to a {type(given).__name__} that has been released")


def _check_context(context: Context, tensor: Tensor, given: moderngl.Texture | moderngl.Buffer) -> None:
    if given.ctx is not context.mgl:
        raise UsageError(
            f"{tensor.name} is bound to a {type(given).__name__} of another OpenGL context than the one that runs the "
            "model; give that one as context=..."
        )
