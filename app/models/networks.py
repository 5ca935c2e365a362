"""Builds published networks by name, with random weights.

Layers are those of the papers and of TensorFlow's published files, tails too; batch normalization is folded into the
convolutions, as in those files. Inputs are pictures from -1 to 1, or words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from texelflow.gpu_delegate.model.graph import Shape, Size2
from texelflow.gpu_delegate.reading.writer import write_model

from .mobilebert import WORDS, mobilebert
from .network_builder import CLASSES, Network

# MobileNet v1 (arXiv 1704.04861, table 1): channels and stride of each depthwise separable convolution.
MOBILENET_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
# MobileNet v2 (arXiv 1801.04381, table 2): expansion, channels, repeats, stride of the first.
MOBILENET_V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
)  # fmt: skip
# SSD (TensorFlow's ssd_mobilenet_v1): channels of the 1x1 and the 3x3 convolution of each further feature map.
SSD_MAPS = ((256, 512), (128, 256), (128, 256), (64, 128))
SSD_ANCHORS = (3, 6, 6, 6, 6, 6)
SSD_CLASSES = 91
DEEPLAB_CLASSES = 21  # arXiv 1706.05587, on Pascal VOC
# PoseNet (arXiv 1803.08225, TensorFlow's posenet_mobilenet_v1_100): its heads' channels.
POSE_HEADS = (17, 34, 32, 32)
# BlazeFace (arXiv 1907.05047): stride and channels of its single blocks, and of its double ones for each feature map,
# whose anchors come behind; between the convolutions of a double block are few channels.
BLAZE_SINGLE = ((1, 24), (1, 24), (2, 48), (1, 48), (1, 48))
BLAZE_DOUBLE, BLAZE_NARROW = ((2, 96), (1, 96), (1, 96)), 24
BLAZE_ANCHORS, BLAZE_BOX = (2, 6), 16


@dataclass(frozen=True)
class Published:
    """What others say about a network."""

    outputs: tuple[Shape, ...]
    operators: int | None = None
    parameters_m: float | None = None  # millions
    macs_m: float | None = None  # millions
    rounded_m: float = 0.0  # how far those may be rounded
    file_mb: float | None = None  # the size of TensorFlow's own file


def _mobilenet_v1(net: Network, height: int, width: int, output_stride: int = 32) -> list[int]:
    """The output of every separable convolution. Past the output stride, strides become dilations."""
    x = net.layer(net.image(height, width, 3), 32, (3, 3), 2)
    found, reached, dilation = [], 2, 1
    for channels, stride in MOBILENET_V1:
        moved = stride if reached < output_stride else 1
        x = net.layer(net.separate(x, moved, dilation if moved == 1 else 1), channels)
        reached, dilation = reached * moved, dilation * stride // moved
        found.append(x)
    return found


def mobilenet_v1(net: Network) -> None:
    """1.0, 224x224: 31 operators."""
    net.classify(_mobilenet_v1(net, 224, 224)[-1])


def _mobilenet_v2(net: Network, x: int, divisor: int = 1, output_stride: int = 32) -> int:
    """Inverted bottlenecks with linear ends, with channels by the divisor; strides and dilations as above."""
    x = net.layer(x, 32 // divisor, (3, 3), 2)
    reached, dilation = 2, 1
    for expansion, channels, repeats, first in MOBILENET_V2:
        for number in range(repeats):
            start, stride = x, first if number == 0 else 1
            moved = stride if reached < output_stride else 1
            if expansion > 1:
                x = net.layer(x, net.shape(x)[3] * expansion)
            x = net.separate(x, moved, dilation if moved == 1 else 1)
            x = net.layer(x, channels // divisor, activation="NONE")
            reached, dilation = reached * moved, dilation * stride // moved
            if number:
                x = net.added(x, start)
    return x


def mobilenet_v2(net: Network) -> None:
    """1.0, 224x224."""
    net.classify(net.layer(_mobilenet_v2(net, net.image(224, 224, 3)), 1280), squeeze=False)


def deeplab_v3(net: Network) -> None:
    """257x257, on half a MobileNet v2 with an output stride of 8, as in TensorFlow's deeplabv3_257_mv_gpu."""
    x = _mobilenet_v2(net, net.image(257, 257, 3), divisor=2, output_stride=8)
    size = net.shape(x)[1]
    pooled = net.layer(net.pooled(x, "AVERAGE", size, size, "VALID"), 256, activation="RELU")
    x = net.side(net.resized(pooled, size), net.layer(x, 256, activation="RELU"))
    x = net.layer(net.layer(x, 256, activation="RELU"), DEEPLAB_CLASSES, activation="NONE")
    net.output(net.resized(net.resized(x, size), 257))


