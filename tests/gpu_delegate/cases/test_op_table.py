"""A part of the table of op cases against TensorFlow Lite, on the GPU and in the CPU's own code."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu_compilers.glslang import complaints_of_kernels
from tests.gpu_delegate.plan.test_fusion import check_kernels
from tests.helpers.case_group import CaseGroup, joined_graph
from tests.helpers.engine import DEVICES, run
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.native import native_networks
from tests.helpers.portable import needs_validator
from tests.op_table.__main__ import GL_WAYS, chosen, is_custom, on_own_kernels, ops_on_gpu
from texelflow.gpu_delegate.cases.op_case import BATCHES, CHANNELS, CaseArray, OpCase
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph, Node
from texelflow.gpu_delegate.model.quantization import has_quantized
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

SEEDS = st.integers(0, 2**31)
WAYS = (*GL_WAYS, "native")
PARTS = ("firsts", "others")
CASES = tuple(case for op in SUPPORTED_OPS for case in cases_of(op))


def groups(cases: Iterable[OpCase]) -> list[CaseGroup]:
    """As two models: TensorFlow Lite judges bytes by its reference kernels, which are not there for all other ops."""
    parts: dict[bool, list[OpCase]] = {False: [], True: []}
    for case in cases:
        parts[has_quantized(case.graph())].append(case)
    return [CaseGroup(part) for part in parts.values() if part]


def in_turn(way: str, part: str) -> Iterator[OpCase]:
    """What this way computes of what is chosen of each op, the first case apart from the others: ways take turns."""
    for op in ops_on_gpu():
        turn = zlib.crc32(op.encode())
        for number, case in enumerate(chosen(op)):
            if (number == 0) == (part == "firsts") and WAYS[(turn + number) % len(WAYS)] == way:
                yield case


@cache
def compiled(way: str, part: str) -> list[tuple[CaseGroup, CompiledGraph]]:
    """What OpenGL gets in one of the ways."""
    device, fuse = GL_WAYS[way]
    options = CompileOptions(fuse=fuse)
    return [(group, compile_graph(group.graph, DEVICES[device], options)) for group in groups(in_turn(way, part))]


@one_in(2, "part", PARTS)
@pytest.mark.parametrize("way", GL_WAYS)
def test_every_way_computes_what_tensorflow_lite_does(context: Context, way: str, part: str) -> None:
    for group, plan in compiled(way, part):
        check_kernels(plan)
        with Program(context, plan) as program:
            check_seeds(group, on_own_kernels(group), partial(run, program))


@one_in(2, "part", PARTS)
def test_the_cpus_own_code_does_too(part: str) -> None:
    for group in groups(in_turn("native", part)):
        check_seeds(group, on_own_kernels(group), native_networks({0: group.graph})[0].run)


@needs_validator
@one_in(2, "part", PARTS)
def test_kernels_of_every_op_are_valid_glsl(part: str, tmp_path: Path) -> None:
    """Drivers accept more than the language allows; the reference compiler does not."""
    kernels = [kernel for way in GL_WAYS for _, plan in compiled(way, part) for kernel in plan.kernels]
    assert len({kernel.source for kernel in kernels}) > {"firsts": 80, "others": 600}[part]
    assert complaints_of_kernels(kernels, tmp_path) == []


def check_seeds(
    group: CaseGroup, reference: Reference, computed: Callable[[list[CaseArray]], Sequence[CaseArray]]
) -> None:
    @settings(max_examples=3)
    @given(seed=SEEDS)
    def agrees(seed: int) -> None:
        inputs = group.inputs(seed)
        assert group.differing(computed(inputs), reference.run(inputs)) == {}

    agrees()


def test_what_is_chosen_has_every_option_of_every_op() -> None:
    for op in SUPPORTED_OPS:
        assert {case.example.attributes for case in chosen(op)} == {case.example.attributes for case in cases_of(op)}
    assert all({*in_turn(way, part)} for way in WAYS for part in PARTS)
    computed = {case for way in WAYS for part in PARTS for case in in_turn(way, part)}
    assert computed == {case for op in ops_on_gpu() for case in chosen(op)}


def test_every_op_is_computed_or_known_before_or_unknown_to_tensorflow_lite() -> None:
    left = {*SUPPORTED_OPS} - {*ops_on_gpu()}
    assert left == {op for op in left if OPS[op].role in ("folded", "state") or is_custom(op)}


def test_a_wrong_output_is_named() -> None:
    group = CaseGroup(cases_of("MEAN"))
    wanted = on_own_kernels(group).run(group.inputs(0))
    found = [values if k != 5 else np.flip(values) for k, values in enumerate(wanted)]
    assert len(group.differing(found, wanted)) == 1


@exhaustive
def test_every_case_is_a_valid_model() -> None:
    """The reader, which verifies shapes and types, takes all as they are written, and makes the same of them."""
    for op in SUPPORTED_OPS:
        cases = cases_of(op)
        graph = joined_graph([case.graph() for case in cases])
        read = read_model(write_model(graph))
        assert not read.opaque, op
        file = OPS[op].file
        assert file
        wanted, found = said(graph, op), said(read, file.builtin or op)
        assert op == "DENSIFY" or wanted - found == Counter(), op


def said(graph: Graph, op: str) -> Counter[str]:
    """Of the nodes of this op: options, with floats as a file holds them, and types and shapes of the outputs."""

    def texts(node: Node) -> Iterator[str]:
        for name, value in vars(node.attributes).items():
            yield f"{name} {np.float32(value) if isinstance(value, float) else value}"
        yield from (f"{graph.tensors[i].dtype} {graph.tensors[i].shape}" for i in node.outputs)

    return Counter(", ".join(texts(node)) for node in graph.nodes if node.op == op)


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 3700


@pytest.mark.parametrize("op", ["RELU", "ADD", "CONV_2D", "MAX_POOL_2D", "SOFTMAX", "CONCATENATION", "TRANSPOSE"])
def test_a_table_has_all_channels_and_batches(op: str) -> None:
    shapes = [shape for case in cases_of(op) for shape in case.example.shapes if len(shape) == 4]
    assert {shape[3] for shape in shapes} >= {*CHANNELS}
    assert {shape[0] for shape in shapes} >= {*BATCHES}


def test_a_seed_is_all_that_is_random() -> None:
    (case,) = (case for case in cases_of("CONV_2D") if case.what == "example")
    first, again, other = (write_model(case.graph(seed)) for seed in (0, 0, 1))
    assert first == again != other
    graph = case.graph()
    assert np.array_equal(case.inputs(graph, 3), case.inputs(graph, 3))


def test_only_passes_make_what_has_no_case() -> None:
    without = {op for op, record in OPS.items() if record.file is None or record.role == "state"}
    assert {op for op in OPS if not cases_of(op)} == without
