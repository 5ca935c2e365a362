"""MediaPipe's detectors as models: which each is, and where what they find lies in a frame."""

from pathlib import Path

import numpy as np
import pytest

from tests.app.models.decoders.test_suppression import Floats
from tests.helpers.engine import on_cpu
from tests.model_files.finding_models import network_of
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.decoders.suppression import detections_by_anchors
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.models.spec import SpecOptions

DETECTORS = {  # input side, boxes, numbers of each: kind, and what is said of it
    (128, 896, 16): ("face", "896 anchors as BlazeFace's short range"),
    (192, 2304, 16): ("face", "2304 anchors as BlazeFace's full range"),
    (256, 896, 16): ("face", "896 anchors as BlazeFace for back cameras"),
    (192, 2016, 18): ("hand", "2016 anchors as the palm detector"),
    (224, 2254, 12): ("person", "2254 anchors as BlazePose's detector"),
    (64, 224, 16): ("face", "224 anchors of strides 8, 16, 16, 16"),
}


def raw(side: int, boxes: int, columns: int) -> list[Floats]:
    """One box at the first anchor: as large as a quarter of the input, its points on its middle."""
    values = np.zeros((1, boxes, columns), np.float32)
    values[0, 0, 2:4] = side / 4
    scores = np.full((1, boxes, 1), -5, np.float32)
    scores[0, 0] = 2
    return [values, scores]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("form", DETECTORS)
def test_each_is_known_and_places_what_it_finds(form: tuple[int, int, int], parts: int, tmp_path: Path) -> None:
    side, boxes, columns = form
    outputs = raw(*form)
    if parts == 2:  # as exporters leave them that do not join maps; the scores come first
        half = boxes * 3 // 5
        outputs = [part for values in outputs[::-1] for part in (values[:, half:], values[:, :half])]
    path = tmp_path / "net.tflite"
    path.write_bytes(network_of(outputs, (side, side)))
    model = load_finding_model(str(path), SpecOptions(input_range=(0, 1)))
    kind, said = DETECTORS[form]
    assert model.decoding.why.endswith(said)
    read = on_cpu(path.read_bytes(), [np.zeros((1, side, side, 3), np.float32)])
    read = [read[place] for place in model.decoding.reads]
    assert model.decoding.anchors
    rows = detections_by_anchors(model.decoding.anchors, read)
    (found,) = model.decoding.decode([rows], FrameRegion(100, 100, 80, 80, np.pi / 2))
    x, y = rows[0, 1:3].tolist()
    middle = (140 - 80 * y, 60 + 80 * x)  # turned by a quarter
    assert (found.kind, len(found.points)) == (kind, (columns - 4) // 2)
    assert found.points[0] == pytest.approx(middle, abs=1e-3)
    assert found.region
    assert (found.region.center_x, found.region.center_y) == pytest.approx(middle, abs=1e-3)
    assert (found.region.width, found.region.height, found.region.angle) == pytest.approx((20, 20, np.pi / 2))
