"""Who uses an interpreter when: several threads, event loops, forks, copies; and what is free meanwhile."""

import asyncio
import copy
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import moderngl
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import drawn, lstm

EGL: dict[str, Any] = {"backend": "egl"}  # which mypy takes for the type of other arguments
BACKENDS = ("native", "gl", "tflite")


def picture_model(size: int = 8) -> bytes:
    """A picture of three channels to one of four."""
    m = Sketch(3)
    m.output(m.conv(m.conv(m.image(size, size, 3), 8, (3, 3)), 4, (3, 3)))
    return m.build()


def pictures(number: int, size: int = 8) -> npt.NDArray[np.float32]:
    return np.random.default_rng(number).normal(size=(number, 1, size, size, 3)).astype(np.float32)


@pytest.fixture(params=BACKENDS)
def interpreter(request: pytest.FixtureRequest) -> Iterator[Any]:
    with texelflow.Interpreter(model_content=picture_model(), backend=request.param) as made:
        yield made


def test_calls_of_several_threads_do_not_mix(interpreter: Any) -> None:
    given = pictures(24)
    wanted = [interpreter(each) for each in given]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(interpreter, given)]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_any_calls_of_several_threads_end_in_results_or_in_one_line(interpreter: Any) -> None:
    given = pictures(1)[0]
    calls = [
        lambda: interpreter.set_tensor(0, given),
        interpreter.invoke,
        lambda: interpreter.resize_tensor_input(0, (1, 8, 8, 3)),
        interpreter.allocate_tensors,
        lambda: interpreter.get_tensor(interpreter.get_output_details()[0]["index"]),
        lambda: interpreter(given),
    ]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        for turn in range(40):
            try:
                calls[(turn * 5 + number) % len(calls)]()
            except texelflow.TexelflowError as error:
                errors.append(error)
            if number == 0 and turn == 30:
                interpreter.close()

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(work, range(4))]
    assert errors
    assert all("\n" not in str(error) for error in errors)
    assert "is closed; make another one" in str(errors[-1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_pythons_lock_is_free_while_it_computes(backend: Any) -> None:
    """Another thread gets it nowhere but there: nobody is asked to give it up for a minute. OpenGL is on this one."""
    counted, ends = [0], threading.Event()

    def count() -> None:
        while not ends.is_set():
            counted[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    context = moderngl.create_context(standalone=True, require=430, **EGL) if backend == "gl" else None
    with texelflow.Interpreter(model_content=picture_model(128), backend=backend, context=context) as made:
        made.allocate_tensors()
        thread = threading.Thread(target=count)
        thread.start()
        sys.setswitchinterval(60)
        try:
            runs = 0
            while True:
                before = counted[0]
                made.invoke()
                if counted[0] > before or (runs := runs + 1) > 500:
                    break
        finally:
            sys.setswitchinterval(interval)
            ends.set()
            thread.join()
    assert counted[0] > before


def test_an_event_loop_goes_on_and_runs_keep_their_order(interpreter: Any) -> None:
    given = pictures(6)
    wanted = [interpreter(each) for each in given]

    async def all_of_them() -> tuple[list[Any], int]:
        turns, tasks = 0, [asyncio.create_task(interpreter.run_async(each)) for each in given]
        while not all(task.done() for task in tasks):
            turns += 1
            await asyncio.sleep(0)
        return [task.result() for task in tasks], turns

    found, turns = asyncio.run(all_of_them())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert turns > 1

    async def wrong() -> None:
        await interpreter.run_async(np.zeros((1, 8, 8, 4), np.float32))

    with pytest.raises(ValueError, match=r"array\[\.\.\., :3\], which leaves alpha out"):
        asyncio.run(wrong())
    interpreter.close()
    with pytest.raises(texelflow.TexelflowError, match="this interpreter is closed"):
        asyncio.run(interpreter.run_async(given[0]))


async def under_way(made: Any, runs: int) -> None:
    """Wait until the thread has taken the first of some runs, which the others wait for."""
    await asyncio.sleep(0)  # they are asked for
    while made._turns._thread._work_queue.qsize() != runs - 1:
        await asyncio.sleep(0.005)


def test_runs_that_are_cancelled_are_not_done_and_leave_no_trace() -> None:
    """The states of an LSTM show which runs there were."""
    model = drawn(lstm)
    made, other = (texelflow.Interpreter(model_content=model, backend="native") for _ in range(2))
    shape = made.get_input_details()[0]["shape"]
    values = np.random.default_rng(5).normal(size=(3, *shape)).astype(np.float32)

    async def cancelled() -> Any:
        with made._turns:  # so that the first run waits, as one that computes for long
            tasks = [asyncio.create_task(made.run_async(each)) for each in values]
            await under_way(made, len(tasks))
            tasks[1].cancel()
            tasks[0].cancel()
            await asyncio.wait([tasks[1]])
            assert tasks[1].cancelled()
            assert not tasks[0].done()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        return await tasks[2]

    with made, other:
        found = asyncio.run(cancelled())
        other(values[0])
        np.testing.assert_array_equal(found, other(values[2]))


def test_what_a_cancelled_run_raises_is_nobodys(caplog: pytest.LogCaptureFixture) -> None:
    made = texelflow.Interpreter(model_content=picture_model(), backend="native")

    async def cancelled() -> None:
        with made._turns:
            task = asyncio.create_task(made.run_async(np.zeros((1, 8, 8, 5), np.float32)))
            await under_way(made, 1)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with made:
        asyncio.run(cancelled())
    assert not caplog.records


def test_several_interpreters_run_at_the_same_time() -> None:
    given = pictures(1)[0]
    with (
        texelflow.Interpreter(model_content=picture_model(), backend="native") as one,
        texelflow.Interpreter(model_content=picture_model(), backend="tflite") as other,
    ):

        async def both() -> tuple[Any, Any]:
            with one._turns:  # is not at its end, and the other one is
                waiting = asyncio.create_task(one.run_async(given))
                found = await other.run_async(given)
                assert not waiting.done()
            return await waiting, found

        np.testing.assert_allclose(*asyncio.run(both()), atol=1e-5)


FORKED = """
import asyncio, os
import numpy as np
import texelflow
from tests.gpu_delegate.interpreter.test_turns import picture_model, pictures
given = pictures(2)
for backend in ("native", "tflite", "gl"):
    made = texelflow.Interpreter(model_content=picture_model(), backend=backend)
    wanted = [made(each) for each in given]
    asyncio.run(made.run_async(given[0]))
    if not os.fork():
        try:
            same = all(np.array_equal(made(each), one) for each, one in zip(given, wanted))
            same = same and np.array_equal(asyncio.run(made.run_async(given[1])), wanted[1])
            made.close()
            print(same, flush=True)
        except texelflow.TexelflowError as error:
            print(error, flush=True)
        finally:
            os._exit(0)
    os.wait()
    print(all(np.array_equal(made(each), one) for each, one in zip(given, wanted)), flush=True)
"""


@pytest.mark.gl
def test_a_process_that_was_forked_goes_on_or_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[3],
    )
    told = "this interpreter belongs to the process that was forked; make one in each process"
    assert (done.returncode, done.stdout) == (0, f"True\nTrue\nTrue\nTrue\n{told}\nTrue\n"), done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_copies_are_interpreters_of_the_same_model(backend: Any, tmp_path: Path) -> None:
    m = Sketch(3)
    m.output(m.conv(m.image(8, 8, 3), 4, (3, 3)))
    path = tmp_path / "model.tflite"
    path.write_bytes(m.build())
    given = np.ones((1, 12, 8, 3), np.float32)
    with texelflow.Interpreter(path, backend=backend) as made:
        made.resize_tensor_input(0, given.shape)
        wanted = _result(made, given)
        for each in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
            assert each.get_input_details()[0]["shape"].tolist() == [*given.shape]
            np.testing.assert_array_equal(_result(each, given), wanted)
            each.close()
    with pytest.raises(texelflow.UsageError, match="that is closed cannot be copied or pickled"):
        pickle.dumps(made)


def test_what_an_interpreter_has_of_others_is_not_copied() -> None:
    delegate = texelflow.custom_op("Mine", lambda inputs, operator: inputs)
    made = texelflow.Interpreter(model_content=picture_model(), backend="native", custom_ops=[delegate])
    with pytest.raises(texelflow.UsageError, match="with delegates, custom ops or a context cannot be copied"):
        copy.copy(made)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_that_is_forgotten_goes_without_a_collection_of_garbage(backend: Any) -> None:
    made = texelflow.Interpreter(model_content=picture_model(), backend=backend)
    made(pictures(1)[0])
    asyncio.run(made.run_async(pictures(1)[0]))
    gone = weakref.ref(made)
    del made
    for _ in range(1000):  # the thread may not have let go of its last run yet
        if gone() is None:
            break
        time.sleep(0.01)
    assert gone() is None


def _result(made: Any, given: npt.NDArray[np.float32]) -> Any:
    made.allocate_tensors()
    made.set_tensor(0, given)
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"])
