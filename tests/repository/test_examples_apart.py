"""Examples that need packages which nothing else here needs; `make examples` runs them in an environment with these."""

import importlib
import json
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

import texelflow

Frame = npt.NDArray[np.uint8]

EXAMPLES = Path(__file__).parents[2] / "examples"
GSTREAMER = "sudo apt install python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-good"


@pytest.fixture
def picture(frame_rgba: Frame, tmp_path: Path) -> Path:
    cv2.imwrite(str(tmp_path / "people.png"), cv2.cvtColor(frame_rgba, cv2.COLOR_RGBA2BGR))
    return tmp_path / "people.png"


def run(name: str, *arguments: object) -> str:
    """What an example prints; it must succeed."""
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_rgba(data: bytes) -> Any:
    return cv2.cvtColor(np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), -1)), cv2.COLOR_BGRA2RGBA)


def test_web_service(picture: Path, frame_rgba: Frame) -> None:
    client = pytest.importorskip("fastapi.testclient", reason="make examples has FastAPI")
    found = runpy.run_path(str(EXAMPLES / "web_service.py"))
    small = cv2.imencode(".jpg", np.asarray(cv2.imread(str(picture)))[::2, ::2])[1].tobytes()
    with client.TestClient(found["app"]) as service, texelflow.Pipeline(effect="cutout", model="selfie") as alone:

        def ask(body: bytes) -> Any:
            return service.post("/cutout", content=body)

        first = ask(picture.read_bytes())
        assert (first.status_code, first.headers["content-type"]) == (200, "image/png")
        assert np.array_equal(read_rgba(first.content), alone(frame_rgba))
        second = ask(small).content
        with ThreadPoolExecutor(6) as threads:  # whatever came before, and from whom
            bodies = [picture.read_bytes(), small] * 6
            answers = list(threads.map(lambda body: ask(body).content, bodies))
        assert answers == [first.content, second] * 6
        codes = [ask(body).status_code for body in (b"", b"no picture", bytes((32 << 20) + 1))]
        assert codes == [415, 415, 413]


def test_torch_tensors(picture: Path, frame_rgba: Frame) -> None:
    pytest.importorskip("torch", reason="make examples has PyTorch")
    result = picture.parent / "result.png"
    assert "246 operators" in run("torch_tensors.py", picture, result)
    with texelflow.Segmenter("selfie", "cpu") as segment:
        mask = segment(frame_rgba)
    drawn = np.asarray(cv2.imread(str(result)))[..., ::-1].astype(int)
    assert np.abs(drawn - frame_rgba[..., :3])[mask > 0.99].mean() < 2
    assert np.ptp(drawn[mask < 0.01], axis=-1).mean() < 0.1  # gray around


def test_notebook_in_a_kernel(tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient", reason="make examples has Jupyter's kernel")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 4
    assert "246 operators" in json.dumps(shown)


def test_gstreamer(frame_rgba: Frame, tmp_path: Path) -> None:
    try:
        importlib.import_module("gi").require_version("GstApp", "1.0")
    except (ImportError, ValueError):  # it is of another Python, or lacks GStreamer
        pytest.skip(GSTREAMER)
    frame = np.ascontiguousarray(frame_rgba[:, : 2 * 159, :3])  # rows are padded
    cv2.imwrite(str(tmp_path / "in.png"), frame[..., ::-1])
    source = f"multifilesrc location={tmp_path}/in.png num-buffers=3 caps=image/png,framerate=15/1 ! pngdec"
    run("gstreamer.py", source, f"pngenc ! multifilesink location={tmp_path}/out%d.png")
    with texelflow.Pipeline(effect="blur", model="selfie") as camera:
        for number in range(3):
            written = np.asarray(cv2.imread(str(tmp_path / f"out{number}.png")))[..., ::-1]
            assert np.array_equal(written, camera(frame, time=number / 15))
    assert not (tmp_path / "out3.png").exists()
