"""Lowers a graph with alternative tiles, so that these can be measured."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..device.tile import Tile
from ..model.graph import Shape
from ..targets.glsl.glsl_kernel import Kernel, Lowered

LowerWith = Callable[[Mapping[str, Tile]], Lowered]  # kernels by signature have these tiles
KernelKey = tuple[str, tuple[int, int, int]]


@dataclass(frozen=True)
class Slot:
    """A kernel as it is, and tiles that it may have instead."""

    signature: str
    kernel: Kernel
    others: Sequence[Tile]
    share: float  # of the network's time, with all kernels before it


class Variants:
    """Lowerings in which all kernels have their first other tile, their second, and so on, made when they are needed.

    One for each kernel and tile would take longer than compiling the kernels. It is made all the same for a kernel
    whose inputs have other shapes where others have other tiles, as partial sums of work-groups do.
    """

    def __init__(self, lowered: Lowered, slots: Sequence[Slot], lower_with: LowerWith) -> None:
        """`lowered` is the graph with the tiles that kernels have."""
        self._slots, self._lower_with = slots, lower_with
        self._made = {0: lowered}
        self._own: dict[tuple[str, int], Lowered] = {}

    def kernel(self, slot: Slot, number: int) -> tuple[Kernel, Lowered]:
        """The kernel with its other tile of that number (0 for the one that it has), and what it is part of."""
        if number not in self._made:
            self._made[number] = self._lower_with(
                {each.signature: each.others[number - 1] for each in self._slots if number <= len(each.others)}
            )
        lowered = self._made[number]
        if number and _input_shapes(lowered, slot.signature) != _input_shapes(self._made[0], slot.signature):
            key = slot.signature, number
            if key not in self._own:
                self._own[key] = self._lower_with({slot.signature: slot.others[number - 1]})
            lowered = self._own[key]
        return by_signature(lowered.kernels)[slot.signature][0], lowered


def _input_shapes(lowered: Lowered, signature: str) -> list[Shape]:
    kernel, _ = by_signature(lowered.kernels)[signature]
    return [lowered.graph.tensors[tensor].shape for tensor in kernel.inputs]


def key_of(kernel: Kernel) -> KernelKey:
    """Equal for kernels that do the same on the device."""
    return kernel.source, kernel.grid


def by_signature(kernels: Iterable[Kernel]) -> dict[str, tuple[Kernel, int]]:
    """Of the kernels that have a tile, the first of each signature, and how often there are such."""
    counts = Counter(kernel.signature for kernel in kernels if kernel.signature)
    first = {kernel.signature: kernel for kernel in reversed([*kernels])}
    return {signature: (first[signature], count) for signature, count in counts.items()}


def by_key(kernels: Iterable[Kernel]) -> dict[KernelKey, tuple[Kernel, int]]:
    """Each kernel once, with how often it is dispatched."""
    counts = Counter(map(key_of, kernels))
    first = {key_of(kernel): kernel for kernel in reversed([*kernels])}
    return {key: (first[key], count) for key, count in counts.items()}
