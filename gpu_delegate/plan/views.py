"""Finds tensors that are a range of another one's bytes, so that the nodes between them need no kernel.

A RESHAPE often keeps every byte where it is; a slice of whole channel slices is a range of its input; parts of a
concatenation may be written where they belong at once. PHWC4 has its slices outermost, then batches, rows and columns.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..model.graph import Concatenation, Graph, Node, Shape, StridedSlice
from ..model.layout import FLOAT_BYTES, Storages, ceil_div, plane_floats, shape_of
from ..ops.lookup import OVERWRITES
from ..ops.nodes import has_role
from .moves import movement_of
from .vector_nodes import is_vector_node


@dataclass(frozen=True)
class TensorView:
    """A tensor that lies inside another one."""

    parent: int
    offset_bytes: int


NO_VIEWS: Mapping[int, TensorView] = MappingProxyType({})


def find_views(graph: Graph, alignment_bytes: int, storages: Storages, in_planes: bool = False) -> "Views":
    """The views of a graph of rank 4. Ranges begin at multiples of the alignment, as bindings need it.

    What lies in another tensor is stored as that is. Where tensors are in planes (targets/llvm/planes.py), views have
    as many pixels as what they lie in.
    """
    return _Finder(graph, alignment_bytes, storages, in_planes).views()


@dataclass(frozen=True)
class Views:
    """Tensors inside others, and the outputs of the nodes that are done therewith."""

    inside: Mapping[int, TensorView]
    nodes: Mapping[int, Node]

    def place(self, tensor: int) -> tuple[int, int]:
        """The tensor that has memory of its own, and where in it a tensor begins, in bytes."""
        offset_bytes = 0
        while tensor in self.inside:
            view = self.inside[tensor]
            tensor, offset_bytes = view.parent, offset_bytes + view.offset_bytes
        return tensor, offset_bytes

    def with_replaced(self, in_place: Mapping[int, int]) -> "Views":
        """The same where outputs of kernels lie in the place of inputs, too; these are no views of a node's."""
        inside = {output: TensorView(tensor, 0) for output, tensor in in_place.items()}
        return Views(MappingProxyType({**self.inside, **inside}), self.nodes)


NONE = Views(NO_VIEWS, MappingProxyType({}))


def overwritten(graph: Graph) -> Views:
    """Outputs that are what their nodes overwrite a part of: views whatever was chosen."""
    nodes = (node for node in graph.nodes if node.op == OVERWRITES)
    return Views(MappingProxyType({node.outputs[0]: TensorView(node.inputs[2], 0) for node in nodes}), NONE.nodes)


