"""CONV_2D in its two forms: accumulating over streamed input slices, and gathering over held ones."""

import numpy as np

from gpu_delegate.emit import Emitter, Slice
from gpu_delegate.graph import Conv2D, Node, TransposeConv2D
from gpu_delegate.nodes import is_pointwise_convolution
from gpu_delegate.packing import bias_of, convolution_blocks
from gpu_delegate.rewrite import float_data


def start(emitter: Emitter, node: Node) -> None:
    """Declare the accumulators of a convolution and set them to its bias."""
    out = node.outputs[0]
    bias = bias_of(emitter.graph, node)
    base = -1 if emitter.tile.baked else emitter.blob.add(bias)
    for index in emitter.held_slices(out):
        at = emitter.output_slice(index)
        text = emitter.weight(base, at.text, bias[index] if emitter.tile.baked else None)
        first = emitter.held(out, 0, index)
        emitter.line(f"vec4 {first} = {text};")
        for row in list(emitter.rows)[1:]:
            emitter.line(f"vec4 {emitter.held(out, row, index)} = {first};")


def accumulate(emitter: Emitter, node: Node, at: Slice) -> None:
    """Add one input slice to every output slice: out[o] += sum over taps and lanes of x * w."""
    out = node.outputs[0]
    weights = float_data(emitter.graph.tensors[node.inputs[1]])
    blocks = convolution_blocks(weights)
    taps, slices = blocks.shape[1:3]
    lanes = min(4, weights.shape[3] - 4 * at.index) if at.index is not None else 4
    base = -1 if emitter.tile.baked else emitter.blob_base((out, "weights"), blocks)
    for tap in range(taps):
        values = _taps(emitter, node, at, tap)
        for index in emitter.held_slices(out):
            names = []
            for lane in range(lanes):
                target = (
                    f"((({at.text}) * {taps} + {tap}) * {slices} + {emitter.output_slice(index).text}) * 4 + {lane}"
                )
                known = blocks[at.index, tap, index, lane] if emitter.tile.baked and at.index is not None else None
                names.append(emitter.weight(base, target, known))
            _multiply(emitter, [emitter.held(out, row, index) for row in emitter.rows], values, names)


def gather(emitter: Emitter, node: Node, at: Slice) -> list[str]:
    """One output slice of a 1x1 convolution over held input."""
    weights = float_data(emitter.graph.tensors[node.inputs[1]])
    blocks = convolution_blocks(weights)[:, 0].transpose(1, 0, 2, 3)  # (N, S, 4 in, 4 out)
    bias = bias_of(emitter.graph, node)
    slices = blocks.shape[1]
    baked = emitter.tile.baked and at.index is not None
    if baked:
        assert at.index is not None
        start_text, base = emitter.weight(-1, "", bias[at.index]), -1
    else:
        start_text = emitter.weight(emitter.blob_base((node.outputs[0], "bias"), bias), at.text, None)
        base = emitter.blob_base((node.outputs[0], "weights"), np.ascontiguousarray(blocks))
    first = emitter.declare([start_text], "b")[0]
    sums = emitter.declare([first for _ in emitter.rows], "b")
    for index in range(slices):
        values = [emitter.held(node.inputs[0], row, index) for row in emitter.rows]
        lanes = min(4, weights.shape[3] - 4 * index)
        names = []
        for lane in range(lanes):
            known = blocks[at.index, index, lane] if baked and at.index is not None else None
            names.append(emitter.weight(base, f"(({at.text}) * {slices} + {index}) * 4 + {lane}", known))
        _multiply(emitter, sums, values, names)
    return sums


def _multiply(emitter: Emitter, sums: list[str], values: list[str], weights: list[str]) -> None:
    """sums[row] += values[row].x * weights[0] + ...; the weights are named first where several rows share them."""
    if len(sums) > 1:
        weights = emitter.declare(weights, "w")
    for total, value in zip(sums, values, strict=True):
        terms = " + ".join(f"{value}.{'xyzw'[lane]} * {weight}" for lane, weight in enumerate(weights))
        emitter.line(f"{total} += {terms};")


def _taps(emitter: Emitter, node: Node, at: Slice, tap: int) -> list[str]:
    """The input under one tap of the window, for each of the thread's pixels."""
    if is_pointwise_convolution(emitter.graph, node):
        return emitter.value(node.inputs[0], at)
    source, domain = emitter.shape(node.inputs[0]), emitter.body.domain
    attributes = node.attributes
    ky, kx = divmod(tap, emitter.graph.tensors[node.inputs[1]].shape[2])
    rows = []
    if isinstance(attributes, TransposeConv2D):
        stride, padding = attributes.stride, attributes.padding
        column = emitter.strided_axis("x0", stride[1], padding.left - kx, source.width)
        rows = [emitter.strided_axis("y0", stride[0], row + padding.top - ky, source.height) for row in emitter.rows]
    else:
        assert isinstance(attributes, Conv2D)
        stride, dilation, padding = attributes.stride, attributes.dilation, attributes.padding
        column = emitter.axis("x0", stride[1], kx * dilation[1] - padding.left, source.width, domain.width - 1)
        for row in emitter.rows:
            offset = row * stride[0] + ky * dilation[0] - padding.top
            rows.append(emitter.axis("y0", stride[0], offset, source.height, domain.height - emitter.tile.rows))
    return [emitter.tap(node.inputs[0], at, row, column) for row in rows]
