"""Elementwise ops on the CPU's vectors of each width, against float64 over wide ranges and at their ends."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from texelflow.gpu_delegate.model.graph import Node
from texelflow.gpu_delegate.ops.nodes import elementwise_value
from texelflow.gpu_delegate.targets.llvm.compiler import CompiledCode, native_target, object_code
from texelflow.gpu_delegate.targets.llvm.ir import FLOAT, I64, Module, integer, vector
from texelflow.gpu_delegate.targets.llvm.native_elementwise import elementwise_vectors

COUNT = 4096
RANGES: Mapping[str, tuple[Callable[..., Any], float, float]] = {
    "EXP": (np.exp, -100, 100), "LOG": (np.log, 1e-3, 1e6), "SIN": (np.sin, -3000, 3000), "COS": (np.cos, -3000, 3000),
    "TANH": (np.tanh, -20, 20), "LOGISTIC": (lambda v: 1 / (1 + np.exp(-v)), -100, 100),
    "RSQRT": (lambda v: v**-0.5, 1e-6, 1e6), "ROUND": (np.round, -99, 99), "CEIL": (np.ceil, -9, 9),
    "POW": (np.power, 1e-2, 9), "ATAN2": (np.arctan2, -9, 9), "FLOOR_MOD": (np.mod, -99, 99),
    "FLOOR_DIV": (np.floor_divide, -99, 99),
}  # fmt: skip
BINARY = ("POW", "ATAN2", "FLOOR_MOD", "FLOOR_DIV")


@pytest.fixture(scope="module")
def code() -> CompiledCode:
    """Every op of the table for 4, 8 and 16 lanes, as loops over COUNT floats."""
    module, target = Module(), native_target()
    for lanes in (4, 8, 16):
        kind = vector(FLOAT, lanes)
        for op in RANGES:
            f = module.function(f"{op}_{lanes}", [("ptr", "out"), ("ptr", "a"), ("ptr", "b")])
            out, *sources = f.parameters
            with f.loop(integer(0, I64), integer(COUNT, I64), lanes) as at:
                operands = [f.load(kind, f.at(source, at)) for source in sources[: 1 + (op in BINARY)]]
                value = elementwise_value(Node(op, tuple(range(len(operands))), ()), ())
                f.store(elementwise_vectors(f, value, operands), f.at(out, at))
            f.give_back()
    names = [f"{op}_{lanes}" for op in RANGES for lanes in (4, 8, 16)]
    return CompiledCode([object_code(module.text, target)], names, {}, target)


def run(code: CompiledCode, name: str, *operands: Sequence[float]) -> Any:
    arrays = [np.zeros(COUNT, np.float32), *(np.resize(np.asarray(each, np.float32), COUNT) for each in operands)]
    arrays += [arrays[0]] * (3 - len(arrays))
    function = code.function(name, ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3))
    function(*(array.ctypes.data for array in arrays))
    return arrays[0]


@pytest.mark.parametrize("op", RANGES)
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_values(code: CompiledCode, op: str, lanes: int) -> None:
    function, low, high = RANGES[op]
    draw = np.random.default_rng(lanes).uniform(low, high, (1 + (op in BINARY), COUNT)).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = function(*draw.astype(np.float64)).astype(np.float32)
    expected = np.where(np.abs(expected) < 1.2e-38, 0, expected)
    assert np.allclose(run(code, f"{op}_{lanes}", *draw), expected, rtol=2e-6, atol=4e-7)


def test_ends(code: CompiledCode) -> None:
    inf, nan = np.inf, np.nan
    assert np.array_equal(run(code, "EXP_8", [-inf, -104, 0, 88.8, inf, nan])[:6], [0, 0, 1, inf, inf, nan], True)
    assert np.array_equal(run(code, "LOG_8", [-1, -inf, 0, 1, inf, nan])[:6], [nan, nan, -inf, 0, inf, nan], True)
    assert np.allclose(run(code, "LOGISTIC_8", [-inf, -200, 0, 200, inf])[:5], [0, 0, 0.5, 1, 1], atol=1e-37)
    assert np.array_equal(run(code, "TANH_8", [-inf, 0, inf, nan])[:4], [-1, 0, 1, nan], True)
    x, y = [-2, -2, -2, 0, 0, -inf, 1, nan, 3], [3, 2, 0.5, -1, 2, 3, nan, 0, 200]
    assert np.array_equal(run(code, "POW_8", x, y)[:9], [-8, 4, nan, inf, 0, -inf, 1, 1, inf], True)
    y, x = [0.0, -0.0, 0.0, -0.0, 1, nan], [0.0, 0.0, -0.0, -0.0, 0, 1]
    angles = np.array([0, -0.0, np.pi, -np.pi, np.pi / 2, nan], np.float32)
    assert np.allclose(run(code, "ATAN2_8", y, x)[:6], angles, equal_nan=True)
