"""Kernels for vectors of 4, 8 and 16 lanes: right at odd sizes, and without gathers or spills in their loops."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from tests.helpers.case_group import Case
from tests.helpers.engine import worst
from tests.helpers.markers import one_in
from tests.helpers.native import native_cases
from tests.model_files.sketch import GraphCase
from tests.tables.graph_cases import RUN
from texelflow.gpu_delegate.cases.op_case import CaseArray
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS
from texelflow.gpu_delegate.targets.llvm.compiler import assembly
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork

NAMES = (
    "CONV_2D 1x3x5x67->70 1x1", "CONV_2D 1x3x5x5->70 3x3 stride 2x2", "DEPTHWISE_CONV_2D 1x40x33x4 3x3",
    "DEPTHWISE_CONV_2D 1x11x12x5 3x3 dilation 2x3", "DEPTHWISE_CONV_2D 1x9x10x3 3x3 stride 3x3",
    "Convolution2DTransposeBias 1x4x5x5->5 4x4 stride 4x4", "fused inverted bottleneck of 70 channels",
)  # fmt: skip
KINDS = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "AVERAGE_POOL_2D", "MAX_POOL_2D", "DEPTH_TO_SPACE")
ENDS = (  # 16 lanes and then 8 for the rest, of a map or of each row
    GraphCase("CONV_2D", "7x7x9->18 1x1", lambda m: m.conv(m.image(7, 7, 9), 18)),
    GraphCase("DEPTHWISE_CONV_2D", "11x21x6 3x3", lambda m: m.depthwise(m.image(11, 21, 6), (3, 3))),
    GraphCase("DEPTHWISE_CONV_2D", "20x20x5 3x3 s2", lambda m: m.depthwise(m.image(20, 20, 5), (3, 3), stride=(2, 2))),
)
OF_OPS: list[Case] = [case for op in SUPPORTED_OPS for case in cases_of(op)]
BY_NAME: dict[str, Case] = {case.name: case for case in (*OF_OPS, *RUN)}
KINDS_AND_MOVES: list[Case] = [
    *(case for kind in KINDS for case in cases_of(kind)[::10]),
    *[case for case in RUN if case.op == "moved"][::6],
]
CHOSEN = {name: BY_NAME[name] for name in NAMES} | {case.name: case for case in (*ENDS, *KINDS_AND_MOVES)}


@cache
def networks(lanes: int) -> Mapping[str, CheckedNetwork]:
    """Of all chosen cases."""
    return native_cases(CHOSEN, lanes)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@one_in(8, "name", CHOSEN)
def test_odd_sizes(name: str, lanes: int) -> None:
    network, case = networks(lanes)[name], CHOSEN[name]
    assert worst(network.run(case.inputs(case.graph())), expected(name)) <= case.tolerance


@cache
def expected(name: str) -> Sequence[CaseArray]:
    graph = CHOSEN[name].graph()
    return Reference(graph, keep_all_tensors=True).run(CHOSEN[name].inputs(graph))


def listing(case: GraphCase, target: CpuTarget) -> str:
    """The assembly of all kernels of a model."""
    return assembly(compile_native(case.graph(), target).text, target)


@one_in(3, "target", [AVX512, AVX2, NEON], ids=lambda target: target.name)
def test_no_loop_gathers_or_spills(target: CpuTarget) -> None:
    cases = (
        GraphCase("CONV_2D", "3x3 of stride 2", lambda m: m.conv(m.image(48, 48, 16), 32, (3, 3), stride=(2, 2))),
        GraphCase("CONV_2D", "1x1", lambda m: m.conv(m.image(48, 48, 32), 32)),
        GraphCase("DEPTHWISE_CONV_2D", "3x3", lambda m: m.depthwise(m.image(48, 48, 16), (3, 3))),
        GraphCase(
            "RESIZE_BILINEAR", "doubled", lambda m: m.resize(m.image(24, 24, 8), (48, 48), half_pixel_centers=True)
        ),
    )
    for case in cases:
        text = listing(case, target)
        products = text.count("vfmadd") + text.count("fmla")
        assert products >= 4 or case.op == "RESIZE_BILINEAR"
        assert "vgather" not in text
        assert text.count("-byte Spill") <= products // 8, case.name


def test_ends_of_small_maps_have_half_as_many_lanes() -> None:
    cases = (
        (GraphCase("CONV_2D", "7x7", lambda m: m.conv(m.image(7, 7, 3), 32)), {"y", "z"}),
        (GraphCase("CONV_2D", "7x7 of quads", lambda m: m.conv(m.image(7, 7, 32), 32)), {"z"}),
        (GraphCase("CONV_2D", "16x16", lambda m: m.conv(m.image(16, 16, 32), 32)), {"z"}),
        (GraphCase("DEPTHWISE_CONV_2D", "20x20", lambda m: m.depthwise(m.image(20, 20, 16), (3, 3))), {"y", "z"}),
    )
    for case, registers in cases:
        assert set(re.findall(r"vfmadd.*%([xyz])mm", listing(case, AVX512))) == registers, case.name


def test_strided_rows_are_taken_apart_once() -> None:
    case = GraphCase("DEPTHWISE_CONV_2D", "s2", lambda m: m.depthwise(m.image(20, 20, 16), (3, 3), stride=(2, 2)))
    assert 0 < len(re.findall(r"vperm[ti]2ps", listing(case, AVX512))) <= 3 * 21  # three taps of each row
