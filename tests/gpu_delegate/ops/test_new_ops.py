"""Ops that nobody has, each said by one record: kernels for GPUs and the CPU, constants, ranges, cases and advice."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.engine import DEVICES, on_gpu
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.graphs import GraphBuilder
from texelflow.app.advice.fault import Analysis
from texelflow.app.advice.kernels import lone_activations
from texelflow.app.advice.pairs import idle_operators
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.code import evaluate
from texelflow.gpu_delegate.code.digit_words import DIGIT_WORDS
from texelflow.gpu_delegate.code.real_ranges import always_is, interval_of
from texelflow.gpu_delegate.code.vocabulary import (
    ZEROS,
    Argument,
    ChooseLanes,
    Compared,
    FunctionWord,
    LaneComparison,
    Operand,
    Operation,
    Splat,
    Value,
    combined,
    larger,
    smaller,
    values_in,
)
from texelflow.gpu_delegate.model.graph import Activated, Attributes, Conv2D, Graph, Node, Reduce, Steps
from texelflow.gpu_delegate.ops.elementwise import elementwise, read_alike, write_plain
from texelflow.gpu_delegate.ops.movement import MOVE, same_channels, shape_in
from texelflow.gpu_delegate.ops.nodes import arithmetic_of
from texelflow.gpu_delegate.ops.record import Coordinates, Example, FileForm, Movement, OpRecord, Origin, Reducer
from texelflow.gpu_delegate.ops.reduce import reduction
from texelflow.gpu_delegate.ops.registry import OPS
from texelflow.gpu_delegate.passes.evaluation import fold_value
from texelflow.gpu_delegate.passes.integer_ranges import whole_ranges
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl import print_glsl
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions
from texelflow.gpu_delegate.targets.llvm import native_elementwise

Floats = npt.NDArray[np.float32]
SHAPE = (1, 5, 7, 6)
NAME = "NOBODYS_OP"
ALONE = FileForm(read_alike, write_plain, is_custom=True)
ALIKE = FileForm(read_alike, write_plain, (0, 1), (2, 2), is_custom=True)


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[OpRecord], None]:
    """Adds an op to the registry, as a row in a file of gpu_delegate/ops would."""

    def add(record: OpRecord) -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith("texelflow.") and NAME not in getattr(module, "OPS", {NAME: None}):
                monkeypatch.setattr(module, "OPS", {**OPS})
            if name.startswith("texelflow.") and hasattr(module, "OPS"):
                module.OPS[NAME] = record
            if name.startswith("texelflow.") and NAME not in getattr(module, "SUPPORTED_OPS", (NAME,)):
                monkeypatch.setattr(module, "SUPPORTED_OPS", (*module.SUPPORTED_OPS, NAME))

    return add


def on_native(graph: Graph, inputs: Sequence[Floats]) -> list[Floats]:
    return [np.asarray(each, np.float32) for each in native_networks({"": graph})[""].run(list(inputs))]


def assert_everywhere(
    context: Context, wanted: Callable[..., Any], tolerance: float = 2e-5, most_cases: int = 3
) -> None:
    """That kernels of both targets, and constants, have the same values as NumPy, for some of the op's cases."""
    cases = cases_of(NAME)
    assert cases[0].what == "example"
    for case in cases[:most_cases]:
        graph = case.graph()
        inputs = [np.asarray(each, np.float32) for each in case.inputs(graph)]
        constants = [t.data for i in graph.nodes[0].inputs if (t := graph.tensors[i]).data is not None]
        expected = wanted(*inputs, *constants)
        for found in (
            on_gpu(context, compile_graph(graph, DEVICES["software"]), inputs)[0],
            on_gpu(context, compile_graph(graph, DEVICES["hardware"]), inputs)[0],
            on_native(graph, inputs)[0],
            folded(graph, inputs),
        ):
            scale = max(1.0, float(np.abs(expected).max()))
            assert np.abs(found.reshape(expected.shape) - expected).max() <= tolerance * scale, case.name


def folded(graph: Graph, inputs: Sequence[Floats]) -> Floats:
    """What a node makes of inputs that are constants."""
    given_values = dict(zip(graph.inputs, inputs, strict=True))
    tensors = [replace(t, data=given_values.get(i, t.data)) for i in graph.nodes[0].inputs if (t := graph.tensors[i])]
    return np.asarray(fold_value(graph.nodes[0], tensors, graph.tensors[graph.outputs[0]]), np.float32)


