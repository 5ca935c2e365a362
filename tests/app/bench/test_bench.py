"""`texelflow bench` on frames and on hostile .npy files: figures, masks and one-line errors."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in
from texelflow.app.frame.backend_choice.frame_job import GlFrameJob
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

pytestmark = pytest.mark.gl

FIGURES = ("min_ms", "median_ms", "mean_ms", "p95_ms", "init_ms", "renderer", "backend", "precision", "dispatches")


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@one_in(2, "backend", ["gl", "cpu"])
def test_the_frame_job_prints_its_figures(
    backend: str, texelflow: Command, selfie_model: Path, context: Context
) -> None:
    result = texelflow("bench", "frame", "--runs", 3, "--warmup", 1, "--backend", backend, "--json")
    assert result.code == 0
    figures = json.loads(result.out.splitlines()[-1])
    assert set(FIGURES) < figures.keys()
    assert 0 < figures["min_ms"] <= figures["median_ms"] <= figures["p95_ms"]
    assert 0.05 < figures["mask_mean"] < 0.9
    assert (figures["backend"], figures["precision"]) == (backend, "fp32")
    own = len(compile_graph(load_model(selfie_model), device_of(context)).kernels)  # the network's alone
    assert figures["dispatches"] == (own if backend == "gl" else 0)
    assert figures["frames"] == [8, 480, 640, 4]


@one_in(2, "backend", ["cpu", "gl"])
def test_what_finds_things_has_figures_of_its_own(backend: str, texelflow: Command) -> None:
    options = ("--model", "face-detection-short", "--backend", backend, "--runs", 3, "--warmup", 1)
    result = texelflow("bench", "frame", *options, "--json")
    assert result.code == 0, result.err
    figures = json.loads(result.out.splitlines()[-1])
    assert set(FIGURES) < figures.keys()
    assert figures["found"] >= 1
    assert figures["networks"] == ["face-detection-short"]
    assert figures["frames"] == [8, 480, 640, 4]
    assert (figures["dispatches"] > 0) == (backend == "gl")
    assert ("max_error" in figures) == (backend == "gl")


@exhaustive
@one_in(2, "backend", ["gl", "cpu"])
def test_own_frames_give_their_masks(
    backend: str, frame_rgba: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], tmp_path: Path, texelflow: Command
) -> None:
    frames = np.stack([frame_rgba, frame_rgba[:, ::-1], np.zeros_like(frame_rgba)])[:, :301, :403]
    np.save(tmp_path / "f.npy", frames)
    options = ("--frames", tmp_path / "f.npy", "--masks", tmp_path / "m.npy", "--backend", backend, "--json")
    result = texelflow("bench", "frame", "--runs", 1, "--warmup", 0, *options)
    assert result.code == 0
    masks = np.load(tmp_path / "m.npy")
    assert (masks.shape, masks.dtype) == ((3, 301, 403), np.float32)
    path = CpuPath(load_segmentation("selfie"), rgba_format((403, 301)))
    for frame, mask in zip(frames, masks, strict=True):
        assert np.abs(path.run(rgba_picture(frame)) - mask).max() < 1e-3
    assert json.loads(result.out)["mask_mean"] == pytest.approx(masks[0].mean(), abs=1e-6)


@exhaustive
def test_another_mask_than_the_cpus_ends_in_exit_code_1(monkeypatch: pytest.MonkeyPatch, texelflow: Command) -> None:
    right = GlFrameJob.run
    monkeypatch.setattr(GlFrameJob, "run", lambda self, picture: right(self, picture) * np.float32(0.99))
    result = texelflow("bench", "frame", "--runs", 1, "--json")
    assert result.code == 1
    assert "away from the CPU path's" in result.err
    assert json.loads(result.out)["mask_mean_error"] > 1e-3


def saved(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def archive() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, a=np.zeros(3))
    return stream.getvalue()


def claiming(shape: str) -> bytes:
    """A header that promises a shape, with hardly anything behind it."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"\0" * 64


def plain_zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("a.txt", "not an array")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "fragment"),
    [
        (b"", "cannot be read as .npy"),
        (b"some text", "cannot be read as .npy"),
        (saved([{"a": print}]), "cannot be read as .npy"),
        (archive(), "an archive of arrays"),
        (plain_zip(), "an archive of arrays"),
        (saved(np.zeros((2, 4, 4, 3), np.uint8)), "(N, H, W, 4)"),
        (saved(np.zeros((2, 4, 4, 4), np.float32)), "(N, H, W, 4)"),
        (saved(np.zeros((4, 4, 4), np.uint8)), "(N, H, W, 4)"),
        (saved(np.zeros((0, 4, 4, 4), np.uint8)), "no pixels"),
        (claiming("(1000, 10000, 10000, 4)"), "cannot be read as .npy"),
        (claiming("(1, 99999999999, 99999999999, 4)"), "cannot be read as .npy"),
        (claiming("(-1, 4, 4, 4)"), "cannot be read as .npy"),
        (claiming("(1, 1, 20000, 4)").ljust(200_000, b"\0"), "16384"),
        (claiming("__import__('os')"), "cannot be read as .npy"),
    ],
)
def test_refuses_hostile_frames(data: bytes, fragment: str, tmp_path: Path, texelflow: Command) -> None:
    (tmp_path / "f.npy").write_bytes(data)
    complaint = texelflow("bench", "frame", "--frames", tmp_path / "f.npy").complaint
    assert fragment in complaint
    assert "f.npy" in complaint


def test_refuses_a_missing_file(tmp_path: Path, texelflow: Command) -> None:
    assert "missing.npy" in texelflow("bench", "frame", "--frames", tmp_path / "missing.npy").complaint
    assert "exclude" in texelflow("bench", "frame", "--frames", tmp_path / "f.npy", "--size", "4x4").complaint


@exhaustive
@one_in(2, "size", ["1x1", "641x479"])
def test_any_size_of_frame(size: str, texelflow: Command) -> None:
    result = texelflow("bench", "frame", "--size", size, "--runs", 1, "--warmup", 0, "--json")
    assert result.code == 0
    width, height = map(int, size.split("x"))
    assert json.loads(result.out)["frames"] == [8, height, width, 4]


def test_refuses_a_mask_over_the_limits_of_the_device(context: Context, texelflow: Command) -> None:
    rows = context.limits.storage_block_bytes // (16384 * 4) + 4
    if rows > 8192:
        pytest.skip("this device takes any frame that may be asked for")
    assert "is too large for" in texelflow("bench", "frame", "--size", f"16384x{rows}").complaint
