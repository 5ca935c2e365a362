"""A seed goes in, a small network comes out of which the GPU lacks some ops: TensorFlow Lite computes the rest.

What is not continuous (the place of a maximum, a value cut off to an integer) is computed of inputs alone, which GPU
and CPU have alike: anything else they round differently.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.generators.random_moves import MovingNetwork
from tests.generators.random_networks import CHANNELS, KERNELS, Step
from tests.model_files.sketch import Size, Sketch
from tests.tables.move_cases import ints, reshaped

LACKED = frozenset(
    {
        "ARG_MAX", "BATCH_MATMUL", "BITWISE_XOR", "CUMSUM", "GATHER_ND", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION",
        "ONE_HOT", "REVERSE_SEQUENCE", "TOPK_V2", "ZEROS_LIKE",
    }
)  # fmt: skip
MOST_INPUTS_LOOKED_AT = 4


def random_partial(seed: int, batch: int = 1) -> Sketch:
    """A network of one to some dozen ops; `.build()` gives the .tflite file, and `.rng` goes on with the seed."""
    return PartialNetwork(seed, batch).grow()


class PartialNetwork(MovingNetwork):
    """Every map keeps its batch."""

    def steps(self) -> tuple[Step, ...]:
        lacked: tuple[Callable[[int], int], ...] = (
            self.normalized_locally, self.accumulated, self.pooled_by_norm, self.picked, self.multiplied, self.sorted,
            self.turned_back, self.zeroed, self.of_five_dimensions, self.with_places, self.with_integers,
        )  # fmt: skip
        return (
            *super().steps(),
            *((9, self.bounded(step)) for step in lacked),
            (6, self.with_halves), (4, self.with_shared_halves), (2, self.with_output_constant),
        )  # fmt: skip

    def name_outputs(self) -> None:
        """A delegate finds the file of a model by its constants: there is one at least."""
        if all(tensor.data is None for tensor in self.tensors):
            self.remember(self.with_halves(self.made[-1]), 2.0)
        super().name_outputs()

    def window(self, x: int, dilated: bool = True) -> dict[str, Any]:
        """XNNPACK pads windows that are smaller than their stride in a way of its own: there are none."""
        options = super().window(x, dilated)
        pairs = zip(options["stride"], options["kernel"], strict=True)
        return options | {"stride": tuple(min(pair) for pair in pairs)}

    def transpose(
        self, x: int, channels: int, kernel: Size, stride: Size, padding: str, custom: bool = False, **options: Any
    ) -> int:
        """TensorFlow Lite has no custom ops."""
        return super().transpose(x, channels, kernel, stride, padding, False, **options)

    # Ops that the GPU lacks ---------------------------------------------------------------------------------------

    def normalized_locally(self, x: int) -> int:
        return self.unary("LOCAL_RESPONSE_NORMALIZATION", x, radius=self.below(4), bias=1.0, alpha=0.5, beta=0.5)

    def accumulated(self, x: int) -> int:
        """Along one dimension; of small values, so that the sum is none too large."""
        out = self.op("CUMSUM", [self.unary("TANH", x), ints(self, self.pick((1, 2, 3)))], self.shape(x))
        self.magnitude[out] = float(max(self.shape(x)))
        return out

    def pooled_by_norm(self, x: int) -> int:
        return self.pool("L2_POOL_2D", x, self.pick(((1, 1), (2, 2), (3, 2))), table="Pool2DOptions")

    def picked(self, x: int) -> int:
        """Pixels from anywhere."""
        batch, height, width, channels = self.shape(x)
        rows, columns = self.below(6), self.below(6)
        total = batch * rows * columns
        places = [np.arange(total) // (rows * columns), *(self.rng.integers(0, n, total) for n in (height, width))]
        indices = ints(self, np.stack(places, axis=1).reshape(batch, rows, columns, 3))
        return self.op("GATHER_ND", [x, indices], (batch, rows, columns, channels))

    def multiplied(self, x: int) -> int:
        """By a matrix for each map."""
        depth, outputs = self.shape(x)[3], self.below(12)
        weights = self.constant(self.rng.uniform(-1, 1, (1, 1, depth, outputs)) / depth**0.5)
        return self.op("BATCH_MATMUL", [x, weights], (*self.shape(x)[:3], outputs))

    def sorted(self, x: int) -> int:
        """The largest values of each pixel. Their places are another output, which nothing reads, or CAST does."""
        count = self.below(self.shape(x)[3] + 1)
        shape = (*self.shape(x)[:3], count)
        outputs = [self.tensor(shape), self.tensor(shape, "int32")]
        values, places = self.op_of("TOPK_V2", [x, ints(self, count)], outputs)
        if x in self.inputs and self.chance(0.7):
            return self.binary("ADD", values, self.op("CAST", [places], shape))
        return values

    def turned_back(self, x: int) -> int:
        batch, height = self.shape(x)[:2]
        lengths = ints(self, self.rng.integers(1, height + 1, batch))
        return self.op("REVERSE_SEQUENCE", [x, lengths], self.shape(x), seq_dim=1, batch_dim=0)

    def zeroed(self, x: int) -> int:
        return self.binary("ADD", self.conv(x, self.shape(x)[3]), self.unary("ZEROS_LIKE", x))

    def of_five_dimensions(self, x: int) -> int:
        batch, height, width, channels = self.shape(x)
        shape = (batch, height, width, 1, channels)
        return reshaped(self, self.unary("TANH", reshaped(self, x, *shape)), batch, height, width, channels)

    # Integers that cross ------------------------------------------------------------------------------------------

    def looked_at(self) -> int:
        """A map of which GPU and CPU have the same bits."""
        maps = [index for index in self.inputs if len(self.shape(index)) == 4]
        if len(maps) < MOST_INPUTS_LOOKED_AT and self.chance(0.3):
            height, width, channels = (self.below(9) for _ in range(3))
            return self.remember(self.image(height, width, channels, self.batch), 1.0)
        return self.pick(maps)

    def with_places(self, x: int) -> int:
        """A map with where an input is largest, as one channel, or as one of ones and zeros for each."""
        y = self.looked_at()
        batch, height, width, channels = self.shape(y)
        places = self.op("ARG_MAX", [y, ints(self, 3)], (batch, height, width), "int32", output_type=2)
        if self.chance(0.5):
            flags = [ints(self, channels), self.constant(1.0), self.constant(0.0)]
            mask = self.op("ONE_HOT", [places, *flags], (batch, height, width, channels), axis=-1)
        else:
            mask = reshaped(self, self.op("CAST", [places], (batch, height, width)), batch, height, width, 1)
        return self.joint(x, mask)

    def with_integers(self, x: int) -> int:
        """A map with an input's values as integers, made on the GPU, changed on the CPU, read on the GPU."""
        y = self.looked_at()
        whole = self.op("CAST", [y], self.shape(y), "int32")
        if self.chance(0.4):
            self.inner_outputs.append(whole)
        changed = self.op("BITWISE_XOR", [whole, ints(self, 1)], self.shape(y), "int32", table="BitwiseXorOptions")
        return self.joint(x, self.op("CAST", [changed], self.shape(y)))

    def joint(self, x: int, y: int) -> int:
        """A map and another of any size, added."""
        _, height, width, channels = self.shape(x)
        if self.shape(y)[1:3] != (height, width):
            y = self.resize(y, (height, width))
        return self.binary("ADD", x, self.conv(y, channels))

    # Constants ----------------------------------------------------------------------------------------------------

    def halves(self, *shape: int) -> int:
        fan_in = max(int(np.prod(shape[1:])), 1)
        return self.half(self.rng.uniform(-1, 1, shape) * (3.0 / max(fan_in, 3)) ** 0.5)

    def with_halves(self, x: int) -> int:
        """A convolution with weights and biases of 16 bits."""
        channels, kernel = self.pick(CHANNELS), self.pick(KERNELS)
        inputs = [x, self.halves(channels, *kernel, self.shape(x)[3]), self.halves(channels)]
        options: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME"}
        return self.op("CONV_2D", inputs, (*self.shape(x)[:3], channels), **options)

    def with_shared_halves(self, x: int) -> int:
        """The same weights for the GPU and for an op that it lacks, which may come first."""
        channels = self.shape(x)[3]
        weights = self.halves(1, 3, 3, channels)
        options: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME", "depth_multiplier": 1}
        is_first = self.chance(0.5)
        other = self.normalized_locally(weights) if is_first else 0
        out = self.op("DEPTHWISE_CONV_2D", [x, weights, self.halves(channels)], self.shape(x), **options)
        return self.binary("ADD", out, self.mean(other if is_first else self.normalized_locally(weights)))

    def with_output_constant(self, x: int) -> int:
        """A constant that is an output, too."""
        bias = self.halves(self.shape(x)[3])
        self.inner_outputs += [bias] if self.chance(0.5) else []
        return self.combined(x, bias)
