"""Operators that the engine does not know: kept whole, refused by the compiler, run by TensorFlow Lite."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.helpers.markers import exhaustive
from tests.helpers.original_file import run_original
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError, UsageError
from texelflow.gpu_delegate.cpu import child_interpreter
from texelflow.gpu_delegate.cpu.footprint import footprint_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import ABSENT, Graph, Opaque, OptionVector, Quantization
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model, written_indices
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

Array = Any
X = (1, 7, 9, 5)


def ints(*values: Any) -> Array:
    return np.array(values, np.int32)


def spread() -> ModelBuilder:
    m = ModelBuilder()
    places, size, zero = m.constant([1, 3, 4, 6, 8], "int32"), m.constant([9], "int32"), m.constant(0.0)
    inputs = [places, size, m.input((5,)), zero]
    m.output(m.op("SPARSE_TO_DENSE", inputs, (9,), table="SparseToDenseOptions", validate_indices=True))
    return m


def largest() -> ModelBuilder:
    """Two outputs of two types; the second is none of the model's."""
    m = ModelBuilder()
    outs = [m.tensor((1, 7, 9, 2), "int16"), m.tensor((1, 7, 9, 2), "int32")]
    x = m.op("CAST", [m.op("NEG", [m.input(X)], X)], X, "int16", table="CastOptions")
    values, _ = m.op_of("TOPK_V2", [x, m.constant(2, "int32")], outs, table="TopKV2Options")
    m.output(m.op("CAST", [values], (1, 7, 9, 2), table="CastOptions"))
    return m


def in_buckets() -> ModelBuilder:
    """A vector among the options."""
    m = ModelBuilder()
    bounds = np.array([0.25, 0.5, 0.75], np.float32)
    m.output(m.op("BUCKETIZE", [m.input((1, 4, 3))], (1, 4, 3), "int32", table="BucketizeOptions", boundaries=bounds))
    return m


def counted() -> ModelBuilder:
    """int64, bool and float64, and a constant of no size."""
    m = ModelBuilder()
    x = m.input((4, 3))
    less = m.op("LESS", [x, m.constant(0.5)], (4, 3), "bool", table="LessOptions")
    best = m.op("ARG_MAX", [x, m.constant(1, "int32")], (4,), "int64", table="ArgMaxOptions", output_type=4)
    wide = m.op("CAST", [x], (4, 3), "float64", table="CastOptions")
    m.output(less, best, wide, m.op("RESHAPE", [m.op("NEG", [x], (4, 3)), m.constant(ints(12), "int32")], (12,)))
    return m


def unknown_sizes() -> ModelBuilder:
    """Sizes that are computed while it runs: the shapes in the file are those of one element."""
    m = ModelBuilder()
    x = m.input((4, 3))
    place = m.op("WHERE", [m.op("GREATER", [x, m.constant(0.5)], (4, 3), "bool")], (1, 2), "int64")
    m.output(
        place,
        m.op("FILL", [m.op("SHAPE", [x], (2,), "int32", table="ShapeOptions", out_type=2), m.constant(2.5)], (1, 1)),
    )
    return m


def integers() -> ModelBuilder:
    """A convolution of 16-bit integers, with a scale for each channel, that are enlarged."""
    m, rng = ModelBuilder(), np.random.default_rng(0)
    x = m.op_of("QUANTIZE", [m.input(X)], [m.tensor(X, "int16", scales=(1 / 64,), zero_points=(0,))])[0]
    scales = tuple(rng.uniform(0.004, 0.01, 6).tolist())
    weights = rng.integers(-127, 128, (6, 3, 3, 5)).astype(np.int8)
    bias = rng.integers(-500, 500, 6).astype(np.int64)
    inputs = [
        x,
        m.tensor((6, 3, 3, 5), "int8", weights.tobytes(), scales=scales, zero_points=(0,) * 6),
        m.tensor((6,), "int64", bias.tobytes(), scales=tuple(s / 64 for s in scales), zero_points=(0,) * 6),
    ]
    out = m.tensor((1, 7, 9, 6), "int16", scales=(0.03,), zero_points=(0,))
    m.op_of("CONV_2D", inputs, [out], stride=(1, 1), dilation=(1, 1), padding="SAME", activation="RELU")
    larger, size = m.tensor((1, 14, 18, 6), "int16", scales=(0.03,), zero_points=(0,)), m.constant((14, 18), "int32")
    options: dict[str, Any] = {"align_corners": False, "half_pixel_centers": False}
    m.output(
        m.op("DEQUANTIZE", [out], (1, 7, 9, 6)), out, *m.op_of("RESIZE_BILINEAR", [out, size], [larger], **options)
    )
    return m


