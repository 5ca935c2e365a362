"""DEPTH_TO_SPACE: each pixel's channels become a block of pixels, so all of the op is in its stores."""

from collections.abc import Sequence

from ..code.evaluate import Values
from ..code.expressions import Slice
from ..code.kernel_writer import KernelWriter
from ..code.thread_pixels import row_and_column
from ..code.vocabulary import Lane, Operand, StoreTo, Vector
from ..model.graph import Attributes, Graph, Node, Tensor
from ..model.layout import shape_of
from ..model.operators import EncodedOperator, Operator
from .facts import keeps_count
from .record import Emission, Example, FileForm, OpRecord, OptionsStruct


def read_depth_to_space(operator: Operator) -> Attributes:
    block = operator.options("DepthToSpaceOptions").BlockSize()
    batch, height, width, channels = operator.shape(0, rank=4)
    if block < 1 or channels % (block * block):
        operator.damaged(f"blocks of {block}x{block} of {channels} channels")
    operator.expect((batch, height * block, width * block, channels // (block * block)))
    return Attributes()


def write_depth_to_space(graph: Graph, node: Node) -> EncodedOperator:
    block = graph.tensors[node.outputs[0]].shape[2] // graph.tensors[node.inputs[0]].shape[2]
    return EncodedOperator(node.inputs, "DepthToSpaceOptions", {"BlockSize": block})


def _values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    batch, rows, columns, _ = values[0].shape
    block, channels = output.shape[2] // columns, output.shape[3]
    return values[0].reshape(batch, rows, columns, block, block, channels).swapaxes(2, 3).reshape(output.shape)


def _text_taps(graph: Graph, node: Node) -> int:
    return shape_of(graph.tensors[node.inputs[0]]).slices


def plain_lanes(block: int) -> int:
    """Floats of a plain output that a row of a block x block square stores at once (not 3: vec3 arrays have gaps)."""
    return block if block in (2, 4) else 1


def store(writer: KernelWriter, node: Node) -> None:
    """DEPTH_TO_SPACE: channel (i * block + j) * C + c of pixel (y, x) goes to c of (y*block + i, x*block + j)."""
    shape, domain = writer.shape(node.outputs[0]), writer.domain
    block = shape.width // domain.width
    if writer.is_plain(node.outputs[0]):
        _store_plain(writer, node, block)
        return
    for row in writer.rows:
        y, x = row_and_column(writer.tile, domain, row)
        for i in range(block):
            for j in range(block):
                first = (i * block + j) * shape.channels
                pixel = (y * block + i) * shape.width + x * block + j
                for k in range(shape.slices):
                    lanes = [
                        _lane(writer, node.inputs[0], row, first + c, c < shape.channels)
                        for c in range(4 * k, 4 * k + 4)
                    ]
                    target = writer.texel(node.outputs[0], Slice(k), pixel)
                    writer.add(StoreTo(writer.target(node.outputs[0]), target, Vector(tuple(lanes))))


def _store_plain(writer: KernelWriter, node: Node, block: int) -> None:
    """A block's rows, as vectors of floats where their length allows it: the map's width is a multiple of it."""
    together = plain_lanes(block)
    for row in writer.rows:
        y, x = row_and_column(writer.tile, writer.domain, row)
        for i in range(block):
            for j in range(0, block, together):
                lanes = [_lane(writer, node.inputs[0], row, i * block + j + k, True) for k in range(together)]
                value = lanes[0] if together == 1 else Vector(tuple(lanes))
                start = (y * block + i) * writer.domain.width + x
                target = start * (block // together) + j // together
                writer.add(StoreTo(writer.target(node.outputs[0]), target, value))


def _lane(writer: KernelWriter, tensor: int, row: int, channel: int, exists: bool) -> Operand:
    return Lane(writer.held(tensor, row, channel // 4), channel % 4) if exists else 0.0


RECORDS = (
    OpRecord(
        "DEPTH_TO_SPACE",
        "scatter",
        FileForm(read_depth_to_space, write_depth_to_space, struct=OptionsStruct("DepthToSpaceOptions", "BlockSize:i")),
        Example(shapes=((1, 8, 8, 16),), out=(1, 16, 16, 4)),
        emission=Emission(store=store),
        text_taps=_text_taps,
        evaluate=_values,
        agrees=keeps_count,
    ),
)
