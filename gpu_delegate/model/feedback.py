"""Feeds outputs of a graph back as its inputs, so that what it keeps from run to run never leaves the device."""

from collections.abc import Mapping
from dataclasses import replace

from ..base.errors import UsageError
from .graph import Graph, KeptState


def with_feedback(graph: Graph, fed: Mapping[int, int]) -> Graph:
    """The graph with an output for each of these inputs, whose place it takes before the next run.

    Zeros are what such an input is at first; whoever writes it sets what the next run begins with. Raises UsageError
    for what are no inputs and outputs, for those that differ in shape, type or meaning, for an input that is an output
    as well, which would be the next run's, and for names that are not clear.
    """
    states, names = list[KeptState](), {state.name for state in graph.states}
    for read, written in fed.items():
        if read not in graph.inputs or written not in graph.outputs:
            wrong = f"tensor {read} is no input" if read not in graph.inputs else f"tensor {written} is no output"
            raise UsageError(f"{graph.name}: {wrong} of the model")
        one, other = graph.tensors[read], graph.tensors[written]
        if read in graph.outputs and read != written:
            raise UsageError(f"{graph.name}: {graph.tensors[read].name} is an output, too, and cannot be fed back")
        if graph.tensors[read].name in names:
            raise UsageError(f"{graph.name}: {graph.tensors[read].name!r} is fed back already, or another of this name")
        names.add(graph.tensors[read].name)
        said = [(each.shape, each.dtype, each.quantization) for each in (one, other)]
        if said[0] != said[1]:
            kinds = " and ".join(f"{each.name} is {each.dtype} {list(each.shape)}" for each in (other, one))
            raise UsageError(f"{graph.name}: an output is fed back as an input of its kind; {kinds}")
        states.append(KeptState(one, read, written, is_shared=False))
    return replace(graph, states=(*graph.states, *states))
