"""Transforms to spectra, of one and of two dimensions, cut and filled with zeros, against TensorFlow Lite."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.delegated import AnyValues
from tests.helpers.engine import run
from tests.helpers.native import native_networks
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.passes.spectra import express_spectra
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

Shape = tuple[int, ...]


def spectrum(m: Sketch, x: int, rows: int, columns: int) -> int:
    shape = (*m.shape(x)[:-2], rows, columns // 2 + 1)
    inputs = [x, m.constant((rows, columns), "int32")]
    return m.op("RFFT2D", inputs, shape, "complex64")


def part(m: Sketch, x: int, op: str = "COMPLEX_ABS") -> int:
    return m.op(op, [x], m.shape(x))


def model(shape: Shape, rows: int, columns: int) -> bytes:
    """Each part of a spectrum, one of them in another shape."""
    m = Sketch(seed=1)
    found = spectrum(m, m.input(shape), rows, columns)
    flat = (int(np.prod(m.shape(found))) // m.shape(found)[-1], m.shape(found)[-1])
    reshaped = m.op("RESHAPE", [found, m.constant(flat, "int32")], flat, "complex64")
    for op, x in (("COMPLEX_ABS", reshaped), ("REAL", found), ("IMAG", found)):
        m.output(m.unary("NEG", part(m, x, op)))
    return m.build()


MODELS = {
    f"{'x'.join(map(str, shape))} to {rows}x{columns}": model(shape, rows, columns)
    for shape, rows, columns in (
        ((5, 1, 400), 1, 512),  # frames, as of a spectrogram
        ((3, 1, 37), 1, 32),  # cut
        ((2, 3, 13), 4, 16),
        ((2, 5, 8), 2, 8),  # rows, too
        ((1, 2, 4, 8), 4, 8),
        ((4, 1), 4, 2),
        ((3, 7), 1, 4),
    )
}


def check(graph: Graph, found: dict[str, list[AnyValues]], inputs: list[AnyValues]) -> None:
    expected = Reference(graph).run(inputs)
    most = max(float(np.abs(each).max()) for each in expected)
    for way, outputs in found.items():
        for values, wanted in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(values, wanted, atol=1e-5 * most, err_msg=way)


def drawn(graph: Graph) -> list[AnyValues]:
    rng = np.random.default_rng(2)
    return [rng.normal(0, 1, graph.tensors[i].shape).astype(np.float32) for i in graph.inputs]


def test_native_code_has_the_spectra_of_tensorflow_lite() -> None:
    graphs = {name: read_model(data) for name, data in MODELS.items()}
    for name, network in native_networks(graphs).items():
        inputs = drawn(graphs[name])
        check(graphs[name], {name: list(network.run(inputs))}, inputs)


@pytest.mark.gl
@pytest.mark.parametrize("name", [*MODELS][:3])
def test_so_has_the_gpu(name: str, context: Context) -> None:
    graph = read_model(MODELS[name])
    inputs = drawn(graph)
    program = Program(context, compile_graph(graph, SOFTWARE))
    check(graph, {name: run(program, inputs)}, inputs)
    program.release()


def left(draw: Callable[[Sketch], None]) -> dict[int, str]:
    m = Sketch(seed=1)
    draw(m)
    return dict(find_refusals(read_model(m.build()), SOFTWARE).reasons)


def test_complex_numbers_stay_in_one_part() -> None:
    def whole(m: Sketch) -> None:
        m.output(part(m, spectrum(m, m.input((3, 1, 16)), 1, 16)))

    def given(m: Sketch) -> None:
        m.output(spectrum(m, m.unary("NEG", m.input((3, 1, 16))), 1, 16))

    def taken(m: Sketch) -> None:
        m.output(part(m, m.input((3, 1, 9), "complex64"), "REAL"))

    assert not left(whole)
    assert list(left(given)) == [1]
    assert "complex64" in left(given)[1]
    assert "complex64" in left(taken)[0]
    long = "lengths [1, 32768], which are no powers of two up to 16384"
    assert left(lambda m: m.output(part(m, spectrum(m, m.input((3, 1, 16)), 1, 32768))))[0] == long


@pytest.mark.gl
def test_the_delegate_takes_a_whole_spectrogram(runtime: object) -> None:
    m = Sketch(seed=1)
    m.output(m.unary("LOG", m.unary("EXP", part(m, spectrum(m, m.unary("TANH", m.input((6, 1, 20))), 1, 32)))))
    graph = read_model(m.build())
    (values,) = drawn(graph)
    delegate = GpuDelegate(strict=True)
    made = runtime.Interpreter(model_content=m.build(), experimental_delegates=[delegate])  # type: ignore[attr-defined]
    made.allocate_tensors()
    made.set_tensor(made.get_input_details()[0]["index"], values)
    made.invoke()
    check(graph, {"delegate": [made.get_tensor(made.get_output_details()[0]["index"])]}, [values])
    assert [each.nodes for each in delegate.partitions] == [(0, 1, 2, 3, 4)]


def test_matrices_take_no_more_than_twice_their_own_memory() -> None:
    graph = read_model(model((1, 1, 2048), 1, 2048))
    tracemalloc.start()
    try:
        changed, _ = express_spectra(graph)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    constants = [tensor.data for tensor in changed.tensors.values() if tensor.data is not None]
    assert most < 2.1 * sum(data.nbytes for data in constants)
