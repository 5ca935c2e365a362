"""SPACE_TO_DEPTH, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: file form, and where their values come from."""

import numpy as np

from ..code.indices import Index
from ..model.graph import Attributes, BatchToSpace, Graph, Node, Padding, Shape, Size2, SpaceToBatch
from ..model.operators import MAX_STRIDE, EncodedOperator, Operator, attributes_of, integers
from .facts import keeps_count
from .movement import MOVE, of_any_type, shape_in, shape_out, within
from .record import Coordinates, Example, FileForm, Movement, OpRecord, OptionsStruct, Origin, always, zero


def read_space_to_depth(operator: Operator) -> Attributes:
    block = operator.options("SpaceToDepthOptions").BlockSize()
    batch, height, width, channels = operator.shape(0, rank=4)
    if block < 1 or height % block or width % block:
        operator.damaged(f"blocks of {block}x{block} of a map of {height}x{width}")
    operator.expect((batch, height // block, width // block, channels * block * block))
    return Attributes()


def write_space_to_depth(graph: Graph, node: Node) -> EncodedOperator:
    block = shape_in(graph, node)[2] // shape_out(graph, node)[2]
    return EncodedOperator(node.inputs, "SpaceToDepthOptions", {"BlockSize": block})


def _blocks(operator: Operator, what: str) -> tuple[tuple[int, int, int, int], Size2, Padding]:
    """The input's shape, (h, w) of a block, and what is added or cut off around; of three dimensions in one row."""
    shape = operator.shape(0)
    if len(shape) not in (3, 4):
        operator.unsupported(f"{len(shape)} dimensions")
    block, flat = operator.integers(1), operator.integers(2)
    if len(block) != len(shape) - 2 or len(flat) != 2 * len(block):
        operator.damaged(f"blocks {list(block)} with {what} {list(flat)}")
    if len(shape) == 3:
        shape, block, flat = in_a_row(shape), (1, *block), (0, 0, *flat)
    if any(not 1 <= size <= MAX_STRIDE for size in block) or any(not 0 <= size <= MAX_STRIDE for size in flat):
        operator.damaged(f"blocks {list(block)} with {what} {list(flat)}")
    batch, height, width, channels = shape
    return (batch, height, width, channels), (block[0], block[1]), Padding(*flat)


def in_a_row(shape: Shape) -> Shape:
    """[batches, w, c] as one row of a map."""
    return (shape[0], 1, *shape[1:])


def _expect(operator: Operator, shape: Shape) -> None:
    operator.expect(shape if len(operator.shape(0)) == 4 else (shape[0], *shape[2:]))


def read_space_to_batch(operator: Operator) -> Attributes:
    (batch, height, width, channels), block, padding = _blocks(operator, "paddings")
    tall, wide = height + padding.top + padding.bottom, width + padding.left + padding.right
    if tall % block[0] or wide % block[1]:
        operator.damaged(f"blocks of {block[0]}x{block[1]} of a map of {tall}x{wide}")
    _expect(operator, (batch * block[0] * block[1], tall // block[0], wide // block[1], channels))
    return SpaceToBatch(block, padding)


def read_batch_to_space(operator: Operator) -> Attributes:
    (batch, height, width, channels), block, crops = _blocks(operator, "crops")
    if batch % (block[0] * block[1]):
        operator.damaged(f"blocks of {block[0]}x{block[1]} of {batch} batches")
    tall = height * block[0] - crops.top - crops.bottom
    wide = width * block[1] - crops.left - crops.right
    if tall < 1 or wide < 1:
        operator.damaged(f"crops {crops} leave nothing")
    _expect(operator, (batch // (block[0] * block[1]), tall, wide, channels))
    return BatchToSpace(block, crops)


def write_blocks(graph: Graph, node: Node) -> EncodedOperator:
    found = node.attributes
    assert isinstance(found, SpaceToBatch | BatchToSpace)
    around = found.padding
    amounts = np.array([[around.top, around.bottom], [around.left, around.right]], np.int32)
    rank = len(graph.tensors[node.inputs[0]].shape) - 2
    return EncodedOperator((*node.inputs, integers(*found.block[-rank:]), amounts[-rank:]))


def _to_depth(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    """Channel (i * block + j) * C + c of pixel (y, x) is channel c of (y * block + i, x * block + j)."""
    channels, block = shape_in(graph, node)[3], shape_in(graph, node)[2] // shape_out(graph, node)[2]
    b, y, x, c = at
    place = c.over(channels)
    row, column = y.times(block).plus(place.over(block)), x.times(block).plus(place.modulo(block))
    return (Origin(0, (b, row, column, c.modulo(channels))),)


def _from_depth(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    """Channel c of pixel (y * block + i, x * block + j) is channel (i * block + j) * C + c of (y, x)."""
    channels, block = shape_out(graph, node)[3], shape_out(graph, node)[2] // shape_in(graph, node)[2]
    b, y, x, c = at
    place = y.modulo(block).times(block).plus(x.modulo(block))
    return (Origin(0, (b, y.over(block), x.over(block), place.times(channels).plus(c))),)


def _gives_slices(graph: Graph, node: Node) -> bool:
    return shape_out(graph, node)[3] % 4 == 0


def _keeps_slices(graph: Graph, node: Node) -> bool:
    return shape_in(graph, node)[3] % 4 == 0


def _to_batch(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    """Batch (i * block_w + j) * B + b of pixel (y, x) is that of (y * block_h + i, x * block_w + j) of the padded b."""
    found, shape = attributes_of(node, SpaceToBatch), shape_in(graph, node)
    (block_h, block_w), padding = found.block, found.padding
    b, y, x, c = at
    place = b.over(shape[0])
    row = y.times(block_h).plus(place.over(block_w)).plus(-padding.top)
    column = x.times(block_w).plus(place.modulo(block_w)).plus(-padding.left)
    return within((b.modulo(shape[0]), row, column, c), shape)


def _to_space(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    found, batches = attributes_of(node, BatchToSpace), shape_out(graph, node)[0]
    (block_h, block_w), crops = found.block, found.padding
    b, y, x, c = at
    row, column = y.plus(crops.top), x.plus(crops.left)
    place = row.modulo(block_h).times(block_w).plus(column.modulo(block_w))
    batch: Index = place.times(batches).plus(b)
    return (Origin(0, (batch, row.over(block_h), column.over(block_w), c)),)


RECORDS = (
    # DEPTH_TO_SPACE that reads where its values come from, where a kernel cannot hold all that comes from one pixel
    OpRecord(
        "READ_DEPTH_TO_SPACE",
        "movement",
        example=Example(shapes=((1, 8, 8, 20),), out=(1, 16, 16, 5)),
        short_name="depth_to_space",
        emission=MOVE,
        movement=Movement(_from_depth, _gives_slices),
        agrees=keeps_count,
    ),
    OpRecord(
        "SPACE_TO_DEPTH",
        "movement",
        of_any_type(
            FileForm(
                read_space_to_depth, write_space_to_depth, struct=OptionsStruct("SpaceToDepthOptions", "BlockSize:i")
            )
        ),
        Example(shapes=((1, 8, 8, 5),), out=(1, 4, 4, 20)),
        emission=MOVE,
        movement=Movement(_to_depth, _keeps_slices),
        agrees=keeps_count,
    ),
    OpRecord(
        "SPACE_TO_BATCH_ND",
        "movement",
        of_any_type(FileForm(read_space_to_batch, write_blocks, count=(3, 3))),
        Example(shapes=((1, 8, 8, 5),), out=(4, 5, 4, 5), attributes=SpaceToBatch((2, 2), Padding(1, 1, 0, 0))),
        emission=MOVE,
        movement=Movement(_to_batch, always, fill=zero),
    ),
    OpRecord(
        "BATCH_TO_SPACE_ND",
        "movement",
        of_any_type(FileForm(read_batch_to_space, write_blocks, count=(3, 3))),
        Example(shapes=((4, 4, 4, 5),), out=(1, 7, 8, 5), attributes=BatchToSpace((2, 2), Padding(1, 0, 0, 0))),
        emission=MOVE,
        movement=Movement(_to_space, always),
    ),
)
