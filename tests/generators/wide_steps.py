"""Graphs of ops on integers of all sizes, drawn at random, and inputs at the edges of their types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.model_builder import ModelBuilder, Shape

Integers = npt.NDArray[Any]


def edge_values(rng: np.random.Generator, shape: Shape, dtype: str) -> Integers:
    """Half of them at an edge: of the type, of float32, of a digit."""
    limits = np.iinfo(dtype)
    near = [0, 1, -1, 7, 255, 65535, 65536, -65536, (1 << 24) + 1, -(1 << 24) - 1, limits.max, limits.min]
    wide = [(1 << 32) - 1, 1 << 40, -(1 << 53) - 1, (1 << 55) + 1] if dtype == "int64" else []
    edges = np.array([*near, *wide, limits.min + 1, limits.max - 1], dtype)
    drawn = rng.integers(limits.min, limits.max, shape, np.dtype(dtype), endpoint=True) >> rng.integers(
        0, 31, shape
    ).astype(dtype)
    return np.where(rng.random(shape) < 0.5, rng.choice(edges, shape), drawn)


@dataclass
class WideGraph:
    """A model while it is drawn; all its tensors have one shape."""

    rng: np.random.Generator
    dtype: str
    shape: Shape

    def __post_init__(self) -> None:
        self.model = ModelBuilder()
        self.pool = [self.model.input(self.shape, self.dtype) for _ in range(2)]

    def pick(self) -> int:
        return int(self.rng.choice(self.pool))

    def operand(self) -> int:
        """A tensor, or a constant for all or each channel."""
        kind = self.rng.integers(4)
        if kind > 1:
            return self.pick()
        return self.model.constant(edge_values(self.rng, self.shape[-1:] if kind else (), self.dtype), self.dtype)

    def add(self, op: str, *inputs: int, dtype: str = "", **options: Any) -> int:
        return self.model.op(op, inputs, self.shape, dtype or self.dtype, **options)


def _binary(g: WideGraph) -> int:
    op = g.rng.choice(["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"])
    activation = g.rng.choice(["NONE", "NONE", "RELU", "RELU6"]) if op in ("ADD", "SUB", "MUL") else "NONE"
    options = {"activation": activation} if activation != "NONE" and g.dtype == "int32" else {}
    return g.add(str(op), g.pick(), g.operand(), **options)


def _unary(g: WideGraph) -> int:
    return g.add("NEG", g.pick())


def _divided(g: WideGraph) -> int:
    """By what is not zero, and not minus one, at which CPUs stop with the least integer."""
    ops = ["DIV", "FLOOR_DIV", "FLOOR_MOD"] if g.dtype == "int32" else ["FLOOR_MOD"]
    size = () if g.rng.integers(2) else g.shape[-1:]
    by = edge_values(g.rng, size, g.dtype)
    by = np.where((by == 0) | (by == -1), 3, by)
    return g.add(str(g.rng.choice(ops)), g.pick(), g.model.constant(by, g.dtype))


def _selected(g: WideGraph) -> int:
    op = g.rng.choice(["LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"])
    truths = g.add(str(op), g.pick(), g.operand(), dtype="bool")
    return g.add("SELECT_V2", truths, g.pick(), g.operand())


def _clipped(g: WideGraph) -> int:
    """Small integers, which are computed with as floats."""
    low, high = (g.model.constant(value, g.dtype) for value in (-300, 5000))
    return g.add("MINIMUM", g.add("MAXIMUM", g.pick(), low), high)


def _moved(g: WideGraph) -> int:
    shape, model = g.shape, g.model
    if g.rng.integers(2):
        axis = int(g.rng.integers(len(shape)))
        return g.add("REVERSE_V2", g.pick(), model.constant([axis], "int32"))
    last = len(shape) - 1
    doubled = (*shape[:last], 2 * shape[last])
    both = model.op("CONCATENATION", [g.pick(), g.pick()], doubled, g.dtype, axis=last)
    begin = model.constant([*[0] * last, int(g.rng.integers(shape[last] + 1))], "int32")
    return g.add("SLICE", both, begin, model.constant(shape, "int32"))


def _summed(g: WideGraph) -> int:
    axis = int(g.rng.integers(len(g.shape)))
    return g.add("CUMSUM", g.pick(), g.model.constant(axis, "int32"), exclusive=bool(g.rng.integers(2)))


def _extreme(g: WideGraph) -> int:
    axis = int(g.rng.integers(len(g.shape)))
    kept = tuple(1 if k == axis else size for k, size in enumerate(g.shape))
    op = str(g.rng.choice(["REDUCE_MAX", "REDUCE_MIN", "SUM"]))
    found = g.model.op(op, [g.pick(), g.model.constant([axis], "int32")], kept, g.dtype, keep_dims=True)
    return g.add("SUB", g.pick(), found)


def _through_other_types(g: WideGraph) -> int:
    other = "int64" if g.dtype == "int32" else "int32"
    return g.add("CAST", g.add("CAST", g.pick(), dtype=other))


STEPS: Sequence[Callable[[WideGraph], int]] = (
    _binary, _binary, _unary, _divided, _selected, _clipped, _moved, _summed, _extreme, _through_other_types,
)  # fmt: skip
SHAPES = MappingProxyType({0: (2, 5), 1: (1, 3, 2, 5), 2: (2, 2, 3, 4), 3: (7,), 4: (3, 1, 6)})


def wide_graph(seed: int) -> tuple[bytes, list[Integers]]:
    """A model, and values of its inputs."""
    rng = np.random.default_rng(seed)
    g = WideGraph(rng, str(rng.choice(["int32", "int64"])), SHAPES[int(rng.integers(len(SHAPES)))])
    for _ in range(int(rng.integers(2, 6))):
        g.pool.append(STEPS[int(rng.integers(len(STEPS)))](g))
    found, found_of = g.pool[2:], rng.choice(["MAX", "MIN"])
    g.model.output(*found[-2:], g.add("CAST", g.pick(), dtype="float32"))
    if g.dtype == "int32":
        last = g.model.constant(len(g.shape) - 1, "int32")
        g.model.output(g.model.op(f"ARG_{found_of}", [g.pick(), last], g.shape[:-1], "int32", output_type=2))
    return g.model.build(), [edge_values(rng, g.shape, g.dtype) for _ in range(2)]
