"""Cases of convolutions, pools, resizing and matrix products."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

from ..model.graph import Activated, Conv2D, DepthwiseConv2D, Padding, Pool2D, Resize, Shape, Size2, TransposeConv2D
from ..ops.matrix_product import MatrixProduct
from .op_case import CHANNELS, LARGE, MAPS, OpCase, case_of, size_text

_ONE: Size2 = (1, 1)


@dataclass(frozen=True)
class _Window:
    """A window that slides; it pads as SAME unless `valid`."""

    kernel: Size2 = (3, 3)
    stride: Size2 = _ONE
    dilation: Size2 = _ONE
    valid: bool = False

    def slid(self, size: Sequence[int]) -> tuple[Size2, Padding]:
        """(h, w) of the output, and the padding."""
        height, top, bottom = self._along(size, 0)
        width, left, right = self._along(size, 1)
        return (height, width), Padding(top, bottom, left, right)

    def _along(self, size: Sequence[int], axis: int) -> tuple[int, int, int]:
        reach, step = (self.kernel[axis] - 1) * self.dilation[axis] + 1, self.stride[axis]
        if self.valid:
            return (size[axis] - reach) // step + 1, 0, 0
        out = -(-size[axis] // step)
        total = max(0, (out - 1) * step + reach - size[axis])
        return out, total // 2, total - total // 2

    @property
    def text(self) -> str:
        """3x3 stride 2x1 VALID."""
        words = [size_text(self.kernel)]
        words += [f"stride {size_text(self.stride)}"] * (self.stride != _ONE)
        words += [f"dilation {size_text(self.dilation)}"] * (self.dilation != _ONE)
        return " ".join([*words, *["VALID"] * self.valid])


_WINDOWS = (
    _Window(_ONE), _Window(_ONE, (2, 2)), _Window((2, 3)), _Window((5, 5)), _Window((3, 3), (2, 1)),
    _Window((3, 3), (3, 3), valid=True), _Window((3, 3), dilation=(2, 2)), _Window((2, 3), dilation=(2, 1), valid=True),
    _Window((1, 5), (1, 2)), _Window((7, 7), (2, 2)), _Window((9, 8), (2, 1)), _Window((1, 70)),
    _Window((9, 9), dilation=(2, 2)),
)  # fmt: skip
_SIZE: Shape = (3, 11, 10, 5)  # of their maps
_ODD = (1, 3, 5, 13)  # channels
_SCHEMES = (False, True)  # SAME, VALID
_TALL = ((2, 4), (3, 5), (2, 1), (3, 16))  # maps and rows: threads have several rows, of one map


def _convolution(shape: Shape, outputs: int, window: _Window, groups: int = 1, activation: str = "NONE") -> OpCase:
    size, padding = window.slid(shape[1:3])
    what = f"{size_text(shape)}->{outputs} {window.text}"
    what += f" groups {groups}" * (groups > 1) + f" {activation}" * (activation != "NONE")
    attributes = Conv2D(activation, window.stride, window.dilation, padding)
    constants = [(outputs, *window.kernel, shape[3] // groups), (outputs,)]
    return case_of("CONV_2D", what, [shape], (shape[0], *size, outputs), attributes, constants)


def _convolutions(op: str) -> Iterator[OpCase]:
    for shape, outputs in zip(MAPS, (5, 13, 4, 3, 1) * 2, strict=True):
        yield _convolution(shape, outputs, _Window())
    for channels, outputs in product(CHANNELS, (1, 4, 13)):
        yield _convolution((1, 3, 5, channels), outputs, _Window(_ONE))
    yield from (_convolution(_SIZE, 3, window) for window in _WINDOWS)
    yield from (_convolution(_SIZE, 13, _Window(), activation=name) for name in ("RELU", "RELU6", "RELU_N1_TO_1"))
    for channels, outputs, groups in ((6, 4, 2), (9, 15, 3), (5, 10, 5), (16, 8, 2)):
        yield _convolution((1, 5, 7, channels), outputs, _Window(), groups)
    yield from _further_convolutions()
    yield from (_convolution(shape, 37, _Window((16, 16), (3, 2))) for shape in ((1, 33, 31, 7), LARGE))
    yield _convolution(LARGE, 37, _Window())
    yield _convolution(LARGE, 37, _Window(_ONE))
    yield from _grouped()
    sizes = ((1, 13, _ONE), (3, 5, _ONE), (5, 4, (3, 2)), (13, 1, (3, 2)))
    for channels, outputs, kernel in sizes:
        yield _computed(_convolution((1, 7, 8, channels), outputs, _Window(kernel)), bias=kernel == _ONE)
    yield _computed(_convolution((1, 7, 8, 3), 6, _Window((2, 2), dilation=(2, 1)), 1, "RELU6"), bias=False)
    yield _computed(_convolution((1, 5, 6, 6), 9, _Window((2, 1)), 3, "RELU"))
    yield _computed(_convolution((3, 7, 8, 13), 5, _Window(_ONE)))
    yield _computed(_convolution((3, 7, 8, 3), 13, _Window((2, 2), (2, 1), valid=True), 1, "RELU"), bias=False)


def _computed(case: OpCase, bias: bool = True) -> OpCase:
    """The case with weights that are inputs, and so is the bias where that is asked for."""
    weights, *biases = case.example.constants
    shapes = (*case.example.shapes, weights, *(biases if bias else []))
    example = replace(case.example, shapes=shapes, constants=() if bias else tuple(biases))
    return replace(case, what=f"{case.what}, computed weights", example=example)


def _grouped() -> Iterator[OpCase]:
    """Groups of one slice each and of several, as many for outputs as for inputs or not."""
    for channels, outputs, groups in ((8, 8, 2), (24, 8, 2), (16, 48, 2), (24, 36, 3), (64, 64, 16)):
        yield _convolution((1, 5, 7, channels), outputs, _Window((3, 2)), groups, "RELU6")
    yield _convolution((1, 5, 7, 16), 24, _Window((3, 2), (2, 1)), 2, "RELU6")
    yield _convolution((3, 5, 7, 24), 40, _Window((3, 2)), 2, "RELU6")


def _further_convolutions() -> Iterator[OpCase]:
    """Channels that leave lanes empty, steps and schemes of each window, sizes of which one side is long or one."""
    for batch, channels in product((2, 3), _ODD):
        yield _convolution((batch, 5, 7, channels), 13, _Window(_ONE))
    for channels, outputs in product(_ODD, _ODD):
        yield _convolution((1, 5, 7, channels), outputs, _Window(_ONE))
    steps, schemes = ((1, 1), (2, 2), (3, 3)), _SCHEMES
    for kernel, stride, valid in product(((2, 2), (3, 3), (5, 5)), steps, schemes):
        yield _convolution((1, 9, 11, 3), 5, _Window(kernel, stride, valid=valid))
    rows: tuple[tuple[Shape, int, _Window], ...] = (
        ((1, 9, 11, 3), 5, _Window((7, 7), (2, 1))), ((1, 10, 9, 5), 5, _Window((1, 3), (1, 2), valid=True)),
        ((1, 10, 9, 13), 3, _Window((3, 1))), ((1, 11, 13, 3), 5, _Window(dilation=(2, 2))),
        ((1, 11, 13, 3), 5, _Window(dilation=(3, 2), valid=True)), ((1, 1, 1, 5), 13, _Window()),
        ((1, 4, 5, 5), 3, _Window((4, 5), valid=True)), ((1, 3, 5, 67), 70, _Window(_ONE)),
        ((1, 3, 5, 5), 70, _Window(stride=(2, 2))), ((1, 1, 300, 3), 4, _Window((1, 3))),
        ((1, 300, 1, 3), 4, _Window((3, 1))), ((1, 40, 33, 4), 8, _Window(_ONE)), ((3, 9, 10, 5), 1, _Window()),
        ((1, 24, 24, 1), 1, _Window((23, 23), valid=True)), *(((b, h, 7, 5), 13, _Window()) for b, h in _TALL),
    )  # fmt: skip
    yield from (_convolution(*row) for row in rows)
    yield from (_convolution((1, 5, 7, 5), 13, _Window(), 1, name) for name in ("RELU", "RELU6", "RELU_N1_TO_1"))
    yield _convolution((1, 5, 7, 6), 9, _Window(_ONE, (2, 1)), 3, "RELU")
    yield _convolution((1, 7, 5, 4), 4, _Window((2, 3), dilation=(2, 1), valid=True), 2)


def _depthwise(shape: Shape, window: _Window, multiplier: int = 1, activation: str = "NONE") -> OpCase:
    batch, height, width, channels = shape
    size, padding = window.slid((height, width))
    what = f"{size_text(shape)} {window.text}" + f" multiplier {multiplier}" * (multiplier > 1)
    what += f" {activation}" * (activation != "NONE")
    attributes = DepthwiseConv2D(activation, window.stride, window.dilation, padding, multiplier)
    outputs = channels * multiplier
    constants = [(1, *window.kernel, outputs), (outputs,)]
    return case_of("DEPTHWISE_CONV_2D", what, [shape], (batch, *size, outputs), attributes, constants)


def _depthwises(op: str) -> Iterator[OpCase]:
    yield from (_depthwise(shape, _Window()) for shape in MAPS)
    yield from (_depthwise(_SIZE, window) for window in _WINDOWS if min(window.dilation) == max(window.dilation))
    yield from (_depthwise((1, 5, 7, c), _Window(), multiplier) for c, multiplier in ((1, 13), (3, 2), (5, 3)))
    yield _depthwise(_SIZE, _Window(), activation="RELU6")
    for channels, stride, valid in product(_ODD, ((1, 1), (2, 2), (3, 3)), _SCHEMES):
        yield _depthwise((1, 9, 10, channels), _Window(stride=stride, valid=valid))
    for batch, channels in product((2, 3), _ODD):
        yield _depthwise((batch, 9, 6, channels), _Window(stride=(2, 1)))
    yield from (_depthwise((1, 9, 8, 5), _Window((size, size))) for size in (1, 2, 5, 7))
    yield _depthwise((1, 9, 13, 13), _Window((5, 3), (2, 1)))
    yield _depthwise((1, 11, 12, 5), _Window(dilation=(2, 3)))
    yield _depthwise((1, 7, 7, 5), _Window((7, 7), valid=True))
    yield _depthwise((1, 6, 5, 3), _Window(), 2)
    yield _depthwise((1, 6, 5, 5), _Window(stride=(2, 2)), 3)
    yield _depthwise((1, 6, 5, 1), _Window(), 13, "RELU6")
    yield _depthwise((1, 40, 33, 4), _Window())
    yield from (_computed(_depthwise((1, 7, 6, channels), _Window((3, 2)))) for channels in (1, 3, 13))
    yield _computed(_depthwise((1, 7, 6, 3), _Window((3, 2), (2, 2)), 2))
    yield _computed(_depthwise((3, 7, 6, 4), _Window((3, 2))))
    yield _computed(_depthwise((3, 7, 6, 5), _Window((3, 2)), activation="RELU"))
    yield _depthwise(LARGE, _Window())


def _transpose(op: str, shape: Shape, outputs: int, window: _Window, activation: str = "NONE") -> OpCase:
    """Of a window that slides over the output."""
    (height, width), stride = shape[1:3], window.stride
    if window.valid:
        reach = window.kernel
        out = (shape[0], (height - 1) * stride[0] + reach[0], (width - 1) * stride[1] + reach[1], outputs)
    else:
        out = (shape[0], height * stride[0], width * stride[1], outputs)
    size, padding = window.slid(out[1:3])
    assert size == shape[1:3], "the windows of the output are the input"
    what = f"{size_text(shape)}->{outputs} {window.text}" + f" {activation}" * (activation != "NONE")
    constants = [(outputs, *window.kernel, shape[3]), (outputs,)]
    return case_of(op, what, [shape], out, TransposeConv2D(activation, stride, padding), constants)


def _transposed(op: str) -> Iterator[OpCase]:
    rows: list[tuple[Shape, int, Size2, Size2]] = [
        *((shape, outputs, (3, 3), (2, 2)) for shape, outputs in zip(MAPS, (5, 13, 4, 3, 1) * 2, strict=True)),
        ((3, 4, 5, 5), 3, (2, 2), (2, 2)), ((3, 4, 5, 5), 3, (4, 4), (2, 2)), ((3, 4, 5, 5), 5, (2, 3), (2, 1)),
        ((1, 4, 5, 13), 1, (2, 2), (3, 3)), ((1, 4, 5, 3), 13, (3, 3), (1, 1)), ((1, 31, 33, 37), 21, (2, 2), (2, 2)),
        ((3, 4, 5, 5), 3, (9, 9), (2, 2)), ((1, 4, 5, 13), 21, (16, 16), (8, 8)),
    ]  # fmt: skip
    if op == "TRANSPOSE_CONV":
        kernels: tuple[tuple[Size2, Size2], ...] = (
            ((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (2, 2)), ((3, 3), (1, 1)), ((3, 3), (3, 3)), ((5, 5), (3, 3)),
        )  # fmt: skip
        for (kernel, stride), valid in product(kernels, _SCHEMES):
            yield _transpose(op, (1, 4, 5, 5), 3, _Window(kernel, stride, valid=valid))
        yield _transpose(op, (1, 4, 5, 5), 5, _Window((2, 2), (2, 2)), "RELU")
        rows += [((1, 4, 5, 3), 13, (2, 3), (2, 1)), *(((b, h, 7, 5), 3, (3, 3), (2, 2)) for b, h in _TALL)]
    else:
        squares = ((2, 2), (3, 2), (4, 4), (3, 3))
        sizes = [(outputs, (taps, taps), (step, step)) for outputs in (1, 5) for taps, step in squares]
        rows += [((1, 4, 5, 5), *size) for size in [*sizes, (40, (2, 2), (2, 2))]]
    yield from (_transpose(op, shape, outputs, _Window(kernel, stride)) for shape, outputs, kernel, stride in rows)
    if op == "TRANSPOSE_CONV":
        yield _computed(_transpose(op, (1, 4, 5, 1), 13, _Window((3, 3), (2, 2))))
        yield _computed(_transpose(op, (1, 4, 5, 3), 5, _Window((2, 2), (2, 2), valid=True)))
        yield _computed(_transpose(op, (1, 4, 5, 5), 4, _Window((3, 2))))


def _pools(op: str) -> Iterator[OpCase]:
    windows = [window for window in _WINDOWS if window.dilation == _ONE and window.kernel != _ONE]
    rows = [*((shape, _Window()) for shape in MAPS), *((_SIZE, window) for window in windows)]
    rows += [((3, 5, 7, 13), _Window((5, 7), (5, 7), valid=True)), (LARGE, _Window())]
    steps = product(((2, 2), (3, 3), (3, 2)), ((1, 1), (2, 2), (2, 3)), _SCHEMES)
    rows += [((1, 9, 8, 5), _Window(kernel, stride, valid=valid)) for kernel, stride, valid in steps]
    rows += [((batch, height, 7, 5), _Window((3, 2))) for batch, height in _TALL]
    rows += [((3, 6, 7, 5), _Window((6, 7), valid=True)), ((1, 6, 7, 13), _Window((6, 7), (6, 7), valid=True))]
    rows += [((1, 31, 31, 1), _Window((30, 30)))]
    active = [((1, 5, 6, 3), _Window((2, 2))), (_SIZE, _Window())]
    rows += [((1, 9, 8, 5), _Window((3, 2), (2, 1)))]
    bounded = ("RELU6", ((1, 9, 8, 5), _Window((3, 2), (2, 1), valid=True)))
    for activation, (shape, window) in [*product(("NONE",), rows), *product(("RELU",), active), bounded]:
        size, padding = window.slid(shape[1:3])
        what = f"{size_text(shape)} {window.text}" + f" {activation}" * (activation != "NONE")
        attributes = Pool2D(activation, window.kernel, window.stride, padding)
        yield case_of(op, what, [shape], (shape[0], *size, shape[3]), attributes)


def _connected(op: str) -> Iterator[OpCase]:
    for depth, outputs, rows in product(CHANNELS, (1, 4, 13), (1, 3)):
        yield case_of(
            op, f"{rows}x{depth}->{outputs}", [(rows, depth)], (rows, outputs), Activated(),
            [(outputs, depth), (outputs,)],
        )  # fmt: skip
    for shape in ((3, 1, 1, 5), (1, 5, 7, 13), (3, 5, 7, 13), (3, 7, 5)):
        out = (*shape[:-1], 4)
        yield case_of(op, f"{size_text(shape)}->4", [shape], out, Activated("RELU"), [(4, shape[-1]), (4,)])
    for depth, outputs in ((1, 5), (13, 3), (300, 1100), (3, 5000), (5000, 3)):
        constants = [(outputs, depth), (outputs,)]
        limit = 1e-4 if depth == 5000 else 1e-5
        what = f"1x{depth}->{outputs}"
        yield case_of(op, what, [(1, depth)], (1, outputs), Activated(), constants, tolerance=limit)
    yield case_of(op, "1x5->3 RELU", [(1, 5)], (1, 3), Activated("RELU"), [(3, 5), (3,)])
    ranks: tuple[Shape, ...] = ((3,), (2, 3), (3, 2, 4), (2, 1, 3, 2))
    for before in ranks:
        constants = [(13, 5), (13,)]
        yield case_of(
            op, f"{size_text(before)}x5->13 RELU", [(*before, 5)], (*before, 13), Activated("RELU"), constants
        )
    computed: tuple[tuple[list[Shape], Shape, str, list[Shape]], ...] = (
        ([(3, 2, 6), (5, 6), (5,)], (6, 5), "RELU", []), ([(3, 2, 6), (5, 6), (5,)], (3, 2, 5), "RELU6", []),
        ([(3, 2, 6), (4, 12)], (3, 4), "NONE", []), ([(3, 2, 6), (4, 12)], (3, 4), "RELU", [(4,)]),
        ([(1, 6), (5, 6), (5,)], (1, 5), "NONE", []),
    )  # fmt: skip
    for given, out, activation, constants in computed:
        what = f"{size_text(given[0])}->{size_text(out)} {activation}, computed weights"
        yield case_of(op, what, given, out, Activated(activation), constants)
    yield case_of(op, "of a 1x1 map", [(1, 1, 1, 5)], (1, 13), Activated(), [(13, 5), (13,)])
    yield case_of(op, "of many rows", [(1, 2, 3, 5)], (6, 3), Activated(), [(3, 5), (3,)])
    yield case_of(op, "61x1001->301", [(61, 1001)], (61, 301), Activated(), [(301, 1001), (301,)], tolerance=1e-4)


_SIDES = ((1, 1), (1, 5), (3, 4), (4, 13), (5, 3), (13, 1), (13, 13))  # terms and columns of matrices


def _products(op: str) -> Iterator[OpCase]:
    plain = MatrixProduct()
    rows: list[tuple[Shape, Shape, Shape, MatrixProduct]] = [
        *(((3, 5, depth), (3, depth, 7), (3, 5, 7), plain) for depth in CHANNELS),
        *(((1, 5, 13), (1, 13, outputs), (1, 5, outputs), plain) for outputs in CHANNELS),
        ((5, 13), (13, 7), (5, 7), plain), ((3, 5, 13), (1, 13, 7), (3, 5, 7), plain),
        ((1, 5, 13), (3, 13, 7), (3, 5, 7), plain), ((2, 3, 5, 7), (2, 3, 7, 4), (2, 3, 5, 4), plain),
        ((3, 13, 5), (3, 13, 7), (3, 5, 7), MatrixProduct(adj_x=True)),
        ((3, 5, 13), (3, 7, 13), (3, 5, 7), MatrixProduct(adj_y=True)),
        *(((3, 7, a), (3, a, b), (3, 7, b), plain) for a, b in _SIDES),
        *(((3, 7, a), (3, b, a), (3, 7, b), MatrixProduct(adj_y=True)) for a, b in _SIDES),
        ((1, 61, 67), (1, 67, 37), (1, 61, 37), plain), ((1, 2, 48, 33), (33, 70), (1, 2, 48, 70), plain),
    ]  # fmt: skip
    for first, second, out, attributes in rows:
        flags = " ".join(name for name, value in vars(attributes).items() if value)
        what = f"{size_text(first)} by {size_text(second)} {flags}".rstrip()
        yield case_of(op, what, [first, second], out, attributes)
        if attributes == plain:
            yield case_of(op, f"{what}, constant", [first], out, attributes, [second])


def _cells(op: str) -> Iterator[OpCase]:
    """LSTM's basic cell: input, last activation, weights and biases of its four gates, last state."""
    for (inputs, depth), batch in product(((1, 5), (3, 4), (5, 13), (13, 8)), (1, 3)):
        joined, state = inputs + depth, (batch, depth)
        shapes = [(batch, inputs), state, (4 * depth, joined), (4 * depth,), state]
        others = [state, (batch, joined), (batch, 4 * depth)]
        yield case_of(op, f"{batch}x{inputs} to {depth}", shapes, state, others=others)


