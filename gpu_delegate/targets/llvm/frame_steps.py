"""Machine code that samples pictures in front of a network and resizes masks behind it.

Each is a kernel with its tables; what changes from frame to frame are addresses among its words. Their rows may be
shared by threads, as those of a network's steps.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model.graph import Steps
from ...model.layout import FLOAT_BYTES
from ...model.packing import Float32Array
from .compiler import CompiledCode, compile_module
from .cutting import StepSize, cut_step, joined_rounds
from .ir import Module
from .machine import CpuTarget
from .mask_resize import ResizedMask, mask_function, mask_tables
from .native_runtime import NativeNetwork
from .sampler import SampledPicture, sampler_function, sampler_tables
from .sampling_tables import WordTable
from .work import StepAddresses, WorkTable

_NAME = "frame_step"
_SAMPLER_WORK, _MASK_WORK = 100, 10  # of a pixel, in multiply-adds of a network that take as long


class FrameKernels:
    """Kernels for one kind of CPU; those that were made once, for whichever sizes, are kept."""

    def __init__(self, target: CpuTarget) -> None:
        self.target = target
        self._made = dict[str, CompiledCode]()

    def compiled(self, write: Callable[[Module], None]) -> CompiledCode:
        """The code of the function that is written. Raises DeviceError."""
        module = Module()
        write(module)
        if module.text not in self._made:
            self._made[module.text] = compile_module(module.text, self.target)
        return self._made[module.text]


class SamplerStep:
    """Fills the planes of a network's input from pictures of one format."""

    def __init__(
        self,
        picture: SampledPicture,
        value_range: tuple[float, float],
        planes: npt.NDArray[np.float32],
        kernels: FrameKernels,
        steps: Steps | None = None,
    ) -> None:
        """`planes` are the first three of the input in memory, (3, H, W), which must outlive this.

        `steps` are the whole numbers that the input takes, if it takes no others.
        """
        self.rows, columns = picture.size
        lanes = widest(kernels.target, columns)
        self._code = kernels.compiled(lambda module: sampler_function(module, _NAME, picture, lanes, bool(steps)))
        self._gain = np.ones(1, np.float32)
        self._planes = planes
        sources = [0] * (2 * len(picture.planes))
        plane_bytes, row_bytes, _ = planes.strides
        out = [planes.ctypes.data, plane_bytes // FLOAT_BYTES, row_bytes // FLOAT_BYTES]
        self._words = WordTable([*sources, self._gain.ctypes.data, *out])
        self._tables = sampler_tables(picture, value_range, steps)
        self.addresses = StepAddresses(self._code.address(_NAME), self._words.address, self._tables.address)
        self.size = StepSize(self.rows, 1, self.rows * columns * _SAMPLER_WORK)

    def take(self, planes: Sequence[npt.NDArray[Any]], gain: float = 1.0) -> None:
        """The next picture: planes of the format's shapes, each row in one piece; they are kept until the next one."""
        self._taken = tuple(planes)
        self._gain[0] = gain
        for number, plane in enumerate(planes):
            self._words[2 * number] = plane.ctypes.data
            self._words[2 * number + 1] = plane.strides[0]


class FrameMaskStep:
    """Makes masks of a frame's size of a network's."""

    def __init__(self, mask: ResizedMask, kernels: FrameKernels) -> None:
        self.rows, columns = self.frame_size = mask.frame_size
        lanes = widest(kernels.target, columns)
        is_permuted = mask.is_permuted(kernels.target, lanes)
        self._code = kernels.compiled(lambda module: mask_function(module, _NAME, lanes, is_permuted))
        self._words = WordTable([0, 0, 0, columns])
        self._tables = mask_tables(mask, lanes)
        self.addresses = StepAddresses(self._code.address(_NAME), self._words.address, self._tables.address)
        self.size = StepSize(self.rows, 1, self.rows * columns * _MASK_WORK)

    def take(self, plane: npt.NDArray[np.float32], frame_mask: Float32Array) -> None:
        """The next mask, (H, W) in a network's memory, whose margins may be read, and an array of the frame's size.

        Both must outlive the run.
        """
        self._words[0], self._words[1] = plane.ctypes.data, frame_mask.ctypes.data
        self._words[2] = plane.strides[0] // FLOAT_BYTES


def frame_table(network: NativeNetwork, sampler: SamplerStep, mask: FrameMaskStep) -> WorkTable:
    """All that a frame takes, from the picture to the mask of its size, as one piece of work for the network's pool."""
    first = len(network.steps)
    ends = [cut_step(first + nth, size, network.pool.threads) for nth, size in enumerate((sampler.size, mask.size))]
    steps = [*network.steps, sampler.addresses, mask.addresses]
    return WorkTable(joined_rounds([ends[0], *network.image.rounds, ends[1]]), steps)


def step_table(step: SamplerStep | FrameMaskStep, threads: int) -> WorkTable:
    """One of the two alone, as a piece of work for so many threads."""
    return WorkTable([cut_step(0, step.size, threads)], [step.addresses])


def widest(target: CpuTarget, columns: int) -> int:
    """The lanes of the widest vector that a row of so many columns fills."""
    return min(target.lanes, 1 << columns.bit_length() - 1)
