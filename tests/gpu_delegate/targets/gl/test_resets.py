"""Resets of the GPU and suspends of the computer: how a context reports them, and when weights are checked."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.helpers.gpu_resets import GpuResets
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import ContextLostError, DeviceError
from texelflow.gpu_delegate.device.device import HARDWARE
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl import opengl, resets
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.native_context import open_native
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

pytestmark = pytest.mark.gl


@pytest.fixture
def own() -> Iterator[Context]:
    """A context that a test may lose."""
    with open_context() as context:
        yield context


def convolution() -> bytes:
    """Its weights lie in a buffer."""
    model, rng = ModelBuilder(), np.random.default_rng(0)
    x = model.input((1, 5, 7, 3))
    weights = [model.constant(rng.normal(size=(6, 3, 3, 3))), model.constant(rng.normal(size=6))]
    model.output(model.op("CONV_2D", [x, *weights], (1, 5, 7, 6), padding="SAME", stride=(1, 1), activation="NONE"))
    return model.build()


def sleep(context: Context, seconds: float) -> None:
    """As the clocks tell it."""
    before_s = context.resets.slept_s()
    context.resets.slept_s = lambda: before_s + seconds


def overwrite(context: Context, buffer: int) -> None:
    """The first four bytes, which a driver may keep where nothing but copies reaches."""
    gl, other = context.gl, context.mgl.buffer(b"lost")
    gl.glBindBuffer(opengl.COPY_READ_BUFFER, other.glo)
    gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, buffer)
    gl.glCopyBufferSubData(opengl.COPY_READ_BUFFER, opengl.COPY_WRITE_BUFFER, 0, 0, 4)


@pytest.mark.parametrize("api", ["gl", "gles"])
def test_the_driver_is_asked_by_the_name_that_the_function_has(api: str) -> None:
    """Mesa's software renderer makes contexts that are told of resets; and is never reset."""
    opened = open_native((4, 3) if api == "gl" else (3, 1), api)  # type: ignore[arg-type]
    asked: list[str] = []

    def load(name: str) -> int:
        asked.append(name)
        return opened.native.load_opengl_function(name)

    watch = resets.ResetWatch(opengl.GL(opened.native.load_opengl_function), load)
    watch.check_now()
    assert watch.tells
    assert asked == ["glGetGraphicsResetStatus"]
    opened.native.release()


def test_a_reset_is_an_error_of_its_own_from_then_on(gpu: GpuResets, own: Context) -> None:
    own.check_errors("nothing")
    gpu.reset()
    for _ in range(2):
        with pytest.raises(ContextLostError, match="the GPU was reset: this program's work hung it"):
            own.check_errors("nothing")
    assert issubclass(ContextLostError, DeviceError)
    with open_context() as other:
        other.check_errors("another context is well")


def test_a_network_that_is_read_on_a_lost_context_says_so(gpu: GpuResets, own: Context) -> None:
    with Program(own, compile_graph(read_model(convolution()), HARDWARE)) as program:
        program.run()
        gpu.reset()
        with pytest.raises(ContextLostError):
            own.check_errors("running")


def test_weights_are_compared_after_a_suspend_and_only_then(own: Context) -> None:
    with Program(own, compile_graph(read_model(convolution()), HARDWARE)) as program:
        before = own.readback.bytes
        own.resets.check_now()
        assert own.readback.bytes == before
        sleep(own, 60)
        own.resets.check_now()
        assert own.readback.bytes > before
        overwrite(own, program._weights[0].buffer)
        own.resets.check_now()
        sleep(own, 60)
        with pytest.raises(ContextLostError, match="lost its memory while the computer slept"):
            own.resets.check_now()
    with open_context() as other:  # what a program has freed is compared no more
        Program(other, compile_graph(read_model(convolution()), HARDWARE)).release()
        sleep(other, 60)
        other.resets.check_now()


def test_the_clocks_tell_of_no_sleep_where_there_was_none() -> None:
    assert resets.suspended_s() - resets.suspended_s() == pytest.approx(0, abs=0.1)
