"""Regions of a frame, for tests of what cuts them out: inside, past its edges, much larger, and outside of it."""

from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.picture import PictureFormat

_PLACES = (  # center and size as parts of the frame's, angle
    (0.5, 0.5, 1.0, 1.0, 0.0),
    (0.4, 0.6, 0.5, 0.3, 0.6),
    (0.0, 1.0, 0.7, 1.3, -2.2),
    (0.5, 0.5, 4.0, 3.0, 1.5),
    (-3.0, 9.0, 1.0, 1.0, 0.3),
)


def regions(form: PictureFormat) -> list[FrameRegion]:
    """Of a format's upright frame."""
    width, height = form.upright_size
    return [FrameRegion(x * width, y * height, w * width, h * height, angle) for x, y, w, h, angle in _PLACES]
