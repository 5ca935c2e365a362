"""The CPU path: the custom op against NumPy, tensor indices, and clear refusals."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.runtimes import RUNTIMES
from tests.model_files.model_builder import ModelBuilder, selfie_like
from tests.quantized.networks import mobilenet_v2_like
from tests.quantized.quantizer import quantized_twin
from tests.quantized.runs import REFERENCE, XNNPACK, TfliteRun
from texelflow.gpu_delegate.base.errors import DeviceError, ModelError, UsageError
from texelflow.gpu_delegate.cpu import interpreter_module
from texelflow.gpu_delegate.cpu.interpreter import InterpreterOptions, LocalInterpreter
from texelflow.gpu_delegate.cpu.reference import Reference, load_interpreter_module
from texelflow.gpu_delegate.reading.reader import read_model

Array = Any
RECOMPUTED: dict[str, Callable[..., Array]] = {  # ops that TensorFlow Lite may compute in place
    "RELU": lambda x: np.maximum(x, 0),
    "ADD": np.add,
    "MUL": np.multiply,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
}


def transposed(
    x: Array, weights: Array, bias: Array, stride: tuple[int, int], out: tuple[int, int], before: int
) -> Array:
    """out[y * stride + ky - before] += x[y] * weights[ky], in float64."""
    _, height, width, _ = x.shape
    channels, kernel_h, kernel_w, _ = weights.shape
    full = np.zeros((1, out[0] + 2 * kernel_h, out[1] + 2 * kernel_w, channels))
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            rows, columns = slice(ky, ky + height * stride[0], stride[0]), slice(kx, kx + width * stride[1], stride[1])
            full[:, rows, columns] += np.einsum("bhwi,oi->bhwo", x.astype(float), weights[:, ky, kx].astype(float))
    return full[:, before : before + out[0], before : before + out[1]] + bias


@pytest.mark.parametrize(
    ("kernel", "stride", "out", "before", "padding"),
    [
        ((2, 2), (2, 2), (14, 10), 0, "SAME"),
        ((3, 3), (2, 2), (14, 10), 0, "SAME"),
        ((3, 3), (2, 2), (13, 9), 1, "SAME"),
        ((3, 2), (2, 3), (15, 14), 0, "VALID"),
        ((4, 4), (2, 2), (14, 10), 1, "SAME"),
    ],
)
def test_custom_op_equals_numpy(
    kernel: tuple[int, int], stride: tuple[int, int], out: tuple[int, int], before: int, padding: str
) -> None:
    rng = np.random.default_rng(7)
    x, weights = rng.standard_normal((1, 7, 5, 5)).astype(np.float32), rng.standard_normal((3, *kernel, 5))
    bias = rng.standard_normal(3)
    model = ModelBuilder()
    inputs = [model.input(x.shape), model.constant(weights), model.constant(bias)]
    model.output(model.op("Convolution2DTransposeBias", inputs, (1, *out, 3), stride=stride, padding=padding))
    (result,) = Reference(read_model(model.build())).run(x)
    np.testing.assert_allclose(result, transposed(x, weights, bias, stride, out, before), atol=1e-5)
    node = read_model(model.build()).nodes[0]
    assert (node.attributes.padding.top, node.attributes.padding.left) == (before, before)  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_older", [False, *([True] if len(RUNTIMES) > 1 else [])])
def test_quantized_models_run_in_xnnpack_unless_they_judge(is_older: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an interpreter that nobody has told otherwise, of a runtime whose XNNPACK takes 8-bit integers."""
    rng = np.random.default_rng(0)
    model = quantized_twin(mobilenet_v2_like(size=32), [[rng.random((1, 32, 32, 3), np.float32)]])
    if is_older:
        monkeypatch.setattr(interpreter_module, "NEWER", "no_such_module")
    values = rng.integers(-128, 128, (1, 32, 32, 3)).astype(np.int8)
    graph = read_model(model)
    options = InterpreterOptions(1, len(graph.outputs), fast_bytes=True)
    fast = LocalInterpreter(model, options)
    assert fast.signature.runtime.startswith("tflite-runtime" if is_older else "ai-edge-litert")
    wanted, exact = (TfliteRun(model, kernels)([values]) for kernels in (XNNPACK, REFERENCE))
    assert not np.array_equal(wanted[0], exact[0])
    np.testing.assert_array_equal(fast.run([values])[0], wanted[0])
    np.testing.assert_array_equal(Reference(graph, threads=1).run(values)[0], wanted[0])
    assert np.abs(np.subtract(Reference(graph, judges=True).run(values)[0], exact[0], dtype=np.int16)).max() <= 1


