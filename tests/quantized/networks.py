"""Small float networks with random weights, like those of which published quantized models are made.

Each function returns a network whose inputs are pictures from 0 to 1; `quantizer` makes quantized twins of them.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tests.model_files.sketch import Shape, Sketch

V2_BLOCKS = ((16, 1, 1), (24, 6, 2), (24, 6, 1), (32, 6, 2), (32, 6, 1), (64, 6, 2))  # channels, expansion, stride
V3_BLOCKS = ((16, 3, 2, True), (24, 3, 2, False), (24, 5, 1, True), (40, 5, 2, True), (40, 5, 1, True))


class Net(Sketch):
    """A sketch whose weights keep values about as large as they were."""

    def random(self, *shape: int) -> int:
        fan_in = {1: 25.0, 2: shape[-1]}.get(len(shape), float(np.prod(shape[1:] if shape[0] > 1 else shape[1:3])))
        return self.constant(self.rng.standard_normal(shape) * (2.0 / fan_in) ** 0.5)

    def transposed_map(self, x: int, order: Sequence[int]) -> int:
        return self.op("TRANSPOSE", [x, self.constant(order, "int32")], tuple(self.shape(x)[k] for k in order))

    def reshaped(self, x: int, *shape: int) -> int:
        return self.op("RESHAPE", [x, self.constant(shape, "int32")], shape, new_shape=np.array(shape, np.int32))

    def joined(self, xs: Sequence[int], axis: int) -> int:
        shape = list(self.shape(xs[0]))
        shape[axis] = sum(self.shape(x)[axis] for x in xs)
        return self.op("CONCATENATION", list(xs), tuple(shape), axis=axis)

    def sliced(self, x: int, begin: Shape, size: Shape) -> int:
        return self.op("SLICE", [x, self.constant(begin, "int32"), self.constant(size, "int32")], size)

    def separable(self, x: int, channels: int, stride: int = 1, activation: str = "RELU6", **options: Any) -> int:
        x = self.depthwise(x, stride=(stride, stride), activation=activation, **options)
        return self.conv(x, channels, activation=activation)

    def inverted(self, x: int, channels: int, expansion: int, stride: int, **options: Any) -> int:
        wide = self.conv(x, self.shape(x)[3] * expansion, activation="RELU6") if expansion > 1 else x
        y = self.conv(self.depthwise(wide, stride=(stride, stride), activation="RELU6", **options), channels)
        return self.binary("ADD", x, y) if self.shape(x) == self.shape(y) else y

    def hard_sigmoid(self, x: int) -> int:
        y = self.binary("ADD", x, self.constant(3.0), activation="RELU6")
        return self.binary("MUL", y, self.constant(1 / 6))

    def excited(self, x: int, hard: bool = True) -> int:
        channels = self.shape(x)[3]
        y = self.conv(self.conv(self.mean(x), max(channels // 4, 3), activation="RELU"), channels)
        return self.binary("MUL", x, self.hard_sigmoid(y) if hard else self.unary("LOGISTIC", y))

    def scores(self, x: int, classes: int) -> int:
        """Logits of a vector, far enough apart for one to be the greatest."""
        depth = self.shape(x)[-1]
        weights = self.constant(self.rng.standard_normal((classes, depth)) * 6 / depth**0.5)
        return self.op("FULLY_CONNECTED", [x, weights, self.random(classes)], (1, classes))

    def encoder(self, x: int, last_dilation: int = 1) -> tuple[int, int]:
        """A map of a quarter and one of an eighth of the size."""
        x = self.inverted(self.conv(x, 16, (3, 3), stride=(2, 2), activation="RELU6"), 16, 1, 1)
        quarter = self.inverted(x, 24, 4, 2)
        x = self.inverted(self.inverted(quarter, 32, 4, 2), 32, 4, 1, dilation=(last_dilation, last_dilation))
        return quarter, x


def mobilenet_v1_like(seed: int = 0, size: int = 65) -> Sketch:
    net = Net(seed)
    x = net.conv(net.image(size, size, 3), 8, (3, 3), stride=(2, 2), activation="RELU6")
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)):
        x = net.separable(x, channels, stride)
    x = net.pool("AVERAGE_POOL_2D", x, (net.shape(x)[1], net.shape(x)[2]), padding="VALID")
    logits = net.reshaped(net.conv(x, 101), 1, 101)
    net.output(net.unary("SOFTMAX", logits, beta=1.0), logits)
    return net


def mobilenet_v2_like(seed: int = 1, size: int = 64) -> Sketch:
    net = Net(seed)
    x = net.conv(net.image(size, size, 3), 16, (3, 3), stride=(2, 2), activation="RELU6")
    for channels, expansion, stride in V2_BLOCKS:
        x = net.inverted(x, channels, expansion, stride)
    logits = net.scores(net.mean(net.conv(x, 160, activation="RELU6"), keep_dims=False), 101)
    net.output(logits, net.unary("SOFTMAX", logits, beta=1.0))
    return net


def mobilenet_v3_like(seed: int = 2, size: int = 64) -> Sketch:
    net = Net(seed)
    x = net.unary("HARD_SWISH", net.conv(net.image(size, size, 3), 16, (3, 3), stride=(2, 2)))
    for channels, kernel, stride, excites in V3_BLOCKS:
        y = net.unary("HARD_SWISH", net.conv(x, net.shape(x)[3] * 3))
        y = net.unary("HARD_SWISH", net.depthwise(y, (kernel, kernel), stride=(stride, stride)))
        y = net.conv(net.excited(y, hard=channels != 24) if excites else y, channels)
        x = net.binary("ADD", x, y) if net.shape(x) == net.shape(y) else y
    x = net.mean(net.unary("HARD_SWISH", net.conv(x, 120)), keep_dims=False)
    net.output(net.scores(net.unary("HARD_SWISH", net.connected(x, 64)), 101))
    return net


def segmentation(seed: int = 3, size: int = 65) -> Sketch:
    """DeepLab v3's head, and the class of each pixel."""
    net = Net(seed)
    _, x = net.encoder(net.image(size, size, 3), last_dilation=2)
    side = net.shape(x)[1]
    pooled = net.conv(net.mean(x), 24, activation="RELU")
    x = net.joined([net.resize(pooled, (side, side)), net.conv(x, 24, activation="RELU")], 3)
    x = net.resize(net.conv(net.conv(x, 32, activation="RELU"), 21), (size, size), align_corners=True)
    classes = net.op("ARG_MAX", [x, net.constant(3, "int32")], (1, size, size), "int32", output_type=2)
    net.output(classes, x)
    return net


