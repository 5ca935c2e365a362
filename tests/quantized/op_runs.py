"""Measures how near single 8-bit ops are to TensorFlow Lite's reference."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tests.model_files.model_builder import Shape
from tests.quantized.ours import our_run
from tests.quantized.quantizer import Scheme, quantized_twin
from tests.quantized.runs import TfliteRun
from tests.quantized.single_ops import HIGH, LOW, SINGLE_OPS, model_of

ADDED_AS_UINT8 = ("sum", "sum of channels")  # of int8, by TensorFlow Lite
SHAPES: tuple[Shape, ...] = ((1, 7, 9, 5), (3, 6, 5, 13), (1, 5, 8, 1), (2, 9, 7, 4), (1, 6, 7, 3))
RUNS = 3  # of random inputs


@dataclass(frozen=True)
class OpNearness:
    """Of one op: the share of equal values, and the most steps between two."""

    op: str
    equal: float
    apart: float


def measured_ops(way: str, dtype: str, shape: Shape, names: Iterable[str] = SINGLE_OPS) -> list[OpNearness]:
    """Of each op that TensorFlow Lite has for the type."""
    chosen = [name for name in names if dtype == "uint8" or name not in ADDED_AS_UINT8]
    rng = np.random.default_rng(1)
    samples = [[rng.uniform(low, high, shape).astype(np.float32) for low, high in _BOUNDS] for _ in range(RUNS)]
    model = quantized_twin(model_of(chosen, shape), samples[:1], Scheme(dtype))
    limits, reference = np.iinfo(dtype), TfliteRun(model)
    given = [[rng.integers(limits.min, limits.max + 1, shape).astype(dtype) for _ in _BOUNDS] for _ in range(RUNS)]
    with our_run(model, way) as run:
        pairs = [(run(values), reference(values)) for values in given]
    found = []
    for place, name in enumerate(chosen):
        ours, right = (np.stack([pair[side][place] for pair in pairs]) for side in (0, 1))
        if right.dtype == np.float32 and name != "cast":  # what TensorFlow Lite has not for the type
            continue
        apart = np.abs(ours.astype(np.float64).reshape(right.shape) - right)
        found.append(OpNearness(name, float((apart == 0).mean()), float(apart.max())))
    return found


_BOUNDS = ((LOW, HIGH), (0.7 * LOW, 0.6 * HIGH))  # of both inputs
