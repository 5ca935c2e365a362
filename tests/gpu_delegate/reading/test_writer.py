"""Written models give the same bits as the original file in every tensor, and hold nothing else."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from tests.generators.profiles import random_graph
from tests.helpers.markers import one_in
from tests.helpers.original_file import run_original
from tests.model_files.model_builder import ModelBuilder, selfie_like
from tests.model_files.sketch import GraphCase, Sketch
from tests.tables.graph_cases import CASES
from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import ABSENT, Graph, Node, constant_location
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model, written_indices

Array = Any


def check_same_bits(data: bytes, inputs: Sequence[Array] | None = None, in_xnnpack: bool = True) -> None:
    """Every tensor of TensorFlow Lite's own kernels, and the outputs of XNNPACK's."""
    graph = read_model(data)
    shapes = [graph.tensors[index].shape for index in graph.inputs]
    inputs = inputs or [np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    reference = Reference(graph, threads=1, keep_all_tensors=True)
    reference.run(inputs)
    for index, wanted in zip(graph.tensors, run_original(data, inputs, graph.tensors), strict=True):
        found = reference.tensor(index)
        assert (found.shape, found.dtype, found.tobytes()) == (wanted.shape, wanted.dtype, wanted.tobytes()), index
    if in_xnnpack:
        assert run_in_xnnpack(data, inputs) == [out.tobytes() for out in run_original(data, inputs)]


def run_in_xnnpack(data: bytes, inputs: Sequence[Array]) -> list[bytes]:
    return [out.tobytes() for out in Reference(read_model(data), threads=1).run(inputs)]


def steps_over_pixels(graph: Graph) -> bool:
    """Whether a window's stride is larger than the window, which XNNPACK gets wrong where the file says SAME."""

    def kernel(node: Node) -> tuple[int, int]:
        if "POOL" in node.op:
            return node.attributes.kernel  # type: ignore[attr-defined, no-any-return]
        return graph.tensors[node.inputs[1]].shape[1:3]  # type: ignore[return-value]

    windows = [node for node in graph.nodes if hasattr(node.attributes, "stride")]
    return any(step > taps for n in windows for step, taps in zip(n.attributes.stride, kernel(n), strict=True))  # type: ignore[attr-defined]


def has_one_slope(graph: Graph) -> bool:
    """Whether one slope stands for all channels, where XNNPACK reads as many as there are channels."""
    return any(n.op == "PRELU" and graph.tensors[n.inputs[1]].shape == (1, 1, 1, 1) for n in graph.nodes)


@one_in(6, "case", CASES, ids=lambda case: case.name)
def test_small_models(case: GraphCase) -> None:
    data = case.model()
    graph = read_model(data)
    inputs = case.inputs(graph)
    if case.name == "CONV_2D groups without a bias":  # TensorFlow Lite runs what is written, with a bias of zeros
        with pytest.raises(RuntimeError, match="has_bias"):
            run_original(data, inputs)
        return
    refused = case.name == "DEQUANTIZE constant that is an output"
    check_same_bits(data, inputs, in_xnnpack=not (steps_over_pixels(graph) or has_one_slope(graph) or refused))
    if refused:
        with pytest.raises(RuntimeError, match="XNNPACK"):
            run_original(data, inputs)
        with pytest.raises(ModelError, match="XNNPACK"):
            run_in_xnnpack(data, inputs)


@pytest.mark.parametrize("seed", range(24))
def test_random_networks(seed: int) -> None:
    data = random_graph(seed, "segmentation").build()
    check_same_bits(data, in_xnnpack=not steps_over_pixels(read_model(data)))


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_of_any_ops(seed: int) -> None:
    graph = random_graph(seed)
    check_same_bits(graph.build(), graph.values(0), in_xnnpack=False)


@pytest.mark.parametrize("name", ["selfie", "selfie-landscape"])
def test_models_of_the_catalogue(name: str, request: pytest.FixtureRequest) -> None:
    file: Path = request.getfixturevalue(f"{name.replace('-', '_')}_model")
    check_same_bits(file.read_bytes())


