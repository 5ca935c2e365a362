"""What a network's outputs mean: findings in the frame, by its decoder."""

from collections.abc import Sequence

from ...models.decoders.found import Finding
from ...models.decoders.region import FrameRegion
from ...models.decoders.suppression import detections_by_anchors
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats


def found_in(model: FindingModel, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
    """What a network found in a region that it saw, of all outputs of its graph."""
    decoding, read = model.decoding, [outputs[place] for place in model.reads]
    if decoding.anchors:
        read = [detections_by_anchors(decoding.anchors, read)]
    return decoding.decode(read, region)
