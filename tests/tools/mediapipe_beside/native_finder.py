"""Pipelines by the program's own code for CPUs."""

from functools import lru_cache

from texelflow.app.frame.finding.region_networks import FrameRegions, open_cpu_regions
from texelflow.app.frame.inference.backends import CpuChoice
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.picture import ImageSize, PictureFormat
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.tracking.finder import FrameFinder
from texelflow.app.tracking.solutions import Solution
from texelflow.app.tracking.tracking_finder import make_finder

__all__ = ["native_finder"]


class _AnySize:
    """A network for frames of any size: made anew for another one."""

    def __init__(self, name: str) -> None:
        self._model = load_finding_model(name)
        self._made: tuple[PictureFormat, FrameRegions] | None = None

    @property
    def input_size(self) -> ImageSize:
        return self._model.input_size

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        if not self._made or self._made[0] != frame.picture.format:
            if self._made:
                self._made[1].release()
            format = frame.picture.format
            self._made = format, open_cpu_regions(self._model, format, CpuChoice("native", 1))
        return self._made[1].find(frame, region)


@lru_cache
def _network(name: str) -> _AnySize:
    return _AnySize(name)


def native_finder(solution: Solution, most: int | None = None) -> FrameFinder:
    """A solution by native code of one thread."""
    return make_finder(solution, [_network(name) for name in solution.models], most)
