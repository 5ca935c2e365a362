"""Integers on the GPU: floats where float32 has them all, or their last digits make no difference; else wide ones."""

from typing import Any

import numpy as np
import pytest

import texelflow
from tests.helpers.delegated import inferred, interpreter_of
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.passes.exact_integers import wide_integers
from texelflow.gpu_delegate.passes.folding import fold_constants
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions

SHAPE = (2, 5)


def wide(model: ModelBuilder, *outputs: int) -> list[str]:
    """The ops of a model that compute with wide integers."""
    model.output(*outputs)
    graph = fold_constants(read_model(model.build()))[0]
    assert not graph.opaque
    assert not compile_partitions(graph, SOFTWARE).reasons
    return [graph.nodes[number].op for number in sorted(wide_integers(graph).nodes)]


def op(m: ModelBuilder, name: str, *inputs: int, dtype: str = "int32", **options: Any) -> int:
    return m.op(name, inputs, SHAPE, dtype, **options)


def test_what_nobody_bounds_is_wide() -> None:
    m = ModelBuilder()
    x, y, one = m.input(SHAPE, "int32"), m.input(SHAPE, "int32"), m.constant(1, "int32")
    assert wide(m, op(m, "ADD", x, one), op(m, "NEG", x), op(m, "LESS", x, y, dtype="bool")) == ["ADD", "NEG", "LESS"]


def test_what_is_compared_with_small_integers_may_be_rounded() -> None:
    m = ModelBuilder()
    x, one = m.input(SHAPE, "int32"), m.constant(1, "int32")
    limit = m.constant((1 << 24) + 1, "int32")
    found = [op(m, "LESS", x, one, dtype="bool"), op(m, "MINIMUM", op(m, "MAXIMUM", x, one), m.constant(6, "int32"))]
    assert wide(m, *found) == []
    assert wide(m, op(m, "EQUAL", x, limit, dtype="bool")) == ["EQUAL"]


def test_what_limits_bound_is_taken() -> None:
    m = ModelBuilder()
    x, low, high = m.input(SHAPE), m.constant(-9, "int32"), m.constant(1000, "int32")
    whole = op(m, "CAST", x)
    within = op(m, "MINIMUM", op(m, "MAXIMUM", whole, low), high)
    square = op(m, "MUL", within, within)
    assert wide(m, op(m, "FLOOR_DIV", square, high), op(m, "MUL", square, within)) == ["MUL"]


def test_integers_that_were_floats_may_be_moved_and_compared() -> None:
    m = ModelBuilder()
    whole = op(m, "CAST", m.input(SHAPE, "float32"))
    moved = m.op("TRANSPOSE", [whole, m.constant([1, 0], "int32")], SHAPE[::-1], "int32")
    chosen = op(m, "MAXIMUM", whole, m.constant(5, "int32"))
    assert wide(m, moved, op(m, "GREATER", chosen, whole, dtype="bool"), op(m, "ADD", whole, whole)) == ["ADD"]


def test_positions_and_floats_may_come_from_any_integers() -> None:
    """What float32 makes of a large integer is as much out of range, and its nearest float is that of both."""
    m = ModelBuilder()
    x, places = m.input((1, 7, 3)), m.input((1, 4), "int32")
    flat = m.op("RESHAPE", [places, m.constant([4], "int32")], (4,), "int32")
    assert wide(
        m, m.op("GATHER", [x, flat], (1, 4, 3), axis=1), m.op("CAST", [places], (1, 4), "float32")
    ) == []  # fmt: skip


def test_positions_that_others_read_too_are_integers() -> None:
    m = ModelBuilder()
    x, places = m.input((1, 7, 3)), m.input((1, 4), "int32")
    flat = m.op("RESHAPE", [places, m.constant([4], "int32")], (4,), "int32")
    assert wide(m, m.op("GATHER", [x, flat], (1, 4, 3), axis=1), flat) == ["RESHAPE"]


def test_sizes_are_constants_however_large() -> None:
    m = ModelBuilder()
    shape = m.op("SHAPE", [x := m.input((1, 3, 4, 5))], (4,), "int32", out_type=2)
    large = m.op("MUL", [shape, m.constant([1, 1 << 20, 1 << 20, 1], "int32")], (4,), "int32")
    sizes = m.op("DIV", [large, m.constant([1, 1 << 20, 1 << 20, 1], "int32")], (4,), "int32")
    assert wide(m, m.op("RESHAPE", [x, sizes], (1, 3, 4, 5))) == []


