"""What a region of a picture becomes for a network that finds things."""

import numpy as np

from texelflow.gpu_delegate.model.quantization import byte_steps, step_size
from texelflow.gpu_delegate.targets.llvm.region_sampler import RegionPicture, Site

from ...models.decoders.region import FrameRegion
from ...models.finding_model import FindingModel
from ...models.model_loading import InputValues
from ...picture.color_planes import Floats
from ...picture.picture import Picture, PictureFormat
from ...picture.region_cut import cut_region


def finding_values(model: FindingModel) -> InputValues:
    """What black and white are in a network's input as it is in memory; those of a quantized one are steps."""
    source = model.graph.tensors[model.graph.inputs[0]]
    (low, high), size = model.input_range, step_size(source)
    return InputValues((low / size, high / size), byte_steps(source))


def region_tensor(model: FindingModel, picture: Picture, region: FrameRegion) -> Floats:
    """A network's input (1, H, W, 3) for a region of a picture, by NumPy."""
    values = finding_values(model)
    return cut_region(picture, model.input_size, region.to_frame(), values.range, model.repeats_edges, values.steps)


def region_picture(format: PictureFormat) -> RegionPicture:
    """How pictures of a format lie in memory for the CPU's own code."""
    grids = (format.size,) if format.layout in ("rgba", "gray") else (format.size, format.chroma_size)
    if format.layout == "rgba":
        return RegionPicture(grids, (Site(0, 0, 4, ((0, 1), (1, 1), (2, 1))),), 255.0, None)
    colors, offset = format.to_rgb()
    scaled = colors / ((1 << format.bits) - 1)
    matrix = np.hstack([scaled, offset[:, None]]).astype(np.float32)
    return RegionPicture(grids, _sites(format), 1.0, matrix)


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
