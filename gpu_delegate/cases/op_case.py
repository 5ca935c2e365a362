"""OpCase: one small use of an op, with random constants and inputs by seed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model.graph import Attributes, Graph, Shape, Tensor
from ..ops.record import Example
from ..ops.registry import OPS
from ..programs.support import example_graph

PLAIN = Attributes()
CHANNELS = (1, 3, 4, 5, 13)  # all but 4 leave lanes of a texel empty
BATCHES = (1, 3)
MAPS: tuple[Shape, ...] = tuple((batch, 5, 7, channels) for channels in CHANNELS for batch in BATCHES)
LARGE: Shape = (1, 61, 67, 37)  # enough to do that it is worth timing

CaseArray = npt.NDArray[Any]


@dataclass(frozen=True)
class OpCase:
    """One use of an op. Nothing random is in it: a seed gives its constants, another one its inputs."""

    op: str
    what: str
    example: Example
    low: float = -2.0  # of inputs, and of constants where these are operands alike
    high: float = 2.0
    tolerance: float = 1e-5  # of the largest magnitude in an output, or of 1 if that is more
    like_constants: bool = False  # whether constants come from the same range as inputs
    whole: bool = False  # whether these are whole numbers, of which many are equal

    @property
    def name(self) -> str:
        """Of all cases each has another one."""
        return f"{self.op} {self.what}"

    def graph(self, seed: int = 0) -> Graph:
        """A graph of this op alone."""
        graph = example_graph(replace(OPS[self.op], example=self.example), seed)
        if not self.like_constants:
            return graph
        tensors = {number: self._in_range(tensor) for number, tensor in graph.tensors.items()}
        return replace(graph, tensors=MappingProxyType(tensors))

    def inputs(self, graph: Graph, seed: int = 1) -> list[CaseArray]:
        """Random values of the inputs of its graph: whole numbers for integers, truth values one half true."""
        rng = np.random.default_rng(seed)
        return [self._drawn(graph.tensors[tensor], rng) for tensor in graph.inputs]

    def _in_range(self, tensor: Tensor) -> Tensor:
        """A constant in -1 to 1 in the range of inputs."""
        if tensor.data is None or tensor.dtype != "float32":
            return tensor
        data = self.low + (tensor.data.astype(np.float64) + 1) / 2 * (self.high - self.low)
        return replace(tensor, data=(np.rint(data) if self.whole else data).astype(np.float32))

    def _drawn(self, tensor: Tensor, rng: np.random.Generator) -> CaseArray:
        if tensor.dtype == "bool":
            return rng.integers(0, 2, tensor.shape).astype(np.bool_)
        if tensor.dtype.startswith("float"):
            drawn = rng.uniform(self.low, self.high, tensor.shape)
            return np.asarray(np.rint(drawn) if self.whole else drawn, tensor.dtype)
        limits = np.iinfo(tensor.dtype)
        if tensor.quantization is not None:
            return rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)
        low, high = max(limits.min, math.ceil(self.low)), min(limits.max, math.floor(self.high))
        return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype)


def case_of(
    op: str,
    what: str,
    shapes: Sequence[Shape],
    out: Shape,
    attributes: Attributes = PLAIN,
    constants: Sequence[Shape] = (),
    others: Sequence[Shape] = (),
    **more: Any,
) -> OpCase:
    """A case of float32, or of the types of the op's own example; `more` are other fields of the case."""
    given = OPS[op].example
    example = replace(
        given, shapes=tuple(shapes), out=out, others=tuple(others), constants=tuple(constants), attributes=attributes
    )
    return OpCase(op, what, example, **more)


def size_text(shape: Sequence[int]) -> str:
    """1x5x7x13."""
    return "x".join(map(str, shape)) or "scalar"
