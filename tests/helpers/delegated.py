"""Runs a model in the interpreter with the delegate and without it, and compares outputs and partitions.

How operators are cut is compared with the slow partitioner and with what TensorFlow Lite really made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import texelflow
from tests.helpers.slow_partitioner import slow_claim, slow_partitions, slow_subsets
from tests.models.measure import error_of
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.refusals import find_refusals, refused_states
from texelflow.gpu_delegate.reading.reader import read_model

AnyValues = npt.NDArray[Any]
MOST_ERROR = 1e-3  # of an output's range or of its largest magnitude, whichever is more


def interpreter_of(model: bytes, *delegates: texelflow.GpuDelegate | NativePartsDelegate, xnnpack: bool = True) -> Any:
    """An interpreter of a model's bytes, ready to run; XNNPACK takes what is left, or nothing does."""
    module = load_interpreter_module()
    kinds = module.OpResolverType
    made = module.Interpreter(
        model_content=model,
        experimental_delegates=list(delegates),
        experimental_op_resolver_type=kinds.AUTO if xnnpack else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    made.allocate_tensors()
    return made


def inferred(interpreter: Any, inputs: Sequence[AnyValues]) -> list[AnyValues]:
    """Copies of all outputs."""
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def random_inputs(interpreter: Any, rng: np.random.Generator, low: float = -2.0, high: float = 2.0) -> list[AnyValues]:
    """Of the shapes and types that the interpreter asks for."""
    details = interpreter.get_input_details()
    return [rng.uniform(low, high, detail["shape"]).astype(detail["dtype"]) for detail in details]


@dataclass(frozen=True)
class Cut:
    """How many operators a delegate claims, and in how many groups."""

    nodes: int
    partitions: int  # that compute anything at run time
    kernels: int  # of TensorFlow Lite; some may hold nothing but constants


def expected_cut(graph: Graph) -> Cut:
    """By the slow partitioner, if all that a device can take is claimed."""
    refusals = find_refusals(graph, SOFTWARE)
    refused = dict(refusals.reasons)
    while apart := refused_states(graph, refused, slow_partitions(graph, refused, refusals.constants)):
        refused |= apart
    claimed = slow_claim(graph, refused, refusals.constants)
    partitions = slow_partitions(graph, refused, refusals.constants)
    return Cut(len(claimed), len(partitions), len(slow_subsets(graph, claimed)))


def cut_of(delegate: texelflow.GpuDelegate, interpreter: Any) -> Cut:
    """By the delegate and by an interpreter without XNNPACK, all of whose delegates' operators are ours."""
    kernels = [details for details in interpreter._get_ops_details() if details["op_name"] == "DELEGATE"]
    nodes = sum(len(partition.nodes) for partition in delegate.partitions)
    return Cut(nodes, len(delegate.partitions), len(kernels))


def check_delegated(model: bytes, seed: int) -> Cut:
    """Compare outputs with XNNPACK beside the delegate or, of every other seed, without it; then the cut.

    XNNPACK does not compute constants of 16 bits that are outputs: beside those there is none.
    """
    graph, rng = read_model(model), np.random.default_rng(seed)
    halves = {tensor for node in graph.nodes if node.op == "DEQUANTIZE" for tensor in node.outputs}
    xnnpack = seed % 2 == 0 and halves.isdisjoint(graph.outputs)
    plain = interpreter_of(model, xnnpack=xnnpack)
    with texelflow.GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True) as delegate:
        interpreter = interpreter_of(model, delegate, xnnpack=xnnpack)
        for _ in range(2):
            inputs = random_inputs(plain, rng)
            error = error_of(inferred(interpreter, inputs), inferred(plain, inputs))
            assert error < MOST_ERROR, f"seed {seed}: outputs differ by {error:.1e}"
        found, expected = cut_of(delegate, interpreter), expected_cut(graph)
        assert (found.nodes, found.partitions) == (expected.nodes, expected.partitions), f"seed {seed}"
        assert xnnpack or found.kernels == expected.kernels, f"seed {seed}"
        assert sorted([*delegate.reasons, *(n for each in delegate.partitions for n in each.nodes)]) == list(
            range(len(graph.nodes))
        )
        del interpreter
    return found
