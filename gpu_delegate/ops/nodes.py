"""Questions about a node that its op's record answers, such as whether it is elementwise or reads a window."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..code.evaluate import with_known_numbers
from ..code.vocabulary import Argument, Elementwise, Operand, Splat, Value
from ..model.graph import Attributes, Graph, Node
from ..model.layout import shape_of
from .record import ConstantTexels, Emission, OpRecord, Reducer, Role
from .registry import OPS


def record_of(node: Node) -> OpRecord:
    """The record of a node's op. Raises KeyError for an op that the engine does not know."""
    return OPS[node.op]


def has_role(node: Node, role: Role) -> bool:
    """Whether the node's op is known and has this role."""
    record = OPS.get(node.op)
    return record is not None and record.role == role


def has_kernel(graph: Graph, node: Node) -> bool:
    """Whether a pixel kernel can compute the node; others are computed as vectors, or passes turn them into such."""
    record = record_of(node)
    return record.arithmetic is not None or (record.emission != Emission() and record.fits(graph, node))


def reads_memory(graph: Graph, node: Node) -> bool:
    """Whether each slice is computed from values of the first input that lie in memory, not in the thread."""
    role = record_of(node).role
    return role in ("window", "movement") or (role == "reduction" and not is_channel_reduction(graph, node))


def memory_inputs(node: Node) -> tuple[int, ...]:
    """The inputs of such a node that it reads there: data that it moves, or the map of its window, and weights."""
    return node.inputs if record_of(node).role == "movement" else (*node.inputs[:1], *computed_weights(node))


def computed_weights(node: Node) -> tuple[int, ...]:
    """The inputs of a contraction or window that it reads in memory, wherever: weights that the model computes."""
    return tuple(node.inputs[position] for position in record_of(node).from_memory)


def groups_of_channels(graph: Graph, node: Node) -> int:
    """Groups of whole slices of which a contraction reads one for each output slice; 1 where it reads all."""
    return record_of(node).groups(graph, node)


def multiplies_rows(node: Node) -> bool:
    """Whether the node multiplies matrices, whose rows are pixels in a row: those share what is read of the other."""
    return record_of(node).multiplies_rows


def is_constant_vector(graph: Graph, tensor: int) -> bool:
    """Whether it is stored among a kernel's weights; constant maps are read like tensors."""
    found = graph.tensors.get(tensor)
    return found is not None and found.is_constant and shape_of(found).is_vector


def is_elementwise(node: Node) -> bool:
    """Whether each output value depends only on the input values at the same position."""
    return has_role(node, "elementwise")


@dataclass(frozen=True, eq=False)
class Computed:
    """What an elementwise op computes with some attributes. Quick to find in a cache, since equal ones are the same."""

    arithmetic: Value  # of arguments: the operands, then texels with numbers of the attributes
    numbers: ConstantTexels


@lru_cache(maxsize=4096)  # asked for each slice of each plan
def _computed(
    arithmetic: Callable[..., Value], constants: Callable[[Node], ConstantTexels], attributes: Attributes, inputs: int
) -> Computed:
    numbers = constants(Node("", (), (), attributes))
    said = with_known_numbers(arithmetic(attributes, *map(Argument, range(inputs + len(numbers)))))
    return Computed(said if isinstance(said, Value) else Splat(said), numbers)


def computed_of(node: Node) -> Computed:
    """What an elementwise node computes."""
    record = record_of(node)
    assert record.arithmetic is not None, f"{node.op} is no elementwise op"
    return _computed(record.arithmetic, record.constants, node.attributes, len(node.inputs))


def arithmetic_of(node: Node) -> Value:
    """What an elementwise node computes, of arguments: its operands, then the texels of its constants."""
    return computed_of(node).arithmetic


def elementwise_value(node: Node, operands: Sequence[Operand], constants: Sequence[Value] = ()) -> Elementwise:
    """What an elementwise node makes of vec4 operands, with the texels of its constants."""
    computed = computed_of(node)
    return Elementwise(computed.arithmetic, tuple(operands), tuple(constants), computed.numbers)


def constants_of(node: Node) -> npt.NDArray[np.float32]:
    """Numbers of an elementwise node's attributes as texels (N, 4): kernels with others have the same source."""
    return np.array(computed_of(node).numbers, np.float32).reshape(-1, 4)


def needs_mask(node: Node) -> bool:
    """Whether an elementwise node may give values that are not finite in padding lanes, which have to be zeros."""
    return not record_of(node).finite


def is_contraction(node: Node) -> bool:
    """A convolution that sums over all input channels."""
    return has_role(node, "contraction")


def is_channel_reduction(graph: Graph, node: Node) -> bool:
    """A reduction of each pixel's channels to one."""
    return has_role(node, "reduction") and OPS[node.op].pixelwise(graph, node)


def is_fold(node: Node) -> bool:
    """Whether a reduction folds values into one of them, or into their sum or product; others give positions."""
    return node.op in OPS and OPS[node.op].reducer is not None


def fold_of(node: Node) -> Reducer:
    """How a reduction folds values."""
    fold = record_of(node).reducer
    assert fold is not None, f"{node.op} folds nothing"
    return fold


def is_scatter(node: Node) -> bool:
    """Whether its results are stored at other pixels than its inputs, so that all its work is in the store."""
    return has_role(node, "scatter")


def has_weights(node: Node) -> bool:
    """A convolution of any kind."""
    return node.op in OPS and OPS[node.op].weighted


def is_pixelwise_contraction(graph: Graph, node: Node) -> bool:
    """A contraction that reads just the pixel that it writes."""
    return is_contraction(node) and OPS[node.op].pixelwise(graph, node)


def reads_window(graph: Graph, node: Node) -> bool:
    """Whether the node reads other pixels of its first input than the one that it writes."""
    return has_role(node, "window") or (is_contraction(node) and not OPS[node.op].pixelwise(graph, node))


def place_in_file(graph: Graph, node: Node) -> str:
    """Which operator of the file a node is, or is a part of: the last part has its number."""
    consumers, made = graph.consumers(), node
    while made.index < 0 and (readers := consumers.get(made.outputs[0])):
        made = readers[0]
    return f"operator {node.index}" if made is node else f"of operator {made.index}"
