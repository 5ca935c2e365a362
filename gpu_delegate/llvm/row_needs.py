"""The steps of a network go in, what strips.py needs to know of them comes out: of which rows each row is made."""

from collections.abc import Sequence

from ..graph import Conv2D, DepthwiseConv2D, Graph, Node, Pool2D, TransposeConv2D
from ..layout import MapShape, ceil_div, shape_of
from ..nodes import is_elementwise, is_pixelwise_contraction, is_scatter
from ..views import Views
from .cutting import StepSize
from .kernel import LlvmKernel
from .planes import FLOAT_BYTES
from .strips import RowsRead, RowsSource, StepRows

_SAME = RowsRead()
_WORK_OF_A_FLOAT = 2  # multiply-adds that take as long as reading or writing one in the second cache


def rows_of_steps(graph: Graph, steps: Sequence[LlvmKernel], views: Views) -> list[StepRows]:
    """What each step computes and reads, in order."""
    writers: dict[int, list[tuple[int, MapShape]]] = {}  # of memory: steps, and the maps that they write there
    found = []
    for number, step in enumerate(steps):
        sources = [source for tensor in step.inputs for source in _sources(graph, step, tensor, writers, views)]
        found.append(_rows_of(graph, step, tuple(sources)))
        for tensor in step.outputs:
            writers.setdefault(views.place(tensor)[0], []).append((number, shape_of(graph.tensors[tensor])))
    return found


def _rows_of(graph: Graph, step: LlvmKernel, sources: tuple[RowsSource, ...]) -> StepRows:
    domain, outputs = _domain(graph, step), [shape_of(graph.tensors[tensor]) for tensor in step.outputs]
    moved = [shape_of(graph.tensors[tensor]) for tensor in (*step.inputs, *step.outputs)]
    work = step.macs + _WORK_OF_A_FLOAT * sum(4 * shape.texels for shape in moved)
    return StepRows(
        StepSize(step.row_groups, step.slice_blocks, work),
        group_pixels=step.group_pixels,
        pixels=domain.pixels,
        width=domain.width,
        sources=sources,
        written_bytes=sum(FLOAT_BYTES * 4 * shape.texels for shape in outputs),
        scale=max(1, outputs[0].rows // domain.rows),
    )


def _domain(graph: Graph, step: LlvmKernel) -> MapShape:
    """The map over whose pixels a step runs."""
    node = step.nodes[0]
    return shape_of(graph.tensors[node.inputs[0] if is_scatter(node) else node.outputs[0]])


def _sources(
    graph: Graph, step: LlvmKernel, tensor: int, writers: dict[int, list[tuple[int, MapShape]]], views: Views
) -> list[RowsSource]:
    """The earlier steps that wrote what a step reads as a tensor."""
    shape = shape_of(graph.tensors[tensor])
    rows = _rows_read(graph, step, tensor)
    return [
        RowsSource(writer, rows if _sides(written) == _sides(shape) else None, shape.rows, shape.width)
        for writer, written in writers.get(views.place(tensor)[0], ())
    ]


def _rows_read(graph: Graph, step: LlvmKernel, tensor: int) -> RowsRead | None:
    """The rows that a step needs of a map: those that all its nodes need; None where that is any."""
    found = [_rows_of_node(graph, node, tensor, _domain(graph, step)) for node in step.nodes if tensor in node.inputs]
    known = [rows for rows in found if rows is not None]
    if not found or len(known) < len(found) or len({(rows.step, rows.spread) for rows in known}) > 1:
        return None
    first, last = min(rows.first for rows in known), max(rows.last for rows in known)
    return RowsRead(known[0].step, known[0].spread, first, last)


def _rows_of_node(graph: Graph, node: Node, tensor: int, domain: MapShape) -> RowsRead | None:
    shape, attributes = shape_of(graph.tensors[tensor]), node.attributes
    if is_elementwise(node) or is_scatter(node) or is_pixelwise_contraction(graph, node):
        return _SAME if _sides(shape) == _sides(domain) else None
    if tensor != node.inputs[0] or domain.batch > 1:
        return None
    if isinstance(attributes, TransposeConv2D):
        reach = graph.tensors[node.inputs[1]].shape[1]
        stride, top = attributes.stride[0], attributes.padding.top
        return RowsRead(1, stride, (top - reach + 1) // stride, ceil_div(top, stride) + 1)
    if isinstance(attributes, Pool2D):
        return RowsRead(attributes.stride[0], 1, -attributes.padding.top, attributes.kernel[0] - attributes.padding.top)
    if isinstance(attributes, Conv2D | DepthwiseConv2D):
        reach = (graph.tensors[node.inputs[1]].shape[1] - 1) * attributes.dilation[0]
        return RowsRead(attributes.stride[0], 1, -attributes.padding.top, reach - attributes.padding.top)
    if node.op.startswith("RESIZE"):
        margin = ceil_div(shape.height, domain.height) + 1  # for every way to place pixels
        return RowsRead(shape.height, domain.height, -margin, margin + 1)
    return None


def _sides(shape: MapShape) -> tuple[int, int, int]:
    return shape.batch, shape.height, shape.width
