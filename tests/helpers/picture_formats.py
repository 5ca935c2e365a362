"""Formats of pictures of every layout, and noise in each, for tests of what reads them."""

from dataclasses import replace
from itertools import product

import numpy as np

from texelflow.app.picture.picture import Orientation, Picture, PictureFormat

ORIENTATIONS = [Orientation(*flags) for flags in product((False, True), repeat=3)]
PLANAR = PictureFormat((37, 23), "yuv", chroma_shift=(1, 1), matrix="bt709", full_range=False, siting="left")
PACKED = replace(PLANAR, layout="yuyv", size=(36, 23), chroma_shift=(1, 0))
FORMATS = [
    PLANAR,
    replace(PLANAR, chroma_shift=(1, 0), siting="center", full_range=True),
    replace(PLANAR, chroma_shift=(0, 0), matrix="bt601"),
    replace(PLANAR, siting="topleft", matrix="smpte240m"),
    replace(PLANAR, bits=10, matrix="bt2020"),
    replace(PLANAR, bits=12, chroma_shift=(1, 0), full_range=True, matrix="fcc"),
    replace(PLANAR, layout="nv12", size=(1, 1)),
    replace(PLANAR, layout="nv12", siting="center", size=(64, 5)),
    PACKED,
    replace(PACKED, layout="uyvy", size=(2, 1), siting="center", full_range=True),
    replace(PACKED, layout="uyvy", size=(64, 5), matrix="bt601"),
    replace(PLANAR, layout="gray", chroma_shift=(0, 0)),
    replace(PLANAR, layout="gray", chroma_shift=(0, 0), bits=16, full_range=True),
    PictureFormat((37, 23)),
]


def noise(form: PictureFormat) -> Picture:
    """Random samples, in rows that are longer than their pixels, as decoders leave them."""
    dtype = np.uint8 if form.sample_bytes == 1 else np.uint16
    rng = np.random.default_rng(form.bits)
    planes = []
    for height, width, *channels in form.plane_shapes:
        padded = rng.integers(0, 1 << form.bits, (height, width + 11, *channels), dtype)
        planes.append(padded[:, :width])
    return Picture(form, tuple(planes))