def remembered() -> ModelBuilder:
    """A variable: the state of a recurrent layer."""
    m, rng = ModelBuilder(), np.random.default_rng(0)
    inputs = [m.input((2, 3)), *(m.constant(rng.uniform(-1, 1, shape)) for shape in ((4, 3), (4, 4), (4,)))]
    inputs.append(m.tensor((2, 4), is_variable=True))
    m.output(m.op("RNN", inputs, (2, 4), table="RNNOptions", activation="SIGN_BIT"))
    return m


def five_dimensions() -> ModelBuilder:
    m = ModelBuilder()
    m.output(m.op("SEGMENT_SUM", [m.input((3, 2, 3, 2, 2)), m.constant([0, 0, 1], "int32")], (2, 2, 3, 2, 2)))
    return m


def custom_detections() -> ModelBuilder:
    """A custom op that TensorFlow Lite has, with its flexbuffer of options."""
    m = ModelBuilder()
    options = flexbuffer()
    outs = [m.tensor(shape) for shape in ((1, 2, 4), (1, 2), (1, 2), (1,))]
    inputs = [m.input((1, 6, 4)), m.input((1, 6, 3)), m.constant(np.random.default_rng(0).random((6, 4)))]
    m.output(*m.op_of("TFLite_Detection_PostProcess", inputs, outs, custom=options))
    return m


def flexbuffer() -> bytes:
    from flatbuffers import flexbuffers

    builder = flexbuffers.Builder()
    scales = {f"{axis}_scale": size for axis, size in (("y", 10.0), ("x", 10.0), ("h", 5.0), ("w", 5.0))}
    with builder.Map():
        for name, count in {"max_detections": 2, "max_classes_per_detection": 1, "num_classes": 2}.items():
            builder.Int(name, count)
        for name, value in {"nms_score_threshold": 0.1, "nms_iou_threshold": 0.6, **scales}.items():
            builder.Float(name, value)
    return bytes(builder.Finish())


def branches() -> ModelBuilder:
    """IF: its options lead to other subgraphs, so that only the file itself will do."""
    m = ModelBuilder()
    x = m.input((1, 3))
    positive = m.op("GREATER", [m.op("SUM", [x, m.constant(ints(0, 1), "int32")], ()), m.constant(0.0)], (), "bool")
    out = m.op("IF", [positive, x], (1, 3), table="IfOptions", then_subgraph_index=1, else_subgraph_index=2)
    for op in ("NEG", "ABS"):
        part = ModelBuilder()
        part.output(part.op(op, [part.input((1, 3))], (1, 3)))
        m.further.append(part)
    m.output(m.op("RELU", [out], (1, 3)))
    return m


def words() -> ModelBuilder:
    """Texts among the constants and the inputs."""
    m = ModelBuilder()
    text = np.array([1, 12, 16], np.int32).tobytes() + b"open"
    given = m.tensor((1,), "string")
    m.inputs.append(given)
    m.output(m.op("EQUAL", [given, m.tensor((1,), "string", text)], (1,), "bool"))
    return m


WRITTEN = (
    *(spread, largest, in_buckets, counted, unknown_sizes, integers, remembered, five_dimensions),
    custom_detections,
)
ORIGINAL = (branches, words)
ALL = pytest.mark.parametrize("build", [*WRITTEN, *ORIGINAL], ids=lambda build: build.__name__)
BY_NAME = pytest.mark.parametrize("build", WRITTEN, ids=lambda build: build.__name__)


def inputs_of(graph: Graph) -> list[Array]:
    rng, tensors = np.random.default_rng(1), [graph.tensors[index] for index in graph.inputs]
    return [np.array([b"open"]) if t.dtype == "string" else rng.random(t.shape, np.float32) for t in tensors]


