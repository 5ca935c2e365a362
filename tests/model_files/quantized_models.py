"""Small quantized models, for tests of what lies around the kernels."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tests.quantized.networks import Net
from tests.quantized.quantizer import Scheme, quantized_twin

SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {"int8": Scheme(), "uint8": Scheme("uint8", per_channel=False), "uint8 around int8": Scheme(border="uint8")}
)
HEIGHT, WIDTH, CLASSES = 9, 14, 3


def small_quantized(scheme: Scheme = Scheme(), gives_classes: bool = False) -> bytes:  # noqa: B008
    """Scores of 3 classes (1, 9, 14, 3) for a picture (1, 9, 14, 3): two convolutions, a depthwise one and a sum.

    Or the class of each pixel instead, (1, 9, 14) of int64.
    """
    net = Net(4)
    x = net.conv(net.image(HEIGHT, WIDTH, 3), 5, (3, 3), activation="RELU6")
    x = net.binary("ADD", x, net.depthwise(x, (3, 3)))
    scores = net.conv(x, CLASSES)
    if gives_classes:
        axis = net.constant(3, "int32")
        scores = net.op("ARG_MAX", [scores, axis], (1, HEIGHT, WIDTH), "int64", output_type=4)
    net.output(scores)
    rng = np.random.default_rng(0)
    samples = [[rng.random((1, HEIGHT, WIDTH, 3), np.float32)] for _ in range(3)]
    return quantized_twin(net, samples, scheme)
