"""Compares a program's tensors with TensorFlow Lite's, one by one.

The tensors are in the order of the model's operators, so that the first one that diverges names the operator at fault,
or the group of operators that one kernel computes.

Quantized models round after each operator, and a step that is rounded the other way makes others differ. So each of
their kernels gets the reference's own inputs, and may be off by a step for each operator that it computes; of a hybrid
operator that rounds as TensorFlow Lite does, by what a step of one value of its input changes.
"""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..base.errors import UsageError
from ..model.graph import ABSENT, Graph, Node
from ..model.layout import Precision, Storages
from ..model.packing import Float32Array
from ..model.quantization import dequantized, has_quantized, is_quantized, step_size
from ..ops.variables import RESOURCE
from ..plan.views import Views
from .reference import Reference

TOLERANCE = 1e-4
ROUNDINGS = 4.0  # of each tensor: a kernel rounds its products and sums, too
_SLOPES = MappingProxyType({"GELU": 1.13, "HARD_SWISH": 1.5})  # at most, of activations that are steeper than 1
HALF_ERROR = 2.0**-10  # for each time that values are stored as halves: 2^-11 is rounded, and later ops amplify it
BF16_ERROR = 2.0**-6  # of bfloat16: 2^-9 is rounded, of terms that may be larger than their sum


class ComparedKernel(Protocol):
    """What a comparison needs to know of a kernel; of CompiledGraph and NativeProgram alike."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[int, ...]: ...

    @property
    def outputs(self) -> tuple[int, ...]: ...

    @property
    def macs(self) -> int: ...


class ComparedPlan(Protocol):
    """The same of a compiled model."""

    @property
    def source(self) -> Graph: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def kernels(self) -> Sequence[ComparedKernel]: ...

    @property
    def views(self) -> Views: ...

    @property
    def storages(self) -> Storages: ...

    @property
    def precision(self) -> Precision: ...


class ComparedProgram(Protocol):
    """A compiled model whose tensors can be read and written: a Program, or a CheckedNetwork."""

    @property
    def compiled(self) -> ComparedPlan: ...

    def write(self, tensor: int, values: npt.NDArray[np.generic]) -> None: ...

    def run(self) -> object: ...

    def run_step(self, number: int) -> None: ...

    def read(self, tensor: int) -> npt.NDArray[Any]: ...


@dataclass(frozen=True)
class Distances:
    """The largest absolute errors of one tensor against float64; NaN where one of the two is no number.

    TensorFlow Lite has two sets of kernels: its own, which are the reference, and XNNPACK.
    """

    ours: float
    reference: float
    xnnpack: float | None  # None where it does not give the tensor
    theirs: float  # the largest difference between those two
    magnitude: float  # the largest absolute value in float64
    rounding: float | None = None  # the largest difference that rounding each tensor makes in float64; where measured

    def is_as_near(self, limit: float) -> bool:
        """Whether ours is no further than the worse of theirs, or than rounding takes a network that amplifies it, and
        float64 is to be believed; `limit` is the tolerance.

        It is believed if it is as near to one of them as they are to each other, within the limit, or no further than
        rounding takes it: a file that is read wrongly would be read wrongly on both sides.
        """
        amplified = ROUNDINGS * (self.rounding or 0.0)
        both = self.reference, self.reference if self.xnnpack is None else self.xnnpack
        return min(both) <= max(limit, self.theirs, amplified) and self.ours <= max(*both, amplified)

    @property
    def relative_error(self) -> float:
        """That of ours over the tensor's magnitude."""
        return self.ours / self.magnitude if self.magnitude else self.ours


@dataclass(frozen=True)
class Difference:
    """How far the program's tensor is from TensorFlow Lite's; errors are absolute."""

    tensor: int
    name: str
    shape: tuple[int, ...]
    node: Node  # of the model as read: the node that writes the tensor, or what stands for it if none does
    kernel: str  # that stored it; "view" where it is a range of what others have stored, "" where none does
    behind: tuple[Node, ...]  # the nodes between it and the compared tensors that it depends on
    max_error: float  # NaN where the program gave NaN
    mean_error: float
    magnitude: float  # the largest absolute value of TensorFlow Lite's
    limit: float
    step: float = 0.0  # the real number that errors of 1 mean, of a quantized tensor, whose errors are in steps
    truth: Distances | None = None  # where it was measured
    truth_decides: bool = False  # where the limit is exceeded

    @property
    def diverges(self) -> bool:
        if self.max_error <= self.limit:  # a NaN never agrees
            return False
        return not (self.truth_decides and self.truth is not None and self.truth.is_as_near(self.limit))

    @property
    def relative_error(self) -> float:
        """The largest error over the tensor's magnitude."""
        return self.max_error / self.magnitude if self.magnitude else self.max_error

    @property
    def operator(self) -> str:
        """The operator as it is found in the model."""
        return describe_operator(self.node)


