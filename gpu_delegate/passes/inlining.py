"""A pass that puts what a subgraph computes in the place of the node that runs it."""

from dataclasses import replace

from ..model.graph import Attributes, CalledBody, Graph, Node
from ..model.rewrite import Outcome, Rewriter


def inline_bodies(graph: Graph) -> tuple[Graph, Outcome]:
    """STABLEHLO_COMPOSITE, CALL, WHILE that runs as often in every run -> the nodes of the subgraph that they run."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if isinstance(node.attributes, CalledBody):
            edit.replace(node, *_nodes(edit, node, node.attributes))
    return edit.finish()


def _nodes(edit: Rewriter, node: Node, body: CalledBody) -> list[Node]:
    """Those of a body, and of bodies in it, on the tensors that the node reads and writes; all have its number."""
    numbers, found = dict(zip(body.inputs, node.inputs, strict=True)), list[Node]()
    for inner, outer in zip(body.outputs, node.outputs, strict=True):
        numbers.setdefault(inner, outer)
    for tensor in body.tensors:
        if tensor.index not in numbers:
            numbers[tensor.index] = edit.set_tensor(replace(tensor, index=edit.next_index))
    for each in body.nodes:
        inputs, outputs = (tuple(numbers.get(i, i) for i in side) for side in (each.inputs, each.outputs))
        moved = replace(each, inputs=inputs, outputs=outputs, index=node.index)
        found += _nodes(edit, moved, moved.attributes) if isinstance(moved.attributes, CalledBody) else [moved]
    for inner, outer in zip(body.outputs, node.outputs, strict=True):
        if numbers[inner] != outer:  # it gives an input, a constant, or something twice
            found.append(Node("RESHAPE", (numbers[inner],), (outer,), Attributes(), node.index))
    return found
