"""Small models of several ops, on the GPU in several ways and as this CPU's code, against TensorFlow Lite."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.gpu_compilers.glslang import complaints_of_kernels
from tests.gpu_delegate.plan.test_fusion import check_kernels
from tests.helpers.engine import DEVICES, on_cpu, on_gpu, worst
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.helpers.portable import needs_validator
from tests.model_files.sketch import GraphCase
from tests.tables.graph_cases import CASES, REFUSED, RUN, UNFUSED, devices_for
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph


@cache  # three tests look at them
def compiled_graphs(case: GraphCase) -> Mapping[str, CompiledGraph]:
    """The programs that a case's model has on different devices, each program once."""
    graph, devices = case.graph(), devices_for(case)
    found = {name: compile_graph(graph, DEVICES[name]) for name in devices if name != UNFUSED}
    if UNFUSED in devices:
        found[UNFUSED] = compile_graph(graph, DEVICES["software"], CompileOptions(fuse=False))
    different = {tuple(kernel.source for kernel in found[name].kernels): name for name in reversed(found)}
    return {name: found[name] for name in different.values()}


@one_in(10, "case", RUN, ids=lambda case: case.name)
def test_gpu_agrees_with_tensorflow_lite(context: Context, case: GraphCase) -> None:
    model = case.model()
    graph = read_model(model)
    inputs = case.inputs(graph)
    wanted = on_cpu(model, inputs)
    errors = {name: worst(on_gpu(context, plan, inputs), wanted) for name, plan in compiled_graphs(case).items()}
    assert {name: error for name, error in errors.items() if not error <= case.tolerance} == {}


@one_in(10, "case", RUN, ids=lambda case: case.name)
def test_their_kernels_compute_each_node_once(case: GraphCase) -> None:
    for plan in compiled_graphs(case).values():
        check_kernels(plan)


@needs_validator
@one_in(10, "first", range(10))
def test_their_kernels_are_valid_glsl(first: int, tmp_path: Path) -> None:
    """Drivers accept more than the language allows; the reference compiler does not."""
    kernels = [kernel for case in RUN[first::10] for plan in compiled_graphs(case).values() for kernel in plan.kernels]
    assert len({kernel.source for kernel in kernels}) > 20
    assert complaints_of_kernels(kernels, tmp_path) == []


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
def test_what_has_no_kernel_is_refused_by_name(case: GraphCase, fuse: bool) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_graph(read_model(case.model()), DEVICES["software"], CompileOptions(fuse=fuse))
    assert str(caught.value).startswith(case.refused)
    assert "\n" not in str(caught.value)


@one_in(4, "group", range(12))
def test_the_cpus_own_code_agrees_too(group: int) -> None:
    cases = RUN[group::12]
    networks = native_networks({case.name: case.graph() for case in cases})
    for case in cases:
        inputs = case.inputs(case.graph())
        assert worst(networks[case.name].run(inputs), on_cpu(case.model(), inputs)) <= case.tolerance, case.name


def test_names_of_cases_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_comparison_can_fail(context: Context) -> None:
    case = replace(RUN[0])
    model, other = case.model(seed=0), case.model(seed=1)
    graph = read_model(model)
    inputs = case.inputs(graph)
    found = on_gpu(context, compile_graph(graph, DEVICES["software"]), inputs)
    assert worst(found, on_cpu(other, inputs)) > 0.1
