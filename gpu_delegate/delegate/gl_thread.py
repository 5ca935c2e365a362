"""Functions that use OpenGL go in, their results come out: a thread that owns a context of its own."""

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..context import Context, open_context
from ..errors import UsageError

_Result = TypeVar("_Result")
_Job = tuple[Callable[[Context], Any], "queue.SimpleQueue[tuple[bool, Any]]"]


class GlWorker:
    """One thread, one context, from the constructor to release()."""

    def __init__(self) -> None:
        """Raises DeviceError where there is no OpenGL."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        opened: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(self._jobs, opened), daemon=True).start()
        self._result(opened)

    def call(self, function: Callable[[Context], _Result]) -> _Result:
        """What the function returns or raises, run on the thread. Raises UsageError after release()."""
        if self._closed:
            raise UsageError("this GpuDelegate has been released")
        done: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._jobs.put((function, done))
        result: _Result = self._result(done)
        return result

    def release(self) -> None:
        """Free the context and end the thread; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)

    @staticmethod
    def _result(done: "queue.SimpleQueue[tuple[bool, Any]]") -> Any:
        is_done, found = done.get()
        if not is_done:
            raise found
        return found


def _serve(jobs: "queue.SimpleQueue[_Job | None]", opened: "queue.SimpleQueue[tuple[bool, Any]]") -> None:
    try:
        context = open_context()
    except BaseException as error:
        opened.put((False, error))
        return
    opened.put((True, None))
    with context:
        while job := jobs.get():
            function, done = job
            try:
                done.put((True, function(context)))
            except BaseException as error:
                done.put((False, error))
            del job, function, done
