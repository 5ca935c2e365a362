"""Keeps a segmenter from one recording to the next, if the next one's frames fit it.

So the network is compiled and its weights are uploaded once for many recordings.
"""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field

from texelflow.gpu_delegate.base.errors import DeviceError

from ...models.model_loading import FrameModel
from ...picture.picture import PictureFormat
from .backends import ComputeBackend
from .frame_segmenter import CpuSegmenter, segmenter_in_steps
from .gl_path import GlPath
from .network_options import NetworkOptions


@dataclass(frozen=True)
class _Kind:
    """What a segmenter was made for; it can go on with all that is equal."""

    compute: ComputeBackend
    model: FrameModel = field(compare=False)  # the same object, for comparing graphs takes long
    options: NetworkOptions
    kept: int


class KeptSegmenter:
    """Keeps one segmenter at most, while nobody uses it. Belongs to the thread of the context."""

    def __init__(self) -> None:
        self._kept: tuple[_Kind, PictureFormat, GlPath | CpuSegmenter] | None = None

    def in_steps(
        self, compute: ComputeBackend, model: FrameModel, frame: PictureFormat, options: NetworkOptions, kept: int = 1
    ) -> Generator[tuple[int, int], None, GlPath | CpuSegmenter]:
        """As segmenter_in_steps, but with what is kept where that is of the same kind. Who is done gives it to `keep`.

        Raises TexelflowError.
        """
        if self._kept and not self._fits(_Kind(compute, model, options, kept)):
            self.release()
        if self._kept is None:
            segmenter = yield from segmenter_in_steps(compute, model, frame, options, kept)
            return segmenter
        _, format, segmenter = self._kept
        if format != frame:
            segmenter.take(frame)  # if it raises all is as it was
        self._kept = None
        segmenter.begin_anew()
        return segmenter

    def keep(
        self,
        segmenter: GlPath | CpuSegmenter,
        compute: ComputeBackend,
        model: FrameModel,
        frame: PictureFormat,
        options: NetworkOptions,
        kept: int,
    ) -> None:
        """Take it back, as it was made; a network that has variables is freed instead, which not all begin anew."""
        self.release()
        if model.remembers and not model.graph.states:
            segmenter.release()
        else:
            self._kept = _Kind(compute, model, options, kept), frame, segmenter

    def release(self) -> None:
        """Free what is kept, if anything is: in the context in which it was made, or that is lost."""
        if self._kept:
            (_, _, segmenter), self._kept = self._kept, None
            with contextlib.suppress(DeviceError):
                segmenter.release()

    def _fits(self, kind: _Kind) -> bool:
        """Whether what is kept is of that kind."""
        assert self._kept
        mine = self._kept[0]
        return mine.model is kind.model and mine == kind
