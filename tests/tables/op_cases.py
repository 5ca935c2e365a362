"""The one table of op cases: what the engine is judged by, op by op, as small models with random inputs.

A case is a model of one op, or of the few ops that one kernel fuses. Where the GPU has no kernel yet, the case says
how UnsupportedError names it, so that the list of what is missing is here as well. To add an op, add a row.
"""

import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.helpers.engine import DEVICES
from tests.model_files import fused_models as fused
from tests.model_files.model_builder import CUSTOM_TRANSPOSE
from tests.model_files.sketch import OpCase, Shape, Size
from tests.tables.arithmetic_cases import reductions, value_by_value
from tests.tables.contraction_cases import contractions
from tests.tables.integer_cases import integer_cases
from tests.tables.lookup_cases import lookup_cases
from tests.tables.move_cases import MOVE_CASES
from tests.tables.ranking_cases import rankings

ODD = (1, 3, 5, 13)  # channel counts that leave lanes of a texel empty


def _text(options: dict[str, Any]) -> str:
    def short(value: Any) -> str:
        return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)

    return " ".join(f"{key}={short(value)}" for key, value in options.items())


def _convolutions() -> Iterator[OpCase]:
    def row(size: Size, source: int, target: int, kernel: Size, **options: Any) -> OpCase:
        what = f"{size[0]}x{size[1]}x{source}->{target} {kernel[0]}x{kernel[1]} {_text(options)}"
        what = what.rstrip()
        return OpCase("CONV_2D", what, lambda m: m.conv(m.image(*size, source), target, kernel, **options))

    for source, target in product(ODD, ODD):
        yield row((5, 7), source, target, (1, 1))
    for kernel, stride, padding in product(((2, 2), (3, 3), (5, 5)), ((1, 1), (2, 2), (3, 3)), ("SAME", "VALID")):
        yield row((9, 11), 3, 5, kernel, stride=stride, padding=padding)
    yield row((9, 11), 3, 5, (7, 7), stride=(2, 1))
    yield row((10, 9), 5, 5, (1, 3), stride=(1, 2), padding="VALID")
    yield row((10, 9), 13, 3, (3, 1))
    yield row((11, 13), 3, 5, (3, 3), dilation=(2, 2))
    yield row((11, 13), 3, 5, (3, 3), dilation=(3, 2), padding="VALID")
    yield row((1, 1), 5, 13, (3, 3))
    yield row((4, 5), 5, 3, (4, 5), padding="VALID")
    yield row((3, 5), 67, 70, (1, 1))
    yield row((3, 5), 5, 70, (3, 3), stride=(2, 2))
    yield row((1, 300), 3, 4, (1, 3))
    yield row((300, 1), 3, 4, (3, 1))
    yield row((40, 33), 4, 8, (1, 1))
    for activation in ("RELU", "RELU6", "RELU_N1_TO_1"):  # TensorFlow Lite passes over a fused TANH
        yield row((5, 7), 5, 13, (3, 3), activation=activation)
    for source, target, groups in ((6, 4, 2), (9, 15, 3), (5, 10, 5), (16, 8, 2)):
        yield row((5, 7), source, target, (3, 3), groups=groups)
    yield row((5, 7), 6, 9, (1, 1), groups=3, stride=(2, 1), activation="RELU")
    yield row((7, 5), 4, 4, (2, 3), groups=2, dilation=(2, 1), padding="VALID")
    yield row((24, 24), 1, 1, (23, 23), padding="VALID")
    yield OpCase(
        "CONV_2D",
        "window of 129x129",
        lambda m: m.conv(m.image(130, 130, 1), 1, (129, 129), padding="VALID"),
        refused="CONV_2D (operator 0, tensor3) does not run on the GPU: a window of 16641 pixels",
    )


