"""Loads thumbnails of the backgrounds in a folder as textures, one at most for each picture drawn.

Files are looked for and decoded on threads; a texture of THUMBNAIL_SIZE is all that is kept of each.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ..frame.looks.background import Image
from ..frame.looks.thumbnails import (
    THUMBNAIL_SIZE,
    Candidate,
    backgrounds_in,
    built_in_candidates,
    candidate_of,
    thumbnail,
)
from ..threads import ThreadCall

LIGHT_SAMPLE, STRONG_SAMPLE = _SAMPLES = tuple(Candidate("room", (0, 0), blur_px) for blur_px in (2.5, 7.0))  # of blurs
_MOST_CHOSEN = 6  # files from elsewhere
_MOST_WAIT_S = 1.0  # for a file that is being decoded when all ends


@dataclass(frozen=True)
class Thumbnail:
    """What is known of a background; it has no texture before it is `tried`, and none if it cannot be read."""

    candidate: Candidate
    texture: int = 0
    tried: bool = False


class ThumbnailTextures:
    """Belongs to the context's thread, and to one window. has_folder: whether what was looked into is there."""

    def __init__(self, context: Context) -> None:
        """Nothing is looked for yet."""
        self._context = context
        self._known = tuple(map(Thumbnail, (*_SAMPLES, *built_in_candidates())))
        self._chosen: list[str] = []
        self.has_folder = True
        self._listing: ThreadCall[tuple[Sequence[Candidate], bool]] | None = None
        self._making: tuple[Candidate, ThreadCall[Image]] | None = None

    @property
    def shown(self) -> Sequence[Thumbnail]:
        """The backgrounds that can be chosen, in their order; the texture of some may not be there yet."""
        return [each for each in self._known if not each.candidate.blur_px and (each.texture or not each.tried)]

    @property
    def busy(self) -> bool:
        """Whether others are to come."""
        return self._listing is not None or not all(each.tried for each in self._known)

    def texture_of(self, candidate: Candidate) -> int:
        """0 where there is none."""
        return next((each.texture for each in self._known if each.candidate == candidate), 0)

    def look(self, folder: Path) -> None:
        """See what is in a folder now; what was there before stays until that is known."""
        chosen = [*self._chosen]
        self._listing = ThreadCall(lambda: _found(folder, chosen))

    def add(self, name: str, folder: Path) -> None:
        """Have a background that was chosen elsewhere among the others, by its name in settings."""
        if name not in (*self._chosen, *(each.candidate.name for each in self._known)):
            self._chosen = [*self._chosen, name][-_MOST_CHOSEN:]
            self.look(folder)

    def advance(self) -> None:
        """Take what is done by now, and begin the next: to be called for each picture drawn, within Gui.draw."""
        if self._listing and self._listing.ended:
            found, self.has_folder = self._listing.answer()
            self._replace(found)
            self._listing = None
        if self._making and self._making[1].ended:
            self._keep(*self._making)
            self._making = None
        wanted = next((each.candidate for each in self._known if not each.tried), None)
        if wanted and self._making is None:
            self._making = wanted, ThreadCall(lambda: thumbnail(wanted))

    def release(self) -> None:
        """Delete the textures; a file that is being decoded is waited for, but not for long."""
        if self._making:
            self._making[1].wait(_MOST_WAIT_S)
        for each in self._known:
            self._delete(each)
        self._known = ()

    def _replace(self, found: Sequence[Candidate]) -> None:
        """Keep what is of the same files, and forget the rest."""
        before = {each.candidate: each for each in self._known}
        self._known = tuple(before.pop(each, Thumbnail(each)) for each in (*_SAMPLES, *found))
        for gone in before.values():
            self._delete(gone)

    def _keep(self, candidate: Candidate, call: ThreadCall[Image]) -> None:
        """The thumbnail that was made; a file that cannot be read is left out."""
        try:
            texture = self._uploaded(call.answer()) if any(each.candidate == candidate for each in self._known) else 0
        except (TexelflowError, OSError, MemoryError):
            texture = 0
        tried = Thumbnail(candidate, texture, tried=True)
        self._known = tuple(tried if each.candidate == candidate else each for each in self._known)

    def _uploaded(self, rgba: Image) -> int:
        """A texture with a picture; Gui.draw has seen to how pixels are unpacked, and restores that."""
        gl = self._context.gl
        bound, texture = gl.integer(opengl.TEXTURE_BINDING_2D), gl.generate("Textures")
        gl.glBindTexture(opengl.TEXTURE_2D, texture)
        for name, value in _PARAMETERS.items():
            gl.glTexParameteri(opengl.TEXTURE_2D, name, value)
        gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, 0)
        layout = opengl.RGBA, opengl.UNSIGNED_BYTE, rgba.ctypes.data
        gl.glTexImage2D(opengl.TEXTURE_2D, 0, opengl.RGBA8, *THUMBNAIL_SIZE, 0, *layout)
        gl.glBindTexture(opengl.TEXTURE_2D, bound)
        self._context.label(opengl.TEXTURE, texture, "thumbnail of a background")
        return texture

    def _delete(self, thumbnail: Thumbnail) -> None:
        if thumbnail.texture:
            self._context.gl.delete("Textures", thumbnail.texture)


_PARAMETERS = {
    opengl.TEXTURE_MIN_FILTER: opengl.LINEAR,
    opengl.TEXTURE_MAG_FILTER: opengl.LINEAR,
    opengl.TEXTURE_WRAP_S: opengl.CLAMP_TO_EDGE,
    opengl.TEXTURE_WRAP_T: opengl.CLAMP_TO_EDGE,
}


def _found(folder: Path, chosen: Sequence[str]) -> tuple[Sequence[Candidate], bool]:
    """What a folder has, and files from elsewhere that are still there, each once; and whether it is there."""
    elsewhere = (candidate for name in chosen if (candidate := candidate_of(name)))
    return list(dict.fromkeys([*backgrounds_in(folder), *elsewhere])), os.path.isdir(folder)
