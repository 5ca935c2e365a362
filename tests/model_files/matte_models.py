"""Files of mattes with random weights: of Robust Video Matting's form, with r1 to r4, and of one frame, as MODNet's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.model_files.metadata_writer import metadata_of
from tests.model_files.model_builder import ModelBuilder

MATTE_SIZE = (64, 48)  # (width, height)
_DEPTHS = (4, 5, 6, 7)  # of r1 to r4, at a half to a sixteenth of the picture
RVM_INPUTS = ("src", "r1i", "r2i", "r3i", "r4i")
RVM_OUTPUTS = ("fgr", "pha", "r1o", "r2o", "r3o", "r4o")


class _Layers(ModelBuilder):
    """Layers whose values keep about their size."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self.tensors[tensor].shape

    def named(self, tensor: int, name: str) -> int:
        self.tensors[tensor] = replace(self.tensors[tensor], name=name)
        return tensor

    def conv(self, x: int, depth: int, stride: int = 1, activation: str = "NONE", gain: float = 1.0) -> int:
        _, height, width, before = self.shape(x)
        weights = self.constant(self.rng.normal(0, gain / (9 * before) ** 0.5, (depth, 3, 3, before)))
        bias = self.constant(self.rng.normal(0, 0.1, depth))
        shape = (1, -(-height // stride), -(-width // stride), depth)
        return self.op(
            "CONV_2D", [x, weights, bias], shape, padding="SAME", stride=(stride, stride), activation=activation
        )

    def unary(self, op: str, x: int) -> int:
        return self.op(op, [x], self.shape(x))

    def binary(self, op: str, x: int, y: int) -> int:
        return self.op(op, [x, y], np.broadcast_shapes(self.shape(x), self.shape(y)))

    def joined(self, *xs: int) -> int:
        depth = sum(self.shape(x)[3] for x in xs)
        return self.op("CONCATENATION", list(xs), (*self.shape(xs[0])[:3], depth), axis=3)

    def resized(self, x: int, size: Sequence[int]) -> int:
        shape = (1, *size, self.shape(x)[3])
        return self.op("RESIZE_BILINEAR", [x, self.constant(tuple(size), "int32")], shape, half_pixel_centers=True)

    def remembered(self, x: int, state: int) -> int:
        """A gated recurrent unit of convolutions: what becomes of the state."""
        depth = self.shape(state)[3]
        gates = self.unary("LOGISTIC", self.conv(self.joined(x, state), 2 * depth, gain=2))
        part = (*self.shape(state)[:3], depth)
        axis = self.constant(3, "int32")
        reset, update = self.split("SPLIT", [axis, gates], (part, part), num_splits=2)
        new = self.unary("TANH", self.conv(self.joined(x, self.binary("MUL", reset, state)), depth, gain=2))
        kept = self.binary("MUL", self.binary("SUB", self.constant([1.0]), update), state)
        return self.binary("ADD", kept, self.binary("MUL", update, new))

    def size_of(self, x: int) -> int:
        """Its rows and columns, as a tensor."""
        begin, end, step = (self.constant((value,), "int32") for value in (1, 3, 1))
        shape = self.op("SHAPE", [x], (4,), "int32", out_type=2)
        return self.op("STRIDED_SLICE", [shape, begin, end, step], (2,), "int32")

    def resized_to(self, x: int, size: int) -> int:
        """Of a size that is computed, as are those of all that is made of it."""
        return self.op("RESIZE_BILINEAR", [x, size], (1, 1, 1, self.shape(x)[3]), half_pixel_centers=True)

    def like(self, state: int, x: int, depth: int) -> int:
        """A state of any size as wide and high as x."""
        ends = [self.op("SHAPE", [x], (4,), "int32", out_type=2), self.constant((0,), "int32")]
        one = self.constant((1,), "int32")
        ends = [self.op("STRIDED_SLICE", [*ends, self.constant((3,), "int32"), one], (3,), "int32")]
        shape = self.op("CONCATENATION", [*ends, self.constant((depth,), "int32")], (4,), "int32", axis=0)
        return self.op("BROADCAST_TO", [state, shape], (*self.shape(x)[:3], depth))

    def bounded(self, x: int) -> int:
        return self.binary("MINIMUM", self.binary("MAXIMUM", x, self.constant([0.0])), self.constant([1.0]))


def recurrent_matte(
    size: tuple[int, int] = MATTE_SIZE,
    ratio: bool = False,
    names: bool = True,
    foreground: bool = True,
    says: bool = False,
    on_cpu: bool = False,
    order: Sequence[int] = (0, 1, 2, 3, 4, 5),
    inputs: Sequence[int] = (0, 1, 2, 3, 4),
) -> bytes:
    """As Robust Video Matting is exported; `order` and `inputs`: where RVM_OUTPUTS and RVM_INPUTS are in the file.

    By its metadata, if it `says` so, pictures are from 0 to 1. `on_cpu`: it has an op that TensorFlow Lite alone runs.
    """
    m, (width, height) = _Layers(seed=5), size
    source = m.input((1, height, width, 3))
    states = [m.input((1, -(-height // (2 << k)), -(-width // (2 << k)), depth)) for k, depth in enumerate(_DEPTHS)]
    if ratio:
        m.named(m.input((1,)), "downsample_ratio")
    seen, x = list[int](), source
    for depth in (6, 8, 8, 8):
        x = m.conv(x, depth, 2, "RELU")
        seen.append(x)
    after = list[int]()
    for level in (3, 2, 1, 0):
        after.insert(0, m.remembered(m.conv(x, _DEPTHS[level], activation="RELU"), states[level]))
        if level:
            x = m.joined(m.resized(after[0], m.shape(seen[level - 1])[1:3]), seen[level - 1])
    x = m.conv(m.joined(m.resized(after[0], (height, width)), source), 6, activation="RELU")
    alpha = m.binary("ADD", m.conv(x, 1, gain=2), m.constant([0.4]))
    pha = m.bounded(m.cpu_op(alpha) if on_cpu else alpha)
    fgr = m.bounded(m.binary("ADD", m.conv(x, 3, gain=0.5), source))
    found = [fgr, pha, *after]
    if not foreground:
        order = [place for place in order if place]
    m.output(*(found[place] for place in order))
    if says:
        m.metadata = metadata_of(inputs=5 + ratio, outputs=len(order))
    given = m.inputs[:5]
    m.inputs[:5] = [given[place] for place in inputs]
    if names:
        for tensor, name in (*zip(given, RVM_INPUTS, strict=True), *zip(found, RVM_OUTPUTS, strict=True)):
            m.named(tensor, name)
    return m.build()


def open_matte(
    size: tuple[int, int] | None = None, order: Sequence[int] = (0, 1, 2, 3, 4, 5), names: bool = True
) -> bytes:
    """As Robust Video Matting is when nothing is fixed: states of one value, sizes by a ratio, pictures of any size.

    Of a size its picture has that one in the file. `order` is where RVM_OUTPUTS are in the file.
    """
    m, (width, height) = _Layers(seed=5), size or (1, 1)
    source = m.tensor((1, height, width, 3), signature=None if size else (-1, -1, -1, 3))
    states = [m.tensor((1, 1, 1, 1), signature=(-1, -1, -1, -1)) for _ in _DEPTHS]
    ratio = m.tensor((1,))
    m.inputs += [source, *states, ratio]
    floats = m.op("CAST", [m.size_of(source)], (2,), in_data_type=2, out_data_type=0)
    small = m.op("CAST", [m.binary("MUL", floats, ratio)], (2,), "int32", in_data_type=0, out_data_type=2)
    seen, x = list[int](), m.resized_to(source, small)
    for depth in (6, 8, 8, 8):
        x = m.conv(x, depth, 2, "RELU")
        seen.append(x)
    after = list[int]()
    for level in (3, 2, 1, 0):
        depth, own = _DEPTHS[level], m.conv(x, _DEPTHS[level], activation="RELU")
        after.insert(0, m.remembered(own, m.like(states[level], own, depth)))
        if level:
            x = m.joined(m.resized_to(after[0], m.size_of(seen[level - 1])), seen[level - 1])
    x = m.conv(m.joined(m.resized_to(after[0], m.size_of(source)), source), 6, activation="RELU")
    pha = m.bounded(m.binary("ADD", m.conv(x, 1, gain=2), m.constant([0.4])))
    fgr = m.bounded(m.binary("ADD", m.conv(x, 3, gain=0.5), source))
    found = [fgr, pha, *after]
    m.output(*(found[place] for place in order))
    if names:
        for tensor, name in zip((*m.inputs, *found), (*RVM_INPUTS, "downsample_ratio", *RVM_OUTPUTS), strict=True):
            m.named(tensor, name)
    return m.build()


def single_matte(size: tuple[int, int] = MATTE_SIZE, foreground: bool = False) -> bytes:
    """As MODNet is exported: an alpha that ends in a sigmoid; perhaps a foreground beside it."""
    m, (width, height) = _Layers(seed=6), size
    source = m.input((1, height, width, 3))
    x = m.conv(m.conv(source, 8, 2, "RELU"), 8, activation="RELU")
    x = m.conv(m.joined(m.resized(x, (height, width)), source), 6, activation="RELU")
    m.output(m.unary("LOGISTIC", m.conv(x, 1, gain=3)))
    if foreground:
        m.output(m.unary("LOGISTIC", m.conv(x, 3)))
    return m.build()
