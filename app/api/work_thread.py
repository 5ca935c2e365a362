"""A thread for what OpenGL has to do, of one instance or of all that share a WeightsCache."""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any, TypeVar

from .gpu_delegate.programs.model_sharing import ModelSharing
from .gpu_delegate.targets.gl.library import release_thread

__all__ = ["SharedThread"]

_Result = TypeVar("_Result")


class SharedThread:
    """The thread of all Segmenters and Pipelines with the same cache; it ends with the last of them."""

    def __init__(self, weights_cache: ModelSharing) -> None:
        """Raises UsageError where the cache takes no further instance."""
        self._stack = contextlib.ExitStack()
        self._last: Future[Any] | None = None

        def make() -> ThreadPoolExecutor:
            return ThreadPoolExecutor(1, "texelflow")

        def end(pool: ThreadPoolExecutor) -> None:
            with contextlib.suppress(RuntimeError):  # the process ends, and the thread has
                pool.submit(release_thread)
            pool.shutdown(wait=False)

        held = weights_cache.held(("segmenters",), make, end)
        self._pool = self._stack.enter_context(held)

    def submit(self, work: Callable[..., _Result], *arguments: Any) -> Future[_Result]:
        """As an executor's."""
        self._last = future = self._pool.submit(work, *arguments)
        return future

    def shutdown(self, wait: bool) -> None:
        """Leave it to others, once what was submitted last is done if `wait` says so; a second call does nothing."""
        if wait and self._last:
            wait_for([self._last])
        self._stack.close()
