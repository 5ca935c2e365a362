"""Models through TensorFlow Lite's interpreter with the delegate, against the interpreter without it."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.markers import one_in
from tests.helpers.runtimes import in_each_runtime
from tests.model_files.delegate_models import any_size, interpreter, kept, late_size, run, three_partitions
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.reading.reader import load_model

pytestmark = pytest.mark.gl


@in_each_runtime
def test_a_model_with_a_custom_op_runs_whole(runtime: Any, selfie_model: Path) -> None:
    """TensorFlow Lite has no kernel for it: without the delegate the interpreter refuses the model."""
    delegate = GpuDelegate()
    made = runtime.Interpreter(model_path=str(selfie_model), experimental_delegates=[delegate])
    made.allocate_tensors()
    picture = np.random.default_rng(0).uniform(0, 1, (1, 256, 256, 3)).astype(np.float32)
    (mask,) = run(made, picture)
    graph = load_model(selfie_model)
    (expected,) = Reference(graph).run(picture)
    np.testing.assert_allclose(mask, expected, atol=1e-3)
    assert [len(partition.nodes) for partition in delegate.partitions] == [len(graph.nodes)]
    assert delegate.is_applied
    assert not delegate.reasons
    assert delegate.error is None


@in_each_runtime
def test_partitions_and_operators_of_the_cpu_run_in_turn(runtime: Any) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=1)
    model = three_partitions()
    made, plain = interpreter(runtime, model, delegate), interpreter(runtime, model)
    for seed in range(3):
        values = np.random.default_rng(seed).normal(0, 1, (1, 5, 7, 3)).astype(np.float32)
        np.testing.assert_allclose(run(made, values)[0], run(plain, values)[0], atol=1e-4)
    assert [partition.nodes for partition in delegate.partitions] == [(0, 1), (3, 4), (6, 7)]
    assert set(delegate.reasons) == {2, 5}


@pytest.mark.filterwarnings("ignore:.*experimental_preserve_all_tensors:UserWarning")
def test_an_interpreter_that_preserves_all_tensors_is_right_or_left_alone(runtime: Any) -> None:
    """Newer ones make a group of each operator then; which groups they make is asked for before anything is changed."""
    delegate, model = GpuDelegate(min_nodes_per_partition=1, quiet=True), three_partitions()
    given = {"model_content": model, "experimental_preserve_all_tensors": True}
    made, plain = runtime.Interpreter(**given, experimental_delegates=[delegate]), interpreter(runtime, model)
    made.allocate_tensors()
    values = np.random.default_rng(0).normal(0, 1, (1, 5, 7, 3)).astype(np.float32)
    np.testing.assert_allclose(run(made, values)[0], run(plain, values)[0], atol=1e-4)
    if not delegate.is_applied:
        assert isinstance(delegate.error, UnsupportedError)
        assert "makes a group of its own of operators 0; it does so if it is to preserve all" in str(delegate.error)
        strict = GpuDelegate(min_nodes_per_partition=1, quiet=True, strict=True)
        with pytest.raises(RuntimeError, match="preserve all tensors"):
            runtime.Interpreter(**given, experimental_delegates=[strict])


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_there_are_no_copies(duplicate: Callable[[object], object]) -> None:
    with pytest.raises(UsageError, match="cannot be copied or pickled; make another one"):
        duplicate(GpuDelegate())


@one_in(3, ("unsupported", "most"), [(False, None), (True, None), (True, 1)])
def test_other_sizes_of_the_input(unsupported: bool, most: int | None, runtime: Any) -> None:
    """XNNPACK has TensorFlow Lite undo all delegates for other sizes, where it runs a part."""
    delegate = GpuDelegate(min_nodes_per_partition=1, max_delegated_partitions=most, strict=True)
    rng = np.random.default_rng(0)
    made, plain = (interpreter(runtime, any_size(unsupported=unsupported), *each) for each in ([delegate], []))
    for shape in ((1, 6, 8, 3), (1, 9, 5, 3), (2, 9, 5, 3), (1, 6, 8, 3), (1, 34, 20, 3)):
        values = rng.normal(0, 1, shape).astype(np.float32)
        for each in (made, plain):
            each.resize_tensor_input(0, shape)
            each.allocate_tensors()
        for _ in range(2):
            found, expected = run(made, values), run(plain, values)
            assert [each.shape for each in found] == [each.shape for each in expected]
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert len(delegate.partitions) == (most or 1 + unsupported)
    assert delegate.error is None


@in_each_runtime
def test_sizes_that_are_known_when_the_model_runs(runtime: Any) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=1, strict=True)
    made, plain = interpreter(runtime, late_size(), delegate), interpreter(runtime, late_size())
    values = np.random.default_rng(0).normal(0, 1, (1, 24, 3)).astype(np.float32)
    for size in ((1, 4, 6, 3), (1, 2, 12, 3), (2, 3, 4, 3), (2, 3, 4, 3), (1, 24, 1, 3), (1, 4, 6, 3)):
        inputs = values, np.array(size, np.int32)
        found, expected = run(made, *inputs), run(plain, *inputs)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert [partition.nodes for partition in delegate.partitions] == [(1, 2)]


def test_sizes_that_an_operator_does_not_take(runtime: Any) -> None:
    builder = ModelBuilder()
    y = builder.op("RELU", [builder.input((1, 4, 6, 3))], (1, 4, 6, 3))
    builder.output(builder.op("RESHAPE", [y, builder.constant((1, 24, 3), "int32")], (1, 24, 3)))
    delegate = GpuDelegate(strict=True)
    made = interpreter(runtime, builder.build(), delegate)
    values = np.random.default_rng(0).normal(0, 1, (1, 4, 6, 3)).astype(np.float32)
    made.resize_tensor_input(0, (1, 5, 6, 3))
    with pytest.raises(RuntimeError, match=r"inputs of shape \[1, 5, 6, 3\].*RESHAPE.*into \[1, 24, 3\]"):
        made.allocate_tensors()
    assert isinstance(delegate.error, UnsupportedError)
    made.resize_tensor_input(0, (1, 4, 6, 3))
    made.allocate_tensors()
    np.testing.assert_array_equal(run(made, values)[0], np.maximum(values, 0).reshape(1, 24, 3))


def test_summary_tells_xnnpack_from_builtin_kernels(runtime: Any) -> None:
    """Both are called DELEGATE in the list of operators; XNNPACK's second operator lies inside its partition."""
    delegate = GpuDelegate(min_nodes_per_partition=1, max_delegated_partitions=1, quiet=True)
    assert delegate.summary == "no operator on the GPU"
    made = interpreter(runtime, three_partitions(), delegate)
    assert delegate.summary == "2 of 8 operators on the GPU in 1 partition (1 dispatch)"
    run(made, np.zeros((1, 5, 7, 3), np.float32))
    assert delegate.summary == (
        "2 of 8 operators on the GPU in 1 partition (1 dispatch), 4 by XNNPACK, 2 by builtin kernels"
    )


@in_each_runtime
def test_what_only_partitions_read_stays_on_the_gpu(runtime: Any) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=1, strict=True)
    made, plain = interpreter(runtime, kept(), delegate), interpreter(runtime, kept())
    for seed in range(2):
        values = np.random.default_rng(seed).normal(0, 1, (1, 5, 6, 7)).astype(np.float32)
        np.testing.assert_allclose(run(made, values)[0], run(plain, values)[0], atol=1e-5)
    assert [partition.outputs for partition in delegate.partitions] == [(1, 3), (5,)]
    assert delegate.summary == "3 of 4 operators on the GPU in 2 partitions (2 dispatches), 1 by builtin kernels"
