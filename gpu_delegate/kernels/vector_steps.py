"""What nodes on 1x1xC tensors compute, whatever computes it: a step for each of them.

These are squeeze-and-excite blocks, a mean over a map, two small matrix products, their activations, and the ends of
classifiers, which reduce channels. A GPU's work-group takes the steps in shared memory (vector_emitter.py), a CPU in
loops of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..code.vocabulary import Operand, Value
from ..model.graph import ABSENT, Node, StridedSlice
from ..model.packing import Float32Array
from ..model.rewrite import float_data
from ..ops.nodes import (
    constants_of,
    elementwise_value,
    fold_of,
    has_role,
    is_channel_reduction,
    is_elementwise,
    needs_mask,
)
from ..ops.record import Reducer
from ..ops.reduce import factor_of
from ..plan.vector_work import VectorWork


@dataclass(frozen=True)
class VectorStep:
    """A node's output and what it reads, its own weights apart."""

    node: Node
    out: int
    sources: tuple[int, ...]


@dataclass(frozen=True)
class EachValue(VectorStep):
    """Each channel is what an elementwise op makes of the same channel of all sources."""

    repeated: tuple[bool, ...]  # for each source whether its only channel stands for all
    constants: Float32Array  # (N, 4): numbers that the op has
    needs_mask: bool  # whether lanes past the last channel, which have to be zeros, may come out as others

    def value(self, operands: Sequence[Operand], constants: Sequence[Value]) -> Value:
        """Some channels, where operands and constants have values."""
        return elementwise_value(self.node, operands, constants)


@dataclass(frozen=True)
class Product(VectorStep):
    """A matrix times the one source, and a bias."""

    matrix: Float32Array  # (outputs, inputs)
    bias: Float32Array  # (outputs,)


@dataclass(frozen=True)
class Folded(VectorStep):
    """The values of the one source folded, then multiplied by a number: all channels to one, or the pixels of each."""

    fold: Reducer
    factor: float
    over_channels: bool

    def scaled(self, total: Value) -> Value:
        """What comes out of all values folded."""
        return total if self.factor == 1.0 else total * self.factor


@dataclass(frozen=True)
class Copied(VectorStep):
    """The one source as it is: a fold of one pixel."""


@dataclass(frozen=True)
class PixelPart(VectorStep):
    """Whole slices of channels of one pixel of the one source, from a slice on."""

    first: int  # slice
    pixel: int  # of all batches, rows and columns
    needs_mask: bool  # whether the source may have values in the lanes past the last channel


def vector_steps(work: VectorWork) -> list[VectorStep]:
    """What each node of a work computes, in order."""
    return [_step(work, node) for node in work.nodes]


def _step(work: VectorWork, node: Node) -> VectorStep:
    graph, out = work.graph, node.outputs[0]
    if is_elementwise(node):
        channels = [work.shape(tensor).channels for tensor in (out, *node.inputs)]
        repeated = tuple(each == 1 < channels[0] for each in channels[1:])
        return EachValue(node, out, node.inputs, repeated, constants_of(node), needs_mask(node))
    if isinstance(cut := node.attributes, StridedSlice):
        shape, end = work.shape(node.inputs[0]), cut.begin[3] + cut.sizes[3]
        pixel = (cut.begin[0] * shape.height + cut.begin[1]) * shape.width + cut.begin[2]
        return PixelPart(node, out, node.inputs, cut.begin[3] // 4, pixel, end % 4 > 0 and end < shape.channels)
    if has_role(node, "reduction"):
        over_channels = is_channel_reduction(graph, node)
        if work.shape(node.inputs[0]).is_vector and not over_channels:
            return Copied(node, out, node.inputs)
        return Folded(node, out, node.inputs, fold_of(node), factor_of(fold_of(node), graph, node), over_channels)
    matrix, bias = float_data(graph.tensors[node.inputs[1]]), node.inputs[2] if len(node.inputs) > 2 else ABSENT
    zeros = np.zeros(len(matrix), np.float32)
    added = zeros if bias == ABSENT else float_data(graph.tensors[bias]).reshape(-1)
    return Product(node, out, node.inputs[:1], matrix.reshape(len(matrix), -1), added)
