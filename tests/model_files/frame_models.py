"""Files of networks for frames: pictures to pictures, and pictures to several classes.

Their weights are random. Metadata says what they mean, where it is asked for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.model_files.metadata_writer import metadata_of, with_labels
from tests.model_files.model_builder import ModelBuilder

CLASS_NAMES = ("background", "cat", "person", "dining table", "tv")


class _Network:
    """Convolutions one behind the other."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.model, self.rng = ModelBuilder(), np.random.default_rng(0)
        self.x = self.model.input((1, size[1], size[0], 3))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.model.tensors[self.x].shape

    def weights(self, *shape: int) -> int:
        return self.model.constant(self.rng.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape))

    def conv(self, depth: int, kernel: int = 3, stride: int = 1, activation: str = "RELU") -> int:
        _, height, width, before = self.shape
        inputs = [
            self.x,
            self.weights(depth, kernel, kernel, before),
            self.model.constant(self.rng.normal(0, 0.1, depth)),
        ]
        shape = (1, -(-height // stride), -(-width // stride), depth)
        options: dict[str, Any] = {"padding": "SAME", "stride": (stride, stride), "activation": activation}
        self.x = self.model.op("CONV_2D", inputs, shape, **options)
        return self.x

    def residual(self) -> None:
        before, shape = self.x, self.shape
        self.conv(shape[3])
        self.x = self.model.op("ADD", [before, self.conv(shape[3], activation="NONE")], shape)

    def upsample(self, depth: int, size: tuple[int, int]) -> None:
        shape = (1, size[1], size[0], depth)
        inputs = [self.model.constant(shape, "int32"), self.weights(depth, 3, 3, self.shape[3]), self.x]
        self.x = self.model.op("TRANSPOSE_CONV", inputs, shape, padding="SAME", stride=(2, 2))

    def unary(self, op: str) -> None:
        self.x = self.model.op(op, [self.x], self.shape)

    def build(self, metadata: bytes | None = None) -> bytes:
        self.model.output(self.x)
        self.model.metadata = metadata
        return self.model.build()


def picture_network(
    size: tuple[int, int] = (130, 97), output: tuple[int, int] = (129, 97), channels: int = 3, says: bool = True
) -> bytes:
    """From a picture to a picture of -1 to 1, as style transfer has them: down, residual blocks, up.

    By its metadata, if it `says` so, the input is 0 to 1, and the output a picture.
    """
    net = _Network(size)
    net.conv(8, kernel=5)
    net.conv(12, stride=2)
    net.residual()
    net.residual()
    net.upsample(8, output)
    net.unary("RELU")
    net.conv(channels, activation="NONE")
    net.unary("TANH")
    return net.build(metadata_of(output=((-1.0,), (2 / 255,)), is_picture=True) if says else None)


def class_network(
    size: tuple[int, int] = (33, 27), classes: int = 5, labels: Sequence[str] | None = CLASS_NAMES
) -> bytes:
    """From a picture to the scores of several classes.

    By its metadata the input is 0 to 1, the output needs softmax and has labels; without labels it says nothing.
    """
    net = _Network(size)
    net.conv(8)
    net.conv(classes, activation="NONE")
    if labels is None:
        return net.build()
    return with_labels(net.build(metadata_of(activation=2, has_labels=True)), "\n".join(labels).encode())
