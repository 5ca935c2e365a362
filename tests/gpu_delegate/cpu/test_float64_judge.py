"""Distances from float64: whose counts, when float64 is believed, and at which op an error begins to grow."""

from dataclasses import replace

import numpy as np
import pytest

from tests.model_files.model_builder import ModelBuilder, selfie_like
from texelflow.gpu_delegate.cpu.compare import Difference, Distances
from texelflow.gpu_delegate.cpu.float64_judge import Float64Judge, first_growth, furthest, has_truth
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Node
from texelflow.gpu_delegate.reading.reader import read_model

LIMIT, NAN = 1e-4, float("nan")


@pytest.mark.parametrize(
    ("ours", "reference", "xnnpack", "theirs", "is_as_near"),
    [
        (1e-3, 1e-6, 2e-3, 2e-3, True),  # nearer than the worse of theirs
        (2e-3, 1e-6, 2e-3, 2e-3, True),
        (3e-3, 1e-6, 2e-3, 2e-3, False),
        (1e-3, 1e-2, 1e-2, 1e-6, False),  # both of theirs say what float64 does not
        (5e-3, 1e-2, 2e-2, 3e-2, True),  # theirs are further apart than float64 is from either
        (1e-5, 5e-5, None, 0.0, True),
        (1e-3, 1e-2, None, 0.0, False),  # of one alone nobody knows who is right
        (NAN, 1e-6, 2e-3, 2e-3, False),
        (1e-6, NAN, NAN, NAN, False),
    ],
)
def test_who_is_as_near(ours: float, reference: float, xnnpack: float | None, theirs: float, is_as_near: bool) -> None:
    assert Distances(ours, reference, xnnpack, theirs, 1.0).is_as_near(LIMIT) == is_as_near


@pytest.mark.parametrize(("rounding", "is_as_near"), [(None, False), (5e-4, False), (1e-3, True), (NAN, False)])
def test_a_network_may_amplify_rounding(rounding: float | None, is_as_near: bool) -> None:
    assert Distances(3e-3, 1e-6, 2e-3, 2e-3, 1.0, rounding).is_as_near(LIMIT) == is_as_near
    assert not Distances(3e-3, 1e-2, 1e-2, 1e-6, 1.0, 2e-3).is_as_near(LIMIT), "float64 is not to be believed"
    assert Distances(3e-3, 1e-2, 1e-2, 1e-6, 1.0, 3e-3).is_as_near(LIMIT)


def test_how_much_rounding_is_amplified_is_measured() -> None:
    """x + 1000 - 1000 a hundred times as large: the sum is rounded, and the rest makes much of that."""
    model = ModelBuilder()
    x = model.input((1, 1000))
    summed = model.op("ADD", [x, model.constant(np.array([1000.0], np.float32))], (1, 1000))
    small = model.op("SUB", [summed, model.constant(np.array([1000.0], np.float32))], (1, 1000))
    model.output(model.op("MUL", [small, model.constant(np.array([100.0], np.float32))], (1, 1000)))
    graph = read_model(model.build())
    values = np.random.default_rng(0).random((1, 1000), np.float32)
    reference = Reference(graph, keep_all_tensors=True)
    reference.run([values])
    given = reference.tensor, reference.tensor, [values], graph.outputs
    judge = Float64Judge(graph, False)
    (unmeasured,) = judge.measure(*given).values()
    (found,) = judge.measure(*given, rounds=True).values()
    assert unmeasured.rounding is None
    assert found.rounding is not None
    assert found.rounding == pytest.approx(100 * 1000 * 2**-24, rel=0.01)
    assert found.rounding / 4 < found.reference <= found.rounding * 1.01


def difference(tensor: int, inputs: tuple[int, ...], behind: tuple[Node, ...] = ()) -> Difference:
    node = Node("NEG", inputs, (tensor,), index=tensor)
    return Difference(tensor, f"t{tensor}", (1,), node, "", behind, 1.0, 1.0, 1.0, LIMIT)


def distances(ours: float, magnitude: float = 1.0) -> Distances:
    return Distances(ours, 0.0, 0.0, 0.0, magnitude)