def test_one_slope_for_all_channels_is_that_in_xnnpack_too() -> None:
    m = Sketch(0)
    m.output(m.op("PRELU", [m.image(2, 3, 5), m.random(1, 1, 1, 1)], (1, 2, 3, 5)))
    data, inputs = m.build(), [np.random.default_rng(1).uniform(-1, 1, (1, 2, 3, 5)).astype(np.float32)]
    wanted = run_original(data, inputs, [2])  # without XNNPACK
    np.testing.assert_allclose(Reference(read_model(data)).run(inputs), wanted, rtol=1e-6)


def renumbered(graph: Graph) -> Graph:
    """The graph as it is when it has been written and read."""
    indices = {ABSENT: ABSENT, **written_indices(graph)}

    def new(old: Sequence[int]) -> tuple[int, ...]:
        return tuple(indices[i] for i in old)

    op = {"Convolution2DTransposeBias": "TRANSPOSE_CONV"}
    nodes = [replace(n, op=op.get(n.op, n.op), inputs=new(n.inputs), outputs=new(n.outputs)) for n in graph.nodes]
    return replace(graph, nodes=tuple(nodes), inputs=new(graph.inputs), outputs=new(graph.outputs))


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_is_read_as_it_was(seed: int) -> None:
    graph = read_model(random_graph(seed, "segmentation").build())
    data = write_model(graph)
    again, wanted = read_model(data), renumbered(graph)
    assert (again.nodes, again.inputs, again.outputs) == (wanted.nodes, wanted.inputs, wanted.outputs)
    for old, new in written_indices(graph).items():
        a, b = graph.tensors[old], again.tensors[new]
        assert (a.shape, a.dtype, a.is_constant) == (b.shape, b.dtype, b.is_constant)
        if a.data is not None and b.data is not None:
            assert a.data.tobytes() == b.data.tobytes()
            assert (constant_location(b.data)[0] - address_of(data)) % 16 == 0
    assert write_model(graph) == data


def address_of(data: bytes) -> int:
    return constant_location(np.frombuffer(data, np.uint8))[0]


def test_numbers_tensors_anew() -> None:
    """Tensors that nothing uses, before, between and behind the others, are not written."""
    model = ModelBuilder()
    model.tensor((5,))
    x = model.input((1, 3))
    model.constant(np.zeros(1000))
    middle = model.op("NEG", [x], (1, 3))
    model.tensor((7,))
    model.output(model.op("ABS", [middle], (1, 3)))
    graph = read_model(model.build())
    assert list(graph.tensors) == [1, 3, 5]
    assert written_indices(graph) == {1: 0, 3: 1, 5: 2}
    assert len(write_model(graph)) < 1000
    reference = Reference(graph, keep_all_tensors=True)
    reference.run(np.array([[1, -2, 3]], np.float32))
    assert [reference.tensor(i).tolist() for i in graph.tensors] == [[[1, -2, 3]], [[-1, 2, -3]], [[1, 2, 3]]]


def test_every_output_comes_behind_the_models_own() -> None:
    model = ModelBuilder()
    first = model.op("NEG", [model.input((1, 3))], (1, 3))
    last = model.op("ABS", [first], (1, 3))
    model.output(last)
    graph = read_model(model.build())
    assert read_model(write_model(graph)).outputs == (2,)
    assert read_model(write_model(graph, every_output=True)).outputs == (2, 1)