def decoder(seed: int = 4, size: int = 64) -> Sketch:
    """A U-shaped network with transposed convolutions, skips and a mask."""
    net = Net(seed)
    image = net.image(size, size, 3)
    quarter, x = net.encoder(image)
    x = net.transpose(x, 24, (2, 2), (2, 2), "SAME")
    x = net.joined([net.unary("LEAKY_RELU", x, alpha=0.2), quarter], 3)
    x = net.transpose(net.separable(x, 20, activation="RELU"), 16, (3, 3), (2, 2), "SAME")
    x = net.resize(net.unary("RELU", x), (size, size), half_pixel_centers=True)
    net.output(net.unary("LOGISTIC", net.conv(x, 1, (3, 3))))
    return net


def detection(seed: int = 5, size: int = 96) -> Sketch:
    """An SSD's heads: boxes of all anchors, and scores of their classes."""
    net, boxes, scores = Net(seed), [], []
    quarter, x = net.encoder(net.image(size, size, 3))
    for level in (x, net.separable(x, 48, 2), net.separable(quarter, 24, 2)):
        side = net.shape(level)[1]
        boxes.append(net.reshaped(net.conv(level, 12), 1, side * side * 3, 4))
        scores.append(net.reshaped(net.conv(level, 21), 1, side * side * 3, 7))
    net.output(net.joined(boxes, 1), net.unary("LOGISTIC", net.joined(scores, 1)))
    return net


