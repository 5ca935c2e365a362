"""What the interpreter is given and gives: arrays of any layout and package, memory of the caller's for results."""

import array
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRt
from hypothesis import given
from hypothesis import strategies as st

import texelflow
from tests.helpers.exporters import OnlyDlpack
from tests.model_files.delegate_models import late_size
from tests.model_files.sketch import Sketch

BACKENDS = ("native", "gl", "tflite")
SHAPE = (1, 5, 6, 3)


def two_outputs() -> bytes:
    """A picture to another one and to a vector."""
    m = Sketch(4)
    convolved = m.conv(m.image(*SHAPE[1:]), 4, (3, 3))
    m.output(convolved, m.mean(convolved))
    return m.build()


MODEL = two_outputs()


@cache
def interpreter_of(backend: Any) -> Any:
    return texelflow.Interpreter(model_content=MODEL, backend=backend)


def results(made: Any, values: Any) -> list[Any]:
    return [*made(values).values()]


def reference(values: npt.NDArray[Any]) -> list[Any]:
    made = LiteRt(model_content=MODEL)
    made.allocate_tensors()
    made.set_tensor(0, np.ascontiguousarray(values, np.float32))
    made.invoke()
    return [made.get_tensor(detail["index"]) for detail in made.get_output_details()]


@st.composite
def laid_out(draw: st.DrawFn) -> npt.NDArray[np.float32]:
    """A picture in any order of axes, steps of rows and byte order."""
    values = (
        np.random.default_rng(draw(st.integers(0, 9))).normal(size=SHAPE).astype(draw(st.sampled_from("<>")) + "f4")
    )
    axes = draw(st.permutations(range(4)))
    turned = np.ascontiguousarray(values.transpose(axes)).transpose(np.argsort(axes))
    steps = tuple(slice(None, None, draw(st.sampled_from((1, -1)))) for _ in SHAPE)
    wide = np.zeros((*SHAPE[:3], 6), values.dtype)[..., :: draw(st.sampled_from((2, 1)))][..., :3]
    wide[...] = turned[steps]
    return wide if draw(st.booleans()) else turned[steps]


@given(laid_out(), st.sampled_from(BACKENDS))
def test_layouts_make_no_difference(values: npt.NDArray[np.float32], backend: str) -> None:
    made = interpreter_of(backend)
    wanted = reference(values)
    for found in (results(made, values), results(made, OnlyDlpack(values.astype("=f4")))):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
    made.set_tensor(0, values)
    made.invoke()
    for detail, other in zip(made.get_output_details(), wanted, strict=True):
        np.testing.assert_allclose(made.get_tensor(detail["index"]), other, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_kinds_of_values_are_one(backend: str) -> None:
    made, values = interpreter_of(backend), np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    wanted = results(made, values)
    for each in (
        values[0], values.astype(np.float64), values.tolist(), values.data, values.tobytes(),
        bytearray(values.tobytes()), array.array("f", values.ravel().tolist()), OnlyDlpack(values),
    ):  # fmt: skip
        for one, other in zip(results(made, each), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    for each in (OnlyDlpack(values), values.data, values.astype(">f4")):
        made.set_tensor(0, each)
        made.invoke()
        np.testing.assert_array_equal(made.get_tensor(made.get_output_details()[0]["index"]), wanted[0])
    with pytest.raises(ValueError, match=r"image.astype\('float32'\) / 255 is 0 to 1"):
        made((values * 255).astype(np.uint8))


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_go_to_the_callers_memory(backend: str) -> None:
    made, values = interpreter_of(backend), np.random.default_rng(2).normal(size=SHAPE).astype(np.float32)
    wanted = made(values)
    names, shapes = [*wanted], [each.shape for each in wanted.values()]
    strided = np.zeros((*shapes[0], 2), np.float32)[..., 0]
    memory = bytearray(4 * int(np.prod(shapes[1])))
    targets = {names[0]: strided, names[1]: memoryview(memory).cast("f")}
    assert made(values, out=targets) is targets
    np.testing.assert_array_equal(strided, wanted[names[0]])
    np.testing.assert_array_equal(np.frombuffer(memory, np.float32), wanted[names[1]].ravel())
    in_order = [np.zeros(shape, np.float32) for shape in shapes]
    made(values, out=in_order)
    for one, other in zip(in_order, wanted.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    for wrong, said in (
        ([*in_order, strided], "out is to have memory for 2 outputs; outputs are"),
        (in_order[:1], "out is to have memory for 2 outputs; outputs are"),
        (in_order[0], "out is to have memory for 2 outputs; outputs are"),
        ({names[0]: strided, "other": strided}, "out is to have memory for 2 outputs; outputs are"),
        ([in_order[0], in_order[0]], f"{names[1]} takes float32"),
        ([in_order[0].tobytes(), in_order[1]], f"{names[0]} cannot be written"),
    ):
        with pytest.raises(ValueError, match="^" + said.replace("[", r"\[")):
            made(values, out=wrong)


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_the_callers_and_share_memory_by_dlpack(backend: str) -> None:
    made, values = interpreter_of(backend), np.random.default_rng(3).normal(size=SHAPE).astype(np.float32)
    first = results(made, values)
    kept = [each.copy() for each in first]
    results(made, -values)
    for one, other in zip(first, kept, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.flags.writeable
        assert one.flags.owndata or one.base.flags.owndata
        assert np.shares_memory(np.from_dlpack(one), one)


def test_an_output_that_only_the_run_tells_the_size_of() -> None:
    values, size = np.random.default_rng(5).normal(size=(1, 24, 3)).astype(np.float32), [1, 6, 4, 3]
    with texelflow.Interpreter(model_content=late_size(), backend="tflite") as made:
        outputs = made(values, size)
        assert {each.shape for each in outputs.values()} == {(1, 6, 4, 5)}
        smaller = {name: np.zeros((1, 4, 6, 5), np.float32) for name in outputs}
        with pytest.raises(ValueError, match=r"\[1, 6, 4, 5\]"):
            made(values, size, out=smaller)
        made(values, [1, 4, 6, 3], out=smaller)
        for name, each in made(values, [1, 4, 6, 3]).items():
            np.testing.assert_array_equal(smaller[name], each)


def test_an_output_alone_goes_to_memory_and_an_input_may_be_called_out() -> None:
    m = Sketch(5)
    m.output(m.unary("TANH", m.input((2, 3))))
    with texelflow.Interpreter(model_content=m.build(), backend="native") as made:
        target = np.zeros((2, 3), np.float32)
        assert made([[1, 2, 3], [4, 5, 6]], out=target) is target
        np.testing.assert_allclose(target, np.tanh(np.arange(1, 7).reshape(2, 3)), atol=1e-6)