def _depthwise() -> Iterator[OpCase]:
    def row(size: Size, channels: int, kernel: Size, multiplier: int = 1, **options: Any) -> OpCase:
        what = f"{size[0]}x{size[1]}x{channels} {kernel[0]}x{kernel[1]} {_text(options)}".rstrip()
        what += f" multiplier {multiplier}" * (multiplier > 1)
        return OpCase(
            "DEPTHWISE_CONV_2D",
            what,
            lambda m: m.depthwise(m.image(*size, channels), kernel, multiplier, **options),
        )

    for channels, stride, padding in product(ODD, ((1, 1), (2, 2), (3, 3)), ("SAME", "VALID")):
        yield row((9, 10), channels, (3, 3), stride=stride, padding=padding)
    for size in (1, 2, 5, 7):
        yield row((9, 8), 5, (size, size))
    yield row((9, 13), 13, (5, 3), stride=(2, 1))
    yield row((11, 12), 5, (3, 3), dilation=(2, 3))
    yield row((7, 7), 5, (7, 7), padding="VALID")
    yield row((6, 5), 3, (3, 3), multiplier=2)
    yield row((6, 5), 5, (3, 3), multiplier=3, stride=(2, 2))
    yield row((6, 5), 1, (3, 3), multiplier=13, activation="RELU6")
    yield row((40, 33), 4, (3, 3))


