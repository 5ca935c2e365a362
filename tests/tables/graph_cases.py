"""Small models of several ops, with random inputs: what ops make of each other in one kernel or through a pass.

Each op alone, at all sizes and with all options, is in the table of gpu_delegate/cases. Here is what that one cannot
say: fusions, reads through moves, integers that a model computes, operands that lie in an unusual way, and what the
GPU refuses, by the words of its UnsupportedError.
"""

import zlib
from collections.abc import Iterator
from typing import Any

from tests.helpers.engine import DEVICES
from tests.model_files import fused_models as fused
from tests.model_files.sketch import GraphCase, Sketch
from tests.tables.contraction_graphs import contraction_graphs
from tests.tables.integer_graphs import integer_graphs
from tests.tables.lookup_graphs import lookup_graphs
from tests.tables.move_graphs import MOVE_GRAPHS

COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def _operands() -> Iterator[GraphCase]:
    """A constant in front of a map, one tensor twice, numbers that matter: what the table of ops does not say."""
    for op in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"):
        yield GraphCase(
            op,
            "constant vector and map",
            lambda m, op=op: m.binary(op, m.constant(m.rng.uniform(0.3, 2, 5)), m.image(4, 6, 5)),
            low=0.3,
        )
    for op in ("SQUARED_DIFFERENCE", "POW", "FLOOR_DIV", "FLOOR_MOD"):
        low = 0.3 if op == "POW" else -2.0
        draw = lambda m, op=op: m.binary(op, m.constant(0.7), m.image(4, 6, 5))  # noqa: E731
        yield GraphCase(op, "scalar and map", draw, low=low)
    for op in COMPARISONS:
        yield GraphCase(
            op, "vector and map", lambda m, op=op: _compared(m, op, m.constant([-1, 0, 0, 1, 2]), _whole(m))
        )
    yield GraphCase("SUB", "one input twice", lambda m: m.binary("SUB", *[m.image(5, 7, 3)] * 2))
    for exponent in (-3.0, 2.0, 3.0):  # of values below zero
        yield GraphCase(
            "POW", f"to {exponent:g}", lambda m, e=exponent: m.binary("POW", m.image(4, 6, 5), m.constant(e))
        )
    yield GraphCase("FLOOR_MOD", "many multiples", lambda m: m.binary("FLOOR_MOD", _times(m, 1e6), m.image(4, 6, 5)))
    yield GraphCase(
        "POW",
        "padding lanes that are infinite",
        lambda m: m.conv(m.binary("POW", m.image(4, 6, 5), m.constant(-1.0)), 13),
        low=0.3,
    )
    yield GraphCase(
        "PRELU",
        "behind a convolution",
        lambda m: m.binary("PRELU", m.conv(m.image(4, 6, 3), 5, (3, 3)), m.random(1, 1, 5)),
    )
    yield GraphCase(
        "DEQUANTIZE",
        "constant that is an output",
        lambda m: (m.half(m.rng.uniform(-2, 2, (1, 4, 5, 3))), m.unary("NEG", m.image(4, 5, 3))),
    )


def _times(m: Sketch, factor: float) -> int:
    return m.binary("MUL", m.image(4, 6, 5), m.constant(factor))


def _compared(m: Sketch, op: str, x: int, y: int) -> int:
    return m.binary(op, x, y, dtype="bool")


def _cast(m: Sketch, x: int, dtype: str = "float32") -> int:
    return m.unary("CAST", x, dtype=dtype)


def _whole(m: Sketch) -> int:
    """A map of whole numbers, of which many are equal."""
    return m.unary("ROUND", m.image(4, 6, 5))


def _conditions(m: Sketch) -> tuple[int, int]:
    x, y = m.image(4, 6, 5), m.image(4, 6, 5)
    return _compared(m, "GREATER", x, m.constant(0.0)), _compared(m, "LESS", x, y)