# Elementwise ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A part of an expression: in the kernels' words, and in NumPy, of the same two operands."""

    said: Callable[[Value, Value], Operand]
    meant: Callable[[Floats, Floats], Any]


def word(name: Any, function: Callable[..., Any], *terms: Term) -> Term:
    return Term(
        lambda x, y: Operation(name, tuple(term.said(x, y) for term in terms)),
        lambda x, y: np.float32(1) * function(*(term.meant(x, y) for term in terms)),
    )


X, Y = Term(lambda x, y: x, lambda x, y: x), Term(lambda x, y: y, lambda x, y: y)
EXACT_TWO: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "minimum": np.minimum, "maximum": np.maximum, "multiply": np.multiply,
}  # fmt: skip
EXACT_ONE: dict[str, Callable[..., Any]] = {
    "negate": np.negative, "absolute": np.abs, "sign": np.sign, "floor": np.floor, "ceiling": np.ceil,
    "truncate": np.trunc, "round even": np.rint,
}  # fmt: skip
ONE_OPERAND = {
    *EXACT_ONE, *("fraction", "square root", "inverse square root", "exponential", "exponential less one", "logarithm"),
    *("sine", "cosine", "hyperbolic tangent", "error function", "logistic", "hard swish"),
}  # fmt: skip
SMOOTH: dict[FunctionWord, Callable[..., Any]] = {
    "hyperbolic tangent": np.tanh, "sine": np.sin, "cosine": np.cos, "exponential": np.exp,
    "logistic": lambda v: 1 / (1 + np.exp(-v)), "exponential less one": np.expm1,
    "hard swish": lambda v: v * np.clip(v + 3, 0, 6) / 6,
    "error function": np.vectorize(math.erf, otypes=[np.float32]),
}  # fmt: skip
COMPARED: dict[LaneComparison, Callable[..., Any]] = {
    "less": np.less, "greater": np.greater, "at least": np.greater_equal, "at most": np.less_equal,
    "equal": np.equal, "not equal": np.not_equal,
}  # fmt: skip


def of_lanes(make: Callable[..., Value], meant: Callable[..., Any], *terms: Term) -> Term:
    """A word that takes vectors, and no numbers: such are added to a vector of zeros."""
    return Term(
        lambda x, y: make(*((x - x) + t.said(x, y) for t in terms)),
        lambda x, y: meant(*(np.broadcast_to(np.float32(t.meant(x, y)), x.shape) for t in terms)),
    )


def joined(parts: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    """Words that float32 computes exactly of quarters, so that no rounding moves a step."""
    two = st.sampled_from(sorted(EXACT_TWO))
    one, how = st.sampled_from(sorted(EXACT_ONE)), st.sampled_from(sorted(COMPARED))
    return st.one_of(
        st.builds(lambda name, a, b: word(name, EXACT_TWO[name], a, b), two, parts, parts),
        st.builds(lambda name, a: word(name, EXACT_ONE[name], a), one, parts),
        st.builds(
            lambda c, a, b: of_lanes(
                lambda p, q: Compared(c, p, q), lambda p, q: COMPARED[c](p, q).astype(np.float32), a, b
            ),
            how, parts, parts,
        ),
        st.builds(
            lambda c, *terms: of_lanes(
                lambda p, q, v, w: ChooseLanes(c, p, q, v, w),
                lambda p, q, v, w: np.where(COMPARED[c](p, q), v, w),
                *terms,
            ),
            how, parts, parts, parts, parts,
        ),
    )  # fmt: skip


def limited(term: Term) -> Term:
    """Where exponentials are small."""
    return Term(
        lambda x, y: smaller(larger(term.said(x, y), -4.0), 4.0),
        lambda x, y: np.clip(term.meant(x, y), -4.0, 4.0),
    )


NUMBERS = st.integers(-8, 8).map(lambda n: Term(lambda x, y: n / 4, lambda x, y: np.float32(n / 4)))
EXACT = st.recursive(st.one_of(st.just(X), st.just(Y), NUMBERS), joined, max_leaves=6)
TERMS = st.one_of(
    EXACT,
    st.builds(
        lambda exact, name, other: word("add", np.add, word(name, SMOOTH[name], limited(exact)), other),
        EXACT, st.sampled_from(sorted(SMOOTH)), EXACT,
    ),
)  # fmt: skip


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(term=TERMS, data=st.data())
def test_an_elementwise_op(
    context: Context, register: Callable[[OpRecord], None], term: Term, data: st.DataObject
) -> None:
    def arithmetic(_: Attributes, x: Value, y: Value) -> Value:
        return x * 0.0 + term.said(x, y)

    register(elementwise(NAME, arithmetic, ALIKE, Example(shapes=(SHAPE, SHAPE), out=SHAPE), finite=False))
    (case, *_) = cases_of(NAME)
    graph = case.graph()
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-8, 9, SHAPE).astype(np.float32) / 4 for _ in graph.inputs]
    wanted = inputs[0] * 0 + term.meant(*inputs)
    for found in (
        on_gpu(context, compile_graph(graph, DEVICES["software"]), inputs)[0],
        on_native(graph, inputs)[0],
        folded(graph, inputs),
    ):
        assert np.allclose(found, wanted, rtol=2e-5, atol=2e-5)
    assert_lies_within_its_range(graph, data)
    assert_real_range_holds(arithmetic_of(graph.nodes[0]), data)


