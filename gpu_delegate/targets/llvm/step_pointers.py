"""The arrays of tensors' addresses that the steps of a network are called with, in memory that can be moved."""

from bisect import bisect_right
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ...model.layout import FLOAT_BYTES
from ...model.packing import Float32Array
from .image import NativeImage


class StepPointers:
    """An array for each step, and for each shift (work.py) with which one of its ranges finds what is between steps."""

    def __init__(self, image: NativeImage, own: Float32Array, kept: Mapping[int, Float32Array]) -> None:
        """`own` is the memory behind what the image shares, `kept` that of states, by where these begin behind it.

        Before the first `move` no step may run.
        """
        parts = {(part.step, part.shift) for tasks in image.rounds for task in tasks for part in task}
        shifted = {(step, shift) for step, shift in parts if any(image.steps[step].local)}
        wanted = sorted({*shifted, *((step, 0) for step in range(len(image.steps)))})
        states = sorted(kept)
        starts = {True: image.weights.ctypes.data, False: own.ctypes.data - FLOAT_BYTES * image.shared_floats}
        addresses, moved, self._places = list[int](), list[int](), dict[int, dict[int, int]]()
        for step, shift in wanted:
            self._places.setdefault(step, {})[shift] = len(addresses)
            for (of_weights, place), is_local in zip(image.steps[step].tensors, image.steps[step].local, strict=True):
                is_shared = not of_weights and place < image.shared_floats
                if is_shared:
                    moved.append(len(addresses))
                start = 0 if is_shared else starts[of_weights]
                if not of_weights and place >= image.own_floats:
                    state = states[bisect_right(states, place) - 1]
                    start = kept[state].ctypes.data - FLOAT_BYTES * state
                addresses.append(start + FLOAT_BYTES * (place - shift * is_local))
        self._addresses, self._moved, self._start = np.array(addresses, np.int64), np.array(moved, np.intp), 0

    def arrays(self, step: int) -> Mapping[int, int]:
        """Where the arrays of a step begin, by shift."""
        first = self._addresses.ctypes.data
        places = self._places[step].items()
        return MappingProxyType({shift: first + place * self._addresses.itemsize for shift, place in places})

    def move(self, arena: Float32Array) -> None:
        """What is shared lies in this arena from now on."""
        start = arena.ctypes.data
        if start != self._start:
            self._addresses[self._moved] += start - self._start
            self._start = start
