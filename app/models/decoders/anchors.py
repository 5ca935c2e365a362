"""Anchors of networks that say boxes as offsets: where each of their boxes is counted from."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize

__all__ = ["grid_anchors", "ssd_anchors", "ssd_count", "strides_of"]

# Of MediaPipe's detectors, finest first: two anchors for each entry at each place, one where there is one entry alone.
_STRIDES = ((8, 16, 16, 16), (16, 32, 32, 32), (8, 16, 32, 32, 32), (4,))
_SSD_STRIDES = (16, 32, 64, 128, 256, 512)


def grid_anchors(size: ImageSize, strides: Sequence[int]) -> Floats:
    """The anchors (N, 4), center x and y, width and height as fractions, of an input (width, height).

    As MediaPipe's ssd_anchors_calculator makes them with fixed_anchor_size: each is as large as the input, and those of
    entries with the same stride lie together. Their numbers are told by the strides alone.
    """
    each = 2 if len(strides) > 1 else 1  # an aspect of 1 at the scale of its entry, and one between it and the next
    maps = []
    for stride, entries in groupby(strides):
        columns, rows = (-(-length // stride) for length in size)
        y, x = np.mgrid[:rows, :columns].astype(np.float32) + np.float32(0.5)
        centers = np.stack([x / np.float32(columns), y / np.float32(rows)], axis=-1).reshape(-1, 2)
        maps.append(np.repeat(centers, each * len(list(entries)), axis=0))
    found = np.concatenate(maps)
    return np.concatenate([found, np.ones_like(found)], axis=1)


def strides_of(size: ImageSize, count: int) -> tuple[int, ...] | None:
    """Which strides of MediaPipe's detectors give an input so many anchors; None where none do."""
    for strides in _STRIDES:
        each = 2 if len(strides) > 1 else 1
        if count == sum(each * -(-size[0] // stride) * -(-size[1] // stride) for stride in strides):
            return strides
    return None


def ssd_count(size: ImageSize) -> int:
    """How many anchors ssd_anchors gives."""
    places = [(-(-size[0] // stride)) * (-(-size[1] // stride)) for stride in _SSD_STRIDES]
    return 3 * places[0] + 6 * sum(places[1:])


def ssd_anchors(size: ImageSize) -> Floats:
    """The anchors (N, 4) of TensorFlow's SSD on MobileNet: six maps, from every 16th pixel to every 512th.

    As ssd_anchors_calculator makes them with min_scale 0.2, max_scale 0.95, five aspects, reduce_boxes_in_lowest_layer.
    """
    scales = [0.2 + (0.95 - 0.2) * number / 5 for number in range(6)] + [1.0]
    aspects = (1.0, 2.0, 0.5, 3.0, 0.3333)
    maps = []
    for number, stride in enumerate(_SSD_STRIDES):
        scale, between = scales[number], (scales[number] * scales[number + 1]) ** 0.5
        forms = [(scale, aspect) for aspect in aspects] + [(between, 1.0)]
        forms = [(0.1, 1.0), (scale, 2.0), (scale, 0.5)] if number == 0 else forms
        sizes = np.array([(scale * aspect**0.5, scale / aspect**0.5) for scale, aspect in forms], np.float32)
        columns, rows = (-(-length // stride) for length in size)
        y, x = np.mgrid[:rows, :columns].astype(np.float32) + np.float32(0.5)
        centers = np.stack([x / np.float32(columns), y / np.float32(rows)], axis=-1).reshape(-1, 2)
        beside = np.tile(sizes, (len(centers), 1))
        maps.append(np.concatenate([np.repeat(centers, len(forms), axis=0), beside], axis=1))
    return np.asarray(np.concatenate(maps), np.float32)