def test_float64_decides_only_where_it_is_asked_to() -> None:
    near = replace(difference(1, (0,)), truth=Distances(1e-3, 1e-6, 2e-3, 2e-3, 1.0))
    assert near.diverges
    assert not replace(near, truth_decides=True).diverges
    assert replace(near, truth_decides=True, truth=None).diverges
    assert not replace(near, max_error=LIMIT).diverges


def test_the_op_at_which_an_error_grows() -> None:
    """In parts of magnitudes; what rounding takes is no growth, and neither is what the inputs had."""
    chain = [difference(1, (0,)), difference(2, (1,)), difference(3, (2,), (Node("ABS", (1,), (9,), index=9),))]
    small, large = distances(2e-6), distances(1e-3)
    assert first_growth(chain, {1: small, 2: small, 3: small}) is None
    assert first_growth(chain, {1: small, 2: distances(2e-3, 1e3), 3: small}) is None
    found = first_growth(chain, {1: small, 2: large, 3: distances(3e-3)})
    assert found is not None
    assert (found[0].tensor, found[1:]) == (2, (2e-6, 1e-3))
    grown = first_growth(chain, {1: large, 2: large, 3: distances(NAN)})
    assert grown is not None
    assert grown[0].tensor == 1
    last = first_growth(chain[1:], {1: small, 2: small, 3: distances(NAN)})
    assert last is not None
    assert last[0].tensor == 3


def test_the_largest_figures_of_several_inputs() -> None:
    found = furthest([Distances(1, 5, None, 2, 3), Distances(4, 2, 7, 1, 9)])
    assert found == Distances(4, 5, 7, 2, 9)
    assert np.isnan(furthest([distances(1), distances(NAN)]).ours)
    assert furthest([Distances(1, 5, None, 2, 3)]).xnnpack is None


@pytest.mark.parametrize("every_tensor", [True, False])
def test_both_sets_of_kernels_are_measured(every_tensor: bool) -> None:
    """Rounding to float32 is all that either does; XNNPACK gives inner tensors only where it is asked for all."""
    graph = read_model(selfie_like(1))
    values = [np.random.default_rng(0).random(graph.tensors[graph.inputs[0]].shape, np.float32)]
    reference = Reference(graph, keep_all_tensors=True)
    reference.run(values)
    wanted = [node.outputs[0] for node in graph.nodes]
    found = Float64Judge(graph, every_tensor).measure(reference.tensor, reference.tensor, values, wanted)
    assert has_truth(graph)
    assert set(found) == set(wanted)
    assert all(each.ours == each.reference <= 1e-4 * max(1, each.magnitude) for each in found.values())
    outer = {tensor for tensor, each in found.items() if each.xnnpack is not None}
    computed = [node.outputs[0] for node in graph.nodes if node.op != "DEQUANTIZE"]  # not of weights alone
    assert outer == set(computed if every_tensor else graph.outputs)
    last = found[graph.outputs[0]]
    assert last.xnnpack is not None
    assert 0 < last.xnnpack <= 1e-4
    assert last.theirs <= last.xnnpack + last.reference


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 0.25])
@pytest.mark.parametrize("ours", [None, 1.0, np.inf, np.nan])
def test_infinities_and_what_is_no_number(value: float, ours: float | None) -> None:
    """The same on both sides agrees."""
    model = ModelBuilder()
    model.output(model.op("NEG", [model.input((1, 2))], (1, 2)))
    graph = read_model(model.build())
    values = np.array([[-value, 0]], np.float32)
    right = np.array([[value, 0]], np.float32)
    found = right if ours is None else np.array([[ours, 0]], np.float32)
    (measured,) = Float64Judge(graph, False).measure(lambda _: found, lambda _: right, [values], graph.outputs).values()
    assert measured.reference == measured.xnnpack == 0
    if ours is None or ours == value or (np.isnan(value) and np.isnan(ours)):
        assert measured.ours == 0
    else:
        np.testing.assert_equal(measured.ours, abs(ours - value))


def test_quantized_networks_are_defined_by_how_they_round() -> None:
    model = ModelBuilder()
    x = model.tensor((1, 4), "int8", scales=(0.1,), zero_points=(0,))
    model.inputs.append(x)
    model.output(model.op("DEQUANTIZE", [x], (1, 4)))
    graph = read_model(model.build())
    assert not has_truth(graph)
