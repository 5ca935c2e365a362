"""What reads packed matrices and kept values, attention above all: right at odd sizes, with vectors of 4, 8 and 16."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.helpers.engine import worst
from tests.helpers.markers import one_in
from tests.helpers.native import code_of, native_cases, native_networks
from tests.model_files.sketch import GraphCase, Shape, Sketch
from texelflow.gpu_delegate.cases.op_case import CaseArray
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.body import Body
from texelflow.gpu_delegate.plan.fusion import group_nodes
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.kept_values import kept_values
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CacheSizes, CpuTarget
from texelflow.gpu_delegate.targets.llvm.matrix_kernel import product_tile
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork
from texelflow.gpu_delegate.targets.llvm.native_tuning import cpu_device
from texelflow.gpu_delegate.targets.llvm.panels import MOST_BYTES, may_be_flat, sums_moved
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool


def product(
    m: Sketch, x: Shape, y: Shape, adj_x: bool = False, adj_y: bool = False, moved: tuple[int, ...] = ()
) -> int:
    """Of two inputs, the second one with its dimensions in another order."""
    second = m.input(y)
    if moved:
        shape = tuple(y[k] for k in moved)
        second = m.op("TRANSPOSE", [second, m.constant(moved, "int32")], shape)
        y = shape
    rows, columns = x[-1 if adj_x else -2], y[-2 if adj_y else -1]
    outer = tuple(map(max, x[:-2], y[:-2]))
    return m.op("BATCH_MATMUL", [m.input(x), second], (*outer, rows, columns), adj_x=adj_x, adj_y=adj_y)


def scaled(m: Sketch) -> int:
    """With what follows pixel by pixel, and values that are added by columns, and by rows."""
    found = product(m, (1, 2, 21, 9), (1, 2, 9, 13))
    by_columns = m.binary("ADD", m.binary("MUL", found, m.constant(0.3)), m.input((1, 1, 1, 13)))
    return m.unary("TANH", m.binary("ADD", by_columns, m.input((1, 2, 21, 1))))


def attention(m: Sketch, rows: int, heads: int, depth: int) -> int:
    """Heads are parts of channels, which are moved; in the end a layer reads them where they were."""
    parts = [m.input((rows, 1, heads * depth)) for _ in range(3)]

    def split(x: int) -> int:
        apart = m.op("RESHAPE", [x, m.constant((rows, heads, depth), "int32")], (rows, heads, depth))
        return m.op("TRANSPOSE", [apart, m.constant((1, 0, 2), "int32")], (heads, rows, depth))

    query, key, value = map(split, parts)
    scores = m.op("BATCH_MATMUL", [query, key], (heads, rows, rows), adj_x=False, adj_y=True)
    apart = m.op("RESHAPE", [scores, m.constant((heads, 1, rows, rows), "int32")], (heads, 1, rows, rows))
    shares = m.unary("SOFTMAX", m.binary("ADD", apart, m.input((heads, 1, 1, rows))), beta=1.0)
    joined = m.op("RESHAPE", [shares, m.constant((heads, rows, rows), "int32")], (heads, rows, rows))
    found = m.op("BATCH_MATMUL", [joined, value], (heads, rows, depth), adj_x=False, adj_y=False)
    together = m.op("TRANSPOSE", [found, m.constant((1, 0, 2), "int32")], (rows, heads, depth))
    flat = m.op("RESHAPE", [together, m.constant((rows, heads * depth), "int32")], (rows, heads * depth))
    return m.connected(flat, 40)


def moved_sum(m: Sketch, height: int, width: int) -> int:
    """Each pixel's channels come from another place; pixels are taken in the order of memory."""
    x = m.image(width, height, 22)
    turned = m.op("TRANSPOSE", [x, m.constant((0, 2, 1, 3), "int32")], (1, height, width, 22))
    return m.unary("RELU", m.binary("ADD", m.conv(turned, 21), m.image(height, width, 21)))


def softmax(m: Sketch, *shape: int, beta: float = 1.0) -> int:
    return m.unary("SOFTMAX", m.input(shape), beta=beta)