def _truths() -> Iterator[GraphCase]:
    """Comparisons, and what is made of their results."""
    mixed = [True, False, True, True, False]
    for op in ("LOGICAL_AND", "LOGICAL_OR"):
        yield GraphCase(op, "two results", lambda m, op=op: _compared(m, op, *_conditions(m)))
        yield GraphCase(
            op, "result and constant", lambda m, op=op: _compared(m, op, _conditions(m)[0], m.constant(mixed, "bool"))
        )
    yield GraphCase("LOGICAL_NOT", "of a result", lambda m: m.unary("LOGICAL_NOT", _conditions(m)[0], dtype="bool"))
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        yield GraphCase(op, "of a result", lambda m, op=op: m.reduce(op, _conditions(m)[0], (1, 2), dtype="bool"))
    for dtype in ("int32", "bool", "float32"):
        yield GraphCase("CAST", f"float32 to {dtype} and back", lambda m, to=dtype: _cast(m, _cast(m, _whole(m), to)))
    yield GraphCase("CAST", "bool to float32", lambda m: m.binary("MUL", _cast(m, _conditions(m)[0]), m.image(4, 6, 5)))
    yield GraphCase("CAST", "bool to int32", lambda m: _cast(m, _conditions(m)[0], "int32"))

    def chosen(m: Sketch, op: str, condition: int, x: int, y: int) -> int:
        return m.op(op, [condition, x, y], m.shape(x))

    def above(m: Sketch, x: int) -> int:
        return _compared(m, "GREATER", x, m.constant(0.0))

    for op in ("SELECT", "SELECT_V2"):
        yield GraphCase(
            op, "of maps", lambda m, op=op: chosen(m, op, _conditions(m)[0], m.image(4, 6, 5), m.image(4, 6, 5))
        )
        yield GraphCase(
            op,
            "of one channel",
            lambda m, op=op: chosen(m, op, above(m, m.image(3, 5, 1)), m.image(3, 5, 1), m.random(1, 3, 5, 1)),
        )
        yield GraphCase(
            op,
            "by one constant",
            lambda m, op=op: chosen(m, op, m.constant(True, "bool"), m.image(4, 6, 5), m.image(4, 6, 5)),
        )
    yield GraphCase(
        "SELECT_V2",
        "by a mask, between a map and a scalar",
        lambda m: chosen(m, "SELECT_V2", above(m, m.image(4, 6, 1)), m.image(4, 6, 5), m.constant(7.0)),
    )
    yield GraphCase(
        "SELECT_V2",
        "behind a convolution",
        lambda m: chosen(
            m,
            "SELECT_V2",
            _compared(m, "LESS", c := m.conv(m.image(4, 6, 3), 5, (3, 3)), m.constant(0.0)),
            c,
            m.random(5),
        ),
    )


def _reductions() -> Iterator[GraphCase]:
    """In front of and behind other ops."""

    def row(op: str, what: str, draw: Any, **options: Any) -> GraphCase:
        return GraphCase(op, what, draw, **options)

    yield row("SUM", "of a convolution", lambda m: m.reduce("SUM", m.conv(m.image(4, 6, 3), 13, (3, 3))))
    yield row("SUM", "of products", lambda m: m.reduce("SUM", m.binary("MUL", m.image(4, 6, 13), m.image(4, 6, 13))))
    yield row(
        "REDUCE_MAX", "before a gate", lambda m: m.binary("MUL", x := m.image(4, 6, 13), m.reduce("REDUCE_MAX", x))
    )
    yield row("REDUCE_MIN", "of negative infinity in padding lanes", _logarithms, low=0.1)
    yield row("SUM", "before a convolution", lambda m: m.conv(m.reduce("SUM", m.image(4, 6, 13)), 5, (3, 3)))
    for size, channels in (
        ((4, 6), 3),
        ((33, 33), 21),
        ((1, 896), 2),
        ((4, 6), 1),
        ((1, 1), 1001),
        ((1, 1), 5),
        ((3, 3), 300),
    ):
        what = f"{size[0]}x{size[1]}x{channels}"
        yield row("fused", f"softmax of {what}", lambda m, s=size, c=channels: m.softmax(m.image(*s, c)))
        yield row(
            "fused",
            f"softmax of {what}, large",
            lambda m, s=size, c=channels: m.softmax(m.image(*s, c)),
            low=-900,
            high=900,
        )
    yield row("fused", "softmax of a convolution", lambda m: m.softmax(m.conv(m.image(9, 7, 5), 13)))
    yield row("fused", "classifier", lambda m: m.softmax(m.conv(m.mean(m.image(5, 6, 13)), 101)))


def _logarithms(m: Sketch) -> int:
    return m.reduce("REDUCE_MIN", m.unary("LOG", m.image(4, 6, 5)))


def _rankings() -> Iterator[GraphCase]:
    """Places and sums along a dimension of what other ops compute."""

    def infinite(m: Sketch) -> int:
        return m.unary("LOG", m.binary("MUL", m.image(4, 3, 7), m.constant(0.0)))

    for op, other in (("ARG_MAX", "ARG_MIN"), ("ARG_MIN", "ARG_MAX")):
        yield GraphCase(
            op,
            "of an upsampling",
            lambda m, op=op: m.extremum(op, m.resize(m.image(5, 7, 21), (13, 15)), dtype="int64"),
            tolerance=0.0,
        )
        yield GraphCase(op, "of a convolution", lambda m, op=op: m.extremum(op, m.conv(m.image(9, 7, 5), 13)))
        yield GraphCase(
            op,
            "of whole numbers, from the last dimension on",
            lambda m, op=op: m.extremum(op, m.unary("ROUND", m.input((3, 4, 6, 5))), -1),
            tolerance=0.0,
        )
        yield GraphCase(
            op,
            "of values that are all infinite",
            lambda m, op=op, other=other: tuple(m.extremum(each, infinite(m)) for each in (op, other)),
            tolerance=0.0,
        )
    yield GraphCase(
        "TOPK_V2", "positions alone", lambda m: m.top(m.unary("ROUND", m.image(9, 9, 21)), 6)[1], tolerance=0.0
    )
    yield GraphCase("TOPK_V2", "of an upsampling", lambda m: m.top(m.resize(m.image(5, 7, 21), (13, 15)), 4))
    yield GraphCase("TOPK_V2", "before a sum", lambda m: m.reduce("SUM", m.top(m.conv(m.image(5, 7, 3), 21), 5)[0]))
    yield GraphCase("TOPK_V2", "of negative infinity", lambda m: m.top(infinite(m), 6)[1], tolerance=0.0)
    yield GraphCase("CUMSUM", "of a convolution", lambda m: m.running_sum(m.conv(m.image(5, 7, 3), 13), 3))