def test_shared_constants_stay_shared() -> None:
    model = ModelBuilder()
    x, large = model.input((1, 1000)), model.constant(np.arange(1000))
    graph = read_model(chained(model, x, [large, *(model.constant(np.zeros(1000)) for _ in range(200))]).build())
    data = graph.tensors[large].data
    shared = {i: replace(t, data=data) if t.is_constant else t for i, t in graph.tensors.items()}
    apart, together = write_model(graph), write_model(replace(graph, tensors=shared))
    assert len(apart) - len(together) >= 200 * 4000
    again = read_model(together)
    assert len({constant_location(t.data) for t in again.tensors.values() if t.data is not None}) == 1
    (found,) = Reference(again).run(np.zeros((1, 1000), np.float32))
    np.testing.assert_array_equal(found[0], 201 * np.arange(1000, dtype=np.float32))


def chained(model: ModelBuilder, x: int, constants: Sequence[int]) -> ModelBuilder:
    """Adds one constant after the other."""
    for constant in constants:
        x = model.op("ADD", [x, constant], (1, 1000))
    model.output(x)
    return model


def test_constants_that_overlap_are_refused() -> None:
    """Every word of a large constant says 4000, so that each may be where a constant of so many bytes begins."""
    model = ModelBuilder()
    x = model.input((1, 1000))
    model.constant(np.full(2000, 4000), "int32")
    constants = [model.tensor((1000,), data=bytes(8)) for _ in range(100)]
    data = bytearray(chained(model, x, constants).build())
    buffers = [tflite.Model.GetRootAs(data, 0).Buffers(i)._tab for i in range(102)]
    fields = [tab.Pos + tab.Offset(4) for tab in buffers[1:]]
    start = fields[0] + struct.unpack_from("<I", data, fields[0])[0] + 4
    for number, field in enumerate(fields[1:]):
        struct.pack_into("<I", data, field, start + 4 * number - field)
    with pytest.raises(ModelError, match="they overlap"):
        read_model(bytes(data))
    for field in fields[1:]:
        struct.pack_into("<I", data, field, start - field)
    graph = read_model(bytes(data))
    assert len(write_model(graph)) < len(data)


def test_a_convolution_without_bias_gets_one_of_zeros() -> None:
    model = ModelBuilder()
    weights = np.random.default_rng(0).random((4, 1, 1, 3))
    inputs = [model.input((1, 5, 6, 3)), model.constant(weights)]
    model.output(model.op("CONV_2D", inputs, (1, 5, 6, 4), stride=(1, 1), dilation=(1, 1), padding="SAME"))
    x = np.random.default_rng(1).random((1, 5, 6, 3), np.float32)
    for keep_all in (False, True):
        (found,) = Reference(read_model(model.build()), keep_all_tensors=keep_all).run(x)
        np.testing.assert_allclose(found, x @ weights[:, 0, 0].T, rtol=1e-5)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1)])
def test_reshapes_to_scalars_and_back(shape: tuple[int, ...]) -> None:
    model = ModelBuilder()
    flat = model.op("RESHAPE", [model.input(shape)], (), new_shape=())
    model.output(flat, model.op("RESHAPE", [flat], shape, new_shape=shape))
    x = np.full(shape, 2.5, np.float32)
    for keep_all in (False, True):
        found = Reference(read_model(model.build()), keep_all_tensors=keep_all).run(x)
        assert [(np.shape(value), float(np.ravel(value)[0])) for value in found] == [((), 2.5), (shape, 2.5)]


def names_of(data: bytes) -> list[bytes]:
    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    return [subgraph.Tensors(i).Name() for i in range(subgraph.TensorsLength())]


@pytest.mark.parametrize("name", ["", "same", "same:0"])
def test_every_tensor_has_a_name_of_its_own(name: str) -> None:
    """Other readers know tensors by their names alone: constants of sizes that the file has for the first time, too."""
    graph = read_model(selfie_like(1, size=(32, 16)))
    alike = {i: replace(tensor, name=name if i % 3 else "same") for i, tensor in graph.tensors.items()}
    names = names_of(write_model(replace(graph, tensors=alike)))
    assert len(names) > len(alike)
    assert len({*names}) == len(names)
    assert b"" not in names
    assert names_of(write_model(graph))[: len(graph.tensors)] == [t.name.encode() for t in graph.tensors.values()]
