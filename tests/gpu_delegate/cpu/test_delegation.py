"""The reference with a delegate: in this process and in another, with OpenGL and without, and its report."""

from types import MappingProxyType

import numpy as np
import pytest

from tests.model_files.model_builder import ModelBuilder
from tests.model_files.partial_models import cast_and_back, segments
from texelflow.gpu_delegate.base.errors import DeviceError, ModelError, UsageError
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate import worker
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE = 96  # its partitions are worth any GPU
X = np.random.default_rng(0).random((1, SIZE, SIZE, 3), np.float32)


@pytest.fixture(params=["in this process", "in a process of its own"])
def graph(request: pytest.FixtureRequest) -> Graph:
    """Models in two partitions: one that the reader knows, and one with operators that it does not."""
    if request.param == "in this process":
        return read_model(segments(SIZE, in_parts=True))
    return read_model(cast_and_back(read_model(segments(SIZE)), 0.25))


@pytest.mark.parametrize(
    ("partitions", "operators", "line"),
    [
        (((0, 1), (4,)), 5, "3 of 5 operators on the GPU in 2 partitions, the rest on the CPU"),
        (((0,),), 2, "1 of 2 operators on the GPU in 1 partition, the rest on the CPU"),
        (((0, 1),), 2, "2 of 2 operators on the GPU in 1 partition"),
        ((), 1, "none of 1 operator on the GPU, all on the CPU: why"),
    ],
)
def test_a_line_says_what_runs_where(partitions: tuple[tuple[int, ...], ...], operators: int, line: str) -> None:
    assert Delegation(partitions, operators, 3, 4, 5, "a renderer", "why").line == line


@pytest.mark.gl
def test_parts_run_on_the_gpu(graph: Graph) -> None:
    plain, parts = Reference(graph, threads=1), Reference(graph, threads=1, delegate=gpu_delegate({}))
    (expected,), (found,) = plain.run(X), parts.run(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert plain.delegation is None
    assert plain.invoke_ms > 0 < parts.invoke_ms
    delegation = parts.delegation
    assert delegation is not None
    assert [len(nodes) for nodes in delegation.partitions] == [2, 3]
    assert delegation.operators == len(graph.nodes)
    assert delegation.dispatches >= len(delegation.partitions)
    assert delegation.renderer


@pytest.mark.gl
def test_options_reach_the_delegate(graph: Graph) -> None:
    options = {"min_nodes_per_partition": 3, "is_precision_loss_allowed": True, "experimental_flags": ("gl_only",)}
    reference = Reference(graph, delegate=gpu_delegate(MappingProxyType(options)))
    assert reference.delegation is not None
    assert [len(nodes) for nodes in reference.delegation.partitions] == [3]
    (found,), (expected,) = reference.run(X), Reference(graph).run(X)
    assert 1e-6 < np.abs(found - expected).max() < 0.05
    with pytest.raises(UsageError, match="wait_type"):
        Reference(graph, delegate=gpu_delegate({"wait_type": "never"}))


@pytest.mark.gl
@pytest.mark.usefixtures("llvmpipe")
def test_without_opengl_all_runs_on_the_cpu(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Context:
        raise DeviceError("OpenGL 4.1 is too old")

    monkeypatch.setattr(worker, "open_context", refuse)  # Mesa reads the variable once in a process
    monkeypatch.setenv("MESA_GL_VERSION_OVERRIDE", "4.1")
    monkeypatch.setenv("TEXELFLOW_GL_API", "gl")
    reference = Reference(graph, delegate=gpu_delegate({}))
    assert reference.delegation is not None
    assert (reference.delegation.partitions, reference.delegation.dispatches) == ((), 0)
    assert "OpenGL" in reference.delegation.reason
    np.testing.assert_array_equal(reference.run(X)[0], Reference(graph).run(X)[0])
    with pytest.raises(DeviceError):
        Reference(graph, delegate=gpu_delegate({"strict": True}))


@pytest.mark.gl
def test_an_error_of_the_delegate_is_its_own(graph: Graph) -> None:
    reference = Reference(graph, delegate=gpu_delegate({}))
    with pytest.raises(UsageError, match="finite"):
        reference.run(np.full_like(X, np.nan))
    with pytest.raises(ModelError, match="broadcast"):  # and is not told again where something else fails
        reference._interpreter.run([X[:, 1:]])
    (found,), (expected,) = reference.run(X), Reference(graph).run(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.gl
def test_nothing_runs_once_it_is_closed(graph: Graph) -> None:
    reference = Reference(graph, delegate=gpu_delegate({}))
    reference.run(X)
    for _ in range(2):
        reference.close()
    with pytest.raises(UsageError if not graph.opaque else ModelError):
        reference.run(X)


@pytest.mark.gl
def test_a_model_without_constants_is_found() -> None:
    model = ModelBuilder()
    model.output(model.op("RELU", [model.input((1, 4))], (1, 4)))
    reference = Reference(read_model(model.build()), delegate=gpu_delegate({}))
    assert reference.delegation is not None
    assert reference.delegation.partitions == ((0,),)
