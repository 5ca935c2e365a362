"""A GPU program, the CPU reference and an input go in; the error of every tensor that both have comes out.

The tensors come in the order of the model's own operators, so that the first one that diverges names the operator that
went wrong, or the group of operators that one kernel computes at once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_delegate.graph import Graph, Node
from gpu_delegate.reference import Reference
from gpu_delegate.runtime import Program

Floats = npt.NDArray[np.float32]

TOLERANCE = 1e-4


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
    with the same tensors. A tensor may differ by tolerance * max(1, its magnitude). Tensors that the passes made have
    no counterpart and are left out. Raises UsageError for inputs of other shapes.
    """
    graph = program.blueprint.source
    reference.run(inputs)
    for tensor, values in zip(graph.inputs, inputs, strict=True):
        program.write(tensor, values)
    program.run()
    kernels = {out: kernel.name for kernel in program.blueprint.kernels for out in kernel.outputs}
    stored = [(node, tensor) for node in graph.nodes for tensor in node.outputs if tensor in kernels]
    differences = []
    for node, tensor in stored:
        expected = np.asarray(reference.tensor(tensor), np.float32)
        apart = errors(program.read(tensor).reshape(expected.shape), expected)
        magnitude = float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
        differences.append(
            Difference(
                tensor=tensor,
                name=graph.tensors[tensor].name,
                shape=expected.shape,
                node=node,
                kernel=kernels[tensor],
                behind=nodes_behind(graph, node, kernels.keys()),
                max_error=float(apart.max(initial=0)),
                mean_error=float(apart.mean(dtype=np.float64)),
                magnitude=magnitude,
                limit=tolerance * max(1.0, magnitude),
            )
        )
    return tuple(differences)


def first_divergence(differences: Sequence[Difference]) -> Difference | None:
    """The earliest tensor, in the model's order, that is past its limit."""
    return next((difference for difference in differences if difference.diverges), None)


def nodes_behind(graph: Graph, node: Node, known: Collection[int]) -> tuple[Node, ...]:
    """What else may be wrong if a node's output is and the known tensors are right; constants' nodes aside."""
    producers = graph.producers()
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
