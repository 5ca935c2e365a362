"""Operands of kernels as GLSL: a channel slice or the position of a weight goes in, its expression comes out."""

from dataclasses import dataclass

import numpy as np

from .packing import Float32Array


@dataclass(frozen=True)
class Slice:
    """A channel slice: its GLSL expression, its number if constant, and its index among held values."""

    text: str
    index: int | None = None
    place: int | None = None  # among the registers of a thread that computes only some of the slices

    @property
    def register(self) -> int:
        """The index of the slice among held values."""
        place = self.index if self.place is None else self.place
        assert place is not None, "held values are read at constant positions"
        return place


@dataclass(frozen=True)
class Weights:
    """An array of vec4s (..., 4): texels of the kernel's weights from `base` on, or literals where there is no base."""

    values: Float32Array
    base: int | None

    def texel(self, first: Slice, *others: Slice | int) -> str:
        """The vec4 at a position with a coordinate for each axis; literals are read at constant indices."""
        if self.base is None:
            return literal(self.values[tuple(_number(at) for at in (first, *others))])
        text = first.text
        for at, length in zip(others, self.values.shape[1:-1], strict=True):
            text = f"({text}) * {length} + {at.text if isinstance(at, Slice) else at}"
        return f"WEIGHT({self.base} + {text})"


def literal(values: Float32Array) -> str:
    """A vec4 literal that keeps its float32 values exactly; values that are not finite are given by their bits."""
    lanes = []
    for value in values.astype(np.float32):
        if np.isfinite(value):
            text = repr(float(value))
            lanes.append(text if "." in text or "e" in text else text + ".0")
        else:
            lanes.append(f"uintBitsToFloat({int(value.view(np.uint32))}u)")
    return f"vec4({', '.join(lanes)})"


def _number(at: Slice | int) -> int:
    number = at.index if isinstance(at, Slice) else at
    assert number is not None, "loops over literals are unrolled"
    return number