CASES = {
    case.name: case
    for case in (
        GraphCase("product", "8x3 by 3x5", lambda m: product(m, (8, 3), (3, 5))),
        GraphCase("product", "37x20 by 20x35", lambda m: product(m, (3, 37, 20), (3, 20, 35))),
        GraphCase("product", "33x18 by 23 rows", lambda m: product(m, (2, 33, 18), (2, 23, 18), adj_y=True)),
        GraphCase("product", "19 columns by 6", lambda m: product(m, (2, 11, 19), (2, 11, 6), adj_x=True)),
        GraphCase("product", "one term", lambda m: product(m, (40, 1), (1, 40))),
        GraphCase("product", "one term by rows", lambda m: product(m, (40, 1), (40, 1), adj_y=True)),
        GraphCase("product", "one column", lambda m: product(m, (3, 40, 12), (3, 12, 1))),
        GraphCase("product", "one matrix for all", lambda m: product(m, (2, 3, 17, 6), (1, 1, 6, 9))),
        GraphCase("product", "heads share", lambda m: product(m, (2, 3, 17, 6), (2, 1, 9, 6), adj_y=True)),
        GraphCase("product", "batches share", lambda m: product(m, (1, 1, 17, 6), (2, 3, 6, 9))),
        GraphCase("product", "moved", lambda m: product(m, (3, 24, 7), (9, 3, 7), moved=(1, 2, 0))),
        GraphCase("product", "moved rows", lambda m: product(m, (3, 24, 7), (7, 9, 3), adj_y=True, moved=(2, 1, 0))),
        GraphCase("product", "in parts", lambda m: product(m, (2, 40, 150), (2, 150, 333)), 4e-5),
        GraphCase("product", "of long sums", lambda m: product(m, (24, 1600), (30, 1600), adj_y=True), 2e-4),
        GraphCase("product", "of sums too long", lambda m: product(m, (24, 6500), (6500, 5)), 4e-4),
        GraphCase("product", "with more behind it", scaled),
        GraphCase("attention", "3 heads of 20", lambda m: attention(m, 67, 3, 20)),
        GraphCase("attention", "5 heads of 3", lambda m: attention(m, 18, 5, 3)),
        *(GraphCase("softmax", f"of {n}", lambda m, n=n: softmax(m, 1, 3, 19, n)) for n in (1, 2, 5, 8, 37, 335)),
        GraphCase("sum", "of moved channels", lambda m: moved_sum(m, 13, 7)),
        GraphCase("window", "of 40 taps over a channel", lambda m: m.conv(m.image(33, 10, 1), 35, (10, 4))),
        GraphCase("window", "of 49 taps over two", lambda m: m.conv(m.image(19, 17, 2), 32, (7, 7), stride=(2, 2))),
        GraphCase("window", "of 30 taps over nine", lambda m: m.conv(m.image(11, 9, 9), 33, (6, 5))),
        GraphCase("softmax", "of 4000", lambda m: softmax(m, 21, 4000)),
        GraphCase("softmax", "of a few pixels", lambda m: softmax(m, 1, 1, 3, 41, beta=0.5)),
    )
}


@cache
def networks(lanes: int) -> Mapping[str, CheckedNetwork]:
    return native_cases(CASES, lanes)


@cache
def expected(name: str) -> Sequence[CaseArray]:
    graph = CASES[name].graph()
    return Reference(graph).run(CASES[name].inputs(graph))


@one_in(3, "lanes", [8, 4, 16])
@pytest.mark.parametrize("name", CASES)
def test_odd_sizes(name: str, lanes: int) -> None:
    network, case = networks(lanes)[name], CASES[name]
    for _ in range(2):  # of what ran before nothing is left
        assert worst(network.run(case.inputs(case.graph())), expected(name)) <= case.tolerance


def test_two_threads_do_what_one_does() -> None:
    """They have other heads, or other columns of one matrix."""
    target = native_target()
    for name in ("product 37x20 by 20x35", "product one term by rows", "product in parts", "attention 3 heads of 20"):
        graph, module = CASES[name].graph(), Module()
        program = compile_native(graph, target, module=module)
        code = code_of(module, [program], target)
        inputs, (one, two) = CASES[name].inputs(graph), (WorkerPool(target, count) for count in (1, 2))
        found = [CheckedNetwork(program, code, pool).run(inputs) for pool in (one, two)]
        assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


