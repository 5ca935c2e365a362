"""The background behind the person as a texture: an image, or a video at the time of each frame.

A recording plays at its own pace, by the time that passes between frames: where those are recorded themselves, all
pictures are the same in every run.
"""

from pathlib import Path

from texelflow.gpu_delegate.base.errors import TexelflowError

from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import ImageSize, sampling
from ..looks.background import background_file
from ..looks.moving_background import BackgroundFeed
from ..textures.picture_device import FRAME_SAMPLERS, PictureDevice, Target
from ..textures.resample import axis_defines

_MOST_STEP_MS = 1000.0  # by which a background advances in one frame
_MOST_TAPS = 4


class Backdrop:
    """The new background: RGBA of the frame's size, its top row first. Belongs to the thread that draws.

    `message` is one line about the file for the user, or ''. `waits` says that every picture has to be
    the right one, so that decoding is waited for; else the last one stays until the next is there.
    """

    def __init__(
        self, pictures: PictureDevice, size: ImageSize, background: Path | None = None, waits: bool = True
    ) -> None:
        """Shows a background at once; None: none yet. Raises MediaError, DeviceError."""
        self.size, self.message = size, ""
        self.uploaded_bytes = 0
        self._pictures, self._waits = pictures, waits
        self._target: Target | None = None
        self._cover: _Cover | None = None
        self._chosen = background
        self._feed: BackgroundFeed | None = None
        self._coming: BackgroundFeed | None = None
        self._time_ms = 0.0  # since the background began
        self._frame_ms: float | None = None  # of the frame before
        if background:
            self._show_at_once(background)

    def change(self, background: Path | None) -> None:
        """Read another file, and show it as soon as that is done; errors will be in `message`.

        None is the picture of the package.
        """
        if background == self._chosen:
            return
        if self._coming:
            self._coming.close()
        self.message, self._chosen = "", background
        self._coming = BackgroundFeed(background or background_file(""), self.size)

    def update(self, time_ms: float) -> None:
        """Show what is due in the frame of a time. By default it is a picture of the package."""
        if self._frame_ms is not None:
            self._time_ms += min(max(time_ms - self._frame_ms, 0.0), _MOST_STEP_MS)
        self._frame_ms = time_ms
        if self._coming:
            self._switch(self._coming)
        if self._feed:
            self._go_on(self._feed)
        self.prepare()

    def prepare(self) -> None:
        """Have something to show, before the first frame."""
        if self._target is None:
            self._show_at_once(background_file(""))

    def show(self, picture: Picture) -> None:
        """Put a picture there, cut to cover the frame. Raises DeviceError if it is too large."""
        if self._cover is None or self._cover.format != picture.format:
            cover = _Cover(self._pictures, picture.format, self.size)
            if self._cover:
                self._cover.release()
            self._cover = cover
        self._target = self._target or self._pictures.target(self.size)
        self._cover.draw(picture, self._target)
        self.uploaded_bytes += sum(plane.nbytes for plane in picture.planes)

    @property
    def texture(self) -> int:
        """The name of the texture; 0 if there is none yet."""
        return self._target.texture if self._target else 0

    def bind(self, unit: int) -> bool:
        """Bind the texture to a unit; False if there is none yet."""
        if self._target:
            self._pictures.bind(unit, self._target.texture)
        return self._target is not None

    def release(self) -> None:
        """Free all that is on the device, and end the threads."""
        for feed in (self._coming, self._feed):
            if feed:
                feed.close(wait=True)
        for part in (self._cover, self._target):
            if part:
                part.release()

    def _show_at_once(self, background: Path) -> None:
        self._feed = BackgroundFeed(background, self.size)
        try:
            picture = self._feed.at(0.0, wait=True)
            assert picture is not None, "feeds without a picture raise"
            self.show(picture)
        except BaseException:
            self.release()
            raise

    def _switch(self, coming: BackgroundFeed) -> None:
        """To the next file, if its first picture is there."""
        try:
            picture = coming.at(0.0, self._waits)
            if picture is None:
                return
            self.show(picture)
        except TexelflowError as error:
            self._complain(error)
            coming.close()
            self._coming = None
            return
        if self._feed:
            self._feed.close()
        self._feed, self._coming, self._time_ms = coming, None, 0.0

    def _go_on(self, feed: BackgroundFeed) -> None:
        try:
            picture = feed.at(self._time_ms, self._waits)
            if picture is not None:
                self.show(picture)
            self.message = feed.note or self.message
        except TexelflowError as error:
            self._complain(error)

    def _complain(self, error: TexelflowError) -> None:
        self.message = f"{error}; until then another background is shown"


class _Cover:
    """Draws pictures of one format so that they cover a target."""

    def __init__(self, pictures: PictureDevice, format: PictureFormat, size: ImageSize) -> None:
        self.format = format
        (width, height), (to_width, to_height) = format.upright_size, size
        scale = min(width / to_width, height / to_height)
        taps = min(max(1, round(scale / 2)), _MOST_TAPS)  # each is interpolated between two pixels
        way = sampling(format.upright_size, (to_width * taps, to_height * taps), "crop")
        self._planes = pictures.planes(format)
        defines = {**self._planes.defines(), **axis_defines(way), "TAPS": taps}
        try:
            self._drawing = pictures.drawing("cover.frag", defines, FRAME_SAMPLERS, "cover")
        except BaseException:
            self._planes.release()
            raise

    def draw(self, picture: Picture, target: Target) -> None:
        self._planes.upload(picture)
        self._planes.bind()
        self._drawing.use()
        self._drawing.draw(target, target.size)

    def release(self) -> None:
        self._drawing.release()
        self._planes.release()
