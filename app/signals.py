"""Handles signals that ask the program to end (Ctrl-C, SIGTERM): as an exception, or as a flag that loops look at."""

import _thread
import contextlib
import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))
_SHELL = 128  # what shells add to a signal's number for the exit code
_SOON_S = 0.01
_ACTION_BYTES = 1024  # more than struct sigaction has on any system


class EndedBySignal(BaseException):
    """A signal asked the program to end; `number` says which one.

    It is not a KeyboardInterrupt, which some libraries convert to another exception.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class StopFlag:
    """Whether a signal has asked for an end, and which one."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None


def exit_code(number: int | None) -> int:
    """What a shell shows for a program that a signal ended: 130 for Ctrl-C, 143 for SIGTERM; 0 for none."""
    return 0 if number is None else _SHELL + number


@contextlib.contextmanager
def raising(flag: StopFlag) -> Iterator[None]:
    """Within it these signals raise EndedBySignal, so that what cleans up after Ctrl-C does so after all of them.

    The flag is set, too: compiled modules that are being loaded turn the exception into another one.
    """

    def end(number: int, frame: FrameType | None) -> None:
        flag.number = number
        raise EndedBySignal(number)

    with _handled(end), _unseen():
        yield


@contextlib.contextmanager
def stop_flag(wake: Callable[[], None] = lambda: None) -> Iterator[StopFlag]:
    """Within it the first of these signals sets a flag and calls `wake`, and the second raises EndedBySignal."""
    flag = StopFlag()

    def ask(number: int, frame: FrameType | None) -> None:
        if flag:
            raise EndedBySignal(number)
        flag.number = number
        wake()

    with _handled(ask):
        yield flag


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Where compiled code swallows the exception, it is not printed, and is raised again a moment later."""
    show, tell = sys.excepthook, sys.unraisablehook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, EndedBySignal):
            show(kind, error, trace)

    def lost(what: "sys.UnraisableHookArgs") -> None:
        if isinstance(what.exc_value, EndedBySignal):  # raised in a function that OpenGL or FFmpeg had called
            _send_soon(what.exc_value.number)
        else:
            tell(what)

    sys.excepthook, sys.unraisablehook = hook, lost
    try:
        yield
    finally:
        sys.excepthook, sys.unraisablehook = show, tell


def _send_soon(number: int) -> None:
    """After the caller has returned: earlier, on a busy machine, it would be lost again."""
    delay_s, sent = _SOON_S, False
    while not sent:
        try:
            threading.Timer(delay_s, _send_again, [number]).start()
            sent = True
        except EndedBySignal:
            delay_s *= 2


def _send_again(number: int) -> None:
    """To the main thread, which handles signals; it is woken if it sleeps, where systems can do that."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        _thread.interrupt_main(signal.Signals(number))


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Within it these signals wait; they come at its end. Some compiled modules end the process at an exception."""
    came: list[int] = []
    try:
        with _handled(lambda number, frame: came.append(number)):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextlib.contextmanager
def _handled(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handlers for these signals, but for those that the program was started to ignore (nohup, a background job).

    Afterwards everything is as it was, also where C has installed a handler, be it before Python started or since
    (apitrace, RenderDoc, programs that embed Python): Python does not know of those, or not their present state.
    """
    if threading.current_thread() is not threading.main_thread():  # Python handles signals nowhere else
        yield
        return
    heard = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = [(number, signal.getsignal(number), _action(number)) for number in heard]
    try:
        for number in heard:
            signal.signal(number, handle)
        yield
    finally:
        for number, known, action in before:
            signal.signal(number, signal.SIG_DFL if known is None else known)
            _restore(number, action)


def _action(number: int) -> bytes | None:
    """The system's action for a signal (struct sigaction); None on Windows."""
    if sys.platform == "win32":
        return None
    action = ctypes.create_string_buffer(_ACTION_BYTES)
    ctypes.CDLL(None).sigaction(number, None, action)
    return action.raw


def _restore(number: int, action: bytes | None) -> None:
    if action is not None:
        ctypes.CDLL(None).sigaction(number, action, None)