def assert_real_range_holds(arithmetic: Value, data: st.DataObject) -> None:
    """What a word makes of quarters in some ranges, and that it is an argument or a number where that is said."""
    ranges = [sorted(data.draw(st.tuples(st.integers(-8, 8), st.integers(-8, 8)))) for _ in range(2)]
    rng = np.random.default_rng(2)
    inputs = [rng.integers(low, high + 1, SHAPE).astype(np.float32) / 4 for low, high in ranges]
    ends = [(low / 4, high / 4) for low, high in ranges]
    made, (least, most) = evaluate.evaluate(arithmetic, inputs), interval_of(arithmetic, ends)
    slack = 1e-5 * max(1.0, float(np.abs(made).max()))
    assert least - slack <= made.min() <= made.max() <= most + slack
    match always_is(arithmetic, ends):
        case Argument(number):
            assert np.array_equal(made, inputs[number])
        case float(number):
            assert (made == np.float32(number)).all()


def assert_lies_within_its_range(graph: Graph, data: st.DataObject) -> None:
    """What a node makes of whole numbers in some ranges."""
    ends = [sorted(data.draw(st.tuples(st.integers(-9, 9), st.integers(-9, 9)))) for _ in graph.inputs]
    steps = {i: replace(graph.tensors[i], steps=Steps(*each)) for i, each in zip(graph.inputs, ends, strict=True)}
    found = whole_ranges(replace(graph, tensors=MappingProxyType({**graph.tensors, **steps}))).get(graph.outputs[0])
    rng = np.random.default_rng(1)
    made = folded(graph, [rng.integers(low, high + 1, SHAPE).astype(np.float32) for low, high in ends])
    if found is not None:
        assert found.low <= made.min() <= made.max() <= found.high
        assert np.array_equal(made, np.rint(made))


def test_words_of_numbers_alone_are_numbers(context: Context, register: Callable[[OpRecord], None]) -> None:
    words: list[tuple[Any, tuple[float, ...]]] = [
        (name, (0.25, -0.5, 2.0)[: {"clamp": 3, "multiply add": 3}.get(name, 1 if name in ONE_OPERAND else 2)])
        for name in evaluate.WORDS.keys() - DIGIT_WORDS  # of which numbers are no digits
    ]
    said = [Operation(name, numbers) for name, numbers in words]
    chosen = ChooseLanes("less", Splat(1.0), Splat(2.0), Splat(-4.0), Splat(3.0))

    def arithmetic(_: Attributes, x: Value) -> Value:
        return combined(
            "add", [x, *(Operation("negate", (each,)) for each in said), Compared("less", ZEROS, chosen), chosen]
        )

    register(elementwise(NAME, arithmetic, ALONE))
    known = sum(float(evaluate.evaluate(each, ())) for each in said)
    assert math.isfinite(known)
    assert_everywhere(context, lambda x: x - known - 4.0)
    left = [v for v in values_in(arithmetic_of(Node(NAME, (0,), ()))) if isinstance(v, Operation)]
    assert {each.operation for each in left} == {"add"}


