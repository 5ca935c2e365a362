"""Passes that find padding and dilation which a file encodes by other ops, and make them part of the convolution."""

from dataclasses import replace

import numpy as np

from ..model.graph import BatchToSpace, Concatenation, Conv2D, Graph, Node, Pad, Padding, SpaceToBatch
from ..model.rewrite import Outcome, Rewriter, fused_only


@fused_only
def pad_from_concatenation(graph: Graph) -> tuple[Graph, Outcome]:
    """CONCATENATION of one runtime tensor with constants that are all zero -> PAD."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        concatenation = node.attributes
        if not isinstance(concatenation, Concatenation) or concatenation.activation != "NONE":
            continue
        operands = [graph.tensors[i] for i in node.inputs]
        runtime = [place for place, tensor in enumerate(operands) if not tensor.is_constant]
        if len(runtime) != 1 or len(operands) == 1:
            continue
        if any(tensor.data is not None and np.any(tensor.data) for tensor in operands):
            edit.decline(f"{graph.tensors[node.outputs[0]].name}: a constant is not all zeros")
            continue
        place, axis = runtime[0], concatenation.axis
        sizes = [tensor.shape[axis] for tensor in operands]
        x = operands[place]
        ends = (sum(sizes[:place]), sum(sizes[place + 1 :]))
        amounts = tuple(ends if k == axis else (0, 0) for k in range(len(x.shape)))
        edit.replace(node, replace(node, op="PAD", inputs=(x.index,), attributes=Pad(amounts)))
    return edit.finish()


@fused_only
def dilate_convolutions(graph: Graph) -> tuple[Graph, Outcome]:
    """SPACE_TO_BATCH_ND, CONV_2D or DEPTHWISE_CONV_2D, BATCH_TO_SPACE_ND -> one convolution with dilation.

    Each batch of SPACE_TO_BATCH_ND holds every block-th pixel of the padded input, so taps that are d apart there are
    block * d apart in it, and so are rows of padding. BATCH_TO_SPACE_ND interleaves the results again, and what it cuts
    off at the start is padding that is not needed.
    """
    edit = Rewriter(graph)
    consumers = graph.consumers()
    for node in graph.nodes:
        if not isinstance(node.attributes, SpaceToBatch):
            continue
        found = _dilated(graph, consumers, node)
        if isinstance(found, str):
            edit.decline(f"{graph.tensors[node.outputs[0]].name}: {found}")
            continue
        conv, last, attributes = found
        inputs = (node.inputs[0], *conv.inputs[1:])
        edit.remove(node)
        edit.replace(conv, replace(conv, inputs=inputs, outputs=last.outputs, attributes=attributes))
        edit.remove(last)
    return edit.finish()


def _dilated(graph: Graph, consumers: dict[int, list[Node]], first: Node) -> tuple[Node, Node, Conv2D] | str:
    """The convolution and the BATCH_TO_SPACE_ND behind a SPACE_TO_BATCH_ND, with what replaces them; or why nothing."""
    spread = first.attributes
    assert isinstance(spread, SpaceToBatch)
    conv = _only_reader(graph, consumers, first)
    if conv is None or not isinstance(conv.attributes, Conv2D) or conv.inputs[0] != first.outputs[0]:
        return "it is not read by one convolution alone"
    last = _only_reader(graph, consumers, conv)
    if last is None or not isinstance(last.attributes, BatchToSpace):
        return "its convolution is not read by one BATCH_TO_SPACE_ND alone"
    gather, window = last.attributes, conv.attributes
    if gather.block != spread.block:
        return "the blocks of both sides differ"
    if window.stride != (1, 1):
        return "its convolution has a stride"
    (block_h, block_w), inner = spread.block, window.padding
    padding = Padding(
        spread.padding.top + block_h * inner.top - gather.padding.top,
        spread.padding.bottom + block_h * inner.bottom - gather.padding.bottom,
        spread.padding.left + block_w * inner.left - gather.padding.left,
        spread.padding.right + block_w * inner.right - gather.padding.right,
    )
    if min(padding.top, padding.bottom, padding.left, padding.right) < 0:
        return "more is cut off behind the convolution than is padded before it"
    dilation = (window.dilation[0] * block_h, window.dilation[1] * block_w)
    return conv, last, replace(window, padding=padding, dilation=dilation)


def _only_reader(graph: Graph, consumers: dict[int, list[Node]], node: Node) -> Node | None:
    readers = consumers.get(node.outputs[0], [])
    return readers[0] if len(readers) == 1 and node.outputs[0] not in graph.outputs else None