def describe_operator(node: Node) -> str:
    """CONV_2D (operator 12)."""
    return f"{node.op} (operator {node.index})" if node.index >= 0 else node.op


def compare(
    program: ComparedProgram, reference: Reference, inputs: Sequence[Float32Array], tolerance: float = TOLERANCE
) -> tuple[Difference, ...]:
    """Run both on the same input tensors, each in its own shape, and compare what is in memory on both sides.

    The program was compiled with keep_all=True and the reference keeps all tensors; both are of one
    model, or of models with the same tensors. A tensor may differ by tolerance * max(1, its magnitude); where halves
    are stored, also by HALF_ERROR for each time that values on the path to it were rounded, with products in bfloat16
    by BF16_ERROR, times the largest magnitude of the tensor and its inputs. Outputs that no operator computes,
    constants and inputs, may not differ at all, and come last. Tensors that passes created have no counterpart and are
    left out, and so are those that an LSTM reads. Raises UsageError for inputs of other shapes.
    """
    graph = program.compiled.source
    reference.run(inputs)
    for tensor, values in zip(graph.inputs, inputs, strict=True):
        program.write(tensor, values)
    is_apart = has_quantized(graph)
    if is_apart:
        computed = _computed_apart(program, reference)
    else:
        program.run()
        computed = {}
    makers = _makers(program.compiled) if is_apart else {}
    rounded, kernels = times_rounded(program.compiled), _stored_by(program.compiled)
    lost = {i for node in graph.nodes if node.op == "LSTM" for i in node.inputs}  # which overwrites states
    stored = [
        (node, tensor) for node in graph.nodes for tensor in node.outputs if tensor in kernels and tensor not in lost
    ]
    producers, differences = graph.producers(), []
    for node, tensor in stored:
        known = {other for other in kernels if other not in makers or makers[other] != makers.get(tensor)}
        behind = nodes_behind(producers, node, known)
        expected = np.asarray(reference.tensor(tensor), np.float32)
        found = computed[tensor] if tensor in computed else program.read(tensor)
        apart = errors(np.asarray(found, np.float32), expected)
        slack = _steps_allowed(graph, node, behind) + sum(_step_in(graph, reference, each) for each in (node, *behind))
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
                limit=slack
                + tolerance * max(1.0, magnitude)
                + rounding_error(program.compiled.precision) * rounded[tensor] * scale,
                step=step_size(graph.tensors[tensor]) if is_quantized(graph.tensors[tensor]) else 0.0,
            )
        )
    given = dict.fromkeys(tensor for tensor in graph.outputs if tensor not in producers and tensor not in lost)
    return (*differences, *(_given_out(program, reference, tensor) for tensor in given))


def _given_out(program: ComparedProgram, reference: Reference, tensor: int) -> Difference:
    """Of an output that no operator computes."""
    own = program.compiled.source.tensors[tensor]
    expected = np.asarray(reference.tensor(tensor), np.float32)
    apart = errors(np.asarray(program.read(tensor), np.float32), expected)
    return Difference(
        tensor=tensor,
        name=own.name,
        shape=expected.shape,
        node=Node("constant" if own.is_constant else "input", (), (tensor,)),
        kernel="",
        behind=(),
        max_error=float(apart.max(initial=0)),
        mean_error=float(apart.mean(dtype=np.float64)) if apart.size else 0.0,
        magnitude=magnitude_of(expected),
        limit=0.0,
        step=step_size(own) if is_quantized(own) else 0.0,
    )


def _computed_apart(program: ComparedProgram, reference: Reference) -> dict[int, npt.NDArray[Any]]:
    """What each kernel computes of the reference's values, as far as it reads tensors that the reference has."""
    compiled, found = program.compiled, dict[int, npt.NDArray[Any]]()
    known = {tensor for node in compiled.source.nodes for tensor in node.outputs}
    owners = {tensor: compiled.views.place(tensor)[0] for tensor in (*_stored_by(compiled),)}
    for number, kernel in enumerate(compiled.kernels):
        for tensor in known.intersection(kernel.inputs):
            with contextlib.suppress(UsageError):  # what cannot be written is as kernels before have left it
                program.write(tensor, reference.tensor(tensor))
        program.run_step(number)
        written = {owners[tensor] for tensor in kernel.outputs}
        for tensor in (tensor for tensor, owner in owners.items() if owner in written and tensor in known):
            found[tensor] = program.read(tensor)
    return found


