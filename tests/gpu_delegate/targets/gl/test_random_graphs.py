"""Random graphs of all ops, of floats and of bytes, against TensorFlow Lite: `make fuzz-graphs` tries thousands."""

from collections import Counter
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests.fuzz import graphs
from tests.fuzz.graphs import FINE, again, made, small_failure
from tests.fuzz.reduction import reduced
from tests.generators.profiles import random_graph
from tests.generators.random_graphs import described
from tests.generators.value_steps import OUTSIDE
from tests.helpers.checked_graphs import CheckedGraph, first_difference, ways_of
from tests.helpers.markers import one_in
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context

GRAPHS = (
    ("float", 10),
    ("float", 30),
    ("int8", 10),
    ("uint8", 10),
    ("subgraphs", 10),
    ("states", 10),
)  # kind, how many
CUSTOM = {name for name in SUPPORTED_OPS if not name.isupper()}  # which TensorFlow Lite's interpreter lacks


@one_in(4, ("kind", "count"), GRAPHS)
def test_random_graphs_agree_with_tensorflow_lite(context: Context, kind: str, count: int) -> None:
    """Of a failing one, what is left when all is taken away that does not matter."""

    @hypothesis.settings(max_examples=count, derandomize=True, database=None, phases=[hypothesis.Phase.generate])
    @hypothesis.given(seed=st.integers(0, 1 << 20))
    def agrees(seed: int) -> None:
        text, _ = first_difference(CheckedGraph(*made(seed, kind), seed=seed), ways_of(seed), context)
        if text:
            pytest.fail(f"{text}\n{described(small_failure(seed, kind, context))}\n{again(seed, kind)}")

    agrees()


def test_graphs_have_every_op_and_differ_in_size() -> None:
    ops, sizes, ranks, dtypes = Counter[str](), set[int](), set[int](), set[str]()
    for seed in range(150):
        sketch = random_graph(seed)
        ops.update({op.name for op in sketch.ops})
        sizes.add(len(sketch.ops))
        ranks |= {len(sketch.shape(i)) for op in sketch.ops for i in op.outputs}
        dtypes |= {sketch.dtype(i) for op in sketch.ops for i in op.outputs}
    assert random_graph(149).build() == sketch.build()
    assert set(SUPPORTED_OPS) - set(ops) <= OUTSIDE | CUSTOM
    assert {2, 10} <= sizes
    assert max(sizes) > 25
    assert ranks >= {0, 1, 2, 3, 4}
    assert dtypes >= {"float32", "int32", "bool"}


def test_graphs_with_graphs_of_their_own_and_states_have_each_of_them() -> None:
    ops, depths = Counter[str](), set[int]()
    for seed in range(40):
        sketch = random_graph(seed, "subgraphs")
        assert sketch.build() == random_graph(seed, "subgraphs").build()
        ops.update({op.name for op in sketch.ops})
        depths |= {len(body.ops) for body in sketch.further}
        assert not {"STABLEHLO_COMPOSITE", "IF", "WHILE"}.isdisjoint(op.name for op in sketch.ops)
        states = random_graph(seed, "states")
        ops.update({op.name for op in states.ops})
        ops["fed"] += len(states.fed)
    assert min(ops[name] for name in ("STABLEHLO_COMPOSITE", "IF", "WHILE", "ASSIGN_VARIABLE", "SVDF", "LSTM")) >= 4
    assert ops["fed"] >= 4
    assert max(depths) >= 6


def test_outputs_are_fed_back_in_each_way(context: Context) -> None:
    """Of what is summed over four runs, every way gives the sums."""
    m = Sketch(0)
    before, x = m.input((2, 3)), m.input((2, 3))
    m.output(m.binary("ADD", before, x))
    inputs = [[np.full((2, 3), 9, np.float32), np.full((2, 3), run, np.float32)] for run in range(4)]
    checked = CheckedGraph(m.build(), inputs, {0: 0})
    assert [outputs[0][1, 2] for outputs in checked.wanted] == [9, 10, 12, 15]
    assert [checked.difference(way, context) for way in ("native", "software", "delegate")] == ["", "", ""]


def test_a_run_goes_on_where_another_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "outcomes", lambda seeds, kind: [FINE[seed % 2] for seed in seeds])
    log = tmp_path / "states.jsonl"
    found = dict(graphs.fuzz([3, 4], "states", log))
    with log.open("a") as file:
        file.write('[5, "agr')
    assert graphs.known_outcomes(log) == found == {3: "in part", 4: "agrees"}


def test_estimates_of_long_products_stay_numbers() -> None:
    """Of one with more than 1750 factors, whose size no float can say."""
    assert random_graph(1522).ops


def test_a_failing_graph_becomes_small() -> None:
    """What makes it fail, and nothing else."""
    m = Sketch(0)
    x = m.unary("TANH", m.conv(m.image(4, 5, 3), 5))
    y = m.unary("RELU", m.binary("ADD", x, m.unary("ABS", x)))
    m.output(m.unary("SQUARE", y), m.unary("NEG", x))

    def fails(model: ModelBuilder) -> bool:
        return "ADD" in [node.op for node in read_model(model.build()).nodes]

    small = reduced(m, fails)
    assert [op.name for op in small.ops] == ["ADD"]
    assert fails(small)


def test_a_wrong_result_is_told(context: Context) -> None:
    sketch = random_graph(3)
    checked = CheckedGraph(sketch.build(), [sketch.values(0)])
    checked.wanted = [[values + values.dtype.type(1) for values in outputs] for outputs in checked.wanted]
    assert "apart" in checked.difference("native")
