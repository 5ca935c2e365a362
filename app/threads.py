"""Runs work on threads of its own, in order and a few items ahead, so that the OpenGL thread is not held up."""

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from time import perf_counter_ns
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
Observer = Callable[[int, float], None]  # gets when work began, in ns of perf_counter_ns, and how many ms it took

AHEAD = 2  # items that are made early

_END = object()
_POLL_S = 0.1  # how long a thread takes at most to notice that it is to end


class Worker(Generic[_Item]):
    """Calls a function for each item that is put in. What it raises is raised by the next put, or by finish."""

    def __init__(
        self,
        work: Callable[[_Item], None],
        depth: int = 4,
        observe: Observer | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        """`depth` items may wait; then put waits. `observe` is called on the thread after each item that went well.

        `close` is called there at the end, also after errors; what it raises is raised as if an item had raised it.
        """
        self._work = work
        self._close = close
        self._observe = observe
        self._items: queue.Queue[_Item | object] = queue.Queue(depth)
        self._error: BaseException | None = None
        self._dropped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many items wait, without the one at hand."""
        return self._items.qsize()

    @property
    def ended(self) -> bool:
        """Whether the thread has done all that it ever will."""
        return not self._thread.is_alive()

    def put(self, item: _Item) -> None:
        """Hand an item over. Raises what the function raised for an earlier one."""
        self.check()
        self._items.put(item)

    def put_newest(self, item: _Item) -> int:
        """Hand an item over in place of those that still wait, and say how many those were. Raises as put does."""
        replaced = 0
        with contextlib.suppress(queue.Empty):
            while True:
                self._items.get_nowait()
                replaced += 1
        self.put(item)
        return replaced

    def check(self) -> None:
        """Raise what the function raised."""
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Let the thread end when all is done, without waiting for that."""
        self._items.put(_END)

    def finish(self) -> None:
        """Wait until all is done. Raises what the function raised."""
        self.end()
        self.join()
        self.check()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the thread has ended, after end; whether it did so in time."""
        self._thread.join(timeout_s)
        return self.ended

    def drop(self) -> None:
        """End after the item at hand, whatever still waits; harmless after finish."""
        self._dropped.set()
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                while True:
                    self._items.get_nowait()
            self._items.put(_END)
            self._thread.join(_POLL_S)

    def _run(self) -> None:
        while (item := self._items.get()) is not _END:
            if self._error is None and not self._dropped.is_set():
                try:
                    start_ns = perf_counter_ns()
                    self._work(item)  # type: ignore[arg-type]  # only _END is no Item
                    if self._observe:
                        self._observe(start_ns, (perf_counter_ns() - start_ns) / 1e6)
                except BaseException as error:
                    self._error = error
        try:
            if self._close:
                self._close()
        except BaseException as error:
            self._error = self._error or error


class ThreadCall(Generic[_Answer]):
    """One call of a function, on a thread of its own that nobody has to wait for."""

    def __init__(self, function: Callable[[], _Answer]) -> None:
        self._function = function
        self._answers: list[_Answer] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether the function has returned, or raised."""
        return not self._thread.is_alive()

    def wait(self, timeout_s: float) -> None:
        """Until it has ended, but not longer."""
        self._thread.join(timeout_s)

    def answer(self) -> _Answer:
        """What it returned; waits for that. Raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def _run(self) -> None:
        try:
            self._answers.append(self._function())
        except BaseException as error:
            self._error = error


def ahead(items: Iterator[_Item], depth: int = AHEAD) -> Generator[_Item, None, None]:
    """The same items, made on a thread of their own up to `depth` of them early; what that raises is raised here.

    Closing this generator ends the thread, and only then may what `items` reads from be closed.
    """
    ready: queue.Queue[_Item | object] = queue.Queue(depth)
    unwanted = threading.Event()
    errors: list[BaseException] = []

    def put(item: object) -> None:
        while not unwanted.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=_POLL_S)
                break

    def make() -> None:
        try:
            for item in items:
                put(item)
                if unwanted.is_set():
                    return
        except BaseException as error:
            errors.append(error)
        finally:
            put(_END)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            yield item  # type: ignore[misc]  # only _END is no Item
        if errors:
            raise errors[0]
    finally:
        unwanted.set()
        thread.join()
