"""What programs keep from run to run, in buffers of its own; programs of one model share what has the same name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...base.errors import UsageError
from ...model.graph import KeptState
from ...model.layout import TEXEL_BYTES, MapShape, Storage
from ...model.packing import check_values, from_memory, in_file_type, to_kernels, to_memory
from ...model.state_values import StateValues, initial_state
from . import opengl
from .context import Context
from .gl_buffers import BufferBytes, device_buffer, read_buffer, write_buffer
from .opengl import BufferRange


@dataclass(frozen=True)
class StatePlace:
    """A state, and how kernels store it."""

    state: KeptState
    shape: MapShape
    storage: Storage


class GlStates:
    """Use it only on the context's thread; release() frees it, behind the programs that have it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: dict[str, tuple[StatePlace, BufferRange]] = {}

    def reserve(self, kept: StatePlace) -> BufferRange:
        """Where a state lies; what is new holds what it holds at first. Raises UsageError if it is stored otherwise."""
        name = kept.state.name
        if name not in self._kept:
            size_bytes = kept.storage.size_bytes(kept.shape)
            buffer = device_buffer(self._context, max(size_bytes, TEXEL_BYTES))
            self._context.check_errors(f"allocating {size_bytes} bytes for {name}")
            self._kept[name] = kept, BufferRange(buffer, 0, size_bytes)
            self._write(name, initial_state(kept.state))
        known, place = self._kept[name]
        if (known.shape, known.storage, known.state.own.dtype) != (kept.shape, kept.storage, kept.state.own.dtype):
            raise UsageError(f"{name} is kept as {known.state.own.dtype} {list(known.state.own.shape)}, not otherwise")
        return place

    def read(self) -> StateValues:
        """What is kept, by name, as the file has it. Waits for the GPU."""
        return {name: self._read(name) for name in self._kept}

    def write(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have it keep what `read` gave: of what it has. Raises UsageError for other values than a state's."""
        for name in self._kept.keys() & values.keys():
            self._write(name, values[name])

    def reset(self, names: Collection[str] | None = None) -> None:
        """Have it keep what it did before the first run: of all, or of these."""
        for name, (kept, _) in self._kept.items():
            if names is None or name in names:
                self._write(name, initial_state(kept.state))

    def as_they_are(self) -> Mapping[str, BufferBytes]:
        """What is in memory, to be put back."""
        return {name: read_buffer(self._context, place) for name, (_, place) in self._kept.items()}

    def put_back(self, before: Mapping[str, BufferBytes]) -> None:
        self._context.gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        for name, content in before.items():
            write_buffer(self._context, self._kept[name][1], content.ctypes.data)

    @property
    def buffer_bytes(self) -> int:
        return sum(place.size_bytes for _, place in self._kept.values())

    def release(self) -> None:
        """Free all buffers; a second call does nothing."""
        for _, place in self._kept.values():
            self._context.gl.delete("Buffers", place.buffer)
        self._kept.clear()

    def _read(self, name: str) -> npt.NDArray[np.generic]:
        kept, place = self._kept[name]
        own = kept.state.own
        values = from_memory(read_buffer(self._context, place), kept.shape, kept.storage)
        return in_file_type(values, own).reshape(own.shape)

    def _write(self, name: str, values: npt.NDArray[np.generic]) -> None:
        kept, place = self._kept[name]
        floats = to_kernels(check_values(values, kept.state.own), kept.state.own, kept.shape)
        floats = floats.reshape(kept.shape.rows, kept.shape.width, kept.shape.channels)
        content = np.ascontiguousarray(to_memory(floats, kept.storage))
        self._context.gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        write_buffer(self._context, place, content.ctypes.data)
