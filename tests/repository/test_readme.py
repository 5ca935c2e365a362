"""The README is true: every command and every line of Python in it runs, and every file it names is there."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import DEMO_CLIP, beginning_of
from tests.helpers.commands import Command
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive_if, one_in
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.partial_models import cast_and_back, segments
from texelflow.app.settings.config import dump
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.families import TUNINGS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Commands that take long, as tests of their own try with less
LONG = ("check selfie", "inspect --ops", "tune", "bench quality", "bench model", "bench frame", "archive talk")
FRAMES = 50  # of the clip that stands in for the reader's recording


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def commands(program: str) -> list[str]:
    """The lines of shell blocks that run a program, without their comments."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line.split("  #")[0].strip() for line in lines if line.startswith(program + " ")]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of the demo clip, copied packet by packet."""
    path = beginning_of(DEMO_CLIP, tmp_path_factory.mktemp("readme") / "people.mp4", FRAMES)
    beginning_of(DEMO_CLIP, path.with_name("talk.mkv"), 5)
    path.with_name("photos").mkdir()
    path.with_name("rooms").mkdir()
    for folder in ("photos", "rooms"):
        shutil.copy(ROOT / "assets" / "demo.jpg", path.with_name(folder))
    assert cv2.imwrite(str(path.with_name("rooms") / "demo_mask.png"), np.eye(64, dtype=np.uint8))
    return path


def opens_window(line: str) -> bool:
    """Whether somebody has to press q."""
    return "--window" in line or (line.startswith("texelflow live") and not re.search("--list|--dump-config", line))


@one_in(2, "line", [line for line in commands("texelflow") if opens_window(line)])
def test_command_with_a_window(line: str, recording: Path, display: Display) -> None:
    arguments, title = shlex.split(line)[1:], recording.name
    if arguments[0] == "live":
        title = "texelflow"
        arguments += [] if "--camera" in arguments else ["--camera", recording.name]  # there is none here
        (recording.parent / "live.toml").write_text(dump(Settings()))
    command = [sys.executable, "-m", "texelflow.app", *arguments]
    with subprocess.Popen(command, cwd=recording.parent, stderr=subprocess.PIPE, text=True) as process:
        display.window(title)
        display.press("q")
        _, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaint


def is_long(line: str) -> bool:
    return line.partition(" ")[2].startswith(LONG)


@pytest.mark.gl
@pytest.mark.parametrize(
    "line", [exhaustive_if(is_long(line), line) for line in commands("texelflow") if not opens_window(line)]
)
def test_command(
    line: str,
    recording: Path,
    selfie_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(recording.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if "--install" in line:
        monkeypatch.setenv("HOME", str(tmp_path))
    less = ["--only", "device"] if "bench gpu" in line else []  # tests of it are in test_gpu_bench.py
    if " tune " in line:  # and in test_tune.py; what is found here is not this user's
        less = ["--budget", "2s"]
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "models").symlink_to(selfie_model.parent)
        monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path / "cache"))
    result = Command(capsys)(*shlex.split(line.partition(" > ")[0])[1:], *less)
    assert result.code == 0, result.err
    if "--masks masks --log frames.csv" in line:  # 1 s to 1.5 s at 30 frames per second, both included
        assert len(list((tmp_path / "masks").glob("*.png"))) == 16
        assert len((tmp_path / "frames.csv").read_text().splitlines()) == 17


def test_the_command_whose_outputs_are_counted_is_among_them() -> None:
    assert sum("--masks masks --log frames.csv" in line for line in commands("texelflow")) == 1


@pytest.mark.parametrize("line", commands("make"))
def test_make_target(line: str) -> None:
    done = subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.gl
def test_python(
    selfie_model: Path, frame_rgba: npt.NDArray[np.uint8], recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recording.parent)
    code, _ = blocks("python")
    small = cv2.resize(frame_rgba[..., :3].astype(np.float32), (256, 256), interpolation=cv2.INTER_AREA)
    tensor = small[None] / np.float32(255)
    names: dict[str, Any] = {"image": frame_rgba, "tensor": tensor}
    exec(compile(code, "README.md", "exec"), names)
    assert names["mask"].shape == (480, 640)
    assert names["result"].shape == (1, 256, 256, 1)
    assert names["mask"].mean() == pytest.approx(names["result"].mean(), abs=1e-3)
    assert names["mask"].max() > 0.9
    assert (names["picture"].shape, names["picture"].dtype) == (frame_rgba.shape, np.uint8)
    with av.open("blurred.mp4") as video:
        assert sum(1 for _ in video.decode(video=0)) == FRAMES


@pytest.mark.gl
def test_python_that_adds_the_delegate(
    runtime: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.tflite").write_bytes(cast_and_back(read_model(segments()), 0.25))
    _, code = blocks("python")
    assert len([line for line in code.splitlines() if line]) == 5
    names: dict[str, Any] = {"Interpreter": runtime.Interpreter}
    *lines, invoke = code.splitlines()
    exec(compile("\n".join(lines), "README.md", "exec"), names)
    assert len(names["delegate"].partitions) == 2
    assert "the remaining 2 on the CPU" in capsys.readouterr().err
    plain = runtime.Interpreter(model_path="model.tflite")
    plain.allocate_tensors()
    values = np.random.default_rng(0).random((1, 48, 48, 3), np.float32)
    for interpreter in (names["interpreter"], plain):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    exec(compile(invoke, "README.md", "exec"), names)
    plain.invoke()
    found, expected = (each.get_tensor(each.get_output_details()[0]["index"]) for each in (names["interpreter"], plain))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.ptp(expected) > 0.1


def test_dispatches_are_those_of_the_program(selfie_model: Path) -> None:
    """Of the network alone, as `inspect`, `bench model`, `bench frame`, replay and its log count them."""
    graph = load_model(selfie_model)
    families = [Device(HARDWARE.limits, tuning) for name, tuning in TUNINGS.items() if name != "software"]
    on_gpus = [len(compile_graph(graph, device).kernels) for device in families]
    in_software = [len(compile_graph(graph, SOFTWARE, CompileOptions(fuse=fuse)).kernels) for fuse in (True, False)]
    said = re.search(r"(\d+) dispatches\s\((\d+) to (\d+) on GPUs, by their family; one for each op: (\d+)\)", README)
    assert said is not None
    assert [*map(int, said.groups())] == [in_software[0], min(on_gpus), max(on_gpus), in_software[1]]


def test_files_exist() -> None:
    named = re.findall(r"`((?:app|gpu_delegate|shaders|tests|assets)/[\w./]+)`", README) + re.findall(
        r"\]\(([\w./]+)\)", README
    )
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []
