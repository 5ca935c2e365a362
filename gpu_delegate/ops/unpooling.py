"""MediaPipe's custom ops MaxPoolingWithArgmax2D, MaxUnpooling2D and Resampler: file form.

Their options are TfLitePoolParams, int32 each: padding (1 SAME, 2 VALID), stride and window as (w, h), activation, and
the padding in pixels, which is computed anew: four numbers, in older files two, perhaps none. An index is the number
of a window's place, row by row; as a float it has 0.1 added, and is cut off where it is read. Passes say all three by
other ops, of which only the indices of maxima have code of their own.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import tflite

from ..code.expressions import Slice
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import ZEROS, Assign, ChooseLanes, Splat, Value, Vector, to_float
from ..code.whole_numbers import WholeRange
from ..model.graph import NO_PADDING, Attributes, Graph, Node, Padding, Pool2D, Size2, Unpool2D
from ..model.operators import ACTIVATION_CODES, ACTIVATIONS, EncodedOperator, Operator, attributes_of
from .facts import first_range
from .record import Emission, Example, FileForm, OpRecord
from .sliding import positive, slide
from .window import LOWEST, SlidingWindow, places_in_window, pool_taps, tap_number, window_values, written_pool_taps

_PARAMETERS = struct.Struct("<6i")
_IN_PIXELS = bytes(4 * 4)  # the padding, as zeros


@dataclass(frozen=True)
class PoolParameters:
    """What the options say."""

    scheme: int  # of the schema: SAME or VALID
    stride: Size2
    kernel: Size2
    activation: str


def read_parameters(operator: Operator) -> PoolParameters:
    """Raises ModelError, UnsupportedError."""
    if len(operator.custom_options) < _PARAMETERS.size:
        operator.damaged("its options are too short")
    padding, stride_w, stride_h, kernel_w, kernel_h, code = _PARAMETERS.unpack_from(operator.custom_options)
    if padding not in (1, 2):
        operator.damaged(f"padding {padding}")
    if code not in ACTIVATIONS:
        operator.unsupported(f"fused activation {code}")
    scheme = tflite.Padding.SAME if padding == 1 else tflite.Padding.VALID
    stride = positive(operator, "stride", stride_h, stride_w)
    return PoolParameters(scheme, stride, positive(operator, "window", kernel_h, kernel_w), ACTIVATIONS[code])


def read_pool_with_indices(operator: Operator) -> Attributes:
    batch, height, width, channels = operator.shape(0, rank=4)
    given = read_parameters(operator)
    size, padding = slide(operator, (height, width), given.kernel, given.stride, (1, 1), given.scheme)
    operator.expect(*[(batch, *size, channels)] * 2)
    return Pool2D(given.activation, given.kernel, given.stride, padding)


def read_unpool(operator: Operator) -> Attributes:
    """Of a window that lies on another one nobody knows whose value counts."""
    batch, height, width, channels = operator.shape(0, rank=4)
    if operator.shape(1) != operator.shape(0):
        operator.damaged(f"indices of shape {list(operator.shape(1))} for {list(operator.shape(0))}")
    given = read_parameters(operator)
    usual = height * given.stride[0], width * given.stride[1]
    out = operator.output_size(usual)
    size, padding = slide(operator, out, given.kernel, given.stride, (1, 1), given.scheme)
    if size != (height, width):
        operator.expect((batch, *usual, channels))
        operator.damaged(f"windows for {list(size)} values, not {[height, width]}")
    operator.expect((batch, *out, channels))
    if any(step < taps for step, taps in zip(given.stride, given.kernel, strict=True)):
        operator.unsupported(f"windows of {list(given.kernel)} that overlap in steps of {list(given.stride)}")
    if given.activation != "NONE":
        operator.unsupported(f"fused activation {given.activation}")
    return Unpool2D(given.kernel, given.stride, padding)


def read_resampler(operator: Operator) -> Attributes:
    batch, _, _, channels = operator.shape(0, rank=4)
    places, height, width, two = operator.shape(1, rank=4)
    if two != 2 or places != batch:
        operator.damaged(f"positions of shape {list(operator.shape(1))} for {batch} maps")
    operator.expect((batch, height, width, channels))
    return Attributes()


def _parameters(kernel: Size2, stride: Size2, padding: Padding, activation: str) -> bytes:
    scheme = 2 if padding == NO_PADDING else 1
    return _PARAMETERS.pack(scheme, *stride[::-1], *kernel[::-1], ACTIVATION_CODES[activation]) + _IN_PIXELS


def write_pool_with_indices(graph: Graph, node: Node) -> EncodedOperator:
    pool = attributes_of(node, Pool2D)
    options = _parameters(pool.kernel, pool.stride, pool.padding, pool.activation)
    return EncodedOperator(node.inputs, custom_options=options)


def write_unpool(graph: Graph, node: Node) -> EncodedOperator:
    unpool = attributes_of(node, Unpool2D)
    return EncodedOperator(
        node.inputs, custom_options=_parameters(unpool.kernel, unpool.stride, unpool.padding, "NONE")
    )


def write_resampler(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs)


def place_of_maximum(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of the numbers of the first places in each window that have its greatest value."""
    pool = attributes_of(node, Pool2D)
    places = writer.declare([ZEROS for _ in writer.rows], "m")
    values = writer.declare([LOWEST for _ in writer.rows], "m")
    window = SlidingWindow(pool.kernel, pool.stride, pool.padding)
    for row, tap, value in window_values(writer, node, window, at, LOWEST):
        place, most = places[row], values[row]
        number = tap_number(window, tap)
        found = Splat(float(number)) if isinstance(number, int) else Vector((to_float(number),) * 4)
        writer.add(Assign(place, ChooseLanes("less", most, value, found, place)))
        writer.add(Assign(most, ChooseLanes("less", most, value, value, most)))
    return places


def _places_of_integers(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """Floats have more than whole numbers."""
    return None if graph.tensors[node.outputs[-1]].dtype == "float32" else places_in_window(graph, node, inputs)


_POOLED = Pool2D(kernel=(2, 2), stride=(2, 2))
_UNPOOLED = Unpool2D((2, 2), (2, 2))
_HALF, _WHOLE = (1, 4, 4, 8), (1, 8, 8, 8)
_INDICES = ("float32", "int32")

RECORDS = (
    OpRecord(
        "MaxPoolingWithArgmax2D",
        "window",
        FileForm(read_pool_with_indices, write_pool_with_indices, outputs=(2, 2), out_dtypes=_INDICES, is_custom=True),
        Example(out=_HALF, others=(_HALF,), attributes=_POOLED),
        short_name="maxpool_argmax",
        ranges=(first_range, _places_of_integers),
    ),
    OpRecord(
        "MAX_POOL_PLACE",
        "window",
        example=Example(out=_HALF, attributes=_POOLED),
        emission=Emission(stream=place_of_maximum),
        taps=pool_taps,
        text_taps=written_pool_taps,
        ranges=(places_in_window,),
    ),
    OpRecord(
        "MaxUnpooling2D",
        "movement",
        FileForm(read_unpool, write_unpool, (0, 1), (2, 2), dtypes=_INDICES, first_dtypes=("float32",), is_custom=True),
        Example(shapes=(_HALF, _HALF), out=_WHOLE, attributes=_UNPOOLED),
        short_name="unpool",
    ),
    OpRecord(
        "Resampler",
        "window",
        FileForm(read_resampler, write_resampler, (0, 1), (2, 2), is_custom=True),
        Example(shapes=(_WHOLE, (1, 5, 3, 2)), out=(1, 5, 3, 8)),
        short_name="resample",
    ),
)
