"""Which part of each camera's frame the pictures show: by people that are followed, and by hand, zoom and pan."""

from collections.abc import Sequence

from ..frame.looks.looks import Framing
from ..models.decoders.found import Finding
from ..models.decoders.region import FrameRegion
from ..picture.preprocess import ImageSize
from ..tracking.auto_framing import AutoFraming, part_within

__all__ = ["Framer"]


class Framer:
    """Keeps what is followed from frame to frame. `framing` may be replaced between any two."""

    def __init__(self, framing: Framing) -> None:
        self.framing = framing
        self._followers: tuple[AutoFraming, ...] = ()

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        for follower in self._followers:
            follower.begin_anew()

    def crops(
        self, sizes: Sequence[ImageSize], findings: Sequence[Sequence[Finding]], time_s: float
    ) -> tuple[FrameRegion | None, ...]:
        """The part of each camera's frame, of those sizes; None for all of it.

        `findings` are those of each camera, where there are any; of others all is shown but for zoom and pan. The part
        that is chosen by hand lies within the one that follows people.
        """
        wanted = self.framing
        if wanted.shows_all:
            self._followers = ()
            return (None,) * len(sizes)
        if tuple(follower.size for follower in self._followers) != tuple(sizes):
            self._followers = tuple(AutoFraming(size) for size in sizes)
        crops = []
        for number, follower in enumerate(self._followers):
            width, height = follower.size
            follower.mode = wanted.mode
            followed = FrameRegion(width / 2, height / 2, width, height)
            if wanted.mode != "off":
                followed = follower.follow(findings[number] if number < len(findings) else (), time_s)
            part = part_within(followed, wanted.zoom, wanted.center)
            crops.append(None if part.width >= width else part)
        return tuple(crops)
