"""Makes masks as a program in Python does: frames as arrays to texelflow.Segmenter(refine=True)."""

from time import perf_counter
from types import TracebackType

import numpy as np

import texelflow
from texelflow.gpu_delegate.model.layout import Precision

from ...frame.inference.backends import Backend
from ...media.sources import VideoFrame
from ...picture.preprocess import Floats, Preprocessing

__all__ = ["PythonWay"]


class PythonWay:
    """One of the ways from frames to masks, with what MaskWay has of the others."""

    composite_ms = 0.0  # it draws nothing

    def __init__(self, model: str, backend: str, precision: Precision, preprocessing: Preprocessing) -> None:
        """Raises TexelflowError."""
        backends: dict[str, Backend] = {"gl": "gl", "cpu": "cpu"}
        self._segment = texelflow.Segmenter(
            model,
            backends.get(backend, "auto"),
            refine=True,
            precision=precision,
            preprocessing=preprocessing,
            quiet=True,
        )
        self._times_ms = list[float]()

    def refine(self, frame: VideoFrame) -> int:
        """The age of the frame whose mask is the next: 0, for there is no delay."""
        return 0

    def mask(self, frame: VideoFrame) -> Floats:
        """The mask (h, w) of the next frame, from 0 to 1."""
        start = perf_counter()
        mask = self._segment(frame.picture.planes[0])
        self._times_ms.append((perf_counter() - start) * 1e3)
        return mask

    @property
    def refine_ms(self) -> float:
        """The median over all frames, of all that it takes."""
        return float(np.median(self._times_ms)) if self._times_ms else 0.0

    def restart(self) -> None:
        """Forget the frames so far, as at a cut, and their times."""
        self._segment.reset()
        self._times_ms.clear()

    def __enter__(self) -> "PythonWay":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._segment.close()