def test_bits_that_a_type_has_not_are_cut_off() -> None:
    m = ModelBuilder()
    x, of_32_bits = m.input((4,), "int64"), m.input((4,), "int32")
    short = m.op("CAST", [x], (4,), "int32")
    long = m.op("CAST", [of_32_bits], (4,), "int64")
    positions = m.op("GATHER", [m.input((9,)), short], (4,)), m.op("GATHER", [m.input((9,)), long], (4,))
    assert wide(m, *positions) == ["CAST"]


def test_integers_keep_their_range_from_one_partition_to_the_next() -> None:
    m = ModelBuilder()
    x, low, high = m.input(SHAPE), m.constant(0, "int32"), m.constant(255, "int32")
    within = op(m, "MINIMUM", op(m, "MAXIMUM", op(m, "CAST", x), low), high)
    there = op(m, "NOBODY_KNOWS", within)
    m.output(op(m, "ADD", op(m, "MUL", within, within), within), op(m, "ADD", there, high))
    graph = read_model(m.build())
    reasons = compile_partitions(graph, SOFTWARE).reasons
    assert [graph.nodes[number].op for number in reasons] == ["NOBODY_KNOWS"]


def test_constants_that_float32_does_not_have_are_wide() -> None:
    m = ModelBuilder()
    whole = op(m, "CAST", m.input(SHAPE))
    assert wide(m, op(m, "MAXIMUM", whole, m.constant(np.int32((1 << 24) + 1), "int32"))) == ["MAXIMUM"]


@pytest.mark.gl
def test_the_delegate_gives_the_same_for_integers_of_any_size() -> None:
    m = ModelBuilder()
    x, numbers = m.input((1, 7, 3)), m.input((4,), "int32")
    one, limit = m.constant(1, "int32"), m.constant(6, "int32")
    added = m.op("ADD", [numbers, one], (4,), "int32")
    floats = m.op("CAST", [m.op("RESHAPE", [numbers, m.constant([2, 2], "int32")], (2, 2), "int32")], (2, 2))
    within = m.op("MINIMUM", [m.op("MAXIMUM", [numbers, one], (4,), "int32"), limit], (4,), "int32")
    m.output(added, floats, m.op("GATHER", [x, within], (1, 4, 3), axis=1))
    model = m.build()
    values = [
        np.random.default_rng(1).uniform(-1, 1, (1, 7, 3)).astype(np.float32),
        np.array([(1 << 24) + 1, -(1 << 30) - 1, 5, np.iinfo(np.int32).max], np.int32),
    ]
    with texelflow.GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True) as delegate:
        interpreter = interpreter_of(model, delegate, xnnpack=False)
        found, wanted = inferred(interpreter, values), inferred(interpreter_of(model, xnnpack=False), values)
        taken = {read_model(model).nodes[k].op for each in delegate.partitions for k in each.nodes}
        del interpreter
    assert {"CAST", "RESHAPE", "GATHER", "ADD"} <= taken
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.gl
@pytest.mark.parametrize(
    ("places", "is_right"),
    [([0, 6, -1, -7], True), ([0, 7, -1, -7], False), ([0, 6, -8, -7], False), ([0, 6, 1, -(1 << 30)], False)],
)
def test_places_from_the_end_are_those_of_tensorflow_lite(places: list[int], is_right: bool) -> None:
    """An Embedding of Keras: rows of a table of 7, where places below zero count from its end."""
    m = ModelBuilder()
    given, seven, shape = m.input((1, 4), "int32"), m.constant(7, "int32"), (1, 4)
    below, moved = (
        m.op("LESS", [given, m.constant(0, "int32")], shape, "bool"),
        m.op("ADD", [given, seven], shape, "int32"),
    )
    chosen = m.op("SELECT_V2", [below, moved, given], shape, "int32")
    table = m.constant(np.random.default_rng(0).uniform(-1, 1, (7, 3)))
    m.output(m.op("GATHER", [table, chosen], (1, 4, 3), axis=0))
    model, values = m.build(), [np.array([places], np.int32)]
    with texelflow.GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True) as delegate:
        interpreter = interpreter_of(model, delegate, xnnpack=False)
        assert [len(each.nodes) for each in delegate.partitions] == [4]
        if is_right:
            (found,), (wanted,) = inferred(interpreter, values), inferred(interpreter_of(model, xnnpack=False), values)
            np.testing.assert_array_equal(found, wanted)
        else:
            for each in (interpreter, interpreter_of(model, xnnpack=False)):
                with pytest.raises(RuntimeError):
                    inferred(each, values)
        del interpreter
