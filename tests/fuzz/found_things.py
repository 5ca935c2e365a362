"""Models that find things, damaged: known or refused, and whatever numbers they put out, what is found is sound."""

from collections.abc import Sequence
from math import prod

import numpy as np

from tests.app.models.decoders.test_foreign_decoders import CASES, assert_sound
from tests.model_files.finding_models import network_of
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.decoders.suppression import detections_by_anchors
from texelflow.app.models.finding_loading import shown_model_of
from texelflow.app.models.finding_model import FindingModel
from texelflow.app.models.model_loading import OpenModel
from texelflow.app.models.spec import SpecOptions
from texelflow.gpu_delegate.reading.reader import read_model

_MOST_VALUES = 1 << 20
_VALUES = np.array([0, 1, 0.5, 0.9, -1, 40, 1e9, 3e38, np.inf, -np.inf, np.nan], np.float32)


def finding_models() -> Sequence[bytes]:
    """One of each form, small."""
    faces = network_of([np.zeros((1, 896, 16), np.float32), np.zeros((1, 896, 1), np.float32)], (128, 128))
    hands = [np.zeros(shape, np.float32) for shape in ((1, 63), (1, 1), (1, 1), (1, 63))]
    others = [network_of(case.outputs, case.size, case.names, last=case.last) for case in CASES.values()]
    return [faces, network_of(hands, (224, 224)), *others]


def find_hostile_things(data: bytes) -> None:
    """The model of a file, and what its decoder makes of numbers of all kinds. Raises as load_shown_model."""
    model = shown_model_of(OpenModel("net.tflite", data, read_model(data), None, SpecOptions((0.0, 1.0))))
    if not isinstance(model, FindingModel):
        return
    shapes = [model.graph.tensors[model.graph.outputs[place]].shape for place in model.reads]
    if any(prod(shape) > _MOST_VALUES for shape in shapes):
        return
    rng = np.random.default_rng(len(data))
    for likely in (0.0, 0.5, 0.99):
        chances = np.full(len(_VALUES), (1 - likely) / (len(_VALUES) - 2))
        chances[:2] = likely / 2
        outputs = [rng.choice(_VALUES, shape, p=chances / chances.sum()) for shape in shapes]
        if model.decoding.anchors:
            outputs = [detections_by_anchors(model.decoding.anchors, outputs)]
        for found in model.decoding.decode(outputs, FrameRegion(50, 50, 100, 100, 0.2)):
            assert_sound(found)
