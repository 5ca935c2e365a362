"""Has calls use an interpreter one after the other: from several threads, from event loops, behind a fork."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from .call_errors import CallOrderError

_Result = TypeVar("_Result")


class Turns:
    """`with turns:` around what one thread does at a time; a turn within a turn of the same thread is the same one.

    In a process that was forked there are neither threads of the parent nor its OpenGL: where `survives_fork` says that
    nothing depends on them, calls go on in the child, else they raise.
    """

    survives_fork = True

    def __init__(self) -> None:
        self._begin()

    def __enter__(self) -> None:
        """Wait for the turn. Raises CallOrderError in a process that was forked, if that matters."""
        if os.getpid() != self._process:
            self._begin_in_child()
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """What `work` returns or raises, done by a thread of its own behind all that was asked for before.

        If it is cancelled, work that waits is never done; of what is done already the end is awaited, since it uses the
        caller's memory. Raises CallOrderError as a turn does.
        """
        if os.getpid() != self._process:
            self._begin_in_child()
        job = self._thread.submit(work)
        waiting = asyncio.wrap_future(job)
        try:
            await asyncio.wait([waiting])  # which ends without it if this is cancelled
        except asyncio.CancelledError:
            if not job.cancel():
                await asyncio.wait([waiting])
                waiting.exception()  # which nobody asks for any more
            raise
        return waiting.result()

    def close(self) -> None:
        """Let the thread go once it has done what was asked for."""
        self._thread.shutdown(wait=False)

    def _begin(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()
        self._thread = ThreadPoolExecutor(1, "texelflow run_async")  # which starts no thread before it has work

    def _begin_in_child(self) -> None:
        if not self.survives_fork:
            raise CallOrderError("this interpreter belongs to the process that was forked; make one in each process")
        self._begin()