def _transposed() -> Iterator[OpCase]:
    def row(size: Size, source: int, target: int, kernel: Size, **options: Any) -> OpCase:
        op = CUSTOM_TRANSPOSE if options.get("custom") else "TRANSPOSE_CONV"
        shown = _text({key: value for key, value in options.items() if key != "custom"})
        what = f"{size[0]}x{size[1]}x{source}->{target} {kernel[0]}x{kernel[1]} {shown}"
        return OpCase(op, what, lambda m: m.transpose(m.image(*size, source), target, kernel, **options))

    for (kernel, stride), padding in product(
        (((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (2, 2)), ((3, 3), (1, 1)), ((3, 3), (3, 3)), ((5, 5), (3, 3))),
        ("SAME", "VALID"),
    ):
        yield row((4, 5), 5, 3, kernel, stride=stride, padding=padding)
    yield row((4, 5), 3, 13, (2, 3), stride=(2, 1), padding="SAME")
    yield row((4, 5), 13, 1, (2, 2), stride=(3, 3), padding="SAME")
    yield row((4, 5), 5, 5, (2, 2), stride=(2, 2), padding="SAME", activation="RELU")
    yield row((4, 5), 5, 40, (2, 2), stride=(2, 2), padding="SAME", custom=True)
    for kernel, stride in (((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (4, 4)), ((3, 3), (3, 3))):
        for target in (1, 5):
            yield row((4, 5), 5, target, kernel, stride=stride, padding="SAME", custom=True)


def _elementwise() -> Iterator[OpCase]:
    def unary(op: str, channels: int, low: float = -4.0, tolerance: float = 1e-5) -> OpCase:
        return OpCase(op, f"5x7x{channels}", lambda m: m.unary(op, m.image(5, 7, channels)), tolerance, low, 4.0)

    for op in ("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LOGISTIC", "TANH", "ABS", "NEG", "EXP", "SQUARE"):
        yield unary(op, 5)
    for op in ("LOG", "SQRT", "RSQRT"):
        yield unary(op, 13, 0.1)
    yield OpCase("LEAKY_RELU", "5x7x3 alpha=0.3", lambda m: m.unary("LEAKY_RELU", m.image(5, 7, 3), alpha=0.3))
    for op in ("LOGISTIC", "TANH", "HARD_SWISH", "RELU6"):
        yield OpCase(op, "far from zero", lambda m, op=op: m.unary(op, m.image(3, 3, 5)), low=-120.0, high=120.0)
    for op in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"):
        for channels in (1, 5):
            yield OpCase(
                op,
                f"5x7x{channels} two inputs",
                lambda m, op=op, c=channels: m.binary(op, m.image(5, 7, c), m.image(5, 7, c)),
                low=0.3,
            )
        yield from _broadcasts(op)
    for activation in ("RELU", "RELU6", "RELU_N1_TO_1"):
        yield OpCase(
            "ADD",
            f"5x7x3 activation={activation}",
            lambda m, a=activation: m.binary("ADD", m.image(5, 7, 3), m.image(5, 7, 3), activation=a),
        )
    yield OpCase("SUB", "one input twice", lambda m: m.binary("SUB", *[m.image(5, 7, 3)] * 2))
    yield OpCase(
        "DEQUANTIZE",
        "constant that is an output",
        lambda m: (m.half(m.rng.uniform(-2, 2, (1, 4, 5, 3))), m.unary("NEG", m.image(4, 5, 3))),
    )


def _broadcasts(op: str) -> Iterator[OpCase]:
    """A 4x6x5 map with every shape that repeats over it, as a constant and as an input, on either side."""
    shapes: tuple[tuple[str, Shape], ...] = (
        ("scalar", ()), ("one value", (1,)), ("vector", (5,)), ("1x1x1x5", (1, 1, 1, 5)), ("1x5", (1, 5)),
        ("mask", (1, 4, 6, 1)), ("constant map", (1, 4, 6, 5)),
    )  # fmt: skip
    for what, shape in shapes:
        yield OpCase(
            op,
            f"map and constant {what}",
            lambda m, s=shape: m.binary(op, m.image(4, 6, 5), m.constant(m.rng.uniform(0.3, 2, s))),
            low=0.3,
        )
    yield OpCase(
        op,
        "constant vector and map",
        lambda m: m.binary(op, m.constant(m.rng.uniform(0.3, 2, 5)), m.image(4, 6, 5)),
        low=0.3,
    )
    yield OpCase(op, "map and mask, inputs", lambda m: m.binary(op, m.image(4, 6, 5), m.image(4, 6, 1)), low=0.3)
    yield OpCase(op, "vector and map, inputs", lambda m: m.binary(op, m.image(1, 1, 5), m.image(4, 6, 5)), low=0.3)
    yield OpCase(op, "two vectors", lambda m: m.binary(op, m.image(1, 1, 5), m.input((1, 1, 1, 1))), low=0.3)
    if op != "ADD":
        return
    yield OpCase(
        op,
        "map and constant of rank 3",
        lambda m: m.binary(op, m.image(4, 6, 5), m.random(4, 6, 5)),
    )


def _repeated() -> Iterator[OpCase]:
    """Operands of size 1 in any dimensions, on either side and on both: computed ones, inputs and constants."""
    pairs: tuple[tuple[Shape, Shape], ...] = (
        ((1, 4, 6, 5), (1, 1, 6, 5)), ((1, 4, 6, 5), (1, 4, 1, 5)), ((1, 4, 6, 5), (1, 1, 6, 1)),
        ((1, 4, 6, 5), (4, 1, 1)), ((1, 13, 1, 5), (1, 1, 7, 5)), ((1, 13, 1, 1), (1, 1, 7, 13)), ((1, 4, 6, 1), (3,)),
        ((6, 5), (4, 6, 5)), ((13,), (13,)), ((), (3, 5)), ((3, 1), (5,)), ((1, 1, 6, 1), (1, 4, 1, 1)),
        ((3, 4, 6, 5), (3, 4, 6, 5)), ((3, 4, 6, 5), (5,)), ((3, 4, 6, 5), (3, 1, 1, 5)), ((3, 4, 6, 5), (1, 4, 6, 5)),
        ((3, 4, 6, 5), (3, 4, 1, 1)), ((3, 4, 6, 5), (1, 4, 1, 5)), ((3, 4, 6, 5), (3, 1, 6, 5)),
        ((3, 1, 6, 5), (1, 4, 1, 5)), ((3, 1, 1, 1), (1, 1, 7, 1)), ((2, 1, 1, 13), (1, 1, 1, 13)),
        ((2, 1, 6, 5), (1, 1, 6, 1)), ((2, 40, 33, 3), (1, 40, 1, 3)), ((3, 5, 1, 3), (3, 1, 1, 1)),
    )  # fmt: skip
    for first, second in pairs:
        what = f"{'x'.join(map(str, first))} and {'x'.join(map(str, second))}"
        yield OpCase("SUB", what, lambda m, a=first, b=second: m.binary("SUB", m.input(a), m.input(b)))
        yield OpCase("DIV", what, lambda m, a=first, b=second: m.binary("DIV", m.input(b), m.input(a)), low=0.3)
        yield OpCase("MUL", f"{what} constant", lambda m, a=first, b=second: m.binary("MUL", m.input(a), m.random(*b)))
    yield OpCase(
        "fused",
        "sum of a column and a row of convolutions",
        lambda m: m.conv(
            m.unary("RELU", m.binary("ADD", m.conv(m.image(5, 1, 3), 13), m.conv(m.image(1, 7, 3), 13))), 5
        ),
    )
    yield OpCase(
        "fused",
        "mean of each map of a batch, gate",
        lambda m: m.binary("MUL", x := m.conv(m.image(5, 6, 3, 2), 5), m.unary("LOGISTIC", m.mean(x))),
    )


def _batches() -> Iterator[OpCase]:
    """Every op that looks at more than one pixel, and whole blocks, on two or three maps at once."""

    def row(what: str, draw: Any, **options: Any) -> OpCase:
        return OpCase("batch", what, draw, **options)

    for batch, channels in product((2, 3), ODD):
        yield row(f"{batch} 1x1 conv of {channels}", lambda m, b=batch, c=channels: m.conv(m.image(5, 7, c, b), 13))
        yield row(
            f"{batch} depthwise of {channels}",
            lambda m, b=batch, c=channels: m.depthwise(m.image(9, 6, c, b), (3, 3), stride=(2, 1)),
        )
        yield row(f"{batch} means of {channels}", lambda m, b=batch, c=channels: m.mean(m.image(5, 7, c, b)))
    for batch, height in ((2, 4), (3, 5), (2, 1), (3, 16)):
        size = f"{batch}x{height}x7"
        yield row(f"{size} conv", lambda m, b=batch, h=height: m.conv(m.image(h, 7, 5, b), 13, (3, 3)))
        yield row(
            f"{size} conv, stride, dilation",
            lambda m, b=batch, h=height: m.conv(
                m.conv(m.image(h, 7, 3, b), 5, (3, 3), dilation=(2, 2)), 5, (3, 3), stride=(2, 2)
            ),
        )
        yield row(
            f"{size} transposed conv",
            lambda m, b=batch, h=height: m.transpose(m.image(h, 7, 5, b), 3, (3, 3), (2, 2), "SAME"),
        )
        yield row(
            f"{size} transposed conv to depth",
            lambda m, b=batch, h=height: m.unary(
                "LOGISTIC", m.transpose(m.image(h, 7, 5, b), 1, (2, 2), (2, 2), "SAME")
            ),
        )
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            yield row(f"{size} {op}", lambda m, b=batch, h=height, op=op: m.pool(op, m.image(h, 7, 5, b), (3, 2)))
        for op, options in product(
            ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), ({"half_pixel_centers": True}, {"align_corners": True})
        ):
            yield row(
                f"{size} {op} {_text(dict(options))}",
                lambda m, b=batch, h=height, op=op, o=options: m.resize(m.image(h, 7, 5, b), (2 * h, 14), op, **o),
            )
    yield row("whole maps pooled", lambda m: m.pool("AVERAGE_POOL_2D", m.image(6, 7, 5, 3), (6, 7), padding="VALID"))
    yield row("inverted bottleneck", lambda m: fused.bottleneck(m, m.image(9, 10, 5, 3), 13))
    yield row("squeeze and excite", lambda m: fused.gated(m, m.image(9, 10, 13, 2), 5))
    yield row(
        "residual of an upsampling", lambda m: m.mean(m.resize(m.image(4, 3, 5, 2), (8, 6), half_pixel_centers=True))
    )
    yield row("1x1 conv after upsampling", lambda m: m.conv(m.resize(m.image(4, 3, 5, 2), (8, 6)), 3))
    yield row("one channel", lambda m: m.conv(m.image(9, 10, 5, 3), 1, (3, 3)))
    yield row("mean, keep_dims=False", lambda m: m.mean(m.image(5, 7, 5, 3), keep_dims=False))
    yield row("mean, connected", lambda m: m.connected(m.mean(m.image(5, 7, 5, 3), keep_dims=False), 13))
    yield row("mean of rank 3", lambda m: m.mean(m.input((5, 7, 5)), (0, 1)))
    yield row("mean of rank 3, keep_dims=False", lambda m: m.mean(m.input((5, 7, 5)), (0, 1), keep_dims=False))


def _windows() -> Iterator[OpCase]:
    for op, kernel, stride, padding in product(
        ("AVERAGE_POOL_2D", "MAX_POOL_2D"), ((2, 2), (3, 3), (3, 2)), ((1, 1), (2, 2), (2, 3)), ("SAME", "VALID")
    ):
        options = {"stride": stride, "padding": padding}
        yield OpCase(
            op,
            f"9x8x5 {kernel[0]}x{kernel[1]} {_text(options)}",
            lambda m, op=op, k=kernel, o=options: m.pool(op, m.image(9, 8, 5), k, **o),
        )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield OpCase(
            op, "whole 6x7x13", lambda m, op=op: m.pool(op, m.image(6, 7, 13), (6, 7), stride=(6, 7), padding="VALID")
        )
        yield OpCase(op, "activation=RELU", lambda m, op=op: m.pool(op, m.image(5, 6, 3), (2, 2), activation="RELU"))
        yield OpCase(
            op,
            "window of 129x129",
            lambda m, op=op: m.pool(op, m.image(131, 131, 1), (129, 129)),
            refused=f"{op} (operator 0, tensor1) does not run on the GPU: a window of 16641 pixels",
        )
        yield OpCase(op, "window of 30x30", lambda m, op=op: m.pool(op, m.image(31, 31, 1), (30, 30)))


def _resizes() -> Iterator[OpCase]:
    modes: tuple[dict[str, bool], ...] = ({}, {"align_corners": True}, {"half_pixel_centers": True})
    sizes = (((6, 8), (12, 16)), ((5, 7), (13, 9)), ((12, 9), (5, 4)), ((1, 1), (4, 5)), ((3, 4), (1, 1)),
             ((4, 4), (4, 4)), ((5, 6), (10, 12)), ((7, 3), (7, 9)))  # fmt: skip
    for op, options, (source, target) in product(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), modes, sizes):
        identity = f"{op} " if source == target else ""
        yield OpCase(
            op,
            f"{source[0]}x{source[1]}->{target[0]}x{target[1]} {_text(dict(options))}".rstrip(),
            lambda m, op=op, o=options, s=source, t=target: m.resize(m.image(*s, 3), t, op, **o),
            tolerance=1e-5 if not identity else 1e-6,
        )
    yield OpCase(
        "RESIZE_NEAREST_NEIGHBOR",
        "2x3->82x123, whole numbers that float32 misses",
        lambda m: m.resize(m.image(2, 3, 1), (82, 123), "RESIZE_NEAREST_NEIGHBOR"),
    )
    yield OpCase(
        "RESIZE_NEAREST_NEIGHBOR",
        "5x7->13x9 align_corners half_pixel_centers",
        lambda m: m.resize(
            m.image(5, 7, 3), (13, 9), "RESIZE_NEAREST_NEIGHBOR", align_corners=True, half_pixel_centers=True
        ),
    )


