"""What a check says of a fault in a model, and the changes of the graph by which the fault's cost is found."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from texelflow.gpu_delegate.model.graph import ABSENT, Graph, Node, Tensor
from texelflow.gpu_delegate.ops.nodes import has_role
from texelflow.gpu_delegate.passes.simplify import drop_unused
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions

from .cost import RunCost, RunRates

CompileAgain = Callable[[Graph], CompiledPartitions]


@dataclass(frozen=True)
class Analysis:
    """What is known of a model that is examined."""

    found: CompiledPartitions
    rates: RunRates | None

    @property
    def graph(self) -> Graph:
        """The model as read."""
        return self.found.graph


@dataclass(frozen=True)
class Fault:
    """Something in a model that costs more than it has to. Numbers are those of the file."""

    kind: str  # one word or two: faults of the same kind are told apart by what they say
    what: str
    operators: tuple[int, ...]
    tensors: tuple[int, ...]
    why: str
    change: str  # of the model
    remedy: Graph | RunCost  # the model without the fault, whose cost is compared, or what the fault costs
    is_exact: bool = True  # whether the model without the fault saves just that, else at least that


def bypassed(graph: Graph, renamed: Mapping[int, int]) -> Graph | None:
    """The graph in which other tensors take the place of some: tensor to tensor. What nobody reads then is dropped.

    None where an input would become an output, which no kernel writes.
    """

    def settled(tensor: int) -> int:
        while tensor in renamed:
            tensor = renamed[tensor]
        return tensor

    outputs = tuple(dict.fromkeys(settled(tensor) for tensor in graph.outputs))
    if any(settled(tensor) in graph.inputs for tensor in graph.outputs if tensor in renamed):
        return None
    nodes = tuple(replace(node, inputs=tuple(settled(i) for i in node.inputs)) for node in graph.nodes)
    changed = replace(graph, nodes=nodes, outputs=outputs, original=b"")
    return drop_unused(changed)[0]


def ended_before(graph: Graph, outputs: Collection[int]) -> Graph:
    """The graph that gives, instead of some outputs, what the moves before them read."""
    producers, ends, waiting = graph.producers(), dict[int, None](), [*reversed(graph.outputs)]
    moved = set(outputs)
    while waiting:
        tensor = waiting.pop()
        node = producers.get(tensor)
        if tensor in moved and node is not None and (has_role(node, "movement") or has_role(node, "scatter")):
            sources = [i for i in node.inputs if not graph.tensors[i].is_constant and i not in graph.inputs]
            moved.update(sources)
            waiting += reversed(sources)
        else:
            ends[tensor] = None
    return drop_unused(replace(graph, outputs=tuple(ends), original=b""))[0]


def replaced(graph: Graph, nodes: Mapping[int, Node]) -> Graph:
    """The graph with other nodes at some positions."""
    return replace(graph, nodes=tuple(nodes.get(k, node) for k, node in enumerate(graph.nodes)), original=b"")


def is_of_constants(graph: Graph, node: Node) -> bool:
    """Whether a node gives constants in another form, such as weights of halves as floats."""
    return all(graph.tensors[i].is_constant for i in node.inputs if i != ABSENT)


def are_alike(one: Tensor, other: Tensor) -> bool:
    """Whether one of two tensors can take the other's place: shape and type are the same, and what integers mean."""
    return (one.shape, one.dtype, one.quantization) == (other.shape, other.dtype, other.quantization)


def operators_of(nodes: Iterable[Node]) -> tuple[int, ...]:
    """The operators of the file that nodes stand for, ascending; a pass may have made others."""
    return tuple(sorted({node.index for node in nodes if node.index >= 0}))


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    unique = list(dict.fromkeys(words))
    return " and ".join(filter(None, [", ".join(unique[:-1]), *unique[-1:]]))
