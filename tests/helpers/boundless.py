"""A Program whose bindings reach past its tensors, so that reads and writes out of bounds show.

Bindings of exact ranges hide what a kernel reads or writes past them: software renderers drop it, while a GPU may hand
out or overwrite what lies there. Here each binding reaches to the end of its buffer, and what nothing has written is
not a number, so that the values of other tensors tell.
"""

import ctypes
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.model.layout import PHWC4, Storage
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import write_buffer
from texelflow.gpu_delegate.targets.gl.gl_store import GlLease, GlStore, LeasesWeights
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.gl.runtime import Program, _Step
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph

GUARD_BYTES = 1 << 16  # behind each buffer
NO_NUMBER = np.uint32(0xFFFFFFFF).view(np.float32)  # nor are its two halves


class _GuardedLease(GlLease):
    """Weights with a guard behind them; tells the length of their buffer."""

    def __init__(self, lengths: dict[int, int], context: Context) -> None:
        super().__init__(GlStore(), context)
        self._lengths = lengths

    def _buffer(self, packed: npt.NDArray[np.uint8], label: str) -> int:
        guarded = np.concatenate([packed, np.full(GUARD_BYTES // 4, NO_NUMBER, np.float32).view(np.uint8)])
        name = super()._buffer(guarded, label)
        self._lengths[name] = guarded.nbytes
        return name


class BoundlessProgram(Program):
    """The program as it is, in buffers with a guard at the end."""

    def __init__(self, context: Context, compiled: CompiledGraph) -> None:
        self._lengths: dict[int, int] = {}  # of each buffer, in bytes
        super().__init__(context, compiled)

    def _leased(self, weights_cache: LeasesWeights | None) -> GlLease:
        return _GuardedLease(self._lengths, self.context)

    def _buffer(self, size_bytes: int) -> int:
        values = np.full((size_bytes + GUARD_BYTES) // 4, NO_NUMBER, np.float32)
        name = super()._buffer(values.nbytes)
        write_buffer(self.context, BufferRange(name, 0, values.nbytes), values.ctypes.data)
        self._lengths[name] = values.nbytes
        return name

    def _texture(self, buffer: int, offset_bytes: int, size_bytes: int, storage: Storage = PHWC4) -> int:
        return super()._texture(buffer, offset_bytes, self._lengths[buffer] - offset_bytes, storage)

    def _step(self, number: int) -> _Step:
        step = super()._step(number)
        grown = []
        for kind, first, count, names, offsets, _ in step.blocks:
            ends = [self._lengths[name] - offset for name, offset in zip(names, offsets, strict=True)]
            grown.append((kind, first, count, names, offsets, (ctypes.c_ssize_t * len(ends))(*ends)))
        return replace(step, blocks=tuple(grown))

    def __enter__(self) -> "BoundlessProgram":
        return self

    def strayed(self) -> bool:
        """Whether something was written behind the last tensor."""
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        return any(not np.isnan(self._guard(buffer)).all() for buffer in self._tensors)

    def _guard(self, buffer: int) -> Float32Array:
        """What follows the last tensor of a buffer."""
        guard = np.empty(GUARD_BYTES // 4, np.float32)
        self._gl.glBindBuffer(opengl.COPY_READ_BUFFER, buffer)
        self._gl.read_buffer(
            opengl.COPY_READ_BUFFER, self._lengths[buffer] - GUARD_BYTES, GUARD_BYTES, guard.ctypes.data
        )
        return guard
