"""A seed goes in, a network comes out that has what kernels may repeat: small maps, long vectors, long windows."""

import numpy as np

from tests.generators.random_networks import FUSED, RandomNetwork, Step
from tests.model_files.sketch import Sketch

MOST_WEIGHTS = 300_000  # of one op
MOST_TAPS = 512  # of a window that is as large as its map
MOST_JOINED = 400  # channels


def cliff_network(seed: int) -> Sketch:
    """A network of one to ten steps; `.build()` gives the .tflite file."""
    return _CliffNetwork(seed, 1).grow()


class _CliffNetwork(RandomNetwork):
    channels = (1, 3, 8, 17, 32, 64, 128, 257, 513)
    sides = (1, 1, 1, 1, 2, 3, 4, 7, 16)
    large_sides = (1, 64, 200)
    kernels = ((1, 1), (1, 1), (3, 3), (5, 5), (7, 7), (1, 64), (16, 16), (1, 250), (40, 1))

    def steps(self) -> tuple[Step, ...]:
        return (*super().steps(), (8, self.cell), (5, self.sliced), (3, self.joined), (4, self.whole_window))

    def convolved(self, x: int) -> int:
        """With a window, and as many channels, as a bound on weights allows."""
        options = self.window(x)
        if np.prod(options["kernel"]) * self.shape(x)[3] > MOST_WEIGHTS:
            options = {}
        most = MOST_WEIGHTS // int(np.prod(options.get("kernel", (1, 1))) * self.shape(x)[3])
        return self.conv(x, min(self.pick(self.channels), most), activation=self.pick(FUSED), **options)

    def sliced(self, x: int) -> int:
        """Some channels of it."""
        size, channels = self.shape(x)[1:3], self.shape(x)[3]
        first = int(self.rng.integers(0, max(1, channels // 2)))
        last = int(self.rng.integers(first + 1, channels + 1))
        corners = ((0, 0, 0, first), (1, *size, last), (1, 1, 1, 1))
        inputs = [x, *(self.constant(corner, "int32") for corner in corners)]
        out = self.op("STRIDED_SLICE", inputs, (1, *size, last - first))
        return self.remember(out, self.magnitude[x])

    def joined(self, x: int) -> int:
        """With others of its size."""
        if self.shape(x)[3] > MOST_JOINED:
            return self.sliced(x)
        others = [other for other in self.made if self.shape(other)[:3] == self.shape(x)[:3]]
        return self.remember(self.concatenation(x, self.pick(others), self.unary("TANH", x)), self.magnitude[x])

    def whole_window(self, x: int) -> int:
        """A window as large as its map: one pixel is left."""
        _, height, width, channels = self.shape(x)
        if height * width > MOST_TAPS:
            return self.convolved(x)
        most = max(1, MOST_WEIGHTS // (height * width * channels))
        return self.conv(x, min(self.pick(self.channels), most), (height, width), padding="VALID")

    def cell(self, x: int) -> int:
        """Gates of one matrix, of which each is a slice, and a state: a recurrent cell that converters write out."""
        vector, channels = self.mean(x), self.pick((16, 32, 64, 128))
        for _ in range(self.pick((1, 1, 2))):
            state = self.image(1, 1, channels)
            gates = self.binary("ADD", self.conv(vector, 3 * channels), self.conv(state, 3 * channels))
            read, kept, new = (self._gate(gates, k * channels, channels) for k in range(3))
            old = self.binary("MUL", self.unary("LOGISTIC", kept), state)
            vector = self.binary("ADD", old, self.binary("MUL", self.unary("LOGISTIC", read), self.unary("TANH", new)))
        return self.remember(vector, 2.0)

    def _gate(self, gates: int, first: int, channels: int) -> int:
        corners = ((0, 0, 0, first), (1, 1, 1, first + channels), (1, 1, 1, 1))
        return self.op(
            "STRIDED_SLICE", [gates, *(self.constant(corner, "int32") for corner in corners)], (1, 1, 1, channels)
        )
