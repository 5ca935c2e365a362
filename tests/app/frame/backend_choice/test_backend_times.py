"""What auto takes: frames are measured once on both and kept, unless something else decides; and what --cpu gets."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.app.frame.inference.test_native_path import segmenting
from tests.model_files.finding_models import seeing_network
from texelflow.app.console import Console
from texelflow.app.frame.backend_choice import backend_times as measuring
from texelflow.app.frame.backend_choice.auto_choice import AUTO_CHOICE, auto_backend
from texelflow.app.frame.backend_choice.backend_times import KIND, BackendTimes, backend_times, parse_times, times_key
from texelflow.app.frame.backend_choice.compute import compute_in, open_compute
from texelflow.app.frame.inference.backends import ComputeChoice, CpuChoice
from texelflow.app.frame.inference.cpu_choice import chosen_cpu_path
from texelflow.app.models.finding_loading import ShownModel, load_shown_model
from texelflow.app.picture.picture import rgba_format
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.targets.gl.context import Context

MODEL = segmenting("sigmoid", 2)
AUTO = ComputeChoice()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    """An empty one, so that auto measures, which takes a few frames."""
    monkeypatch.setattr(measuring, "_FRAMES_S", 0.0)
    monkeypatch.setattr(measuring, "_SHADERS_S", 1e6)
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    monkeypatch.delenv(AUTO_CHOICE)
    return DiskCache()


@pytest.mark.parametrize(
    ("is_software", "times", "by_hand", "taken"),
    [
        (False, BackendTimes(2.0, 3.0), "", "gl"),
        (False, BackendTimes(3.0, 2.0), "", "cpu"),
        (True, BackendTimes(2.0, 3.0), "", "gl"),
        (True, BackendTimes(None, 3.0), "", "cpu"),  # its shaders were not ready in time
        (False, BackendTimes(None, 3.0), "", "cpu"),
        (False, BackendTimes(None, None), "", "gl"),  # no code of the model
        (True, BackendTimes(None, None), "", "cpu"),
        (False, None, "", "gl"),  # no LLVM
        (True, None, "", "cpu"),
        (True, None, "hardware", "cpu"),
        (False, None, "hardware", "gl"),
        (True, None, "gl", "gl"),
        (False, None, "cpu", "cpu"),
    ],
)
def test_what_auto_takes(is_software: bool, times: BackendTimes | None, by_hand: str, taken: str) -> None:
    assert auto_backend(is_software, times, by_hand) == taken


@given(st.binary(max_size=80))
@example(b'{"gl_ms": true, "cpu_ms": 1.0}')
@example(b'{"gl_ms": -1.0, "cpu_ms": 1.0}')
@example(b'{"gl_ms": Infinity, "cpu_ms": NaN}')
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert parse_times(data) is None


def key_of_measured(model: ShownModel, draws: bool, cache: DiskCache, context: Context) -> str:
    """Measure both, of which alone is kept what they took: the key."""
    times = backend_times(context, model, AUTO, draws)
    assert times is not None
    assert times.gl_ms
    assert times.cpu_ms
    key = times_key(context, model, AUTO, draws)
    assert [entry.key for entry in cache.entries() if entry.kind == KIND] == [key]
    return key


DRAWS = pytest.mark.parametrize("draws", [True, False], ids=["picture", "mask"])


@DRAWS
def test_what_finds_things_is_measured_as_well(draws: bool, cache: DiskCache, context: Context, tmp_path: Path) -> None:
    path = tmp_path / "boxes.tflite"
    path.write_bytes(seeing_network([np.zeros((1, 6, 84), np.float32)], (64, 64)))
    finder = load_shown_model(str(path))
    key = key_of_measured(finder, draws, cache, context)
    for kept, taken in ((BackendTimes(2.0, 1.0), "cpu"), (BackendTimes(1.0, 2.0), "gl")):
        cache.put(KIND, key, json.dumps(vars(kept)).encode())
        with open_compute(AUTO, finder, draws, Console(quiet=True)) as compute:
            assert compute.backend == taken


@DRAWS
def test_both_are_measured_once_and_kept(draws: bool, cache: DiskCache, context: Context) -> None:
    key = key_of_measured(MODEL, draws, cache, context)
    others = replace(AUTO, precision="fp16"), replace(AUTO, cpu=CpuChoice(threads=1))
    keys = {times_key(context, MODEL, choice, draws) for choice in (AUTO, *others)}
    assert len(keys | {times_key(context, MODEL, AUTO, not draws)}) == 4
    for kept, taken in ((BackendTimes(2.0, 1.0), "cpu"), (BackendTimes(1.0, 2.0), "gl")):
        cache.put(KIND, key, json.dumps(vars(kept)).encode())
        assert backend_times(context, MODEL, AUTO, draws) == kept, "not measured again"
        if draws:
            assert compute_in(context, AUTO, MODEL, Console(quiet=True)).backend == taken
        with open_compute(AUTO, MODEL, draws, Console(quiet=True)) as compute:
            assert compute.backend == taken
            assert (compute.pictures is not None) == (draws or taken == "gl")
    assert backend_times(context, MODEL, ComputeChoice(cpu=CpuChoice("tflite")), draws) is None


@DRAWS
def test_shaders_that_take_too_long_on_a_software_renderer_are_given_up(
    draws: bool, cache: DiskCache, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_SHADERS_S", 0.0)
    times = backend_times(context, MODEL, AUTO, draws)
    assert times is not None
    assert (times.gl_ms is None) == context.is_software
    assert times.cpu_ms


def test_a_model_without_native_code_has_no_times_of_it(
    cache: DiskCache, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UnsupportedError("no such op")

    monkeypatch.setattr(measuring, "open_cpu_path", refuse)
    assert backend_times(context, MODEL, AUTO, True) == BackendTimes(None, None)


@pytest.mark.parametrize(
    ("draws", "told"), [(True, "picture{}: network and drawing run"), (False, "mask{}: the network runs")]
)
def test_why_auto_takes_the_cpu_is_told(
    draws: bool,
    told: str,
    cache: DiskCache,
    context: Context,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache.put(KIND, times_key(context, MODEL, AUTO, draws), b'{"gl_ms": 7.25, "cpu_ms": 1.5}')
    with open_compute(AUTO, MODEL, draws, Console()):
        line = capsys.readouterr().err
    assert f"{context.renderer}" in line
    expected = told.format(", the CPU 1.5 ms in code of its own")
    assert f", 7.2 ms a {expected} on the CPU; --backend gl" in line
    monkeypatch.setenv(AUTO_CHOICE, "fast")
    with pytest.raises(UsageError, match="TEXELFLOW_AUTO=fast: gl, cpu or hardware is needed"):
        compute_in(context, AUTO, MODEL, Console())


def test_who_asks_for_native_code_is_told_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = rgba_format((64, 48))
    for engine, renderer in (("auto", " code on the CPU, 1 thread"), ("tflite", "TensorFlow Lite on the CPU")):
        path, note = chosen_cpu_path(MODEL, frame, CpuChoice(engine, 1))  # type: ignore[arg-type]
        assert path.renderer.endswith(renderer)
        assert note == ""
        path.close()
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    for engine, told in (("auto", ""), ("native", "--cpu native: no LLVM (")):
        path, note = chosen_cpu_path(MODEL, frame, CpuChoice(engine))  # type: ignore[arg-type]
        assert path.renderer == "TensorFlow Lite on the CPU"
        assert note.startswith(told)
        assert bool(note) == bool(told)
        path.close()
