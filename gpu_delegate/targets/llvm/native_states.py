"""What networks keep from run to run, in memory of its own; networks of one model share what has the same name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...base.errors import UsageError
from ...model.graph import ABSENT, KeptState
from ...model.packing import Float32Array, check_values, in_file_type, to_kernels
from ...model.state_values import StateValues, initial_state
from .image import NativeImage, StoredTensor
from .planes import from_planes, reserve_floats, write_planes


@dataclass(frozen=True)
class _Kept:
    state: KeptState
    stored: StoredTensor
    memory: Float32Array


class NativeStates:
    """Not for use from several threads at once."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def reserve(self, image: NativeImage, state: KeptState) -> Mapping[int, Float32Array]:
        """The memory of a network's state by its place, if it reads it; what is new holds what it holds at first.

        Raises UsageError if it is stored otherwise.
        """
        stored = image.tensors[state.read if state.read != ABSENT else state.written]
        if state.name not in self._kept:
            self._kept[state.name] = _Kept(state, stored, reserve_floats(stored.floats))
            self._write(state.name, initial_state(state))
        known = self._kept[state.name]
        if (known.stored.shape, known.stored.storage) != (stored.shape, stored.storage):
            raise UsageError(f"{state.name} is kept as {list(known.state.own.shape)}, not {list(state.own.shape)}")
        return {stored.place: known.memory} if state.read != ABSENT else {}

    def memory(self, name: str) -> Float32Array:
        """The floats of a state."""
        return self._kept[name].memory

    def read(self) -> StateValues:
        """What is kept, by name, as the file has it."""
        return {
            name: in_file_type(from_planes(kept.memory, kept.stored.shape, kept.stored.storage), kept.state.own)
            .reshape(kept.state.own.shape)
            .copy()
            for name, kept in self._kept.items()
        }

    def write(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have it keep what `read` gave: of what it has. Raises UsageError for other values than a state's."""
        for name in self._kept.keys() & values.keys():
            self._write(name, values[name])

    def reset(self, names: Collection[str] | None = None) -> None:
        """Have it keep what it did before the first run: of all, or of these."""
        for name, kept in self._kept.items():
            if names is None or name in names:
                self._write(name, initial_state(kept.state))

    def _write(self, name: str, values: npt.NDArray[np.generic]) -> None:
        kept = self._kept[name]
        given = to_kernels(check_values(values, kept.state.own), kept.state.own, kept.stored.shape)
        write_planes(kept.memory, given, kept.stored.shape, kept.stored.storage)
