"""What a network's outputs mean: findings in the frame, by its decoder."""

from collections.abc import Sequence

from ...models.decoders.found import Finding
from ...models.decoders.region import FrameRegion
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats


def found_in(model: FindingModel, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
    """What a network found in a region that it saw, of all its outputs."""
    return model.decoding.decode(outputs, region)
