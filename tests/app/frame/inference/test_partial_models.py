"""Models that the GPU runs only in part: TensorFlow Lite runs them with the delegate, and masks stay the same."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.commands import Command
from tests.helpers.live_stage import Script, Stage, Theatre
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.partial_models import cast_and_back, segments
from texelflow import assets
from texelflow.app.models.catalogue import resolve
from texelflow.app.verbs.check import check_clip
from texelflow.gpu_delegate.cpu.reference import is_apart
from texelflow.gpu_delegate.reading.reader import load_model, read_model

pytestmark = pytest.mark.gl

CLIP = Path(assets.__file__).parent / "people.mp4"
MEANING = ("--input-range", "0,1", "--activation", "none", "--channel", "0")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="module")
def partial_selfie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalogue's model with operators in two places that only TensorFlow Lite has."""
    path = tmp_path_factory.mktemp("models") / "partial.tflite"
    path.write_bytes(cast_and_back(load_model(resolve("selfie").path), 0.3, 0.6))
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of seven operators, of which two are no GPU's."""
    path = tmp_path_factory.mktemp("models") / "small.tflite"
    path.write_bytes(cast_and_back(read_model(segments()), 0.25))
    return path


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A model of which nothing runs on the GPU."""
    model = ModelBuilder()
    x = model.input((1, 4, 4, 3))
    model.output(model.cpu_op(x))
    path = tmp_path / "foreign.tflite"
    path.write_bytes(model.build())
    return path


def masks_of(folder: Path) -> npt.NDArray[np.int64]:
    pictures = [cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in sorted(folder.glob("*.png"))]
    return np.array(pictures).astype(np.int64)


@exhaustive
def test_replay_shows_the_masks_of_the_whole_model(partial_selfie: Path, tmp_path: Path, run: Command) -> None:
    command = "replay", CLIP, "--from", 60, "--to", 62, "--backend", "gl", "--no-refine"
    result = run(*command, "--model", partial_selfie, *MEANING, "--masks", tmp_path / "parts", "--json")
    line = "partial.tflite: 246 of 250 operators on the GPU in 3 partitions, the rest on the CPU"
    assert (result.code, result.err) == (0, f"{line}\n")
    figures = json.loads(result.out)
    assert (figures["backend"], figures["delegate"]) == ("gl", line)
    assert figures["dispatches"] >= 3
    assert run(*command, "--masks", tmp_path / "whole").code == 0
    found, expected = masks_of(tmp_path / "parts"), masks_of(tmp_path / "whole")
    assert found.shape == (3, 480, 640)
    assert np.abs(found - expected).max() <= 1
    assert expected.max() == 255


def test_replay_of_what_the_gpu_runs_nothing_of(foreign: Path, run: Command) -> None:
    result = run("replay", CLIP, "--to", 0, "--model", foreign, *MEANING, "--backend", "gl", "--json")
    figures = json.loads(result.out)
    assert (result.code, figures["backend"], figures["dispatches"]) == (0, "cpu", 0)
    assert result.err.startswith("foreign.tflite: none of 1 operator on the GPU, all on the CPU: ")
    assert figures["renderer"].startswith("TensorFlow Lite on the CPU")


def test_the_cpu_stays_the_cpu(small: Path, run: Command) -> None:
    result = run("replay", CLIP, "--to", 0, "--model", small, *MEANING, "--backend", "cpu", "--json")
    figures = json.loads(result.out)
    assert (result.err, figures["backend"], figures["delegate"]) == ("", "cpu", None)


@exhaustive
def test_masks_are_checked(small: Path, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = "check", CLIP, "--to", 1, "--model", small, *MEANING, "--json"
    result = run(*command)
    figures = json.loads(result.out)
    assert (result.code, figures["failed_frames"]) == (0, [])
    assert figures["delegate"] == result.err.strip()
    assert 0 < figures["network_error"] < 1e-3
    result = run(*command, "--tolerance", 0)
    assert (result.code, json.loads(result.out)["failed_frames"]) == (1, [0, 1])
    assert json.loads(result.out)["verdict"].endswith("small.tflite --backend delegate compares the network's outputs")
    assert (tmp_path / check_clip.DEFAULT_REPORT).exists()


def children() -> set[int]:
    """The processes that this one has started and that have not ended."""
    found = set[int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # others come and go
            head, _, rest = path.read_text().rpartition(") ")
            if int(rest.split()[1]) == os.getpid():
                found.add(int(head.partition(" ")[0]))
    return found


@exhaustive
def test_segmenter(small: Path, foreign: Path, frame_rgba: npt.NDArray[np.uint8]) -> None:
    meaning: dict[str, Any] = {"input_range": (0.0, 1.0), "activation": "none", "channel": 0}
    before = children()
    with texelflow.Segmenter(small, "gl", **meaning) as parts, texelflow.Segmenter(small, "cpu", **meaning) as whole:
        assert (parts.backend, whole.backend) == ("gl", "cpu")
        assert "operators on the GPU in 2 partitions, the rest on the CPU" in parts.renderer
        for frame in (frame_rgba, frame_rgba[:100, :150, :3]):
            np.testing.assert_allclose(parts(frame), whole(frame), rtol=0, atol=2e-3)
        assert len(children() - before) == 2
    assert children() <= before, "those of a Segmenter end with it"
    with texelflow.Segmenter(foreign, "gl", **meaning) as none:
        assert (none.backend, none.renderer) == ("cpu", "TensorFlow Lite on the CPU")


def test_a_program_is_for_whole_models(small: Path) -> None:
    with pytest.raises(texelflow.UnsupportedError, match=r"texelflow\.GpuDelegate") as caught:
        texelflow.Program(texelflow.Model.load(small))
    assert "BITCAST" in str(caught.value)


@exhaustive
@one_in(2, "is_known", [False, True], ids=["in a process of its own", "in this process"])
def test_live_goes_on_while_the_delegate_is_made(theatre: Theatre, small: Path, tmp_path: Path, is_known: bool) -> None:
    path = tmp_path / "known.tflite" if is_known else small
    if is_known:
        path.write_bytes(segments(in_parts=True))
    assert is_apart(load_model(path)) != is_known

    def script(stage: Stage) -> Script:
        yield from stage.frames(1)
        before = len(stage.records)
        stage.session.controller.change(model=str(path))
        yield from stage.until(lambda: stage.parts.stages.name == str(path), "the model")
        assert len(stage.records) > before
        assert "2 partitions, the rest on the CPU" in stage.words
        assert stage.parts.stages.current.segmenter.dispatches > 1
        yield from stage.frames(2)

    theatre.run(script, backend="gl", input_range="0,1", activation="none", channel=0)
