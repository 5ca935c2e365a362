"""Draws a frame with what was found in it: skeletons, boxes and labels, or covers over faces; or as it is."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ...models.decoders.found import Finding, moved_finding
from ...models.decoders.region import FrameRegion
from ...picture.preprocess import ImageSize
from ...tracking.face_covers import FaceCover
from ..looks.effects import HIDING_FACES, Effect
from ..looks.looks import Look
from ..textures.picture_device import FRAME_SAMPLERS, FramePlanes, PictureDevice, ReadablePlanes, ShaderDrawing, Target
from .findings import FindingsCompositor
from .hidden_faces import HiddenFaces

_NO_POINTS = np.zeros((0, 3), np.float32)


class FoundThings(Protocol):
    """What was found in the last frames, asked for at each drawing, in pixels of the upright frame."""

    @property
    def age(self) -> int:
        """Of the frame that is drawn where no masks are refined: 0 for the newest."""

    @property
    def note(self) -> str:
        """What is said in a corner in place of what is missed; empty where nothing is."""

    @property
    def guards(self) -> bool:
        """Whether covers() hides all faces; else frames are hidden wholly."""

    def found(self, age: int = 0) -> tuple[Finding, ...]:
        """In the newest frame, or one that came so many before it."""

    def faces(self, age: int = 0) -> tuple[Finding, ...]:
        """Those that are hidden in that frame, with their numbers."""

    def covers(self, age: int = 0, open_faces: Collection[int] = ()) -> tuple[FaceCover, ...]:
        """What hides the faces in that frame, but for those of some numbers."""


@dataclass(frozen=True)
class FoundFrames:
    """Frames of which nothing is known but what was found in them, in place of a segmenter."""

    frame: FramePlanes


class FoundCompositor:
    """Draws what is in a frame's textures with what was found there. `look` and `crop` may be set between any two."""

    def __init__(
        self, pictures: PictureDevice, frame: ReadablePlanes, things: FoundThings | None, look: Look,
        crop: FrameRegion | None = None,
    ) -> None:  # fmt: skip
        """`crop` says of which part of the frame `frame` is. Without `things` faces are hidden with all around them.

        Shaders are made at their first use.
        """
        self.look, self.crop = look, crop
        self._pictures, self._frame, self._things = pictures, frame, things
        self._size = frame.format.upright_size
        self._marks, self._hidden = FindingsCompositor(pictures, self._size), HiddenFaces(pictures, frame)
        self._shown: tuple[Finding, ...] | None = None
        self._shown_crop, self._note = crop, ""
        self._ready: set[Effect] = set()
        self._drawing: ShaderDrawing | None = None

    def draw(self, target: Target, effect: Effect, age: int, size: ImageSize | None = None) -> None:
        """Draw the frame of that age, to (width, height) at the target's lower left. Raises DeviceError."""
        size, mirror = size or target.size, self.look.mirror
        if effect not in self._ready:
            self._prepare(target, effect, age)  # what it draws is drawn over
        self._draw_frame(target, age, size, mirror)
        if effect in HIDING_FACES:
            self.cover(target, effect, age, size)
        elif effect == "findings" and self._things:
            self._mark(self._things.found(age), self._things.note, target, size)

    def cover(self, target: Target, effect: Effect, age: int, size: ImageSize) -> None:
        """Hide the faces in a picture of the frame of that age, by one of the effects that do. Raises DeviceError."""
        things = self._things
        if things is None or not things.guards:
            width, height = self._size
            covers = [FaceCover(width / 2, height / 2, width, height)]
        else:
            covers = [self._placed_cover(cover) for cover in things.covers(age, self.look.open_faces)]
        self._hidden.draw(covers, effect == "blur-faces", target, size[1], self.look.mirror, age)
        if self.look.face_numbers and things:
            named = tuple(replace(each, points=_NO_POINTS, skeleton="") for each in things.faces(age))
            self._mark(named, "", target, size)

    def _mark(self, found: tuple[Finding, ...], note: str, target: Target, size: ImageSize) -> None:
        if self._shown is not found or self._shown_crop != self.crop or self._note != note:
            self._shown, self._shown_crop, self._note = found, self.crop, note
            self._marks.set([self._placed(finding) for finding in found], note)
        self._marks.draw(target, self.look.mirror, size)

    def _prepare(self, target: Target, effect: Effect, age: int) -> None:
        """Have code made that is made at its first use."""
        self._ready.add(effect)
        if effect == "findings" or (effect in HIDING_FACES and self.look.face_numbers):
            self._marks.prepare(target)
        if effect in HIDING_FACES:
            whole = FaceCover(self._size[0] / 2, self._size[1] / 2, *self._size)
            self._hidden.draw([whole], effect == "blur-faces", target, target.size[1], age=age)

    def _draw_frame(self, target: Target, age: int, size: ImageSize, mirror: bool) -> None:
        if self._drawing is None:
            sizes = dict(zip(("FRAME_W", "FRAME_H"), self._size, strict=True))
            defines = {**sizes, **self._frame.defines()}
            self._drawing = self._pictures.drawing("plain.frag", defines, FRAME_SAMPLERS, "frame as it is")
        self._frame.bind(age=age)
        self._drawing.use()
        self._drawing.set_ints("mirror", *((-1, self._size[0]) if mirror else (0, 0)))
        self._drawing.set_ints("height", size[1])
        self._drawing.draw(target, size)

    def _placed(self, finding: Finding) -> Finding:
        """Where it is in the part that is shown."""
        if not self.crop or not (finding.region or len(finding.points)):
            return finding
        scale, (left, top) = self._size[0] / self.crop.width, self._corner()
        return moved_finding(finding, -left * scale, -top * scale, scale)

    def _placed_cover(self, cover: FaceCover) -> FaceCover:
        if not self.crop:
            return cover
        scale, (left, top) = self._size[0] / self.crop.width, self._corner()
        x, y = (cover.center_x - left) * scale, (cover.center_y - top) * scale
        return FaceCover(x, y, cover.half_width * scale, cover.half_height * scale, cover.track)

    def _corner(self) -> tuple[float, float]:
        assert self.crop
        return self.crop.center_x - self.crop.width / 2, self.crop.center_y - self.crop.height / 2

    def release(self) -> None:
        """Delete what was made here; the frame and targets stay."""
        for part in (self._marks, self._hidden, self._drawing):
            if part:
                part.release()
