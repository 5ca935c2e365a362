"""Shares packed weights and GL programs of the same content between programs.

A store belongs to contexts that share objects. A lease is what one program has of it: what no lease has any more is
freed on the thread of the last one, where a context of these is current.
"""

import contextlib
import hashlib
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...model.layout import TEXEL_BYTES, aligned
from ..glsl.compiled_graph import CompiledGraph
from . import opengl
from .context import Context, compile_compute
from .context_mark import ContextMark
from .gl_buffers import device_buffer
from .library import CurrentContext
from .opengl import BufferRange

Lock = contextlib.AbstractContextManager[Any]
_NOTHING = BufferRange(0, 0, 0)


@dataclass(eq=False)
class _Block:
    """A buffer with packed weights, one behind the other."""

    buffer: int
    size_bytes: int
    checksum: int
    keys: Sequence[bytes]
    users: int = 0


@dataclass(eq=False)
class _Linked:
    """A GL program; `ran_in` are the contexts that have run it, whose drivers have finished compiling it."""

    name: int
    users: int = 0
    ran_in: set[object] = field(default_factory=set)


def _allow() -> None:
    """What needs no permission."""


@dataclass(eq=False)
class _Arena:
    """A buffer that programs of one context use in turns, as large as the one that needs most: its name stays."""

    buffer: int
    size_bytes: int = 0
    needs: list[int] = field(default_factory=list)  # of its users, in bytes


class GlStore:
    """Weights and programs of contexts that share objects. Its leases may be used on several threads."""

    def __init__(self, lock: Lock | None = None, mark: ContextMark | None = None) -> None:
        """`lock` is that of what is shared besides, and may be taken again; `mark` is one of its contexts'."""
        self.lock: Lock = lock or threading.RLock()
        self._mark = mark
        self.spans: dict[bytes, tuple[_Block, BufferRange]] = {}  # by the digest of the content
        self.linked: dict[str, _Linked] = {}  # by the source
        self.arenas: dict[tuple[object, int], _Arena] = {}  # by the context, and the buffer's number in plans
        self.leases = 0

    @property
    def weights_bytes(self) -> int:
        """Of all buffers with weights."""
        with self.lock:
            return sum(block.size_bytes for block in {block for block, _ in self.spans.values()})

    @property
    def arena_bytes(self) -> int:
        """Of all buffers that programs use in turns."""
        with self.lock:
            return sum(arena.size_bytes for arena in self.arenas.values())

    def is_in(self, context: Context) -> bool:
        """Whether this context has the objects of the store."""
        return self._mark is not None and self._mark.is_in(context)

    def end(self, context: Context) -> None:
        """What is left when the last lease has been given back."""
        if self._mark is not None:
            self._mark.delete(context)
            self._mark = None


