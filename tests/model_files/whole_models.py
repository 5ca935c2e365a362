"""Sketches whose values are whole numbers, so that every sum is exact wherever it is computed.

Weights are small whole numbers and scales powers of two, so that every sum is exact wherever it is computed.
"""

from dataclasses import replace
from types import MappingProxyType

from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.model.graph import Graph, Steps
from texelflow.gpu_delegate.reading.reader import read_model


class WholeSketch(Sketch):
    """Knows which of its tensors are whole numbers, and from which to which."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.steps: dict[int, Steps] = {}

    def random(self, *shape: int) -> int:
        return self.constant(self.rng.integers(-3, 4, shape))

    def whole(self, x: int, low: int, high: int, scale: float = 1.0) -> int:
        """The nearest whole numbers to so many times a tensor, from the least to the greatest."""
        x = self.unary("ROUND", self.binary("MUL", x, self.constant([scale])))
        x = self.binary("MINIMUM", self.binary("MAXIMUM", x, self.constant([low])), self.constant([high]))
        return self.known(x, low, high)

    def known(self, x: int, low: int, high: int) -> int:
        """A tensor that is so by what made it."""
        self.steps[x] = Steps(low, high)
        return x

    def joined(self, *parts: int) -> int:
        """Behind each other along channels."""
        shape = self.shape(parts[0])
        return self.op("CONCATENATION", parts, (*shape[:3], sum(self.shape(part)[3] for part in parts)), axis=3)

    def graph(self) -> Graph:
        """As a pass would leave it that knows."""
        graph = read_model(self.build())
        tensors = {t: replace(tensor, steps=self.steps.get(t)) for t, tensor in graph.tensors.items()}
        return replace(graph, tensors=MappingProxyType(tensors))
