"""Signals: an exception on the way of errors, a flag for loops, and what the program was started to ignore."""

import ctypes
import os
import signal
import threading
import time

import pytest

from app.signals import Ended, StopFlag, exit_code, raising, stop_flag


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_raising_says_which_one_came(number: int) -> None:
    flag = StopFlag()
    with pytest.raises(Ended) as caught, raising(flag):
        os.kill(os.getpid(), number)
    assert exit_code(caught.value.number) == exit_code(flag.number) == 128 + number


def test_the_first_signal_sets_the_flag_and_the_second_raises() -> None:
    with stop_flag() as flag:
        assert not flag
        assert exit_code(flag.number) == 0
        os.kill(os.getpid(), signal.SIGTERM)
        assert flag
        assert exit_code(flag.number) == 143
        with pytest.raises(Ended):
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
    with raising(flag), pytest.raises(Ended):
        work()
    assert flag.number == signal.SIGTERM
    assert capfd.readouterr().err == ""