class GlLease:
    """What one program has of a store. Use it only on the context's thread; release() gives all of it back."""

    def __init__(self, store: GlStore, context: Context, check_run: Callable[[], None] | None = None) -> None:
        """`check_run` is there if others use the store, too: it raises UsageError ahead of a run that may not be."""
        self._store, self._context, self._gl = store, context, context.gl
        self.check_run: Callable[[], None] = check_run or _allow
        self._blocks: list[_Block] = []
        self._sources: list[str] = []
        self._turns: list[tuple[tuple[object, int], int]] = []  # the arenas that it uses, and how much of them
        self._place: object = (threading.get_ident(), CurrentContext().handle) if check_run else self
        self._is_released = False
        with store.lock:
            store.leases += 1

    @property
    def buffer_bytes(self) -> int:
        """Of the buffers that it has a part in, and of what it needs of those that are used in turns."""
        return sum(block.size_bytes for block in self._blocks) + sum(size_bytes for _, size_bytes in self._turns)

    def weights(self, pieces: Sequence[npt.NDArray[Any]], alignment_bytes: int, label: str) -> list[BufferRange]:
        """Where each of these contents lies; what is new gets a buffer of that name. Raises DeviceError."""
        store = self._store
        contents = [np.ascontiguousarray(piece).reshape(-1).view(np.uint8) for piece in pieces]
        keys = [hashlib.sha256(content.data).digest() for content in contents]
        with store.lock:
            new = {key: each for key, each in zip(keys, contents, strict=True) if each.size and key not in store.spans}
            if new:
                self._add(new, alignment_bytes, label)
            spans = [store.spans[key] if each.size else None for key, each in zip(keys, contents, strict=True)]
            for block in dict.fromkeys(span[0] for span in spans if span):
                self._take(block)
        return [span[1] if span else _NOTHING for span in spans]

    def arenas(self, sizes_bytes: Sequence[int]) -> list[int]:
        """Buffers of at least these sizes, which programs of the same context use, too, when they run.

        Their content is lost when others come and go. Raises DeviceError.
        """
        with self._store.lock:
            return [self._arena((self._place, number), size_bytes) for number, size_bytes in enumerate(sizes_bytes)]

    def _arena(self, key: tuple[object, int], size_bytes: int) -> int:
        arena = self._store.arenas.get(key)
        if arena is None:
            arena = self._store.arenas[key] = _Arena(self._gl.generate("Buffers"))
        self._turns.append((key, size_bytes))
        arena.needs.append(size_bytes)
        self._fit(arena)
        self._context.check_errors(f"allocating {size_bytes} bytes for tensors")
        return arena.buffer

    def _fit(self, arena: _Arena) -> None:
        """Give it the size that its users need. Its storage is replaced, and not the name that programs bind."""
        needed = max(arena.needs)
        if needed != arena.size_bytes:
            self._gl.glBindBuffer(opengl.SHADER_STORAGE_BUFFER, arena.buffer)
            self._gl.glBufferData(opengl.SHADER_STORAGE_BUFFER, needed, None, opengl.DYNAMIC_COPY)
            arena.size_bytes = needed

    def program(self, source: str, label: str) -> int:
        """The GL program of a source, compiled if nobody has it. Raises DeviceError."""
        with self._store.lock:
            linked = self._store.linked.get(source)
            if linked is None:
                linked = self._store.linked[source] = _Linked(compile_compute(self._context, source, label))
            if source not in self._sources:
                self._sources.append(source)
                linked.users += 1
            return linked.name

    def is_ready(self, source: str) -> bool:
        """Whether the driver has run it here, and with that finished compiling it."""
        return self._place in self._store.linked[source].ran_in

    def has_run(self, source: str) -> None:
        """From now on it is ready."""
        self._store.linked[source].ran_in.add(self._place)

    def release(self) -> None:
        """Give it back, and delete what nobody else has; a second call does nothing."""
        store = self._store
        if self._is_released:
            return
        self._is_released = True
        with store.lock:
            for source in self._sources:
                linked = store.linked[source]
                linked.users -= 1
                if not linked.users:
                    self._gl.glDeleteProgram(store.linked.pop(source).name)
            for block in self._blocks:
                self._context.resets.forget(block.buffer)
                block.users -= 1
                if not block.users:
                    self._gl.delete("Buffers", block.buffer)
                    for key in block.keys:
                        del store.spans[key]
            for arena, size_bytes in self._turns:
                self._leave(arena, size_bytes)
            self._sources.clear()
            self._blocks.clear()
            self._turns.clear()
            store.leases -= 1
            if not store.leases:
                store.end(self._context)

    def _leave(self, key: tuple[object, int], size_bytes: int) -> None:
        arena = self._store.arenas[key]
        arena.needs.remove(size_bytes)
        if arena.needs:
            self._fit(arena)
        else:
            self._gl.delete("Buffers", self._store.arenas.pop(key).buffer)

    def _take(self, block: _Block) -> None:
        if block not in self._blocks:
            self._blocks.append(block)
            block.users += 1
            self._context.resets.keep(block.buffer, block.size_bytes, block.checksum)

    def _add(self, new: Mapping[bytes, npt.NDArray[np.uint8]], alignment_bytes: int, label: str) -> None:
        """One buffer for all of them."""
        offsets, end = [], 0
        for content in new.values():
            offsets.append(end)
            end = aligned(end + content.size, max(alignment_bytes, TEXEL_BYTES))
        packed = np.zeros(end, np.uint8)
        for content, offset in zip(new.values(), offsets, strict=True):
            packed[offset : offset + content.size] = content
        buffer = self._buffer(packed, label)
        block = _Block(buffer, end, zlib.crc32(packed.data), tuple(new))
        for (key, content), offset in zip(new.items(), offsets, strict=True):
            self._store.spans[key] = block, BufferRange(buffer, offset, content.size)

    def _buffer(self, packed: npt.NDArray[np.uint8], label: str) -> int:
        """A buffer with this content, with which the device is done when others learn of it."""
        buffer = device_buffer(self._context, packed.nbytes, packed)
        try:
            self._context.check_errors(f"allocating {packed.nbytes} bytes for weights")
        except BaseException:
            self._gl.delete("Buffers", buffer)
            raise
        self._context.label(opengl.BUFFER, buffer, label)
        self._gl.glFinish()
        return buffer


class LeasesWeights(Protocol):
    """What a program needs of a WeightsCache."""

    def lease(self, context: Context, compiled: CompiledGraph | None = None) -> GlLease:
        """A part in what contexts with the same objects have. Raises UsageError for what is not in it."""
        ...
