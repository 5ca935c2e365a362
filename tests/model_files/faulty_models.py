"""Models that have one fault each, and their twins without it, on which advice is tested."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.model_files.sketch import Sketch

Step = Callable[[Sketch, int], int]  # adds ops behind a tensor of 8 channels
Draw = Callable[[Sketch], None]


def between(step: Step, size: int = 8) -> Draw:
    """A model of two convolutions with something between them."""

    def draw(model: Sketch) -> None:
        x = model.conv(model.image(size, size, 4), 8, (3, 3))
        model.output(model.conv(step(model, x), 4, (3, 3)))

    return draw


def nothing(model: Sketch, x: int) -> int:
    return x


@dataclass(frozen=True)
class Faulty:
    """A model with a fault, and the model without it."""

    name: str
    kind: str  # of the advice
    faulty: Draw
    mended: Draw
    slack_bytes: int = 0  # by which the twin may save more than advice says


def ordered(*order: int) -> Step:
    def step(model: Sketch, x: int) -> int:
        shape = tuple(model.shape(x)[k] for k in order)
        return model.op("TRANSPOSE", [x, model.constant(order, "int32")], shape)

    return step


def shaped(*shape: int) -> Step:
    return lambda model, x: model.op("RESHAPE", [x, model.constant(shape, "int32")], shape, new_shape=shape)


def unary(op: str) -> Step:
    return lambda model, x: model.unary(op, x)


def both(*steps: Step) -> Step:
    """One step behind the other."""

    def step(model: Sketch, x: int) -> int:
        for each in steps:
            x = each(model, x)
        return x

    return step


def padded(*amounts: tuple[int, int]) -> Step:
    return lambda model, x: model.pad(x, *amounts)


def sliced(begin: Sequence[int], sizes: Sequence[int]) -> Step:
    def step(model: Sketch, x: int) -> int:
        return model.op("SLICE", [x, *(model.constant(each, "int32") for each in (begin, sizes))], tuple(sizes))

    return step


def blocks(op: str, shape: Sequence[int]) -> Step:
    return lambda model, x: model.op(op, [x], tuple(shape), block_size=2)


def reversed_rows(model: Sketch, x: int) -> int:
    return model.op("REVERSE_V2", [x, model.constant((1,), "int32")], model.shape(x))


def resized(model: Sketch, x: int) -> int:
    return model.resize(x, model.shape(x)[1:3])  # type: ignore[arg-type]


def split(model: Sketch, x: int) -> int:
    batch, height, width, channels = model.shape(x)
    half = (batch, height, width, channels // 2)
    parts = model.split("SPLIT", [model.constant(3, "int32"), x], [half, half], num_splits=2)
    return model.op("CONCATENATION", parts, model.shape(x), axis=3)


def plus_zero(model: Sketch, x: int) -> int:
    return model.op("ADD", [x, model.constant(np.zeros(model.shape(x)[3:]))], model.shape(x))


def rounded(model: Sketch, x: int) -> int:
    """QUANTIZE and DEQUANTIZE of 16 bits, which stay on the CPU."""
    between = model.tensor(model.shape(x), "int16", scales=(0.05,), zero_points=(0,))
    model.op_of("QUANTIZE", [x], [between])
    return model.unary("DEQUANTIZE", between)


def at_least(value: float) -> Step:
    return lambda model, x: model.op("MAXIMUM", [x, model.constant(value)], model.shape(x))


def leaky(model: Sketch, x: int) -> int:
    return model.op("LEAKY_RELU", [x], model.shape(x), alpha=0.25)


def softmax(model: Sketch, x: int) -> int:
    return model.unary("SOFTMAX", x, beta=1.0)


def packed(model: Sketch, x: int) -> int:
    """One map among several of one more dimension, and out again."""
    shape = model.shape(x)
    whole = model.op("PACK", [x], (*shape[:2], 1, *shape[2:]), axis=2, values_count=1)
    return model.op("UNPACK", [whole], shape, axis=2, num=1)


def in_batches(crops: Sequence[Sequence[int]]) -> Step:
    """Blocks as batches, and back without some rows and columns."""

    def step(model: Sketch, x: int) -> int:
        block, none = model.constant((2, 2), "int32"), model.constant(((0, 0), (0, 0)), "int32")
        _, height, width, channels = model.shape(x)
        apart = model.op("SPACE_TO_BATCH_ND", [x, block, none], (4, height // 2, width // 2, channels))
        cut = model.constant(crops, "int32")
        rows, columns = (size - sum(crop) for size, crop in zip((height, width), crops, strict=True))
        return model.op("BATCH_TO_SPACE_ND", [apart, block, cut], (1, rows, columns, channels))

    return step


def cast(dtype: str) -> Step:
    def step(model: Sketch, x: int) -> int:
        return model.op("CAST", [x], model.shape(x), dtype)

    return step


def layer(activation: str) -> Step:
    return lambda model, x: model.conv(x, 8, (3, 3), activation=activation)


def of_layer(activation: str, op: str) -> Step:
    """An activation behind a layer that has one."""
    return both(layer(activation), unary(op))


NEG, RELU, SQUARE = unary("NEG"), unary("RELU"), unary("SQUARE")
TO_INT, TO_BOOL, TO_FLOAT = cast("int32"), cast("bool"), cast("float32")
PADDED = padded((0, 0), (1, 2), (3, 0), (0, 0))
# The name, something in vain, the same without it, and what looks like it but does something.
IDLE: tuple[tuple[str, Step, Step, Step], ...] = (
    (
        "TRANSPOSE",
        both(ordered(0, 3, 1, 2), ordered(0, 2, 3, 1)),
        nothing,
        both(ordered(0, 3, 1, 2), ordered(0, 3, 1, 2)),
    ),
    ("RESHAPE", both(shaped(1, 16, 16, 2), shaped(1, 8, 8, 8)), nothing, shaped(1, 16, 4, 8)),
    ("PAD", both(PADDED, sliced((0, 1, 3, 0), (1, 8, 8, 8))), nothing, both(PADDED, sliced((0,) * 4, (1, 8, 8, 8)))),
    ("RELU", both(RELU, RELU), RELU, both(NEG, RELU)),
    ("RELU of a layer", of_layer("RELU6", "RELU"), layer("RELU6"), of_layer("NONE", "RELU")),
    ("RELU6 of RELU_N1_TO_1", of_layer("RELU6", "RELU6"), layer("RELU6"), of_layer("RELU_N1_TO_1", "RELU6")),
    ("LEAKY_RELU", both(RELU, leaky), RELU, both(NEG, leaky)),
    ("MAXIMUM", both(unary("TANH"), at_least(-1.0)), unary("TANH"), both(unary("TANH"), at_least(0.0))),
    ("RELU of MAXIMUM", both(at_least(0.5), RELU), at_least(0.5), both(at_least(-0.5), RELU)),
    ("RELU of SOFTMAX", both(softmax, RELU), softmax, both(softmax, NEG, RELU)),
    ("ABS", both(SQUARE, unary("ABS")), SQUARE, both(NEG, unary("ABS"))),
    ("RESIZE_BILINEAR", resized, nothing, lambda model, x: model.resize(x, (9, 7))),
    ("NEG", both(NEG, NEG), nothing, NEG),
    (
        "SPACE_TO_DEPTH",
        both(blocks("SPACE_TO_DEPTH", (1, 4, 4, 32)), blocks("DEPTH_TO_SPACE", (1, 8, 8, 8))),
        nothing,
        both(blocks("SPACE_TO_DEPTH", (1, 4, 4, 32)), shaped(1, 8, 8, 8)),
    ),
    ("SPACE_TO_BATCH_ND", in_batches(((0, 0), (0, 0))), nothing, in_batches(((0, 1), (1, 0)))),
    ("PACK", packed, nothing, NEG),
    ("REVERSE_V2", both(reversed_rows, reversed_rows), nothing, reversed_rows),
    ("SPLIT", split, nothing, lambda model, x: model.concatenation(x, x)),
    ("ADD", plus_zero, nothing, lambda model, x: model.op("ADD", [x, model.random(8)], model.shape(x))),
    ("QUANTIZE", rounded, nothing, NEG),
    ("CAST", both(TO_BOOL, TO_FLOAT, TO_BOOL, TO_FLOAT), both(TO_BOOL, TO_FLOAT), both(TO_INT, TO_FLOAT)),
)


def five_channels(channels: int) -> Draw:
    """Weights of float16, a residual sum, a depthwise convolution and slopes: all of so many channels."""

    def draw(model: Sketch) -> None:
        x = model.conv(model.image(20, 30, 4), channels, (3, 3))
        x = model.op("PRELU", [x, model.random(1, 1, channels)], model.shape(x))
        weights = model.half(model.rng.uniform(-1, 1, (channels, 1, 1, channels)))
        window: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME"}
        deep = model.op("CONV_2D", [model.depthwise(x), weights, model.random(channels)], model.shape(x), **window)
        model.output(model.conv(model.binary("ADD", x, deep), 4, (3, 3)))

    return draw


def widened(channels: int) -> Draw:
    """A residual sum with a PAD of channels."""

    def draw(model: Sketch) -> None:
        x = model.conv(model.image(20, 30, 4), 8, (3, 3))
        wide = model.binary("ADD", model.conv(x, channels), model.pad(x, (0, 0), (0, 0), (0, 0), (0, channels - 8)))
        model.output(model.conv(wide, 4, (3, 3)))

    return draw


def picture(inputs: int, outputs: int) -> Draw:
    def draw(model: Sketch) -> None:
        x = model.conv(model.image(20, 30, inputs), 8, (3, 3), activation="RELU")
        model.output(model.conv(x, outputs, (3, 3)))

    return draw


def swished(before: bool) -> Draw:
    """A sum with the value before an activation, or behind it."""

    def draw(model: Sketch) -> None:
        x = model.conv(model.image(20, 30, 4), 8, (3, 3))
        active = model.unary("HARD_SWISH", x)
        deep = model.conv(active, 8, (3, 3))
        model.output(model.conv(model.binary("ADD", deep, x if before else active), 4, (3, 3)))

    return draw


def joined(*channels: int) -> Draw:
    def draw(model: Sketch) -> None:
        x = model.image(20, 32, 4)
        parts = [model.conv(x, count, (3, 3)) for count in channels]
        model.output(model.conv(model.concatenation(*parts), 4, (3, 3)))

    return draw


def ended(step: Step) -> Draw:
    """Something behind the last layer."""

    def draw(model: Sketch) -> None:
        model.output(step(model, model.conv(model.image(20, 30, 4), 8, (3, 3))))

    return draw


def custom(model: Sketch, x: int) -> int:
    return model.op("TheirOwnOp", [x], model.shape(x))


_PAGE = 8 * 8 * 8 * 4
_SLICE = 20 * 32 * 16 + 9 * 4 * 16 + 16  # that the layer of 5 channels writes more than that of 4, and has of weights
FAULTS: tuple[Faulty, ...] = (
    Faulty("5 channels", "channels", five_channels(5), five_channels(4)),
    Faulty("10 channels", "channels", five_channels(10), five_channels(8)),
    Faulty("14 channels by a PAD", "channels", widened(14), widened(12)),
    Faulty("order of maps", "move", between(ordered(0, 3, 1, 2)), between(nothing)),
    Faulty("a RESHAPE at the end", "move", ended(shaped(1, 60, 80)), ended(nothing)),
    Faulty("a TRANSPOSE at the end", "move", ended(ordered(0, 3, 1, 2)), ended(nothing)),
    Faulty("parts of 5 and 3", "move", joined(5, 3), joined(4, 4), slack_bytes=_SLICE),
    Faulty("RGB", "rgb input", picture(3, 4), picture(4, 4)),
    Faulty("RGB out", "rgb output", picture(4, 3), picture(4, 4)),
    Faulty("swish beside a sum", "activation", swished(before=True), swished(before=False)),
    Faulty("custom op", "split", between(custom), between(unary("NEG")), slack_bytes=4 * _PAGE),
    *(Faulty(name, "idle", between(step), between(without)) for name, step, without, _ in IDLE),
)
# Models that look as if they had a fault, and do not.
CLEAN: tuple[tuple[str, str, Draw], ...] = (
    *((f"{n} channels", "channels", five_channels(n)) for n in (4, 7, 8, 12)),
    ("2 channels", "channels", five_channels(2)),
    ("6 outputs", "channels", picture(4, 6)),
    ("a RESHAPE that is a view", "move", between(shaped(1, 4, 16, 8))),
    ("a TRANSPOSE that is read through", "move", between(ordered(0, 2, 1, 3))),
    ("an activation of a layer", "activation", swished(before=False)),
    ("a vector of three", "rgb output", lambda model: model.output(model.mean(model.conv(model.image(9, 9, 4), 3)))),
    ("a custom op at the end", "split", ended(custom)),
    (
        "a custom op at the start",
        "split",
        lambda model: model.output(model.conv(custom(model, model.image(9, 9, 4)), 4)),
    ),
    *((f"{name} that does something", "idle", between(step)) for name, _, _, step in IDLE),
)
