"""The frame job of video: frames in RAM, one after the other, to refined masks of their size in RAM.

The masks are those that live and replay draw with: fitted to the picture's edges, and steady over time.
"""

import numpy as np

from ...console import Console
from ...models.model_loading import SegmentationModel
from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import Floats
from ..inference.backends import Backend, ComputeBackend
from ..inference.frame_segmenter import make_segmenter
from ..inference.network_options import NetworkOptions
from .whole_frame import WholeFrame

_MOST = np.float32(255)  # of a mask's levels


class RefinedJob:
    """Refined masks of a video's frames. For the thread of the context, where there is one."""

    def __init__(
        self,
        compute: ComputeBackend,
        model: SegmentationModel,
        frame: PictureFormat,
        options: NetworkOptions,
        console: Console,
    ) -> None:
        """Takes frames of that format. Raises TexelflowError, ValueError where nothing draws."""
        segmenter = make_segmenter(compute, model, frame, options, console)
        self._whole = WholeFrame(compute, segmenter, options.fit, "mask")
        self.take, self.begin_anew, self.release = self._whole.take, self._whole.begin_anew, self._whole.release
        self.backend: Backend = segmenter.backend
        self.renderer = segmenter.on_cpu if segmenter.delegated else compute.renderer(segmenter.on_cpu)

    def run(self, picture: Picture) -> Floats:
        """The mask (h, w) of the next frame, in 255ths, of its upright size."""
        return np.divide(self._whole.run(picture)[..., 0], _MOST, dtype=np.float32)
