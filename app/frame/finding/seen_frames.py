"""The frame's textures that networks on its regions share: those of a segmenter, or some of their own."""

from collections.abc import Callable

from texelflow.gpu_delegate.targets.gl.context import Context

from ...picture.picture import Picture, PictureFormat
from ..textures.upload import FrameTextures
from ..textures.upload_path import choose_path


class SeenFrames:
    """Pictures go up once, whoever looks at them first. Belongs to the thread of the context."""

    def __init__(self, context: Context, lent: Callable[[], FrameTextures] | None = None) -> None:
        """`lent` gives textures into which somebody else has put each picture before it is looked at."""
        self.context, self._lent = context, lent
        self._own: FrameTextures | None = None
        self._shown: Picture | None = None
        self._users = 0

    def join(self) -> None:
        """Somebody looks at frames from now on, until leave()."""
        self._users += 1

    def leave(self) -> None:
        """Behind the last one its own textures are deleted."""
        self._users -= 1
        if self._users == 0:
            self.release()

    @property
    def uploaded_bytes(self) -> int:
        """Of pictures in textures of its own, since their format is what it is."""
        return self._own.uploaded_bytes if self._own else 0

    def textures(self, format: PictureFormat) -> FrameTextures:
        """Where pictures of that format are. Raises DeviceError for want of memory, ValueError for lent ones of
        another.
        """
        if self._lent:
            lent = self._lent()
            if lent.format != format:
                raise ValueError(f"a picture of {format} is not in textures of {lent.format}")
            return lent
        if self._own is None or self._own.format != format:
            made = FrameTextures(self.context, format, choose_path(self.context, format))
            self.release()
            self._own = made
        return self._own

    def see(self, picture: Picture) -> FrameTextures:
        """Where that picture is, which goes up unless it was the last one. Raises as textures()."""
        textures = self.textures(picture.format)
        if textures is self._own and picture is not self._shown:
            textures.upload(picture)
            self._shown = picture
        return textures

    def release(self) -> None:
        """Delete its own textures; later ones are made anew."""
        if self._own:
            self._own.release()
        self._own = self._shown = None
