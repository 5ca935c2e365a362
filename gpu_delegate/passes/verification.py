"""Verifies that a graph holds together: what every pass may rely on, and has to keep.

The records of ops relate the shapes of a node's tensors, as far as they say what it computes.
"""

from ..base.errors import ModelError
from ..model.graph import ABSENT, Graph, Node
from ..ops.facts import broadcasts
from ..ops.registry import OPS


def verify(graph: Graph) -> None:
    """Raises ModelError for tensors that are missing, read too early or written twice, and for contradictory shapes."""
    written = set(graph.inputs)
    for tensor in (*graph.inputs, *graph.outputs):
        _expect(tensor in graph.tensors, f"tensor {tensor}, an input or output of the graph, is missing")
    for state in graph.states:
        read, kept = state.read in (ABSENT, *graph.inputs), state.written in (ABSENT, *graph.outputs)
        _expect(read and kept, f"{state.name}, a state, is no input or no output of the graph")
    for number, node in enumerate(graph.nodes):
        where = f"node {number} ({node.op})"
        _verify_order(graph, node, where, written)
        written.update(node.outputs)
        _verify_shapes(graph, node, where)
    for tensor in graph.outputs:
        _expect(tensor in written or graph.tensors[tensor].is_constant, f"nothing writes output tensor {tensor}")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ModelError(what)


def _verify_order(graph: Graph, node: Node, where: str, written: set[int]) -> None:
    for tensor in node.inputs:
        if tensor != ABSENT and not _is_known(graph, tensor, written):
            _expect(tensor in graph.tensors, f"{where} reads tensor {tensor}, which is missing")
            raise ModelError(f"{where} reads {_called(graph, tensor)} before anything has written it")
    _expect(len(set(node.outputs)) == len(node.outputs), f"{where} writes a tensor twice")
    for tensor in node.outputs:
        _expect(tensor in graph.tensors, f"{where} writes tensor {tensor}, which is missing")
        if _is_known(graph, tensor, written):
            raise ModelError(f"{where} writes {_called(graph, tensor)}, which has a value already")


def _is_known(graph: Graph, tensor: int, written: set[int]) -> bool:
    """Whether it is there, and has a value."""
    own = graph.tensors.get(tensor)
    return own is not None and (tensor in written or own.is_constant or own.is_variable)


def _called(graph: Graph, tensor: int) -> str:
    return f"tensor {tensor} ({graph.tensors[tensor].name})"


def _verify_shapes(graph: Graph, node: Node, where: str) -> None:
    record = OPS.get(node.op)
    if record is None or not (record.agrees or record.role == "elementwise"):
        return
    check = record.agrees or broadcasts
    inputs = [graph.tensors[i].shape for i in node.inputs if i != ABSENT]
    output = graph.tensors[node.outputs[0]].shape
    try:
        holds = check(node, inputs, output)
    except (ValueError, IndexError, TypeError):  # of NumPy, or where anything is missing
        holds = False
    if not holds:
        shown = ", ".join(str(list(shape)) for shape in inputs)
        raise ModelError(f"{where} does not make {list(output)} from {shown} with {node.attributes}")