def _makers(compiled: ComparedPlan) -> dict[int, int]:
    """The number of the kernel that writes each tensor."""
    return {tensor: number for number, kernel in enumerate(compiled.kernels) for tensor in kernel.outputs}


def _steps_allowed(graph: Graph, node: Node, behind: Sequence[Node]) -> float:
    """How far roundings may take an output of a node that is computed together with those behind it."""
    own = graph.tensors[node.outputs[0]]
    others = [graph.tensors[other.outputs[0]] for other in behind]
    rounding = [step_size(tensor) for tensor in others if is_quantized(tensor)]
    if is_quantized(own):  # in its own steps: a coarser one before it is several of these
        steepest = max(_SLOPES.get(other.op, 1.0) for other in (node, *behind))
        return 1 + steepest * sum(max(1.0, step / step_size(own)) for step in rounding)
    return sum(rounding)


def _step_in(graph: Graph, reference: Reference, node: Node) -> float:
    """What a step of one value of x may change in the output of a hybrid node: a division decides between two steps."""
    if graph.hybrid == "expanded" or len(node.inputs) < 2 or ABSENT in node.inputs[:2]:
        return 0.0
    x, weights = (graph.tensors[i] for i in node.inputs[:2])
    if x.dtype != "float32" or weights.data is None or not is_quantized(weights):
        return 0.0
    return magnitude_of(reference.tensor(x.index)) / 127 * magnitude_of(dequantized(weights.data, weights))


def _stored_by(compiled: ComparedPlan) -> dict[int, str]:
    """The kernel that stores each tensor; views lie in what others have stored."""
    views = dict.fromkeys(compiled.views.nodes, "view")
    return views | {out: kernel.name for kernel in compiled.kernels for out in kernel.outputs}


def rounding_error(precision: Precision) -> float:
    """What one rounding of a value is counted as, as a share of it."""
    return BF16_ERROR if precision == "bf16" else HALF_ERROR


def times_rounded(compiled: ComparedPlan) -> Mapping[int, int]:
    """How often values were rounded to halves on the longest path to each tensor that the program stores.

    With arithmetic in halves also the weights of each kernel, its products and their sums are rounded; in bfloat16
    the weights and what they are multiplied by.
    """
    products = {"fp16-arithmetic": 3, "bf16": 2}.get(compiled.precision, 0)
    times, owners = dict.fromkeys(compiled.graph.inputs, 0), {t: compiled.views.place(t)[0] for t in compiled.storages}
    for kernel in compiled.kernels:
        before = max((times.get(owners[tensor], 0) for tensor in kernel.inputs), default=0)
        for tensor in kernel.outputs:
            times[tensor] = before + compiled.storages[tensor].is_halves + products * bool(kernel.macs)
            times[owners[tensor]] = max(times[tensor], times.get(owners[tensor], 0))
    return {**{view: times[owners[view]] for view in compiled.views.nodes}, **times}


def magnitude_of(values: npt.NDArray[np.generic]) -> float:
    """The largest absolute value, NaN aside; 0 if there is none."""
    floats = np.asarray(values, np.float32)
    return float(np.abs(floats[np.isfinite(floats)]).max(initial=0))


def _largest_read(graph: Graph, reference: Reference, nodes: Sequence[Node]) -> float:
    """The largest magnitude of what nodes read, constants aside."""
    read = {tensor for node in nodes for tensor in node.inputs if tensor != ABSENT}
    values = (t for t in read if not graph.tensors[t].is_constant and graph.tensors[t].dtype != RESOURCE)
    return max((magnitude_of(reference.tensor(t)) for t in values), default=0.0)


def first_divergence(differences: Sequence[Difference]) -> Difference | None:
    """The first tensor, in the model's order, that exceeds its limit."""
    return next((difference for difference in differences if difference.diverges), None)


def nodes_behind(producers: Mapping[int, Node], node: Node, known: Collection[int]) -> tuple[Node, ...]:
    """The other nodes that may be at fault if a node's output is wrong and the known tensors are right."""
    waiting, found = [*node.inputs], dict[int, Node]()
    while waiting:
        tensor = waiting.pop()
        producer = producers.get(tensor)
        if tensor not in known and producer is not None and producer.index not in found:
            found[producer.index] = producer
            waiting += producer.inputs
    return tuple(found[index] for index in sorted(found) if found[index].op != "DEQUANTIZE")


def errors(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Absolute differences; equal infinities and NaN on both sides agree, a NaN on one side gives NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(found - expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(same, np.float32(0), apart)
