"""Runs functions on the thread of an OpenGL context: one of its own, or the caller's.

Whoever calls from a wrong thread, from a process that was forked, or with a context that is not there any more gets an
exception, and OpenGL is left alone.
"""

import contextlib
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import moderngl

from ..base.errors import DeviceError, TexelflowError, UsageError
from ..programs.model_sharing import ModelSharing
from ..targets.gl.context import Context, open_context
from ..targets.gl.context_mark import ContextMark
from ..targets.gl.library import CurrentContext, release_thread

_Result = TypeVar("_Result")
_Opener = Callable[[], contextlib.AbstractContextManager[Context]]
_END_S = 5.0  # for which the end waits for the thread: a driver may hang, but no program does because of it
_POLL_S = 1.0  # after which a caller looks whether there is a thread that will ever answer
RELEASED = "this GpuDelegate has been released; make another one"


class GlWorker(Protocol):
    """One context of OpenGL, and where it may be used."""

    def call(self, work: Callable[[Context], _Result]) -> _Result:
        """What `work` returns or raises. Raises UsageError or DeviceError where it cannot be run."""

    def release(self) -> None:
        """Free what the worker has opened; a second call does nothing. What was made in a context of the caller's own
        has to be freed before, by calls."""


def open_worker(context: moderngl.Context | None, weights_cache: ModelSharing | None = None) -> GlWorker:
    """A thread with a context of its own, or, for a context of the caller's, this thread. Raises as they do.

    Those with the same cache share the thread.
    """
    if context is not None:
        return CallerWorker(context)
    return SharedWorker(weights_cache) if weights_cache else ThreadWorker()


class ThreadWorker:
    """A thread that opens a context and runs one call after the other. It ends with this object or with Python."""

    def __init__(self, opener: _Opener | None = None) -> None:
        """Raises DeviceError where there is no OpenGL."""
        self._jobs: _Jobs = queue.SimpleQueue()
        opening = _Job(lambda context: context)
        target = threading.Thread(
            target=_serve, args=(self._jobs, opening, opener or open_context), name="texelflow OpenGL", daemon=True
        )
        self._thread, self._process = target, os.getpid()
        target.start()
        self._finalizer = weakref.finalize(self, _end, self._jobs, target, self._process)
        self._context = opening.result(target)

    def call(self, work: Callable[[Context], _Result]) -> _Result:
        """See GlWorker; from any thread of the process that made it."""
        _check_process(self._process)
        if not self._finalizer.alive:
            raise UsageError(RELEASED)
        if threading.current_thread() is self._thread:  # a call within a call
            return work(self._context)
        job = _Job(work)
        self._jobs.put(job)
        return job.result(self._thread)

    def release(self) -> None:
        """See GlWorker: whatever is in the context is freed with it."""
        self._finalizer()


class SharedWorker:
    """The thread of all those that have the same cache, one call after the other; it ends with the last of them."""

    def __init__(self, weights_cache: ModelSharing) -> None:
        """Raises DeviceError where there is no OpenGL, UsageError where the cache takes no further instance."""
        self._stack = contextlib.ExitStack()
        held = weights_cache.held(("worker",), lambda: ThreadWorker(weights_cache.open_context), ThreadWorker.release)
        self._worker: ThreadWorker | None = self._stack.enter_context(held)

    def call(self, work: Callable[[Context], _Result]) -> _Result:
        """See GlWorker; from any thread of the process that made it."""
        if self._worker is None:
            raise UsageError(RELEASED)
        return self._worker.call(work)

    def release(self) -> None:
        """See GlWorker. What others have in the context stays; what this one has is freed by calls before."""
        self._worker = None
        self._stack.close()


