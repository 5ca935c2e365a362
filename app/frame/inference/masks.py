"""Compares two masks of one frame, or two pictures that a network made of it, in numbers and as a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.cpu.compare import errors
from texelflow.gpu_delegate.model.layout import Precision

from ...media.recorder import write_png
from ...picture.convert import Rgba
from ...picture.preprocess import Floats

THRESHOLD = 0.5  # at and above which a pixel counts as person

_LABEL_ROWS = 32
_FULL_SCALE = 20.0  # the picture of the differences is white at 1 / 20


@dataclass(frozen=True)
class MaskLimits:
    """How far masks may be apart. Small masks need some pixels beside the IoU, which leaves them none.

    With halves the outline counts over the whole clip: some frames have few pixels, of which the network is uncertain.
    """

    error: float
    iou: float
    pixels: int  # that may lie on different sides of the threshold, whatever the IoU is
    of_clip: bool = False  # whether the IoU is that of all frames together
    of_pictures: bool = False  # which have no outline

    @property
    def words(self) -> str:
        """What is allowed, for a person."""
        if self.of_pictures:
            return f"error at most {self.error:g}"
        if self.of_clip:
            return f"error at most {self.error:g}, and IoU of all frames together at least {self.iou}"
        outline = f"IoU at least {self.iou} or at most {self.pixels} pixels on the other side of {THRESHOLD}"
        return f"error at most {self.error:g}, and {outline}"


LIMITS: Mapping[Precision, MaskLimits] = MappingProxyType(
    {
        "fp32": MaskLimits(1e-3, 0.9999, 2),
        "fp16": MaskLimits(0.2, 0.995, 2, of_clip=True),
        "fp16-arithmetic": MaskLimits(0.4, 0.99, 2, of_clip=True),
        "bf16": MaskLimits(0.7, 0.995, 2, of_clip=True),
    }
)


# Of quantized networks: a value that one rounding takes to the next step takes others with it.
LIMITS_OF_STEPS = MaskLimits(0.2, 0.99, 2, of_clip=True)


def limits_of(
    precision: Precision, of_pictures: bool, error: float | None = None, is_quantized: bool = False
) -> MaskLimits:
    """What is allowed to masks or pictures; with another error if one is given."""
    limits = LIMITS_OF_STEPS if is_quantized and precision == "fp32" else LIMITS[precision]
    return replace(limits, of_pictures=of_pictures, error=limits.error if error is None else error)


@dataclass(frozen=True)
class MaskDifference:
    """The GPU's mask, or picture, of a frame against the CPU's."""

    frame: int
    max_error: float  # NaN where the GPU's mask holds NaN
    mean_error: float
    pixels: int  # on different sides of the threshold
    union: int  # pixels at or above the threshold in either mask

    @property
    def iou(self) -> float:
        """Of the pixels at or above the threshold; 1 if there are none in either mask."""
        return iou_of([self])

    def agrees(self, limits: MaskLimits) -> bool:
        """Whether the error, and the outline where single frames are judged by it, are within what is allowed."""
        outline = limits.of_clip or self.pixels <= limits.pixels or self.iou >= limits.iou
        return self.max_error <= limits.error and outline


def iou_of(differences: Sequence[MaskDifference]) -> float:
    """The intersection over the union of all frames' pixels at or above the threshold; 1 if there are none."""
    union = sum(difference.union for difference in differences)
    return (union - sum(difference.pixels for difference in differences)) / union if union else 1.0


def failures(differences: Sequence[MaskDifference], limits: MaskLimits) -> list[int]:
    """Numbers of the frames that fail; those whose outlines differ if it is the outlines of all that do."""
    together = not limits.of_clip or iou_of(differences) >= limits.iou
    return [d.frame for d in differences if not d.agrees(limits) or (not together and d.pixels > limits.pixels)]


def compare_masks(frame: int, gpu: Floats, cpu: Floats) -> MaskDifference:
    """Both masks are (H, W); pictures, (H, W, 4), have no outline."""
    apart, has_outline = errors(gpu, cpu), gpu.ndim == 2
    ours, theirs = (has_outline & (values >= THRESHOLD) for values in (gpu, cpu))
    return MaskDifference(
        frame=frame,
        max_error=float(apart.max()),
        mean_error=float(apart.mean(dtype=np.float64)),
        pixels=int((ours != theirs).sum()),
        union=int((ours | theirs).sum()),
    )


def save_picture(path: Path, difference: MaskDifference, rgba: Rgba, gpu: Floats, cpu: Floats) -> None:
    """A PNG of frame, GPU mask, CPU mask and their difference, side by side, labeled. Raises MediaError."""
    apart = np.minimum(np.nan_to_num(errors(gpu, cpu), nan=1.0), 1) * _FULL_SCALE  # errors may be huge
    panels = [
        (f"frame {difference.frame}", np.ascontiguousarray(rgba[..., 2::-1])),
        ("GPU", _shown(gpu)),
        ("CPU", _shown(cpu)),
        (
            f"difference x{_FULL_SCALE:.0f}, max {difference.max_error:.2g}",
            _shown(apart if apart.ndim == 2 else apart.max(-1)),
        ),
    ]
    write_png(path, np.hstack([labeled(text, picture) for text, picture in panels])[..., ::-1])


def _shown(values: Floats) -> npt.NDArray[np.uint8]:
    """BGR of a mask (H, W), or of a picture (H, W, 4) over black."""
    levels = np.clip(np.nan_to_num(values), 0, 1)
    if levels.ndim == 3:
        levels = levels[..., 2::-1] * levels[..., 3:]
    whole = np.ascontiguousarray(levels * 255, np.uint8)
    return whole if whole.ndim == 3 else np.asarray(cv2.cvtColor(whole, cv2.COLOR_GRAY2BGR), np.uint8)


def labeled(text: str, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A picture (h, w, 3) with a line of text above it."""
    strip = np.zeros((_LABEL_ROWS, picture.shape[1], 3), np.uint8)
    cv2.putText(strip, text, (8, 22), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (255, 255, 255), 1, cv2.LINE_AA)
    return np.vstack([strip, picture])
