"""Tensors of a real interpreter in textures and buffers, against an interpreter that has all in RAM."""

import re
from collections.abc import Iterator
from typing import Any

import moderngl
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.pictures import byte_rounding
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.delegate.io_binding import IoBinding
from texelflow.gpu_delegate.targets.gl.context import Context

Values = npt.NDArray[np.float32]
SHAPE = (1, 5, 7, 3)


@pytest.fixture
def gl(context: Context) -> Iterator[moderngl.Context]:
    """The context of textures and buffers, in which the delegate works, too."""
    yield context.mgl
    context.check_errors("the delegate")


def convolution() -> bytes:
    builder, rng = ModelBuilder(), np.random.default_rng(1)
    weights, bias = builder.constant(rng.normal(0, 0.3, (4, 3, 3, 3))), builder.constant(rng.normal(0, 1, 4))
    image = builder.input(SHAPE)
    value = builder.op("CONV_2D", [image, weights, bias], (1, 5, 7, 4), padding="SAME", stride=(1, 1))
    builder.output(builder.op("LOGISTIC", [value], (1, 5, 7, 4)))
    return builder.build()


def sum_and_difference() -> bytes:
    builder = ModelBuilder()
    a, b = builder.input(SHAPE), builder.input(SHAPE)
    builder.output(*(builder.op(op, [a, b], SHAPE) for op in ("ADD", "SUB")))
    return builder.build()


def two_partitions() -> bytes:
    """The first one computes what only the second one reads, and what the CPU sums up for it."""
    builder = ModelBuilder()
    y = builder.op("TANH", [builder.input(SHAPE)], SHAPE)
    left = builder.op("NEG", [y], SHAPE)
    summed = builder.cpu_op(y)
    builder.output(builder.op("ADD", [summed, left], SHAPE))
    return builder.build()


class Model:
    """A model with the delegate and without it."""

    def __init__(self, file: bytes, gl: moderngl.Context, runtime: Any, **options: Any) -> None:
        self.delegate = texelflow.GpuDelegate(model=file, context=gl, quiet=True, min_nodes_per_partition=1, **options)
        self.made = runtime.Interpreter(model_content=file, experimental_delegates=[self.delegate])
        self.plain = runtime.Interpreter(
            model_content=file,
            experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        for one in (self.made, self.plain):
            one.allocate_tensors()
        self.inputs = [detail["index"] for detail in self.plain.get_input_details()]
        self.outputs = [detail["index"] for detail in self.plain.get_output_details()]

    def expected(self, *inputs: Values) -> list[Values]:
        """The outputs of TensorFlow Lite alone."""
        for index, values in zip(self.inputs, inputs, strict=True):
            self.plain.set_tensor(index, values)
        self.plain.invoke()
        return [self.plain.get_tensor(index) for index in self.outputs]

    def run(self, *inputs: Values | None) -> list[Values]:
        """Outputs in RAM, with inputs there but for those that are bound."""
        for index, values in zip(self.inputs, inputs, strict=True):
            if values is not None:
                self.made.set_tensor(index, values)
        self.made.invoke()
        return [self.made.get_tensor(index) for index in self.outputs]


def values_of(seed: int, shape: tuple[int, ...] = SHAPE) -> Values:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def texture_of(gl: moderngl.Context, values: Values) -> moderngl.Texture:
    _, height, width, channels = values.shape
    return gl.texture((width, height), channels, values.tobytes(), alignment=1, dtype="f4")


def floats_in(buffer: moderngl.Buffer, shape: tuple[int, ...]) -> Values:
    return np.frombuffer(buffer.read(), np.float32).reshape(shape)


@pytest.mark.parametrize("wait_type", ["passive", "active", "do-not-wait", "aggressive"])
def test_from_a_texture_to_a_buffer_without_ram(gl: moderngl.Context, runtime: Any, wait_type: Any) -> None:
    model, target = Model(convolution(), gl, runtime, wait_type=wait_type), gl.buffer(reserve=560)
    for seed in range(2):
        values = values_of(seed)
        (expected,) = model.expected(values)
        texture = texture_of(gl, values)
        model.delegate.bind_input(model.inputs[0], texture)
        model.delegate.bind_output(model.outputs[0], target)
        (in_ram,) = model.run(None)
        np.testing.assert_allclose(floats_in(target, expected.shape), expected, atol=1e-5)
        assert np.isnan(in_ram).all()
        texture.release()
    model.delegate.release()
    target.release()


def test_a_picture_becomes_a_picture(gl: moderngl.Context, context: Context, runtime: Any) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (5, 7, 4), np.uint8)
    model = Model(convolution(), gl, runtime)
    (expected,) = model.expected((codes[None, :, :, :3] / 255.0).astype(np.float32))
    source, target = gl.texture((7, 5), 4, codes.tobytes()), gl.texture((7, 5), 4)
    model.delegate.bind_input(model.inputs[0], source)
    model.delegate.bind_output(model.outputs[0], target)
    model.run(None)
    found = np.frombuffer(target.read(), np.uint8).reshape(5, 7, 4)
    np.testing.assert_allclose(found, expected[0] * 255, atol=byte_rounding(context) + 0.01)
    model.delegate.release()
    source.release()
    target.release()