def _scattered() -> Iterator[OpCase]:
    for block, channels in ((2, 1), (2, 3), (3, 5), (4, 13), (2, 20)):
        yield OpCase("DEPTH_TO_SPACE", f"{block} to {channels}", lambda m, b=block, c=channels: m.deep(b, c))


def _shapes_and_reductions() -> Iterator[OpCase]:
    for channels in (*ODD, 70):
        yield OpCase("MEAN", f"5x7x{channels}", lambda m, c=channels: m.mean(m.image(5, 7, c)))
    yield OpCase("MEAN", "5x7x5 keep_dims=False", lambda m: m.mean(m.image(5, 7, 5), keep_dims=False))
    yield OpCase("MEAN", "40x33x1100", lambda m: m.mean(m.image(3, 2, 1100)))
    for depth, outputs in ((1, 5), (13, 3), (300, 1100)):
        yield OpCase(
            "FULLY_CONNECTED", f"{depth}->{outputs}", lambda m, d=depth, o=outputs: m.connected(m.input((1, d)), o)
        )
    yield OpCase("FULLY_CONNECTED", "RELU", lambda m: m.connected(m.input((1, 5)), 3, activation="RELU"))
    yield OpCase("FULLY_CONNECTED", "of a 1x1 map", lambda m: m.connected(m.image(1, 1, 5), 13))
    yield OpCase(
        "FULLY_CONNECTED",
        "of many rows",
        lambda m: m.connected(m.image(2, 3, 5), 3),
    )
    yield OpCase("FULLY_CONNECTED", "5000->3", lambda m: m.connected(m.input((1, 5000)), 3), 1e-4)
    yield OpCase("FULLY_CONNECTED", "3->5000", lambda m: m.connected(m.input((1, 3)), 5000))


