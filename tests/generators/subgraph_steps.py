"""Steps that add ops with graphs of their own to a random graph: composites, branches, and loops with drawn bodies.

Bodies keep the shapes of what they are given, so that they fit where a tensor fits, and their values about one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flatbuffers.flexbuffers import Dumps

from tests.generators.random_graphs import RandomGraph
from tests.model_files.moves import ints, reshaped
from tests.model_files.sketch import Sketch

MOST_ROUNDS = 5  # of a loop
MOST_DEPTH = 2  # of bodies within bodies
COMPOSITES = ("drawn.layer", "drawn.block")  # which no runtime knows by name
_UNARY = ("TANH", "LOGISTIC", "RELU", "ABS", "NEG", "RELU6", "SIN", "COS")
_BINARY = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
Body = Callable[[Sketch, int], int]  # adds an op that keeps the shape of a tensor


class _Body(Sketch):
    """What is drawn keeps differences small: the rounds of a loop repeat them, and GPU and CPU round differently."""

    def random(self, *shape: int) -> int:
        fan_in = float(np.prod(shape[1:])) if len(shape) in (2, 4) else 1.0
        return self.constant(self.rng.uniform(-1, 1, shape) / max(1.0, fan_in) ** 0.5)


def composite(graph: RandomGraph) -> int:
    """STABLEHLO_COMPOSITE: of one tensor or two, one or both of which come out again."""
    xs = _carried(graph)
    number = _body_of(graph, graph, xs, 0)
    return _outputs(
        graph, graph.op_of("STABLEHLO_COMPOSITE", xs, _like(graph, xs), **_composite_options(graph, number))
    )


def branched(graph: RandomGraph) -> int:
    """IF: by a truth value that is an input, or computed of one; every fifth has one branch twice."""
    xs = _carried(graph)
    first = _body_of(graph, graph, xs, 0)
    other = first if graph.chance(0.2) else _body_of(graph, graph, xs, 0)
    options = {"then_subgraph_index": first, "else_subgraph_index": other}
    return _outputs(graph, graph.op_of("IF", [_condition(graph), *xs], _like(graph, xs), **options))


def looped(graph: RandomGraph) -> int:
    """WHILE: a counter below a constant, or below a number that is an input, and what the rounds carry along."""
    xs = _carried(graph)
    shape = graph.pick(((), (1,)))
    limit = graph.constant(np.full(shape, graph.rng.integers(0, MOST_ROUNDS)), "int32")
    if graph.chance(0.3):
        given = graph.binary("MINIMUM", graph.fresh("int32", shape=shape), ints(graph, MOST_ROUNDS), dtype="int32")
        limit = graph.note(given, MOST_ROUNDS)
    start = graph.constant(np.zeros(shape), "int32")
    carried = [start, limit, *xs]
    options = {"cond_subgraph_index": _while_below(graph, xs, shape), "body_subgraph_index": _round(graph, xs, shape)}
    kinds = [*(graph.tensor(shape, "int32") for _ in range(2)), *_like(graph, xs)]
    return _outputs(graph, graph.op_of("WHILE", carried, kinds, **options)[2:])


def _carried(graph: RandomGraph) -> list[int]:
    """One tensor or two of floats, about one."""
    return [graph.bounded(graph.value(), 4.0) for _ in range(graph.pick((1, 1, 2)))]


def _like(graph: Sketch, xs: Sequence[int]) -> list[int]:
    return [graph.tensor(graph.shape(x)) for x in xs]


def _outputs(graph: RandomGraph, tensors: Sequence[int]) -> int:
    for tensor in tensors:
        graph.note(tensor, 4.0)
    for tensor in tensors[1:]:
        graph.keep(tensor)
    return tensors[0]


def _condition(graph: RandomGraph) -> int:
    given = graph.fresh("bool", shape=(1,))
    return graph.op("LOGICAL_NOT", [given], (1,), "bool") if graph.chance(0.3) else given


def _composite_options(graph: RandomGraph, number: int) -> dict[str, Any]:
    return {
        "table": "StableHLOCompositeOptions",
        "Name": graph.pick(COMPOSITES),  # op_of has a "name" of its own
        "decomposition_subgraph_index": number,
        "composite_attributes": np.frombuffer(Dumps({"number": number}), np.uint8),
    }


def _while_below(graph: RandomGraph, xs: Sequence[int], shape: tuple[int, ...]) -> int:
    """The number of a new subgraph: counter < limit."""
    sketch = _empty(graph)
    counter, limit = sketch.input(shape, "int32"), sketch.input(shape, "int32")
    for x in xs:
        sketch.input(graph.shape(x))
    sketch.output(sketch.op("LESS", [counter, limit], shape, "bool"))
    return _numbered(graph, sketch)


def _round(graph: RandomGraph, xs: Sequence[int], shape: tuple[int, ...]) -> int:
    """The number of a new subgraph: the counter and 1, the limit as it was, and what becomes of the rest."""
    sketch = _empty(graph)
    counter, limit = sketch.input(shape, "int32"), sketch.input(shape, "int32")
    given = [sketch.input(graph.shape(x)) for x in xs]
    one = sketch.constant(np.ones(shape), "int32")
    following = sketch.op("ADD", [counter, one], shape, "int32")
    sketch.output(following, limit, *_changed(graph, sketch, given, 1))
    return _numbered(graph, sketch)


def _body_of(graph: RandomGraph, outer: Sketch, xs: Sequence[int], depth: int) -> int:
    """The number of a new subgraph that takes and gives tensors of these shapes."""
    sketch = _empty(graph)
    given = [sketch.input(outer.shape(x)) for x in xs]
    sketch.output(*_changed(graph, sketch, given, depth + 1))
    return _numbered(graph, sketch)


def _empty(graph: RandomGraph) -> Sketch:
    return _Body(int(graph.rng.integers(1 << 30)))


def _numbered(graph: RandomGraph, sketch: Sketch) -> int:
    graph.further.append(sketch)
    return len(graph.further)


def _changed(graph: RandomGraph, sketch: Sketch, given: Sequence[int], depth: int) -> list[int]:
    """Each behind some ops, of which the last bounds it; two are mixed now and then."""
    found = []
    for x in given:
        start = x
        for _ in range(graph.below(5)):
            x = graph.pick(_STEPS)(sketch, x)
        others = [y for y in given if y != start and sketch.shape(y) == sketch.shape(x)]
        if others and graph.chance(0.5):
            x = sketch.binary("ADD", x, others[0])
        if depth < MOST_DEPTH and graph.chance(0.15):
            inner = _composite_options(graph, _body_of(graph, sketch, [x], depth))
            x = sketch.op("STABLEHLO_COMPOSITE", [x], sketch.shape(x), **inner)
        found.append(sketch.unary("TANH", x))
    return found


def _unary(sketch: Sketch, x: int) -> int:
    return sketch.unary(_UNARY[int(sketch.rng.integers(len(_UNARY)))], x)


def _binary(sketch: Sketch, x: int) -> int:
    op, rank = _BINARY[int(sketch.rng.integers(len(_BINARY)))], len(sketch.shape(x))
    shape = tuple(n if sketch.rng.random() < 0.5 else 1 for n in sketch.shape(x))[int(sketch.rng.integers(rank + 1)) :]
    return sketch.binary(op, x, sketch.random(*shape) if sketch.rng.random() < 0.7 else x)


def _connected(sketch: Sketch, x: int) -> int:
    """A matrix of weights over the last dimension."""
    shape = sketch.shape(x)
    if not shape:
        return _unary(sketch, x)
    return reshaped(sketch, sketch.connected(x, shape[-1]), *shape)


def _windowed(sketch: Sketch, x: int) -> int:
    """A convolution, of what are pictures."""
    shape = sketch.shape(x)
    return sketch.conv(x, shape[3], (3, 3)) if len(shape) == 4 else _connected(sketch, x)


def _softmax(sketch: Sketch, x: int) -> int:
    return sketch.unary("SOFTMAX", x, beta=1.0) if sketch.shape(x) else _unary(sketch, x)


_STEPS: tuple[Body, ...] = (_unary, _unary, _binary, _binary, _connected, _windowed, _softmax)