def test_every_tensor_by_its_original_index() -> None:
    graph = read_model(selfie_like(2))
    fast, slow = Reference(graph), Reference(graph, threads=1, keep_all_tensors=True)
    x = np.random.default_rng(3).random(fast.input_shape, dtype=np.float32)
    (mask,), (kept,) = fast.run(x), slow.run([x])
    np.testing.assert_allclose(mask, kept, atol=1e-5)
    np.testing.assert_array_equal(slow.tensor(graph.outputs[0]), kept)
    np.testing.assert_array_equal(slow.tensor(graph.inputs[0]), x)
    for node in graph.nodes:
        value = slow.tensor(node.outputs[0])
        assert value.shape == graph.tensors[node.outputs[0]].shape
        again = RECOMPUTED.get(node.op)
        if again:
            np.testing.assert_allclose(value, again(*map(slow.tensor, node.inputs)), atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"size": (96, 64)}, {"global_pool": "MEAN", "fused": True, "half": False}])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_family_has_a_mask_that_can_go_wrong(seed: int, changes: dict[str, Any]) -> None:
    reference = Reference(read_model(selfie_like(seed, **changes)))
    (mask,) = reference.run(np.random.default_rng(seed).random(reference.input_shape, dtype=np.float32))
    assert mask.std() > 0.03
    assert 1e-3 < mask.min() < mask.max() < 1 - 1e-3


def test_takes_and_gives_scalars() -> None:
    model = ModelBuilder()
    x = model.input(())
    model.output(model.op("NEG", [x], ()))
    (result,) = Reference(read_model(model.build())).run(np.array(2.5, np.float32))
    assert np.shape(result) == ()
    assert result == -2.5


def test_results_are_copies() -> None:
    model = ModelBuilder()
    model.output(model.op("RELU", [model.input((1, 3))], (1, 3)))
    reference = Reference(read_model(model.build()))
    (first,) = reference.run(np.full((1, 3), 2, np.float32))
    reference.run(np.full((1, 3), 5, np.float32))
    np.testing.assert_array_equal(first, [[2, 2, 2]])


def test_refuses_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModelBuilder()
    model.output(model.op("CONCATENATION", [model.input((1, 3))], (1, 3), axis=1, activation="RELU"))
    with pytest.raises(ModelError, match="TensorFlow Lite cannot run this model") as caught:
        Reference(read_model(model.build()))
    assert str(caught.value).isprintable()
    model = ModelBuilder()
    model.output(model.op("RELU", [model.input((1, 3))], (1, 3)))
    reference = Reference(read_model(model.build()))
    with pytest.raises(UsageError, match="shapes"):
        reference.run(np.zeros((1, 4), np.float32))
    with pytest.raises(UsageError, match="keep_all_tensors"):
        reference.tensor(0)
    for name in ("tflite_runtime.interpreter", "ai_edge_litert.interpreter"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DeviceError, match="not installed"):
        load_interpreter_module()


def test_takes_the_first_runtime_that_is_here_whatever_else_is_loaded(runtime: Any) -> None:
    model = ModelBuilder()
    model.output(model.op("RELU", [model.input((1, 3))], (1, 3)))
    interpreter = runtime.Interpreter(model_content=model.build())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[-1, 0, 2]], np.float32))
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(found, [[0, 0, 2]])
    assert load_interpreter_module().__name__ == f"{RUNTIMES[0]}.interpreter"
