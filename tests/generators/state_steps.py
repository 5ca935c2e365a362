"""Steps that add states to a random graph: variables that are read and assigned, recurrent ops, outputs fed back.

A variable has a value before the first run, from a subgraph that CALL_ONCE runs: TensorFlow Lite reads no others.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tests.generators.random_graphs import Drawn, RandomGraph, Step
from tests.model_files import state_models
from tests.model_files.sketch import Sketch

LOW, HIGH = -2.0, 2.0  # what a recurrent op's input is drawn from


def remembered(graph: RandomGraph) -> int:
    """A variable: what it was and a tensor make what it will be; further readers may see either."""
    x = graph.bounded(graph.value(ranks=(1, 2, 3, 4)), 2.0)
    shape, names = graph.shape(x), {"container": "", "shared_name": f"state{len(graph.further)}"}
    _initialized(graph, shape, names)
    handle = graph.op("VAR_HANDLE", [], (), "resource", **names)
    before = graph.op("READ_VARIABLE", [handle], shape)
    mixed = graph.binary(graph.pick(("ADD", "SUB", "MAXIMUM")), before, graph.binary("MUL", x, graph.constant(0.5)))
    after = graph.unary("TANH", mixed)
    graph.op_of("ASSIGN_VARIABLE", [handle, after], [])
    for tensor in (before, after):
        graph.note(tensor, 1.0)
    if graph.chance(0.5):  # read again, by another handle of the same variable
        other = graph.op("VAR_HANDLE", [], (), "resource", **names) if graph.chance(0.5) else handle
        graph.keep(graph.note(graph.op("READ_VARIABLE", [other], shape), 1.0))
    graph.keep(before)
    return after


def _initialized(graph: RandomGraph, shape: tuple[int, ...], names: Mapping[str, str]) -> None:
    """A subgraph that gives a variable its first value, and the op that runs it, first of all."""
    sketch = Sketch(int(graph.rng.integers(1 << 30)))
    handle = sketch.op("VAR_HANDLE", [], (), "resource", **names)
    sketch.op_of("ASSIGN_VARIABLE", [handle, sketch.random(*shape)], [])
    graph.further.append(sketch)
    graph.op_of("CALL_ONCE", [], [], init_subgraph_index=len(graph.further))
    graph.ops.insert(0, graph.ops.pop())


def fed_back(graph: RandomGraph) -> int:
    """An input that is an output of the run before, once there was one."""
    given = graph.fresh("float32", shape=graph.some_shape(graph.pick((1, 2, 3, 4))))
    graph.drawn[given] = Drawn(-1.0, 1.0)
    shape = graph.shape(given)
    x = graph.random(*(n if graph.chance(0.5) else 1 for n in shape))
    same = [y for y in graph.made if graph.dtype(y) == "float32" and graph.shape(y) == shape and y != given]
    if same:
        x = graph.bounded(graph.pick(same), 2.0)
    out = graph.unary("TANH", graph.binary(graph.pick(("ADD", "SUB", "MUL")), given, x))
    graph.fed[given] = graph.note(out, 1.0)
    graph.output(out)
    return out


def _recurrent(name: str) -> Step:
    """An op with states of its own, which are tensors of the file; a graph has a few forms of each."""

    def step(graph: RandomGraph) -> int:
        known = len(graph.inputs)
        if name == "SVDF":
            out = state_models.svdf(graph)
        elif name == "LSTM":
            out = state_models.lstm(graph)
        else:
            peephole, projection = graph.chance(0.3), graph.pick((0, 0, 3))
            out = state_models.sequence(
                graph, cifg=graph.chance(0.3), peephole=peephole, projection=projection, time_major=graph.chance(0.3)
            )
        for tensor in graph.inputs[known:]:
            graph.drawn[tensor] = Drawn(LOW, HIGH)
            graph.note(tensor, HIGH, exact=True)
        return graph.unary("TANH", graph.note(out, 8.0))

    return step


STATES: Mapping[str, Step] = MappingProxyType(
    {
        "variable": remembered,
        "fed back": fed_back,
        **{name: _recurrent(name) for name in ("SVDF", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")},
    }
)