def inception_v3(net: Network) -> None:
    """299x299 (arXiv 1512.00567), layers and names as in TensorFlow's slim/inception_v3."""
    conv = _relu(net)
    x = conv(net.image(299, 299, 3), 32, (3, 3), 2, padding="VALID")
    x = conv(conv(x, 32, (3, 3), padding="VALID"), 64, (3, 3))
    x = conv(net.pooled(x, "MAX", 3, 2, "VALID"), 80, padding="VALID")
    x = net.pooled(conv(x, 192, (3, 3), padding="VALID"), "MAX", 3, 2, "VALID")
    for last in (32, 64, 64):
        x = _mixed_5(net, x, last)
    x = net.side(
        conv(x, 384, (3, 3), 2, padding="VALID"),
        conv(conv(conv(x, 64), 96, (3, 3)), 96, (3, 3), 2, padding="VALID"),
        net.pooled(x, "MAX", 3, 2, "VALID"),
    )
    for inner in (128, 160, 160, 192):
        x = _mixed_6(net, x, inner)
    thin = conv(conv(conv(x, 192), 192, (1, 7)), 192, (7, 1))
    x = net.side(
        conv(conv(x, 192), 320, (3, 3), 2, padding="VALID"),
        conv(thin, 192, (3, 3), 2, padding="VALID"),
        net.pooled(x, "MAX", 3, 2, "VALID"),
    )
    for _ in range(2):
        x = _mixed_7(net, x)
    net.classify(x)


def _relu(net: Network) -> Callable[..., int]:
    def conv(x: int, channels: int, kernel: Size2 = (1, 1), stride: int = 1, padding: str = "SAME") -> int:
        return net.layer(x, channels, kernel, stride, "RELU", padding=padding)

    return conv


def _mixed_5(net: Network, x: int, last: int) -> int:
    conv = _relu(net)
    return net.side(
        conv(x, 64),
        conv(conv(x, 48), 64, (5, 5)),
        conv(conv(conv(x, 64), 96, (3, 3)), 96, (3, 3)),
        conv(net.pooled(x, "AVERAGE", 3), last),
    )


def _mixed_6(net: Network, x: int, inner: int) -> int:
    conv = _relu(net)
    deep = conv(conv(conv(conv(x, inner), inner, (7, 1)), inner, (1, 7)), inner, (7, 1))
    return net.side(
        conv(x, 192),
        conv(conv(conv(x, inner), inner, (1, 7)), 192, (7, 1)),
        conv(deep, 192, (1, 7)),
        conv(net.pooled(x, "AVERAGE", 3), 192),
    )


def _mixed_7(net: Network, x: int) -> int:
    conv = _relu(net)
    first, second = conv(x, 384), conv(conv(x, 448), 384, (3, 3))
    return net.side(
        conv(x, 320),
        net.side(conv(first, 384, (1, 3)), conv(first, 384, (3, 1))),
        net.side(conv(second, 384, (1, 3)), conv(second, 384, (3, 1))),
        conv(net.pooled(x, "AVERAGE", 3), 192),
    )


def ssd_mobilenet(net: Network) -> None:
    """300x300: boxes [1, 1917, 4] and scores [1, 1917, 91] of six feature maps, without the custom postprocessing."""
    backbone = _mobilenet_v1(net, 300, 300)
    maps = [backbone[10], backbone[12]]
    for narrow, wide in SSD_MAPS:
        maps.append(net.layer(net.layer(maps[-1], narrow), wide, (3, 3), 2))
    for values in (4, SSD_CLASSES):
        heads = []
        for x, anchors in zip(maps, SSD_ANCHORS, strict=True):
            head = net.layer(x, anchors * values, activation="NONE")
            boxes = net.shape(head)[1] * net.shape(head)[2] * anchors
            heads.append(net.reshaped(head, 1, boxes, values))
        out = net.side(*heads, axis=1)
        net.output(out if values == 4 else net.sigmoid(out))


