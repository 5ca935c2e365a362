"""What a network puts out besides a mask, its picture or the scores of its classes: where and how that lies.

With it, what can be drawn, and the parameters of the shaders that do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.preprocess import ImageSize
from ..looks.effects import Effect, picture_effects

MOST_CLASSES = 256  # that are drawn, all in other colors
MOST_SCORES = 1 << 26  # 256 MiB of float32


@dataclass(frozen=True)
class PictureLayout:
    """How a picture lies in the network's output tensor, PHWC4 with one slice, and what its numbers mean."""

    size: ImageSize
    channels: Literal[3, 4]
    output_range: tuple[float, float]  # what black and white, or transparent and opaque, are

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What can be drawn with it, the usual one first."""
        return picture_effects(self.channels == 4)

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of picture.frag."""
        low, high = self.output_range
        sizes = {"PICTURE_W": self.size[0], "PICTURE_H": self.size[1]}
        return {**sizes, "HAS_ALPHA": int(self.channels == 4), "LOW": float(low), "SCALE": 1 / (high - low)}


@dataclass(frozen=True)
class PictureOutput:
    """The picture of the last frame on the device: where it is, asked for at each drawing, and how it lies there."""

    layout: PictureLayout
    span: Callable[[], BufferSpan]


@dataclass(frozen=True)
class ClassScores:
    """The scores of all classes for the last frame, PHWC4 on the device: asked for at each drawing; and their names."""

    size: ImageSize
    classes: int
    labels: tuple[str, ...]  # of the first classes
    span: Callable[[], BufferSpan]


def shows_classes(size: ImageSize, classes: int) -> bool:
    """Whether there are several classes, and not too many to be told apart or to be kept."""
    return 2 <= classes <= MOST_CLASSES and size[0] * size[1] * classes <= MOST_SCORES
