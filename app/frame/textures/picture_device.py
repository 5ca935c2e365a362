"""What draws pictures by shaders, as a protocol: the drawing of pictures asks for nothing else.

The shaders are those in shaders/, with their defines; textures and buffers are known by names, which are numbers.
gl_pictures.py is the one of OpenGL.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.targets.gl.opengl import BufferRange, BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import ImageSize

SampleKind = Literal["bytes", "halves", "floats", "codes", "mask"]

FRAME_SAMPLERS: Mapping[str, int] = {f"frame_{plane}": plane for plane in range(3)}  # of frame.glsl

PixelRectangle = tuple[int, int, int, int]  # left, bottom, width, height; bottom counts from row 0 of a target


class Target(Protocol):
    """A picture that is drawn into: RGBA in bytes, halves or floats, or codes, R in bytes, or a mask, R in halves.

    Row 0 is the bottom row. `texture` is its name where it is read; `overdrawn` counts how often something was drawn
    over the picture.
    """

    @property
    def overdrawn(self) -> int: ...
    @property
    def size(self) -> ImageSize: ...
    @property
    def texture(self) -> int: ...
    def release(self) -> None: ...


class ShaderImage(Protocol):
    """A picture that stays as it is, for shaders to read; its row 0 comes first."""

    @property
    def texture(self) -> int: ...
    def release(self) -> None: ...


class ReadablePlanes(Protocol):
    """The planes of pictures of one format, row 0 first, as frame.glsl reads them.

    Their age is 0 for the newest, 1 for the one before, and so on.
    """

    @property
    def format(self) -> PictureFormat: ...
    def textures_of(self, age: int) -> tuple[int, ...]:
        """Names for a picture of that age, in the order of the planes. Raises ValueError for one that is not kept."""

    def bind(self, first_unit: int = 0, age: int = 0) -> None:
        """Bind the planes to texture units. Raises ValueError for a picture that is not kept."""

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of frame.glsl."""

    def release(self) -> None: ...


class FramePlanes(ReadablePlanes, Protocol):
    """Planes into which pictures go; the last `kept` ones stay. `uploaded_bytes` counts what went up."""

    @property
    def kept(self) -> int: ...
    @property
    def uploaded_bytes(self) -> int: ...
    @property
    def textures(self) -> tuple[int, ...]:
        """Names for the newest picture, in the order of the planes."""

    def upload(self, picture: Picture) -> None:
        """Take a picture. Raises ValueError for planes of another shape."""


class TexelView(Protocol):
    """Shows a range of a buffer to shaders as texels of floats, as texels.glsl reads them."""

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of texels.glsl."""

    def bind(self, unit: int, shown: BufferSpan, /) -> None:
        """Let shaders read a range by a texture unit; what was written there before is seen."""

    def show(self, shown: BufferSpan, /) -> None:
        """Move to a range, ahead of calls that are recorded."""

    def release(self) -> None: ...


class ShaderDrawing(Protocol):
    """One fragment shader with its defines. Uniforms that it does not have may be set, without effect."""

    def use(self) -> None:
        """Let uniforms be set, and draw with it."""

    def set_ints(self, uniform: str, *values: int) -> None:
        """Give one or two values to a uniform of the shader in use."""

    def set_floats(self, uniform: str, *values: float) -> None:
        """The same for one to four floats."""

    def set_array(self, uniform: str, values: Sequence[float]) -> None:
        """The same for an array of floats, from its first element on."""

    def draw(self, target: Target, size: ImageSize, first_row: int = 0, first_column: int = 0) -> None:
        """Draw on (width, height) of a target, from that row and column on; gl_FragCoord counts the target's.

        Only what is laid over pictures begins at another column than 0.
        """

    def release(self) -> None: ...


class RecordedCalls(Protocol):
    """Runs work that may be recorded, and is replayed then in place of being run."""

    def run(self, depends_on: Hashable, work: Callable[[], object], /) -> None:
        """Have work draw; its calls depend on nothing but `depends_on`. The first time it may make what it needs."""


class PictureDevice(Protocol):
    """What draws pictures by shaders: OpenGL, or the CPU's own code."""

    @property
    def renderer(self) -> str:
        """What draws, for people."""

    @property
    def filters_floats(self) -> bool:
        """Whether textures of floats are interpolated by the device."""

    @property
    def gathers(self) -> bool:
        """Whether drawing does nothing but call OpenGL, so that calls may be gathered."""

    def target(self, size: ImageSize, kind: SampleKind = "bytes") -> Target:
        """A picture of (width, height), not yet drawn. Raises DeviceError for one that is too large."""

    def image(self, rgba: npt.NDArray[np.uint8], label: str) -> ShaderImage:
        """A picture (H, W, 4) that stays as it is. Raises DeviceError."""

    def planes(self, format: PictureFormat, kept: int = 1, measures: bool = False) -> FramePlanes:
        """Room for pictures of a format. `measures`: the fastest way up may be looked for, which takes some uploads.

        Raises DeviceError for pictures that are too large.
        """

    def texels(self, count: int, stride: int) -> TexelView:
        """Texels of `stride` floats, 4 or 1. Raises DeviceError for more than shaders can read."""

    def drawing(
        self,
        shader: str,
        defines: Mapping[str, ParameterValue],
        samplers: Mapping[str, int],
        label: str,
        over: bool = False,
    ) -> ShaderDrawing:
        """A fragment shader by its file's name, in use; `samplers` are texture units. Raises DeviceError.

        over: its colors are premultiplied, and laid over what is there, RGBA.
        """

    def bind(self, unit: int, texture: int) -> None:
        """A texture of two dimensions, by its name, to a unit."""

    def clear(self, target: Target) -> None:
        """Make all of it 0."""

    def copy(self, source: Target, target: Target, place: PixelRectangle) -> None:
        """All of a picture into a place of another one, interpolated if that has another size."""

    def calls(self) -> RecordedCalls:
        """For the calls of one part."""

    def finish(self) -> None:
        """Have all that was drawn done, where that is not done by others."""

    def wait(self) -> None:
        """Return when all that was drawn is done."""

    def read(self, target: Target) -> npt.NDArray[np.uint8]:
        """A copy of a target of bytes, (H, W, 4), its top row first; waits for it. Raises DeviceError."""

    def read_red(self, target: Target) -> npt.NDArray[np.float32]:
        """A copy of the red of a target of floats, (H, W), its top row first; waits for it. Raises DeviceError."""

    def memory(self, size: ImageSize, size_bytes: int) -> BufferRange:
        """A buffer for a mask of (width, height), to be written from RAM. Raises DeviceError for want of memory."""

    def write(self, span: BufferSpan, data: npt.NDArray[Any]) -> None:
        """Write contiguous numbers at the beginning of a range."""

    def free(self, span: BufferSpan) -> None:
        """Free a buffer that memory() gave."""
