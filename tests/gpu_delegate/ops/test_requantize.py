"""REQUANTIZE on OpenGL rounds exactly as TensorFlow Lite's reference kernels do."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.engine import on_gpu
from tests.helpers.markers import one_in
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Attributes, Graph, Node, Steps, Tensor
from texelflow.gpu_delegate.ops.requantize import (
    END_OF_NARROW,
    HALF,
    AddSteps,
    FixedPoint,
    FixedPoints,
    Requantize,
    fixed_point,
    is_narrow,
)
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

Integers = npt.NDArray[np.int64]

WIDE = Steps(-(1 << 24), 1 << 24)
BYTES = Steps(-100, 155)


def product(x: Integers, factor: FixedPoint) -> Integers:
    """MultiplyByQuantizedMultiplier: the product is rounded up, what is shifted away from zero."""
    found = (x * factor.multiplier + (1 << 30)) >> 31
    if not factor.shift:
        return found
    return (found + (1 << (factor.shift - 1)) - (found < 0)) >> factor.shift


def computed(
    context: Context, op: str, attributes: Attributes, inputs: Sequence[Integers], constants: Sequence[Any] = ()
) -> Integers:
    """What a kernel of one op makes of maps of whole numbers."""
    shape = inputs[0].shape
    tensors = [Tensor(k, f"x{k}", shape) for k in range(len(inputs))]
    for values in constants:
        tensors.append(Tensor(len(tensors), f"c{len(tensors)}", values.shape, "float32", values))
    tensors.append(Tensor(len(tensors), "out", shape))
    node = Node(op, tuple(range(len(tensors) - 1)), (len(tensors) - 1,), attributes)
    numbers = tuple(range(len(inputs)))
    graph = Graph("one op", MappingProxyType(dict(enumerate(tensors))), (node,), numbers, node.outputs)
    (found,) = on_gpu(context, compile_graph(graph, SOFTWARE), [values.astype(np.float32) for values in inputs])
    return found.astype(np.int64)


def near_halves(points: Sequence[FixedPoint], most: int, rng: np.random.Generator) -> Integers:
    """Whole numbers up to `most`, a column for each multiplier: beside halves of its results, and others."""
    columns = []
    for point in points:
        step = 2.0 ** (31 + point.shift) / point.multiplier
        halves = np.rint((rng.integers(-300, 300, 1500) + 0.5) * step)[:, None] + np.arange(-1, 2)
        ends = [most, -most, most - 1, 1 - most, 0, 1, -1]
        others = rng.integers(-most, most + 1, 4500 - len(ends))
        columns.append(np.concatenate([np.clip(halves.ravel(), -most, most), ends, others]))
    found: Integers = np.stack(columns, 1).astype(np.int64).reshape(1, 90, 100, len(points))
    return found


@pytest.mark.parametrize(
    ("limits", "most"), [(WIDE, END_OF_NARROW - 1), (WIDE, END_OF_NARROW // 2 - 1), (BYTES, (1 << 24) - 1)]
)
def test_the_shorter_way_rounds_like_the_reference(context: Context, limits: Steps, most: int) -> None:
    rng = np.random.default_rng(0)
    shifts = (0, 1, 3, 5, 8, 10, 11, 11) if most != END_OF_NARROW - 1 else (1, 1, 2, 5, 9, 12, 17, 21)
    points = [FixedPoint(1 << 30, shift) for shift in (shifts[0], 1, 9, 11)] + [FixedPoint((1 << 31) - 1, 7)]
    points += [FixedPoint(int(rng.integers(1 << 30, 1 << 31)), shift) for shift in shifts]
    high, low, power = FixedPoints.of(points).in_floats
    assert is_narrow(limits, most, float(power.min()), float(power.max()))
    attributes, x = Requantize(limits, is_narrow=True), near_halves(points, most, rng)
    wanted = np.stack([product(x[..., k], point) for k, point in enumerate(points)], 3)
    found = computed(context, "REQUANTIZE", attributes, [x], [high, low, power])
    np.testing.assert_array_equal(found, wanted.clip(limits.low, limits.high))


def test_the_shorter_way_shifts_to_the_left_first(context: Context) -> None:
    point = fixed_point(5.3)
    high, low, power = FixedPoints.of([point]).in_floats
    assert power[0] == 8.0
    x = np.arange(-4500, 4500).reshape(1, 90, 100, 1)
    wanted = product(x * 8, FixedPoint(point.multiplier, 0))
    found = computed(context, "REQUANTIZE", Requantize(WIDE, is_narrow=True), [x], [high, low, power])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("limits", "most", "powers", "fits"),
    [
        (WIDE, END_OF_NARROW - 1, (2.0**-20, 0.5), True),
        (WIDE, END_OF_NARROW, (2.0**-20, 0.5), False),
        (WIDE, END_OF_NARROW // 2, (2.0**-20, 1.0), False),
        (BYTES, 1 << 23, (2.0**-13, 1.0), True),
        (BYTES, 1 << 23, (2.0**-14, 1.0), False),
        (BYTES, 1 << 23, (2.0**-8, 2.0), False),
        (WIDE, END_OF_NARROW // 4, (1.0, 4.0), False),
    ],
)
def test_the_shorter_way_is_taken_where_float32_has_the_products(
    limits: Steps, most: int, powers: tuple[float, float], fits: bool
) -> None:
    assert is_narrow(limits, most, *powers) == fits


@pytest.mark.parametrize("is_difference", [False, True])
@one_in(3, "ratio", [1.0, 0.5, 0.9731, 0.3333, 1.7e-3, 2.0**-31, 1e-12])
def test_sums_of_all_steps_round_like_the_reference(context: Context, ratio: float, is_difference: bool) -> None:
    """Of every two steps, with the greater scale on either side."""
    a, b = np.meshgrid(np.arange(-255, 256), np.arange(-255, 256), indexing="ij")
    for of_inputs, scale in (((HALF, fixed_point(ratio / 2)), 1.37), ((fixed_point(ratio / 2), HALF), 0.5)):
        of_sum = fixed_point(2 * scale / 2**20)
        first, second = (product(x << 20, factor) for x, factor in zip((a, b), of_inputs, strict=True))
        wanted = product(first - second if is_difference else first + second, of_sum).clip(-128, 127)
        maps = [x.reshape(1, 511, 511, 1) for x in (a, b)]
        found = computed(context, "ADD_STEPS", AddSteps(of_inputs, of_sum, is_difference, Steps(-128, 127)), maps)
        np.testing.assert_array_equal(found.reshape(511, 511), wanted)
