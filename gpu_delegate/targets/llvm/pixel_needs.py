"""Finds which steps of a network need only the same pixels of each other, so that they can run strip by strip."""

from collections.abc import Container, Sequence

from ...model.graph import Graph, Node
from ...model.layout import FLOAT_BYTES, MapShape, shape_of
from ...ops.nodes import computed_weights, is_channel_reduction, is_elementwise, is_pixelwise_contraction, is_scatter
from ...plan.tiling import domain_sides
from ...plan.views import Views
from .cutting import StepSize
from .native_kernel import LlvmKernel
from .strips import PixelSource, StepPixels

_WORK_OF_A_STEP = 12  # the same of rounding a sum to an 8-bit value
_WORK_OF_A_FLOAT = 2  # multiply-adds that take as long as reading or writing one in the second cache


def pixels_of_steps(graph: Graph, steps: Sequence[LlvmKernel], views: Views) -> list[StepPixels]:
    """What each step computes and reads, in order."""
    writers: dict[int, list[int]] = {}  # steps, by the tensor whose memory it is
    found, elsewhere = [], set[int]()
    for number, step in enumerate(steps):
        found.append(_pixels_of(graph, step, writers, views, elsewhere))
        if any(map(is_scatter, step.nodes)):
            elsewhere.add(number)
        for tensor in step.outputs:
            writers.setdefault(views.place(tensor)[0], []).append(number)
    return found


def local_tensors(graph: Graph, steps: Sequence[LlvmKernel], views: Views, found: Sequence[range]) -> frozenset[int]:
    """Tensors, with their views, that no step outside of the section reads: whole they are never there."""
    users: dict[int, set[int]] = {}  # steps, by the tensor whose memory it is
    for number, step in enumerate(steps):
        for tensor in (*step.inputs, *step.outputs):
            users.setdefault(views.place(tensor)[0], set()).add(number)
    alike: dict[int, list[int]] = {}
    for tensor in {*views.inside, *(view.parent for view in views.inside.values())}:
        alike.setdefault(views.place(tensor)[0], []).append(tensor)
    outside = {*graph.inputs, *graph.outputs}
    local = set[int]()
    for section in found:
        for tensor in (tensor for number in section for tensor in steps[number].outputs if len(section) > 1):
            whole, _ = views.place(tensor)
            same = [tensor, *alike.get(whole, ())]
            if (
                outside.isdisjoint(same)
                and users[whole] <= set(section)
                and all(_has_its_place(graph, views, each) for each in same)
                and all(_is_of_domains(graph, steps[number], same) for number in section)
            ):
                local.update(same)
    return frozenset(local)


def _is_of_domains(graph: Graph, step: LlvmKernel, same: Sequence[int]) -> bool:
    """Whether those of some tensors that a step writes are maps of the size over which it runs."""
    sides = domain_sides(_domain(graph, step))
    return all(domain_sides(shape_of(graph.tensors[t])) == sides for t in step.outputs if t in same)


def _pixels_of(
    graph: Graph, step: LlvmKernel, writers: dict[int, list[int]], views: Views, elsewhere: Container[int]
) -> StepPixels:
    """`elsewhere` are steps that store at other pixels than those that they compute."""
    domain, outputs = _domain(graph, step), [shape_of(graph.tensors[tensor]) for tensor in step.outputs]
    moved = [shape_of(graph.tensors[tensor]) for tensor in (*step.inputs, *step.outputs)]
    work = step.macs + _WORK_OF_A_FLOAT * sum(4 * shape.texels for shape in moved)
    rounded = (shape for tensor, shape in zip(step.outputs, outputs, strict=True) if graph.tensors[tensor].steps)
    work += _WORK_OF_A_STEP * sum(4 * shape.texels for shape in rounded)
    sources = [
        PixelSource(
            writer,
            not step.patches
            and _has_its_place(graph, views, tensor)
            and _needs_its_pixel(graph, step, tensor)
            and writer not in elsewhere,
        )
        for tensor in step.inputs
        for writer in writers.get(views.place(tensor)[0], ())
    ]
    return StepPixels(
        StepSize(step.row_groups, step.slice_blocks, work),
        step.patches or domain.pixels,
        step.group_pixels,
        tuple(sources),
        pixel_bytes=FLOAT_BYTES * sum(4 * shape.slices for shape in outputs),
        weights_bytes=step.weights_bytes,
    )


def _has_its_place(graph: Graph, views: Views, tensor: int) -> bool:
    """Whether a pixel of a tensor lies where the same pixel of the one lies whose memory it is, if not its own."""
    whole, offset = views.place(tensor)
    pixels = {shape_of(graph.tensors[each]).pixels for each in (whole, tensor)}
    return offset == 0 and len(pixels) == 1


def _domain(graph: Graph, step: LlvmKernel) -> MapShape:
    """The map over whose pixels a step runs."""
    node = step.nodes[0]
    return shape_of(graph.tensors[node.inputs[0] if is_scatter(node) else node.outputs[0]])


def _needs_its_pixel(graph: Graph, step: LlvmKernel, tensor: int) -> bool:
    """Whether a step needs of a tensor the pixel that it computes, and no other."""
    sides = domain_sides(_domain(graph, step))
    readers = [node for node in step.nodes if tensor in node.inputs]
    same = domain_sides(shape_of(graph.tensors[tensor])) == sides
    return same and bool(readers) and all(_is_of_pixels(graph, node, tensor) for node in readers)


def _is_of_pixels(graph: Graph, node: Node, tensor: int) -> bool:
    if tensor in computed_weights(node):
        return False
    is_reduction = is_channel_reduction(graph, node)
    return is_reduction or is_elementwise(node) or is_scatter(node) or is_pixelwise_contraction(graph, node)
