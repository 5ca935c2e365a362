"""The table of cases of every op against TensorFlow Lite, on the GPU and as this CPU's code: a part of it."""

import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.engine import DEVICES, run
from tests.helpers.native import native_networks
from tests.op_table.__main__ import is_custom, on_own_kernels, ops_on_gpu
from tests.tables.op_vectors import VECTORS, vector_graph
from texelflow.gpu_delegate.cases.case_group import CaseGroup
from texelflow.gpu_delegate.cases.op_case import BATCHES, CHANNELS, OpCase, joined_graph
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.quantization import has_quantized
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

SEEDS = st.integers(0, 2**31)
CASES = tuple(case for op in SUPPORTED_OPS for case in cases_of(op))


def chosen(op: str) -> Iterator[OpCase]:
    """The example of the op's record, and one of the others; of all ops together, every size."""
    example, *others = cases_of(op)
    yield example
    if others:
        yield others[zlib.crc32(op.encode()) % len(others)]


def groups(cases: Iterable[OpCase]) -> list[CaseGroup]:
    """As two models: TensorFlow Lite judges bytes by its reference kernels, which are not there for all other ops."""
    parts: dict[bool, list[OpCase]] = {False: [], True: []}
    for case in cases:
        parts[has_quantized(case.graph())].append(case)
    return [CaseGroup(part) for part in parts.values()]


@pytest.fixture(scope="module")
def both() -> list[CaseGroup]:
    """All that are chosen."""
    return groups(case for op in ops_on_gpu() for case in chosen(op))


def test_the_gpu_computes_what_tensorflow_lite_does(context: Context, both: list[CaseGroup]) -> None:
    for group in both:
        reference = on_own_kernels(group)
        with Program(context, compile_graph(group.graph, DEVICES["software"])) as program:
            check_seeds(group, reference, program)


def check_seeds(group: CaseGroup, reference: Reference, program: Program) -> None:
    @settings(max_examples=3)
    @given(seed=SEEDS)
    def agrees(seed: int) -> None:
        inputs = group.inputs(seed)
        assert group.differing(run(program, inputs), reference.run(inputs)) == {}

    agrees()


def test_the_cpus_own_code_does_too() -> None:
    """Of ops that the original's vectors are not about, which tests/gpu_delegate/targets/llvm/test_native_ops.py
    runs.
    """
    elsewhere = {node.op for case in VECTORS for node in vector_graph(case).nodes}
    ops = [op for op in ops_on_gpu() if op not in elsewhere]
    assert len(ops) > 20
    for group in groups(case for op in ops for case in list(chosen(op))[-1:]):
        inputs = group.inputs(0)
        found = native_networks({0: group.graph})[0].run(inputs)
        assert group.differing(found, on_own_kernels(group).run(inputs)) == {}


def test_every_op_is_computed_or_known_before_or_unknown_to_tensorflow_lite() -> None:
    left = {*SUPPORTED_OPS} - {*ops_on_gpu()}
    assert left == {op for op in left if OPS[op].role == "folded" or is_custom(op)}


def test_a_wrong_output_is_named(both: list[CaseGroup]) -> None:
    group, _ = both
    wanted = on_own_kernels(group).run(group.inputs(0))
    found = [values if k != 5 else np.flip(values) for k, values in enumerate(wanted)]
    assert len(group.differing(found, wanted)) == 1


def test_every_case_is_a_valid_model() -> None:
    """The reader, which verifies shapes and types, takes all as they are written."""
    for op in SUPPORTED_OPS:
        cases = cases_of(op)
        graph = joined_graph([case.graph() for case in cases])
        read = read_model(write_model(graph))
        assert not read.opaque, op
        file = OPS[op].file
        assert file
        assert [node.op for node in read.nodes].count(file.builtin or op) >= len(cases) * (op != "DENSIFY"), op


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 2000


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
    assert {op for op in OPS if not cases_of(op)} == {op for op in OPS if OPS[op].file is None}
