"""What `texelflow inspect` shows of what runs where, as plain values."""

from dataclasses import dataclass

from texelflow.gpu_delegate.base.wording import counted, number_ranges
from texelflow.gpu_delegate.cpu.delegation import ON_GPU
from texelflow.gpu_delegate.custom.custom_op import computed_by_functions, custom_name
from texelflow.gpu_delegate.model.graph import Graph, Shape
from texelflow.gpu_delegate.model.partition import crossing_bytes
from texelflow.gpu_delegate.plan.compiled_parts import AnyParts
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions

_MOST_GROUPS = 4  # of operators, in a line


@dataclass(frozen=True)
class Border:
    """What crosses the border of a partition. Shapes are as in the file."""

    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    bytes_in: int
    bytes_out: int


def borders(found: AnyParts) -> tuple[Border, ...]:
    """That of each partition."""
    graph = found.graph
    return tuple(
        Border(
            tuple(graph.tensors[tensor].shape for tensor in partition.inputs),
            tuple(graph.tensors[tensor].shape for tensor in partition.outputs),
            crossing_bytes(graph, partition.inputs),
            crossing_bytes(graph, partition.outputs),
        )
        for partition in found.partitions
    )


def summary(found: AnyParts, places: tuple[str, str] = ON_GPU) -> str:
    """What runs where, in one line."""
    total, functions = len(found.graph.nodes), len(computed_by_functions(found.graph))
    left = len(found.reasons) - functions
    where = f"in {counted(len(found.partitions), 'partition')}"
    by_functions = f", {functions} by functions" * (functions > 0)
    if not found.partitions:
        return f"none of {counted(total, 'operator')} runs {places[0]}{by_functions}"
    if not found.reasons:
        return f"all {counted(total, 'operator')} {where}"
    rest = f", {left} left to {places[1].partition(' ')[2]}" * (left > 0)
    return f"{total - left - functions} of {total} operators {where}{by_functions}{rest}"


def left_as_json(found: AnyParts) -> list[dict[str, object]]:
    """The operators that are in no partition, and why."""
    nodes = found.graph.nodes
    return [{"operator": n, "op": nodes[n].op, "reason": reason} for n, reason in found.reasons.items()]


def delegate_line(found: CompiledPartitions, delegated: CompiledPartitions) -> str:
    """What the delegate takes of what runs on the GPU, for a model that does not run wholly there."""
    groups = [f"{len(partition.nodes)}: {number_ranges(partition.nodes)}" for partition in delegated.partitions]
    if delegated.partitions == found.partitions:
        return f"The delegate takes {'it' if len(groups) == 1 else 'all of them'}."
    taken = sum(len(partition.nodes) for partition in delegated.partitions)
    of_all = f"{taken} of {len(found.graph.nodes)} operators"
    why = "the others cost more than the work that they take over"
    if not groups:
        return "The delegate takes none of them: a partition costs two copies, and these save less than that."
    if len(groups) > _MOST_GROUPS:
        return f"The delegate takes {of_all} in {len(groups)} partitions; {why}."
    return f"The delegate takes {of_all} in {counted(len(groups), 'partition')} ({'; '.join(groups)}); {why}."


def unknown_custom_ops(graph: Graph) -> tuple[str, ...]:
    """The names of custom ops that the engine does not compute, each once."""
    names = [custom_name(node) for node in graph.nodes]
    known = {names[number] for number in computed_by_functions(graph)}
    return tuple(name for name in dict.fromkeys(names) if name and name not in known)