def check_same(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    assert [(f.shape, f.dtype, f.tobytes()) for f in found] == [(w.shape, w.dtype, w.tobytes()) for w in wanted]


@ALL
def test_computes_the_same_as_the_original(build: Callable[[], ModelBuilder]) -> None:
    data = build().build()
    graph = read_model(data)
    assert graph.opaque
    assert (build in ORIGINAL) == bool(graph.original)
    inputs = inputs_of(graph)
    wanted = run_original(data, [i.astype(object) if i.dtype.kind == "S" else i for i in inputs])
    reference = Reference(graph, threads=1)
    check_same(reference.run(inputs), wanted)
    if build is not remembered:
        check_same(reference.run(inputs), wanted)
    assert reference.output_dtypes == tuple(w.dtype.name for w in wanted)


@pytest.mark.parametrize("build", [largest, integers, counted], ids=lambda build: build.__name__)
def test_gives_inner_tensors(build: Callable[[], ModelBuilder]) -> None:
    data = build().build()
    graph = read_model(data)
    inputs, written = inputs_of(graph), [i for node in graph.nodes for i in node.outputs]
    reference = Reference(graph, threads=1, keep_all_tensors=True)
    reference.run(inputs)
    check_same([reference.tensor(i) for i in written], run_original(data, inputs, written))


@BY_NAME
def test_is_read_as_it_was_written(build: Callable[[], ModelBuilder]) -> None:
    graph = read_model(build().build())
    data = write_model(graph)
    again, indices = read_model(data), {ABSENT: ABSENT, **written_indices(graph)}
    assert write_model(again) == data
    for old, new in zip(graph.nodes, again.nodes, strict=True):
        assert (new.op, new.inputs, new.outputs) == (
            old.op, tuple(indices[i] for i in old.inputs), tuple(indices[i] for i in old.outputs),
        )  # fmt: skip
        assert isinstance(old.attributes, Opaque) == isinstance(new.attributes, Opaque)
        if isinstance(old.attributes, Opaque) and isinstance(new.attributes, Opaque):
            assert old.attributes.options == new.attributes.options
            assert old.attributes.custom_options == new.attributes.custom_options
    for index, tensor in graph.tensors.items():
        other = again.tensors[indices[index]]
        assert (tensor.shape, tensor.dtype, tensor.is_variable) == (other.shape, other.dtype, other.is_variable)
        assert tensor.quantization == other.quantization


def test_keeps_what_the_file_says() -> None:
    (node,) = read_model(spread().build()).nodes
    assert isinstance(node.attributes, Opaque)
    assert node.attributes.reason == "not supported"
    assert (node.attributes.table, node.attributes.options) == (
        "SparseToDenseOptions",
        (("ValidateIndices", True),),
    )
    (node,) = read_model(in_buckets().build()).nodes
    assert isinstance(node.attributes, Opaque)
    bounds = np.array([0.25, 0.5, 0.75], np.float32).tobytes()
    assert node.attributes.options == (("Boundaries", OptionVector("float32", bounds)),)
    graph = read_model(integers().build())
    x, weights, bias = (graph.tensors[i] for i in graph.nodes[1].inputs)
    assert x.quantization == Quantization((1 / 64,), (0,))
    assert weights.quantization is not None
    assert (len(weights.quantization.scales), weights.quantization.zero_points) == (6, (0,) * 6)
    assert (weights.dtype, bias.dtype) == ("int8", "int64")
    assert bias.data is not None
    assert bias.data.dtype == np.int64


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            spread,
            "operator 0 (SPARSE_TO_DENSE) is not supported; `texelflow inspect --ops` lists the ops that are",
        ),
        (largest, "operator 1 (CAST): tensor 4 is int16, only float32"),
        (integers, "operator 3 (RESIZE_BILINEAR): tensor 4 is int16, only float32 is supported"),
        (branches, "operator 2 (IF): runs other subgraphs"),
    ],
)
def test_is_refused_by_the_compiler(build: Callable[[], ModelBuilder], said: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_graph(read_model(build().build()), SOFTWARE)
    assert str(caught.value).startswith(f"model: {said}")


def test_inputs_and_outputs_that_are_no_floats_are_refused_by_the_compiler() -> None:
    m = ModelBuilder()
    m.input((1, 3), "float64")
    m.output(m.op("RELU", [m.input((1, 3))], (1, 3)))
    graph = read_model(m.build())
    assert not graph.opaque
    with pytest.raises(UnsupportedError, match="tensor 0 is float64, only float32"):
        compile_graph(graph, SOFTWARE)


def test_a_custom_op_with_the_name_of_a_builtin_is_none() -> None:
    m = ModelBuilder()
    m.output(m.op("relu", [m.input((1, 3))], (1, 3)))
    data = m.build().replace(b"relu", b"RELU")
    (node,) = read_model(data).nodes
    assert isinstance(node.attributes, Opaque)
    assert node.attributes.custom_code == b"RELU"
    with pytest.raises(ModelError, match=r"cannot run this model on the CPU: .*RELU"):
        Reference(read_model(data))


def test_gives_inner_tensors_of_an_original_file() -> None:
    graph = read_model(branches().build())
    reference = Reference(graph, keep_all_tensors=True)
    for x in (np.array([[1, 2, -9]], np.float32), np.array([[1, 2, 9]], np.float32)):
        (found,) = reference.run(x)
        inner = reference.tensor(graph.nodes[-1].inputs[0])
        np.testing.assert_array_equal(inner, -x if x.sum() > 0 else abs(x))
        np.testing.assert_array_equal(found, np.maximum(inner, 0))


# What goes wrong in the child -----------------------------------------------------------------------------------------


def no_bias() -> ModelBuilder:
    """TensorFlow Lite 2.14 reads the bias that is not there."""
    m = ModelBuilder()
    inputs = [m.input((1, 4, 4, 3)), m.constant(np.ones((1, 3, 3, 3)))]
    m.output(m.op("DEPTHWISE_CONV_2D", inputs, (1, 4, 4, 3), stride=(1, 1), dilation=(1, 1), depth_multiplier=1))
    return m


def many_dimensions() -> ModelBuilder:
    """TensorFlow Lite's own kernels, not XNNPACK's, abort where they broadcast in so many."""
    m = ModelBuilder()
    m.output(m.op("SUB", [m.input((2,) * 6), m.constant(np.ones(2))], (2,) * 6))
    return m


def too_large() -> ModelBuilder:
    m = ModelBuilder()
    x = m.input(())
    m.output(m.op("ADD", [m.op("FILL", [m.constant(ints(1 << 16, 1 << 15), "int32"), x], (1, 1)), x], (1, 1)))
    return m


def endless() -> ModelBuilder:
    """WHILE of what is always true."""
    m = ModelBuilder()
    condition, body = ModelBuilder(), ModelBuilder()
    condition.input((1, 3))
    condition.output(condition.op("EQUAL", [condition.constant(1.0), condition.constant(1.0)], (), "bool"))
    body.output(body.op("NEG", [body.input((1, 3))], (1, 3)))
    m.further += [condition, body]
    x = m.input((1, 3))
    m.output(m.op("WHILE", [x], (1, 3), table="WhileOptions", cond_subgraph_index=1, body_subgraph_index=2))
    return m


@pytest.mark.parametrize(
    ("build", "keep_all"), [(no_bias, False), (no_bias, True), (many_dimensions, True), (too_large, False)]
)
def test_a_model_that_kills_it_ends_in_one_line(build: Callable[[], ModelBuilder], keep_all: bool) -> None:
    graph = read_model(build().build())
    with pytest.raises(ModelError, match="TensorFlow Lite cannot run this model on the CPU") as caught:
        Reference(graph, 1, keep_all).run(inputs_of(graph))
    assert str(caught.value).isprintable()


@exhaustive
def test_a_model_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_interpreter, "MOST_SECONDS", 1)
    graph = read_model(endless().build())
    reference = Reference(graph, threads=1)
    with pytest.raises(ModelError, match=r"on the CPU: it (ran longer than 1 s|ends with SIGALRM)"):
        reference.run(inputs_of(graph))
    with pytest.raises(ModelError, match="cannot run this model"):
        reference.run(inputs_of(graph))


def test_refuses_inputs_of_another_type() -> None:
    m = ModelBuilder()
    m.output(m.op("CAST", [m.input((1, 3), "uint8")], (1, 3)))
    reference = Reference(read_model(m.build()))
    assert reference.input_dtypes == ("uint8",)
    (found,) = reference.run(np.array([[1, 2, 255]], np.uint8))
    assert found.tolist() == [[1, 2, 255]]
    with pytest.raises(UsageError, match=r"takes inputs of the types \('uint8',\), not float32"):
        reference.run(np.zeros((1, 3), np.float32))


def test_it_has_a_footprint() -> None:
    small, large = (footprint_of(read_model(build().build()), False) for build in (in_buckets, integers))
    assert 0 < small.memory_bytes < large.memory_bytes < 10 << 20
    m = ModelBuilder()
    m.output(m.op("CUMSUM", [m.input((4096, 4096)), m.constant(0, "int32")], (4096, 4096)))
    assert 128 << 20 <= footprint_of(read_model(m.build()), False).memory_bytes <= 512 << 20
