"""Convolutions by panels and by Winograd's products: right at odd sizes, with vectors of 4, 8 and 16 lanes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest

from tests.helpers.engine import worst
from tests.helpers.markers import one_in
from tests.helpers.native import native_cases, native_networks
from tests.model_files.sketch import GraphCase, Sketch
from texelflow.gpu_delegate.cases.op_case import CaseArray
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.body import Body
from texelflow.gpu_delegate.plan.fusion import group_nodes
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork
from texelflow.gpu_delegate.targets.llvm.native_tuning import cpu_device
from texelflow.gpu_delegate.targets.llvm.panels import MOST_BYTES, packs
from texelflow.gpu_delegate.targets.llvm.patches import MOST_PANEL_BYTES, patches


def plus(
    model: Sketch, image: tuple[int, int, int], window: tuple[int, int], moved: Callable[[Sketch, int], int]
) -> int:
    """A convolution, and 32 channels at other pixels added."""
    height, width, _ = image
    return model.binary(
        "ADD", model.conv(model.image(*image), 32, window), moved(model, model.image(height, width, 32))
    )


def turned(model: Sketch, x: int) -> int:
    return model.op("TRANSPOSE", [x, model.constant((0, 2, 1, 3), "int32")], model.shape(x))


def reversed_rows(model: Sketch, x: int) -> int:
    return model.op("REVERSE_V2", [x, model.constant((2,), "int32")], model.shape(x))


DIRECT = (  # in the order of memory, or by rows
    GraphCase("CONV_2D", "17x17x9 1x7", lambda m: m.conv(m.image(17, 17, 9), 35, (1, 7))),
    GraphCase("CONV_2D", "17x17x9 7x1", lambda m: m.conv(m.image(17, 17, 9), 35, (7, 1))),
    GraphCase("CONV_2D", "11x9x5 5x5", lambda m: m.conv(m.image(11, 9, 5), 33, (5, 5))),
    GraphCase("CONV_2D", "35x33x7 3x3 s2", lambda m: m.conv(m.image(35, 33, 7), 34, (3, 3), stride=(2, 2))),
    GraphCase("CONV_2D", "48x50x3 3x3 s2", lambda m: m.conv(m.image(48, 50, 3), 32, (3, 3), stride=(2, 2))),
    GraphCase("CONV_2D", "13x10x9 3x2 s1x3", lambda m: m.conv(m.image(13, 10, 9), 32, (3, 2), stride=(1, 3))),
    GraphCase("CONV_2D", "19x21x6 3x3 valid", lambda m: m.conv(m.image(19, 21, 6), 32, (3, 3), padding="VALID")),
    GraphCase("CONV_2D", "5x5x390 1x1", lambda m: m.conv(m.image(5, 5, 390), 33)),
    GraphCase("CONV_2D", "33x32x65 1x1", lambda m: m.conv(m.image(33, 32, 65), 78)),
    GraphCase("CONV_2D", "3x3x8 3x3 s2", lambda m: m.conv(m.image(3, 3, 8), 32, (3, 3), stride=(2, 2))),
    GraphCase("CONV_2D", "2x1x9 3x3", lambda m: m.conv(m.image(2, 1, 9), 32, (3, 3))),
)
PATCHED = (
    GraphCase("CONV_2D", "16x16x16", lambda m: m.conv(m.image(16, 16, 16), 32, (3, 3))),
    GraphCase("CONV_2D", "17x19x18", lambda m: m.conv(m.image(17, 19, 18), 33, (3, 3))),
    GraphCase("CONV_2D", "19x64x20", lambda m: m.conv(m.image(19, 64, 20), 33, (3, 3))),
    GraphCase("CONV_2D", "18x33x16 valid", lambda m: m.conv(m.image(18, 33, 16), 32, (3, 3), padding="VALID")),
    GraphCase("CONV_2D", "7x15x40 relu", lambda m: m.conv(m.image(7, 15, 40), 36, (3, 3), activation="RELU")),
    GraphCase("CONV_2D", "17x17x20 1x7", lambda m: m.conv(m.image(17, 17, 20), 35, (1, 7))),
    GraphCase("CONV_2D", "17x17x20 7x1", lambda m: m.conv(m.image(17, 17, 20), 35, (7, 1))),
    GraphCase("CONV_2D", "8x8x48 1x3", lambda m: m.conv(m.image(8, 8, 48), 64, (1, 3))),
    GraphCase("CONV_2D", "13x10x48 3x1", lambda m: m.conv(m.image(13, 10, 48), 64, (3, 1))),
    GraphCase("CONV_2D", "13x11x17 5x5", lambda m: m.conv(m.image(13, 11, 17), 33, (5, 5))),
    GraphCase("CONV_2D", "14x18x16 3x5 valid", lambda m: m.conv(m.image(14, 18, 16), 32, (3, 5), padding="VALID")),
    GraphCase("CONV_2D", "11x12x16 7x7", lambda m: m.conv(m.image(11, 12, 16), 32, (7, 7))),
    GraphCase("CONV_2D", "19x20x40 2x2", lambda m: m.conv(m.image(19, 20, 40), 64, (2, 2))),
    GraphCase("CONV_2D", "9x9x24 + x", lambda m: m.binary("ADD", *[(x := m.image(9, 9, 32)), m.conv(x, 32, (3, 3))])),
)
MOVED = (  # added values lie at other pixels: neither panels nor patches
    GraphCase("CONV_2D", "16x16x16 + turned", lambda m: plus(m, (16, 16, 16), (3, 3), turned)),
    GraphCase("CONV_2D", "17x17x8 5x5 + turned", lambda m: plus(m, (17, 17, 8), (5, 5), turned)),
    GraphCase("CONV_2D", "17x17x16 + reversed", lambda m: plus(m, (17, 17, 16), (3, 3), reversed_rows)),
)
CASES = {case.name: case for case in (*DIRECT, *PATCHED, *MOVED)}


@cache
def networks(lanes: int) -> Mapping[str, CheckedNetwork]:
    return native_cases(CASES, lanes)


@cache
def expected(name: str) -> Sequence[CaseArray]:
    graph = CASES[name].graph()
    return Reference(graph, keep_all_tensors=True).run(CASES[name].inputs(graph))


@one_in(3, "lanes", [8, 4, 16])
@pytest.mark.parametrize("name", CASES)
def test_odd_sizes(name: str, lanes: int) -> None:
    network, case = networks(lanes)[name], CASES[name]
    assert worst(network.run(case.inputs(case.graph())), expected(name)) <= case.tolerance


def body_of(graph: Graph) -> Body:
    """That of the one kernel of a model."""
    (body,) = group_nodes(run_passes(graph)[0], cpu_device(AVX2)).bodies
    return body


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_what_is_chosen(case: GraphCase) -> None:
    body = body_of(case.graph())
    assert packs(body) == (case not in MOVED)
    assert (patches(body, AVX2) is not None) == (case in PATCHED)


@one_in(2, ("kind", "window"), product(("uniform", "normal"), [(1, 7), (3, 3), (5, 5)]), ids=str)
def test_errors_of_patches(window: tuple[int, int], kind: str) -> None:
    """At most a fifth of what is admitted, 1e-4 of the largest value, against sums in float64."""
    rng = np.random.default_rng(3)
    sizes = (32, *window, 64), (1, 24, 24, 64)
    drawn = [rng.uniform(-1, 1, size) if kind == "uniform" else rng.normal(0, 1, size) for size in sizes]
    weights, x = (values.astype(np.float32) for values in drawn)
    graph = GraphCase("CONV_2D", "drawn", lambda m: constant_convolution(m, weights)).graph()
    assert patches(body_of(graph), AVX2) is not None
    down, across = (size // 2 for size in window)
    around = np.pad(x[0].astype(np.float64), ((down, down), (across, across), (0, 0)))
    taps = np.lib.stride_tricks.sliding_window_view(around, window, (0, 1))  # type: ignore[call-overload]
    exact = np.einsum("yxcab,oabc->yxo", taps, weights.astype(np.float64), optimize=True)
    (found,) = networks_of(graph).run([x])
    assert np.abs(found[0] - exact).max() <= 2e-5 * np.abs(exact).max()


def constant_convolution(m: Sketch, weights: Float32Array) -> int:
    inputs = [m.image(24, 24, 64), m.constant(weights), m.constant(np.zeros(32, np.float32))]
    return m.op("CONV_2D", inputs, (1, 24, 24, 32), padding="SAME", stride=(1, 1))


def test_small_sums_stay_as_they_are() -> None:
    few = GraphCase("CONV_2D", "few slices", lambda m: m.conv(m.image(20, 20, 16), 8, (3, 3)))
    short = GraphCase("CONV_2D", "short sums", lambda m: m.conv(m.image(20, 20, 16), 64))
    for case in (few, short):
        body = body_of(case.graph())
        assert not packs(body)
        assert patches(body, AVX2) is None


def test_planes_in_many_pages_are_packed() -> None:
    """Where many slices read them: of smaller maps several planes lie in one page."""
    for side, inputs, outputs, expected in (
        (36, 64, 80, True),
        (30, 64, 80, False),
        (36, 60, 80, False),
        (36, 64, 72, False),
    ):
        case = GraphCase("CONV_2D", "pages", lambda m, n=side, i=inputs, o=outputs: m.conv(m.image(n, n, i), o))
        assert packs(body_of(case.graph())) == expected


def test_panels_are_not_larger_than_the_stack_allows() -> None:
    graph = GraphCase("CONV_2D", "large", lambda m: m.conv(m.image(6, 6, 1024), 32, (3, 3))).graph()
    for target in (AVX2, AVX512):
        text = compile_native(graph, target).text
        assert not [size for size in sizes_on_stack(text) if 4 * size > MOST_BYTES]
    patched = GraphCase("CONV_2D", "large", lambda m: m.conv(m.image(35, 35, 96), 96, (3, 3))).graph()
    sizes = [4 * size for size in sizes_on_stack(compile_native(patched, AVX2).text)]
    assert MOST_BYTES < max(sizes) <= MOST_PANEL_BYTES
    x = np.random.default_rng(0).uniform(-1, 1, (1, 6, 6, 1024)).astype(np.float32)
    found, wanted = networks_of(graph).run([x]), Reference(graph).run([x])
    assert worst(found, wanted) <= 1e-4 * float(np.abs(wanted[0]).max())


def test_narrow_last_pixels_have_no_panel_where_others_have_none() -> None:
    """Theirs would be small enough."""
    graph = GraphCase("CONV_2D", "narrow", lambda m: m.conv(m.image(5, 4, 512), 32, (3, 3), stride=(1, 1))).graph()
    assert not sizes_on_stack(compile_native(graph, AVX512).text)


def test_weights_that_are_computed_stay_out_of_panels() -> None:
    """Those of the same sides as the map, too."""
    sides, window = (32, 3, 3, 8), {"padding": "SAME", "stride": (1, 1)}
    graph = GraphCase(
        "CONV_2D", "computed", lambda m: m.op("CONV_2D", [m.input(sides), m.input(sides)], (32, 3, 3, 32), **window)
    ).graph()
    rng = np.random.default_rng(0)
    values = [rng.uniform(-1, 1, (32, 3, 3, 8)).astype(np.float32) for _ in range(2)]
    assert worst(networks_of(graph).run(values), Reference(graph).run(values)) <= 1e-4


def networks_of(graph: Graph) -> CheckedNetwork:
    return native_networks({"one": graph}, native_target())["one"]


def sizes_on_stack(text: str) -> Sequence[int]:
    """Floats of all arrays that functions have on the stack."""
    return [int(line.split("i32 ")[1].split(",")[0]) for line in text.splitlines() if "alloca float, i32" in line]