def test_heads_take_turns() -> None:
    """Where a cache is small: what lies between products is there for one head at a time, under each of its names."""
    case = CASES["attention 3 heads of 20"]
    graph, target = case.graph(), native_target()
    program = compile_native(graph, replace(target, caches=CacheSizes(l2_bytes=20_000)), module=(module := Module()))
    network = CheckedNetwork(program, code_of(module, [program], target), WorkerPool(target, 1))
    assert worst(network.run(case.inputs(graph)), expected(case.name)) <= case.tolerance
    local = {program.views.place(tensor)[0] for tensor in program.local}
    assert len(local) == 2, "scores and shares"
    assert len(program.local) == 4, "each in two shapes"


def bodies_of(case: GraphCase, target: CpuTarget = AVX2) -> Sequence[Body]:
    return group_nodes(run_passes(case.graph())[0], cpu_device(target)).bodies


@pytest.mark.parametrize("target", [AVX2, AVX512, NEON], ids=lambda target: target.name)
def test_what_is_packed(target: CpuTarget) -> None:
    chosen = {
        name: [product_tile(body, target) for body in bodies_of(case, target)]
        for name, case in CASES.items()
        if case.op == "product"
    }
    without = {name for name, tiles in chosen.items() if not any(tiles)}
    assert without == {"product of sums too long"}
    (parts,) = filter(None, chosen["product in parts"])
    assert parts.packed_blocks * parts.tile.z_slices < 84, "not all of its slices at once"
    for name in chosen:
        sizes = sizes_on_stack(compile_native(CASES[name].graph(), target).text)
        assert 4 * sum(sizes) <= MOST_BYTES + 1024


def test_what_is_kept() -> None:
    """Powers that are added up and divided; where a pixel has too many, they are computed twice."""
    (body,) = bodies_of(CASES["softmax of 335"])
    kept = kept_values(body, 16)
    assert [body.producers[tensor].op for tensor in kept] == ["EXP"]
    assert not kept_values(body, MOST_BYTES // 335 // 4 + 1)
    (single,) = bodies_of(CASES["softmax of 2"])
    assert not kept_values(single, 16), "what one slice has is in registers"


def test_shares_take_one_division_for_each_pixel() -> None:
    """Those of powers by their own sum alone, and on maps: other sums may be too large for a reciprocal."""

    def by_another(m: Sketch) -> int:
        x = m.image(3, 5, 9)
        return m.binary("DIV", x, m.reduce("SUM", m.unary("EXP", x)))

    def by_its_own(m: Sketch) -> int:
        x = m.image(3, 5, 9)
        return m.binary("DIV", x, m.reduce("SUM", x))

    other, vector = GraphCase("DIV", "by another", by_another), GraphCase("DIV", "of one", lambda m: softmax(m, 1, 9))
    any_sum = GraphCase("DIV", "by its own", by_its_own)
    for case, count in ((CASES["softmax of 37"], 1), (other, 0), (vector, 0), (any_sum, 0)):
        passes = compile_native(case.graph(), AVX2).passes
        assert [each.applied for each in passes if each.name == "multiply_by_reciprocal"] == [count]


def test_what_is_moved_is_packed() -> None:
    (body,) = bodies_of(CASES["sum of moved channels"])
    assert sums_moved(body)
    assert may_be_flat(body)


def test_channels_are_read_alone() -> None:
    """Where each lane has another one: not four, of which one is chosen."""
    order = (0, 1, 3, 2)
    graph = GraphCase(
        "TRANSPOSE",
        "turned",
        lambda m: m.op("TRANSPOSE", [m.image(3, 20, 24), m.constant(order, "int32")], (1, 3, 24, 20)),
    ).graph()
    text = compile_native(graph, AVX2).text
    assert text.count("= call <8 x float> @llvm.masked.gather") % 4 == 0
    assert text.count("= call <8 x float> @llvm.masked.gather") <= 2 * 4, "of a row, and of its last columns"
    x = np.random.default_rng(0).uniform(-1, 1, (1, 3, 20, 24)).astype(np.float32)
    assert np.array_equal(native_networks({0: graph})[0].run([x])[0], x.transpose(order))


def sizes_on_stack(text: str) -> Sequence[int]:
    """Floats of all arrays that a function has on the stack."""
    return [int(line.split("i32 ")[1].split(",")[0]) for line in text.splitlines() if "alloca float, i32" in line]
