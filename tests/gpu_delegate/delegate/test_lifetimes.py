"""Interpreter and delegate end in either order: late calls raise, and nothing is left behind."""

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import moderngl
import numpy as np
import pytest

from tests.helpers.markers import one_in
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.delegate_models import any_size, interpreter, run
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.targets.gl.context import Context

pytestmark = pytest.mark.gl

EGL: Any = {"backend": "egl"}
LIFETIMES = int(os.environ.get("LIFETIMES", "6"))  # in each order; 100 take half a minute
MOST_GROWTH_MIB = max(1.0, 0.05 * LIFETIMES)  # more than as many bare contexts: 5 for 100
VALUES = np.random.default_rng(0).normal(0, 1, (1, 6, 8, 3)).astype(np.float32)


def test_after_release_the_interpreter_raises_and_can_be_freed(runtime: Any) -> None:
    with GpuDelegate() as delegate:
        made = interpreter(runtime, any_size(), delegate)
        run(made, VALUES)
    delegate.release()
    for call in (made.invoke, lambda: (made.resize_tensor_input(0, (1, 8, 8, 3)), made.allocate_tensors())):
        with pytest.raises(RuntimeError, match="this GpuDelegate has been released"):
            call()
    assert isinstance(delegate.error, UsageError)
    assert delegate.is_applied, "what was planned can still be asked"


def test_released_while_another_thread_has_begun_to_run_it(runtime: Any) -> None:
    """All is freed on the thread of OpenGL, and the run comes behind that."""
    delegate = GpuDelegate()
    made = interpreter(runtime, any_size(), delegate)
    run(made, VALUES)
    engine = delegate._application._engine
    assert engine is not None
    engine.call(engine._release_all)
    with pytest.raises(RuntimeError, match="this GpuDelegate has been released"):
        made.invoke()
    delegate.release()


def test_released_before_it_is_used(runtime: Any, capfd: pytest.CaptureFixture[str]) -> None:
    delegate = GpuDelegate()
    delegate.release()
    made = interpreter(runtime, any_size(), delegate)
    run(made, VALUES)
    assert not delegate.is_applied
    assert "has been released" in capfd.readouterr().err


def test_a_delegate_belongs_to_one_interpreter(runtime: Any) -> None:
    delegate = GpuDelegate()
    made = interpreter(runtime, any_size(), delegate)
    with pytest.raises(UsageError, match="belongs to one interpreter"):
        interpreter(runtime, any_size(), delegate)
    del made
    with pytest.raises(UsageError, match="belongs to one interpreter"):
        interpreter(runtime, any_size(), delegate)


def test_the_interpreter_goes_first(runtime: Any) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=1)
    made = interpreter(runtime, any_size(unsupported=True), delegate)
    run(made, VALUES)
    engine = delegate._application._engine
    assert engine is not None
    assert engine.count == len(delegate.partitions) == 2
    del made
    gc.collect()
    assert engine.count == 0, "its programs are gone, although the delegate is there"
    delegate.release()


def test_the_delegate_goes_first(runtime: Any) -> None:
    made = interpreter(runtime, any_size(), GpuDelegate())
    expected = run(interpreter(runtime, any_size()), VALUES)
    gc.collect()
    np.testing.assert_allclose(run(made, VALUES)[0], expected[0], atol=1e-4)


@one_in(4, "last", ["delegate", "interpreter"])
def test_the_end_of_python(runtime: Any, last: str) -> None:
    """Nothing is said, whichever of the two module variables is freed last."""
    first = "delegate" if last == "interpreter" else "interpreter"
    program = f"""
import numpy as np
from tests.model_files.delegate_models import any_size
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from {runtime.__name__} import Interpreter
{first} = {last} = None
delegate = GpuDelegate(quiet=True, min_nodes_per_partition=1)
interpreter = Interpreter(model_content=any_size(unsupported=True), experimental_delegates=[delegate])
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.ones((1, 6, 8, 3), np.float32))
interpreter.invoke()
"""
    command = (sys.executable, "-c", program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    said = [line for line in done.stderr.splitlines() if "XNNPACK" not in line]
    assert (done.returncode, said) == (0, [])


def test_operators_that_are_made_anew_leave_no_functions_behind(runtime: Any) -> None:
    """As for each other size, where XNNPACK has TensorFlow Lite undo all delegates."""
    delegate = GpuDelegate(min_nodes_per_partition=1, quiet=True)
    made = interpreter(runtime, any_size(unsupported=True), delegate)
    run(made, VALUES)
    for rows in (8, 10, 6):
        made.resize_tensor_input(0, (1, rows, 8, 3))
        made.allocate_tensors()
        assert len(delegate._native._of_kernels) == len(delegate.partitions) == 2
    run(made, VALUES)
    native = delegate._native
    del made, delegate
    gc.collect()
    assert not native._of_kernels


_LIFETIMES = """
import gc, sys
import numpy as np
from {module} import Interpreter
from tests.model_files.delegate_models import any_size
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
model, values = any_size(), np.ones((1, 6, 8, 3), np.float32)

def bare():
    with open_context():
        pass

def live(delegate_first):
    delegate = GpuDelegate(strict=True)
    interpreter = Interpreter(model_content=model, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, values)
    interpreter.invoke()
    if delegate_first:
        delegate.release()
        del delegate
        gc.collect()
    del interpreter
    gc.collect()

def memory_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def growth_bytes(lifetime):
    for number in range({count} + 5):
        if number == 5:  # the driver keeps something for later
            before = memory_bytes()
        lifetime()
    return memory_bytes() - before

print(*map(growth_bytes, (bare, lambda: live(True), lambda: live(False))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is asked for as Linux tells it")
def test_nothing_is_left_behind(runtime: Any) -> None:
    """Whichever is freed first. With one arena for all threads, what the process takes is always the same."""
    program = _LIFETIMES.format(module=runtime.__name__, count=LIFETIMES)
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    command = (sys.executable, "-c", program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    bare, *others = map(int, done.stdout.split())
    grown = [(other - bare) / (1 << 20) for other in others]
    print(f"{LIFETIMES} lifetimes: {grown[0]:.2f} and {grown[1]:.2f} MiB more than bare contexts")
    assert max(grown) < MOST_GROWTH_MIB


def test_the_context_of_the_caller_goes_first(runtime: Any) -> None:
    """There is nothing left to free, and nothing to complain of."""
    mgl = moderngl.create_context(standalone=True, require=430, **EGL)
    with GpuDelegate(context=mgl, strict=True) as delegate:
        made = interpreter(runtime, any_size(), delegate)
        run(made, VALUES)
        mgl.release()
        with pytest.raises(RuntimeError, match="context that was given has been released"):
            made.invoke()
    with pytest.raises(RuntimeError, match="this GpuDelegate has been released"):
        made.invoke()


def test_in_a_context_of_the_callers(runtime: Any, context: Context) -> None:
    """What is freed on another thread than the context's is freed by the next release() on its own."""
    for is_elsewhere in (False, True):
        delegate = GpuDelegate(context=context.mgl, strict=True)
        made = [interpreter(runtime, any_size(), delegate)]
        run(made[0], VALUES)
        engine = delegate._application._engine
        assert engine is not None
        assert engine.count == 1
        if is_elsewhere:
            thread = threading.Thread(target=made.clear)
            thread.start()
            thread.join()
        made.clear()
        gc.collect()
        assert engine.count == int(is_elsewhere)
        delegate.release()
        assert engine.count == 0
    assert context.mgl.buffer(reserve=4).size == 4, "the context is still there"
