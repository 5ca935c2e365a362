"""The worker of OpenGL, a thread of its own or the caller's: results, exceptions, and every wrong use."""

import gc
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import moderngl
import pytest

from tests.helpers.markers import one_in
from tests.helpers.waiting import PATIENCE_S
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.delegate.worker import CallerWorker, GlWorker, ThreadWorker, open_worker
from texelflow.gpu_delegate.targets.gl.context import Context

pytestmark = pytest.mark.gl
EGL: Any = {"backend": "egl"}


def renderer(context: Context) -> str:
    return context.gl.string(0x1F01)


@pytest.fixture
def mgl() -> Iterator[moderngl.Context]:
    made = moderngl.create_context(standalone=True, require=430, **EGL)
    yield made
    made.release()


@pytest.fixture(params=["thread", "caller"])
def worker(request: pytest.FixtureRequest) -> Iterator[GlWorker]:
    context = request.getfixturevalue("mgl") if request.param == "caller" else None
    found = open_worker(context)
    yield found
    found.release()


class TestBoth:
    def test_results_and_exceptions(self, worker: GlWorker) -> None:
        assert worker.call(renderer)

        def fails(_: Context) -> None:
            raise ZeroDivisionError("by hand")

        with pytest.raises(ZeroDivisionError, match="by hand") as caught:
            worker.call(fails)
        assert "fails" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert worker.call(renderer), "the next call works"

    def test_a_call_within_a_call(self, worker: GlWorker) -> None:
        assert worker.call(lambda _: worker.call(renderer)) == worker.call(renderer)

    def test_after_its_release(self, worker: GlWorker) -> None:
        worker.release()
        worker.release()
        with pytest.raises(UsageError, match="has been released"):
            worker.call(renderer)

    def test_in_a_forked_process(self, worker: GlWorker) -> None:
        """The child says in its exit code that the call raised, and that releasing did nothing."""
        child = os.fork()
        if not child:
            try:
                worker.call(renderer)
            except UsageError as error:
                worker.release()
                os._exit(7 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert worker.call(renderer), "the parent's goes on"


class TestThread:
    def test_many_callers_at_once(self) -> None:
        worker = ThreadWorker()
        inside = [0]

        def work(number: int) -> int:
            def alone(_: Context) -> int:
                inside[0] += 1
                assert inside[0] == 1
                time.sleep(0)
                inside[0] -= 1
                return number * number

            return worker.call(alone)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(200))) == [number * number for number in range(200)]
        worker.release()

    def test_a_forgotten_one_ends(self) -> None:
        worker = ThreadWorker()
        ident = worker.call(lambda _: threading.get_ident())
        del worker
        gc.collect()
        assert ident not in [thread.ident for thread in threading.enumerate()]

    def test_an_interruption_just_behind_the_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is raised once the job is over, and does not wait for what has come already."""

        real = threading.Lock

        class InterruptedLock:
            def __init__(self) -> None:
                self._lock, self._interrupts = real(), [KeyboardInterrupt]
                self.release = self._lock.release

            def acquire(self, **given: Any) -> bool:
                found = self._lock.acquire(**given)
                if given and self._interrupts:
                    raise self._interrupts.pop()
                return found

        worker, done = ThreadWorker(), list[int]()
        with monkeypatch.context() as patch:
            patch.setattr(threading, "Lock", InterruptedLock)
            with pytest.raises(KeyboardInterrupt):
                worker.call(lambda _: done.append(1))
        assert done == [1]
        assert worker.call(renderer)
        worker.release()

    def test_release_from_its_own_thread(self) -> None:
        worker = ThreadWorker()
        worker.call(lambda _: worker.release())
        with pytest.raises(UsageError, match="has been released"):
            worker.call(renderer)

    def test_no_opengl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GLCONTEXT_DEVICE_INDEX", "99")
        with pytest.raises(DeviceError, match="no device 99"):
            ThreadWorker()

    @one_in(3, "last", ["", "del worker", "worker.call(lambda context: None)"])
    def test_python_ends_with_it(self, last: str) -> None:
        """Also where something calls it after the thread has ended."""
        program = (
            "import atexit\n"
            "from texelflow.gpu_delegate.delegate.worker import ThreadWorker\n"
            "def late():\n"
            "    try: worker.call(lambda context: None)\n"
            "    except Exception as error: print(error)\n"
            "atexit.register(late)\n"
            f"worker = ThreadWorker()\n{last}\nprint('end')"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("end\n")


class TestCaller:
    def test_it_works_on_this_thread_in_that_context(self, mgl: moderngl.Context) -> None:
        worker = CallerWorker(mgl)
        assert worker.call(lambda _: threading.get_ident()) == threading.get_ident()
        assert worker.call(lambda context: context.mgl) is mgl
        worker.release()

    def test_another_thread(self, mgl: moderngl.Context) -> None:
        worker = CallerWorker(mgl)
        with (
            ThreadPoolExecutor(1) as pool,
            pytest.raises(UsageError, match="belongs to the thread that made it"),
        ):
            pool.submit(worker.call, renderer).result()
        worker.release()

    def test_another_context_is_current(self, mgl: moderngl.Context) -> None:
        """Each finds its own objects, and the other context is current again afterwards."""
        worker = CallerWorker(mgl)
        other = moderngl.create_context(standalone=True, require=430, **EGL)
        second = CallerWorker(other)
        for _ in range(2):
            assert worker.call(lambda context: context.mgl) is mgl
            assert second.call(lambda context: context.mgl) is other
            buffer = other.buffer(b"1234")
            assert buffer.read() == b"1234"
            with pytest.raises(ZeroDivisionError):
                worker.call(lambda _: 1 // 0)
            assert buffer.read() == b"1234", "after an exception, too"
        for each in (worker, second):
            each.release()
        other.release()

    def test_a_context_that_is_released(self) -> None:
        mgl = moderngl.create_context(standalone=True, require=430, **EGL)
        worker = CallerWorker(mgl)
        mgl.release()
        with pytest.raises(DeviceError, match="has been released"):
            worker.call(renderer)
        with pytest.raises(UsageError, match="has been released"):
            CallerWorker(mgl)
        worker.release()

    def test_a_context_that_is_gone_though_its_handle_is_there(self, mgl: moderngl.Context) -> None:
        """As where a window's context is destroyed, and the next one gets its address."""
        worker = CallerWorker(mgl)
        worker.call(lambda context: context.gl.delete("Buffers", worker._mark._buffer))
        with pytest.raises(DeviceError, match="is gone"):
            worker.call(renderer)

    def test_no_context(self) -> None:
        with pytest.raises(UsageError, match=r"context is a moderngl\.Context, not int"):
            open_worker(5)  # type: ignore[arg-type]
