"""A whole frame on one backend, by which those that draw are compared: from a frame in RAM to its picture in RAM.

The frame goes up, the network makes its mask, which is refined, and an effect is drawn with it.
"""

import contextlib

from texelflow.gpu_delegate.base.errors import TexelflowError

from ...picture.convert import Rgba
from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import Fit
from ...picture.video_frame import VideoFrame
from ..drawing.canvas import Canvas
from ..inference.backends import Backend, ComputeBackend
from ..inference.frame_segmenter import CpuSegmenter
from ..inference.gl_path import GlPath
from ..looks.effects import Effect
from ..looks.looks import ChosenLook, Look
from ..refinement.refine import Refiner
from ..stages.frame_pipeline import Stage

USUAL_EFFECT: Effect = "replace"


class WholeFrame:
    """All that is done with a frame, in stages as a session has them. `canvas` has the picture."""

    def __init__(
        self, compute: ComputeBackend, segmenter: GlPath | CpuSegmenter, fit: Fit, effect: Effect = USUAL_EFFECT
    ) -> None:
        """Takes a segmenter of `compute` over: it is released here, also if this raises.

        A network that cannot have the effect gets its usual one. Raises DeviceError if a shader does not compile,
        ValueError where nothing draws.
        """
        with contextlib.ExitStack() as stack:
            stack.callback(segmenter.release)
            if compute.pictures is None:
                raise ValueError("there is nothing to draw with")
            self._pictures, self._segmenter, self._fit, self._asked = compute.pictures, segmenter, fit, effect
            self._drawn = self._made()
            self._held = stack.pop_all()

    def _made(self) -> contextlib.ExitStack:
        """What draws frames of the segmenter's format, freed by what is returned."""
        pictures, segmenter = self._pictures, self._segmenter
        with contextlib.ExitStack() as stack:
            target = pictures.target(segmenter.frame.format.upright_size)
            stack.callback(target.release)
            self._refiner = None
            if segmenter.picture is None:
                self._refiner = Refiner(pictures, segmenter, self._fit)
                stack.callback(self._refiner.release)
            look = ChosenLook(Look(self._asked))
            self.canvas = Canvas(pictures, segmenter, target, self._fit, look, refiner=self._refiner)
            stack.callback(self.canvas.release)
            return stack.pop_all()

    @property
    def effect(self) -> Effect:
        """What is drawn."""
        return self.canvas.look.effect

    @property
    def backend(self) -> Backend:
        """Where the network runs."""
        return self._segmenter.backend

    @property
    def on_cpu(self) -> str:
        """What runs networks on the CPU, for tables."""
        return self._segmenter.on_cpu

    @property
    def uploaded_bytes(self) -> int:
        """Of frames, masks and backgrounds, so far."""
        return self._segmenter.uploaded_bytes + self.canvas.uploaded_bytes

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame to its picture; those that draw wait for what the CPU draws."""
        refine = [Stage("refine", self._refine, lambda: self._pictures.gathers)] if self._refiner else []
        composite = Stage("composite", self._composite, lambda: self._pictures.gathers)
        return (*self._segmenter.stages, *refine, composite)

    def run(self, picture: Picture) -> Rgba:
        """The picture (H, W, 4) of a frame in RAM."""
        frame = VideoFrame(0, 0, 0.0, picture)
        for stage in self.stages:
            stage.run(frame)
        return self._pictures.read(self.canvas.target)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._segmenter.begin_anew()
        if self._refiner:
            self._refiner.reset()

    def take(self, frame: PictureFormat) -> None:
        """Take frames of another format from now on, of another video. Raises DeviceError; then all is as it was."""
        before = self._segmenter.frame.format
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
        self._drawn = self._made()

    def release(self) -> None:
        """Free everything."""
        self._drawn.close()
        self._held.close()

    def _refine(self, frame: VideoFrame) -> None:
        assert self._refiner, "else there is no such stage"
        self._refiner.run()
        self._pictures.finish()

    def _composite(self, frame: VideoFrame) -> None:
        self.canvas.stage.run(frame)
        self._pictures.finish()
