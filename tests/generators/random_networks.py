"""A seed goes in, a small segmentation-like network of random ops, sizes and wiring comes out, or an odd device.

Networks hold only ops that the GPU takes, and values of about one, so that whatever goes wrong is the engine's fault.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tests.model_files.sketch import Shape, Size, Sketch, slid
from texelflow.gpu_delegate.device.device import Device

Item = TypeVar("Item")
Step = tuple[int, Callable[[int], int]]

CHANNELS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 33, 40)
LARGE_SIDES = (33, 40, 67)
SIDES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 19, 24)
KERNELS = ((1, 1), (1, 1), (2, 2), (3, 3), (3, 3), (5, 5), (1, 3), (3, 2), (5, 1))
STRIDES = ((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (3, 2))
FUSED = ("NONE", "NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
SMOOTH = ("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LOGISTIC", "TANH", "ABS", "NEG")
OF_POSITIVE = ("LOG", "SQRT", "RSQRT", "EXP", "SQUARE")
TRANSPOSED = (
    ((2, 2), (2, 2)), ((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (2, 2)),
    ((3, 3), (1, 1)), ((3, 3), (3, 3)), ((2, 3), (2, 1)), ((2, 2), (3, 3)),
)  # fmt: skip
RESIZES: tuple[dict[str, bool], ...] = ({}, {"align_corners": True}, {"half_pixel_centers": True})
LARGEST_SIDE = 70
LARGEST_VALUE = 30.0  # that a tensor may have by a rough estimate before something bounds it
MOST_INPUTS = 3


def random_network(seed: int, batch: int = 1) -> Sketch:
    """A network of one to a hundred ops; `.build()` gives the .tflite file, and `.rng` goes on with the seed."""
    return RandomNetwork(seed, batch).grow()


class RandomNetwork(Sketch):
    """Grows from one input, step by step; a step reads what was made last, or sometimes anything made before."""

    channels: Sequence[int] = CHANNELS
    sides: Sequence[int] = SIDES
    large_sides: Sequence[int] = LARGE_SIDES
    kernels: Sequence[Size] = KERNELS

    def __init__(self, seed: int, batch: int) -> None:
        super().__init__(seed)
        self.batch = batch
        self.made: list[int] = []  # maps that a step may read
        self.magnitude: dict[int, float] = {}  # rough estimates
        self.inner_outputs: list[int] = []  # values that are read and outputs as well

    def grow(self) -> Sketch:
        sides = self.large_sides if self.chance(0.1) else self.sides
        self.remember(self.image(self.pick(sides), self.pick(sides), self.pick(self.channels), self.batch), 1.0)
        steps = self.steps()
        weights = np.array([weight for weight, _ in steps]) / sum(weight for weight, _ in steps)
        if self.chance(0.1):
            self.remember(self.constant(self.rng.uniform(-1, 1, self.shape(self.made[0]))), 1.0)
        for _ in range(int(self.rng.integers(1, 11 if self.chance(0.95) else 40))):
            x = self.made[-1] if self.chance(0.75) else self.pick(self.made)
            if self.magnitude[x] > LARGEST_VALUE:
                x = self.remember(self.unary(self.pick(("TANH", "RELU6", "LOGISTIC")), x), 1.0)
            self.remember(steps[self.rng.choice(len(steps), p=weights)][1](x), self.magnitude[x] + 1)
        self.name_outputs()
        return self

    def steps(self) -> tuple[Step, ...]:
        """What a network may grow by, and how likely each is, compared with the others."""
        return (
            (6, self.convolved), (4, self.depthwise_step), (2, self.transposed), (5, self.activated),
            (1, self.of_positive), (3, self.with_constant), (6, self.with_other), (3, self.gated), (2, self.masked),
            (3, self.resized), (2, self.pooled), (2, self.averaged), (1, self.image_pooled), (1, self.padded),
            (1, self.divided), (2, self.bottleneck), (1, self.classified), (1, self.doubled), (1, self.diamonds),
            (1, self.fibonacci),
        )  # fmt: skip

    def name_outputs(self) -> None:
        """The last value, sometimes behind a mask's head, and sometimes others, whether they are consumed or not."""
        last, head = self.made[-1], []
        if self.chance(0.3):
            head = [self.mask_head(last)]
            last = self.unary("LOGISTIC", head[0])
        written = [op.outputs[0] for op in self.ops if op.name != "PAD"]  # which has no kernel of its own
        others = [self.pick(written) for _ in range(int(self.rng.integers(0, 3)))] if self.chance(0.5) else []
        others += (head if self.chance(0.3) else []) + self.inner_outputs
        self.output(*dict.fromkeys([last if last in written else written[-1], *others]))

    def mask_head(self, x: int) -> int:
        if max(self.shape(x)[1:3]) * 2 > LARGEST_SIDE or self.chance(0.5):
            return self.conv(x, 1, self.pick(((1, 1), (3, 3))))
        return self.transpose(x, 1, *self.pick((((2, 2), (2, 2)), ((3, 3), (2, 2)))), "SAME", custom=self.chance(0.5))

    # Chance -------------------------------------------------------------------------------------------------------

    def pick(self, choices: Sequence[Item]) -> Item:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def random(self, *shape: int) -> int:
        """Weights that keep a convolution's values about as large as they were."""
        fan_in = np.prod(shape[1:] if shape[0] > 1 else shape[1:3]) if len(shape) == 4 else 1
        return self.constant(self.rng.uniform(-1, 1, shape) * (3.0 / max(fan_in, 3)) ** 0.5)

    def remember(self, tensor: int, magnitude: float) -> int:
        self.magnitude.setdefault(tensor, magnitude)
        if len(self.shape(tensor)) == 4:
            self.made.append(tensor)
        return tensor

    # Steps --------------------------------------------------------------------------------------------------------

    def convolved(self, x: int) -> int:
        options = self.window(x)
        return self.conv(x, self.pick(self.channels), activation=self.pick(FUSED), **options)

    def depthwise_step(self, x: int) -> int:
        multiplier = self.pick((1, 1, 1, 1, 2, 3)) if self.shape(x)[3] < 14 else 1
        options = self.window(x)
        return self.depthwise(x, multiplier=multiplier, activation=self.pick(FUSED), **options)

    def window(self, x: int, dilated: bool = True) -> dict[str, Any]:
        """Options of a window that fits into the map."""
        options: dict[str, Any] = {"kernel": self.pick(self.kernels)}
        if dilated and self.chance(0.15):
            options["dilation"] = self.pick(((2, 2), (1, 2), (3, 2)))
        fits = min(slid(self.shape(x)[1:3], padding="VALID", **options)) > 0
        padding = "VALID" if fits and self.chance(0.3) else "SAME"
        return options | {"stride": self.pick(STRIDES), "padding": padding}

    def transposed(self, x: int) -> int:
        kernel, stride = self.pick(TRANSPOSED)
        if max(n * step for n, step in zip(self.shape(x)[1:3], stride, strict=True)) > LARGEST_SIDE:
            return self.convolved(x)
        custom, channels = self.chance(0.5), min(self.pick(self.channels), 17)
        options: dict[str, Any] = {} if custom else {"activation": self.pick(FUSED)}
        return self.transpose(x, channels, kernel, stride, self.pick(("SAME", "VALID")), custom, **options)

    def activated(self, x: int) -> int:
        if self.chance(0.1):
            return self.unary("LEAKY_RELU", x, alpha=self.pick((0.1, 0.5, 1.5)))
        return self.unary(self.pick(SMOOTH), x)

    def positive(self, x: int) -> int:
        """Values from a half to three halves."""
        return self.binary("ADD", self.unary("LOGISTIC", x), self.constant(0.5))

    def of_positive(self, x: int) -> int:
        return self.unary(self.pick(OF_POSITIVE), self.positive(x))

    def divided(self, x: int) -> int:
        others = [other for other in self.made if self.shape(other) == self.shape(x)]
        return self.binary("DIV", x, self.positive(self.pick(others)))

    def combined(self, x: int, y: int) -> int:
        """Both in a binary op, in either order."""
        op = self.pick(("ADD", "ADD", "ADD", "SUB", "MUL", "MUL", "MAXIMUM", "MINIMUM"))
        pair = (x, y) if self.chance(0.7) else (y, x)
        options: dict[str, Any] = {"activation": self.pick(FUSED)} if op in ("ADD", "SUB", "MUL") else {}
        out = self.binary(op, *pair, **options)
        first, second = (self.magnitude.get(tensor, 2.0) for tensor in pair)
        self.magnitude[out] = first * second if op == "MUL" else first + second
        return out

    def with_constant(self, x: int) -> int:
        _, height, width, channels = self.shape(x)
        shapes: tuple[Shape, ...] = (
            (), (1,), (channels,), (channels,), (1, 1, 1, channels), (1, channels), (1, height, width, 1),
            (1, height, width, channels), (1, 1, channels), (1, 1, 1, 1),
        )  # fmt: skip
        return self.combined(x, self.constant(self.rng.uniform(-1, 1, self.pick(shapes))))

    def with_other(self, x: int) -> int:
        """A value from further back: as it is where it fits, else projected or resized first; sometimes an input."""
        if len(self.inputs) < MOST_INPUTS and self.chance(0.15):
            _, height, width, channels = self.shape(x)
            shapes = ((height, width, channels), (height, width, 1), (1, 1, channels), (1, 1, 1))
            return self.combined(x, self.remember(self.image(*self.pick(shapes)), 1.0))
        other = self.pick(self.made)
        _, height, width, channels = self.shape(x)
        if (1, 1) not in (self.shape(other)[1:3], (height, width)) and self.shape(other)[1:3] != (height, width):
            other = self.resize(other, (height, width), "RESIZE_BILINEAR", **self.pick(RESIZES))
        if 1 not in (self.shape(other)[3], channels) and self.shape(other)[3] != channels:
            other = self.conv(other, channels)
        return self.combined(x, other)

    def gated(self, x: int) -> int:
        """Squeeze and excite."""
        channels = self.shape(x)[3]
        small = self.conv(self.mean_of(x), self.pick(self.channels), activation=self.pick(("RELU", "RELU6")))
        gate = self.unary(self.pick(("LOGISTIC", "TANH")), self.conv(small, self.pick((channels, channels, 1))))
        return self.binary("MUL", x, gate)

    def mean_of(self, x: int) -> int:
        """A map's mean in one of the ways in which converters write it."""
        if self.chance(0.3):
            size = self.shape(x)[1:3]
            return self.pool("AVERAGE_POOL_2D", x, (size[0], size[1]), stride=size, padding="VALID")
        if self.chance(0.3):
            others = [other for other in self.made if self.shape(other) == self.shape(x)]
            return self.mean(self.binary("ADD", x, self.pick(others)))
        if self.chance(0.2):
            x = self.resize(x, (self.pick(self.sides), self.pick(self.sides)), "RESIZE_BILINEAR", **self.pick(RESIZES))
        return self.mean(x)

    def masked(self, x: int) -> int:
        """One value for each pixel, over all channels."""
        mask = self.unary("LOGISTIC", self.conv(x, 1, self.pick(((1, 1), (3, 3)))))
        self.inner_outputs += [mask] if self.chance(0.2) else []
        return self.combined(x, mask)

    def resized(self, x: int) -> int:
        height, width = self.shape(x)[1:3]
        doubled = (2 * height, 2 * width)
        size: Size = (self.pick(self.sides), self.pick(self.sides))
        if max(doubled) <= LARGEST_SIDE and self.chance(0.6):
            size = doubled
        op = self.pick(("RESIZE_BILINEAR", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
        out = self.remember(self.resize(x, size, op, **self.pick(RESIZES)), self.magnitude[x])
        self.inner_outputs += [out] if self.chance(0.1) else []
        return self.conv(out, self.pick(self.channels)) if self.chance(0.4) else out

    def pooled(self, x: int) -> int:
        options = self.window(x, dilated=False)
        return self.pool(self.pick(("AVERAGE_POOL_2D", "MAX_POOL_2D")), x, activation=self.pick(FUSED), **options)

    def averaged(self, x: int) -> int:
        return self.mean_of(x)

    def image_pooled(self, x: int) -> int:
        """The mean, transformed and spread over the map again."""
        height, width = self.shape(x)[1:3]
        small = self.conv(self.mean_of(x), self.shape(x)[3], activation="RELU")
        op = self.pick(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
        return self.combined(x, self.resize(small, (height, width), op, **self.pick(RESIZES)))

    def padded(self, x: int) -> int:
        rows, columns = self.pick(((1, 1), (0, 1), (2, 0))), self.pick(((1, 1), (0, 1), (0, 0)))
        wide = self.pad(x, (0, 0), rows, columns, (0, 0))
        return self.depthwise_step(wide) if self.chance(0.4) else self.convolved(wide)

    def bottleneck(self, x: int) -> int:
        channels, wide = self.shape(x)[3], self.pick(self.channels)
        y = self.unary("HARD_SWISH", self.conv(x, wide))
        y = self.remember(self.unary("RELU", self.depthwise(y, self.pick(((3, 3), (5, 5))))), 2.0)
        if self.chance(0.3):
            y = self.gated(y)
        return self.binary("ADD", self.conv(y, channels), x)

    def doubled(self, x: int) -> int:
        """Added to itself, and to itself again."""
        for _ in range(self.pick((1, 2, 5))):
            doubled = self.binary("ADD", x, x)
            self.magnitude[doubled] = 2 * self.magnitude.get(x, 2.0)
            x = self.unary("TANH", doubled) if self.magnitude[doubled] > LARGEST_VALUE else doubled
        return x

    def diamonds(self, x: int) -> int:
        """Ways that part and meet again, each behind the other."""
        for _ in range(self.pick((1, 3, 7))):
            x = self.binary("MUL", self.unary("TANH", x), self.unary(self.pick(("LOGISTIC", "TANH")), x))
        return x

    def fibonacci(self, x: int) -> int:
        """Each value from the two before it; with bounds, so that it does not grow as those numbers do."""
        before = self.unary("TANH", x)
        for _ in range(self.pick((2, 5, 9))):
            before, x = x, self.binary("ADD", self.unary("RELU_N1_TO_1", x), before, activation="RELU_N1_TO_1")
        return x

    def classified(self, x: int) -> int:
        """A vector of rank 2 from the mean, which a map may be scaled by."""
        y = self.connected(self.mean(x, keep_dims=self.chance(0.5)), self.shape(x)[3], activation=self.pick(FUSED))
        return self.combined(x, y) if self.batch == 1 and self.chance(0.7) else y


def random_device(device: Device, rng: np.random.Generator) -> Device:
    """The device with another tuning, and with limits that are no looser than its own."""

    def pick(*choices: int) -> int:
        return int(rng.choice(choices))

    limits = device.limits
    return device.with_limits(
        texture_buffer_texels=min(limits.texture_buffer_texels, pick(1 << 16, 1 << 16, 400, 30, 1)),
        shared_memory_bytes=min(limits.shared_memory_bytes, pick(1 << 15, 1 << 13)),
    ).with_tuning(
        held_slices=pick(1, 4, 8, 16, 64),
        min_fused_threads=pick(1, 1, 16, 64, 16384),
        rows=pick(1, 2, 4, 8),
        unrolled=pick(1, 64, 320, 1000),
        whole_slices=pick(0, 2, 8),
        group_width=pick(8, 32),
        group_threads=pick(32, 64, 128),
        bake_pixels=pick(1, 1, 60, 1 << 30),
        bake_weights=pick(0, 300, 3000),
        prologue_loads=pick(0, 2000, 40000, 1 << 40),
        leaves_sums=bool(pick(0, 1, 1)),
        sum_groups=pick(1, 4, 64),
        sum_threads=pick(64, 128, 256),
        sum_parts=pick(1, 3, 8) if device.tuning.sum_parts > 1 else 1,
        min_shared_threads=pick(1, 100, 4096),
    )
