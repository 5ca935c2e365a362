"""Graphs of ops that look values up: by constants, and by integers that are computed."""

from collections.abc import Iterator
from typing import Any

from tests.model_files.sketch import GraphCase, Shape, Sketch
from tests.tables.integer_graphs import integers, whole


def lookup_graphs() -> Iterator[GraphCase]:
    """All of them."""
    yield _row("GATHER", "indices of several dimensions", _gathered)
    yield _row("GATHER", "with maps of a batch", _gathered_of_batch)
    yield _row("GATHER_ND", "of one to four dimensions", _gathered_nd)
    yield _row("EMBEDDING_LOOKUP", "of vectors and of maps", _embedded)
    yield _row("ONE_HOT", "along every axis", _one_hot)
    yield _row("SCATTER_ND", "by constants, several in one place", _scattered)
    yield _row("SCATTER_ND", "by computed indices", _scattered_anywhere)
    yield _row("REVERSE_SEQUENCE", "of rows, of channels, of a batch", _reversed)
    yield _row("DYNAMIC_UPDATE_SLICE", "at corners and beyond", _updated)
    yield _row("FILL", "with computed values", _filled)
    yield _row("SELECT", "for each map of a batch", _chosen)


def _row(op: str, what: str, draw: Any) -> GraphCase:
    return GraphCase(op, what, draw, tolerance=1e-6, low=-10.0, high=10.0)


def _places(m: Sketch, size: int, *shape: int) -> tuple[int, int]:
    """Constant indices, and computed ones."""
    computed = whole(m, m.input(shape), 0, size - 1)
    return integers(m, m.rng.integers(0, size, shape)), computed


def _gathered(m: Sketch) -> tuple[int, ...]:
    found = []
    for axis, shape in enumerate(((3, 4, 5, 5), (1, 4, 6, 13), (3, 2, 7, 4), (1, 3, 5, 13))):
        x = m.input(shape)
        for indices in (*_places(m, shape[axis], 2, 3), *_places(m, shape[axis])):
            sides = m.shape(indices)
            if len(shape) - 1 + len(sides) <= 4 or axis == 0:
                x = m.input(shape[:3]) if len(sides) == 2 and axis < 3 else x
                own = m.shape(x)
                if axis < len(own):
                    found.append(m.op("GATHER", [x, indices], (*own[:axis], *sides, *own[axis + 1 :]), axis=axis))
    truth = m.binary("GREATER", m.input((4, 5)), m.constant(0.0), dtype="bool")
    found.append(m.op("GATHER", [truth, _places(m, 5, 3)[1]], (4, 3), "bool", axis=1))
    found.append(m.op("GATHER", [whole(m, m.input((7, 3))), _places(m, 7, 5)[1]], (5, 3), "int32", axis=0))
    return tuple(found)


def _gathered_of_batch(m: Sketch) -> tuple[int, ...]:
    found = []
    for shape, axis, batch, indices in (
        ((3, 7, 5), 1, 1, (3, 4)), ((3, 2, 7, 5), 2, 1, (3, 4)), ((3, 2, 7, 5), 2, 2, (3, 2, 3)),
        ((3, 13), 1, 1, (3, 5)),
    ):  # fmt: skip
        x = m.input(shape)
        out = (*shape[:axis], *indices[batch:], *shape[axis + 1 :])
        found += [
            m.op("GATHER", [x, each], out, axis=axis, batch_dims=batch) for each in _places(m, shape[axis], *indices)
        ]
    return tuple(found)


def _gathered_nd(m: Sketch) -> tuple[int, ...]:
    found = []
    for shape, count in (((7, 5), (3, 1)), ((4, 6, 13), (5, 2)), ((3, 4, 5, 3), (2, 2, 3)), ((3, 4, 5, 3), (6, 4))):
        x = m.input(shape)
        sides = shape[: count[-1]]
        fixed = integers(m, m.rng.integers(0, sides, count))
        computed = m.op(
            "CONCATENATION",
            [whole(m, m.input((*count[:-1], 1)), 0, size - 1) for size in sides], count, "int32", axis=len(count) - 1,
        )  # fmt: skip
        out = (*count[:-1], *shape[count[-1] :])
        found += [m.op("GATHER_ND", [x, indices], out) for indices in (fixed, computed)]
    return tuple(found)


def _embedded(m: Sketch) -> tuple[int, ...]:
    found = []
    for shape in ((11, 5), (4, 3, 13)):
        for table in (m.input(shape), m.random(*shape)):
            found += [m.op("EMBEDDING_LOOKUP", [i, table], (6, *shape[1:])) for i in _places(m, shape[0], 6)]
    return tuple(found)


