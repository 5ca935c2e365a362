"""The models of a WeightsCache, and what was compiled of each for further instances.

Once the cache is finalized, any other model is an error that says what differs.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, TypeVar

from ..base.errors import DeviceError, TexelflowError, UnsupportedError, UsageError
from ..model.graph import Graph
from ..model.graph_identity import GraphIdentity, graph_identity
from ..reading.reader import read_model

_Made = TypeVar("_Made")
_NOT_FINALIZED = "call finalize_soft() or finalize_hard() of the WeightsCache before the first inference"
_HARD = "finalize_hard() of this WeightsCache has been called: it takes no further instance; make another WeightsCache"
_EMPTY = "there is nothing in this WeightsCache; make an instance with it before it is finalized"


class CacheState(Enum):
    """What a WeightsCache still takes."""

    OPEN = "open"  # any model
    SOFT = "soft"  # further instances of models that it has
    HARD = "hard"  # nothing


class _Model:
    """A graph, with its identity when that is first needed."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def identity(self) -> GraphIdentity:
        return graph_identity(self.graph)

    def is_same(self, other: "_Model") -> bool:
        return self.graph is other.graph or self.identity == other.identity


@dataclass(frozen=True)
class _Entry:
    """What was made of a model; `facts` are the choices by which it was made, by their names in messages."""

    model: _Model
    facts: Mapping[str, object]
    made: Any


class SharedModels:
    """The models of a cache. May be used from several threads of one process."""

    def __init__(self) -> None:
        self.state = CacheState.OPEN
        self.lock = threading.RLock()  # of all that the cache holds: whatever is shared is made once
        self._process = os.getpid()
        self._entries: list[_Entry] = []
        self._graphs: dict[tuple[bytes, str, int | str], Graph] = {}  # as read, by their files' digests, names, parts

    @property
    def names(self) -> tuple[str, ...]:
        """Of the models that further instances may be made of."""
        return tuple(dict.fromkeys(entry.model.graph.name for entry in self._entries))

    @property
    def has_any(self) -> bool:
        """Whether anything was made of one."""
        return not all(isinstance(entry.made, TexelflowError) for entry in self._entries)

    def get(self, source: Graph, facts: Mapping[str, object], make: Callable[[], _Made]) -> _Made:
        """What was made of this model with these choices, or is made now. Raises UsageError, and what `make` raises."""
        with self.lock:
            self.check_open()
            wanted = _Model(source)
            same = [entry for entry in self._entries if entry.facts == facts and entry.model.is_same(wanted)]
            if same:
                found: _Made | TexelflowError = same[0].made
                return _given(found)
            if self.state is not CacheState.OPEN:
                raise UsageError(f"this WeightsCache is finalized: {self._difference(wanted, facts)}")
            try:
                made: _Made | TexelflowError = make()
            except (UnsupportedError, DeviceError) as error:  # of this model further instances get it, too
                made = error
            self._entries.append(_Entry(wanted, facts, made))
            return _given(made)

    def read(self, data: bytes, name: str, subgraph: int | str) -> Graph:
        """As read_model, which is done once for the same bytes."""
        key = hashlib.sha256(data).digest(), name, subgraph
        with self.lock:
            known = self._graphs.get(key)
            found = read_model(data, name, subgraph) if known is None else known
            if self.state is CacheState.OPEN:
                self._graphs[key] = found
            return found

    def check_has(self, source: Graph, made: object) -> None:
        """Take what somebody else has made of a model, while it is open. Raises UsageError as get()."""
        with self.lock:
            self.check_open()
            if not any(entry.made is made for entry in self._entries):
                self.get(source, {"plan": id(made)}, lambda: made)

    def check_open(self) -> None:
        """Raise UsageError where no instance may be made."""
        if os.getpid() != self._process:
            raise UsageError("a WeightsCache belongs to the process that made it; make another one in each process")
        if self.state is CacheState.HARD:
            raise UsageError(_HARD)

    def check_run(self) -> None:
        """Raise UsageError ahead of an inference before the cache is finalized."""
        if self.state is CacheState.OPEN:
            raise UsageError(_NOT_FINALIZED)

    def finalize(self, state: CacheState) -> None:
        """From now on it is in this state. Raises UsageError after finalize_hard, or if nothing is in it."""
        with self.lock:
            if state is not self.state:
                self.check_open()
                if not self.has_any:
                    raise UsageError(_EMPTY)
            self.state = state
            if state is CacheState.HARD:
                self._entries.clear()
                self._graphs.clear()

    def _difference(self, wanted: _Model, facts: Mapping[str, object]) -> str:
        """What an instance has that no model here has."""
        name, identity = wanted.graph.name, wanted.identity
        known = [entry for entry in self._entries if entry.model.identity.structure == identity.structure]
        if not known:
            return f"{name} is another model than {', '.join(self.names)}, which it was finalized with"
        same = [entry for entry in known if entry.model.is_same(wanted)]
        if not same:
            alike = [entry for entry in known if entry.model.identity.hybrid == identity.hybrid]
            before = (alike or known)[0].model.identity
            if not alike:
                return f"{name} is in it with hybrid {before.hybrid}, not {identity.hybrid}"
            changed = next(number for number, each in identity.weights.items() if before.weights.get(number) != each)
            return (
                f"the weight {wanted.graph.tensors[changed].name} of {name} is not the one that it was finalized with"
            )
        return f"{name} is in it with {', '.join(_contrasts(same[0].facts, facts))}"


def _given(made: _Made | TexelflowError) -> _Made:
    if isinstance(made, TexelflowError):
        raise type(made)(str(made))
    return made


def _contrasts(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """What differs; of another backend no more than that."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    names = ["backend"] if "backend" in names else names
    shown = {name: (before.get(name), now.get(name)) for name in names}
    return [
        f"{name} {old}, not {new}" if _is_short(old) and _is_short(new) else f"another {name}"
        for name, (old, new) in shown.items()
    ]


def _is_short(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
