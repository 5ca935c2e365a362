"""Regions of a frame, for tests of what cuts them out: inside, past its edges, much larger, and outside of it."""

import numpy as np

from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.color_planes import Floats
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


def assert_same_cut(found: Floats, wanted: Floats) -> None:
    """That two cuts, -1 to 1, have the same bytes; few may lie at a half, and be the next one."""
    steps = (found - wanted) * 127.5
    np.testing.assert_allclose(steps, np.rint(steps), rtol=0, atol=1e-3)
    assert np.abs(steps).max() < 1.5
    assert np.count_nonzero(np.abs(steps) > 0.5) <= max(1, found.size // 200)
