"""Compiles the CPU kernels before and behind a network: the picture to its input, its mask to the frame's size.

The same definition as Preprocessor's (app/picture/preprocess.py), in machine code.
"""

from collections.abc import Sequence

import numpy as np

from texelflow.gpu_delegate.targets.llvm.mask_resize import ResizedMask
from texelflow.gpu_delegate.targets.llvm.region_sampler import RegionPicture, Site
from texelflow.gpu_delegate.targets.llvm.sampler import SampledChannel, SampledPicture, SampledPlane

from ...picture.picture import ImageSize, PictureFormat
from ...picture.sampling import Fit, SampledAxis, Sampling, sampling

_LUMA_AND_CHROMA = {"yuyv": ((0, 2), (1, 4), (3, 4)), "uyvy": ((1, 2), (0, 4), (2, 4))}  # (offset, step) of each


def sampled_picture(format: PictureFormat, there: Sampling) -> SampledPicture:
    """How the network's input samples pictures of a format; `there` is the map to the upright picture."""
    stored = there.stored(format)
    planes = tuple(
        SampledPlane(int(np.prod(shape[1:])), format.sample_bytes, axis.neighbors())
        for shape, axis in zip(format.plane_shapes, _row_axes(format, stored), strict=True)
    )
    is_rgba = format.layout == "rgba"
    white, matrix = 255.0 if is_rgba else float((1 << format.bits) - 1), None
    if not is_rgba:
        colors, offset = format.to_rgb()
        matrix = np.hstack([colors, offset[:, None]]).astype(np.float32)
    seen = stored.y.inside(), stored.x.inside()
    return SampledPicture(planes, _channels(format, stored), white, matrix, seen, format.orientation.transpose)


def _row_axes(format: PictureFormat, stored: Sampling) -> Sequence[SampledAxis]:
    """How the rows of each plane are mixed."""
    if format.layout in ("yuv", "nv12"):
        return [stored.y, *[stored.chroma(format).y] * (len(format.plane_shapes) - 1)]
    return [stored.y]


def _channels(format: PictureFormat, stored: Sampling) -> tuple[SampledChannel, ...]:
    """Where samples of each channel lie, and how their columns are mixed."""
    columns = stored.x.neighbors()
    if format.layout == "rgba":
        return tuple(SampledChannel(0, offset, 4, columns) for offset in range(3))
    luma = SampledChannel(0, 0, 1, columns)
    if format.layout == "gray":
        return (luma,)
    chroma = stored.chroma(format).x.neighbors()
    if format.packed:
        own, *others = _LUMA_AND_CHROMA[format.layout]
        return SampledChannel(0, *own, columns), *(SampledChannel(0, *other, chroma) for other in others)
    if format.layout == "nv12":
        return luma, *(SampledChannel(1, offset, 2, chroma) for offset in range(2))
    return luma, *(SampledChannel(plane, 0, 1, chroma) for plane in (1, 2))


def resized_mask(frame_size: ImageSize, mask_size: ImageSize, fit: Fit) -> ResizedMask:
    """How a frame, upright, samples the network's mask."""
    back = sampling(frame_size, mask_size, fit).inverse()
    return ResizedMask(back.y.neighbors(), back.x.neighbors(), (back.y.inside(), back.x.inside()))


def region_picture(format: PictureFormat) -> RegionPicture:
    """How pictures of a format lie in memory for the CPU's own code."""
    grids = (format.size,) if format.layout in ("rgba", "gray") else (format.size, format.chroma_size)
    if format.layout == "rgba":
        return RegionPicture(grids, (Site(0, 0, 4, ((0, 1), (1, 1), (2, 1))),), None)
    colors, offset = format.to_rgb()
    scaled = colors / ((1 << format.bits) - 1)
    matrix = 255 * np.hstack([scaled, offset[:, None]])
    return RegionPicture(grids, _sites(format), matrix.astype(np.float32))


def _sites(format: PictureFormat) -> tuple[Site, ...]:
    size = format.sample_bytes
    if format.packed:
        luma, first = (0, 1) if format.layout == "yuyv" else (1, 0)
        return Site(0, 0, 2, ((luma, 1),)), Site(0, 1, 4, ((first, 1), (first + 2, 1)))
    luma_site = Site(0, 0, size, ((0, size),))
    if format.layout == "gray":
        return (luma_site,)
    if format.layout == "nv12":
        return luma_site, Site(1, 1, 2 * size, ((0, size), (size, size)))
    return luma_site, *(Site(plane, 1, size, ((0, size),)) for plane in (1, 2))