class CallerWorker:
    """The thread that makes it, with a context of moderngl's that belongs to the caller."""

    def __init__(self, mgl: moderngl.Context) -> None:
        """Raises UsageError for a context that cannot be used here, DeviceError below OpenGL 4.3 or ES 3.1."""
        if not isinstance(mgl, moderngl.Context):
            raise UsageError(f"context is a moderngl.Context, not {type(mgl).__name__}")
        if _is_gone(mgl):
            raise UsageError("context has been released; give one that is current in this thread")
        self._mgl, self._thread, self._process = mgl, threading.get_ident(), os.getpid()
        self._is_released = False
        with _made_current(mgl):
            self._current = CurrentContext()
            self._context = Context.from_moderngl(mgl)
            self._mark = ContextMark(self._context)

    def call(self, work: Callable[[Context], _Result]) -> _Result:
        """See GlWorker. Makes the context current if another one is, as far as moderngl can, and that one after it."""
        self._check()
        with contextlib.nullcontext() if self._current.is_current() else _made_current(self._mgl):
            if not self._current.is_current():
                raise UsageError("the context that was given is not current in this thread")
            if not self._mark.is_in(self._context):
                raise DeviceError("the context that was given is gone")
            return work(self._context)

    def release(self) -> None:
        """See GlWorker; the context itself stays."""
        with contextlib.suppress(TexelflowError):
            self.call(self._free)
        self._is_released = True

    def _free(self, context: Context) -> None:
        self._mark.delete(context)
        context.release()

    def _check(self) -> None:
        _check_process(self._process)
        if self._is_released:
            raise UsageError(RELEASED)
        if threading.get_ident() != self._thread:
            raise UsageError(
                "what works in a context of yours belongs to the thread that made it; run the interpreter there"
            )
        if _is_gone(self._mgl):
            raise DeviceError("the context that was given has been released")


class _Job(Generic[_Result]):
    """One call: what is to be done, and what came of it."""

    def __init__(self, work: Callable[[Context], _Result]) -> None:
        self._work: Callable[[Context], _Result] | None = work
        self._found: tuple[_Result] | None = None
        self._error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def run(self, context: Context) -> None:
        assert self._work is not None
        try:
            self._found = (self._work(context),)
        except BaseException as error:
            self.fail(error)
        else:
            self._work = None
            self._done.release()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._work = None  # last: it says that the job is over
        self._done.release()

    def result(self, thread: threading.Thread) -> _Result:
        """Wait for it. Memory that it uses must outlive it: an interruption waits, too, unless a second one comes."""
        try:
            self._wait(thread)
        except BaseException:
            self._wait(thread)
            raise
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame
        assert self._found is not None
        return self._found[0]

    def _wait(self, thread: threading.Thread) -> None:
        """Whether a wait before was interrupted behind its acquire() does not matter: `_work` tells what is over."""
        while self._work is not None and not self._done.acquire(timeout=_POLL_S):
            if self._work is not None and not thread.is_alive():
                raise UsageError(RELEASED)


_Jobs = queue.SimpleQueue[_Job[Any] | None]


def _serve(jobs: _Jobs, opening: _Job[Context], opener: _Opener) -> None:
    """What the thread does; it has no reference to its ThreadWorker."""
    with contextlib.ExitStack() as stack:
        try:
            context = stack.enter_context(opener())
        except BaseException as error:
            opening.fail(error)
            return
        opening.run(context)
        del opening
        while job := jobs.get():
            job.run(context)
            del job
    release_thread()


def _end(jobs: _Jobs, thread: threading.Thread, process: int) -> None:
    """Have the thread end, and wait for that: the context is to be gone before libraries of the driver are unloaded."""
    if os.getpid() != process:
        return
    jobs.put(None)
    if threading.current_thread() is not thread:
        thread.join(_END_S)


def _check_process(process: int) -> None:
    if os.getpid() != process:
        raise UsageError("a GpuDelegate does not work in a process forked from its own; start processes anew")


def _is_gone(mgl: moderngl.Context) -> bool:
    return isinstance(mgl.mglo, moderngl.InvalidObject)


@contextlib.contextmanager
def _made_current(mgl: moderngl.Context) -> Iterator[None]:
    """Within it the context is current, if moderngl made it, and what was current before is so again afterwards.

    The context of a window may be gone without moderngl's knowledge, and would crash then.
    """
    if not getattr(getattr(mgl.mglo, "_context", None), "standalone", False):
        yield
        return
    before = None
    with contextlib.suppress(DeviceError):
        before = CurrentContext()
    try:
        with mgl:
            yield
    finally:
        if before:
            before.restore()