def _refused() -> Iterator[GraphCase]:
    """What is too large for a kernel."""
    yield GraphCase(
        "CONV_2D",
        "window of 129x129",
        lambda m: m.conv(m.image(130, 130, 1), 1, (129, 129), padding="VALID"),
        refused="CONV_2D (operator 0, tensor3) does not run on the GPU: a window of 16641 pixels",
    )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield GraphCase(
            op,
            "window of 129x129",
            lambda m, op=op: m.pool(op, m.image(131, 131, 1), (129, 129)),
            refused=f"{op} (operator 0, tensor1) does not run on the GPU: a window of 16641 pixels",
        )
    yield GraphCase(
        "TOPK_V2",
        "65 of 70",
        lambda m: m.top(m.image(2, 3, 70), 65),
        refused="model: operator 0 (TOPK_V2): the greatest 65 values, 64 are allowed",
    )


def _batches() -> Iterator[GraphCase]:
    """Ops that look at more than one pixel, and whole blocks, on two or three maps at once."""

    def row(what: str, draw: Any, **options: Any) -> GraphCase:
        return GraphCase("batch", what, draw, **options)

    for batch, height in ((2, 4), (3, 5), (2, 1), (3, 16)):
        size = f"{batch}x{height}x7"
        yield row(
            f"{size} conv, stride, dilation",
            lambda m, b=batch, h=height: m.conv(
                m.conv(m.image(h, 7, 3, b), 5, (3, 3), dilation=(2, 2)), 5, (3, 3), stride=(2, 2)
            ),
        )
        yield row(
            f"{size} transposed conv to depth",
            lambda m, b=batch, h=height: m.unary(
                "LOGISTIC", m.transpose(m.image(h, 7, 5, b), 1, (2, 2), (2, 2), "SAME")
            ),
        )
    yield row("inverted bottleneck", lambda m: fused.bottleneck(m, m.image(9, 10, 5, 3), 13))
    yield row("squeeze and excite", lambda m: fused.gated(m, m.image(9, 10, 13, 2), 5))
    yield row(
        "residual of an upsampling", lambda m: m.mean(m.resize(m.image(4, 3, 5, 2), (8, 6), half_pixel_centers=True))
    )
    yield row("1x1 conv after upsampling", lambda m: m.conv(m.resize(m.image(4, 3, 5, 2), (8, 6)), 3))
    yield row("mean, connected", lambda m: m.connected(m.mean(m.image(5, 7, 5, 3), keep_dims=False), 13))


def _fused() -> Iterator[GraphCase]:
    """Ops that share a kernel, or that one pass moves: neighbors, residuals, gates, and values needed twice."""

    def row(what: str, draw: Any, **options: Any) -> GraphCase:
        return GraphCase("fused", what, draw, **options)

    yield row("conv, residual add, relu", fused.residual)
    yield row(
        "sum of a column and a row of convolutions",
        lambda m: m.conv(
            m.unary("RELU", m.binary("ADD", m.conv(m.image(5, 1, 3), 13), m.conv(m.image(1, 7, 3), 13))), 5
        ),
    )
    yield row(
        "mean of each map of a batch, gate",
        lambda m: m.binary("MUL", x := m.conv(m.image(5, 6, 3, 2), 5), m.unary("LOGISTIC", m.mean(x))),
    )
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


CASES: tuple[GraphCase, ...] = (
    *_operands(),
    *_truths(),
    *_reductions(),
    *_rankings(),
    *_refused(),
    *_batches(),
    *_fused(),
    *integer_graphs(),
    *lookup_graphs(),
    *contraction_graphs(),
    *MOVE_GRAPHS,
)
RUN = tuple(case for case in CASES if not case.refused)
REFUSED = tuple(case for case in CASES if case.refused)
UNFUSED = "unfused"


def devices_for(case: GraphCase) -> list[str]:
    """All of them where ops share kernels; other models take one of them beside software, in turn."""
    others = [name for name in (*DEVICES, UNFUSED) if name != "software"]
    first = zlib.crc32(case.name.encode()) % len(others)
    count = 4 if case.op in ("fused", "moved") else 1
    return ["software", *(others * 2)[first : first + count]]
