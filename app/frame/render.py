"""A frame's textures and the network's output tensor go in, a picture with an effect comes out in a target."""

from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol

import moderngl
import numpy as np
import numpy.typing as npt

from app.frame.picture import rgba_format, rgba_picture
from app.frame.preprocess import Fit, ImageSize, sampling
from app.frame.resample import BufferTexture, MaskLayout, all_inside, axis_defines
from app.frame.upload import FrameTextures
from app.media.background import cover
from gpu_delegate import opengl
from gpu_delegate.context import Context, compile_program
from gpu_delegate.errors import DeviceError
from gpu_delegate.opengl import BufferSpan
from gpu_delegate.shader import Value, load

Effect = Literal["tint", "replace", "color", "mask"]
EFFECTS: tuple[Effect, ...] = ("tint", "replace", "color", "mask")  # in the order of composite.frag's numbers
Color = tuple[float, float, float]  # red, green, blue from 0 to 1

MASK_UNIT, BACKGROUND_UNIT = 3, 4  # of textures, behind the frame's planes
_TINT_STRENGTH = 0.5


class Target(Protocol):
    """Where pictures go: a texture off the screen, or a window."""

    @property
    def framebuffer(self) -> int:
        """OpenGL's name of the framebuffer."""

    @property
    def size(self) -> ImageSize: ...

    @property
    def is_top_down(self) -> bool:
        """Whether its row 0 is the top row (memory) or the bottom row (windows)."""


class OffscreenTarget:
    """A picture in the device's memory, RGBA8, row 0 is the top row; may be larger than the frame, for even sizes."""

    is_top_down = True

    def __init__(self, context: Context, size: ImageSize) -> None:
        """Raises DeviceError if the device does not draw pictures of that size."""
        limit = (min(side, context.limits.texture_size) for side in context.limits.viewport_size)
        widest, highest = limit
        if size[0] > widest or size[1] > highest:
            most = f"at most {widest}x{highest}"
            raise DeviceError(f"{size[0]}x{size[1]} pixels are too many for {context.renderer}: {most}")
        self.size = size
        try:
            self._texture = context.mgl.texture(size, 4)
            self._framebuffer = context.mgl.framebuffer([self._texture])
        except moderngl.Error as error:
            raise DeviceError(f"{context.renderer} cannot draw {size[0]}x{size[1]} pixels: {error}") from None
        context.check_errors(f"making a picture of {size[0]}x{size[1]} pixels")

    @property
    def framebuffer(self) -> int:
        return self._framebuffer.glo

    def release(self) -> None:
        """Delete the picture."""
        self._framebuffer.release()
        self._texture.release()


@dataclass
class Look:
    """What the picture looks like; may be changed between any two frames."""

    effect: Effect = "tint"
    color: Color = (0.1, 0.75, 0.45)
    radius: float | None = None  # of blur, in pixels of the frame; None goes by its height


@dataclass(frozen=True)
class _Program:
    """One effect, compiled: OpenGL's name of it and the places of its uniforms (-1 where it has none)."""

    name: int
    color: int
    height: int


class Compositor:
    """Draws frames of one size with the mask of one output tensor.

    `look` may change while it runs; an effect is compiled when it is first seen.
    """

    def __init__(
        self,
        context: Context,
        frame: FrameTextures,
        layout: MaskLayout,
        fit: Fit = "stretch",
        look: Look | None = None,
    ) -> None:
        """Raises DeviceError if the shaders do not compile."""
        self.look = look or Look()
        self.frame_size = frame_size = frame.format.upright_size
        self._frame = frame
        self._context, self._gl = context, context.gl
        back = sampling(frame_size, layout.size, fit).inverse()
        sizes = {"FRAME_W": frame_size[0], "FRAME_H": frame_size[1], "UNSEEN": int(not all_inside(back))}
        self._defines: dict[str, Value] = {**sizes, **frame.defines(), **axis_defines(back), **layout.defines()}
        self._programs: dict[Effect, _Program] = {self.look.effect: self._compile(self.look.effect)}
        self._mask = BufferTexture(context, layout.stride)
        self._corners = self._gl.generate("VertexArrays")  # empty: the core profile draws nothing without one
        self._background: FrameTextures | None = None

    def set_background(self, rgba: npt.NDArray[np.uint8]) -> None:
        """The picture (H, W, 4) behind the person of the effect `replace`; it is cut to cover the frame."""
        if self._background is None:
            self._background = FrameTextures(self._context, rgba_format(self.frame_size))
        self._background.upload(rgba_picture(cover(rgba, self.frame_size)))

    def draw(self, tensor: BufferSpan, target: Target) -> None:
        """Draw one frame. Raises ValueError if the look needs a background and there is none."""
        gl, look = self._gl, self.look
        if look.effect == "replace" and self._background is None:
            raise ValueError("the effect replace needs a background")
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, target.framebuffer)
        gl.glViewport(0, 0, *target.size)
        if look.effect not in self._programs:
            self._programs[look.effect] = self._compile(look.effect)
        program = self._programs[look.effect]
        gl.glUseProgram(program.name)
        gl.glUniform4f(program.color, *look.color, _TINT_STRENGTH)
        gl.glUniform1i(program.height, 0 if target.is_top_down else target.size[1])
        self._frame.bind()
        self._mask.bind(MASK_UNIT, tensor)
        if self._background:
            self._background.bind(BACKGROUND_UNIT)
        gl.glBindVertexArray(self._corners)
        if self._context.can_compute:
            gl.glMemoryBarrier(opengl.TEXTURE_FETCH_BARRIER_BIT)
        gl.glDrawArrays(opengl.TRIANGLES, 0, 3)

    def _compile(self, effect: Effect) -> _Program:
        fragment = load("composite.frag", {**self._defines, "EFFECT": EFFECTS.index(effect)})
        stages = {opengl.VERTEX_SHADER: load("composite.vert"), opengl.FRAGMENT_SHADER: fragment}
        name = compile_program(self._context, stages, f"composite {effect}")
        locate = self._gl.glGetUniformLocation
        self._gl.glUseProgram(name)
        for unit, sampler in enumerate((b"frame_0", b"frame_1", b"frame_2", b"mask_tensor", b"background")):
            self._gl.glUniform1i(locate(name, sampler), unit)
        return _Program(name, locate(name, b"color"), locate(name, b"height"))

    def release(self) -> None:
        """Delete what was made here; frames, tensors and targets stay."""
        for program in self._programs.values():
            self._gl.glDeleteProgram(program.name)
        self._gl.delete("VertexArrays", self._corners)
        self._mask.release()
        if self._background:
            self._background.release()

    def __enter__(self) -> "Compositor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
