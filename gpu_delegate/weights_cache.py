"""Instances of models go in; they get packed weights and compiled programs that they share with others like them."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .choices import UNMEASURED
from .context import Context, open_context
from .context_mark import ContextMark
from .device import Device
from .errors import DeviceError
from .gl_store import GlLease, GlStore
from .graph import Graph
from .program import CompiledGraph, compile_graph
from .shared_models import CacheState, SharedModels


@dataclass(eq=False)
class _OpenedContext:
    """A context of the cache's own, for all instances that one thread makes."""

    context: Context
    thread: int
    users: int = 0


class WeightsCache:
    """Several instances of one model share packed weights and compiled programs: each takes its tensors alone.

        cache = texelflow.WeightsCache()
        programs = [texelflow.Program(model, weights_cache=cache) for _ in range(4)]
        cache.finalize_soft()

    Until it is finalized, several models may be added, whose equal layers share weights; nothing may run before that.
    After finalize_soft() further instances of the same models may be made, after finalize_hard() none. What instances
    share is freed with the last one that has it, in whichever order they go. Instances may be on several threads.
    """

    def __init__(self) -> None:
        self._models = SharedModels()
        self._lock = self._models.lock
        self._stores: list[GlStore] = []  # of each group of contexts that share objects
        self._opened: list[_OpenedContext] = []

    def finalize_soft(self) -> None:
        """From now on inferences may be made, and further instances of the models that are in it, but of no others.

        Raises UsageError after finalize_hard(), and if no instance has been made.
        """
        self._models.finalize(CacheState.SOFT)

    def finalize_hard(self) -> None:
        """From now on inferences may be made, and no instances; what only further instances would need is freed.

        Raises UsageError if no instance has been made.
        """
        self._models.finalize(CacheState.HARD)

    @property
    def weights_bytes(self) -> int:
        """Of the weights that instances share, in OpenGL."""
        with self._lock:
            return sum(store.weights_bytes for store in self._stores)

    # For the engine and the program -------------------------------------------------------------------------------

    def check_run(self) -> None:
        """Raise UsageError before it is finalized."""
        self._models.check_run()

    def compile(self, source: Graph, device: Device, **options: Any) -> CompiledGraph:
        """As compile_graph, with its options; made once for equal graphs. Raises UsageError once it is finalized.

        What was tuned meanwhile does not make another model of it: the first plan stays.
        """
        facts = {"precision": "fp32", **options, "layout": replace(device, choices=UNMEASURED)}
        return self._models.get(source, facts, lambda: compile_graph(source, device, **options))

    def lease(self, context: Context, compiled: CompiledGraph) -> GlLease:
        """A part in what contexts with the same objects have, for a program of what compile() gave.

        Raises UsageError once it is finalized and does not have that.
        """
        with self._lock:
            self._models.check_has(compiled.source, compiled)
            return GlLease(self._store(context), context, self.check_run)

    def _store(self, context: Context) -> GlStore:
        self._stores = [store for store in self._stores if store.leases]
        found = next((store for store in self._stores if store.is_in(context)), None)
        if found is None:
            found = GlStore(self._lock, ContextMark(context))
            self._stores.append(found)
        return found

    @contextlib.contextmanager
    def open_context(self) -> Iterator[Context]:
        """The context of this thread, which shares objects with those of other threads, as far as the system has such.

        It is opened for the first with-block and released behind the last. Raises DeviceError.
        """
        with self._lock:
            self._models.check_open()
            opened = self._on_this_thread() or self._open()
            opened.users += 1
        try:
            opened.context.make_current()
            yield opened.context
        finally:
            with self._lock:
                opened.users -= 1
                if not opened.users:
                    self._opened.remove(opened)
                    opened.context.release()

    def _on_this_thread(self) -> _OpenedContext | None:
        thread = threading.get_ident()
        return next((each for each in self._opened if each.thread == thread and _is_well(each.context)), None)

    def _open(self) -> _OpenedContext:
        others = (each.context for each in self._opened if _is_well(each.context))
        context = next((found for other in others if (found := other.sibling())), None) or open_context()
        opened = _OpenedContext(context, threading.get_ident())
        self._opened.append(opened)
        return opened


def _is_well(context: Context) -> bool:
    """Whether its GPU has not been reset."""
    try:
        context.resets.check_status()
    except DeviceError:
        return False
    return True
