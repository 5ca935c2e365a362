"""Long ARG_MAX and ARG_MIN as reductions: of equal values the first one wins, and short ones stay."""

import numpy as np
import pytest

from tests.model_files.graph_writer import run_graph
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.model.graph import Reduce
from texelflow.gpu_delegate.passes.extrema import share_long_extrema
from texelflow.gpu_delegate.passes.verification import verify


@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
@pytest.mark.parametrize(("shape", "axis"), [((1, 1, 1, 1001), 3), ((1, 1, 300, 5), 2), ((2, 70, 3, 5), 1)])
def test_the_first_of_equal_values(op: str, shape: tuple[int, ...], axis: int) -> None:
    g = GraphBuilder()
    left = tuple(1 if k == axis else size for k, size in enumerate(shape))
    graph = g.graph(g.node(op, [g.input(*shape)], left, Reduce((axis,), True), "int64"))
    changed, outcome = share_long_extrema(graph)
    verify(changed)
    assert outcome.applied == 1
    assert len(changed.nodes) == 4
    values = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    wanted = (np.argmax if op == "ARG_MAX" else np.argmin)(values, axis)
    assert [node.op for node in changed.nodes][::3] == [op.replace("ARG", "REDUCE"), "REDUCE_MIN"]
    (found,) = run_graph(changed, [values])
    assert found.dtype == np.int64
    assert np.array_equal(np.squeeze(found), np.squeeze(wanted))


def test_what_is_short_or_leaves_much_stays_as_it_is() -> None:
    for shape, axis in (((1, 1, 1, 63), 3), ((1, 1, 2, 1001), 3), ((1, 70, 17, 5), 1), ((1, 5, 7, 3), 2)):
        g = GraphBuilder()
        left = tuple(1 if k == axis else size for k, size in enumerate(shape))
        graph = g.graph(g.node("ARG_MAX", [g.input(*shape)], left, Reduce((axis,), True), "int32"))
        assert share_long_extrema(graph)[1].applied == 0
