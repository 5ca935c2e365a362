"""Delegate: the right numbers whatever is chosen, in each runtime, at other sizes, on threads, behind its end."""

import copy
import ctypes
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import texelflow
from tests.helpers.runtimes import in_each_runtime
from tests.model_files.delegate_models import any_size, interpreter, run, three_partitions
from tests.model_files.quantized_models import small_quantized
from tests.model_files.state_models import drawn, lstm
from tests.quantized.runs import REFERENCE, TfliteRun
from texelflow.gpu_delegate.base.errors import SoftwareRendererWarning, UsageError
from texelflow.gpu_delegate.delegate.application import _warn_once

VALUES = np.random.default_rng(0).normal(0, 1, (1, 6, 8, 3)).astype(np.float32)


def native() -> texelflow.Delegate:
    return texelflow.Delegate(backend="native", strict=True, quiet=True)


@in_each_runtime
@pytest.mark.parametrize("backend", ["auto", "native"])
def test_the_same_numbers_at_each_size(runtime: Any, backend: Any) -> None:
    delegate = texelflow.Delegate(backend=backend, quiet=True)
    made, plain = interpreter(runtime, any_size(), delegate), interpreter(runtime, any_size())
    for shape in ((1, 6, 8, 3), (1, 8, 4, 3), (1, 6, 8, 3)):
        for each in (made, plain):
            each.resize_tensor_input(each.get_input_details()[0]["index"], shape)
            each.allocate_tensors()
        values = np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)
        for found, wanted in zip(run(made, values), run(plain, values), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)
    report = delegate.report()
    assert report.backend == delegate.way
    assert report.as_dict()["operators"] == report.operators == sum(report.places.values())
    assert ("asked for" in str(report)) == (backend == "native")
    if backend == "native":
        assert delegate.is_applied
        assert report.places == {"in the CPU's own code": report.operators}


@in_each_runtime
def test_bytes_are_those_of_the_reference_kernels(runtime: Any) -> None:
    model = small_quantized()
    made = interpreter(runtime, model, delegate := texelflow.Delegate())
    assert delegate.way == "native"
    reference = TfliteRun(model, REFERENCE)
    values = np.random.default_rng(0).integers(-128, 128, reference.input_shape, np.int8)
    np.testing.assert_array_equal(run(made, values), reference([values]))


def test_only_parts(runtime: Any) -> None:
    made = interpreter(runtime, three_partitions(), delegate := native())
    values = np.random.default_rng(1).normal(0, 1, (1, 5, 7, 3)).astype(np.float32)
    for found, wanted in zip(run(made, values), run(interpreter(runtime, three_partitions()), values), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert {*delegate.report().places} == {"in the CPU's own code", "in TensorFlow Lite"}


def test_from_several_threads(runtime: Any) -> None:
    wanted = run(interpreter(runtime, any_size()), VALUES)
    made = [interpreter(runtime, any_size(), native()) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for found in pool.map(lambda each: run(each, VALUES), made):
                for one, other in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_constant_that_was_changed_in_memory(runtime: Any) -> None:
    """As programs do that train the last layer: behind the next allocation it counts. The memory is the model's own."""
    model = any_size()
    made = interpreter(runtime, model, native())
    before = run(made, VALUES)
    (weights,) = (each["index"] for each in made.get_tensor_details() if tuple(each["shape"]) == (6, 3, 3, 3))
    memory = made.tensor(weights)()
    address, size = memory.ctypes.data, memory.size
    del memory
    floats = np.ctypeslib.as_array((ctypes.c_float * size).from_address(address))
    floats *= 2
    for rows in (8, 6):
        made.resize_tensor_input(made.get_input_details()[0]["index"], (1, rows, 8, 3))
        made.allocate_tensors()
    after = run(made, VALUES)
    assert not np.allclose(after[0], before[0])
    for found, wanted in zip(after, run(interpreter(runtime, model), VALUES), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_its_end(runtime: Any) -> None:
    with native() as delegate:
        made = interpreter(runtime, any_size(), delegate)
        run(made, VALUES)
    delegate.release()
    with pytest.raises(RuntimeError, match="Delegate: this Delegate has been released"):
        made.invoke()
    assert isinstance(delegate.error, UsageError)
    assert delegate.report().backend == "native", "what was chosen can still be asked"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_native_code_goes_on_in_a_child(runtime: Any) -> None:
    made = interpreter(runtime, any_size(), native())
    wanted = run(made, VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        same = all(np.array_equal(a, b) for a, b in zip(run(made, VALUES), wanted, strict=True))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_states_are_read_and_restored(runtime: Any) -> None:
    model = drawn(lstm)
    made = interpreter(runtime, model, delegate := native())
    values = [np.random.default_rng(k).normal(0, 1, d["shape"]).astype(np.float32) for k, d in
              enumerate(made.get_input_details())]  # fmt: skip
    first = run(made, *values)
    kept = delegate.states()
    second = run(made, *values)
    assert kept
    assert not np.array_equal(first[0], second[0])
    delegate.restore_states(kept)
    np.testing.assert_array_equal(run(made, *values)[0], second[0])
    delegate.reset_states()
    np.testing.assert_array_equal(run(made, *values)[0], first[0])


def test_wrong_options_and_uses(runtime: Any) -> None:
    wrong: list[dict[str, Any]] = [{"backend": "cpu"}, {"threads": 0}, {"threads": True}, {"exact": 1}, {"hybrid": ""}]
    for options in wrong:
        with pytest.raises(UsageError, match=next(iter(options))):
            texelflow.Delegate(**options)
    delegate = native()
    with pytest.raises(UsageError, match="make an interpreter with this Delegate first"):
        delegate.report()
    interpreter(runtime, any_size(), delegate)
    with pytest.raises(UsageError, match="belongs to one interpreter"):
        interpreter(runtime, any_size(), delegate)
    with pytest.raises(UsageError, match="cannot be copied"):
        copy.copy(delegate)


@pytest.mark.gl
def test_opengl_where_it_is_asked_for(runtime: Any) -> None:
    made = interpreter(runtime, any_size(), delegate := texelflow.Delegate(backend="gl", strict=True, quiet=True))
    assert delegate.way == "gl"
    for found, wanted in zip(run(made, VALUES), run(interpreter(runtime, any_size()), VALUES), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    delegate.release()


@pytest.mark.gl
def test_a_software_renderer_is_warned_of_once(runtime: Any) -> None:
    _warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        interpreter(runtime, any_size(), texelflow.GpuDelegate(quiet=True))
        assert not told
        delegates = [texelflow.GpuDelegate() for _ in range(2)]
        for delegate in delegates:
            interpreter(runtime, any_size(), delegate)
    if "llvmpipe" not in delegates[0].renderer:
        pytest.skip("the renderer is none of software")
    (one,) = told
    assert issubclass(one.category, SoftwareRendererWarning)
    assert "write texelflow.Delegate()" in str(one.message)
    assert one.filename.endswith("delegate_models.py"), "where the interpreter is made"
