"""The delegate computes what the interpreter holds in memory, whatever file it was given."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.generators.profiles import random_graph
from tests.gpu_delegate.targets.gl.test_random_networks import asked_for
from tests.helpers.delegated import MOST_ERROR, inferred, interpreter_of, random_inputs
from tests.helpers.markers import one_in
from tests.model_files.altered_models import altered_models, is_sound
from tests.model_files.delegate_models import interpreter, run
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.quantized_models import SCHEMES, small_quantized
from tests.models.measure import error_of
from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.reading.reader import read_model

pytestmark = pytest.mark.gl

SHAPE = (1, 6, 6, 4)
QUICK = (8, 13, 22, 39, 55, 86, 120, 144)


def of_one(op: str, constants: tuple[Any, ...] = (), shape: tuple[int, ...] = SHAPE, **options: Any) -> bytes:
    """A model of an op on a map and constants: floats, or integers as int32."""
    builder = ModelBuilder()
    x = builder.input(SHAPE)
    kinds = ["int32" if np.asarray(each).dtype.kind == "i" else "float32" for each in constants]
    others = [builder.constant(each, kind) for each, kind in zip(constants, kinds, strict=True)]
    builder.output(builder.op(op, [x, *others], shape, **options))
    return builder.build()


def weights(shape: tuple[int, ...], last: float = 1.0) -> npt.NDArray[np.float64]:
    values = np.random.default_rng(7).normal(0, 0.5, shape)
    values.ravel()[-1] += last
    return values


def convolution(op: str = "CONV_2D", last: float = 1.0, bias: float = 0.0, **options: Any) -> bytes:
    shape = (1, 3, 3, 4) if op == "DEPTHWISE_CONV_2D" else (4, 3, 3, 4)
    options = {"stride": (1, 1), "padding": "SAME", **options}
    return of_one(op, (weights(shape, last), np.full(4, bias)), **options)


PAIRS = {
    "a weight": (convolution(), convolution(last=1.01)),
    "a bias": (convolution(), convolution(bias=0.1)),
    "an activation": (convolution(), convolution(activation="RELU6")),
    "a dilation": (convolution(), convolution(dilation=(2, 2))),
    "a depthwise weight": (convolution("DEPTHWISE_CONV_2D"), convolution("DEPTHWISE_CONV_2D", 1.01)),
    "a stride and the shape": (
        of_one("MAX_POOL_2D", shape=(1, 3, 3, 4), kernel=(2, 2), stride=(2, 2), padding="VALID"),
        of_one("MAX_POOL_2D", shape=(1, 5, 5, 4), kernel=(2, 2), stride=(1, 1), padding="VALID"),
    ),
    "a window": tuple(
        of_one("AVERAGE_POOL_2D", shape=SHAPE, kernel=(k, 3), stride=(1, 1), padding="SAME") for k in (3, 5)
    ),
    "an axis": tuple(of_one("MEAN", ([axis],), (1, 6, 4)) for axis in (1, 2)),
    "an amount": tuple(
        of_one("PAD", ([[0, 0], [a, 2 - a], [1, 1], [0, 0]],), (1, 8, 8, 4)) for a in (0, 1)
    ),
    "a mode": tuple(
        of_one("MIRROR_PAD", ([[0, 0], [1, 1], [1, 1], [0, 0]],), (1, 8, 8, 4), mode=mode) for mode in (0, 1)
    ),
    "a beginning": tuple(of_one("SLICE", ([0, b, 0, 0], [1, 5, 6, 4]), (1, 5, 6, 4)) for b in (0, 1)),
    "an order": tuple(of_one("TRANSPOSE", (order,), SHAPE) for order in ([0, 1, 2, 3], [0, 2, 1, 3])),
    "a mask": tuple(
        of_one("STRIDED_SLICE", ([0, 1, 0, 0], [1, 6, 6, 4], [1, 1, 1, 1]), (1, size, 6, 4), begin_mask=mask)
        for mask, size in ((0, 5), (2, 6))
    ),
    "a slope": tuple(of_one("LEAKY_RELU", alpha=alpha) for alpha in (0.1, 0.2)),
    "a temperature": tuple(of_one("SOFTMAX", beta=beta) for beta in (1.0, 0.5)),
    "a direction": tuple(of_one("CUMSUM", (np.int32(1),), reverse=reverse) for reverse in (False, True)),
    "a scale of a position": tuple(
        of_one("RESIZE_BILINEAR", ([9, 9],), (1, 9, 9, 4), half_pixel_centers=half) for half in (False, True)
    ),
    "a transposition": tuple(of_one("BATCH_MATMUL", (weights((1, 6, 4, 4)),), adj_y=adj) for adj in (False, True)),
    "an index": tuple(of_one("GATHER", ([0, 1, last],), (1, 3, 6, 4), axis=1) for last in (2, 5)),
    "an operand": tuple(of_one("MUL", (np.float64(factor),)) for factor in (1.5, 2.0)),
}  # fmt: skip


@one_in(4, "pair", PAIRS)
def test_pairs_that_differ_in_one_thing(pair: str) -> None:
    """By the wrong file, given for the other model, and by none."""
    runtime, (one, other) = load_interpreter_module(), PAIRS[pair]
    values = np.random.default_rng(0).normal(0, 1.5, SHAPE).astype(np.float32)
    results = [run(interpreter(runtime, each), values)[0] for each in (one, other)]
    is_same = results[0].shape == results[1].shape and np.allclose(results[0], results[1], atol=1e-3)
    assert not is_same, "the models are the same"
    for model, wrong, expected in ((one, other, results[0]), (other, one, results[1])):
        for given in (None, wrong):
            delegate = GpuDelegate(model=given, quiet=True)
            found = run(interpreter(runtime, model, delegate), values)[0]
            np.testing.assert_allclose(found, expected, atol=1e-4)
            assert delegate.is_applied == (delegate.error is None) == (given is None)
        assert isinstance(delegate.error, ModelError)
        assert "is not the model of this interpreter: " in str(delegate.error)


@one_in(3, "scheme", SCHEMES)
def test_quantized_models_that_differ_in_one_scale_or_weight(scheme: str) -> None:
    """Some of all that are altered, as far as TensorFlow Lite takes them: by the file before, and by none."""
    model, compared = small_quantized(SCHEMES[scheme]), 0
    weights = {
        f"tensor {index}: the last zero point"
        for index, each in read_model(model).tensors.items()
        if each.data is not None
    }
    taken = [each for each in altered_models(model) if each.what.startswith("tensor") and each.what not in weights]
    for altered in taken[::4]:  # TensorFlow Lite's kernels take the zero points of weights for 0
        try:
            plain = interpreter_of(altered.data, xnnpack=False)
        except RuntimeError:
            continue
        inputs = random_inputs(plain, np.random.default_rng(1), 0, 255)
        (expected,) = inferred(plain, inputs)
        for given in (None, model):
            delegate = GpuDelegate(model=given, quiet=True)
            (found,) = inferred(interpreter_of(altered.data, delegate, xnnpack=False), inputs)
            distance = np.abs(found.astype(int) - expected)
            assert distance.max() <= 1, altered.what
            assert np.mean(distance == 0) > 0.97, altered.what
            assert (delegate.error is None) == delegate.is_applied == (given is None), altered.what
            compared += 1
    assert compared > 6


@one_in(4, "seed", asked_for(QUICK))
def test_one_change_of_a_random_network(seed: int) -> None:
    """Three changes each, of those that the reader takes; TensorFlow Lite may refuse them."""
    model, rng = random_graph(seed, "partial").build(), np.random.default_rng(seed)
    changed = [each for each in altered_models(model) if is_sound(model, each.data)]
    for place in rng.permutation(len(changed))[:3]:
        altered = changed[place]
        try:
            plain = interpreter_of(altered.data, xnnpack=False)
            inputs = random_inputs(plain, rng)
            expected = inferred(plain, inputs)
        except (RuntimeError, ValueError):
            continue
        for given in (None, model):
            with GpuDelegate(model=given, min_nodes_per_partition=1, quiet=True) as delegate:
                made = interpreter_of(altered.data, delegate, xnnpack=False)
                try:
                    error = error_of(inferred(made, inputs), expected)
                except RuntimeError as refusal:  # of a value between partitions that is not finite, by either
                    assert "takes finite numbers" in str(refusal)  # noqa: PT017
                    break
                assert error < MOST_ERROR, f"seed {seed}, {altered.what}: outputs differ by {error:.1e}"
                assert given is not None or delegate.error is None
                del made


def _weights(made: Any) -> None:
    made.tensor(1)()[...] *= 0.5


def _amounts(made: Any) -> None:
    made.tensor(4)()[1] = (0, 2)


def edited_model() -> bytes:
    builder = ModelBuilder()
    x, w, b = builder.input(SHAPE), builder.constant(weights((4, 3, 3, 4))), builder.constant(np.ones(4))
    y = builder.op("CONV_2D", [x, w, b], SHAPE, padding="SAME", stride=(1, 1))
    amounts = builder.constant([[0, 0], [1, 1], [1, 1], [0, 0]], "int32")
    builder.output(builder.op("PAD", [y, amounts], (1, 8, 8, 4)))
    return builder.build()


@pytest.mark.parametrize("edits", [[_weights], [_amounts], [_weights, _amounts]])
def test_constants_that_are_changed_before_tensors_are_allocated(
    edits: list[Callable[[Any], None]], runtime: Any
) -> None:
    """Each interpreter has bytes of its own; the delegate has been compiled by then."""
    delegate, results = GpuDelegate(strict=True, quiet=True), []
    values = np.random.default_rng(0).normal(0, 1, SHAPE).astype(np.float32)
    for delegates in ([delegate], []):
        made = runtime.Interpreter(model_content=bytes(bytearray(edited_model())), experimental_delegates=delegates)
        for edit in edits:
            edit(made)
        made.allocate_tensors()
        results.append(run(made, values)[0])
    np.testing.assert_allclose(results[0], results[1], atol=1e-5)
    assert delegate.is_applied
    unchanged = run(interpreter(runtime, edited_model()), values)[0]
    assert not np.allclose(results[0], unchanged, atol=1e-3)


def test_constants_that_are_changed_between_two_sizes(runtime: Any) -> None:
    delegate = GpuDelegate(strict=True, quiet=True)
    made = runtime.Interpreter(model_content=bytes(bytearray(edited_model())), experimental_delegates=[delegate])
    for rows, factor in ((6, 1.0), (9, 0.5), (9, 2.0), (6, 1.0)):
        made.resize_tensor_input(0, (1, rows, 6, 4))
        _set_weights(made, factor)
        made.allocate_tensors()
        plain = runtime.Interpreter(model_content=bytes(bytearray(edited_model())))
        plain.resize_tensor_input(0, (1, rows, 6, 4))
        _set_weights(plain, factor)
        plain.allocate_tensors()
        values = np.random.default_rng(rows).normal(0, 1, (1, rows, 6, 4)).astype(np.float32)
        if factor != 2.0:  # the size is the one before: TensorFlow Lite does not prepare operators anew
            np.testing.assert_allclose(run(made, values)[0], run(plain, values)[0], atol=1e-5)


def _set_weights(made: Any, factor: float) -> None:
    made.tensor(1)()[...] = factor * weights((4, 3, 3, 4))


def test_a_change_that_cannot_be_computed_is_an_error(runtime: Any) -> None:
    """The constant amounts are such that the output has another shape than its reader on the CPU can take."""
    delegate = GpuDelegate(strict=True, quiet=True)
    made = runtime.Interpreter(model_content=bytes(bytearray(edited_model())), experimental_delegates=[delegate])
    made.tensor(4)()[1] = (-3, -9)
    with pytest.raises(RuntimeError, match="cannot run on inputs of shape"):
        made.allocate_tensors()
    assert isinstance(delegate.error, UnsupportedError)
