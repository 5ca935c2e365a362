"""How far a program's tensors, and those of TensorFlow Lite's two sets of kernels, are from float64.

Where the two differ by more than a tolerance, neither is right by itself: a program that is as near to float64 as the
worse of them agrees, too. So does one that is off by what rounding to float32 alone may do: some networks amplify it a
thousandfold, and two sets of kernels are but two samples of what it may do. How much is measured in float64.

The error grows at an op whose output is further from float64, in parts of its magnitude, than GROWTH times the furthest
of what it read, and than ROUNDING, which is 128 times what rounding to float32 takes.
"""

import contextlib
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import ModelError, UnsupportedError
from ..model.graph import Graph
from ..model.quantization import is_quantized, with_real_weights
from ..truth.float64 import true_values
from .compare import Difference, Distances, errors, magnitude_of
from .reference import Reference

GROWTH = 4.0
ROUNDING = 2.0**-17
_SAMPLES = 4  # of rounding, which is drawn: a tensor of one value may be near by chance


def has_truth(graph: Graph) -> bool:
    """Whether what a graph computes means itself; what quantized tensors hold is defined by how they round."""
    return not any(is_quantized(tensor) for tensor in graph.tensors.values() if not tensor.is_constant)


Reads = Callable[[int], npt.NDArray[Any]]  # a tensor's values, by its index


class Float64Judge:
    """Measures against float64 what others have computed."""

    def __init__(self, graph: Graph, every_tensor: bool) -> None:
        """`graph` is as the reader made it; XNNPACK gives its outputs, or every tensor.

        Where it does not run such a model, its figures are lacking.
        """
        self._graph = graph
        real = with_real_weights(graph)
        written = _computed(real) if every_tensor and not real.original else []
        self._asked = tuple(dict.fromkeys((*real.outputs, *written)))
        self._xnnpack: Reference | None = None
        with contextlib.suppress(ModelError, UnsupportedError):
            self._xnnpack = Reference(replace(real, outputs=self._asked))

    def measure(
        self,
        ours: Reads,
        reference: Reads,
        inputs: Sequence[npt.NDArray[Any]],
        wanted: Container[int],
        rounds: bool = False,
    ) -> Mapping[int, Distances]:
        """Of the tensors that are wanted, as far as float64 has them; both have run with these inputs.

        With `rounds` it is measured, too, what rounding makes of each.
        """
        other, found = dict[int, npt.NDArray[Any]](), dict[int, Distances]()
        if self._xnnpack:
            with contextlib.suppress(ModelError):
                other = dict(zip(self._asked, self._xnnpack.run(inputs), strict=True))
        samples = [true_values(self._graph, inputs, np.random.default_rng(seed)) for seed in range(_SAMPLES * rounds)]
        for (tensor, true), *rounded in zip(true_values(self._graph, inputs), *samples, strict=True):
            if true is None or tensor not in wanted:
                continue
            off = [_largest(values, true) for _, values in rounded if values is not None]
            own, fast = reference(tensor), other.get(tensor)
            found[tensor] = Distances(
                _largest(ours(tensor), true),
                _largest(own, true),
                None if fast is None else _largest(fast, true),
                0.0 if fast is None else _largest(fast, own),
                magnitude_of(true),
                max(off) if off else None,
            )
        return MappingProxyType(found)


def _computed(graph: Graph) -> list[int]:
    """What is computed from inputs: XNNPACK does not write what it has made of constants, like weights in float16."""
    found = dict.fromkeys(graph.inputs)
    for node in graph.nodes:
        if any(tensor in found for tensor in node.inputs):
            found |= dict.fromkeys(node.outputs)
    return list(found)[len(dict.fromkeys(graph.inputs)) :]


def furthest(measured: Sequence[Distances]) -> Distances:
    """The largest figures of one tensor on several inputs."""
    xnnpack = [each.xnnpack for each in measured if each.xnnpack is not None]
    of_ours, of_reference, theirs, magnitudes = zip(
        *((each.ours, each.reference, each.theirs, each.magnitude) for each in measured), strict=True
    )
    rounding = [each.rounding for each in measured if each.rounding is not None]
    return Distances(
        _most(of_ours),
        _most(of_reference),
        _most(xnnpack) if xnnpack else None,
        _most(theirs),
        _most(magnitudes),
        _most(rounding) if rounding else None,
    )


def first_growth(
    differences: Sequence[Difference], measured: Mapping[int, Distances]
) -> tuple[Difference, float, float] | None:
    """The first tensor at whose op the program's error grows; and from what part of its magnitude to what.

    Where a kernel computes several ops at once, that is the last of them; the others are behind its tensor.
    """
    parts = {tensor: found.relative_error for tensor, found in measured.items()}
    for each in differences:
        read = {tensor for node in (each.node, *each.behind) for tensor in node.inputs}
        before, after = max((parts[i] for i in read & parts.keys()), default=0.0), parts.get(each.tensor, 0.0)
        if not after <= max(ROUNDING, GROWTH * before):
            return each, before, after
    return None


def _most(values: Sequence[float]) -> float:
    return float(np.max(values))  # keeps NaN


def _largest(found: npt.NDArray[Any], true: npt.NDArray[Any]) -> float:
    """Infinite for another shape."""
    if found.shape != true.shape:
        return math.inf
    if found.dtype.kind == true.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            most = float(np.abs(found - true).max(initial=0))
        if math.isfinite(most):  # else the same infinity, or no number, may be on both sides
            return most
    return float(errors(np.asarray(found, np.float64), np.asarray(true, np.float64)).max(initial=0))
