"""The vector nodes that one work-group computes: what they read, the shared memory, and the work that they take."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..code.vocabulary import Operand
from ..model.graph import Graph, Node
from ..model.layout import TEXEL_BYTES, MapShape, Storage, Storages, ceil_div, shape_of
from ..ops.nodes import has_role, has_weights, is_constant_vector, is_elementwise, record_of
from .source_size import SourceSize
from .vector_nodes import is_vector_part

MOST_TURNS = 1 << 14  # of a thread in front of a kernel: Mesa's llvmpipe ends all loops after 65,536 in a thread
MOST_NODES = 32  # of one kernel: what it does not store, other kernels compute again
# Characters of GLSL, and operations in it, that a node takes at most, whatever the sizes of its vectors.
_ELEMENTWISE, _MATRIX, _REDUCTION = SourceSize(300, 3), SourceSize(800, 12), SourceSize(1000, 20)
VALUES_OF_A_LOAD = 8  # vec4s that are computed in the time of a load
UNROLL = 8  # loads per iteration of a loop over pixels
MOST_PARTS = 16  # threads that share one slice of a matrix's output: one of them adds what they have


@dataclass(frozen=True)
class Range:
    """The slices that a work-group needs of some vectors, by the first one and how many."""

    first: Operand
    count: int


@dataclass(frozen=True)
class VectorWork:
    """The vector nodes that each work-group of a kernel computes, in order."""

    graph: Graph
    nodes: tuple[Node, ...]
    threads: int  # of a work-group
    is_shared: bool = False  # whether the threads share the sums of matrices, too
    narrow: frozenset[int] = frozenset()  # outputs of which a group needs only ...
    range: Range = Range(0, 0)  # ... these slices

    def shape(self, tensor: int) -> MapShape:
        return shape_of(self.graph.tensors[tensor])

    def slices(self, tensor: int) -> int:
        """Slices of a vector that a work-group computes."""
        return min(self.range.count, self.shape(tensor).slices) if tensor in self.narrow else self.shape(tensor).slices

    def parts(self, node: Node) -> tuple[int, int]:
        """Threads that share a slice of a matrix's output, and how many input slices each of them has at most."""
        slices = self.shape(node.inputs[0]).slices
        most = min(slices, MOST_PARTS, self.threads // self.slices(node.outputs[0])) if self.is_shared else 1
        turns = ceil_div(slices, max(most, 1))
        return ceil_div(slices, turns), turns

    @property
    def has_sums(self) -> bool:
        """Whether threads add what others have computed."""
        matrices = (node for node in self.nodes if has_weights(node))
        return any(has_role(node, "reduction") for node in self.nodes) or any(self.parts(n)[0] > 1 for n in matrices)

    @property
    def shared_bytes(self) -> int:
        """Shared memory: values of all nodes, and a sum for each thread if they add any."""
        values = sum(self.shape(node.outputs[0]).slices for node in self.nodes)
        return TEXEL_BYTES * (values + (self.threads if self.has_sums else 0))

    @property
    def loads(self) -> int:
        """The vec4s that a work-group reads in memory: maps or sums of them, weights, other vectors."""
        return sum(texels for texels, _ in self._reads())

    def read_bytes(self, storages: Storages, weights: Storage) -> int:
        """The same in bytes, as tensors and weights are stored."""
        return sum(
            texels * (weights if tensor is None else storages[tensor]).texel_bytes for texels, tensor in self._reads()
        )

    @property
    def steps(self) -> int:
        """What repeating it costs: the same, and arithmetic for each slice of a value, several of which are a load."""
        return self.loads + sum(self.slices(node.outputs[0]) for node in self.nodes) // VALUES_OF_A_LOAD

    @property
    def macs(self) -> int:
        """The multiply-accumulates of a work-group."""
        return sum(
            record_of(node).macs(self.graph, node) * self.slices(out) // self.shape(out).slices
            for node in self.nodes
            for out in node.outputs
        )

    def _reads(self) -> Iterator[tuple[int, int | None]]:
        """(texels, tensor) that a work-group reads; no tensor for what is among the kernel's weights."""
        made = {out for node in self.nodes for out in node.outputs}
        for node in self.nodes:
            slices = self.slices(node.outputs[0])
            if has_weights(node):
                yield (4 * self.shape(node.inputs[0]).slices + 1) * slices, None
            for tensor in _operands(node):
                if tensor not in made:
                    texels = slices if reads_slices(self.graph, node) else self.shape(tensor).texels
                    yield texels, None if is_constant_vector(self.graph, tensor) else tensor


def _operands(node: Node) -> tuple[int, ...]:
    """What a node reads, its weights apart."""
    return node.inputs[:1] if has_weights(node) else node.inputs


def reads_slices(graph: Graph, node: Node) -> bool:
    """Whether a node reads one slice of what it reads for each slice of its own."""
    return is_elementwise(node) or is_vector_part(graph, node)


def vectors_size(nodes: Iterable[Node]) -> SourceSize:
    """How long the source of vector nodes is, in one kernel."""
    return sum(map(_size, nodes), SourceSize())


def _size(node: Node) -> SourceSize:
    if has_weights(node):
        return _MATRIX
    return _REDUCTION if has_role(node, "reduction") else _ELEMENTWISE


def turns_of(work: VectorWork) -> int:
    """How often a thread goes through the loops over the inputs of matrices, and over the pixels of its slices."""
    return sum(
        ceil_div(work.slices(node.outputs[0]), work.threads) * _inner_turns(work, node)
        for node in work.nodes
        if not reads_slices(work.graph, node)
    )


def _inner_turns(work: VectorWork, node: Node) -> int:
    """Turns for one slice of the output of a matrix, or of a reduction."""
    source = work.shape(node.inputs[0])
    return source.slices if has_weights(node) or source.is_vector else ceil_div(source.pixels, UNROLL)


def narrowed(work: VectorWork, range_: Range, needed: frozenset[int]) -> VectorWork:
    """The same where a work-group needs only a range of the slices of some vectors, but all of the `needed` ones.

    What these vectors are made of value by value is narrowed, too.
    """
    if not work.is_shared:
        return work
    narrow, whole = set[int](), set(needed)
    for node in reversed(work.nodes):
        out = node.outputs[0]
        if out in whole:
            whole.update(node.inputs)
            continue
        narrow.add(out)
        read = _operands(node)
        slices = work.shape(out).slices
        whole.update(i for i in read if not is_elementwise(node) or work.shape(i).slices != slices)
    return replace(work, narrow=frozenset(narrow), range=range_)


def input_names(body_inputs: Sequence[int], work: VectorWork) -> dict[int, str]:
    """Tensors that a kernel reads, in order of use, as in0, in1, ..."""
    made = {out for node in work.nodes for out in node.outputs}
    read = [tensor for tensor in body_inputs if tensor not in made]
    for node in work.nodes:
        read += [t for t in _operands(node) if t not in made and not is_constant_vector(work.graph, t)]
    return {tensor: f"in{k}" for k, tensor in enumerate(dict.fromkeys(read))}
