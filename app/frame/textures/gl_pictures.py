"""Draws pictures by shaders on OpenGL: the first of what picture_device.py describes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange, BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.picture import PictureFormat
from ...picture.preprocess import ImageSize
from .buffers import mask_buffer
from .fullscreen_drawing import Drawing
from .offscreen_target import OffscreenTarget, on_opengl
from .picture_device import PixelRectangle, SampleKind, Target
from .readback import ReadbackRing
from .tensor_view import TensorTexels
from .upload import DIRECT, FrameTextures
from .upload_path import choose_path


class GlPictures:
    """A PictureDevice in a context, in whose thread it is used. It holds nothing of its own."""

    def __init__(self, context: Context) -> None:
        self.context, self._gl = context, context.gl

    @property
    def renderer(self) -> str:
        """The context's."""
        return self.context.renderer

    @property
    def filters_floats(self) -> bool:
        """Whether textures of floats are interpolated by the device."""
        return self._gl.float_linear

    @property
    def gathers(self) -> bool:
        """All of it is calls of OpenGL."""
        return True

    def target(self, size: ImageSize, kind: SampleKind = "bytes") -> OffscreenTarget:
        """Raises DeviceError if the device does not draw pictures of that size."""
        return OffscreenTarget(self.context, size, kind)

    def image(self, rgba: npt.NDArray[np.uint8], label: str) -> "GlImage":
        """A texture of a picture (H, W, 4). Raises DeviceError."""
        return GlImage(self.context, rgba, label)

    def planes(self, format: PictureFormat, kept: int = 1, measures: bool = False) -> FrameTextures:
        """Textures; `measures`: by the way up that choose_path finds. Raises DeviceError as FrameTextures does."""
        return FrameTextures(self.context, format, choose_path(self.context, format) if measures else DIRECT, kept)

    def texels(self, count: int, stride: int) -> TensorTexels:
        """Raises DeviceError if the shaders of this device cannot read so many."""
        return TensorTexels(self.context, count, stride)

    def drawing(
        self,
        shader: str,
        defines: Mapping[str, ParameterValue],
        samplers: Mapping[str, int],
        label: str,
        over: bool = False,
    ) -> Drawing:
        """Raises DeviceError if the shader does not compile."""
        return Drawing(self.context, shader, defines, samplers, label, over)

    def bind(self, unit: int, texture: int) -> None:
        """A texture of two dimensions to a unit."""
        self._gl.bind_texture(unit, opengl.TEXTURE_2D, texture)

    def clear(self, target: Target) -> None:
        """Make all of it 0."""
        self._gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, on_opengl(target).framebuffer)
        self._gl.glClearColor(0.0, 0.0, 0.0, 0.0)
        self._gl.glClear(opengl.COLOR_BUFFER_BIT)

    def copy(self, source: Target, target: Target, place: PixelRectangle) -> None:
        """All of a picture into a place of another one, interpolated if that has another size."""
        gl, (width, height), (left, bottom, wide, high) = self._gl, source.size, place
        filtered = opengl.NEAREST if (wide, high) == source.size else opengl.LINEAR
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, on_opengl(source).framebuffer)
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, on_opengl(target).framebuffer)
        gl.glBlitFramebuffer(
            0, 0, width, height, left, bottom, left + wide, bottom + high, opengl.COLOR_BUFFER_BIT, filtered
        )  # fmt: skip

    def calls(self) -> CallCache:
        """For the calls of one part."""
        return CallCache(self.context.calls)

    def finish(self) -> None:
        """The pipeline waits for OpenGL where that is needed."""

    def wait(self) -> None:
        """Return when OpenGL has done all."""
        self._gl.glFinish()

    def read(self, target: Target) -> npt.NDArray[np.uint8]:
        """A copy of a target of bytes, (H, W, 4), its top row first."""
        width, height = target.size
        ring = ReadbackRing[int](self.context, width * height * 4)
        ring.request_picture(0, on_opengl(target).framebuffer, target.size)
        ((_, data),) = ring.drain()
        ring.release()
        return data.reshape(height, width, 4)

    def read_red(self, target: Target) -> npt.NDArray[np.float32]:
        """A copy of the red of a target of floats, (H, W), its top row first: ES reads no channel alone."""
        (width, height), gl = target.size, self._gl
        pixels = np.empty((height, width, 4), np.float32)
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, on_opengl(target).framebuffer)
        gl.glPixelStorei(opengl.PACK_ALIGNMENT, 4)
        gl.glReadPixels(0, 0, width, height, opengl.RGBA, opengl.FLOAT, pixels.ctypes.data)
        self.context.check_errors("reading a mask")
        return np.ascontiguousarray(pixels[::-1, :, 0])  # OpenGL's row 0 is the lowest

    def memory(self, size: ImageSize, size_bytes: int) -> BufferRange:
        """A buffer that is written from RAM. Raises DeviceError if the device has no memory for it."""
        return mask_buffer(self.context, size, size_bytes, computed=False)

    def write(self, span: BufferSpan, data: npt.NDArray[Any]) -> None:
        """Write contiguous numbers at the beginning of a range."""
        self._gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, span.buffer)
        self._gl.glBufferSubData(opengl.COPY_WRITE_BUFFER, span.offset_bytes, data.nbytes, data.ctypes.data)

    def free(self, span: BufferSpan) -> None:
        """Delete the buffer."""
        self._gl.delete("Buffers", span.buffer)


class GlImage:
    """A texture of a picture in RAM, (H, W, 4)."""

    def __init__(self, context: Context, rgba: npt.NDArray[np.uint8], label: str) -> None:
        """Raises DeviceError for want of memory."""
        height, width = rgba.shape[:2]
        self._texture = context.mgl.texture((width, height), 4, rgba.tobytes(), alignment=1)
        context.label(opengl.TEXTURE, self.texture, label)
        context.check_errors(f"making the {label}")

    @property
    def texture(self) -> int:
        """OpenGL's name of it."""
        return self._texture.glo

    def release(self) -> None:
        """Delete it."""
        self._texture.release()