def keypoints(seed: int = 6, size: int = 64) -> Sketch:
    """A pose network's head: the place of each heat map's greatest value, and what other maps have there."""
    net, count = Net(seed), 5
    _, x = net.encoder(net.image(size, size, 3))
    side = net.shape(x)[1]
    heat = net.reshaped(net.conv(x, count, (3, 3)), side * side, count)
    best = net.op("ARG_MAX", [heat, net.constant(0, "int32")], (count,), "int32", output_type=2)
    width = net.constant(side, "int32")
    rows = net.op("DIV", [best, width], (count,), "int32")
    columns = net.op("SUB", [best, net.op("MUL", [rows, width], (count,), "int32")], (count,), "int32")
    places = net.op("PACK", [rows, columns], (count, 2), "int32", axis=1, values_count=2)
    offsets = net.reshaped(net.conv(x, 4), side, side, 4)
    there = net.op("GATHER_ND", [offsets, places], (count, 4))
    first, *_ = net.split("UNPACK", [there], [(4,)] * count, axis=0, num=count)
    at = net.op("CAST", [places], (count, 2), "float32", in_data_type=2, out_data_type=0)
    net.output(best, there, first, at)
    return net


def moves(seed: int = 7, size: int = 33) -> Sketch:
    """Data moved in every way between layers."""
    net = Net(seed)
    x = net.conv(net.pad(net.image(size, size, 3), (0, 0), (0, 1), (0, 1), (0, 0)), 12, (3, 3), stride=(2, 2))
    side = net.shape(x)[1]
    parts = net.split("SPLIT", [net.constant(3, "int32"), x], [(1, side, side, 4)] * 3, num_splits=3)
    left = net.separable(parts[0], 6, activation="RELU")
    turned = net.transposed_map(net.conv(parts[1], 6), (0, 2, 1, 3))
    x = net.joined([net.binary("MAXIMUM", left, turned), parts[2]], 3)
    x = net.sliced(x, (0, 1, 1, 1), (1, side - 1, side - 1, 8))
    deep = net.op("SPACE_TO_DEPTH", [x], (1, (side - 1) // 2, (side - 1) // 2, 32), block_size=2)
    wide = net.op("DEPTH_TO_SPACE", [net.conv(deep, 20)], (1, side - 1, side - 1, 5), block_size=2)
    amounts = net.constant(((0, 0), (1, 1), (2, 2), (0, 0)), "int32")
    x = net.op("MIRROR_PAD", [wide, amounts], (1, side + 1, side + 3, 5), mode=0)
    x = net.op("PRELU", [x, net.constant(net.rng.uniform(-0.5, 0.5, (1, 1, 5)))], net.shape(x))
    x = net.binary("SUB", net.pool("MAX_POOL_2D", x, (3, 3)), net.pool("AVERAGE_POOL_2D", x, (3, 3)))
    net.output(net.resize(x, (19, 23), "RESIZE_NEAREST_NEIGHBOR"))
    return net


def attention(seed: int = 8, size: int = 32) -> Sketch:
    """Patches, a normalized layer, products of matrices and SOFTMAX, as vision transformers have them."""
    net, width = Net(seed), 24
    x = net.conv(net.image(size, size, 3), width, (8, 8), stride=(8, 8), padding="VALID")
    count = net.shape(x)[1] * net.shape(x)[2]
    x = net.reshaped(x, 1, count, width)
    mean = net.reduce("MEAN", x, (2,))
    spread = net.reduce("MEAN", net.binary("SQUARED_DIFFERENCE", x, mean), (2,))
    x = net.binary("MUL", net.binary("SUB", x, mean), net.unary("RSQRT", spread))
    query, key, value = (
        net.op(
            "FULLY_CONNECTED", [x, net.random(width, width), net.random(width)], (1, count, width), keep_num_dims=True
        )
        for _ in range(3)
    )
    alike = net.op("BATCH_MATMUL", [query, key], (1, count, count), table="BatchMatMulOptions", adj_y=True)
    weights = net.unary("SOFTMAX", net.binary("MUL", alike, net.constant(width**-0.5)), beta=1.0)
    x = net.binary("ADD", net.op("BATCH_MATMUL", [weights, value], (1, count, width), table="BatchMatMulOptions"), x)
    net.output(net.scores(net.reshaped(x, 1, count * width), 31))
    return net


NETWORKS_TO_QUANTIZE: Mapping[str, Callable[[], Sketch]] = MappingProxyType(
    {
        "mobilenet-v1": mobilenet_v1_like,
        "mobilenet-v2": mobilenet_v2_like,
        "mobilenet-v3": mobilenet_v3_like,
        "segmentation": segmentation,
        "decoder": decoder,
        "detection": detection,
        "keypoints": keypoints,
        "moves": moves,
        "attention": attention,
    }
)
