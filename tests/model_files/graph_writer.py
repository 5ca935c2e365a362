"""Writes any Graph, also one that passes made, as a file and runs it in TensorFlow Lite.

Padding that neither SAME nor VALID says becomes a PAD in front of the window, or a SLICE behind a transposed
convolution. Parameters that a Graph keeps as attributes become the constants that the file has.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.model.graph import (
    ABSENT,
    Activated,
    Alpha,
    Axes,
    Axis,
    BatchToSpace,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    MirrorPad,
    Node,
    Pad,
    Padding,
    Pool2D,
    Reduce,
    Repeat,
    Shape,
    Softmax,
    SpaceToBatch,
    Split,
    StridedSlice,
    Transpose,
    TransposeConv2D,
)
from texelflow.gpu_delegate.model.operators import attributes_of
from texelflow.gpu_delegate.ops.registry import OPS

Values = npt.NDArray[Any]


def run_graph(graph: Graph, inputs: Sequence[Values], constants_at_run_time: bool = False) -> list[Values]:
    """The outputs of TensorFlow Lite's own kernels, without XNNPACK. Constants may be given as further inputs."""
    writing = _Writing(graph, constants_at_run_time)
    module = load_interpreter_module()
    interpreter = module.Interpreter(
        model_content=writing.file(),
        experimental_op_resolver_type=module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    values = [*inputs, *writing.late]
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


class _Writing:
    def __init__(self, graph: Graph, constants_at_run_time: bool) -> None:
        self.graph = graph
        self.builder = ModelBuilder()
        self.late: list[Values] = []
        self.at = {ABSENT: ABSENT}
        for index in graph.inputs:
            self.at[index] = self.builder.input(graph.tensors[index].shape, graph.tensors[index].dtype)
        for index, tensor in graph.tensors.items():
            if tensor.data is not None and constants_at_run_time:
                self.at[index] = self.builder.input(tensor.shape, tensor.dtype)
                self.late.append(tensor.data)
            elif tensor.data is not None:
                self.at[index] = self.builder.constant(tensor.data, tensor.dtype)

    def file(self) -> bytes:
        for node in self.graph.nodes:
            WRITERS.get(node.op, _write_plain)(self, node)
        self.builder.output(*(self.at[index] for index in self.graph.outputs))
        return self.builder.build()

    def op(self, node: Node, name: str, inputs: Sequence[int], shape: Shape | None = None, **options: Any) -> int:
        """An operator that writes the node's output, or, with a shape, something that is not in the graph."""
        out = self.graph.tensors[node.outputs[0]]
        made = self.builder.op(name, inputs, out.shape if shape is None else shape, out.dtype, **options)
        if shape is None:
            self.at[out.index] = made
        return made

    def operands(self, node: Node) -> list[int]:
        return [self.at[i] for i in node.inputs]

    def shape(self, node: Node) -> Shape:
        """Of the first input."""
        return self.graph.tensors[node.inputs[0]].shape

    def integers(self, values: Any) -> int:
        return self.builder.constant(np.array(values, np.int32), "int32")

    def padded(self, node: Node, padding: Padding) -> int:
        """The first input with zeros around it."""
        amounts = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
        if padding == Padding():
            return self.at[node.inputs[0]]
        shape = tuple(n + sum(amount) for n, amount in zip(self.shape(node), amounts, strict=True))
        return self.op(node, "PAD", [self.at[node.inputs[0]], self.integers(amounts)], shape)

    def bias(self, node: Node, channels: int) -> int:
        given = node.inputs[2] if len(node.inputs) > 2 else ABSENT
        return self.builder.constant(np.zeros(channels)) if given == ABSENT else self.at[given]


def _write_plain(writing: _Writing, node: Node) -> None:
    attributes = node.attributes
    options: dict[str, Any] = {"activation": attributes.activation} if isinstance(attributes, Activated) else {}
    writing.op(node, node.op, writing.operands(node), **options)


def _write_alpha(writing: _Writing, node: Node) -> None:
    writing.op(node, node.op, writing.operands(node), alpha=attributes_of(node, Alpha).alpha)


def _write_convolution(writing: _Writing, node: Node) -> None:
    conv = attributes_of(node, Conv2D)
    weights = writing.graph.tensors[node.inputs[1]].shape
    depthwise: dict[str, Any] = {"depth_multiplier": conv.multiplier} if isinstance(conv, DepthwiseConv2D) else {}
    bias = writing.bias(node, weights[3] if depthwise else weights[0])
    inputs = [writing.padded(node, conv.padding), writing.at[node.inputs[1]], bias]
    options: dict[str, Any] = {"stride": conv.stride, "dilation": conv.dilation, "activation": conv.activation}
    writing.op(node, node.op, inputs, padding="VALID", **options, **depthwise)


def _write_transposed(writing: _Writing, node: Node) -> None:
    conv = attributes_of(node, TransposeConv2D)
    out, (batch, height, width, _) = writing.graph.tensors[node.outputs[0]].shape, writing.shape(node)
    channels, kernel_h, kernel_w, _ = writing.graph.tensors[node.inputs[1]].shape
    whole = (batch, (height - 1) * conv.stride[0] + kernel_h, (width - 1) * conv.stride[1] + kernel_w, channels)
    inputs = [writing.integers(whole), *writing.operands(node)[1::-1], writing.bias(node, channels)]
    options: dict[str, Any] = {"stride": conv.stride, "padding": "VALID", "activation": conv.activation}
    made = writing.op(node, "TRANSPOSE_CONV", inputs, None if whole == out else whole, **options)
    if whole != out:
        begin = writing.integers((0, conv.padding.top, conv.padding.left, 0))
        writing.op(node, "SLICE", [made, begin, writing.integers(out)])


def _write_connected(writing: _Writing, node: Node) -> None:
    keep = len(writing.graph.tensors[node.outputs[0]].shape) > 2
    activation = attributes_of(node, Activated).activation
    writing.op(node, node.op, writing.operands(node), keep_num_dims=keep, activation=activation)


def _write_reduction(writing: _Writing, node: Node) -> None:
    reduce = attributes_of(node, Reduce)
    inputs = [*writing.operands(node), writing.integers(reduce.axes)]
    writing.op(node, node.op, inputs, keep_dims=reduce.keep_dims)


def _write_reshape(writing: _Writing, node: Node) -> None:
    shape = writing.graph.tensors[node.outputs[0]].shape
    writing.op(node, "RESHAPE", [*writing.operands(node), writing.integers(shape)], new_shape=shape)


def _write_expand(writing: _Writing, node: Node) -> None:
    """The first place where a dimension of one may have been added."""
    old, new = writing.shape(node), writing.graph.tensors[node.outputs[0]].shape
    axis = next(k for k, size in enumerate(new) if size == 1 and new[:k] + new[k + 1 :] == old)
    writing.op(node, node.op, [*writing.operands(node), writing.integers(axis)])


def _write_concatenation(writing: _Writing, node: Node) -> None:
    concatenation = attributes_of(node, Concatenation)
    options: dict[str, Any] = {"axis": concatenation.axis, "activation": concatenation.activation}
    writing.op(node, node.op, writing.operands(node), **options)


def _write_pack(writing: _Writing, node: Node) -> None:
    axis = attributes_of(node, Axis).axis
    writing.op(node, node.op, writing.operands(node), axis=axis, values_count=len(node.inputs))


def _write_gather(writing: _Writing, node: Node) -> None:
    writing.op(node, node.op, writing.operands(node), axis=attributes_of(node, Axis).axis)


def _write_slice(writing: _Writing, node: Node) -> None:
    """A stop in front of the first value of a reversed dimension is minus its length minus one."""
    part, shape = attributes_of(node, StridedSlice), writing.shape(node)
    out = writing.graph.tensors[node.outputs[0]].shape
    if node.op == "SLICE":
        writing.op(node, node.op, [*writing.operands(node), *map(writing.integers, (part.begin, part.sizes))])
        return
    ends = [
        b + (n - 1) * s + (1 if s > 0 else -1) for b, n, s in zip(part.begin, part.sizes, part.strides, strict=True)
    ]
    stops = [end if end >= 0 else -length - 1 for end, length in zip(ends, shape, strict=True)]
    inputs = [*writing.operands(node), *map(writing.integers, (part.begin, stops, part.strides))]
    made = writing.op(node, "STRIDED_SLICE", inputs, None if part.sizes == out else part.sizes)
    if part.sizes != out:
        writing.op(node, "RESHAPE", [made, writing.integers(out)], new_shape=out)


def _write_several(writing: _Writing, node: Node) -> None:
    """SPLIT, SPLIT_V and UNPACK."""
    (x,), count = writing.operands(node), len(node.outputs)
    if node.op == "UNPACK":
        inputs, axis = [x], attributes_of(node, Axis).axis
        options: dict[str, Any] = {"num": count, "axis": axis}
    else:
        split = attributes_of(node, Split)
        options, at = {"num_splits": count}, writing.integers(split.axis)
        inputs = [at, x] if node.op == "SPLIT" else [x, writing.integers(split.sizes), at]
    made = [writing.op(node, node.op, inputs, **options)]
    for index in node.outputs[1:]:
        tensor = writing.graph.tensors[index]
        made.append(writing.builder.tensor(tensor.shape, tensor.dtype))
        writing.at[index] = made[-1]
    writing.builder.ops[-1] = replace(writing.builder.ops[-1], outputs=tuple(made))


def _write_pad(writing: _Writing, node: Node) -> None:
    pad = attributes_of(node, Pad)
    inputs = [*writing.operands(node), writing.integers(pad.amounts)]
    extra = [writing.builder.constant(pad.value)] if node.op == "PADV2" else []
    writing.op(node, node.op, inputs + extra)


def _write_mirror_pad(writing: _Writing, node: Node) -> None:
    pad = attributes_of(node, MirrorPad)
    inputs = [*writing.operands(node), writing.integers(pad.amounts)]
    writing.op(node, node.op, inputs, mode=int(pad.symmetric))


def _write_blocks(writing: _Writing, node: Node) -> None:
    attributes = node.attributes
    assert isinstance(attributes, SpaceToBatch | BatchToSpace)
    padding = attributes.padding
    amounts = ((padding.top, padding.bottom), (padding.left, padding.right))
    writing.op(node, node.op, [*writing.operands(node), *map(writing.integers, (attributes.block, amounts))])


def _with_integers(values: Callable[[Node, Shape], Any]) -> Callable[[_Writing, Node], None]:
    """An op whose only parameter is one more input."""

    def write(writing: _Writing, node: Node) -> None:
        out = writing.graph.tensors[node.outputs[0]].shape
        writing.op(node, node.op, [*writing.operands(node), writing.integers(values(node, out))])

    return write


def _write_shape(writing: _Writing, node: Node) -> None:
    kind = getattr(tflite.TensorType, writing.graph.tensors[node.outputs[0]].dtype.upper())
    writing.op(node, node.op, writing.operands(node), out_type=kind)


def _write_softmax(writing: _Writing, node: Node) -> None:
    writing.op(node, node.op, writing.operands(node), beta=attributes_of(node, Softmax).beta)


def _write_pool(writing: _Writing, node: Node) -> None:
    """With padding as SAME gives it, or none."""
    pool = attributes_of(node, Pool2D)
    padding, window = "VALID" if pool.padding == Padding() else "SAME", (pool.kernel, pool.stride)
    options: dict[str, Any] = {"kernel": window[0], "stride": window[1], "activation": pool.activation}
    writing.op(node, node.op, writing.operands(node), padding=padding, **options)


def _write_as_recorded(writing: _Writing, node: Node) -> None:
    """As the program writes it."""
    form = OPS[node.op].file
    assert form is not None
    encoded = form.write(writing.graph, node)
    (_, *more), options = (
        encoded.inputs,
        {re.sub("(?<!^)([A-Z])", r"_\1", k).lower(): v for k, v in encoded.options.items()},
    )
    inputs = [*writing.operands(node), *(writing.integers(each) for each in more)]
    writing.op(node, node.op, inputs, table=encoded.table, **options)


WRITERS: Mapping[str, Callable[[_Writing, Node], None]] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _write_convolution),
        **dict.fromkeys(("TRANSPOSE_CONV", "Convolution2DTransposeBias"), _write_transposed),
        **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), _write_reduction),
        **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _write_slice),
        **dict.fromkeys(("SPLIT", "SPLIT_V", "UNPACK"), _write_several),
        **dict.fromkeys(("PAD", "PADV2"), _write_pad),
        **dict.fromkeys(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), _write_blocks),
        **dict.fromkeys(("ARG_MAX", "ARG_MIN", "CUMSUM"), _write_as_recorded),
        **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D"), _write_pool),
        "LOCAL_RESPONSE_NORMALIZATION": _write_as_recorded,
        "BROADCAST_TO": _with_integers(lambda _, out: out),
        "CONCATENATION": _write_concatenation,
        "EXPAND_DIMS": _write_expand,
        "FULLY_CONNECTED": _write_connected,
        "GATHER": _write_gather,
        "LEAKY_RELU": _write_alpha,
        "MIRROR_PAD": _write_mirror_pad,
        "PACK": _write_pack,
        "RESHAPE": _write_reshape,
        "REVERSE_V2": _with_integers(lambda node, _: attributes_of(node, Axes).axes),
        "SHAPE": _write_shape,
        "SOFTMAX": _write_softmax,
        "TILE": _with_integers(lambda node, _: attributes_of(node, Repeat).repeats),
        "TRANSPOSE": _with_integers(lambda node, _: attributes_of(node, Transpose).order),
    }
)
