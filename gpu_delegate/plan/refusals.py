"""Finds the operators of a graph that the GPU cannot take, each with the reason, before kernels are generated.

What the reader has left opaque has its reason. Every other operator is planned as a graph of its own: the compiler's
checks, its passes and the loops of its kernel. Operators that are alike are planned once. How large integers can be is
found in the graph as a whole.
"""

import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ..base.errors import DeviceError, UnsupportedError
from ..device.device import Device
from ..model.graph import ABSENT, CalledBody, Graph, Node, Opaque, Tensor, constant_location
from ..model.operators import NO_RULE
from ..model.packing import in_file_type
from ..model.quantization import is_quantized
from ..ops.spectrum import COMPLEX
from ..ops.variables import CALL_ONCE, VARIABLE_OPS
from ..passes.evaluation import follows_from_shape
from ..passes.exact_integers import with_ranges
from ..passes.folding import computed_constants, fold_constants
from ..passes.inlining import inline_bodies
from ..passes.kept_states import state_faults, state_groups
from ..passes.pipeline import PASSES, run_passes
from ..passes.steps import quantized_to_steps
from .admission import rewrite_graph
from .fusion import group_nodes

MOST_COMPARED_BYTES = 1 << 12  # of constants whose values decide how an op is computed: sizes, axes, positions

Attempt = Callable[[Graph], object]  # raises UnsupportedError or DeviceError


@dataclass(frozen=True)
class Refusals:
    """Operators by their positions in the graph."""

    graph: Graph  # in which integers say how large they can be, so that parts of it know
    reasons: Mapping[int, str]  # of those that the GPU cannot take
    constants: frozenset[int]  # of the others, those whose values are known before a run


def find_refusals(graph: Graph, device: Device, fuse: bool = True) -> Refusals:
    """What compile_graph refuses of each operator alone, as far as planning shows it; fuse as there."""
    lone = LoneNodes(graph)

    def plan(alone: Graph) -> None:
        rewritten, _ = rewrite_graph(alone, fuse)
        group_nodes(rewritten, device, fuse)

    attributes = [node.attributes for node in graph.nodes]
    opaque = {number: _opaque_reason(each) for number, each in enumerate(attributes) if isinstance(each, Opaque)}
    refused = opaque | refused_states(graph, opaque)
    alone = [number for number, node in enumerate(graph.nodes) if node.op not in VARIABLE_OPS]
    planned = [number for number in alone if number not in refused and number not in lone.constants]
    return Refusals(lone.graph, MappingProxyType(refused | lone.failures(planned, plan)), lone.constants)


def refused_states(graph: Graph, refused: Container[int], partitions: Sequence[Collection[int]] = ()) -> dict[int, str]:
    """Further nodes that stay on the CPU since a state does that they share, and what is run once for all.

    A state is where all its nodes are in one program: one of the `partitions`, once these are known.
    """
    faults, found = state_faults(graph), dict[int, str]()
    for name, nodes in state_groups(graph).items():
        others = [number for number in nodes if number in refused]
        together = any(nodes <= {*members} for members in partitions) or not partitions
        if others or name in faults or not together:
            what = f"operator {graph.nodes[min(others)].index}, which runs there" if others else "what runs in another"
            reason = faults.get(name) or f"it shares a state, {name}, with {what} program"
            found |= {number: reason for number in nodes if number not in refused}
    variables = [number for number, node in enumerate(graph.nodes) if node.op in VARIABLE_OPS]
    if any(number in found or number in refused for number in variables):
        once = [n for n in variables if graph.nodes[n].op == CALL_ONCE and n not in refused]
        found |= dict.fromkeys(once, "variables that it sets stay there")
    return found


class LoneNodes:
    """The known nodes of a graph, each as a graph of its own; what depends on constants alone is constant there."""

    def __init__(self, graph: Graph) -> None:
        self._known = _known_tensors(graph)
        whole = _with_bodies(graph)
        known = self._known if whole is graph else _known_tensors(whole)
        self.graph = with_ranges(graph, replace(whole, tensors=MappingProxyType({**whole.tensors, **known})))
        self._complex = _complex_parts(self.graph)
        self.constants = frozenset(
            number for number, node in enumerate(graph.nodes) if node.outputs and self._known.keys() >= {*node.outputs}
        )

    def failures(self, numbers: Iterable[int], attempt: Attempt) -> dict[int, str]:
        """Those of these nodes with which an attempt fails, and why; of nodes that are alike one is tried."""
        results, reasons = dict[object, str](), dict[int, str]()
        for number in numbers:
            alone = self._alone(number)
            likeness = _likeness(alone)
            if likeness not in results:
                results[likeness] = _failure(alone, attempt)
            if results[likeness]:
                reasons[number] = results[likeness]
        return reasons

    def _alone(self, number: int) -> Graph:
        """One node; tensors are called by their places, so that messages about nodes that are alike are equal.

        One on complex numbers comes with those around it: no part of a graph begins or ends with such.
        """
        if number in self._complex:
            return self._complex[number]
        node = replace(self.graph.nodes[number], index=0)
        tensors: dict[int, Tensor] = {}
        for what, indices in (("output", node.outputs), ("input", node.inputs)):
            for place, index in enumerate(indices):
                if index != ABSENT:
                    tensor = self._known.get(index, self.graph.tensors[index])
                    tensors[index] = replace(tensor, name=f"{what} {place}")
        given = (i for i in dict.fromkeys(node.inputs) if i != ABSENT)
        inputs = tuple(i for i in given if not (tensors[i].is_constant or tensors[i].is_variable))
        return Graph(node.op, MappingProxyType(tensors), (node,), inputs, node.outputs)


