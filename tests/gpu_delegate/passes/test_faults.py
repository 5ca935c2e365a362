"""Runs that TensorFlow Lite refuses (indices out of range, divisions by 0) are refused here, and no others."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.delegated import inferred, interpreter_of
from tests.helpers.markers import one_in
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import InferenceError
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.passes.faults import flag_faults
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.saving.saved_graph import restore_graph, save_graph
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.image import parse_image
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork

Draw = Callable[[ModelBuilder, int], int]  # a model and its input of three whole numbers; the output


def gather(m: ModelBuilder, i: int) -> int:
    return m.op("GATHER", [m.constant(np.ones((4, 5))), i], (3, 5), axis=0)


def gather_of_batch(m: ModelBuilder, i: int) -> int:
    rows = m.op("RESHAPE", [i, m.constant([3, 1], "int32")], (3, 1), "int32")
    return m.op("GATHER", [m.constant(np.ones((3, 4, 5))), rows], (3, 1, 5), axis=1, batch_dims=1)


def gather_of_five(m: ModelBuilder, i: int) -> int:
    rows = m.op("RESHAPE", [i, m.constant([1, 1, 3, 1, 1], "int32")], (1, 1, 3, 1, 1), "int32")
    return m.op("GATHER", [m.constant(np.ones(4)), rows], (1, 1, 3, 1, 1), axis=0)


def gather_nd(m: ModelBuilder, i: int) -> int:
    row = m.op("RESHAPE", [i, m.constant([1, 3], "int32")], (1, 3), "int32")
    return m.op("GATHER_ND", [m.constant(np.ones((4, 4, 4, 3))), row], (1, 3))


def embedding(m: ModelBuilder, i: int) -> int:
    return m.op("EMBEDDING_LOOKUP", [i, m.constant(np.ones((4, 5)))], (3, 5))


def scatter_nd(m: ModelBuilder, i: int) -> int:
    rows = m.op("RESHAPE", [i, m.constant([3, 1], "int32")], (3, 1), "int32")
    return m.op("SCATTER_ND", [rows, m.constant(np.ones((3, 5))), m.constant([4, 5], "int32")], (4, 5))


def whole_floor_div(m: ModelBuilder, i: int) -> int:
    return m.op("FLOOR_DIV", [m.constant([7, 8, 9], "int32"), i], (3,), "int32")


def whole_floor_mod(m: ModelBuilder, i: int) -> int:
    return m.op("FLOOR_MOD", [m.constant([7, 8, 9], "int32"), i], (3,), "int32")


def floor_div(m: ModelBuilder, i: int) -> int:
    return m.op("FLOOR_DIV", [m.constant([7.0, 8.0, 9.0]), m.op("CAST", [i], (3,))], (3,))


def gather_at_logarithms(m: ModelBuilder, i: int) -> int:
    """Of what is below 0 there is none: nan becomes an index."""
    places = m.op("CAST", [m.op("LOG", [m.op("CAST", [i], (3,))], (3,))], (3,), "int32")
    return m.op("GATHER", [m.constant(np.ones((4, 5))), places], (3, 5), axis=0)


LOOKUPS: tuple[Draw, ...] = (gather, gather_of_batch, gather_of_five, gather_nd, embedding, scatter_nd)
DIVISIONS: tuple[Draw, ...] = (whole_floor_div, whole_floor_mod, floor_div)


def model(draw: Draw, scales: tuple[float, ...] = ()) -> bytes:
    m = ModelBuilder()
    m.inputs.append(m.tensor((3,), "int32", scales=scales, zero_points=(0,) * len(scales)))
    m.outputs.append(draw(m, m.inputs[0]))
    return m.build()


def refuses(run: Callable[[], object]) -> bool:
    try:
        run()
    except RuntimeError:
        return True
    return False


def by_tensorflow_lite(data: bytes, values: npt.NDArray[Any]) -> bool:
    """Whether TensorFlow Lite refuses these."""
    interpreter = load_interpreter_module(newer=values.dtype == np.int8).Interpreter(model_content=data)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    return refuses(interpreter.invoke)


def by_opengl(program: Program, values: npt.NDArray[Any]) -> bool:
    graph, gl = program.compiled.source, program.context.gl
    program.write(graph.inputs[0], values)
    gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)
    program.run()
    gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)
    return refuses(lambda: program.read(graph.outputs[0]))


def outputs_of(graph: Graph) -> Sequence[int]:
    return flag_faults(graph)[0].outputs


@pytest.mark.gl
@pytest.mark.parametrize("scales", [(), (1.0,)], ids=["plain", "with a scale"])
@one_in(4, "draw", [*LOOKUPS, gather_at_logarithms, *DIVISIONS])
def test_what_tensorflow_lite_refuses_is_refused(draw: Draw, scales: tuple[float, ...], context: Context) -> None:
    """A scale of an integer of 32 bits, which some files have, means nothing."""
    data = model(draw, scales)
    graph = read_model(data)
    network = NativeNetwork.load(graph, threads=1)
    with Program(context, compile_graph(graph, device_of(context))) as program:
        for values in ([0, 1, 3], [3, 4, 1], [2, -1, 1], [1, 2, 1 << 20], [3, 3, 3], [-5, 2, 0], [1, 1, 1]):
            whole = np.array(values, np.int32)
            expected = by_tensorflow_lite(data, whole)
            if draw is gather_of_batch:  # TensorFlow Lite reads other maps of the batch then
                expected = not 0 <= whole.min() <= whole.max() < 4
            found = by_opengl(program, whole), refuses(lambda whole=whole: network.run(whole))  # type: ignore[misc]
            assert found == (expected, expected), values
    context.check_errors("running what is refused")


@pytest.mark.gl
@pytest.mark.parametrize("op", ["SQRT", "RSQRT"])
def test_bytes_below_zero_have_no_roots(op: str, context: Context) -> None:
    m = ModelBuilder()
    x, y = (m.tensor((3,), "int8", scales=(0.05,), zero_points=(zero_point,)) for zero_point in (4, 3))
    m.inputs.append(x)
    m.output(*m.op_of(op, [x], [y]))
    graph = read_model(m.build())
    network = NativeNetwork.load(graph, threads=1)
    with Program(context, compile_graph(graph, device_of(context))) as program:
        for values in ([4, 5, 127], [3, 6, 7], [9, 10, -128], [5, 5, 5]):
            data = np.array(values, np.int8)
            found = by_opengl(program, data), refuses(lambda data=data: network.run(data))  # type: ignore[misc]
            expected = by_tensorflow_lite(m.build(), data)
            assert found == (expected, expected), values
    network.close()


@pytest.mark.parametrize("op", ["DIV", "FLOOR_DIV", "FLOOR_MOD"])
def test_constants_of_zero_divide_nothing(op: str) -> None:
    """TensorFlow Lite fails at each run, so such an operator is left to it; floats have inf and nan in two of them."""
    for dtype, is_refused in (("int32", True), ("float32", op == "FLOOR_DIV")):
        m = ModelBuilder()
        scales = (1.0,) * (dtype == "int32")  # of 32 bits, where they mean nothing
        y = m.tensor((3,), dtype, scales=scales, zero_points=(0,) * len(scales))
        m.output(*m.op_of(op, [m.input((3,), dtype), m.constant([3, 0, 2], dtype)], [y]))
        (reason,) = find_refusals(read_model(m.build()), SOFTWARE).reasons.values() if is_refused else ("",)
        assert ("a divisor is 0, at which TensorFlow Lite stops" in reason) == is_refused
        if op != "DIV" or not is_refused:  # of tflite-runtime 2.14, whose process that of integers ends
            assert by_tensorflow_lite(m.build(), np.ones(3, dtype)) == is_refused


@pytest.mark.gl
@pytest.mark.parametrize("draw", [gather, scatter_nd, floor_div])
def test_interpreters_with_the_delegate_raise_as_without(draw: Draw) -> None:
    data = model(draw)
    with texelflow.GpuDelegate() as delegate:
        interpreter = interpreter_of(data, delegate)
        assert delegate.partitions
        for values, is_refused in (([1, 2, 3], False), ([0, -1, 9], True), ([3, 2, 1], False)):
            whole = np.array(values, np.int32)
            if is_refused:
                with pytest.raises(RuntimeError, match=r"index out of bounds|division by 0"):
                    inferred(interpreter, [whole])
            else:
                (found,), (expected,) = inferred(interpreter, [whole]), inferred(interpreter_of(data), [whole])
                assert (found == expected).all()


@pytest.mark.gl
def test_one_word_tells_of_all(context: Context) -> None:
    m = ModelBuilder()
    first, second = m.input((3,), "int32"), m.input((3,), "int32")
    m.outputs += [gather(m, first), floor_div(m, second), gather(m, second)]
    graph = read_model(m.build())
    compiled = compile_graph(graph, device_of(context))
    faults = compiled.graph.faults
    assert faults is not None
    assert (len(faults.messages), compiled.graph.outputs) == (3, (*graph.outputs, faults.tensor))
    with Program(context, compiled) as program:
        for values, line in (
            (([0, 1, 2], [1, 2, 3]), None),
            (([0, 1, 4], [1, 2, 3]), "gather index out of bounds; GATHER, operator 0, failed to run"),
            (([0, 1, 2], [1, 0, 3]), "division by 0; FLOOR_DIV, operator 2, failed to run"),
            (([0, 1, 2], [1, 5, 3]), "gather index out of bounds; GATHER, operator 3, failed to run"),
        ):
            for tensor, each in zip(graph.inputs, values, strict=True):
                program.write(tensor, np.array(each, np.int32))
            program.run()
            context.gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)
            if line is None:
                assert program.read(graph.outputs[0]).tolist() == [[1.0] * 5] * 3
            else:
                with pytest.raises(InferenceError) as caught:
                    program.read(graph.outputs[1])
                assert str(caught.value) == line


def test_what_is_proved_costs_nothing() -> None:
    m = ModelBuilder()
    x = m.input((3,), "int32")
    low = m.op("MAXIMUM", [x, m.constant(1, "int32")], (3,), "int32")
    m.outputs.append(gather(m, m.op("MINIMUM", [low, m.constant(3, "int32")], (3,), "int32")))
    m.outputs.append(gather(m, m.constant([0, 3, 1], "int32")))
    m.outputs.append(whole_floor_div(m, low))
    graph = read_model(m.build())
    assert flag_faults(graph)[0] is graph


def test_images_and_saved_graphs_keep_it(context: Context) -> None:
    graph = read_model(model(gather))
    compiled = compile_graph(graph, device_of(context))
    restored = restore_graph(save_graph(compiled), graph)
    assert restored is not None
    assert restored.graph.faults == compiled.graph.faults is not None
    image = NativeNetwork.load(graph, threads=1).image
    parsed = parse_image(image.to_bytes(), lambda _: image.weights)
    assert parsed is not None
    assert (parsed.faults, parsed.outputs) == (image.faults, graph.outputs)
