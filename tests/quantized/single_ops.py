"""Small float models of each op alone, to be quantized.

Each draws its op from two inputs of one shape, with values from -2 to 2; a model has one output for each op.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np

from tests.quantized.networks import Net

Draw = Callable[[Net, int, int], int]
LOW, HIGH = -2.0, 2.0


def _convolved(**options: object) -> Draw:
    return lambda net, x, y: net.conv(x, 5, **options)  # type: ignore[arg-type]


def _pooled(op: str, **options: object) -> Draw:
    return lambda net, x, y: net.pool(op, x, **options)  # type: ignore[arg-type]


def _unary(op: str, **options: object) -> Draw:
    return lambda net, x, y: net.unary(op, x, **options)


def _of_positive(op: str) -> Draw:
    return lambda net, x, y: net.unary(op, _positive(net, x))


def _binary(op: str, **options: object) -> Draw:
    return lambda net, x, y: net.binary(op, x, y, **options)


def _reduced(op: str, *axes: int, keep_dims: bool = True) -> Draw:
    return lambda net, x, y: net.reduce(op, x, axes, keep_dims)


def _positive(net: Net, x: int) -> int:
    return net.binary("ADD", net.unary("ABS", x), net.constant(0.1))


def _compared(op: str) -> Draw:
    return lambda net, x, y: net.op(op, [x, y], net.shape(x), "bool")


def _by_vector(op: str) -> Draw:
    return lambda net, x, y: net.binary(op, x, net.constant(net.rng.uniform(-1.5, 1.5, net.shape(x)[3:])))


def _sloped(net: Net, x: int, y: int) -> int:
    return net.op("PRELU", [x, net.constant(net.rng.uniform(-0.6, 0.9, (1, 1, net.shape(x)[3])))], net.shape(x))


def _best(net: Net, x: int, y: int) -> int:
    return net.op("ARG_MAX", [x, net.constant(3, "int32")], net.shape(x)[:3], "int32", output_type=2)


def _flat(net: Net, x: int) -> int:
    batch, height, width, channels = net.shape(x)
    return net.reshaped(x, batch, height * width, channels)


def _matrices(net: Net, x: int, y: int) -> int:
    a, b = _flat(net, x), _flat(net, y)
    batch, count, _ = net.shape(a)
    return net.op("BATCH_MATMUL", [a, b], (batch, count, count), table="BatchMatMulOptions", adj_y=True)


def _joined_parts(net: Net, x: int, y: int) -> int:
    return net.joined([x, net.unary("RELU", y), y], 3)


def _greatest(net: Net, x: int, y: int) -> int:
    shape = (*net.shape(x)[:3], 1)
    outputs = [net.tensor(shape), net.tensor(shape, "int32")]
    return net.op_of("TOPK_V2", [x, net.constant(1, "int32")], outputs)[0]


def _line(net: Net, x: int) -> int:
    """The first row of the first map."""
    width, channels = net.shape(x)[2:]
    return net.reshaped(net.sliced(x, (0, 0, 0, 0), (1, 1, width, channels)), width, channels)


def _spread(net: Net, x: int, y: int) -> int:
    amounts = ((0, 0), (1, 2), (0, 1), (0, 0))
    wide = tuple(n + sum(pair) for n, pair in zip(net.shape(x), amounts, strict=True))
    return net.op("PADV2", [x, net.constant(amounts, "int32"), net.constant(np.float32(0.7))], wide)


SINGLE_OPS: Mapping[str, Draw] = MappingProxyType(
    {
        "conv 1x1": _convolved(),
        "conv 3x3 strided relu6": _convolved(kernel=(3, 3), stride=(2, 2), activation="RELU6"),
        "conv 3x3 dilated": _convolved(kernel=(3, 3), dilation=(2, 2), activation="RELU"),
        "conv 2x2 relu_n1": _convolved(kernel=(2, 2), activation="RELU_N1_TO_1"),
        "depthwise": lambda net, x, y: net.depthwise(x, activation="RELU6"),
        "depthwise multiplier": lambda net, x, y: net.depthwise(x, multiplier=2, stride=(2, 1)),
        "fully connected": lambda net, x, y: net.op(
            "FULLY_CONNECTED",
            [x, net.random(7, net.shape(x)[3]), net.random(7)],
            (*net.shape(x)[:3], 7),
            keep_num_dims=True,
        ),
        "transpose conv": lambda net, x, y: net.transpose(x, 5, (3, 3), (2, 2), "SAME"),
        "batch matmul": _matrices,
        **{op.lower(): _binary(op) for op in ("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM")},
        "add relu6": _binary("ADD", activation="RELU6"),
        "mul relu": _binary("MUL", activation="RELU"),
        "add vector": _by_vector("ADD"),
        "sub vector": _by_vector("SUB"),
        "mul vector": _by_vector("MUL"),
        "div": lambda net, x, y: net.binary("DIV", x, net.constant(net.rng.uniform(0.5, 2, net.shape(x)[3:]))),
        "average pool": _pooled("AVERAGE_POOL_2D", kernel=(3, 3)),
        "average pool 2x2": _pooled("AVERAGE_POOL_2D", kernel=(2, 2), stride=(2, 2), padding="VALID"),
        "average pool 2x3 relu": _pooled("AVERAGE_POOL_2D", kernel=(2, 3), activation="RELU"),
        "max pool": _pooled("MAX_POOL_2D", kernel=(3, 2), stride=(2, 2)),
        "max pool relu6": _pooled("MAX_POOL_2D", kernel=(2, 2), activation="RELU6"),
        "mean": _reduced("MEAN", 1, 2),
        "mean vector": _reduced("MEAN", 1, 2, keep_dims=False),
        "mean of channels": _reduced("MEAN", 3),
        "sum": _reduced("SUM", 1, 2),
        "sum of channels": _reduced("SUM", 3, keep_dims=False),
        "reduce max": _reduced("REDUCE_MAX", 1, 2),
        "softmax": _unary("SOFTMAX", beta=1.0),
        "softmax beta": _unary("SOFTMAX", beta=0.6),
        "log softmax": _unary("LOG_SOFTMAX"),
        "l2 normalization": _unary("L2_NORMALIZATION"),
        "arg max": _best,
        **{op.lower(): _unary(op) for op in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")},
        **{op.lower(): _unary(op) for op in ("LOGISTIC", "TANH", "HARD_SWISH", "GELU", "EXP", "ABS")},
        "leaky relu": _unary("LEAKY_RELU", alpha=0.2),
        "prelu": _sloped,
        **{op.lower(): _of_positive(op) for op in ("RSQRT", "LOG", "SQRT")},
        "resize bilinear": lambda net, x, y: net.resize(x, (13, 17)),
        "resize bilinear doubled": lambda net, x, y: net.resize(x, (2 * net.shape(x)[1], 2 * net.shape(x)[2])),
        "resize bilinear aligned": lambda net, x, y: net.resize(x, (21, 5), align_corners=True),
        "resize bilinear half": lambda net, x, y: net.resize(x, (14, 12), half_pixel_centers=True),
        "resize nearest": lambda net, x, y: net.resize(x, (13, 3), "RESIZE_NEAREST_NEIGHBOR"),
        "concatenation": _joined_parts,
        "padv2": _spread,
        **{
            op.lower(): _compared(op) for op in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
        },
        "transpose": lambda net, x, y: net.transposed_map(x, (0, 3, 1, 2)),
        "gather": lambda net, x, y: net.op(
            "GATHER", [x, net.constant((2, 0, 1), "int32")], (net.shape(x)[0], 3, *net.shape(x)[2:]), axis=1
        ),
        "tile": lambda net, x, y: net.op(
            "TILE",
            [x, net.constant((1, 2, 1, 3), "int32")],
            tuple(n * times for n, times in zip(net.shape(x), (1, 2, 1, 3), strict=True)),
        ),
        "reverse": lambda net, x, y: net.op("REVERSE_V2", [x, net.constant((2,), "int32")], net.shape(x)),
        "mirror pad": lambda net, x, y: net.op(
            "MIRROR_PAD",
            [x, net.constant(((0, 0), (1, 2), (2, 1), (0, 0)), "int32")],
            tuple(n + more for n, more in zip(net.shape(x), (0, 3, 3, 0), strict=True)),
            mode=1,
        ),
        "pack": lambda net, x, y: net.op(
            "PACK", [_line(net, x), _line(net, y)], (*net.shape(x)[2:3], 2, net.shape(x)[3]), axis=1, values_count=2
        ),
        "top": _greatest,
        "cast": lambda net, x, y: net.op("CAST", [x], net.shape(x), in_data_type=9, out_data_type=0),
    }
)


def model_of(names: Iterable[str], shape: tuple[int, ...], seed: int = 0) -> Net:
    """A model with an output for each op, in this order."""
    net = Net(seed)
    x, y = (net.input(shape) for _ in range(2))
    net.output(*(SINGLE_OPS[name](net, x, y) for name in names))
    return net
