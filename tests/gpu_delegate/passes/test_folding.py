"""Constant folding with NumPy gives what TensorFlow Lite computes from the same values."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.model_files.graph_writer import run_graph
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.model.graph import (
    Activated,
    Alpha,
    Attributes,
    Axes,
    Axis,
    BatchToSpace,
    Concatenation,
    Graph,
    MirrorPad,
    Pad,
    Padding,
    Reduce,
    Repeat,
    SpaceToBatch,
    StridedSlice,
    Transpose,
)
from texelflow.gpu_delegate.ops import nodes
from texelflow.gpu_delegate.ops.elementwise import Gelu
from texelflow.gpu_delegate.ops.fake_quant import FakeQuant
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.ops.running_sum import RunningSum
from texelflow.gpu_delegate.passes import folding
from texelflow.gpu_delegate.passes.evaluation import can_fold, fold_value
from texelflow.gpu_delegate.passes.folding import fold_constants
from texelflow.gpu_delegate.reading.writer import write_model

Draw = Callable[[GraphBuilder], int]


def unary(op: str, low: float = -3.0, high: float = 7.0, attributes: Attributes = Attributes()) -> Draw:  # noqa: B008
    return lambda g: g.node(op, [g.random(3, 5, low=low, high=high)], None, attributes)


def binary(op: str, dtype: str = "float32", out: str = "", activation: str | None = None, low: float = -9) -> Draw:
    """A map and one value per channel, which is not zero."""

    def draw(g: GraphBuilder) -> int:
        a = g.rng.uniform(low, 9, (2, 3, 5))
        b = g.rng.uniform(1, 9, 5) * (g.rng.choice((-1, 1), 5) if low < 0 else 1)
        attributes = Attributes() if activation is None else Activated(activation)
        return g.node(op, [g.constant(a, dtype), g.constant(b, dtype)], None, attributes, out or dtype)

    return draw


def logical(op: str, count: int = 2) -> Draw:
    def draw(g: GraphBuilder) -> int:
        return g.node(op, [g.constant(g.rng.integers(0, 2, (4, 5)), "bool") for _ in range(count)], dtype="bool")

    return draw


def selected(op: str) -> Draw:
    def draw(g: GraphBuilder) -> int:
        return g.node(op, [g.constant(g.rng.integers(0, 2, (4, 5)), "bool"), g.random(4, 5), g.random(4, 5)])

    return draw


def cast(dtype: str, to: str) -> Draw:
    return lambda g: g.node("CAST", [g.constant(g.rng.uniform(-9, 9, (4, 5)), dtype)], (4, 5), dtype=to)


def move(op: str, attributes: Attributes, *shape: int, dtype: str = "float32") -> Draw:
    """Of a constant of shape (2, 3, 4, 5)."""
    return lambda g: g.node(
        op, [g.constant(g.rng.uniform(-9, 9, (2, 3, 4, 5)), dtype)], tuple(shape), attributes, dtype
    )


def several(op: str, attributes: Attributes, *shape: int) -> Draw:
    return lambda g: g.node(op, [g.random(2, 3), g.random(2, 3), g.random(2, 3)], tuple(shape), attributes)


def truths(op: str) -> Draw:
    return lambda g: g.node(op, [g.constant(g.rng.integers(0, 2, (4, 3, 2)), "bool")], (4, 2), Reduce((1,)), "bool")


def gathered(g: GraphBuilder) -> int:
    return g.node("GATHER", [g.random(2, 7, 3), g.constant((6, 0, 0, 2), "int32")], (2, 4, 3), Axis(1))


def extremum(op: str, dtype: str = "float32", to: str = "int32") -> Draw:
    """Along columns of which many are equal, and where not all are numbers."""

    def draw(g: GraphBuilder) -> int:
        values = g.rng.integers(-2, 2, (2, 9, 3)).astype(dtype)
        if dtype == "float32":
            values[0, 0, 0] = values[0, 3, 1] = values[1, :, 2] = np.nan
        return g.node(op, [g.constant(values, dtype)], (2, 3), Reduce((1,)), to)

    return draw


PART = StridedSlice((1, 2, 3, 0), (1, 2, 2, 3), (1, -2, -3, 2))
CASES: dict[str, Draw] = {
    **{op: unary(op) for op in ("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LOGISTIC", "TANH", "ELU")},
    **{op: unary(op) for op in ("ABS", "NEG", "EXP", "SQUARE", "SIN", "COS", "FLOOR", "CEIL", "ROUND", "SIGN")},
    **{op: unary(op, low=0.1) for op in ("LOG", "SQRT", "RSQRT")},
    "LEAKY_RELU": unary("LEAKY_RELU", attributes=Alpha(0.3)),
    **{op: binary(op, activation="NONE") for op in ("ADD", "SUB", "MUL", "DIV")},
    **{f"{op} int32": binary(op, "int32", activation="NONE") for op in ("ADD", "SUB", "MUL", "DIV")},
    **{f"ADD {kind}": binary("ADD", activation=kind) for kind in ("RELU", "RELU6", "RELU_N1_TO_1")},
    **{op: binary(op) for op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD")},
    **{f"{op} int32": binary(op, "int32") for op in ("FLOOR_DIV", "FLOOR_MOD", "MAXIMUM")},
    "POW": binary("POW", low=0.1),
    "POW int32": binary("POW", "int32", low=1),
    **{op: binary(op, "int32", "bool") for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER")},
    "GREATER_EQUAL": binary("GREATER_EQUAL", out="bool"),
    **{op: logical(op) for op in ("LOGICAL_AND", "LOGICAL_OR")},
    "LOGICAL_NOT": logical("LOGICAL_NOT", 1),
    **{op: selected(op) for op in ("SELECT", "SELECT_V2")},
    "CAST to int32": cast("float32", "int32"),
    "CAST to float32": cast("int32", "float32"),
    "CAST to bool": cast("int32", "bool"),
    "CAST of bool": cast("bool", "float32"),
    "SHAPE": move("SHAPE", Attributes(), 4, dtype="int32"),
    "RESHAPE": move("RESHAPE", Attributes(), 6, 20),
    "EXPAND_DIMS": move("EXPAND_DIMS", Attributes(), 2, 3, 1, 4, 5),
    "SQUEEZE": lambda g: g.node("SQUEEZE", [g.random(1, 3, 1, 4)], (3, 4)),
    "TRANSPOSE": move("TRANSPOSE", Transpose((3, 0, 2, 1)), 5, 2, 4, 3),
    "STRIDED_SLICE": move("STRIDED_SLICE", PART, 1, 2, 2, 3),
    "SLICE": move("SLICE", StridedSlice((1, 0, 2, 1), (1, 3, 2, 4), (1, 1, 1, 1)), 1, 3, 2, 4),
    "PAD": move("PAD", Pad(((1, 0), (0, 2), (0, 0), (3, 1))), 3, 5, 4, 9),
    "PADV2": move("PADV2", Pad(((1, 0), (0, 2), (0, 0), (3, 1)), 0.25), 3, 5, 4, 9),
    "MIRROR_PAD": move("MIRROR_PAD", MirrorPad(((1, 0), (0, 2), (0, 0), (3, 1))), 3, 5, 4, 9),
    "MIRROR_PAD edge": move("MIRROR_PAD", MirrorPad(((2, 0), (0, 2), (0, 0), (3, 1)), True), 4, 5, 4, 9),
    "TILE": move("TILE", Repeat((2, 1, 3, 1)), 4, 3, 12, 5),
    "REVERSE_V2": move("REVERSE_V2", Axes((1,)), 2, 3, 4, 5),
    "CONCATENATION": several("CONCATENATION", Concatenation("NONE", 1), 2, 9),
    "PACK": several("PACK", Axis(1), 2, 3, 3),
    "GATHER": gathered,
    "BROADCAST_TO": lambda g: g.node("BROADCAST_TO", [g.random(1, 5)], (2, 3, 5)),
    "SUM": move("SUM", Reduce((1, 3)), 2, 4),
    "MEAN": move("MEAN", Reduce((1, 3), True), 2, 1, 4, 1),
    "REDUCE_PROD": move("REDUCE_PROD", Reduce((1, 3), True), 2, 1, 4, 1),
    "REDUCE_MAX": move("REDUCE_MAX", Reduce((0,)), 3, 4, 5, dtype="int32"),
    "REDUCE_MIN": move("REDUCE_MIN", Reduce((2, 3), True), 2, 3, 1, 1),
    **{op: extremum(op) for op in ("ARG_MAX", "ARG_MIN")},
    **{f"{op} int32": extremum(op, "int32", "int64") for op in ("ARG_MAX", "ARG_MIN")},
    "CUMSUM": move("CUMSUM", RunningSum(2), 2, 3, 4, 5),
    "CUMSUM the other way": move("CUMSUM", RunningSum(1, True, True), 2, 3, 4, 5, dtype="int32"),
    "PRELU": lambda g: g.node("PRELU", [g.random(2, 3, 5, low=-3, high=3), g.random(5)]),
    "ADD_N": several("ADD_N", Attributes(), 2, 3),
    "ATAN2": lambda g: g.node("ATAN2", [g.random(3, 5, low=-3, high=3), g.random(3, 5, low=-3, high=3)]),
    "GELU": unary("GELU", attributes=Gelu()),
    "GELU approximated": unary("GELU", low=-1, attributes=Gelu(True)),
    "FAKE_QUANT": unary("FAKE_QUANT", attributes=FakeQuant(-2.0, 5.0, 4)),
    **{op: truths(op) for op in ("REDUCE_ANY", "REDUCE_ALL")},
    "SPACE_TO_DEPTH": lambda g: g.node("SPACE_TO_DEPTH", [g.random(2, 4, 6, 3)], (2, 2, 3, 12)),
    "DEPTH_TO_SPACE": lambda g: g.node("DEPTH_TO_SPACE", [g.random(2, 2, 3, 12)], (2, 4, 6, 3)),
    "SPACE_TO_BATCH_ND": lambda g: g.node(
        "SPACE_TO_BATCH_ND", [g.random(1, 3, 5, 2)], (4, 2, 3, 2), SpaceToBatch((2, 2), Padding(1, 0, 0, 1))
    ),
    "BATCH_TO_SPACE_ND": lambda g: g.node(
        "BATCH_TO_SPACE_ND", [g.random(4, 2, 3, 2)], (1, 3, 5, 2), BatchToSpace((2, 2), Padding(1, 0, 0, 1))
    ),
    "FILL": lambda g: g.node("FILL", [g.constant((2, 3), "int32"), g.constant(1.5)], (2, 3)),
    "RANGE": lambda g: g.node("RANGE", [g.constant(0.1), g.constant(2.05), g.constant(0.1)], (20,)),
    "RANGE int32": lambda g: g.node(
        "RANGE", [g.constant(9, "int32"), g.constant(-2, "int32"), g.constant(-3, "int32")], (4,), dtype="int32"
    ),
}


OWN_OPTIONS = (
    "GELU",
    "FAKE_QUANT",
    "REDUCE_ANY",
    "REDUCE_ALL",
    "SPACE_TO_DEPTH",
    "DEPTH_TO_SPACE",
)  # that the engine's writer knows


def run_model(graph: Graph) -> list[npt.NDArray[Any]]:
    """The outputs of TensorFlow Lite's own kernels, whose inputs are constants in the file."""
    module = load_interpreter_module()
    resolver = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = module.Interpreter(model_content=write_model(graph), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def drawn(draw: Draw) -> tuple[Graph, int]:
    """A graph whose output is a copy of what was drawn, since outputs are not folded."""
    builder = GraphBuilder()
    folded = draw(builder)
    dtype = builder.tensors[folded].dtype
    out = builder.node("RESHAPE", [folded], builder.shape(folded), dtype=dtype)
    return builder.graph(out), folded


@pytest.mark.parametrize("name", CASES)
def test_constants_are_computed_as_tensorflow_lite_does(name: str) -> None:
    graph, folded = drawn(CASES[name])
    changed, outcome = fold_constants(graph)
    assert [node.op for node in changed.nodes] == ["RESHAPE"], outcome.declined
    found = changed.tensors[folded]
    (wanted,) = run_model(graph) if name.partition(" ")[0] in OWN_OPTIONS else run_graph(graph, [], True)
    assert found.data is not None
    assert found.data.flags.c_contiguous
    assert (found.data.shape, found.data.dtype) == (found.shape, np.dtype(found.dtype))
    assert found.data.dtype == wanted.dtype
    assert np.allclose(found.data, wanted, rtol=1e-6, atol=1e-7)


def test_every_fold_has_a_case() -> None:
    """But those of bytes, whose results need scales, and what passes alone make."""
    others = {"DEQUANTIZE", "DENSIFY", "RELU_0_TO_1", "QUANTIZE"}
    said = {name for name in SUPPORTED_OPS if can_fold(name) or OPS[name].of_shape is not None}
    assert {name.partition(" ")[0] for name in CASES} | others | {"RANK", "ZEROS_LIKE"} == said


MAPS = [name for name in CASES if OPS[name.partition(" ")[0]].evaluate and OPS[name.partition(" ")[0]].movement]


@pytest.mark.parametrize("name", MAPS)
def test_an_op_moves_constants_as_its_map_moves_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tensors of any rank need a function for is what its kernels do."""
    graph, folded = drawn(CASES[name])
    node = next(node for node in graph.nodes if folded in node.outputs)
    inputs, output = [graph.tensors[i] for i in node.inputs], graph.tensors[folded]
    wanted = fold_value(node, inputs, output)
    others = {**OPS, node.op: replace(OPS[node.op], evaluate=None)}
    monkeypatch.setattr(nodes, "OPS", others)
    if node.op == "GATHER":  # whose positions are values
        with pytest.raises(ValueError, match="places"):
            fold_value(node, inputs, output)
    else:
        assert np.array_equal(fold_value(node, inputs, output), wanted)


def test_shapes_of_runtime_tensors_are_constants() -> None:
    """The target shape of a RESHAPE, as converters compute it."""
    g = GraphBuilder()
    x = g.input(1, 4, 5, 3)
    shape = g.node("SHAPE", [x], (4,), dtype="int32")
    batch = g.node("STRIDED_SLICE", [shape], (), StridedSlice((0,), (1,), (1,)), "int32")
    packed = g.node("PACK", [batch, g.constant(60, "int32")], (2,), Axis(0), "int32")
    changed, outcome = fold_constants(g.graph(g.node("RESHAPE", [x], (1, 60)), g.node("CAST", [packed], (2,))))
    assert [node.op for node in changed.nodes] == ["RESHAPE", "CAST"]
    assert outcome.applied == 3
    data = changed.tensors[packed].data
    assert data is not None
    assert data.tolist() == [1, 60]


def test_values_computed_alike_are_one_constant() -> None:
    g = GraphBuilder()
    half = g.constant(g.rng.uniform(-1, 1, 1000), "float16")
    first, second = (g.node("DEQUANTIZE", [half], (1000,)) for _ in range(2))
    changed, _ = fold_constants(g.graph(g.node("ADD", [g.input(1000), first]), g.node("ADD", [g.input(1000), second])))
    assert changed.tensors[first].data is changed.tensors[second].data
    assert changed.tensors[first].dtype == "float32"


def refused(draw: Draw) -> str:
    graph, _ = drawn(draw)
    changed, outcome = fold_constants(graph)
    assert outcome.applied == 0
    assert changed == graph
    (reason,) = outcome.declined
    return reason


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda g: g.node("DEQUANTIZE", [g.constant((1, 2), "int8")], (2,)), "int8 constants need scales"),
        (lambda g: g.node("ADD", [g.constant((1, 2), "int8")] * 2, dtype="int8"), "int8 constants need scales"),
        (
            lambda g: g.node("DIV", [g.constant((1, 2), "int32"), g.constant((1, 0), "int32")], dtype="int32"),
            "divided by zero",
        ),
        (
            lambda g: g.node("POW", [g.constant((1, 2), "int32"), g.constant((1, -1), "int32")], dtype="int32"),
            "negative exponent",
        ),
        (lambda g: g.node("CAST", [g.constant((1, 3e9))], (2,), dtype="int32"), "int32 cannot hold"),
        (lambda g: g.node("CAST", [g.constant((1, np.nan))], (2,), dtype="int32"), "int32 cannot hold"),
        (lambda g: g.node("GATHER", [g.random(3), g.constant((3,), "int32")], (1,), Axis(0)), "positions 3 to 3 of 3"),
        (lambda g: g.node("TILE", [g.random(3)], (3,), Repeat((1 << 40,))), "for the shape"),
        (lambda g: g.node("PAD", [g.random(3)], (3,), Pad(((0, 1 << 40),))), "for the shape"),
        (lambda g: g.node("STRIDED_SLICE", [g.random(3)], (2,), StridedSlice((2,), (2,), (1,))), "2 to 3 of 3"),
        (lambda g: g.node("ADD", [g.random(3), g.random(4)], (4,)), "broadcast"),
        (lambda g: g.node("TRANSPOSE", [g.random(3, 4)], (3, 4), Transpose((1, 0))), "a value of shape"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_computed_stays(draw: Draw, reason: str) -> None:
    assert reason in refused(draw)


def test_outputs_of_the_model_stay_to_be_written() -> None:
    g = GraphBuilder()
    graph = g.graph(g.node("NEG", [g.random(3)]))
    changed, outcome = fold_constants(graph)
    assert changed == graph
    assert "an output of the model" in outcome.declined[0]


def test_memory_is_bounded_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    g = GraphBuilder()
    made = [g.node("FILL", [g.constant((1000,), "int32"), g.constant(float(k))], (1000,)) for k in range(3)]
    graph = g.graph(*(g.node("ADD", [g.input(1000), k]) for k in made))
    monkeypatch.setattr(folding, "MOST_FOLDED_BYTES", 8000)
    changed, outcome = fold_constants(graph)
    assert [node.op for node in changed.nodes] == ["FILL", "ADD", "ADD", "ADD"]
    assert "constants of more than" in outcome.declined[0]
    tensors = {**graph.tensors, made[0]: replace(graph.tensors[made[0]], shape=(1 << 40,))}
    assert fold_constants(replace(graph, tensors=tensors))[1].applied == 2


def test_sparse_weights_that_the_reader_made_dense() -> None:
    g = GraphBuilder()
    sparse = g.constant(g.rng.uniform(-1, 1, (3, 4)), "float16")
    dense = g.node("DENSIFY", [sparse], (3, 4), dtype="float16")
    weights = g.node("DEQUANTIZE", [dense], (3, 4))
    changed, _ = fold_constants(g.graph(g.node("ADD", [g.input(3, 4), weights])))
    found, given = changed.tensors[weights].data, g.tensors[sparse].data
    assert found is not None
    assert given is not None
    assert np.array_equal(found, given.astype(np.float32))
