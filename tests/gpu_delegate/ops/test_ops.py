"""Every row of the table of op cases, and the original delegate's own test vectors, on the GPU against the CPU."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.gpu_compilers.glslang import complaints_of_kernels
from tests.gpu_delegate.plan.test_fusion import check_kernels
from tests.helpers.engine import DEVICES, on_cpu, on_gpu, worst
from tests.helpers.portable import needs_validator
from tests.model_files.sketch import OpCase
from tests.op_table.__main__ import is_custom
from tests.tables.op_cases import CASES, UNFUSED, devices_for
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import SUPPORTED_OPS, read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

RUN = [case for case in CASES if not case.refused]
REFUSED = [case for case in CASES if case.refused]


@cache  # three tests look at them
def compiled_graphs(case: OpCase) -> Mapping[str, CompiledGraph]:
    """The programs that a case's model has on different devices, each program once."""
    graph, devices = read_model(case.model()), devices_for(case)
    found = {name: compile_graph(graph, DEVICES[name]) for name in devices if name != UNFUSED}
    if UNFUSED in devices:
        found[UNFUSED] = compile_graph(graph, DEVICES["software"], CompileOptions(fuse=False))
    different = {tuple(kernel.source for kernel in found[name].kernels): name for name in reversed(found)}
    return {name: found[name] for name in different.values()}


@pytest.mark.parametrize("case", RUN, ids=lambda case: case.name)
def test_gpu_agrees_with_tensorflow_lite(context: Context, case: OpCase) -> None:
    model = case.model()
    graph = read_model(model)
    inputs = case.inputs([graph.tensors[tensor].shape for tensor in graph.inputs])
    wanted = on_cpu(model, inputs)
    errors = {name: worst(on_gpu(context, plan, inputs), wanted) for name, plan in compiled_graphs(case).items()}
    assert {name: error for name, error in errors.items() if not error <= case.tolerance} == {}


@pytest.mark.parametrize("case", RUN, ids=lambda case: case.name)
def test_their_kernels_compute_each_node_once(case: OpCase) -> None:
    for plan in compiled_graphs(case).values():
        check_kernels(plan)


@needs_validator
def test_their_kernels_are_valid_glsl(tmp_path: Path) -> None:
    """Drivers accept more than the language allows; the reference compiler does not."""
    kernels = [kernel for case in RUN for plan in compiled_graphs(case).values() for kernel in plan.kernels]
    assert len({kernel.source for kernel in kernels}) > 300
    assert complaints_of_kernels(kernels, tmp_path) == []


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
def test_what_has_no_kernel_is_refused_by_name(case: OpCase, fuse: bool) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_graph(read_model(case.model()), DEVICES["software"], CompileOptions(fuse=fuse))
    assert str(caught.value).startswith(case.refused)
    assert "\n" not in str(caught.value)


def test_every_op_that_the_reader_takes_is_in_the_table() -> None:
    """In this one, or in that of the program, of which the example of an op's record alone is no row."""
    in_models = {node.op for case in CASES for node in read_model(case.model()).nodes}
    assert {op for op in SUPPORTED_OPS if op not in in_models and len(cases_of(op)) < 2 and not is_custom(op)} == set()


def test_names_of_cases_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_comparison_can_fail(context: Context) -> None:
    case = replace(RUN[0])
    model, other = case.model(seed=0), case.model(seed=1)
    graph = read_model(model)
    inputs = case.inputs([graph.tensors[tensor].shape for tensor in graph.inputs])
    found = on_gpu(context, compile_graph(graph, DEVICES["software"]), inputs)
    assert worst(found, on_cpu(other, inputs)) > 0.1
