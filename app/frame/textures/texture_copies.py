"""Copies pictures between a caller's textures of OpenGL and those of the program, on the device."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import moderngl

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ...picture.picture import Picture, rgba_format
from ...picture.preprocess import ImageSize
from .offscreen_target import OffscreenTarget


@dataclass(frozen=True, eq=False)
class TexturePicture(Picture):
    """A picture that is a texture, its row 0 on top, of colors from 0 to 1. It has no planes."""

    texture: moderngl.Texture


def texture_picture(texture: moderngl.Texture) -> TexturePicture:
    """Upright RGBA, whatever alpha says."""
    return TexturePicture(rgba_format(texture.size), (), texture)


def copy_in(context: Context, source: moderngl.Texture, name: int, size: ImageSize) -> None:
    """Copy a texture to one of the program's, of RGBA8 and the same size. Raises DeviceError."""
    context.calls.flush()
    own = context.mgl.external_texture(name, size, 4, 0, "f1")
    with _framebuffer(context, source) as read, _framebuffer(context, own) as drawn:
        _blit(context, read.glo, drawn.glo, size, upside_down=False)


def copy_out(context: Context, picture: OffscreenTarget, texture: moderngl.Texture) -> None:
    """Copy what was drawn, whose row 0 is the lowest, to a texture whose row 0 is on top. Raises DeviceError."""
    context.calls.flush()
    with _framebuffer(context, texture) as drawn:
        _blit(context, picture.framebuffer, drawn.glo, picture.size, upside_down=True)


@contextlib.contextmanager
def _framebuffer(context: Context, texture: moderngl.Texture) -> Iterator[moderngl.Framebuffer]:
    """Made for each copy: textures may be deleted in between, and their names given to others."""
    try:
        framebuffer = context.mgl.framebuffer([texture])
    except moderngl.Error as error:
        raise DeviceError(f"{context.renderer} copies no texture of this format: {error}; RGBA8 does") from None
    try:
        yield framebuffer
    finally:
        framebuffer.release()


def _blit(context: Context, read: int, drawn: int, size: ImageSize, upside_down: bool) -> None:
    gl, (width, height) = context.gl, size
    rows = (height, 0) if upside_down else (0, height)
    gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, read)
    gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, drawn)
    gl.glBlitFramebuffer(0, 0, width, height, 0, rows[0], width, rows[1], opengl.COLOR_BUFFER_BIT, opengl.NEAREST)
