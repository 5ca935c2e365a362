"""Waiting for the GPU in each of the four ways; a fence that does not exist is an error."""

from typing import get_args

import numpy as np
import pytest

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.delegate.synchronization import WaitType, wait_for_fence, wait_for_gpu
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute

WAIT_TYPES: tuple[WaitType, ...] = get_args(WaitType)
COUNT = """#version 430
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Count { uint count; };
void main() { for (int i = 0; i < 50000; i++) atomicAdd(count, 1u); }
"""


def fence_of(context: Context) -> int | None:
    return context.gl.glFenceSync(opengl.SYNC_GPU_COMMANDS_COMPLETE, 0)


@pytest.mark.parametrize("wait_type", WAIT_TYPES)
def test_what_was_asked_for_is_done_afterwards(context: Context, wait_type: WaitType) -> None:
    gl, found = context.gl, np.zeros(1, np.uint32)
    program, buffer = compile_compute(context, COUNT, "count"), gl.generate("Buffers")
    gl.glBindBuffer(opengl.SHADER_STORAGE_BUFFER, buffer)
    gl.glBufferData(opengl.SHADER_STORAGE_BUFFER, 4, found.ctypes.data, opengl.DYNAMIC_COPY)
    gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 0, buffer)
    gl.glUseProgram(program)
    gl.glDispatchCompute(1, 1, 1)
    fence = fence_of(context)
    wait_for_gpu(context, wait_type)
    if wait_type != "do-not-wait":
        assert gl.glClientWaitSync(fence, 0, 0) == opengl.ALREADY_SIGNALED
    gl.glDeleteSync(fence)
    gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
    gl.read_buffer(opengl.SHADER_STORAGE_BUFFER, 0, 4, found.ctypes.data)
    assert found[0] == 50000
    gl.delete("Buffers", buffer)
    gl.glDeleteProgram(program)


@pytest.mark.parametrize("wait_type", ["passive", "active", "aggressive"])
def test_a_fence_that_is_not_there_is_an_error(context: Context, wait_type: WaitType) -> None:
    fence = fence_of(context)
    context.gl.glDeleteSync(fence)
    with pytest.raises(DeviceError, match="OpenGL failed while waiting for the GPU: "):
        wait_for_fence(context, fence, wait_type)
