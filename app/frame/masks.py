"""Two masks of one frame go in; how far they are apart, in numbers and as a picture, comes out."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from app.frame.preprocess import Floats
from app.media.convert import Rgba
from gpu_delegate.compare import errors
from gpu_delegate.errors import MediaError

THRESHOLD = 0.5  # from which on a pixel counts as a person
LEAST_IOU = 0.9999
MOST_PIXELS = 2  # that may lie on different sides of the threshold: small masks need this where 0.9999 leaves none

_LABEL_ROWS = 32
_FULL_SCALE = 20.0  # the picture of the differences is white at 1 / 20


@dataclass(frozen=True)
class MaskDifference:
    """The GPU's mask of a frame against the CPU's."""

    frame: int
    max_error: float  # not a number where the GPU's mask holds none
    mean_error: float
    iou: float  # of the pixels at or above the threshold; 1 if there are none in either mask
    pixels: int  # on different sides of the threshold

    def agrees(self, tolerance: float) -> bool:
        """Whether the error and the outline are within what is allowed."""
        return self.max_error <= tolerance and (self.iou >= LEAST_IOU or self.pixels <= MOST_PIXELS)


def compare_masks(frame: int, gpu: Floats, cpu: Floats) -> MaskDifference:
    """Both masks are (H, W)."""
    apart = errors(gpu, cpu)
    ours, theirs = gpu >= THRESHOLD, cpu >= THRESHOLD
    union = int((ours | theirs).sum())
    iou = int((ours & theirs).sum()) / union if union else 1.0
    return MaskDifference(
        frame, float(apart.max()), float(apart.mean(dtype=np.float64)), iou, int((ours != theirs).sum())
    )


def save_picture(path: Path, difference: MaskDifference, rgba: Rgba, gpu: Floats, cpu: Floats) -> None:
    """A PNG of frame, GPU mask, CPU mask and their difference, side by side, labelled. Raises MediaError."""
    apart = np.nan_to_num(errors(gpu, cpu), nan=1.0) * _FULL_SCALE
    panels = [
        (f"frame {difference.frame}", np.ascontiguousarray(rgba[..., 2::-1])),
        ("GPU", _grey(gpu)),
        ("CPU", _grey(cpu)),
        (f"difference x{_FULL_SCALE:.0f}, max {difference.max_error:.2g}", _grey(apart)),
    ]
    try:
        encoded = cv2.imencode(".png", np.hstack([_labelled(text, picture) for text, picture in panels]))[1]
        path.write_bytes(encoded.tobytes())
    except (OSError, cv2.error) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:100]
        raise MediaError(f"'{path}' cannot be written ({reason}); choose another place with --report") from error


def _grey(mask: Floats) -> npt.NDArray[np.uint8]:
    levels = (np.clip(np.nan_to_num(mask), 0, 1) * 255).astype(np.uint8)
    return np.asarray(cv2.cvtColor(levels, cv2.COLOR_GRAY2BGR), np.uint8)


def _labelled(text: str, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    strip = np.zeros((_LABEL_ROWS, picture.shape[1], 3), np.uint8)
    cv2.putText(strip, text, (8, 22), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (255, 255, 255), 1, cv2.LINE_AA)
    return np.vstack([strip, picture])
