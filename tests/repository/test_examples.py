"""Every example runs as it stands: masks of a folder, a webcam, networks in moderngl programs, delegates, a notebook.

Those that need more than the program itself run in test_examples_apart.py.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from flatbuffers import flexbuffers

import texelflow
from tests.helpers.clips import write_clip
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive
from tests.helpers.runtimes import RUNTIMES
from tests.helpers.traced_calls import calls_of, reading
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.model_builder import ModelBuilder

Frame = npt.NDArray[np.uint8]
Example = Callable[..., tuple[int | str | None, str, str]]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Example:
    """Runs one by its name, here: what it exits with, its output and its complaints."""

    def run(name: str, *arguments: object) -> tuple[int | str | None, str, str]:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        code: int | str | None = 0
        try:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def mask(frame_rgba: Frame) -> npt.NDArray[np.float32]:
    with texelflow.Segmenter("selfie", "cpu") as segment:
        return segment(frame_rgba)


@pytest.fixture
def picture(frame_rgba: Frame, tmp_path: Path) -> Path:
    cv2.imwrite(str(tmp_path / "two people.png"), cv2.cvtColor(frame_rgba, cv2.COLOR_RGBA2BGR))
    return tmp_path / "two people.png"


def test_every_example_is_tested_and_says_how_it_is_used(example: Example) -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.suffix} == {
        "custom_op.py", "gstreamer.py", "interpreter_with_delegate.py", "interpreter_with_textures.py",
        "masks_of_a_folder.py", "network_as_texture.py", "notebook.ipynb", "scene.py", "torch_tensors.py",
        "web_service.py", "webcam.py",
    }  # fmt: skip
    assert len((EXAMPLES / "webcam.py").read_text().splitlines()) <= 20
    assert example("network_as_texture.py")[0] == "usage: network_as_texture.py PICTURE RESULT.png [MODEL]"
    assert str(example("webcam.py", "nowhere")[0]).endswith("usage: webcam.py [NUMBER|FILE|ADDRESS]")
    code, out, _ = example("masks_of_a_folder.py", "--help")
    assert (code, out[:6]) == (0, "usage:")


def test_masks_of_a_folder(example: Example, picture: Path, mask: npt.NDArray[np.float32]) -> None:
    folder, masks = picture.parent, picture.parent / "new" / "masks"
    (folder / "broken.jpg").write_bytes(b"no picture")
    (folder / "notes.txt").write_text("not looked at")
    code, out, err = example("masks_of_a_folder.py", folder, masks, "--backend", "cpu")
    assert code == 0
    assert re.fullmatch(r"2 pictures, selfie on \w+ code on the CPU, \d threads?\n", out)
    assert err == f"{folder / 'broken.jpg'}: no picture\n"
    (written,) = masks.iterdir()
    gray = np.asarray(cv2.imread(str(written), cv2.IMREAD_GRAYSCALE))
    assert written.name == "two people.png"
    np.testing.assert_allclose(gray, mask * 255, rtol=0, atol=0.51)
    assert example("masks_of_a_folder.py", folder / "none", masks)[0] == 2


def check_gray_around(result: Path, frame_rgba: Frame, mask: npt.NDArray[np.float32]) -> None:
    """The person is as in the frame, and all else is gray."""
    drawn = np.asarray(cv2.imread(str(result)))[..., ::-1].astype(int)
    person, around = mask > 0.99, mask < 0.01
    assert np.abs(drawn - frame_rgba[..., :3])[person].mean() < 2
    assert np.ptp(drawn[around], axis=-1).mean() < 0.1  # gray, but at the very edges
    assert np.ptp(frame_rgba[..., :3][around].astype(int), axis=-1).mean() > 2  # which it was not


@pytest.mark.gl
def test_network_as_texture(example: Example, picture: Path, frame_rgba: Frame, mask: npt.NDArray[np.float32]) -> None:
    result = picture.parent / "result.png"
    assert example("network_as_texture.py", picture, result) == (0, "", "")
    check_gray_around(result, frame_rgba, mask)
    assert str(example("network_as_texture.py", picture, result, "nowhere")[0]).startswith("'nowhere' is neither")


@exhaustive
@pytest.mark.gl
def test_interpreter_with_textures(
    example: Example, picture: Path, frame_rgba: Frame, mask: npt.NDArray[np.float32]
) -> None:
    result = picture.parent / "result.png"
    assert example("interpreter_with_textures.py", picture, result) == (0, "", "")
    check_gray_around(result, frame_rgba, mask)
    assert str(example("interpreter_with_textures.py", picture)[0]).startswith("usage: ")
    assert "no such file" in str(example("interpreter_with_textures.py", picture, result, "nowhere.tflite")[0])


@exhaustive
@pytest.mark.gl
def test_scene(tmp_path: Path) -> None:
    """Ten frames; apitrace, where it is installed, sees that only the finished picture is read."""
    result, trace = tmp_path / "result.png", tmp_path / "calls.trace"
    tracer = ["apitrace", "trace", "-a", "egl", "-o", str(trace)] if shutil.which("apitrace") else []
    command = [*tracer, sys.executable, str(EXAMPLES / "scene.py"), str(result)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    drawn = np.asarray(cv2.imread(str(result)))[..., ::-1].astype(int)
    assert drawn.shape == (540, 960, 3)
    suit = (drawn[..., 0] > 190) & (drawn[..., 1] < 110) & (drawn[..., 2] < 80)
    places = np.argwhere(suit)
    assert 5_000 < len(places) < 20_000  # in the middle, behind a desk
    assert np.all(places.min(0) > (150, 180))
    assert np.all(places.max(0) < (330, 450))
    assert np.abs(drawn[:35] - (191, 217, 242)).max() < 8  # the sky, which nothing of the video covers
    if tracer:
        calls = calls_of(trace)
        assert sum(call.startswith("glDispatchCompute(") for call in calls) >= 10 * 20
        (read,) = reading(calls)
        assert "width = 960, height = 540" in read


@pytest.mark.gl
@pytest.mark.parametrize("runtime_name", RUNTIMES)
def test_interpreter_with_delegate(
    example: Example,
    picture: Path,
    selfie_model: Path,
    mask: npt.NDArray[np.float32],
    runtime_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in set(RUNTIMES) - {runtime_name}:
        monkeypatch.setitem(sys.modules, f"{name}.interpreter", None)  # as where it is not installed
    result = picture.parent / "mask.png"
    code, out, _ = example("interpreter_with_delegate.py", picture, result, selfie_model)
    assert code == 0
    assert "246" in out
    gray = np.asarray(cv2.imread(str(result), cv2.IMREAD_GRAYSCALE)) / 255
    assert np.abs(gray - mask).mean() < 0.01
    nothing = example("interpreter_with_delegate.py", picture, result, picture)
    assert str(nothing[0]).startswith("Model provided") or "Flatbuffer" in str(nothing[0])
    assert str(example("interpreter_with_delegate.py")[0]).startswith("usage: ")


@pytest.mark.gl
def test_custom_op(example: Example, tmp_path: Path) -> None:
    model = ModelBuilder()
    options = bytes(flexbuffers.Dumps({"factor": 3.0}))
    model.output(model.op("Scaled", [model.op("NEG", [model.input((1, 4))], (1, 4))], (1, 4), custom=options))
    (tmp_path / "model.tflite").write_bytes(model.build())
    code, out, _ = example("custom_op.py", tmp_path / "model.tflite", "Scaled")
    assert code == 0
    assert ": float32 [1, 4], mean -3.000000\n" in out
    assert ", 1 by functions" in out
    assert "Other" not in str(example("custom_op.py", tmp_path / "model.tflite", "Other")[0])
    assert str(example("custom_op.py")[0]).startswith("usage: ")


def test_notebook() -> None:
    """Cell by cell, in this process; test_examples_apart.py has Jupyter's kernel run it."""
    cells = [cell for cell in json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"] if "outputs" in cell]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    names: dict[str, Any] = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    assert (names["picture"].shape, names["mask"].shape) == ((480, 640, 3), (480, 640))
    assert names["middle"].shape == (480, 640, 3)
    assert names["result"].shape == (1, 256, 256, 1)


def test_webcam(frame_rgba: Frame, tmp_path: Path, display: Display) -> None:
    clip = write_clip(tmp_path / "people.mp4", [np.ascontiguousarray(frame_rgba[::4, ::4, :3])] * 1000)
    command = [sys.executable, str(EXAMPLES / "webcam.py"), str(clip)]
    environment = {**os.environ, "DISPLAY": display.name}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        display.window("webcam")
        display.press("Escape")
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
