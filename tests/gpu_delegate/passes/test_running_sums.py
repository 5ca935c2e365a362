"""Running sums by other ops: the same numbers, in few steps whatever the length."""

import numpy as np
import pytest

from tests.model_files.graph_writer import run_graph
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.ops.running_sum import RunningSum
from texelflow.gpu_delegate.passes.running_sums import MOST_TERMS, expand_running_sums, terms_of_steps
from texelflow.gpu_delegate.passes.verification import verify


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 1, 9, 3), 0), ((2, 1, 9, 3), 1), ((2, 70, 3), 1), ((2, 5), 1), ((3, 300), 1), ((1,), 0)]
)
def test_running_sums(shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    g = GraphBuilder()
    graph = g.graph(g.node("CUMSUM", [g.input(*shape)], shape, RunningSum(axis, exclusive, reverse)))
    changed, outcome = expand_running_sums(graph)
    verify(changed)
    assert outcome.applied == 1
    values = [np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)]
    (found,), (wanted,) = (run_graph(each, values) for each in (changed, graph))
    assert np.allclose(found, wanted, atol=1e-5)


def test_steps_are_few_and_reach_all_places() -> None:
    for length in range(2, 3000):
        terms = terms_of_steps(length)
        assert max(terms) <= MOST_TERMS
        assert np.prod(terms) >= length
    assert [len(terms_of_steps(length)) for length in (8, 9, 64, 65, 512, 513)] == [1, 2, 2, 3, 3, 4]
