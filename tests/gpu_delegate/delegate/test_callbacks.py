"""Failures in TensorFlow Lite's calls: they surface with their cause, or the model runs on the CPU and says why."""

import ctypes
import io
import sys
import threading
from typing import Any

import numpy as np
import pytest

from tests.model_files.delegate_models import any_size, branches, interpreter, kept, run, three_partitions
from texelflow.gpu_delegate.base.errors import DeviceError, ModelError
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.delegate.delegate_kernel import DelegateKernel
from texelflow.gpu_delegate.delegate.native_tensors import tensor_at
from texelflow.gpu_delegate.delegate.structs import ERROR, OK, TfLiteContext, TfLiteDelegate

pytestmark = pytest.mark.gl

VALUES = np.random.default_rng(0).normal(0, 1, (1, 6, 8, 3)).astype(np.float32)


@pytest.mark.parametrize("error", [DeviceError("the GPU is 100% gone"), ZeroDivisionError("division by zero")])
def test_an_exception_surfaces_with_its_cause(runtime: Any, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    delegate = GpuDelegate(strict=True)
    made = interpreter(runtime, any_size(), delegate)
    expected = run(made, VALUES)

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(DelegateKernel, "run", fail)
        with pytest.raises(RuntimeError, match=str(error)):
            made.invoke()
        assert delegate.error is error
        patch.setattr(DelegateKernel, "prepare", fail)
        made.resize_tensor_input(0, (1, 8, 8, 3))
        with pytest.raises(RuntimeError, match=str(error)):
            made.allocate_tensors()
    made.resize_tensor_input(0, (1, 6, 8, 3))
    made.allocate_tensors()
    np.testing.assert_array_equal(run(made, VALUES)[0], expected[0])


def test_without_opengl_the_model_runs_on_the_cpu(
    runtime: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GLCONTEXT_DEVICE_INDEX", "999")
    delegate = GpuDelegate()
    made = interpreter(runtime, any_size(), delegate)
    found, expected = run(made, VALUES), run(interpreter(runtime, any_size()), VALUES)
    np.testing.assert_array_equal(found[0], expected[0])
    assert not delegate.is_applied
    assert isinstance(delegate.error, DeviceError)
    assert "the whole model on the CPU: no OpenGL: EGL has no device 999" in capfd.readouterr().err
    assert "no device 999" in delegate.summary
    strict = GpuDelegate(strict=True)
    with pytest.raises((RuntimeError, ValueError), match="EGL has no device 999"):
        interpreter(runtime, any_size(), strict)
    assert isinstance(strict.error, DeviceError)


def test_a_model_that_is_none_of_the_gpu(runtime: Any) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=9, quiet=True, strict=True)
    made = interpreter(runtime, three_partitions(), delegate)
    run(made, np.zeros((1, 5, 7, 3), np.float32))
    assert (delegate.is_applied, delegate.partitions, len(delegate.reasons)) == (False, (), 8)
    assert delegate.error is None
    assert delegate.summary.startswith("0 of 8 operators on the GPU")


@pytest.mark.parametrize("is_closed", [True, False])
def test_without_stderr_nothing_is_told(
    is_closed: bool, runtime: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream if is_closed else None)
    delegate = GpuDelegate(min_nodes_per_partition=1)
    run(interpreter(runtime, three_partitions(), delegate), np.zeros((1, 5, 7, 3), np.float32))
    assert len(delegate.partitions) == 3
    assert not capsys.readouterr().out


def test_a_delegate_behind_another_one(runtime: Any) -> None:
    first, second = (GpuDelegate(min_nodes_per_partition=1, quiet=True) for _ in range(2))
    made, plain = interpreter(runtime, three_partitions(), first, second), interpreter(runtime, three_partitions())
    values = np.random.default_rng(0).normal(0, 1, (1, 5, 7, 3)).astype(np.float32)
    np.testing.assert_allclose(run(made, values)[0], run(plain, values)[0], atol=1e-4)
    assert (len(first.partitions), len(second.partitions)) == (3, 0)
    assert isinstance(second.error, ModelError)
    assert "another delegate has replaced operators before; put GpuDelegate in front of it" in str(second.error)


def test_branches_are_delegated_too(runtime: Any) -> None:
    """Prepare is called for each subgraph, and so for those that control flow runs."""
    delegate = GpuDelegate(model=branches(), min_nodes_per_partition=1, strict=True, quiet=True)
    made, plain = interpreter(runtime, branches(), delegate), interpreter(runtime, branches())
    for wanted in (True, False):
        inputs = np.array([wanted]), np.array([[-2.0, 3.0]], np.float32)
        np.testing.assert_allclose(run(made, *inputs)[0], run(plain, *inputs)[0], atol=1e-5)
    assert [partition.nodes for partition in delegate.partitions] == [(0,), (2,), (0,), (0,)]


def test_stale_handles_are_found(runtime: Any) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True)
    made = interpreter(runtime, kept(), delegate)
    values = np.random.default_rng(0).normal(0, 1, (1, 5, 6, 7)).astype(np.float32)
    native = TfLiteDelegate.from_address(delegate._native.address)
    context = TfLiteContext.from_address(next(iter(delegate._application._by_place)))
    tensor = tensor_at(context, 3)
    memory = (ctypes.c_float * values.size)()

    def fetch(handle: int) -> int:
        place, tensor.data = tensor.data, ctypes.addressof(memory)
        kept, tensor.buffer_handle, tensor.data_is_stale = tensor.buffer_handle, handle, True
        try:
            return int(native.CopyFromBufferHandle(ctypes.addressof(context), 0, handle, tensor))
        finally:
            tensor.data, tensor.buffer_handle = place, kept

    assert fetch(1) == ERROR, "its partition has not run"
    run(made, values)
    assert (tensor.data_is_stale, fetch(tensor.buffer_handle)) == (True, OK)
    np.testing.assert_allclose(np.array(memory).reshape(values.shape), -np.tanh(values), atol=1e-6)
    assert fetch(tensor.buffer_handle + 1) == ERROR, "that of another partition"
    assert "none of this GpuDelegate's" in str(delegate.error)
    made.resize_tensor_input(0, (1, 5, 6, 8))
    made.allocate_tensors()
    assert fetch(1) == ERROR, "its partition has not run since then, or has been freed: runtimes differ"


def test_each_thread_gets_right_numbers(runtime: Any) -> None:
    """Two models in turn on one thread, then both at once on others."""
    models = any_size(), any_size(12, 10)
    shapes = (1, 6, 8, 3), (1, 12, 10, 3)
    values = [np.random.default_rng(0).normal(0, 1, shape).astype(np.float32) for shape in shapes]
    expected = [run(interpreter(runtime, model), value)[0] for model, value in zip(models, values, strict=True)]
    made = [interpreter(runtime, model, GpuDelegate(strict=True)) for model in models]
    failed = list[str]()

    def work(number: int) -> None:
        for _ in range(10):
            try:
                np.testing.assert_allclose(run(made[number], values[number])[0], expected[number], atol=1e-4)
            except (AssertionError, RuntimeError) as error:
                failed.append(str(error))

    for number in (0, 1, 0, 1):
        work(number)
    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