def _one_hot(m: Sketch) -> tuple[int, ...]:
    """Indices out of range are nowhere."""
    found = []
    for shape, axis in (((), 0), ((5,), 0), ((5,), -1), ((3, 4), 1), ((3, 4, 5), -1), ((3, 2, 4), 0)):
        indices = whole(m, m.input(shape), -2, 8)
        at = axis % (len(shape) + 1)
        out = (*shape[:at], 7, *shape[at:])
        for on, off in ((m.constant(1.0), m.constant(0.0)), (m.constant(-2.5), m.constant(0.5))):
            found.append(m.op("ONE_HOT", [indices, integers(m, 7), on, off], out, axis=axis))
    bits = [m.constant(value, "bool") for value in (True, False)]
    found.append(m.op("ONE_HOT", [whole(m, m.input((3,)), 0, 4), integers(m, 5), *bits], (3, 5), "bool", axis=-1))
    numbers = [integers(m, value) for value in (1, 0)]
    found.append(m.op("ONE_HOT", [whole(m, m.input((3,)), 0, 4), integers(m, 5), *numbers], (3, 5), "int32", axis=-1))
    return tuple(found)


_SCATTERS: tuple[tuple[Shape, Shape], ...] = (
    ((7,), (5, 1)),
    ((6, 5), (4, 1)),
    ((4, 3, 13), (5, 2)),
    ((3, 4, 2, 5), (2, 3, 2)),
)


def _scattered(m: Sketch) -> tuple[int, ...]:
    found = []
    for shape, count in _SCATTERS:
        indices = integers(m, m.rng.integers(0, shape[: count[-1]], count))
        updates = m.input((*count[:-1], *shape[count[-1] :]))
        found.append(m.op("SCATTER_ND", [indices, updates, integers(m, shape)], shape))
    same = integers(m, [[1], [1], [3]])
    found.append(m.op("SCATTER_ND", [same, whole(m, m.input((3, 5))), integers(m, (4, 5))], (4, 5), "int32"))
    return tuple(found)


def _scattered_anywhere(m: Sketch) -> tuple[int, ...]:
    found = []
    for shape, count in _SCATTERS:
        sides = [whole(m, m.input((*count[:-1], 1)), 0, size - 1) for size in shape[: count[-1]]]
        indices = m.op("CONCATENATION", sides, count, "int32", axis=len(count) - 1)
        updates = m.input((*count[:-1], *shape[count[-1] :]))
        found.append(m.op("SCATTER_ND", [indices, updates, integers(m, shape)], shape))
    return tuple(found)


def _reversed(m: Sketch) -> tuple[int, ...]:
    found = []
    for shape, sequence, batch in (
        ((3, 7, 5), 1, 0),
        ((4, 3), 1, 0),
        ((5, 4, 13), 0, 1),
        ((3, 4, 5, 3), 2, 1),
        ((2, 3, 4, 13), 3, 0),
    ):
        x, size = m.input(shape), shape[sequence]
        lengths = integers(m, m.rng.integers(-1, size + 1, shape[batch])), whole(m, m.input((shape[batch],)), 1, size)
        found += [m.op("REVERSE_SEQUENCE", [x, each], shape, seq_dim=sequence, batch_dim=batch) for each in lengths]
    return tuple(found)


def _updated(m: Sketch) -> tuple[int, ...]:
    """Where starts are known, and where they are computed."""
    found = []
    for shape, update, start in (
        ((3, 5, 7, 13), (2, 3, 2, 5), (1, 0, 2, 6)), ((7, 5), (2, 5), (9, -3)),
        ((1, 4, 6, 3), (1, 4, 6, 3), (0, 0, 0, 0)),
    ):  # fmt: skip
        starts = integers(m, start), whole(m, m.input((len(shape),)), -1, 4)
        found += [m.op("DYNAMIC_UPDATE_SLICE", [m.input(shape), m.input(update), each], shape) for each in starts]
    return tuple(found)


def _filled(m: Sketch) -> tuple[int, ...]:
    value, whole_value = m.input(()), whole(m, m.input(()))
    zeros = m.op("ZEROS_LIKE", [m.input((2, 3))], (2, 3))
    numbers = m.op("RANGE", [m.constant(v) for v in (1.0, 9.5, 2.0)], (5,))
    rank = m.op("CAST", [m.op("RANK", [zeros], (), "int32")], ())
    made = m.binary("ADD", numbers, m.op("FILL", [integers(m, (3, 5)), value], (3, 5)))
    return (
        made, m.op("FILL", [integers(m, (2, 3, 2, 5)), value], (2, 3, 2, 5)),
        m.op("FILL", [integers(m, (4,)), whole_value], (4,), "int32"),
        m.binary("ADD", zeros, m.binary("ADD", m.input((2, 3)), rank)),
    )  # fmt: skip


def _chosen(m: Sketch) -> tuple[int, ...]:
    found = []
    for shape in ((3, 4, 5, 5), (2, 3, 13), (3, 4)):
        condition = m.binary("GREATER", m.input(shape[:1]), m.constant(0.0), dtype="bool")
        found.append(m.op("SELECT", [condition, m.input(shape), m.input(shape)], shape))
    return tuple(found)