def posenet(net: Network) -> None:
    """353x257, output stride 16: heat maps, offsets, and displacements forwards and backwards."""
    x = _mobilenet_v1(net, 353, 257, output_stride=16)[-1]
    heads = [net.layer(x, channels, activation="NONE") for channels in POSE_HEADS]
    net.output(net.sigmoid(heads[0]), *heads[1:])


def blazeface(net: Network) -> None:
    """128x128: boxes and key points [1, 896, 16] and scores [1, 896, 1] of two feature maps, as in its paper."""
    x = net.layer(net.image(128, 128, 3), 24, (5, 5), 2, "RELU")
    for stride, channels in BLAZE_SINGLE:
        x = _blaze_block(net, x, stride, channels)
    maps = []
    for _ in BLAZE_ANCHORS:
        for stride, channels in BLAZE_DOUBLE:
            x = _blaze_block(net, x, stride, channels, BLAZE_NARROW)
        maps.append(x)
    for values in (BLAZE_BOX, 1):
        heads = []
        for found, anchors in zip(maps, BLAZE_ANCHORS, strict=True):
            head = net.layer(found, anchors * values, activation="NONE")
            heads.append(net.reshaped(head, 1, net.shape(head)[1] * net.shape(head)[2] * anchors, values))
        net.output(net.side(*heads, axis=1))


def _blaze_block(net: Network, x: int, stride: int, channels: int, narrow: int = 0) -> int:
    """5x5 depthwise and 1x1 convolutions, twice with few channels between, and the input added, zeros behind it."""
    start, five = x, (5, 5)
    x = net.separate(x, stride, activation="NONE", kernel=five)
    if narrow:
        x = net.separate(net.layer(x, narrow, activation="RELU"), activation="NONE", kernel=five)
    if stride > 1:
        start = net.pooled(start, "MAX", stride, stride)
    if net.shape(start)[3] < channels:
        start = net.deepened(start, channels)
    return net.added(net.layer(x, channels, activation="NONE"), start, "RELU")


_CLASSIFIED = ((1, CLASSES),)
NETWORKS: Mapping[str, tuple[Callable[[Network], None], Published]] = MappingProxyType(
    {  # parameters and MACs: TensorFlow's slim/nets/mobilenet; files: TensorFlow Lite's hosted models
        "mobilenet-v1": (mobilenet_v1, Published(_CLASSIFIED, 31, 4.24, 569, file_mb=16.9)),
        "mobilenet-v2": (mobilenet_v2, Published(_CLASSIFIED, None, 3.47, 300, file_mb=14.0)),
        # parameters: Keras; MACs: torchvision
        "inception-v3": (inception_v3, Published(_CLASSIFIED, None, 23.85, 5710, file_mb=95.3)),
        # arXiv 1704.04861, table 13: 6.8 million and 1.2 billion
        "ssd-mobilenet": (
            ssd_mobilenet,
            Published(((1, 1917, 4), (1, 1917, SSD_CLASSES)), None, 6.8, 1200, rounded_m=50),
        ),
        "deeplab-v3": (deeplab_v3, Published(((1, 257, 257, DEEPLAB_CLASSES),), 70, file_mb=2.78)),
        "posenet": (
            posenet,
            Published(tuple((1, 23, 17, channels) for channels in POSE_HEADS), file_mb=13.3),
        ),
        "blazeface": (blazeface, Published(((1, 896, BLAZE_BOX), (1, 896, 1)))),
    }
)
# Those whose inputs are words, too: they are planned, and checked as files.
ALL_NETWORKS: Mapping[str, tuple[Callable[[Network], None], Published]] = MappingProxyType(
    {**NETWORKS, "mobilebert": (mobilebert, Published(((1, WORDS), (1, WORDS))))}
)


def drawn(name: str) -> Network:
    """A network with its layers and weights. Raises KeyError."""
    net = Network()
    ALL_NETWORKS[name][0](net)
    return net


def write_network(name: str, folder: Path) -> Path:
    """The file of a network, up to 96 MB; one that is there is left alone. Raises KeyError, OSError."""
    path = folder / f"{name}.tflite"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(write_model(drawn(name).graph(name)))
        part.replace(path)
    return path