def _resizes(op: str) -> Iterator[OpCase]:
    modes = [Resize(), Resize(align_corners=True), Resize(half_pixel_centers=True)]
    sizes: list[tuple[Size2, Size2]] = [
        ((6, 8), (12, 16)), ((5, 7), (13, 9)), ((12, 9), (5, 4)), ((1, 1), (4, 5)), ((3, 4), (1, 1)), ((7, 3), (7, 9)),
        ((4, 4), (4, 4)), ((5, 6), (10, 12)),
    ]  # fmt: skip
    rows: list[tuple[Shape, Size2, Resize]] = [
        ((1, *source, 3), target, mode) for (source, target), mode in product(sizes, modes)
    ]
    rows += [(shape, (9, 11), modes[2]) for shape in MAPS]
    rows += [((b, h, 7, 5), (2 * h, 14), mode) for (b, h), mode in product(_TALL, modes[1:])]
    rows += [((1, 31, 33, 37), (61, 67), modes[2])]
    if op == "RESIZE_NEAREST_NEIGHBOR":
        rows += [((1, 2, 3, 1), (82, 123), modes[0])]  # whose whole numbers float32 misses
        rows += [((1, 5, 7, 3), (13, 9), Resize(align_corners=True, half_pixel_centers=True))]
    for shape, target, mode in rows:
        flags = " ".join(name for name, value in vars(mode).items() if value)
        what = f"{size_text(shape)}->{size_text(target)} {flags}".rstrip()
        yield case_of(op, what, [shape], (shape[0], *target, shape[3]), mode)


WINDOW_CASES: Mapping[str, Callable[[str], Iterator[OpCase]]] = MappingProxyType(
    {
        "CONV_2D": _convolutions,
        "DEPTHWISE_CONV_2D": _depthwises,
        "TRANSPOSE_CONV": _transposed,
        "Convolution2DTransposeBias": _transposed,
        "AVERAGE_POOL_2D": _pools,
        "MAX_POOL_2D": _pools,
        "L2_POOL_2D": _pools,
        "BATCH_MATMUL": _products,
        "LSTM": _cells,
        "FULLY_CONNECTED": _connected,
        "RESIZE_BILINEAR": _resizes,
        "RESIZE_NEAREST_NEIGHBOR": _resizes,
    }
)
