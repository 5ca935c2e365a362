"""A slow second implementation of TensorFlow Lite's partitioning of graphs.

Written from what TensorFlow Lite says of PartitionGraphIntoIndependentNodeSubsets: walk through all operators again and
again; the first that can run decides whose group it is; the group takes each operator of its side all of whose inputs
are there, until a whole walk adds none. Sets of tensors, no queues, no counts: nothing that partition.py does.
"""

from collections.abc import Container, Set

from texelflow.gpu_delegate.model.graph import ABSENT, Graph

ORDERED = ("IF", "WHILE", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")  # run one after the other


def slow_claim(graph: Graph, refused: Container[int], constants: Container[int]) -> frozenset[int]:
    """The operators that a delegate claims: all that are not refused, but constants that others need."""
    numbers = frozenset(range(len(graph.nodes)))
    claimed = frozenset(number for number in numbers if number not in refused)
    while claimed:
        needed = {*graph.outputs, *(tensor for number in numbers - claimed for tensor in graph.nodes[number].inputs)}
        kept = frozenset(n for n in claimed if n not in constants or needed.isdisjoint(graph.nodes[n].outputs))
        if kept == claimed:
            break
        claimed = kept
    return claimed if any(number not in constants for number in claimed) else frozenset()


def slow_subsets(graph: Graph, claimed: Set[int]) -> list[set[int]]:
    """The operators of each kernel that TensorFlow Lite makes of those that are claimed, in the order of running."""
    missing = {tensor for node in graph.nodes for tensor in node.outputs}
    left, kernels = list(range(len(graph.nodes))), list[set[int]]()
    in_turn = [number for number in left if graph.nodes[number].op in ORDERED]
    while left:
        group, is_claimed = set[int](), None
        grows = True
        while grows:
            grows = False
            for number in [*left]:
                node = graph.nodes[number]
                ready = missing.isdisjoint(tensor for tensor in node.inputs if tensor != ABSENT)
                if number in in_turn and not {*in_turn[: in_turn.index(number)]}.isdisjoint(left):
                    ready = False
                if ready and is_claimed in (None, number in claimed):
                    is_claimed, grows = number in claimed, True
                    group.add(number)
                    left.remove(number)
                    missing -= {*node.outputs}
        if is_claimed:
            kernels.append(group)
    return kernels


def slow_partitions(graph: Graph, refused: Container[int], constants: Container[int]) -> list[set[int]]:
    """What is computed at run time by each kernel that computes anything then."""
    kernels = slow_subsets(graph, slow_claim(graph, refused, constants))
    computed = [{number for number in kernel if number not in constants} for kernel in kernels]
    return [numbers for numbers in computed if numbers]
