"""Draws what was found in a frame over a picture of it: boxes, skeletons, points, labels, lists of classes.

It costs what is seen of it: tiles of the picture that no mark touches are not drawn, and a frame with nothing in it
draws nothing. Marks go up with each frame, some 150 bytes for each tile that one touches.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

from ...models.decoders.found import Finding
from ...picture.preprocess import ImageSize
from ..textures.picture_device import PictureDevice, ShaderDrawing, ShaderImage, Target
from .letters import letters_for
from .mark_tiles import MarkTiles, mark_tiles
from .marks import MarkSize, marks_of

_TEXELS_UNIT, _LETTERS_UNIT = 3, 4
_MOST_TEXELS = 1 << 16  # what every device shows to shaders
_LEAST_TEXELS = 4  # an empty list
_TILES = {False: (32, 8), True: (8, 8)}  # pixels: native code draws rows by 16; OpenGL in software minds each pixel
_USUAL_HEIGHT = 720  # of pictures; in larger ones tiles grow with them


class FindingsCompositor:
    """Draws over pictures what was set last. `uploaded_bytes` counts what went up so far."""

    def __init__(self, pictures: PictureDevice, frame_size: ImageSize) -> None:
        """`frame_size` is the upright frame's, in whose pixels findings are. Shaders are made at their first use."""
        self._pictures = pictures
        self._size = MarkSize(frame_size, letters_for(frame_size))
        self._found: Sequence[Finding] = ()
        self._note = ""
        self._prepared: tuple[bool, MarkTiles | None] | None = None
        self._drawing: ShaderDrawing | None = None
        self._letters: ShaderImage | None = None
        self._room: BufferRange | None = None
        self._texels = pictures.texels(_MOST_TEXELS, stride=4)
        scale = 1 << max(0, min(frame_size) // _USUAL_HEIGHT).bit_length()
        wide, high = _TILES[pictures.gathers]
        self._tile = (wide * max(1, scale // 2), high * max(1, scale // 2))
        self.uploaded_bytes = 0

    def set(self, findings: Sequence[Finding], note: str = "") -> None:
        """What the next pictures show; a note is small in a corner."""
        if findings is not self._found or note != self._note:
            self._found, self._note, self._prepared = findings, note, None

    def draw(self, target: Target, mirror: bool = False, size: ImageSize | None = None) -> None:
        """Over a picture of (width, height) at the target's lower left. Raises DeviceError."""
        if not (self._found or self._note):
            return
        if self._prepared is None or self._prepared[0] != mirror:
            self._prepared = mirror, self._uploaded(mirror)
        if (tiles := self._prepared[1]) is None:
            return
        drawing, height = self._ready(), (size or target.size)[1]
        self._bind()
        drawing.set_ints("corner", tiles.left, tiles.top)
        drawing.set_ints("across", tiles.across)
        drawing.set_ints("bits", *(side.bit_length() - 1 for side in tiles.tile))
        drawing.set_ints("height", height)
        (wide, high), (most_x, most_y) = tiles.tile, self._size.picture
        left, top = tiles.left * wide, tiles.top * high
        right, bottom = (min((tiles.left + tiles.across) * wide, most_x), min((tiles.top + tiles.down) * high, most_y))
        drawing.draw(target, (right - left, bottom - top), height - bottom, left)

    def prepare(self, target: Target) -> None:
        """Draw nothing, so that code which is made at its first use is there."""
        drawing = self._ready()
        self._write(np.zeros((_LEAST_TEXELS, 4), np.float32))
        self._bind()
        for name, values in {"corner": (0, 0), "across": (1,), "bits": (6, 6), "height": (self._tile[1],)}.items():
            drawing.set_ints(name, *values)
        drawing.draw(target, (min(self._tile[0], target.size[0]), min(self._tile[1], target.size[1])))
        self._prepared = None

    def _uploaded(self, mirror: bool) -> MarkTiles | None:
        """The marks of what was found, which have gone up."""
        marks = marks_of(self._found, self._size, mirror, self._note)
        tiles = mark_tiles(marks, self._size.picture, self._tile, _MOST_TEXELS) if len(marks) else None
        if tiles:
            self._write(tiles.texels)
            self.uploaded_bytes += tiles.texels.nbytes
        return tiles

    def _write(self, texels: npt.NDArray[np.float32]) -> None:
        self._room = self._room or self._pictures.memory((_MOST_TEXELS, 1), _MOST_TEXELS * 16)
        self._pictures.write(self._room, texels)

    def _bind(self) -> None:
        assert self._room
        assert self._letters
        self._texels.bind(_TEXELS_UNIT, self._room)
        self._pictures.bind(_LETTERS_UNIT, self._letters.texture)

    def _ready(self) -> ShaderDrawing:
        if self._drawing is None:
            self._letters = self._pictures.image(self._size.letters.picture(), "letters")
            samplers = {"texels": _TEXELS_UNIT, "letters": _LETTERS_UNIT}
            self._drawing = self._pictures.drawing(
                "marks.frag", self._texels.defines(), samplers, "what was found", over=True
            )
        self._drawing.use()
        return self._drawing

    def release(self) -> None:
        """Delete what was made here; targets stay."""
        for part in (self._drawing, self._letters, self._texels):
            if part:
                part.release()
        if self._room:
            self._pictures.free(self._room)
