"""Elementwise ops on zeros, infinities, NaN, halves and large values give what TensorFlow Lite gives."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.engine import DEVICES, Floats, on_cpu, on_gpu
from tests.helpers.markers import one_in
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.cpu.interpreter_module import OLDER, load_interpreter_module
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

LARGE = (1e30, -1e30)
FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 0.1, 0.3, 7.0, 1e-3, 88.0, -88.0, 200.0)
SPECIAL = (*FINITE, *LARGE, 1e-30, np.inf, -np.inf, np.nan)
UNARY: tuple[tuple[str, dict[str, Any]], ...] = (
    *(
        (op, {})
        for op in ("ELU", "ABS", "NEG", "SIGN", "CEIL", "FLOOR", "ROUND", "EXP", "LOG", "SQRT", "RSQRT", "SQUARE")
    ),
    ("GELU", {"approximate": False}),
    ("GELU", {"approximate": True}),
)
BINARY = ("PRELU", "SQUARED_DIFFERENCE", "POW", "FLOOR_DIV", "FLOOR_MOD", "ATAN2")


COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def check(context: Context, op: str, *operands: Floats, **options: Any) -> None:
    """The op on constants that are chosen at run time: inputs of a program are finite, and a pass folds constants."""
    m = Sketch(0)
    shape = (1, 1, 1, operands[0].size)
    chosen = m.binary("EQUAL", m.image(1, 1, 1), m.constant(0.0), dtype="bool")
    constants = [m.constant(values.reshape(shape)) for values in operands]
    given = [m.op("SELECT_V2", [chosen, constant, m.constant(1.0)], shape) for constant in constants]
    m.output(m.op(op, given, shape, **options))
    data, inputs = m.build(), [np.zeros((1, 1, 1, 1), np.float32)]
    wanted = on_cpu(data, inputs)[0].ravel()
    compiled = compile_graph(read_model(data), DEVICES["software"])
    assert op in {node.op for kernel in compiled.kernels for node in kernel.nodes}
    values = on_gpu(context, compiled, inputs)[0].ravel()
    with np.errstate(invalid="ignore"):
        near = np.abs(values - wanted) <= 1e-5 * np.maximum(1.0, np.abs(wanted))
    same = near | (values == wanted) | (np.isnan(values) & np.isnan(wanted))
    assert list(zip(*(each[~same] for each in (*operands, values, wanted)), strict=True)) == []


@one_in(3, ("op", "options"), UNARY)
def test_of_one_operand(context: Context, op: str, options: dict[str, Any]) -> None:
    values = np.array(SPECIAL, np.float32)
    says_nan = load_interpreter_module().__name__ != OLDER  # of the sign of what is no number; older versions say 0
    if op == "SIGN" and says_nan:
        values = values[~np.isnan(values)]
    check(context, op, values, **options)


@pytest.mark.parametrize("op", ["SIN", "COS"])
def test_waves(context: Context, op: str) -> None:
    check(context, op, np.array([*FINITE, 3000.1, -25000.3, np.inf, np.nan], np.float32))
    if context.is_software:  # whose own sine is exact there, too
        check(context, op, np.array([30000.7, 1e6], np.float32))


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(context: Context, op: str) -> None:
    first, second = (grid.ravel() for grid in np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32)))
    check(context, op, first, second, dtype="bool")


@pytest.mark.parametrize("op", BINARY)
def test_of_two_operands(context: Context, op: str) -> None:
    first, second = (grid.ravel() for grid in np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32)))
    if op in ("FLOOR_DIV", "FLOOR_MOD"):  # TensorFlow Lite refuses to divide by zero
        first, second = first[second != 0], second[second != 0]
    check(context, op, first, second)


@pytest.mark.parametrize("op", ["FLOOR_DIV", "FLOOR_MOD"])
@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_whole_multiples(context: Context, op: str, unit: float) -> None:
    dividends, divisors = np.meshgrid(np.arange(-30, 31) * unit, np.array((1, 2, 3, 7, -1, -3)) * unit)
    check(context, op, dividends.ravel().astype(np.float32), divisors.ravel().astype(np.float32))
