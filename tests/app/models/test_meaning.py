"""What is said of models: what is shown of them, and why, or why not."""

from pathlib import Path

import numpy as np
import pytest

from tests.model_files.finding_models import network_of
from tests.model_files.frame_models import picture_network
from tests.model_files.matte_models import recurrent_matte
from tests.model_files.metadata_writer import metadata_of
from texelflow.app.cli import main
from texelflow.app.models.entries import CATALOGUE, SEGMENTATION, ModelEntry
from texelflow.app.models.meaning import Meaning, model_meaning
from texelflow.gpu_delegate.reading.reader import load_model

FACES = [np.zeros((1, 896, 16), np.float32), np.zeros((1, 896, 1), np.float32)]


def said_of(data: bytes, folder: Path) -> Meaning:
    path = folder / "net.tflite"
    path.write_bytes(data)
    return model_meaning(path, None, load_model(path))


def test_what_is_shown_and_why(tmp_path: Path) -> None:
    found = said_of(network_of(FACES, (128, 128)), tmp_path)
    assert found == Meaning("blaze-boxes", "face boxes and 6 points by anchors: 896 anchors as BlazeFace's short range")
    assert found.line == f"shown: {found.why} (blaze-boxes)"
    turned = said_of(network_of(FACES[::-1], (256, 128)), tmp_path)
    assert turned.line == "not shown: " + turned.why
    assert "no decoder knows what its outputs mean" in turned.why
    assert said_of(picture_network(), tmp_path).decoder == "picture"
    masks = np.zeros((1, 8, 8, 2), np.float32)
    masked = said_of(network_of([masks], (16, 16), metadata=metadata_of(activation=1)), tmp_path)
    assert masked.line.startswith("shown: masks of 8x8 of 2 classes (0, 1), by its metadata")
    assert "give --input-range" in said_of(network_of([masks], (16, 16)), tmp_path).line


def test_recurrent_states_are_named(tmp_path: Path) -> None:
    found = said_of(recurrent_matte(), tmp_path)
    assert found.decoder is None
    assert "give --input-range" in found.why
    assert found.why.endswith("4 recurrent states (r1i from r1o, r2i from r2o, r3i from r3o, r4i from r4o)")
    shown = said_of(recurrent_matte(says=True), tmp_path)
    assert shown.line.startswith(
        "shown: an alpha of 64x48 with its own foreground, by its outputs' shapes; 4 recurrent"
    )
    assert shown.decoder == "matting"


def test_inspect_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "faces.tflite").write_bytes(network_of(FACES, (128, 128)))
    for more in ((), ("--cpu", "native")):
        assert main(["inspect", str(tmp_path / "faces.tflite"), "--no-peaks", *more]) == 0
        assert "shown: face boxes and 6 points by anchors" in " ".join(capsys.readouterr().out.split())
        assert main(["inspect", str(tmp_path / "faces.tflite"), "--no-peaks", "--json", *more]) == 0
        assert '"decoder": "blaze-boxes"' in capsys.readouterr().out

    assert main(["inspect", "hand-recrop", "--no-peaks", "--cpu", "native"]) == 0
    assert "live and replay run palm-detection-full before it" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.name)
def test_the_catalogue_says_what_each_shows(entry: ModelEntry) -> None:
    words = ("mask of",) if entry.task == SEGMENTATION else ("boxes", "points", "place")
    assert any(word in entry.shows for word in words)
