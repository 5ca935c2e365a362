"""`texelflow tune` on this machine: what it finds computes the same, is kept, counts, and is named by inspect."""

import json
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.engine import on_gpu
from tests.helpers.markers import exhaustive
from tests.model_files.sketch import Sketch
from texelflow.app.verbs.tune import parse_budget
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.device.choices import Choice
from texelflow.gpu_delegate.device.device import HARDWARE
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.tuning.candidates import Search
from texelflow.gpu_delegate.tuning.halving import Budget
from texelflow.gpu_delegate.tuning.kernel_timer import KernelTimer
from texelflow.gpu_delegate.tuning.store import device_key, keep_choices, load_choices, tuned_device
from texelflow.gpu_delegate.tuning.switch import VARIABLE
from texelflow.gpu_delegate.tuning.tuner import Tuner


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE)
    return DiskCache()


@pytest.fixture
def network() -> bytes:
    """Of odd sizes, with channels that fill no slice."""
    m = Sketch(3)
    m.output(m.conv(m.depthwise(m.image(13, 11, 6)), 7))
    return m.build()


@pytest.mark.parametrize(("text", "seconds"), [("10", 10), ("10s", 10), ("1:30", 90), ("500ms", 0.5)])
def test_budgets(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1e9", "10 h", "9999999", "nan"])
def test_no_budgets(text: str) -> None:
    with pytest.raises(UsageError, match="--budget"):
        parse_budget(text)


@exhaustive
def test_tuned_kernels_compute_the_same(context: Context, network: bytes) -> None:
    """Measured with a clock that counts, so that as many kernels are tried on every machine."""
    graph, steps = read_model(network), count()
    device = HARDWARE.with_limits()
    tuner = Tuner(KernelTimer(context), graph, device, Budget(150, lambda: next(steps)))
    for _ in tuner.steps():
        pass
    assert tuner.choices.kernels
    x = [np.random.default_rng(0).standard_normal((1, 13, 11, 6), np.float32)]
    wanted, found = (on_gpu(context, compile_graph(graph, each), x) for each in (device, tuner.device))
    np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=1e-5)
    tiles = {kernel.signature: kernel.tile for kernel in compile_graph(graph, tuner.device).kernels}
    for signature, choice in tuner.choices.kernels.items():
        assert 1 <= choice.searched <= len(Search.KINDS)
        assert tiles.get(signature, choice.tile) == choice.tile


def test_what_is_kept_counts_for_this_driver_alone(context: Context, network: bytes, cache: DiskCache) -> None:
    graph = read_model(network)
    (kernel,) = compile_graph(graph, tuned_device(context)).kernels
    choice = Choice(1.0, 2.0, Tile(1, 1, (8, 4, 1)), True, 1)
    assert keep_choices(context, load_choices(context).with_kernel(kernel.signature, choice))
    (tuned,) = compile_graph(graph, tuned_device(context)).kernels
    assert tuned.tile == choice.tile != kernel.tile
    (entry,) = cache.entries()
    names = json.loads(entry.key)
    assert names[:3] == [context.vendor, context.renderer, context.version]
    assert entry.key == device_key(context)
    content = cache.get(*("tuning", entry.key))
    cache.clear()
    cache.put("tuning", json.dumps([*names[:3], "other rules"]), content or b"")
    assert not load_choices(context)
    cache.put("tuning", entry.key, b"garbage")
    assert not load_choices(context)


@pytest.mark.gl
def test_the_verb(network: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.tflite").write_bytes(network)
    texelflow = Command(capsys)
    assert "a day at most" in texelflow("tune", tmp_path / "small.tflite", "--budget", "x").complaint
    assert "a longer --budget" in texelflow("tune", tmp_path / "small.tflite", "--budget", "0.000001s").out
    result = texelflow("tune", tmp_path / "small.tflite", "--budget", "0.3s", "--json")
    assert result.code == 0
    said = json.loads(result.out)
    assert all(whole["agrees"] for whole in said["whole"])
    assert said["renderer"] in texelflow("cache", "list").out
    assert texelflow("tune", tmp_path / "small.tflite", "--only-on", "another GPU").out == ""
