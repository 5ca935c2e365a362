"""Finds ops that the GPU cannot run and that split what it can run into more partitions.

Each op is taken as if the GPU had it, and the graph is partitioned again: then fewer pieces are left, or less crosses
their borders. What merged pieces could fuse besides is not counted.
"""

from collections.abc import Iterator

from texelflow.gpu_delegate.model.partition import partition_graph
from texelflow.gpu_delegate.model.reasons import CONSTANT_OF_CPU, CONSTANT_OUTPUT
from texelflow.gpu_delegate.plan.refusals import LoneNodes

from .cost import RunCost, crossing_cost
from .fault import Analysis, Fault, listed

_MOST_OPS = 12  # that are tried, the most frequent first


def splitting_ops(analysis: Analysis) -> Iterator[Fault]:
    """Ops that are left to the CPU between others that are not."""
    reasons, graph = analysis.found.reasons, analysis.graph
    refused = {number for number, reason in reasons.items() if reason not in (CONSTANT_OF_CPU, CONSTANT_OUTPUT)}
    ops: dict[str, list[int]] = {}
    for number in refused:
        ops.setdefault(graph.nodes[number].op, []).append(number)
    if not analysis.found.partitions or not ops:
        return
    constants = LoneNodes(graph).constants
    now = crossing_cost(graph, analysis.found.partitions, analysis.rates)
    often = sorted(ops, key=lambda op: -len(ops[op]))[:_MOST_OPS]
    for chosen in (*([op] for op in often), *([often] if len(often) > 1 else ())):
        numbers = sorted(number for op in chosen for number in ops[op])
        partitions = partition_graph(graph, refused.difference(numbers), constants)
        saved = now - crossing_cost(graph, partitions, analysis.rates)
        if saved.moved_bytes > 0:
            yield _splitting(analysis, chosen, numbers, len(partitions), saved)


def _splitting(analysis: Analysis, ops: list[str], numbers: list[int], left: int, saved: RunCost) -> Fault:
    pieces = len(analysis.found.partitions)
    reasons = listed([analysis.found.reasons[number] for number in numbers][:3])
    outputs = tuple(tensor for number in numbers for tensor in analysis.graph.nodes[number].outputs)
    return Fault(
        kind="split",
        what=f"{listed(ops)} on the CPU, between {pieces} pieces on the GPU"
        + (f" instead of {left}" * (left < pieces)),
        operators=tuple(numbers),
        tensors=outputs,
        why=f"what they read and write is copied between GPU and CPU, and each piece waits; {reasons}",
        change="say it by ops that run on the GPU (texelflow inspect --ops lists them), "
        "or move it to the start or the end of the model",
        remedy=saved,
        is_exact=False,
    )
