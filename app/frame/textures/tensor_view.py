"""Shows a network's output buffer to shaders as texels: by a buffer texture, or a storage buffer.

OpenGL has buffer textures, OpenGL ES 3.1 need not have them, and some devices show few texels that way. Both are
declared in shaders/texels.glsl.
"""

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

_BINDING = 3  # of texels.glsl: OpenGL ES 3.1 promises 0 to 3


class TensorTexels:
    """Shows a range of a buffer to shaders: texels of `stride` floats, 4 or 1."""

    def __init__(self, context: Context, texels: int, stride: int) -> None:
        """Raises DeviceError if the shaders of this device cannot read so many."""
        limits = context.limits
        self._gl, self._context = context.gl, context
        self._format, self._texel_bytes = (opengl.RGBA32F, 16) if stride == 4 else (opengl.R32F, 4)
        self._is_stored = texels > limits.texture_buffer_texels
        self._shown: tuple[int, int, int] | None = None
        can_store = self._gl.is_es and limits.fragment_storage_bindings > 0
        stored = limits.storage_block_bytes // self._texel_bytes if can_store else 0
        if texels > (most := max(limits.texture_buffer_texels, stored)):
            raise DeviceError(f"an output of {texels} pixels is too large for {context.renderer}: at most {most}")
        self._texture = 0 if self._is_stored else self._gl.generate("Textures")

    def defines(self) -> dict[str, ParameterValue]:
        """The parameter of texels.glsl."""
        return {"STORED": int(self._is_stored)}

    def bind(self, unit: int, shown: BufferSpan) -> None:
        """Let shaders read it, by a texture unit if it is a texture; what shaders wrote there before is seen."""
        if self._is_stored:
            span = (shown.buffer, shown.offset_bytes, shown.size_bytes)
            self._gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, _BINDING, *span)
        else:
            self.show(shown)
            self._gl.bind_texture(unit, opengl.TEXTURE_BUFFER, self._texture)
        if self._context.can_compute:
            way = opengl.SHADER_STORAGE_BARRIER_BIT if self._is_stored else opengl.TEXTURE_FETCH_BARRIER_BIT
            self._gl.glMemoryBarrier(way)

    def show(self, shown: BufferSpan) -> None:
        """Move the texture to a range, which bind does only if it is another one; ahead of calls that are recorded."""
        span = (shown.buffer, shown.offset_bytes, shown.size_bytes)
        if span == self._shown or self._is_stored:
            return
        self._shown = span
        self._gl.glBindTexture(opengl.TEXTURE_BUFFER, self._texture)
        if self._context.can_compute:
            self._gl.glTexBufferRange(
                opengl.TEXTURE_BUFFER, self._format, shown.buffer, shown.offset_bytes, shown.size_bytes
            )
        else:  # nothing is computed, so the mask is all that the buffer holds
            self._gl.glTexBuffer(opengl.TEXTURE_BUFFER, self._format, shown.buffer)

    def release(self) -> None:
        """Delete the texture; the buffer stays."""
        if self._texture:
            self._gl.delete("Textures", self._texture)