def test_cases_of_an_elementwise_op_come_from_its_record(
    context: Context, register: Callable[[OpRecord], None]
) -> None:
    def arithmetic(_: Attributes, x: Value, y: Value) -> Value:
        return Operation("hyperbolic tangent", (x * y + 1.0,)) - Compared("greater", x, y)

    register(elementwise(NAME, arithmetic, ALIKE, Example(shapes=(SHAPE, SHAPE), out=SHAPE)))
    assert len(cases_of(NAME)) > 10
    assert_everywhere(context, lambda x, y: np.tanh(x * y + 1) - (x > y), most_cases=20)


def bounded(_: Attributes, x: Value) -> Value:
    return Operation("hyperbolic tangent", (x,)) * 0.5 + 0.5


def behind(op: str, first: str) -> Graph:
    """A model in which an op follows another one, between others."""
    g = GraphBuilder()
    x = g.node("SIN", [g.input(*SHAPE)])
    return g.graph(g.node("COS", [g.node(op, [g.node(first, [x])])]))


def idle(graph: Graph) -> list[str]:
    """What advice says is done in vain."""
    return [fault.what for fault in idle_operators(Analysis(compile_partitions(graph, DEVICES["software"]), None))]


def test_advice_knows_between_which_numbers_an_op_s_values_lie(register: Callable[[OpRecord], None]) -> None:
    register(elementwise(NAME, bounded, ALONE))
    assert idle(behind("RELU", NAME)) == [f"RELU of {NAME}"]
    assert idle(behind("RELU6", NAME)) == [f"RELU6 of {NAME}"]
    assert not idle(behind(NAME, NAME))
    register(elementwise(NAME, lambda _, x: Operation("hyperbolic tangent", (x,)), ALONE))
    assert not idle(behind("RELU", NAME))
    assert idle(behind("RELU_N1_TO_1", NAME)) == [f"RELU_N1_TO_1 of {NAME}"]


def test_advice_knows_what_an_op_leaves_as_it_is(register: Callable[[OpRecord], None]) -> None:
    register(elementwise(NAME, lambda _, x: smaller(larger(x, -2.0), 7.0), ALONE))
    assert idle(behind(NAME, "RELU6")) == [f"{NAME} of RELU6"]
    assert not idle(behind(NAME, "RELU"))


def test_advice_knows_which_op_gives_back_what_there_was(register: Callable[[OpRecord], None]) -> None:
    register(elementwise(NAME, lambda _, x: 1.0 - x, ALONE, undone_by=(NAME,)))
    assert idle(behind(NAME, NAME)) == [f"{NAME} and back by {NAME}"]
    register(elementwise(NAME, lambda _, x: 1.0 - x, ALONE))
    assert not idle(behind(NAME, NAME))


def test_advice_knows_an_activation(register: Callable[[OpRecord], None]) -> None:
    """One that is apart from its layer, since another op needs the value before it."""
    register(elementwise(NAME, bounded, ALONE))
    g = GraphBuilder()
    layer = g.node("CONV_2D", [g.input(*SHAPE), g.random(8, 3, 3, 6), g.random(8)], (1, 3, 5, 8), Conv2D())
    active = g.node(NAME, [layer])
    following = g.node("CONV_2D", [active, g.random(8, 1, 1, 8), g.random(8)], (1, 3, 5, 8), Conv2D())
    graph = g.graph(g.node("ADD", [following, layer], (1, 3, 5, 8), Activated()))
    found = [fault.what for fault in lone_activations(Analysis(compile_partitions(graph, DEVICES["software"]), None))]
    assert found == [f"{NAME} is not part of the layer before it"]


# Reductions -----------------------------------------------------------------------------------------------------------

FOLDS = (
    (Reducer("share", 1.0, "multiply", averages=True), lambda x, axes, n: np.prod(x, axis=axes, keepdims=True) / n),
    (Reducer("most", -math.inf, "maximum"), lambda x, axes, n: np.max(x, axis=axes, keepdims=True)),
    (Reducer("total", 0.0, "add"), lambda x, axes, n: np.sum(x, axis=axes, keepdims=True)),
)
AXES = ((1, 2), (3,), (1,))


