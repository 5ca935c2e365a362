"""What a region of a picture becomes for a network that finds things."""

from texelflow.gpu_delegate.model.quantization import byte_steps, step_size

from ...models.decoders.region import FrameRegion
from ...models.finding_model import FindingModel
from ...models.model_loading import InputValues
from ...picture.color_planes import Floats
from ...picture.picture import Picture
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
