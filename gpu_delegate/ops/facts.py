"""What several ops' records say of shapes, of constants' values and of ranges of whole numbers."""

import math
from collections.abc import Sequence

import numpy as np

from ..code.evaluate import Values
from ..code.whole_numbers import WholeRange
from ..model.graph import Graph, Node, Shape, Tensor

COMPUTED_TYPES = frozenset({"float32", "int32", "int64", "bool"})  # of arithmetic; others need scales


def expect_types(values: Sequence[Values], types: frozenset[str] = COMPUTED_TYPES) -> None:
    """Raises ValueError for values whose numbers do not mean themselves."""
    for value in values:
        if value.dtype.name not in types:
            raise ValueError(f"{value.dtype.name} constants need scales")


def expect_count(count: int, output: Tensor) -> None:
    """Raises ValueError for a value with another number of elements than an output's shape says."""
    if count != math.prod(output.shape):
        raise ValueError(f"{count} values for the shape {list(output.shape)}")


def reshaped_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    """The values as they are, in the output's shape."""
    return values[0].reshape(output.shape)


def keeps_count(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """Whether all values are still there."""
    return math.prod(inputs[0]) == math.prod(output)


def broadcasts(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """Whether inputs can be repeated to the output, which may be larger than all: kernels repeat what they read."""
    return np.broadcast_shapes(*inputs, output) == output


def first_range(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """The range of an op whose values are some of its first input's."""
    return inputs[0]


def last_range(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """The same of its last input's."""
    return inputs[-1]
