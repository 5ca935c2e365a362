"""What finds something in frames, as protocols: a network on a region, and what runs such networks frame by frame."""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from ..models.decoders.found import Finding
from ..models.decoders.region import FrameRegion
from ..picture.picture import ImageSize
from ..picture.video_frame import VideoFrame

__all__ = ["FindsTogether", "FoundKind", "FrameFinder", "RegionNetwork", "found_in_each"]

FoundKind = Literal["face", "hidden face", "hand"]  # what can be asked for beside a model that is shown


class RegionNetwork(Protocol):
    """A network with its decoder, which sees a region of a frame, as app/frame/finding/ makes them for each backend."""

    @property
    def input_size(self) -> ImageSize: ...
    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """What is there, best first. Past the edges is black, or the edge again. Raises TexelflowError."""


@runtime_checkable
class FindsTogether(Protocol):
    """A network that sees several regions of a frame in less time together than one after the other."""

    def find_each(self, frame: VideoFrame, regions: Sequence[FrameRegion]) -> tuple[tuple[Finding, ...], ...]:
        """What `find` gives for each of them. Raises TexelflowError."""


def found_in_each(
    network: RegionNetwork, frame: VideoFrame, regions: Sequence[FrameRegion]
) -> tuple[tuple[Finding, ...], ...]:
    """What a network finds in each region of a frame. Raises TexelflowError."""
    if len(regions) > 1 and isinstance(network, FindsTogether):
        return network.find_each(frame, regions)
    return tuple(network.find(frame, region) for region in regions)


class FrameFinder(Protocol):
    """Finds things in one frame after the other."""

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        """What is in the frame, each with the number of its track. Raises TexelflowError."""

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
