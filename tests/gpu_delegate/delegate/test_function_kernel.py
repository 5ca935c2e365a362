"""Custom ops that functions compute, in both delegates: results, what runs where, and what goes wrong, in one line."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import texelflow
from tests.gpu_delegate.delegate.test_native_delegate import detector, in_parts, quantized, values_for
from tests.helpers.delegated import inferred
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.partial_models import with_detections
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.model.reasons import BY_FUNCTION
from texelflow.gpu_delegate.reading.reader import read_model

SHAPE = (1, 9, 7, 5)
FACTOR = bytes(flexbuffers.Dumps({"factor": 2.5}))


def scaled(inputs: Sequence[Any], operator: texelflow.CustomOperator) -> Any:
    return inputs[0] * operator.options["factor"]


def shape_of(operator: texelflow.CustomOperator) -> tuple[int, ...]:
    """Of its first input."""
    (tensor, *_) = operator.inputs
    assert tensor is not None
    return tensor.shape


def between(*names: str, options: bytes = FACTOR, factor: float | None = None) -> bytes:
    """A convolution, custom ops or a MUL by a factor, and another convolution."""
    model, rng = ModelBuilder(), np.random.default_rng(0)
    weights = [[model.constant(rng.normal(0, 0.3, shape)) for shape in ((5, 3, 3, 5), 5)] for _ in range(2)]
    x = model.op("CONV_2D", [model.input(SHAPE), *weights[0]], SHAPE, padding="SAME", stride=(1, 1))
    for name in names:
        x = model.op(name, [x], SHAPE, custom=options)
    if factor is not None:
        x = model.op("MUL", [x, model.constant(factor)], SHAPE)
    model.output(model.op("CONV_2D", [x, *weights[1]], SHAPE, padding="SAME", stride=(1, 1), activation="RELU"))
    return model.build()


def made(kind: str, *ops: texelflow.CustomOp) -> Any:
    """A delegate of the GPU or of native code."""
    if kind == "native":
        return NativePartsDelegate(threads=1, every_part=True, custom_ops=ops)
    return texelflow.GpuDelegate(quiet=True, min_nodes_per_partition=1, custom_ops=ops)


def interpreter(model: bytes, *delegates: Any) -> Any:
    found = load_interpreter_module(newer=True).Interpreter(model_content=model, experimental_delegates=list(delegates))
    found.allocate_tensors()
    return found


@pytest.mark.parametrize("kind", ["gl", "native"])
@pytest.mark.parametrize("names", [("Scaled",), ("Scaled", "Scaled")])
def test_between_two_parts(kind: str, names: tuple[str, ...]) -> None:
    values = np.random.default_rng(1).normal(0, 1, SHAPE).astype(np.float32)
    delegate = made(kind, texelflow.custom_op("Scaled", scaled))
    (found,) = inferred(interpreter(between(*names), delegate), [values])
    (expected,) = inferred(interpreter(between(factor=2.5 ** len(names))), [values])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    custom = tuple(range(1, 1 + len(names)))
    assert [partition.nodes for partition in delegate.partitions] == [(0,), (custom[-1] + 1,)]
    assert dict(delegate.reasons) == dict.fromkeys(custom, BY_FUNCTION)
    delegate.release()


def test_the_summary_counts_them() -> None:
    with made("gl", texelflow.custom_op("Scaled", scaled)) as delegate:
        inferred(interpreter(between("Scaled"), delegate), [np.zeros(SHAPE, np.float32)])
        assert delegate.summary.startswith("2 of 3 operators on the GPU in 2 partitions")
        assert delegate.summary.endswith(", 1 by functions")


@pytest.mark.parametrize(("kind", "recorded"), [("gl", ()), ("gl", (2, 3)), ("native", (2, 3))])
def test_several_outputs_of_shapes_that_a_function_tells(kind: str, recorded: tuple[int, ...]) -> None:
    def halves(inputs: Sequence[Any], operator: texelflow.CustomOperator) -> list[Any]:
        (tensor,) = operator.inputs
        assert tensor is not None
        assert (tensor.dtype, tensor.shape, operator.options, operator.custom_options) == ("float32", (2, 6), {}, empty)
        return [inputs[0][:, :3], np.array([np.argmax(inputs[0])], np.int64)]

    empty = bytes(flexbuffers.Dumps({}))
    model = ModelBuilder()
    x = model.op("NEG", [model.input((2, 6))], (2, 6))
    first = model.tensor(recorded, "float32")
    outputs = model.op_of("Halves", [x], [first, model.tensor((), "int32")], custom=empty)
    model.output(model.op("NEG", [outputs[0]], recorded), outputs[1])
    op = texelflow.custom_op("Halves", halves, lambda operator: [(2, shape_of(operator)[1] // 2), (1,)])
    delegate = made(kind, op)
    values = np.random.default_rng(2).normal(0, 1, (2, 6)).astype(np.float32)
    found, place = inferred(interpreter(model.build(), delegate), [values])
    np.testing.assert_array_equal(found, values[:, :3])
    np.testing.assert_array_equal(place, [np.argmin(values)])
    delegate.release()


def test_other_shapes_while_it_runs() -> None:
    op = texelflow.custom_op("Scaled", scaled, lambda operator: [shape_of(operator)])
    with made("gl", op) as delegate:
        made_of = interpreter(between("Scaled"), delegate)
        for height in (9, 4, 13):
            made_of.resize_tensor_input(made_of.get_input_details()[0]["index"], (1, height, 7, 5))
            made_of.allocate_tensors()
            values = np.random.default_rng(height).normal(0, 1, (1, height, 7, 5)).astype(np.float32)
            other = interpreter(between(factor=2.5))
            other.resize_tensor_input(other.get_input_details()[0]["index"], values.shape)
            other.allocate_tensors()
            (found,), (expected,) = (inferred(each, [values]) for each in (made_of, other))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def fails(inputs: Sequence[Any], operator: texelflow.CustomOperator) -> Any:
    raise ValueError("no\nluck")


@pytest.mark.parametrize("kind", ["gl", "native"])
@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (fails, FACTOR, "its function raised ValueError: no luck"),
        (scaled, b"\x01\x02\x03", "its options are a damaged FlexBuffer"),
        (scaled, bytes(flexbuffers.Dumps({})), "its function raised KeyError: 'factor'"),
        (lambda inputs, _: inputs[0][:, 1:], FACTOR, r"returns float32 of shape \[1, 8, 7, 5\] for tensor"),
        (lambda inputs, _: inputs[0] > 0, FACTOR, None),
        (lambda inputs, _: inputs[0].astype(complex), FACTOR, r"returns complex128 of shape"),
        (lambda inputs, _: (inputs[0], inputs[0]), FACTOR, "its function returns 2 arrays for 1 outputs"),
        (lambda inputs, _: inputs[0].fill(0), FACTOR, "read-only"),
    ],
)
def test_what_a_function_does_wrong(kind: str, function: Any, options: bytes, said: str | None) -> None:
    delegate = made(kind, texelflow.custom_op("Scaled", function))
    runs = interpreter(between("Scaled", options=options), delegate)
    if said is None:
        inferred(runs, [np.ones(SHAPE, np.float32)])
    else:
        with pytest.raises(RuntimeError, match=rf"operator 1 \(Scaled\): .*{said}"):
            inferred(runs, [np.ones(SHAPE, np.float32)])
    delegate.release()


def test_shapes_that_make_no_sense() -> None:
    wrong: list[Any] = [[(1 << 20, 1 << 20)], [(-1, 3)], [(1,), (1,)], 3]
    for shapes in wrong:
        op = texelflow.custom_op("Scaled", scaled, partial(lambda shapes, _: shapes, shapes))
        with made("gl", op) as delegate, pytest.raises(RuntimeError, match=r"operator 1 \(Scaled\): "):
            interpreter(between("Scaled"), delegate)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: texelflow.custom_op("", scaled),
        lambda: texelflow.custom_op("Scaled", 3),  # type: ignore[arg-type]
        lambda: texelflow.custom_op("Scaled", scaled, [(1,)]),  # type: ignore[arg-type]
        lambda: texelflow.GpuDelegate(custom_ops=texelflow.custom_op("Scaled", scaled)),  # type: ignore[arg-type]
        lambda: texelflow.GpuDelegate(custom_ops=[scaled]),  # type: ignore[list-item]
        lambda: texelflow.GpuDelegate(custom_ops=[texelflow.custom_op("Scaled", scaled)] * 2),
    ],
)
def test_what_is_no_custom_op(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"(custom op|custom_ops)"):
        wrong()


def test_an_op_without_a_function_is_for_tflite() -> None:
    other = texelflow.custom_op("Other", scaled)
    with made("gl", other) as delegate, pytest.raises(RuntimeError, match="Scaled"):
        interpreter(between("Scaled"), delegate)


def test_it_runs_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise texelflow.DeviceError("no GPU")

    monkeypatch.setattr("texelflow.gpu_delegate.delegate.application.open_worker", refuse)
    values = np.random.default_rng(1).normal(0, 1, SHAPE).astype(np.float32)
    delegate = texelflow.GpuDelegate(quiet=True, custom_ops=[texelflow.custom_op("Scaled", scaled)])
    (found,) = inferred(interpreter(between("Scaled"), delegate), [values])
    (expected,) = inferred(interpreter(between(factor=2.5)), [values])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not delegate.is_applied


def test_detections_of_bytes() -> None:
    """In a process of its own: known to the reader, with nothing asked for."""
    graph = read_model(with_detections(quantized(detector(), "float32")))
    made_of, delegation = in_parts(graph)
    assert delegation.by_functions == 1
    assert delegation.line.endswith(" partition, 1 by functions")
    values = values_for(graph)
    for ours, theirs in zip(made_of.run(values), Reference(graph, judges=True).run(values), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    made_of.close()
