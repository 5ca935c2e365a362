"""The frame job of video: frames in RAM, one after the other, to refined masks of their size in RAM.

The masks are those that live and replay draw with: fitted to the picture's edges, and steady over time.
"""

import contextlib

import numpy as np

from texelflow.gpu_delegate.base.errors import TexelflowError

from ...console import Console
from ...models.model_loading import SegmentationModel
from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import Floats
from ...picture.video_frame import VideoFrame
from ..drawing.canvas import Canvas
from ..inference.backends import Backend, ComputeBackend
from ..inference.frame_segmenter import make_segmenter
from ..inference.network_options import NetworkOptions
from ..looks.looks import ChosenLook, Look
from ..refinement.refine import Refiner

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
        if compute.pictures is None:
            raise ValueError("there is nothing to draw with")
        self._pictures, self._fit, self._format = compute.pictures, options.fit, frame
        with contextlib.ExitStack() as stack:
            self._segmenter = make_segmenter(compute, model, frame, options, console)
            stack.callback(self._segmenter.release)
            self._drawn = self._made()
            stack.pop_all()
        self.backend: Backend = self._segmenter.backend
        in_parts = self._segmenter.delegated
        self.renderer = self._segmenter.on_cpu if in_parts else compute.renderer(self._segmenter.on_cpu)

    def _made(self) -> contextlib.ExitStack:
        """The refiner and the canvas for frames of the segmenter's format, freed by what is returned."""
        pictures, segmenter, size = self._pictures, self._segmenter, self._format.upright_size
        with contextlib.ExitStack() as stack:
            target = pictures.target(size)
            stack.callback(target.release)
            self._refiner = Refiner(pictures, segmenter, self._fit)
            stack.callback(self._refiner.release)
            self._canvas = Canvas(
                pictures, segmenter, target, self._fit, ChosenLook(Look("mask")), refiner=self._refiner
            )
            stack.callback(self._canvas.release)
            return stack.pop_all()

    def run(self, picture: Picture) -> Floats:
        """The mask (h, w) of the next frame, in 255ths, of its upright size."""
        frame = VideoFrame(0, 0, 0.0, picture)
        for stage in self._segmenter.stages:
            stage.run(frame)
        self._refiner.run()
        self._canvas.stage.run(frame)
        return np.divide(self._pictures.read(self._canvas.target)[..., 0], _MOST, dtype=np.float32)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._segmenter.begin_anew()
        self._refiner.reset()

    def take(self, frame: PictureFormat) -> None:
        """Take frames of another format from now on, of another video. Raises DeviceError; then all is as it was."""
        before = self._format
        self._drawn.close()
        try:
            self._follow(frame)
        except TexelflowError:
            self._follow(before)
            raise
        finally:
            self.begin_anew()

    def _follow(self, frame: PictureFormat) -> None:
        self._segmenter.take(frame)
        self._format = frame
        self._drawn = self._made()

    def release(self) -> None:
        """Free everything."""
        self._drawn.close()
        self._segmenter.release()
