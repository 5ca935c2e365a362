"""Passes that save work by algebra, such as a 1x1 convolution before an upsampling instead of behind it.

A bilinear upsampling is linear and its weights sum to one, so it commutes with every op that works pixel by pixel; a
mean is linear, too. The properties that the passes need are checked on the interpolation matrix, not assumed.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..model.graph import ABSENT, Activated, Graph, Node, Resize, Tensor
from ..model.interpolation import interpolation_matrix
from ..model.layout import shape_of
from ..model.rewrite import Outcome, Rewriter, fused_only
from ..ops.convolution import is_pointwise_convolution
from ..ops.reduce import is_spatial_mean

MOST_MATRIX_VALUES = 1 << 22  # of an interpolation matrix that is examined; those of pictures are far smaller


@fused_only
def hoist_convolution(graph: Graph) -> tuple[Graph, Outcome]:
    """RESIZE_BILINEAR (up), CONV 1x1 -> CONV 1x1, RESIZE_BILINEAR: fewer pixels to multiply."""
    edit = Rewriter(graph)
    consumers = graph.consumers()
    for node in graph.nodes:
        if node.op != "RESIZE_BILINEAR":
            continue
        small, large = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
        readers = consumers.get(large.index, [])
        if len(readers) != 1 or not is_pointwise_convolution(graph, readers[0]) or large.index in graph.outputs:
            edit.decline(f"{large.name} is not read by one 1x1 convolution alone")
            continue
        if any(i != ABSENT and not graph.tensors[i].is_constant for i in readers[0].inputs[1:]):
            edit.decline(f"{large.name} is read by a convolution with computed weights, which may not be there yet")
            continue
        out = graph.tensors[readers[0].outputs[0]]
        if small.shape[1] * small.shape[2] * out.shape[3] >= large.shape[1] * large.shape[2] * out.shape[3]:
            edit.decline(f"{large.name} is not larger than {small.name}")
            continue
        low = edit.new_tensor(out.name + ":low", (*small.shape[:3], out.shape[3]))
        edit.replace(node, replace(readers[0], inputs=(small.index, *readers[0].inputs[1:]), outputs=(low,)))
        edit.replace(readers[0], replace(node, inputs=(low,), outputs=(out.index,)))
    return edit.finish()


@fused_only
def distribute_mean(graph: Graph) -> tuple[Graph, Outcome]:
    """ADD (read only by MEAN), MEAN -> MEAN of each, ADD: the mean of a sum does not need the sum of the maps."""
    edit = Rewriter(graph)
    consumers, producers = graph.consumers(), graph.producers()
    for node in graph.nodes:
        add = producers.get(node.inputs[0]) if is_spatial_mean(graph, node) else None
        if add is None or add.op != "ADD":
            continue
        total, mean = graph.tensors[add.outputs[0]], graph.tensors[node.outputs[0]]
        if len(consumers[total.index]) != 1 or total.index in graph.outputs:
            edit.decline(f"{total.name} has other readers, too")
            continue
        if any(graph.tensors[i].shape != total.shape or graph.tensors[i].is_constant for i in add.inputs):
            edit.decline(f"{total.name} is a sum with broadcast or a constant")
            continue
        means = [edit.new_tensor(f"{mean.name}:{side}", mean.shape) for side in ("a", "b")]
        edit.remove(add)
        edit.replace(
            node,
            *(replace(node, inputs=(i,), outputs=(m,), index=-1) for i, m in zip(add.inputs, means, strict=True)),
            Node("ADD", (means[0], means[1]), node.outputs, Activated()),
        )
    return edit.finish()


@fused_only
def mean_before_resize(graph: Graph) -> tuple[Graph, Outcome]:
    """RESIZE_BILINEAR, MEAN -> MEAN of the small map, where every source pixel carries the same total weight."""
    edit = Rewriter(graph)
    producers = graph.producers()
    for node in graph.nodes:
        resize = producers.get(node.inputs[0]) if is_spatial_mean(graph, node) else None
        if resize is None or resize.op != "RESIZE_BILINEAR":
            continue
        small, large = graph.tensors[resize.inputs[0]], graph.tensors[resize.outputs[0]]
        if not keeps_mean(resize, small, large):
            edit.decline(f"{large.name}: the interpolation does not give all pixels the same weight")
            continue
        edit.replace(node, replace(node, inputs=(small.index,)))
    return edit.finish()


def keeps_mean(resize: Node, small: Tensor, large: Tensor) -> bool:
    """Whether resizing keeps the mean of a map: in both interpolation matrices all columns have the same sum."""
    attributes = resize.attributes
    assert isinstance(attributes, Resize)
    for source, target in zip(small.shape[1:3], large.shape[1:3], strict=True):
        if source * target > MOST_MATRIX_VALUES:
            return False
        columns = interpolation_matrix(source, target, attributes).sum(axis=0)
        if not np.allclose(columns, target / source, rtol=1e-6):
            return False
    return True


@fused_only
def multiply_by_reciprocal(graph: Graph) -> tuple[Graph, Outcome]:
    """DIV of a SOFTMAX's powers by their SUM over channels -> MUL by its reciprocal: one division for each pixel.

    Such a sum is from 1 to the number of channels; other reciprocals may be too small for a normal float. Not of
    networks with quantized tensors, whose bytes are those of the reference kernels.
    """
    edit = Rewriter(graph)
    producers, is_quantized = graph.producers(), any(tensor.steps for tensor in graph.tensors.values())
    for node in graph.nodes:
        divisor = producers.get(node.inputs[1]) if node.op == "DIV" else None
        if divisor is None or is_quantized or divisor.op != "SUM" or divisor.inputs[0] != node.inputs[0]:
            continue
        if not _are_powers_below_one(graph, producers, node.inputs[0]):
            continue
        total = graph.tensors[divisor.outputs[0]]
        if total.shape[-1] != 1 or shape_of(total).is_vector:
            continue
        one = edit.new_constant(f"{total.name}:one", np.ones((1, 1, 1, 1), np.float32))
        part = edit.new_tensor(f"{total.name}:reciprocal", total.shape)
        reciprocal = Node("DIV", (one, total.index), (part,), Activated())
        edit.replace(node, reciprocal, replace(node, op="MUL", inputs=(node.inputs[0], part)))
    return edit.finish()


def _are_powers_below_one(graph: Graph, producers: Mapping[int, Node], tensor: int) -> bool:
    """Whether values are exp(x - max x), or that of it times a positive number."""
    power = producers.get(tensor)
    centered = producers.get(power.inputs[0]) if power and power.op == "EXP" else None
    if centered and centered.op == "MUL":
        factor = graph.tensors[centered.inputs[1]].data
        if factor is None or not np.all(factor.astype(np.float64) > 0):
            return False
        centered = producers.get(centered.inputs[0])
    if centered is None or centered.op != "SUB":
        return False
    largest = producers.get(centered.inputs[1])
    return largest is not None and largest.op == "REDUCE_MAX" and largest.inputs[0] == centered.inputs[0]
