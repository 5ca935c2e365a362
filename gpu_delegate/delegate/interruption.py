"""C callbacks whose status stays right when Ctrl-C or another signal interrupts them.

Python handles a signal between two of its instructions, also one that came while C++ was running: at the first
instruction of the next callback, ahead of every `try` in it. The handler raises KeyboardInterrupt there, ctypes prints
it, and returns whatever was on the stack as the status: TensorFlow Lite would go on with numbers of the run before.

So the C function is the `send` of a generator that waits inside a `try`, where Python resumes it: nothing of ours is
ever outside one. While the work is done, handlers only take notes; the signals are told to Python again at the end, in
a way that has it act on them in its next instruction, which is the one behind the interpreter's invoke(), or the first
one of the next callback, where all this begins anew. (Where Python looks for signals: its ceval.c, RESUME, CALL and
JUMP_BACKWARD; in 3.10 in front of each instruction but those that begin a `try`.)
"""

import _signal  # type: ignore[import-not-found]  # `signal` without its conversions to enumerations, seven times as fast
import _thread
import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from types import FrameType, MappingProxyType
from typing import Any

# Those of which programs are told; handlers of others (SIGSEGV) belong to tools.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", "SIGQUIT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

_MOST_ATTEMPTS = 1000
# C functions that are called with more arguments than they declare ignore the others, by every calling convention here.
_OneArgument = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

_Work = Callable[[int], int]  # gets the first argument, returns a status
_Refuse = Callable[[int, BaseException], int]  # the same for what a signal's handler has raised instead


class GuardedFunction:
    """A C function with a status. It must live for as long as C may call it, on one thread at a time."""

    def __init__(
        self, work: _Work, refuse: _Refuse, failed: int, argument: int = 0, interrupted: int | None = None
    ) -> None:
        """`failed` is the status for what is raised where nothing can catch it.

        `argument` stands for the first one where a signal has come before Python could see that: 0 if that depends on
        the call, and then nothing is done. Signals wait for the end of the work; but with `interrupted`, the status
        where Ctrl-C has ended it, the work has to let out what their handlers raise.
        """
        answers = _answers(_Call(work, refuse, failed, argument, interrupted))
        next(answers)
        self._function = _OneArgument(answers.send)

    def as_type(self, kind: Any) -> Any:
        """The function as one of another type of ctypes, whose first argument is a pointer."""
        return ctypes.cast(self._function, kind)


@contextlib.contextmanager
def postponed_signals() -> Iterator[None]:
    """Within it signals wait; they come at its end."""
    hold = _SignalHold()
    try:
        hold.take()
        yield
    finally:
        hold.let_go()
        for number in hold.came:
            _thread.interrupt_main(signal.Signals(number))


class _SignalHold:
    """Has handlers take notes for a while. Each method does what is left of it, if it is called again."""

    def __init__(self) -> None:
        self.came: dict[int, None] = {}  # in order
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}  # that have been replaced

    def take(self) -> None:
        """Only Python's main thread has handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            if number not in self._handlers:
                handler = _signal.getsignal(number)
                if not callable(handler):
                    continue
                self._handlers[number] = handler
            _set_handler(number, self._note)

    def let_go(self) -> None:
        for number, handler in tuple(self._handlers.items()):
            _set_handler(number, handler)
            del self._handlers[number]

    def _note(self, number: int, _: FrameType | None) -> None:
        self.came[number] = None


def _set_handler(number: int, handler: Callable[[int, FrameType | None], Any]) -> None:
    try:
        _signal.signal(number, handler)
    except ValueError:  # in an interpreter that is none of Python's main one
        return


class _Call:
    """What is known of the call at hand. After every exception step() goes on where it was."""

    def __init__(self, work: _Work, refuse: _Refuse, failed: int, argument: int, interrupted: int | None) -> None:
        self._work, self._refuse, self._default, self._interrupted = work, refuse, argument, interrupted
        self._hold = _SignalHold()
        self.is_done, self.has_begun = True, False
        self.argument, self.status, self.failed = argument, failed, failed
        self.raised: BaseException | None = None  # by a handler, or because there is no room for another call
        self.attempts_left = _MOST_ATTEMPTS  # counted down: Python's == has no room in the deepest call, `not` does
        self.trips: tuple[object, ...] = ()

    def step(self) -> None:
        """Everything, or what is left of it."""
        if not self.has_begun:
            if self._interrupted is None:
                self._hold.take()
            self.has_begun, self.status = True, self.failed
            if self.argument and isinstance(self.raised, KeyboardInterrupt | None):
                self.status = self._work(self.argument)
        self._hold.let_go()
        raised, self.raised = self.raised, None
        if isinstance(raised, KeyboardInterrupt):
            self._hold.came[signal.SIGINT] = None
            self.status = self.status if self._interrupted is None else self._interrupted
        elif raised is not None:
            self.status = self.failed
            self._refuse(self.argument, raised)
        trips = tuple(_TRIPS[number]() for number in self._hold.came)
        self.trips += trips  # none is dropped before the end: the signal it tells of would come here, again and again
        self._hold.came = {}
        self.is_done, self.has_begun, self.argument = True, False, self._default
        self.attempts_left = _MOST_ATTEMPTS


def _answers(call: _Call) -> Generator[int, int, None]:
    """Takes arguments and yields statuses, forever.

    Between an `except` and its `try` Python looks for signals, too: there the next loop around it catches what comes.
    Three of them, since each takes a signal of its own within some nanoseconds.
    """
    while True:
        try:
            while True:
                try:
                    while True:
                        try:
                            if call.is_done:
                                call.is_done = False
                                call.trips = ()  # from here on a signal may be pending: nothing looks for it
                                call.argument = yield call.status
                            call.step()
                        except GeneratorExit:
                            return
                        except BaseException as error:
                            call.raised = error
                            call.attempts_left -= 1
                            if not call.attempts_left:  # such as a RecursionError each time
                                call.status, call.is_done, call.has_begun = call.failed, True, False
                                call.raised, call.attempts_left = None, _MOST_ATTEMPTS
                except BaseException as error:
                    call.raised = error
        except BaseException as error:
            call.raised = error


def _trip(number: int) -> type:
    """Objects that tell Python of a signal when they are dropped, from C: whatever it calls it would look there."""
    return type("Trip", (), {"__del__": staticmethod(partial(_thread.interrupt_main, signal.Signals(number)))})


_TRIPS = MappingProxyType({number: _trip(number) for number in _SIGNALS})