def _with_bodies(graph: Graph) -> Graph:
    """The graph with subgraphs in the place of the nodes that run them, whose places are their nodes' numbers."""
    if not any(isinstance(node.attributes, CalledBody) for node in graph.nodes):
        return graph
    numbered = tuple(replace(node, index=place) for place, node in enumerate(graph.nodes))
    return inline_bodies(replace(graph, nodes=numbered))[0]


def _complex_parts(graph: Graph) -> dict[int, Graph]:
    """Nodes on complex numbers by their places, each with the graph of all that are connected by such numbers."""
    parents, first = dict[int, int](), dict[int, int]()  # of nodes; of tensors one of the nodes that have them

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    for number, node in enumerate(graph.nodes):
        for index in (*node.inputs, *node.outputs):
            if index != ABSENT and graph.tensors[index].dtype == COMPLEX:
                parents.setdefault(number, number)
                parents[root(number)] = root(first.setdefault(index, number))
    members = dict[int, list[int]]()
    for number in parents:
        members.setdefault(root(number), []).append(number)
    return {number: part for each in members.values() for part in [_part_of(graph, each)] for number in each}


def _part_of(graph: Graph, numbers: Sequence[int]) -> Graph:
    """Some nodes as a graph, which gives what is not complex, and whatever the graph gives."""
    nodes = tuple(graph.nodes[number] for number in sorted(numbers))
    made = [index for node in nodes for index in node.outputs]
    read = dict.fromkeys(index for node in nodes for index in node.inputs if index != ABSENT)
    inputs = tuple(i for i in read if i not in made and not graph.tensors[i].is_constant)
    outputs = tuple(i for i in made if i in graph.outputs or graph.tensors[i].dtype != COMPLEX)
    whole = replace(graph, name=nodes[0].op, inputs=inputs, outputs=outputs, original=b"", faults=None)
    return whole.with_changes(nodes)


def _known_tensors(graph: Graph) -> dict[int, Tensor]:
    """What known nodes compute of constants and shapes alone, in the types of the file."""
    nodes, tensors = list[Node](), {number for number, tensor in graph.tensors.items() if tensor.is_constant}
    for node in graph.nodes:
        known = follows_from_shape(node) or all(index in tensors for index in node.inputs if index != ABSENT)
        if known and not isinstance(node.attributes, Opaque) and _has_form(graph, node):
            nodes.append(node)
            tensors.update(node.outputs)
    read = dict.fromkeys(index for node in nodes for index in node.inputs if index != ABSENT and index not in tensors)
    part = replace(graph, inputs=tuple(read), outputs=()).with_changes(tuple(nodes))  # of these, shapes are read
    before, _ = run_passes(part, PASSES[: PASSES.index(fold_constants)])
    found = computed_constants(before, lambda _: None).items()
    return {index: _in_file(graph.tensors[index], tensor) for index, (_, tensor) in found if index in graph.tensors}


def _has_form(graph: Graph, node: Node) -> bool:
    """Whether a node of a file with bytes can be said in steps."""
    try:
        quantized_to_steps(replace(graph, nodes=(node,), inputs=(), outputs=()).with_changes())
    except UnsupportedError:
        return False
    return True


def _in_file(own: Tensor, computed: Tensor) -> Tensor:
    """A tensor of the file with the values that a pass has computed for it."""
    assert computed.data is not None, "it is known"
    data = in_file_type(computed.data.astype(np.float32), own) if is_quantized(own) else computed.data
    return replace(own, data=data)


def _likeness(alone: Graph) -> object:
    """The same for nodes that are computed in the same way, from values of the same shapes."""
    if len(alone.nodes) > 1:
        return alone.nodes
    (node,) = alone.nodes
    places = tuple(node.inputs.index(index) for index in node.inputs)  # which inputs are one tensor
    indices = (*node.inputs, *node.outputs)
    tensors = tuple(_tensor_likeness(alone.tensors[index]) if index != ABSENT else None for index in indices)
    return node.op, node.attributes, places, tensors


def _tensor_likeness(tensor: Tensor) -> object:
    value: object = None
    if tensor.data is not None:
        value = True  # what weights are makes no difference
        if tensor.data.dtype.kind != "f":
            small = tensor.data.nbytes <= MOST_COMPARED_BYTES
            value = tensor.data.tobytes() if small else constant_location(tensor.data)
    return tensor.shape, tensor.dtype, tensor.quantization, tensor.steps, tensor.unusable, value


def _failure(alone: Graph, attempt: Attempt) -> str:
    """Why an attempt with one node fails, without the node's name; "" if it does not."""
    try:
        attempt(alone)
    except (UnsupportedError, DeviceError) as error:
        reason, op = str(error), alone.name
        for before in (f"operator 0 ({op}): ", f"{op} (operator 0): ", f"{op}: "):
            reason = reason.removeprefix(before)
        return re.sub(r".* does not run on the [^:]+: ", "", reason)
    return ""


def _opaque_reason(attributes: Opaque) -> str:
    if attributes.reason != NO_RULE:
        return attributes.reason
    return "a custom op that is not known here" if attributes.custom_code else "an op that is not supported"