def test_tensors_in_ram_beside_bound_ones_and_back_again(gl: moderngl.Context, runtime: Any) -> None:
    model, target = Model(sum_and_difference(), gl, runtime), gl.buffer(reserve=420)
    a, b, c = (values_of(seed) for seed in range(3))
    texture = texture_of(gl, b)
    model.delegate.bind_input(model.inputs[1], texture)
    model.delegate.bind_output(model.outputs[0], target, "BHWC")
    in_ram = model.run(a, c)
    sums, differences = model.expected(a, b)
    np.testing.assert_array_equal(floats_in(target, SHAPE), sums)
    np.testing.assert_array_equal(in_ram[1], differences)
    for index in (model.inputs[1], model.outputs[0]):
        model.delegate.unbind(index)
    for found, expected in zip(model.run(a, c), model.expected(a, c), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(floats_in(target, SHAPE), sums)  # as it was left
    model.delegate.release()
    texture.release()
    target.release()


def inner_tensor(model: Model) -> int:
    """What the first partition computes and the second one alone reads."""
    first, second = model.delegate.partitions
    (index,) = set(first.outputs) & set(second.inputs)
    return index


def test_what_only_partitions_read_stays_on_the_gpu(
    gl: moderngl.Context, runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, moved = Model(two_partitions(), gl, runtime), list[tuple[str, int]]()
    for name in ("take", "upload"):
        real = getattr(IoBinding, name)

        def noted(io: IoBinding, tensor: int, *rest: Any, name: str = name, real: Any = real) -> None:
            moved.append((name, tensor))
            real(io, tensor, *rest)

        monkeypatch.setattr(IoBinding, name, noted)
    inner = inner_tensor(model)
    for seed in range(2):
        moved.clear()
        values = values_of(seed)
        np.testing.assert_allclose(model.run(values)[0], model.expected(values)[0], atol=1e-5)
        assert [name for name, tensor in moved if tensor == inner] == ["take"]
        assert [name for name, tensor in moved if tensor != inner] == ["upload", "upload"]
    model.delegate.release()


def test_a_tensor_between_two_partitions_can_be_bound(gl: moderngl.Context, runtime: Any) -> None:
    model, seen = Model(two_partitions(), gl, runtime), gl.buffer(reserve=420)
    inner, values, other = inner_tensor(model), values_of(0), values_of(1)
    model.delegate.bind_output(inner, seen)
    (expected,) = model.expected(values)
    np.testing.assert_allclose(model.run(values)[0], expected, atol=1e-5)
    negated = model.plain.get_tensor(inner)
    np.testing.assert_allclose(floats_in(seen, SHAPE), negated, atol=1e-5)
    given = gl.buffer(other.tobytes())
    model.delegate.bind_input(inner, given)
    np.testing.assert_allclose(model.run(values)[0], expected - negated + other, atol=1e-5)
    model.delegate.unbind(inner)
    np.testing.assert_allclose(model.run(values)[0], expected, atol=1e-5)
    model.delegate.release()
    seen.release()
    given.release()


def test_an_output_that_is_bound_reaches_the_partitions_that_read_it(gl: moderngl.Context, runtime: Any) -> None:
    builder = ModelBuilder()
    y = builder.op("TANH", [builder.input(SHAPE)], SHAPE)
    left = builder.op("NEG", [y], SHAPE)
    summed = builder.cpu_op(y)
    builder.output(builder.op("ADD", [summed, left], SHAPE), left)
    model, target, values = Model(builder.build(), gl, runtime), gl.buffer(reserve=420), values_of(0)
    assert len(model.delegate.partitions) == 2
    model.delegate.bind_output(model.outputs[1], target)
    for _ in range(2):
        added, negated = model.run(values)
        expected = model.expected(values)
        np.testing.assert_allclose(added, expected[0], atol=1e-5)
        assert np.isnan(negated).all()
        np.testing.assert_allclose(floats_in(target, SHAPE), expected[1], atol=1e-5)
    model.delegate.release()
    target.release()


def test_what_the_cpu_reads_is_in_ram_though_it_is_bound(gl: moderngl.Context, runtime: Any) -> None:
    model, seen, values = Model(two_partitions(), gl, runtime), gl.buffer(reserve=420), values_of(0)
    (index,) = set(model.delegate.partitions[0].outputs) - {inner_tensor(model)}
    model.delegate.bind_output(index, seen)
    np.testing.assert_allclose(model.run(values)[0], model.expected(values)[0], atol=1e-5)
    np.testing.assert_allclose(floats_in(seen, SHAPE), np.tanh(values), atol=1e-5)
    (summed,) = set(model.delegate.partitions[1].inputs) - {inner_tensor(model)}
    with pytest.raises(UsageError, match=rf"tensor {summed} \(.*\) is computed by an operator on the CPU"):
        model.delegate.bind_input(summed, seen)
    model.delegate.release()
    seen.release()


def test_an_input_that_the_cpu_needs_as_well_cannot_be_bound(gl: moderngl.Context, runtime: Any) -> None:
    builder = ModelBuilder()
    x = builder.input(SHAPE)
    builder.output(builder.op("TANH", [x], SHAPE), builder.cpu_op(x))
    model, texture = Model(builder.build(), gl, runtime), texture_of(gl, values_of(0))
    with pytest.raises(UsageError, match=r"tensor \d+ \(.*\) is read by operators on the CPU, too"):
        model.delegate.bind_input(model.inputs[0], texture)
    with pytest.raises(UsageError, match=r"tensor \d+ \(.*\) is no output of what runs on the GPU"):
        model.delegate.bind_output(model.outputs[1], texture)
    for index in (99, -1, "x", [1], None):
        with pytest.raises(UsageError, match=rf"tensor {re.escape(str(index))} \(no tensor of the model\) is no input"):
            model.delegate.bind_input(index, texture)  # type: ignore[arg-type]
    model.delegate.release()
    texture.release()


def test_another_size_needs_another_texture(gl: moderngl.Context, runtime: Any) -> None:
    model, small, large = Model(convolution(), gl, runtime), values_of(0), values_of(1, (1, 6, 9, 3))
    textures = [texture_of(gl, values) for values in (small, large)]
    index = model.inputs[0]
    model.delegate.bind_input(index, textures[0])
    for made in (model.made, model.plain):
        made.resize_tensor_input(index, large.shape)
    model.plain.allocate_tensors()
    with pytest.raises(RuntimeError, match=r"was bound for the shape \[1, 5, 7, 3\] and has \[1, 6, 9, 3\] now"):
        model.made.allocate_tensors()
    model.delegate.unbind(index)
    model.made.allocate_tensors()
    model.delegate.bind_input(index, textures[1])
    np.testing.assert_allclose(model.run(None)[0], model.expected(large)[0], atol=1e-5)
    model.made.resize_tensor_input(index, large.shape)  # as it is: what is bound stays bound
    model.made.allocate_tensors()
    np.testing.assert_allclose(model.run(None)[0], model.expected(large)[0], atol=1e-5)
    model.delegate.release()
    for texture in textures:
        texture.release()


def test_a_buffer_that_is_large_enough_is_not_read_for_another_shape(gl: moderngl.Context, runtime: Any) -> None:
    model, buffer = Model(convolution(), gl, runtime), gl.buffer(values_of(0).tobytes())
    model.delegate.bind_input(model.inputs[0], buffer)
    for shape in ((1, 4, 6, 3), SHAPE):
        model.made.resize_tensor_input(model.inputs[0], shape)
        if shape != SHAPE:
            with pytest.raises(RuntimeError, match=r"has \[1, 4, 6, 3\] now; unbind it before it is resized"):
                model.made.allocate_tensors()
    model.made.allocate_tensors()
    np.testing.assert_allclose(model.run(None)[0], model.expected(values_of(0))[0], atol=1e-5)
    model.delegate.release()
    buffer.release()


def test_what_has_been_released_fails_the_call(gl: moderngl.Context, runtime: Any) -> None:
    model, texture, values = Model(convolution(), gl, runtime), texture_of(gl, values_of(0)), values_of(1)
    model.delegate.bind_input(model.inputs[0], texture)
    model.run(None)
    texture.release()
    with pytest.raises(RuntimeError, match="is bound to a Texture that has been released"):
        model.made.invoke()
    assert isinstance(model.delegate.error, UsageError)
    model.delegate.unbind(model.inputs[0])
    np.testing.assert_allclose(model.run(values)[0], model.expected(values)[0], atol=1e-5)
    model.delegate.release()
    with pytest.raises(UsageError, match="has been released"):
        model.delegate.unbind(0)
    with pytest.raises(UsageError, match="has been released"):
        model.delegate.bind_input(0, (1, 0))


def test_a_delegate_without_tensors_or_with_another_context_binds_nothing(gl: moderngl.Context, runtime: Any) -> None:
    texture = gl.texture((7, 5), 3)
    with pytest.raises(UsageError, match="no tensors to bind; make an interpreter with it first"):
        texelflow.GpuDelegate(context=gl).bind_input(0, texture)
    delegate = texelflow.GpuDelegate(quiet=True)
    made = runtime.Interpreter(model_content=convolution(), experimental_delegates=[delegate])
    for given in (texture, (1, 0)):
        with pytest.raises(UsageError, match="has a context of its own; give it that of what is bound, as context="):
            delegate.bind_input(made.get_input_details()[0]["index"], given)
    delegate.release()
    texture.release()
