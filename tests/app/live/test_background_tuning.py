"""Live tunes a GPU that is not known yet in a process of its own, which ends with it; it leaves others alone."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from texelflow.app.frame.inference.backends import ComputeBackend
from texelflow.app.live import background_tuning
from texelflow.app.live.background_tuning import tuning_command
from texelflow.app.models.model_loading import load_frame_model
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.tuning.store import device_key, mark_tuned
from texelflow.gpu_delegate.tuning.switch import VARIABLE


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, selfie_model: Path) -> None:
    assert selfie_model.is_file()
    monkeypatch.delenv(VARIABLE)


def test_when_and_how(context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute, model, settings = ComputeBackend("gl", context), load_frame_model("selfie"), Settings()
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    assert tuning_command(compute, model, settings) == [], "never by itself on a software renderer"
    monkeypatch.setattr(Context, "is_software", False)
    command = tuning_command(compute, model, settings)
    assert command[-2:] == ["--only-on", device_key(context)]
    assert "--gentle" in command
    assert tuning_command(compute, model, Settings(hybrid="reference"))[-4:-2] == ["--hybrid", "reference"]
    assert tuning_command(compute, model, Settings(tune=False)) == []
    assert tuning_command(ComputeBackend("cpu", context), model, settings) == []
    started, start = list["subprocess.Popen[bytes]"](), background_tuning._started

    def recorded(given: Sequence[str]) -> "subprocess.Popen[bytes] | None":
        started.extend(filter(None, [start(given)]))
        return started[0]

    monkeypatch.setattr(background_tuning, "_started", recorded)
    with background_tuning.background_tuning(compute, model, settings):
        (process,) = started
        assert process.poll() is None
    assert process.poll() is not None
    mark_tuned(context, model.graph, settings.precision)
    assert tuning_command(compute, model, settings) == []
