"""What instances of the models in one WeightsCache share: graphs, packed weights, programs, contexts, threads."""

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from ..base.errors import DeviceError
from ..device.choices import UNMEASURED
from ..device.device import Device
from ..model.graph import Graph
from ..plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from ..plan.memory.memory_options import MemoryOptions
from ..saving.kept_graph import kept_graph
from ..targets.gl.context import Context, open_context
from ..targets.gl.context_mark import ContextMark
from ..targets.gl.gl_store import GlLease, GlStore
from ..targets.gl.program_cache import ProgramCache
from ..targets.glsl.compiled_graph import CompiledGraph
from ..targets.glsl.compiled_partitions import CompileGraph
from ..targets.llvm.arenas import Arenas
from .shared_models import CacheState, SharedModels

_Made = TypeVar("_Made")
_CONTEXT = "context"


@dataclass(eq=False)
class _Held:
    """What is there as long as somebody holds it; by its key others find it."""

    key: tuple[Any, ...]
    value: Any = None
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)  # of the making
    finalize: Callable[[Any, CacheState], object] | None = None  # with the cache


class ModelSharing:
    """The inside of a WeightsCache, for the engine and what is around it. May be used from several threads."""

    def __init__(self) -> None:
        self._models = SharedModels()
        self._lock = self._models.lock
        self._stores: list[GlStore] = []  # of each group of contexts that share objects
        self._held: list[_Held] = []
        self._arenas: Callable[[], Arenas | None] = lambda: None

    def finalize_soft(self) -> None:
        """As of a WeightsCache."""
        self._finalize(CacheState.SOFT)

    def finalize_hard(self) -> None:
        """The same."""
        self._finalize(CacheState.HARD)

    def _finalize(self, state: CacheState) -> None:
        self._models.finalize(state)
        with self._lock:
            held = [each for each in self._held if each.finalize and each.value is not None]
        for each in held:
            assert each.finalize
            each.finalize(each.value, state)

    @property
    def weights_bytes(self) -> int:
        """Of the weights that instances share, in OpenGL."""
        with self._lock:
            return sum(store.weights_bytes for store in self._stores)

    @property
    def arena_bytes(self) -> int:
        """Of the memory that instances use in turns, on one thread of OpenGL and in native code, for what is inside."""
        with self._lock:
            arenas = self._arenas()
            return sum(store.arena_bytes for store in self._stores) + (arenas.size_bytes if arenas else 0)

    @property
    def has_models(self) -> bool:
        """Whether an instance has been made that shares something, so that it may be finalized."""
        return self._models.has_any

    @property
    def names(self) -> tuple[str, ...]:
        """Of its models."""
        return tuple(self._models.names)

    @property
    def state(self) -> CacheState:
        """What it still takes."""
        return self._models.state

    def check_run(self) -> None:
        """Raise UsageError before it is finalized."""
        self._models.check_run()

    def read_model(self, data: bytes, name: str = "model", subgraph: int | str = 0) -> Graph:
        """As the reader's, done once for the same bytes. Raises ModelError, UsageError."""
        return self._models.read(data, name, subgraph)

    def compile(
        self, compiler: CompileGraph, source: Graph, device: Device, options: CompileOptions = COMPILE_DEFAULTS
    ) -> CompiledGraph:
        """As the compiler, for programs that take turns; made once for equal graphs.

        What was tuned meanwhile does not make another model of it: the first plan stays. Raises UsageError for another
        model once it is finalized.
        """
        options = replace(options, memory=in_turns(options.memory))
        facts = {**vars(options), **facts_of_device(device)}
        return self.shared(source, facts, lambda: compiler(source, device, options))

    def shared(self, source: Graph, facts: Mapping[str, object], make: Callable[[], _Made]) -> _Made:
        """What is made of a model with choices that have these names in messages: once, and raising UsageError so."""
        return self._models.get(source, facts, make)

    def arenas(self) -> Arenas:
        """What its networks of native code compute in; it goes with the last of them."""
        with self._lock:
            found = self._arenas()
            if found is None:
                found = Arenas()
                self._arenas = weakref.ref(found)
            return found

    def lease(self, context: Context, compiled: CompiledGraph | None = None) -> GlLease:
        """A part in what contexts with the same objects have, for a program of a model or for shaders of its border.

        Raises UsageError once it is finalized and does not have the model.
        """
        with self._lock:
            if compiled:
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
    def held(
        self,
        key: tuple[Any, ...],
        make: Callable[[], _Made],
        end: Callable[[_Made], object],
        finalize: Callable[[_Made, CacheState], object] | None = None,
    ) -> Iterator[_Made]:
        """What is made for the first of several with-blocks, on any threads, and ended behind the last.

        `finalize` is called for it when the cache is finalized.
        """
        with self._lock:
            self._models.check_open()
            held = next((each for each in self._held if each.key == key), None)
            if held is None:
                held = _Held(key, finalize=finalize)
                self._held.append(held)
            held.users += 1
        try:
            with held.lock:  # not the cache's: what is made may want that on a thread of its own
                if held.value is None:
                    held.value = make()
            yield held.value
        finally:
            with self._lock:
                held.users -= 1
                is_last = not held.users
                if is_last:
                    self._held.remove(held)
            if is_last and held.value is not None:
                end(held.value)

    @contextlib.contextmanager
    def open_context(self) -> Iterator[Context]:
        """The context of this thread, which shares objects with those of other threads, as far as the system has such.

        It is opened for the first with-block and released behind the last. Raises DeviceError.
        """
        with self._lock:  # what was lost with its GPU is nobody's any more, until its holders notice
            lost = [each for each in self._contexts() if not _is_well(each.value)]
            for each in lost:
                each.key = ()
        with self.held((_CONTEXT, threading.get_ident()), self._open, Context.release) as context:
            context.make_current()
            yield context

    def _open(self) -> Context:
        with self._lock:  # no context is released meanwhile
            siblings = (each.value.sibling() for each in self._contexts())
            return next((found for found in siblings if found), None) or open_context()

    def _contexts(self) -> list[_Held]:
        return [each for each in self._held if each.key[:1] == (_CONTEXT,) and each.value is not None]


def graph_compiler(programs: ProgramCache, weights_cache: ModelSharing | None) -> CompileGraph:
    """As compile_graph: what a cache has, if there is one, or what earlier runs have kept, is not made again."""
    kept = partial(kept_graph, programs)
    return partial(weights_cache.compile, kept) if weights_cache else kept


def in_turns(memory: MemoryOptions) -> MemoryOptions:
    """The same for programs that may use memory in turns; where nothing shares memory, programs do not either."""
    return memory if memory.mode == "naive" else replace(memory, shares=True)


def facts_of_device(device: Device) -> Mapping[str, object]:
    """What tells devices apart; of what was measured on one that does not count."""
    return {"backend": "OpenGL", "layout": replace(device, choices=UNMEASURED)}


def _is_well(context: Context) -> bool:
    """Whether its GPU has not been reset."""
    try:
        context.resets.check_status()
    except DeviceError:
        return False
    return True
