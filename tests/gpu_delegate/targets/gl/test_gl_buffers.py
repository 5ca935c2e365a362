"""Buffers of the GPU: what is written is read again, whether or not the CPU can map the memory."""

import ctypes

import numpy as np
import pytest

from tests.helpers.io_bindings import product_graph
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import WayOut, clear_buffer, device_buffer, read_buffer, write_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

BUFFER_IMMUTABLE_STORAGE = 0x821F


@pytest.mark.parametrize("context", ["gl", "gles"], indirect=True)
@pytest.mark.parametrize("is_software", [True, False])
def test_spans_are_written_and_read(is_software: bool, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "is_software", is_software)
    gl, content = context.gl, np.arange(100, dtype=np.uint8)
    buffer, way = device_buffer(context, 100, content), WayOut(context)
    try:
        immutable = ctypes.c_int64()
        gl.glGetBufferParameteri64v(opengl.SHADER_STORAGE_BUFFER, BUFFER_IMMUTABLE_STORAGE, ctypes.byref(immutable))
        assert bool(immutable.value) is (gl.buffer_storage and not is_software)
        more = np.full(7, 200, np.uint8)
        write_buffer(context, BufferRange(buffer, 13, 7), more.ctypes.data)
        clear_buffer(context, BufferRange(buffer, 24, 4))
        content[13:20], content[24:28] = 200, 0
        np.testing.assert_array_equal(read_buffer(context, BufferRange(buffer, 9, 20)), content[9:29])
        for sizes in ((3, 50), (100,), ()):  # one behind the other, in a buffer that grows
            found = [np.empty(size, np.uint8) for size in sizes]
            way.take([BufferRange(buffer, 100 - size, size) for size in sizes])
            way.give([one.ctypes.data for one in found])
            assert all((one == content[100 - len(one) :]).all() for one in found)
    finally:
        way.release()
        gl.delete("Buffers", buffer)


def test_no_buffer_is_made_to_read_again(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "is_software", False)
    with Program(context, compile_graph(product_graph((1, 2, 3, 4)), SOFTWARE)) as program:
        program.write(0, np.ones((1, 2, 3, 4), np.float32))
        program.run()
        program.read(2)
        monkeypatch.setattr(context.gl, "generate", None)
        np.testing.assert_array_equal(program.read(2), np.full((1, 2, 3, 4), 3, np.float32))
