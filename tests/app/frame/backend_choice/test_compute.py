"""What is opened to compute and draw with is closed again, and what is missing for it is told."""

import threading

import pytest

from tests.app.frame.inference.test_native_path import segmenting
from texelflow.app.console import Console
from texelflow.app.frame.backend_choice import compute as opening
from texelflow.app.frame.backend_choice.compute import open_compute
from texelflow.app.frame.inference.backends import ComputeChoice, CpuChoice
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.llvm import compiler


@pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")
def test_threads_that_draw_end_with_what_they_were_opened_for() -> None:
    before = set(threading.enumerate())  # of tests before this one, some of which may end meanwhile
    choice = ComputeChoice("cpu", cpu=CpuChoice(threads=3))
    with open_compute(choice, segmenting("sigmoid", 2), True, Console(quiet=True)) as compute:
        assert compute.native
        assert len(set(threading.enumerate()) - before) == 2
        kept = compute.native.target((40, 30))
    assert not set(threading.enumerate()) - before
    kept.release()


@pytest.mark.parametrize(
    ("lacking", "told"),
    [
        ("", "no OpenGL: none; --overlay needs it"),
        ("no LLVM", "none; pictures need it, or code made for this CPU (no LLVM)"),
    ],
)
def test_without_opengl_what_needs_it_is_told(lacking: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise DeviceError("no OpenGL: none; install it")

    monkeypatch.setattr(opening, "open_context", refuse)
    monkeypatch.setattr(opening, "available", lambda: lacking)
    compute = open_compute(ComputeChoice("cpu"), segmenting("sigmoid", 2), True, Console(quiet=True), has_overlay=True)
    with pytest.raises(DeviceError) as refused, compute:
        pass
    assert told in str(refused.value)
