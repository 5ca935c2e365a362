"""TensorFlow Lite's reallocation graph: which tensors may share memory in any order of tasks.

Source: the reallocation graph of TensorFlow Lite's GPU delegate.
"""

from collections.abc import Sequence


def reallocation_graph(readers: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """For each task the sorted tasks whose tensors may share memory with its own, where tasks run side by side.

    A task may write where another's tensor was if it waits for all that read that: if it can be reached from each.
    Readers have higher numbers than the task itself.
    """
    reached: list[frozenset[int]] = [frozenset()] * len(readers)
    for task in reversed(range(len(readers))):
        reached[task] = frozenset(readers[task]).union(*(reached[reader] for reader in readers[task]))
    shared: list[set[int]] = [set() for _ in readers]
    for task, direct in enumerate(readers):
        later = frozenset.intersection(*(reached[reader] for reader in direct)) if direct else frozenset[int]()
        for other in later:
            shared[task].add(other)
            shared[other].add(task)
    return tuple(tuple(sorted(tasks)) for tasks in shared)
