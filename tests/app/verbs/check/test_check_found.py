"""`texelflow check CLIP` with networks that find things: it passes where they find what TensorFlow Lite finds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.app.models.decoders.test_foreign_decoders import V8, yolo
from tests.helpers.clips import moving, write_clip
from tests.helpers.commands import Command
from tests.model_files.finding_models import seeing_network
from texelflow import assets
from texelflow.app.frame.finding.region_networks import regions_in_steps
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.models.finding_model import FindingModel
from texelflow.app.verbs.check import check_found as check_found_verb

CLIP = Path(assets.__file__).parent / "people.mp4"


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def boxes(tmp_path: Path) -> tuple[Path, Path]:
    """A clip of three frames, and a network in which each frame has two objects."""
    model = tmp_path / "boxes.tflite"
    model.write_bytes(seeing_network([yolo(6, 84, V8).transpose(0, 2, 1)], (64, 64), 0.01))
    return write_clip(tmp_path / "clip.mkv", moving(3)), model


@pytest.mark.parametrize("backend", [pytest.param("gl", marks=pytest.mark.gl), "native"])
def test_a_file_of_ones_own_agrees(backend: str, boxes: tuple[Path, Path], texelflow: Command) -> None:
    clip, model = boxes
    result = texelflow("check", clip, "--model", model, "--backend", backend, "--json")
    assert result.code == 0, result.err
    figures = json.loads(result.out.splitlines()[-1])
    assert (figures["frames"], figures["things"], figures["passed"]) == (3, 6, True)
    assert figures["max_error"] < 1e-3
    assert figures["min_iou"] > 0.999
    assert figures["networks"]["boxes.tflite"]["regions"] == 3


def test_each_network_of_a_solution_is_compared_where_it_looks(texelflow: Command) -> None:
    options = ("--model", "face-landmark", "--backend", "native", "--from", 100, "--to", 101)
    result = texelflow("check", CLIP, *options, "--json")
    assert result.code == 0, result.err
    figures = json.loads(result.out.splitlines()[-1])
    assert figures["networks"].keys() == {"face-detection-short", "face-landmark"}
    assert all(row["things"] >= 1 for row in figures["networks"].values())
    assert figures["max_distance"] < 1e-3


def test_what_is_found_elsewhere_fails(
    boxes: tuple[Path, Path], texelflow: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.tflite"
    shifted = [(number, (row[0] + 0.05, *row[1:])) for number, row in V8]
    other.write_bytes(seeing_network([yolo(6, 84, shifted).transpose(0, 2, 1)], (64, 64), 0.01))

    def altered(compute: Any, models: Sequence[FindingModel], *arguments: Any) -> Any:
        return regions_in_steps(compute, [load_finding_model(str(other))], *arguments)

    monkeypatch.setattr(check_found_verb, "regions_in_steps", altered)
    clip, model = boxes
    report = tmp_path / "worst.png"
    result = texelflow("check", clip, "--model", model, "--backend", "native", "--report", report, "--json")
    assert result.code == 1
    figures = json.loads(result.out.splitlines()[-1])
    assert figures["failed_frames"] == [0, 1, 2]
    assert figures["min_iou"] < 0.99
    assert figures["verdict"].startswith("3 of 3 frames fail (allowed: ")
    assert figures["verdict"].endswith(
        "boxes.tflite agrees on the worst of them, so what is before or behind it differs"
    )
    picture = cv2.imread(str(report))
    assert picture is not None
    assert picture.shape == (48 + 32, 2 * 64, 3)
    assert np.any(np.all(picture == (0, 200, 0), -1)), "ours"
    assert np.any(np.all(picture == (0, 0, 255), -1)), "TensorFlow Lite's"


def test_options_of_masks_are_refused(boxes: tuple[Path, Path], texelflow: Command) -> None:
    clip, model = boxes
    result = texelflow("check", clip, "--model", model, "--preprocessing", "auto")
    assert result.code == 2
    assert "--preprocessing is for masks" in result.complaint