class _Finder:
    def __init__(self, graph: Graph, alignment_bytes: int, storages: Storages, in_planes: bool) -> None:
        self.graph = graph
        self.in_planes = in_planes
        self.alignment_bytes = alignment_bytes
        self.producers = graph.producers()
        self.storages = storages
        self.states = {state.read for state in graph.states}  # which what takes their place overwrites
        self.inside: dict[int, TensorView] = {**overwritten(graph).inside}
        self.nodes: dict[int, Node] = {}

    def views(self) -> Views:
        for node in self.graph.nodes:
            if self._is_view(node):
                self.nodes[node.outputs[0]] = node
        return Views(MappingProxyType(self.inside), MappingProxyType(self.nodes))

    def _is_view(self, node: Node) -> bool:
        """Whether a node's tensors share memory; if so, they do from now on."""
        shapes = self.graph.tensors
        source, out = node.inputs[0] if node.inputs else -1, node.outputs[0]
        match node.attributes:
            case Concatenation(axis=axis):
                return self._join(node, axis)
            case StridedSlice(begin, sizes, strides):
                if any(step != 1 and size != 1 for step, size in zip(strides, sizes, strict=True)):
                    return False
                offset = self._offset_bytes(source, begin, sizes)
                is_range = offset is not None and self._has_memory(source) and self._are_alike(source, out)
                return is_range and not self._outlives(source, out) and self._put(out, source, offset or 0)
        in_order = has_role(node, "movement") and movement_of(node).in_order
        same_bytes = keeps_pixels if self.in_planes else keeps_bytes
        if in_order and same_bytes(shapes[source].shape, shapes[out].shape) and self._are_alike(source, out):
            return self._alias(source, out)
        return False

    def _alias(self, source: int, out: int) -> bool:
        """The same bytes. The source is put into the output if it can be, which may be part of a concatenation then."""
        if self._is_free(source):
            return self._put(source, out, 0)
        return self._has_memory(source) and not self._outlives(source, out) and self._put(out, source, 0)

    def _outlives(self, source: int, out: int) -> bool:
        """Whether an output would lie in a state, which has another value at the end of a run."""
        while source in self.inside:
            source = self.inside[source].parent
        return out in self.graph.outputs and source in self.states

    def _join(self, node: Node, axis: int) -> bool:
        """Every part is written by a kernel of its own into its place."""
        out, start, places = node.outputs[0], 0, []
        if len(set(node.inputs)) < len(node.inputs) or not all(map(self._is_free, node.inputs)):
            return False
        if not self._are_alike(*node.inputs, out):
            return False
        for tensor in node.inputs:
            sizes = self.graph.tensors[tensor].shape
            begin = tuple(start if k == axis else 0 for k in range(4))
            places.append((tensor, self._offset_bytes(out, begin, sizes)))
            start += sizes[axis]
        if any(offset is None for _, offset in places):
            return False
        for tensor, offset in places:
            self._put(tensor, out, offset or 0)
        return True

    def _are_alike(self, *tensors: int) -> bool:
        """Whether tensors are stored alike: as numbers of the same type, bytes counted from the same number."""
        return len({self.storages[tensor] for tensor in tensors}) == 1

    def _put(self, tensor: int, parent: int, offset_bytes: int) -> bool:
        self.inside[tensor] = TensorView(parent, offset_bytes)
        return True

    def _is_free(self, tensor: int) -> bool:
        """Whether a pixel kernel writes the tensor, wherever it is told to."""
        if tensor in self.inside or tensor in self.graph.inputs or tensor in self.graph.outputs:
            return False
        if tensor in self.nodes:
            return True
        if not self._has_kernel(tensor):
            return False
        producer = self.producers[tensor]  # a map of one place is put into the reads of the concatenation
        return not (has_role(producer, "movement") and len(producer.inputs) == 1)

    def _has_memory(self, tensor: int) -> bool:
        """Whether the tensor is in memory for sure: constants and vectors may be elsewhere."""
        return tensor in self.graph.inputs or tensor in self.nodes or self._has_kernel(tensor)

    def _has_kernel(self, tensor: int) -> bool:
        node = self.producers.get(tensor)
        return node is not None and not is_vector_node(self.graph, node)

    def _offset_bytes(self, tensor: int, begin: Shape, sizes: Shape) -> int | None:
        """Where a region of a tensor begins in it; None if it is no range of bytes, or one that cannot be bound."""
        whole = self.graph.tensors[tensor].shape
        texels = first_texel(whole, begin, sizes)
        if self.in_planes:
            planes = begin[3] // (4 if self.storages[tensor].is_bytes else 1)
            in_place = texels is not None and whole[:3] == sizes[:3]
            return FLOAT_BYTES * plane_floats(shape_of(self.graph.tensors[tensor])) * planes if in_place else None
        if texels is None:
            return None
        offset_bytes = texels * self.storages[tensor].texel_bytes
        return None if offset_bytes % self.alignment_bytes else offset_bytes


def first_texel(whole: Shape, begin: Shape, sizes: Shape) -> int | None:
    """Where a region of a BHWC tensor begins in PHWC4, in texels; None if it is not all of a range there."""
    if begin[3] % 4 or (sizes[3] % 4 and begin[3] + sizes[3] != whole[3]):
        return None
    lengths, count = ((ceil_div(shape[3], 4), *shape[:3]) for shape in (whole, sizes))
    partial = [k for k in range(4) if count[k] != lengths[k]]
    if partial and any(size != 1 for size in count[: partial[-1]]):
        return None
    return sum(at * math.prod(lengths[k + 1 :]) for k, at in enumerate((begin[3] // 4, *begin[:3])))


def keeps_pixels(source: Shape, out: Shape) -> bool:
    """Whether a RESHAPE of BHWC tensors leaves every value where it is in planes."""
    return source[3] == out[3]


def keeps_bytes(source: Shape, out: Shape) -> bool:
    """Whether a RESHAPE of BHWC tensors leaves every value where it is in PHWC4."""
    if source[3] == out[3]:
        return True
    return all(shape[3] % 4 == 0 and (shape[3] == 4 or math.prod(shape[:3]) == 1) for shape in (source, out))
