"""Signals: an exception on the way of errors, a flag for loops, and what the program was started to ignore."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.fake_camera import compiler
from tests.helpers.running import ROOT
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.signals import EndedBySignal, StopFlag, exit_code, postponed, raising, stop_flag


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_raising_says_which_one_came(number: int) -> None:
    flag = StopFlag()
    with pytest.raises(EndedBySignal) as caught, raising(flag):
        os.kill(os.getpid(), number)
    assert exit_code(caught.value.number) == exit_code(flag.number) == 128 + number


def test_the_first_signal_sets_the_flag_and_the_second_raises() -> None:
    with stop_flag() as flag:
        assert not flag
        assert exit_code(flag.number) == 0
        os.kill(os.getpid(), signal.SIGTERM)
        assert flag
        assert exit_code(flag.number) == 143
        with pytest.raises(EndedBySignal):
            os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_put_back_and_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        handler = signal.getsignal(signal.SIGTERM)
        with stop_flag() as flag:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not flag
        assert signal.getsignal(signal.SIGTERM) is handler
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("busy_s", [0.0, 0.1], ids=["at once", "and once more while it is being sent"])
def test_what_compiled_code_lets_through_to_nobody_comes_again(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, busy_s: float
) -> None:
    class Timer(threading.Timer):
        def start(self) -> None:
            super().start()
            time.sleep(busy_s)  # a machine that has other things to do

    monkeypatch.setattr(threading, "Timer", Timer)

    def called_from_c() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    callback = ctypes.CFUNCTYPE(None)(called_from_c)

    def work() -> None:
        callback()
        time.sleep(60)

    flag = StopFlag()
    with raising(flag), pytest.raises(EndedBySignal):
        work()
    assert flag.number == signal.SIGTERM
    assert capfd.readouterr().err == ""


def test_postponed_signals_come_at_the_end() -> None:
    reached = []

    def work() -> None:
        with postponed():
            os.kill(os.getpid(), signal.SIGTERM)
            reached.append("the end")
        reached.append("more")

    with raising(StopFlag()), pytest.raises(EndedBySignal) as caught:
        work()
    assert (caught.value.number, reached) == (signal.SIGTERM, ["the end"])


def run_python(program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def test_a_signal_while_dear_imgui_is_loaded() -> None:
    """Its compiled module makes Python's enumerations, and aborts where one of them raises anything."""
    program = """
import os, signal, sys
from texelflow.app.overlay.gui import load_imgui
from texelflow.app.signals import EndedBySignal, StopFlag, raising

def profile(frame, event, what):
    asked_by = frame.f_back.f_globals.get("__name__", "") if frame.f_back else ""
    if frame.f_code.co_filename.endswith("enum.py") and asked_by.startswith("importlib"):
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGTERM)

try:
    with raising(StopFlag()):
        sys.setprofile(profile)
        load_imgui()
        os.kill(os.getpid(), signal.SIGTERM)  # older ones make no enumerations
except EndedBySignal as error:
    print(error.number, "imgui_bundle" in sys.modules)
"""
    done = run_python(program)
    assert (done.returncode, done.stdout) == (0, f"{int(signal.SIGTERM)} True\n"), done.stderr


HANDLERS = r"""
#include <signal.h>
#include <unistd.h>
static void tell(int number) { write(1, number == SIGTERM ? "TERM\n" : "other\n", number == SIGTERM ? 5 : 6); }
__attribute__((constructor)) static void start(void) {
    signal(SIGINT, tell);
    signal(SIGTERM, tell);
    signal(SIGHUP, tell);
}
"""


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler on Linux")
def test_handlers_that_c_has_installed_do_not_hear_ours_and_come_back(tmp_path: Path) -> None:
    """As under apitrace and RenderDoc, and in programs that embed Python. Twice: Python's table has changed by then."""
    library = tmp_path / "handlers.so"
    command = [str(compiler()), "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=HANDLERS, text=True, check=True)
    program = """
import os, signal
from texelflow.app.cli import main
from texelflow.app.signals import StopFlag, raising, stop_flag

assert signal.getsignal(signal.SIGTERM) is None
for attempt in range(2):
    with raising(StopFlag()), stop_flag() as flag:
        os.kill(os.getpid(), signal.SIGINT)
    os.write(1, f"{flag.number}\\n".encode())
    os.kill(os.getpid(), signal.SIGTERM)
os.write(1, f"exit code {main(['models', '--json'])}\\n".encode())
"""
    done = run_python(program, LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line[0] != "{"] == ["2", "TERM"] * 2 + ["exit code 0"]
