"""Models of operators that run further subgraphs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import tflite

from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.model.graph import Activated, Graph, Node, Opaque, OptionVector, Reduce
from texelflow.gpu_delegate.reading.writer import write_model

COMPOSITE = "STABLEHLO_COMPOSITE"
_LINEAR = Activated()


def running(number: int, op: str = COMPOSITE) -> Opaque:
    """What a file says of an operator that runs a subgraph."""
    code = getattr(tflite.BuiltinOperator, op)
    if op == "WHILE":
        said = (("CondSubgraphIndex", number), ("BodySubgraphIndex", number + 1))
        return Opaque(code=code, table="WhileOptions", options=said)
    if op == "CALL":
        return Opaque(code=code, table="CallOptions", options=(("Subgraph", number),))
    nothing = OptionVector("uint8", b"\0\1\1")
    named = (("Name", b"odml.test"), ("CompositeAttributes", nothing), ("Version", 1))
    options = (*named, ("DecompositionSubgraphIndex", number))
    return Opaque(code=code, table="StableHLOCompositeOptions", options=options)


def calling(graph: Graph, bodies: Mapping[int, Graph]) -> bytes:
    """The file of a graph, and of subgraphs by their numbers."""
    return write_model(graph, called=bodies)


def norms(rows: int = 3, channels: int = 5, op: str = COMPOSITE) -> bytes:
    """Two composites of one subgraph, with other constants; that subgraph hands its result to another one.

    The subgraphs' inputs are not in the order of their numbers.
    """
    shape, g = (rows, channels), GraphBuilder(seed=3)
    y = g.node("TANH", [g.input(*shape)])
    for _ in range(2):
        y = g.node(op, [y, g.random(channels, low=0.5, high=2), g.random(channels)], shape, running(3, op))
    return calling(g.graph(y), {3: _norm(rows, channels, op), 2: _scaled(rows, channels)})


def _norm(rows: int, channels: int, op: str) -> Graph:
    """(x - mean) / sqrt(mean square + a constant) * scale + offset, the last two by another subgraph."""
    g = GraphBuilder(seed=4)
    offset, scale, x = g.input(channels), g.input(channels), g.input(rows, channels)
    mean = Reduce((1,), True)
    centered = g.node("SUB", [x, g.node("MEAN", [x], (rows, 1), mean)], attributes=_LINEAR)
    squares = g.node("MEAN", [g.node("MUL", [centered, centered], attributes=_LINEAR)], (rows, 1), mean)
    root = g.node("SQRT", [g.node("ADD", [squares, g.constant(0.125)], attributes=_LINEAR)])
    normal = g.node("DIV", [centered, root], attributes=_LINEAR)
    result = g.node(op, [normal, scale, offset], (rows, channels), running(2, op))
    return _taking(g.graph(result), x, scale, offset)


def _scaled(rows: int, channels: int) -> Graph:
    g = GraphBuilder(seed=5)
    offset, x, scale = g.input(channels), g.input(rows, channels), g.input(channels)
    scaled = g.node("MUL", [x, scale], attributes=_LINEAR)
    return _taking(g.graph(g.node("ADD", [scaled, offset], attributes=_LINEAR)), x, scale, offset)


def _taking(graph: Graph, *inputs: int) -> Graph:
    """The graph with its inputs in another order."""
    return replace(graph, inputs=inputs)


def chain(numbers: Sequence[int]) -> bytes:
    """Composites in subgraphs: the first runs numbers[0], which runs numbers[1], and so on; the last one negates."""

    def one(number: int | None) -> Graph:
        g = GraphBuilder()
        x = g.input(2, 3)
        return g.graph(g.node("NEG", [x]) if number is None else g.node(COMPOSITE, [x], (2, 3), running(number)))

    bodies = dict[int, Graph]()
    for number, after in zip(numbers, [*numbers[1:], None], strict=True):
        bodies.setdefault(number, one(after))
    return calling(one(numbers[0]), bodies)


def doubling(depth: int) -> bytes:
    """Subgraphs of which each runs the next one twice."""

    def one(number: int) -> Graph:
        g = GraphBuilder()
        x = g.input(2, 3)
        for _ in range(2):
            x = g.node("NEG", [x]) if number > depth else g.node(COMPOSITE, [x], (2, 3), running(number))
        return g.graph(x)

    return calling(one(1), {number: one(number + 1) for number in range(1, depth + 1)})


def giving_back() -> bytes:
    """A subgraph whose outputs are its input, a constant, and a sum twice."""
    g, body = GraphBuilder(), GraphBuilder()
    x, y = body.input(2, 3), body.input(2, 3)
    total, constant = body.node("ADD", [x, y], attributes=_LINEAR), body.random(2, 3)
    inputs = [g.node("NEG", [g.input(2, 3)]), g.input(2, 3)]
    found = g.nodes_outputs(COMPOSITE, inputs, [(2, 3)] * 4, running(1))
    outputs = [g.node("TANH", [tensor]) for tensor in found]
    return calling(g.graph(*outputs), {1: body.graph(x, constant, total, total)})


def loop(turns: int = 5, is_given: bool = False, columns: int = 6) -> bytes:
    """A loop that counts to a limit, an input if it is given: each turn adds a column, multiplied, to a sum."""
    g = GraphBuilder(seed=6)
    x = g.node("TANH", [g.input(3, columns)])
    start = g.input(1, dtype="int32") if is_given else g.constant([0], "int32")
    shapes = [((1,), "int32"), ((3, columns), "float32"), ((3, 1), "float32")]
    state = [start, x, g.constant(np.zeros((3, 1), np.float32))]
    outputs = tuple(g.tensor(shape, dtype) for shape, dtype in shapes)
    g.nodes.append(Node("WHILE", tuple(state), outputs, running(1, "WHILE"), len(g.nodes)))
    main = g.graph(g.node("NEG", [outputs[2]]), outputs[1])
    return calling(main, {1: _less(turns, columns), 2: _turn(columns)})


def _less(turns: int, columns: int) -> Graph:
    g = GraphBuilder()
    counter, _, _ = g.input(1, dtype="int32"), g.input(3, columns), g.input(3, 1)
    return g.graph(g.node("LESS", [counter, g.constant([turns], "int32")], (1,), dtype="bool"))


def _turn(columns: int) -> Graph:
    g = GraphBuilder(seed=7)
    counter, x, total = g.input(1, dtype="int32"), g.input(3, columns), g.input(3, 1)
    after = g.node("ADD", [counter, g.constant([1], "int32")], (1,), _LINEAR, dtype="int32")
    whole = g.node("SUM", [g.node("MUL", [x, g.random(columns)], attributes=_LINEAR)], (3, 1), Reduce((1,), True))
    return g.graph(after, g.node("TANH", [x]), g.node("ADD", [total, whole], attributes=_LINEAR))
