"""Decoders of landmarks, against MediaPipe's calculators on the same numbers."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.model_files.finding_models import network_of
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.finding_loading import load_finding_model, load_shown_model
from texelflow.app.models.finding_model import FindingModel

Floats = npt.NDArray[np.float32]
# What MediaPipe 0.10.21's calculators (Apache-2.0: TensorsToLandmarks, RefineLandmarksFromHeatmap, LandmarksRefinement,
# AlignmentPointsRects, RectTransformation) made of raw_outputs, with the options of its own graphs: some of the points
# as x, y, z (and visibility), fractions of the input; the square of the hand as center, size and angle.
MEDIAPIPE = json.loads((Path(__file__).parents[3] / "data" / "mediapipe_points.json").read_text())
SIZES = {"body": 256, "attention": 192, "face": 192, "hand": 224, "recrop": 256, "eye": 64}
STEP = {"body": 1, "attention": 9, "face": 40, "hand": 2, "eye": 8}  # of how many points one is compared


def raw_outputs(name: str) -> list[Floats]:
    """Numbers such as a network of this name puts out, in the order of its file."""
    rng, size = np.random.default_rng(len(name)), SIZES[name]

    def points(count: int, columns: int, shape: tuple[int, ...] = (1, -1)) -> Floats:
        return rng.uniform(-0.05 * size, 1.05 * size, count * columns).astype(np.float32).reshape(shape)

    sure = np.full((1, 1), 0.9, np.float32)
    if name == "body":
        values = points(39, 5).reshape(39, 5)
        values[:, 3:] = rng.normal(0, 2, (39, 2))
        maps = rng.normal(-4, 3, (1, 64, 64, 39)).astype(np.float32)
        return [values.reshape(1, 195), sure, np.zeros((1, 256, 256, 1), np.float32), maps, points(39, 3) / size]
    if name == "attention":
        sizes = ((468, 3), (80, 2), (71, 2), (71, 2), (5, 2), (5, 2))
        return [*(points(*each, shape=(1, 1, 1, -1)) for each in sizes), np.full((1, 1, 1, 1), 3, np.float32)]
    if name == "face":
        return [points(468, 3, (1, 1, 1, -1)), np.full((1, 1, 1, 1), 3, np.float32)]
    if name == "hand":
        return [points(21, 3), sure, np.full((1, 1), 0.2, np.float32), points(21, 3) / size]
    if name == "recrop":
        return [np.array([120, 130, 100, 190], np.float32).reshape(1, 1, 1, 4)]
    return [points(71, 3), points(5, 3)]


def loaded(name: str, folder: Path, outputs: list[Floats] | None = None) -> FindingModel:
    path, size = folder / f"{name}.tflite", SIZES[name]
    names = ("output_crop",) if name == "recrop" else ()
    path.write_bytes(network_of(outputs or raw_outputs(name), (size, size), names))
    model = load_shown_model(str(path))
    assert isinstance(model, FindingModel)
    return model


def found_in(model: FindingModel, outputs: list[Floats], region: FrameRegion) -> tuple[Finding, ...]:
    return model.decoding.decode([outputs[place] for place in model.decoding.reads], region)


@pytest.mark.parametrize("name", STEP)
def test_points_are_those_of_mediapipe(name: str, tmp_path: Path) -> None:
    model = loaded(name, tmp_path)
    (found,) = found_in(model, raw_outputs(name), FrameRegion(0.5, 0.5, 1, 1))
    points = np.concatenate([found.points, found.auxiliary]) if name == "body" else found.points
    expected = np.array(MEDIAPIPE[name], np.float32)
    np.testing.assert_allclose(points[:: STEP[name]], expected[:, :3], atol=3e-6)
    if found.certainty is not None:
        np.testing.assert_allclose(found.certainty, expected[:33, 3], atol=1e-6)


def test_a_hands_square_is_that_of_mediapipe(tmp_path: Path) -> None:
    model = loaded("recrop", tmp_path)
    (found,) = found_in(model, raw_outputs("recrop"), FrameRegion(128, 128, 256, 256))
    square = found.region
    assert square is not None
    x, y, width, height, angle = MEDIAPIPE["recrop"]
    expected = (x * 256, y * 256, width * 256, height * 256, angle)
    measured = (square.center_x, square.center_y, square.width, square.height, square.angle)
    np.testing.assert_allclose(measured, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["body", "attention", "face", "hand", "eye", "recrop"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 3e38])
def test_what_is_no_number_is_not_found(name: str, wrong: float, tmp_path: Path) -> None:
    model, region = loaded(name, tmp_path), FrameRegion(0.5, 0.5, 1, 1, 0.3)
    for place in range(len(raw_outputs(name))):
        outputs = raw_outputs(name)
        outputs[place] = np.full_like(outputs[place], wrong)
        for found in found_in(model, outputs, region):
            assert np.isfinite(found.points).all()
            assert np.isfinite(found.world).all()
            assert np.isfinite(found.auxiliary).all()
            assert 0 <= found.score <= 1
            assert np.isfinite(found.box).all()


@pytest.mark.parametrize(("name", "place"), [("body", 1), ("attention", 6), ("face", 1), ("hand", 1)])
def test_what_a_network_does_not_see_is_not_found(name: str, place: int, tmp_path: Path) -> None:
    outputs, model = raw_outputs(name), loaded(name, tmp_path)
    outputs[place][:] = 0.4 if name in ("body", "hand") else -0.1
    assert not found_in(model, outputs, FrameRegion(0.5, 0.5, 1, 1))


def test_a_hand_has_its_side_and_its_metres(tmp_path: Path) -> None:
    model, outputs = loaded("hand", tmp_path), raw_outputs("hand")
    (upright,) = found_in(model, outputs, FrameRegion(100, 100, 200, 200))
    (turned,) = found_in(model, outputs, FrameRegion(100, 100, 200, 200, np.pi / 2))
    assert upright.label == "left"
    np.testing.assert_allclose(upright.world, outputs[3].reshape(-1, 3))
    np.testing.assert_allclose(turned.world[:, 1], upright.world[:, 0], atol=1e-6)
    np.testing.assert_allclose(turned.world[:, 0], -upright.world[:, 1], atol=1e-6)
    outputs[2][:] = 0.8
    assert found_in(model, outputs, FrameRegion(100, 100, 200, 200))[0].label == "right"


def test_outputs_that_nobody_reads_are_not_computed(tmp_path: Path) -> None:
    model = loaded("body", tmp_path)
    assert [model.graph.tensors[place].shape for place in model.graph.outputs] == [
        (1, 195), (1, 1), (1, 64, 64, 39), (1, 117),
    ]  # fmt: skip
    assert model.reads == (0, 1, 2, 3)
    assert load_finding_model(str(tmp_path / "body.tflite")).decoder == "body-points"
