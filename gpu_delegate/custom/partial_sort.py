"""The positions of the greatest values, equal ones in the order in which libstdc++'s std::partial_sort leaves them.

It is a heap of the first values whose least is replaced by what is greater, sorted at the end (heap select, then
heapsort; the hole sinks to a leaf and the value rises from there, R. W. Floyd, "Algorithm 245: Treesort 3", 1964).
Where no two values are equal, any sort gives the same.
"""

import numpy as np
import numpy.typing as npt


def greatest_first(values: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """The positions of so many of the greatest values, descending. NaN is beside whatever it is compared with."""
    if count == 1:
        return np.array([first_greatest(values)])
    order = np.argsort(-values, kind="stable")
    ranked = values[order[: count + 1]]
    if not np.isnan(values).any() and (ranked[1:] < ranked[:-1]).all():
        return order[:count]
    places = [*range(len(values))]
    _heap_select(places, values.tolist(), count)
    return np.array(places[:count], np.int64)


def first_greatest(values: npt.NDArray[np.float32]) -> int:
    """The position of the greatest value that is no NaN, the first of equal ones; 0 behind a NaN that comes first."""
    if np.isnan(values[0]):
        return 0
    return int(np.argmax(np.where(np.isnan(values), -np.inf, values)))


def _heap_select(places: list[int], values: list[float], count: int) -> None:
    """Have the first places be those of the greatest values, descending."""
    for start in reversed(range(count // 2)):
        _sink(places, values, start, count, places[start])
    for place in range(count, len(places)):
        if count and values[places[place]] > values[places[0]]:
            taken, places[place] = places[place], places[0]
            _sink(places, values, 0, count, taken)
    for end in reversed(range(1, count)):
        taken, places[end] = places[end], places[0]
        _sink(places, values, 0, end, taken)


def _sink(places: list[int], values: list[float], hole: int, size: int, taken: int) -> None:
    """Move the hole down to a leaf, past the lesser of two children, then let what was taken out rise from there."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if values[places[child]] > values[places[child - 1]]:
            child -= 1
        places[hole] = places[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        places[hole] = places[child]
        hole = child
    while hole > top and values[places[(hole - 1) // 2]] > values[taken]:
        places[hole] = places[(hole - 1) // 2]
        hole = (hole - 1) // 2
    places[hole] = taken
