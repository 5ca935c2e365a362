"""What finds something in frames, as protocols: a network on a region, and what runs such networks frame by frame."""

from typing import Literal, Protocol

from ..models.decoders.found import Finding
from ..models.decoders.region import FrameRegion
from ..picture.picture import ImageSize
from ..picture.video_frame import VideoFrame

__all__ = ["FoundKind", "FrameFinder", "RegionNetwork"]

FoundKind = Literal["face", "hidden face", "hand", "person"]  # what can be asked for beside a model that is shown


class RegionNetwork(Protocol):
    """A network with its decoder, which sees a region of a frame, as app/frame/finding/ makes them for each backend."""

    @property
    def input_size(self) -> ImageSize: ...
    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """What is there, best first. Past the edges is black, or the edge again. Raises TexelflowError."""


class FrameFinder(Protocol):
    """Finds things in one frame after the other."""

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        """What is in the frame, each with the number of its track. Raises TexelflowError."""

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
