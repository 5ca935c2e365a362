"""Ops that change shapes: an operator of a .tflite file goes in, its node's attributes come out, and vice versa."""

import math

import numpy as np
import tflite

from ..graph import Activated, Attributes, Concatenation, Graph, Node, Pad, Reduce, Resize, Shape
from ..operators import ACTIVATION_CODES, MAX_OPERANDS, MAX_STRIDE, EncodedOperator, Operator, attributes_of, integers


def read_fully_connected(operator: Operator) -> Attributes:
    options = operator.options("FullyConnectedOptions")
    if options.WeightsFormat() != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        operator.unsupported("shuffled weights")
    x, (outputs, depth) = operator.shape(0), operator.shape(1, rank=2)
    if math.prod(x) % depth or (options.KeepNumDims() and x[-1:] != (depth,)):
        operator.damaged(f"weights for {depth} channels, input of shape {list(x)}")
    operator.check_bias(2, outputs)
    rows = (math.prod(x) // depth,)
    operator.expect((*(x[:-1] if options.KeepNumDims() else rows), outputs))
    return Activated(operator.activation(options))


def write_fully_connected(graph: Graph, node: Node) -> EncodedOperator:
    x, out = (graph.tensors[i].shape for i in (node.inputs[0], node.outputs[0]))
    options = {
        "KeepNumDims": len(x) != 2 and out[:-1] == x[:-1],  # with two dimensions both mean the same
        "FusedActivationFunction": ACTIVATION_CODES[attributes_of(node, Activated).activation],
    }
    return EncodedOperator(node.inputs, "FullyConnectedOptions", options)


def read_mean(operator: Operator) -> Attributes:
    shape, keep = operator.shape(0), bool(operator.options("ReducerOptions").KeepDims())
    axes = operator.integers(1)
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        operator.damaged(f"axes {list(axes)} of {len(shape)} dimensions")
    reduced = tuple(sorted({axis % len(shape) for axis in axes}))
    kept = ((i, 1 if i in reduced else size) for i, size in enumerate(shape))
    operator.expect(tuple(size for i, size in kept if keep or i not in reduced))
    return Reduce(reduced, keep)


def write_mean(graph: Graph, node: Node) -> EncodedOperator:
    mean = attributes_of(node, Reduce)
    return EncodedOperator((*node.inputs, integers(*mean.axes)), "ReducerOptions", {"KeepDims": mean.keep_dims})


def read_resize(operator: Operator) -> Attributes:
    bilinear = operator.op == "RESIZE_BILINEAR"
    options = operator.options("ResizeBilinearOptions" if bilinear else "ResizeNearestNeighborOptions")
    batch, _, _, channels = operator.shape(0, rank=4)
    operator.expect((batch, *operator.integers(1), channels))
    align, half = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    if align and half and bilinear:
        operator.damaged("aligned corners and half-pixel centres exclude each other")
    return Resize(align, half)


def write_resize(graph: Graph, node: Node) -> EncodedOperator:
    resize = attributes_of(node, Resize)
    _, height, width, _ = graph.tensors[node.outputs[0]].shape
    table = "ResizeBilinearOptions" if node.op == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    options = {"AlignCorners": resize.align_corners, "HalfPixelCenters": resize.half_pixel_centers}
    return EncodedOperator((*node.inputs, integers(height, width)), table, options)


def read_pad(operator: Operator) -> Attributes:
    shape, flat = operator.shape(0), operator.integers(1)
    if len(flat) != 2 * len(shape) or any(not 0 <= amount <= MAX_STRIDE for amount in flat):
        operator.damaged(f"paddings {list(flat)} of {len(shape)} dimensions")
    amounts = tuple(zip(flat[::2], flat[1::2], strict=True))
    operator.expect(tuple(before + size + after for size, (before, after) in zip(shape, amounts, strict=True)))
    return Pad(amounts, _pad_value(operator) if operator.op == "PADV2" else 0.0)


def _pad_value(operator: Operator) -> float:
    value = operator.inputs[2]
    if value is None or value.data is None or value.dtype != "float32" or value.data.size != 1:
        operator.unsupported("a padding value that is not one float32 constant")
    return float(value.data.ravel()[0])


def write_pad(graph: Graph, node: Node) -> EncodedOperator:
    pad = attributes_of(node, Pad)
    value = (np.array(pad.value, np.float32),) if node.op == "PADV2" else ()
    return EncodedOperator((*node.inputs, np.array(pad.amounts, np.int32), *value))


def read_concatenation(operator: Operator) -> Attributes:
    options = operator.options("ConcatenationOptions")
    shapes, axis = [operator.shape(i) for i in range(len(operator.inputs))], options.Axis()
    rank = len(shapes[0])
    if not -rank <= axis < rank:
        operator.damaged(f"axis {axis} of {rank} dimensions")
    axis %= rank
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1 or {len(shape) for shape in shapes} != {rank}:
        operator.damaged(f"shapes {[list(shape) for shape in shapes[:4]]} do not fit together along axis {axis}")
    operator.expect((*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]))
    return Concatenation(operator.activation(options), axis)


def write_concatenation(graph: Graph, node: Node) -> EncodedOperator:
    concatenation = attributes_of(node, Concatenation)
    code = ACTIVATION_CODES[concatenation.activation]
    return EncodedOperator(
        node.inputs, "ConcatenationOptions", {"Axis": concatenation.axis, "FusedActivationFunction": code}
    )


def read_reshape(operator: Operator) -> Attributes:
    shape, out = operator.shape(0), operator.outputs[0].shape
    wanted = (
        operator.integers(1) if len(operator.inputs) == 2 and operator.inputs[1] is not None else _new_shape(operator)
    )
    fits = len(wanted) == len(out) and all(a in (-1, b) for a, b in zip(wanted, out, strict=True))
    if not fits or math.prod(shape) != math.prod(out):
        operator.damaged(f"cannot make {list(shape)} into {list(wanted)} and call it {list(out)}")
    return Attributes()


def _new_shape(operator: Operator) -> Shape:
    """The shape in the options of an old RESHAPE, which newer ones have as an input."""
    options = operator.options("ReshapeOptions")
    count = options.NewShapeLength()
    if count > MAX_OPERANDS:
        operator.damaged(f"a new shape of {count} dimensions")
    return tuple(int(size) for size in options.NewShapeAsNumpy()) if count else ()


def write_reshape(graph: Graph, node: Node) -> EncodedOperator:
    """The new shape as an input; a scalar's in the options, because a constant has at least one value."""
    shape = graph.tensors[node.outputs[0]].shape
    return EncodedOperator(
        (*node.inputs, *((integers(*shape),) if shape else ())), "ReshapeOptions", {"NewShape": shape}
    )
