"""A GPU program, the CPU reference and an input go in; the error of every tensor that both have comes out.

The tensors come in the order of the model's own operators, so that the first one that diverges names the operator that
went wrong, or the group of operators that one kernel computes at once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .graph import ABSENT, Graph, Node
from .program import Blueprint
from .reference import Reference
from .runtime import Program

Floats = npt.NDArray[np.float32]

TOLERANCE = 1e-4
HALF_ERROR = 2.0**-10  # for each time that values are stored as halves: 2^-11 of rounding, grown by what follows


@dataclass(frozen=True)
class Difference:
    """How far the GPU's tensor is from the CPU's; errors are absolute."""

    tensor: int
    name: str
    shape: tuple[int, ...]
    node: Node  # of the model as read: what writes the tensor
    kernel: str  # that stored it
    behind: tuple[Node, ...]  # the nodes between it and the compared tensors that it comes from
    max_error: float  # not a number where the GPU gave none
    mean_error: float
    magnitude: float  # the largest absolute value on the CPU
    limit: float

    @property
    def diverges(self) -> bool:
        return not self.max_error <= self.limit  # not a number is no agreement

    @property
    def relative_error(self) -> float:
        """The largest error over the tensor's magnitude."""
        return self.max_error / self.magnitude if self.magnitude else self.max_error

    @property
    def operator(self) -> str:
        """The operator as a person looks for it in the model."""
        return describe(self.node)


def describe(node: Node) -> str:
    """CONV_2D (operator 12)."""
    return f"{node.op} (operator {node.index})"


def compare(
    program: Program, reference: Reference, inputs: Sequence[Floats], tolerance: float = TOLERANCE
) -> tuple[Difference, ...]:
    """Run both on the same input tensors, each in its own shape, and compare what is in memory on both sides.

    The program is of draft(..., keep_all=True), the reference keeps all tensors; both are of one model, or of models
    with the same tensors. A tensor may differ by tolerance * max(1, its magnitude); where halves are stored, by another
    HALF_ERROR for each time that values were on the way to it, of the largest magnitude among it and what it is made
    of. Tensors that the passes made have no counterpart and are left out. Raises UsageError for inputs of other shapes.
    """
    graph = program.blueprint.source
    reference.run(inputs)
    for tensor, values in zip(graph.inputs, inputs, strict=True):
        program.write(tensor, values)
    program.run()
    rounded = times_rounded(program.blueprint)
    kernels = {out: kernel.name for kernel in program.blueprint.kernels for out in kernel.outputs}
    stored = [(node, tensor) for node in graph.nodes for tensor in node.outputs if tensor in kernels]
    producers, differences = graph.producers(), []
    for node, tensor in stored:
        behind = nodes_behind(producers, node, kernels.keys())
        expected = np.asarray(reference.tensor(tensor), np.float32)
        apart = errors(program.read(tensor).reshape(expected.shape), expected)
        magnitude = magnitude_of(expected)
        scale = max(1.0, magnitude, _largest_read(graph, reference, (node, *behind)))
        differences.append(
            Difference(
                tensor=tensor,
                name=graph.tensors[tensor].name,
                shape=expected.shape,
                node=node,
                kernel=kernels[tensor],
                behind=behind,
                max_error=float(apart.max(initial=0)),
                mean_error=float(apart.mean(dtype=np.float64)),
                magnitude=magnitude,
                limit=tolerance * max(1.0, magnitude) + HALF_ERROR * rounded[tensor] * scale,
            )
        )
    return tuple(differences)


def times_rounded(blueprint: Blueprint) -> Mapping[int, int]:
    """How often values were stored as halves on the longest way to each tensor that the program stores."""
    times = dict.fromkeys(blueprint.graph.inputs, 0)
    for kernel in blueprint.kernels:
        before = max((times.get(tensor, 0) for tensor in kernel.inputs), default=0)
        times.update({tensor: before + blueprint.storages[tensor].is_halves for tensor in kernel.outputs})
    return times


def magnitude_of(values: npt.NDArray[np.generic]) -> float:
    """The largest absolute value that is a number; 0 if there is none."""
    floats = np.asarray(values, np.float32)
    return float(np.abs(floats[np.isfinite(floats)]).max(initial=0))


def _largest_read(graph: Graph, reference: Reference, nodes: Sequence[Node]) -> float:
    """The largest magnitude of what nodes read, constants aside."""
    read = {tensor for node in nodes for tensor in node.inputs if tensor != ABSENT}
    return max((magnitude_of(reference.tensor(t)) for t in read if not graph.tensors[t].is_constant), default=0.0)


def first_divergence(differences: Sequence[Difference]) -> Difference | None:
    """The earliest tensor, in the model's order, that is past its limit."""
    return next((difference for difference in differences if difference.diverges), None)


def nodes_behind(producers: Mapping[int, Node], node: Node, known: Collection[int]) -> tuple[Node, ...]:
    """What else may be wrong if a node's output is and the known tensors are right; constants' nodes aside."""
    waiting, found = [*node.inputs], dict[int, Node]()
    while waiting:
        tensor = waiting.pop()
        producer = producers.get(tensor)
        if tensor not in known and producer is not None and producer.index not in found:
            found[producer.index] = producer
            waiting += producer.inputs
    return tuple(found[index] for index in sorted(found) if found[index].op != "DEQUANTIZE")


def errors(found: Floats, expected: Floats) -> Floats:
    """Absolute differences; equal infinities and shared NaN agree, a NaN on one side only is NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(found - expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(same, np.float32(0), apart)
