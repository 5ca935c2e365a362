"""Which nodes are vector nodes: those that one work-group computes in shared memory, slice by slice of one pixel."""

from ..model.graph import Graph, Node, StridedSlice
from ..model.layout import shape_of
from ..ops.nodes import has_role, has_weights, is_channel_reduction, is_elementwise, is_fold, is_pixelwise_contraction
from ..ops.reduce import reduces_pixels

MOST_SLICES = 1024  # of a vector in shared memory


def is_vector_node(graph: Graph, node: Node) -> bool:
    """Whether a reduction kernel can compute a node: its output is one pixel, as are inputs that it does not reduce."""
    out = shape_of(graph.tensors[node.outputs[0]])
    if not out.is_vector or out.slices > MOST_SLICES:
        return False
    if is_vector_part(graph, node):
        return True
    if has_role(node, "reduction") and not is_fold(node):
        return False
    if has_role(node, "reduction") and reduces_pixels(graph, node):
        return True
    if not all(shape_of(graph.tensors[i]).is_vector for i in node.inputs[:1]):
        return False
    if is_channel_reduction(graph, node):
        return shape_of(graph.tensors[node.inputs[0]]).slices <= MOST_SLICES
    if is_pixelwise_contraction(graph, node):
        return has_weights(node)
    return is_elementwise(node) and all(shape_of(graph.tensors[i]).is_vector for i in node.inputs)


def is_vector_part(graph: Graph, node: Node) -> bool:
    """Whether a node is but whole slices of one pixel of a vector or map that is computed."""
    cut = node.attributes
    if not isinstance(cut, StridedSlice) or graph.tensors[node.inputs[0]].is_constant or len(cut.begin) != 4:
        return False
    return shape_of(graph.tensors[node.outputs[0]]).is_vector and cut.begin[3] % 4 == 0 and cut.strides[3] == 1
