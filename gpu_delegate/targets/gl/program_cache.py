"""The cache of compiled graphs and of driver binaries for one driver.

Two kinds of entries: graphs (CompiledGraphs, by kept_graph.py) and binaries (the driver's programs). The key of each
is all that it depends on, so that another driver, driver version or GPU has entries of its own. Whatever is missing,
damaged or refused is compiled.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from ...base.disk_cache import DiskCache
from .opengl import GL
from .program_binary import ask_for_binary, binary_formats, load_binary, read_binary

VARIABLE = "TEXELFLOW_PROGRAM_CACHE"  # 0: everything is compiled anew, and nothing is kept
GRAPHS, BINARIES = "graphs", "binaries"

_MOST_WAITING_BYTES = 4 << 20  # then they are written, lest a stream of frames of many sizes fills the memory
_MOST_NAME = 100  # characters of a name in a key, where it is for people


class EntryStore(Protocol):
    """Where entries are kept: a DiskCache, or a file of the caller's."""

    def get(self, kind: str, key: str) -> bytes | None:
        """The content of an entry, None where there is none or it is damaged."""

    def put_all(self, entries: Iterable[tuple[str, str, bytes]]) -> bool:
        """Keep entries, each a kind, a key and content; whether all are kept."""


class ProgramCache:
    """What is kept for one context. `loaded` and `compiled` count its programs, `loaded_graphs` compiled graphs."""

    def __init__(self, gl: GL, driver: Sequence[str], store: EntryStore | None = None) -> None:
        """`driver` is what the driver says of itself; without a store it is the user's cache, unless VARIABLE is 0."""
        self._gl = gl
        self.driver = tuple(driver)
        is_wanted = store is not None or os.environ.get(VARIABLE) != "0"
        self._store = (store or DiskCache()) if is_wanted else None
        self._formats = binary_formats(gl) if is_wanted else frozenset[int]()
        self._waiting = dict[tuple[str, str], bytes]()  # content by kind and key
        self._waiting_bytes = 0
        self._is_paused = False
        self.loaded = self.compiled = self.loaded_graphs = 0

    @property
    def is_on(self) -> bool:
        """Whether anything is kept at present."""
        return self._store is not None and not self._is_paused

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """In the with-block nothing is looked up or kept."""
        before, self._is_paused = self._is_paused, True
        try:
            yield
        finally:
            self._is_paused = before

    def get(self, kind: str, key: str) -> bytes | None:
        """What is kept, of this run or an earlier one; key_of makes the key."""
        if self._store is None or not self.is_on:
            return None
        return self._waiting.get((kind, key)) or self._store.get(kind, key)

    def add(self, kind: str, key: str, content: bytes) -> None:
        """Have it kept by the next write(), which comes by itself where much waits."""
        if self.is_on:
            self._waiting_bytes += len(content) - len(self._waiting.get((kind, key), b""))
            self._waiting[kind, key] = content
            if self._waiting_bytes > _MOST_WAITING_BYTES:
                self.write()

    def write(self) -> bool:
        """Keep what was added since the last time, all at once; False where that is not possible."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        return self._store is None or not waiting or self._store.put_all((*key, each) for key, each in waiting.items())

    def key_of(self, *parts: object, name: str = "") -> str:
        """What an entry is known by: the driver, a digest of all parts, and a name for people."""
        digest = hashlib.sha256(repr((self.driver, parts)).encode(errors="surrogatepass")).hexdigest()
        names = [*map(_shown, self.driver), digest, *([_shown(name)] if name else [])]
        return json.dumps(names)

    # Programs of OpenGL -------------------------------------------------------------------------------------------

    def load(self, sources: Mapping[int, str]) -> int | None:
        """A program that was linked of these sources, by stage, in an earlier run; 0 for one that the driver refuses.

        None where none is kept.
        """
        content = self.get(BINARIES, self.key_of(sorted(sources.items()))) if self._formats else None
        if content is None:
            return None
        program = load_binary(self._gl, content, self._formats)
        self.loaded += bool(program)
        return program

    def prepare(self, program: int) -> None:
        """To be called for a program before it is linked."""
        if self.is_on and self._formats:
            ask_for_binary(self._gl, program)

    def keep(self, sources: Mapping[int, str], program: int) -> None:
        """Have a program kept that was linked of these sources."""
        self.compiled += 1
        content = read_binary(self._gl, program) if self.is_on and self._formats else None
        if content:
            self.add(BINARIES, self.key_of(sorted(sources.items())), content)


def _shown(name: str) -> str:
    """A name as short as keys need it; the digest has all of it."""
    return name[:_MOST_NAME].encode("ascii", "replace").decode()