@one_in(3, ("fold", "wanted"), FOLDS, ids=[fold.name for fold, _ in FOLDS])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_a_reduction(
    context: Context,
    register: Callable[[OpRecord], None],
    fold: Reducer,
    wanted: Callable[..., Any],
    axes: tuple[int, ...],
) -> None:
    out = tuple(1 if axis in axes else size for axis, size in enumerate(SHAPE))
    form = FileForm(read_alike, write_plain, count=(2, 2), is_custom=True)
    register(reduction(NAME, fold, form, Example((SHAPE,), out, attributes=Reduce(axes, True))))
    count = math.prod(SHAPE[axis] for axis in axes)
    assert_everywhere(context, lambda x: wanted(x, axes, count))
    graph = cases_of(NAME)[0].graph()
    steps = replace(graph.tensors[graph.inputs[0]], steps=Steps(-1, 2))
    found = whole_ranges(replace(graph, tensors={**graph.tensors, steps.index: steps})).get(graph.outputs[0])
    assert found == {"share": None, "most": Steps(-1, 2), "total": Steps(-count, 2 * count)}[fold.name]


# Moves ----------------------------------------------------------------------------------------------------------------


def rolled(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    """Each row from three rows further down, and around."""
    b, y, x, c = at
    return (Origin(0, (b, y.plus(3).modulo(shape_in(graph, node)[1]), x, c)),)


def channels_back(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    """The channels from the last to the first, but for the first column, which has none."""
    b, y, x, c = at
    last = shape_in(graph, node)[3] - 1
    return (Origin(0, (b, y, x, c.times(-1).plus(last)), x.inside(1, SHAPE[2])),)


def no_slice(graph: Graph, node: Node) -> bool:
    return False


def backwards(x: Floats) -> Floats:
    found = x[..., ::-1].copy()
    found[:, :, 0] = 0.5
    return found


MOVES: tuple[tuple[Movement, Callable[[Floats], Floats]], ...] = (
    (Movement(rolled, same_channels), lambda x: np.roll(x, -3, 1)),
    (Movement(channels_back, no_slice, fill=lambda node: 0.5), backwards),
)


@pytest.mark.parametrize(("movement", "wanted"), MOVES, ids=["rolled", "backwards"])
def test_an_op_that_moves_data(
    context: Context, register: Callable[[OpRecord], None], movement: Movement, wanted: Callable[[Floats], Floats]
) -> None:
    form = FileForm(read_alike, write_plain, is_custom=True)
    register(OpRecord(NAME, "movement", form, Example((SHAPE,), SHAPE), emission=MOVE, movement=movement))
    assert_everywhere(context, wanted, tolerance=0.0)
    graph = cases_of(NAME)[0].graph()
    steps = replace(graph.tensors[graph.inputs[0]], steps=Steps(-1, 2))
    found = whole_ranges(replace(graph, tensors={**graph.tensors, steps.index: steps})).get(graph.outputs[0])
    assert found == (Steps(-1, 2) if movement.fill is None else None)


def test_advice_knows_moves_that_bring_all_values_back(register: Callable[[OpRecord], None]) -> None:
    def exchanged(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
        b, y, x, c = at
        return (Origin(0, (b, y.times(-1).plus(SHAPE[1] - 1), x, c)),)

    for sources, wanted in ((exchanged, [f"{NAME} and back by {NAME}"]), (rolled, [])):
        movement = Movement(sources, same_channels)
        register(OpRecord(NAME, "movement", ALONE, Example((SHAPE,), SHAPE), emission=MOVE, movement=movement))
        assert idle(behind(NAME, NAME)) == wanted


# Words ----------------------------------------------------------------------------------------------------------------


STEPS = {"requantize", "requantize narrow", "requantize once", "round to steps", "add steps", "hard swish steps"}
STEPS |= {"requantize wide", "requantize wide once", "requantize product", "add short steps", "softmax steps"}


def test_each_target_knows_each_word() -> None:
    """And constants are computed of all of them but those of steps, of which passes alone make nodes."""
    words = {*get_args(FunctionWord), "add", "subtract", "multiply", "divide", "minimum", "maximum", "clamp", "floor"}
    assert words <= {*print_glsl.WORDS}
    assert words <= {*native_elementwise.WORDS}
    assert words - STEPS == {*evaluate.WORDS} - {"fraction"}