def _fused() -> Iterator[OpCase]:
    """Ops that share a kernel, or that one pass moves: neighbors, residuals, gates, and values needed twice."""

    def row(what: str, draw: Any, **options: Any) -> OpCase:
        return OpCase("fused", what, draw, **options)

    yield row("conv, residual add, relu", fused.residual)
    yield row("inverted bottleneck", lambda m: fused.bottleneck(m, m.image(9, 10, 5), 13))
    yield row("inverted bottleneck of 70 channels", lambda m: fused.bottleneck(m, m.image(5, 6, 5), 70))
    yield row("squeeze and excite", lambda m: fused.gated(m, m.image(9, 10, 13), 5))
    yield row("squeeze and excite, large", lambda m: fused.gated(m, m.image(64, 64, 5), 3))
    yield row("gated skip after upsampling", fused.decoder)
    yield row("hidden value is an output too", fused.two_outputs)
    yield row("hidden value of one channel is an output too", lambda m: fused.two_outputs(m, 1))
    yield row("padding lanes that overflow", fused.overflowing_lanes, low=-101.0, high=-99.0)
    yield row("padding lanes that overflow in squares", fused.squared_lanes, low=-101.0, high=-99.0)
    yield row("loaded vector beside a gate", fused.vector_beside_gate)
    yield row("sum of 17 inputs", fused.many_inputs)
    yield row("60 ops in a row", fused.long_chain)
    yield row("one-channel mask from a conv", fused.mask)
    yield row("transposed conv, sigmoid", fused.upsampled_mask)
    yield row("mean of a sum", lambda m: m.mean(m.binary("ADD", m.image(5, 6, 5), m.image(5, 6, 5))))
    yield row("mean of an upsampling", lambda m: m.mean(m.resize(m.image(4, 3, 5), (8, 6), half_pixel_centers=True)))
    yield row("mean of an uneven upsampling", lambda m: m.mean(m.resize(m.image(4, 3, 5), (9, 7))))
    yield row("mean of a mean", lambda m: m.mean(m.mean(m.image(5, 6, 5))))
    yield row("mean spread over its map again", fused.image_pooling)
    yield row("mean and window of constants", fused.constants)
    yield row("branch that nobody reads", fused.dead_branch)
    yield row("nothing but a gate's vectors", lambda m: fused.gate(m, m.input((1, 1, 1, 13)), 3))
    yield row(
        "pad, conv",
        lambda m: m.conv(m.pad(m.image(7, 8, 3), (0, 0), (1, 2), (0, 1), (0, 0)), 5, (3, 3), padding="VALID"),
    )
    yield row(
        "pad of channels, conv",
        lambda m: m.conv(m.pad(m.image(7, 8, 3), (0, 0), (0, 0), (0, 0), (1, 1)), 5),
    )


CASES: tuple[OpCase, ...] = (
    *_convolutions(),
    *_depthwise(),
    *_transposed(),
    *_elementwise(),
    *value_by_value(),
    *integer_cases(),
    *lookup_cases(),
    *_repeated(),
    *_batches(),
    *_windows(),
    *_resizes(),
    *_scattered(),
    *_shapes_and_reductions(),
    *reductions(),
    *contractions(),
    *rankings(),
    *_fused(),
    *MOVE_CASES,
)

UNFUSED = "unfused"
ALIKE = frozenset(
    case.name
    for case in (
        *value_by_value(),
        *integer_cases(),
        *lookup_cases(),
        *_batches(),
        *reductions(),
        *contractions(),
        *rankings(),
    )
)


def devices_for(case: OpCase) -> list[str]:
    """All of them for several ops together; rows of one op take two of them beside software, in turn, or one."""
    others = [name for name in (*DEVICES, UNFUSED) if name != "software"]
    first = zlib.crc32(case.name.encode()) % len(others)
    count = 1 if case.name in ALIKE else 4 if case.op in ("fused", "moved") else 2
    return ["software", *(others * 2)[first : first + count]]
