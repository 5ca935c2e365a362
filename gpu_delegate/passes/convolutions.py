"""Passes that bring convolutions and pools into the forms that kernels have, and separate their activations."""

import math
from dataclasses import replace

import numpy as np

from ..base.errors import UnsupportedError
from ..model.graph import (
    ABSENT,
    Activated,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Pad,
    Padding,
    Pool2D,
    Reduce,
    Shape,
    StridedSlice,
    Tensor,
    TransposeConv2D,
)
from ..model.layout import BYTE_VALUES, aligned_shape, ceil_div, shape_of
from ..model.rewrite import Outcome, Rewriter, float_data, fused_only
from ..ops.nodes import is_elementwise
from .grouped import MOST_DENSE_WEIGHTS

MOST_STORED_SLICES = 16  # of one pixel: as many as any device's kernels hold of several values


def split_activations(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV(activation=RELU) -> CONV, RELU, so that one mechanism fuses all activations."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        attributes = node.attributes
        if not isinstance(attributes, Activated) or attributes.activation == "NONE":
            continue
        out = graph.tensors[node.outputs[0]]
        linear = edit.new_tensor(out.name + ":linear", out.shape, out.dtype)
        edit.replace(
            node,
            replace(node, outputs=(linear,), attributes=replace(attributes, activation="NONE")),
            Node(attributes.activation, (linear,), node.outputs),
        )
    return edit.finish()


def expand_depthwise_multiplier(graph: Graph) -> tuple[Graph, Outcome]:
    """DEPTHWISE_CONV_2D with multiplier > 1 -> CONV_2D whose weights are zero across channels."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        attributes = node.attributes
        if not isinstance(attributes, DepthwiseConv2D) or attributes.multiplier == 1:
            continue
        weights = graph.tensors[node.inputs[1]]
        _, kernel_h, kernel_w, channels = weights.shape
        source = channels // attributes.multiplier
        if channels * kernel_h * kernel_w * source > MOST_DENSE_WEIGHTS:
            many = f"{channels} channels with multiplier {attributes.multiplier}"
            raise UnsupportedError(f"{node.op} (operator {node.index}): {many} take too much memory")
        dense = np.zeros((channels, kernel_h, kernel_w, source), np.float32)
        for channel in range(channels):
            dense[channel, :, :, channel // attributes.multiplier] = float_data(weights)[0, :, :, channel]
        constant = edit.new_constant(weights.name + ":dense", dense)
        conv = Conv2D(stride=attributes.stride, dilation=attributes.dilation, padding=attributes.padding)
        edit.replace(
            node, replace(node, op="CONV_2D", inputs=(node.inputs[0], constant, node.inputs[2]), attributes=conv)
        )
    return edit.finish()


def connected_to_convolution(graph: Graph) -> tuple[Graph, Outcome]:
    """FULLY_CONNECTED, whose rows align_ranks has made pixels -> 1x1 CONV_2D."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op != "FULLY_CONNECTED":
            continue
        source, weights = (graph.tensors[i] for i in node.inputs[:2])
        out = graph.tensors[node.outputs[0]]
        if aligned_shape(out.shape)[:-1] != aligned_shape(source.shape)[:-1]:
            edit.decline(f"{source.name} has its rows elsewhere than {out.name}")
            continue
        data = float_data(weights)
        constant = edit.new_constant(weights.name + ":OHWI", data.reshape(data.shape[0], 1, 1, data.shape[1]))
        bias = node.inputs[2] if len(node.inputs) > 2 else ABSENT
        edit.replace(node, replace(node, op="CONV_2D", inputs=(source.index, constant, bias), attributes=Conv2D()))
    return edit.finish()


def whole_map_to_vector(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV_2D whose window is its whole input -> RESHAPE to a vector, 1x1 CONV_2D: where lanes are pixels."""
    edit = Rewriter(graph)
    vectors: dict[int, int] = {}
    for node in graph.nodes:
        if node.op != "CONV_2D" or not isinstance(node.attributes, Conv2D) or node.attributes.padding != Padding():
            continue
        source, weights, out = (graph.tensors[i] for i in (*node.inputs[:2], node.outputs[0]))
        size = int(np.prod(source.shape))
        if size == source.shape[-1] or weights.shape[1:] != source.shape[1:] or np.prod(out.shape[:3]) != 1:
            continue
        constant = edit.new_constant(weights.name + ":vectors", float_data(weights).reshape(-1, 1, 1, size))
        reshaped = source.index not in vectors
        if reshaped:
            vectors[source.index] = edit.new_tensor(source.name + ":vector", (1, 1, 1, size))
        vector = vectors[source.index]
        matrix = replace(node, inputs=(vector, constant, *node.inputs[2:]), attributes=Conv2D())
        edit.replace(node, *([Node("RESHAPE", (source.index,), (vector,))] if reshaped else []), matrix)
    return edit.finish()


def turn_columns(graph: Graph) -> tuple[Graph, Outcome]:
    """Windows over maps that are one column wide -> over the same values in a row: where lanes are pixels of a row."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        source, out = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
        turned = _turned(graph, node)
        if (
            turned is None
            or len(source.shape) != 4
            or source.shape[2] != 1
            or source.shape[1] == 1
            or out.shape[2] != 1
        ):
            continue
        batch, height, _, channels = source.shape
        row = edit.set_tensor(
            replace(
                source, index=edit.next_index, name=f"{source.name}:row", shape=(batch, 1, height, channels), data=None
            )
        )
        shape = (batch, 1, out.shape[1], out.shape[3])
        result = edit.set_tensor(replace(out, index=edit.next_index, name=f"{out.name}:row", shape=shape))
        inputs = [row, *node.inputs[1:]]
        if len(inputs) > 1:
            weights = graph.tensors[node.inputs[1]]
            outputs, taps, _, depth = weights.shape
            inputs[1] = edit.new_constant(f"{weights.name}:row", float_data(weights).reshape(outputs, 1, taps, depth))
        edit.replace(
            node,
            Node("RESHAPE", (source.index,), (row,)),
            replace(node, inputs=tuple(inputs), outputs=(result,), attributes=turned),
            Node("RESHAPE", (result,), node.outputs),
        )
    return edit.finish()


def columns_to_channels(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV_2D of bytes with one or two channels -> the columns of its window as channels, multiplied four at a time.

    Channel kx * C + c of the new map is c of column x * stride + kx * dilation, so that a window has one column.
    """
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op != "CONV_2D" or not isinstance(node.attributes, Conv2D):
            continue
        source, weights, out = (graph.tensors[i] for i in (*node.inputs[:2], node.outputs[0]))
        if not _are_bytes(source) or weights.data is None or not _gains_in_channels(weights.shape, out.shape):
            continue
        conv, (batch, height, _, channels) = node.attributes, source.shape
        outputs, rows, columns, _ = weights.shape
        stride, width = conv.stride[1], out.shape[2]
        sides = ((0, 0), (0, 0), (conv.padding.left, conv.padding.right), (0, 0))

        def like(name: str, *shape: int, of: Tensor = source) -> int:
            return edit.set_tensor(replace(of, index=edit.next_index, name=f"{of.name}:{name}", shape=shape, data=None))

        padded = like("padded", batch, height, source.shape[2] + sum(sides[2]), channels)
        parts = [like(f"column {k}", batch, height, width, channels) for k in range(columns)]
        nodes = [Node("PAD", (source.index,), (padded,), Pad(sides))]
        nodes += [
            Node(
                "STRIDED_SLICE",
                (padded,),
                (part,),
                StridedSlice((0, 0, k * conv.dilation[1], 0), (batch, height, width, channels), (1, 1, stride, 1)),
            )
            for k, part in enumerate(parts)
        ]
        joined = like("columns", batch, height, width, columns * channels)
        nodes.append(Node("CONCATENATION", tuple(parts), (joined,), Concatenation(axis=3)))
        constant = edit.new_constant(f"{weights.name}:columns", float_data(weights).reshape(outputs, rows, 1, -1))
        before = replace(conv.padding, left=0, right=0)
        turned = replace(conv, stride=(conv.stride[0], 1), dilation=(conv.dilation[0], 1), padding=before)
        edit.replace(node, *nodes, replace(node, inputs=(joined, constant, *node.inputs[2:]), attributes=turned))
    return edit.finish()


def _are_bytes(tensor: Tensor) -> bool:
    """Whether a byte holds each of a tensor's whole numbers, and 0."""
    steps = tensor.steps
    return steps is not None and max(0, steps.high) - min(0, steps.low) < BYTE_VALUES


def _gains_in_channels(weights: Shape, out: Shape) -> bool:
    """Whether words of four channels that are multiplied become half as many, and more than what is moved for them."""
    outputs, rows, columns, channels = weights
    words, wide = rows * columns, rows * ceil_div(columns * channels, 4)
    return 2 * wide <= words and (words - wide) * ceil_div(outputs, 4) >= columns * channels and math.prod(out[:3]) > 1


def _turned(graph: Graph, node: Node) -> Conv2D | Pool2D | None:
    """The attributes of a window that is one column wide, in a row; None for other nodes."""
    attributes = node.attributes
    if node.op in ("CONV_2D", "DEPTHWISE_CONV_2D") and isinstance(attributes, Conv2D):
        weights = graph.tensors[node.inputs[1]]
        taps, columns = weights.shape[1:3]
        turned: Conv2D | Pool2D = replace(attributes, dilation=attributes.dilation[::-1])
        is_window = weights.is_constant and taps > 1
    elif node.op in ("AVERAGE_POOL_2D", "MAX_POOL_2D") and isinstance(attributes, Pool2D):
        taps, columns = attributes.kernel
        turned, is_window = replace(attributes, kernel=attributes.kernel[::-1]), True
    else:
        return None
    assert isinstance(attributes, Conv2D | Pool2D)
    before = attributes.padding
    if not is_window or columns != 1 or before.left or before.right:
        return None
    return replace(turned, stride=attributes.stride[::-1], padding=Padding(left=before.top, right=before.bottom))


def merge_pad(graph: Graph) -> tuple[Graph, Outcome]:
    """PAD of rows and columns with zeros, then CONV -> CONV with more padding. Pooling would change its divisor."""
    edit = Rewriter(graph)
    consumers = graph.consumers()
    for node in graph.nodes:
        pad = node.attributes
        if not isinstance(pad, Pad):
            continue
        readers = consumers.get(node.outputs[0], [])
        ((top, bottom), (left, right)) = pad.amounts[1:3] if len(pad.amounts) == 4 else ((0, 0), (0, 0))
        if pad.value != 0.0 or len(pad.amounts) != 4 or any(pad.amounts[0] + pad.amounts[3]):
            edit.decline(f"{graph.tensors[node.outputs[0]].name}: not zeros around rows and columns only")
        elif node.outputs[0] in graph.outputs or not all(
            _is_window_over(reader, node.outputs[0]) for reader in readers
        ):
            edit.decline(f"{graph.tensors[node.outputs[0]].name} is read by more than convolutions")
        else:
            for reader in readers:
                conv = reader.attributes
                assert isinstance(conv, Conv2D)
                old = conv.padding
                padding = Padding(old.top + top, old.bottom + bottom, old.left + left, old.right + right)
                inputs = (node.inputs[0], *reader.inputs[1:])
                edit.replace(reader, replace(reader, inputs=inputs, attributes=replace(conv, padding=padding)))
            edit.remove(node)
    return edit.finish()


def _is_window_over(node: Node, tensor: int) -> bool:
    """Whether it is a convolution that reads a tensor as its input, and not as weights as well."""
    return isinstance(node.attributes, Conv2D) and tensor not in node.inputs[1:]


def pool_to_mean(graph: Graph) -> tuple[Graph, Outcome]:
    """AVERAGE_POOL_2D over the whole map -> MEAN over rows and columns."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        pool = node.attributes
        if node.op != "AVERAGE_POOL_2D" or not isinstance(pool, Pool2D):
            continue
        height, width = graph.tensors[node.inputs[0]].shape[1:3]
        if (
            pool.kernel != (height, width)
            or pool.padding != Padding()
            or graph.tensors[node.outputs[0]].shape[1:3] != (1, 1)
        ):
            edit.decline(f"{graph.tensors[node.outputs[0]].name} averages over windows")
            continue
        edit.replace(node, replace(node, op="MEAN", attributes=Reduce(axes=(1, 2), keep_dims=True)))
    return edit.finish()


@fused_only
def transpose_convolution_to_depth(graph: Graph) -> tuple[Graph, Outcome]:
    """TRANSPOSE_CONV whose windows do not overlap -> 1x1 CONV_2D to h*w*O channels, DEPTH_TO_SPACE.

    With kernel == stride and no padding each input pixel gives its own block of outputs: out[y*s+i, x*s+j, o] =
    bias[o] + sum x[y, x, c] * w[o, i, j, c], channel (i*s + j)*O + o of a 1x1 convolution.
    """
    edit = Rewriter(graph)
    for node in graph.nodes:
        attributes = node.attributes
        if not isinstance(attributes, TransposeConv2D) or not graph.tensors[node.inputs[1]].is_constant:
            continue
        weights = float_data(graph.tensors[node.inputs[1]])
        out_channels, kernel_h, kernel_w, channels = weights.shape
        out = graph.tensors[node.outputs[0]]
        batch, height, width, _ = graph.tensors[node.inputs[0]].shape
        exact = out.shape[1:3] == (height * kernel_h, width * kernel_w)
        if (
            attributes.stride != (kernel_h, kernel_w)
            or kernel_h != kernel_w
            or attributes.padding != Padding()
            or not exact
        ):
            edit.decline(f"{out.name}: windows overlap or are padded")
            continue
        dense = weights.transpose(1, 2, 0, 3).reshape(kernel_h * kernel_w * out_channels, 1, 1, channels)
        bias = node.inputs[2]
        if bias != ABSENT:
            repeated = np.tile(float_data(graph.tensors[bias]), kernel_h * kernel_w)
            bias = edit.new_constant(graph.tensors[bias].name + ":tiled", repeated)
        constant = edit.new_constant(graph.tensors[node.inputs[1]].name + ":1x1", dense)
        deep = edit.new_tensor(out.name + ":deep", (batch, height, width, dense.shape[0]))
        edit.replace(
            node,
            Node("CONV_2D", (node.inputs[0], constant, bias), (deep,), Conv2D(), node.index),
            Node("DEPTH_TO_SPACE", (deep,), node.outputs),
        )
    return edit.finish()


@fused_only
def elementwise_before_depth_to_space(graph: Graph) -> tuple[Graph, Outcome]:
    """DEPTH_TO_SPACE, LOGISTIC -> LOGISTIC, DEPTH_TO_SPACE: four channels of a pixel at once instead of one of four."""
    edit = Rewriter(graph)
    consumers = graph.consumers()
    for node in graph.nodes:
        if node.op != "DEPTH_TO_SPACE":
            continue
        readers = consumers.get(node.outputs[0], [])
        if len(readers) != 1 or node.outputs[0] in graph.outputs or not _is_unary(readers[0]):
            continue
        deep = graph.tensors[node.inputs[0]]
        active = edit.new_tensor(deep.name + ":" + readers[0].op.lower(), deep.shape)
        edit.replace(node, replace(readers[0], inputs=(deep.index,), outputs=(active,)))
        edit.replace(readers[0], replace(node, inputs=(active,), outputs=readers[0].outputs))
    return edit.finish()


def separate_depth_to_space(graph: Graph) -> tuple[Graph, Outcome]:
    """DEPTH_TO_SPACE of more slices than registers hold -> the same read by threads of its own pixels.

    Fewer slices are stored by the kernel that computes them.
    """
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "DEPTH_TO_SPACE" and shape_of(graph.tensors[node.inputs[0]]).slices > MOST_STORED_SLICES:
            edit.replace(node, replace(node, op="READ_DEPTH_TO_SPACE"))
    return edit.finish()


def _is_unary(node: Node) -> bool:
    return is_elementwise(node) and len(node.inputs) == 1
