"""Waits for the GPU, in the four ways of TensorFlow Lite's Metal delegate.

The four wait types are those of TensorFlow Lite's Metal delegate:

passive      a fence, and a wait that leaves the CPU to others
active       a fence, asked again and again: no time is lost until the thread wakes up, for a CPU that is busy meanwhile
do-not-wait  none: for outputs that stay on the GPU. What is read into RAM waits by itself, as the driver does it
aggressive   as active. In Metal it gives the GPU work between runs, too, so that it keeps its clock rate. OpenGL has no
             queue beside the one in which the next run would have to wait for that work
"""

from typing import Literal

from ..base.errors import DeviceError
from ..targets.gl import opengl
from ..targets.gl.context import Context

WaitType = Literal["passive", "active", "do-not-wait", "aggressive"]

_STEP_NS = 10_000_000  # as in TensorFlow Lite; between two waits Python sees signals


def wait_for_gpu(context: Context, wait_type: WaitType) -> None:
    """Return when the GPU is done, or at once. Raises DeviceError if it does not get done: a lost context."""
    if wait_type == "do-not-wait":
        context.gl.glFlush()  # so that it begins
        return
    fence = context.gl.glFenceSync(opengl.SYNC_GPU_COMMANDS_COMPLETE, 0)
    try:
        wait_for_fence(context, fence, wait_type)
    finally:
        context.gl.glDeleteSync(fence)


def wait_for_fence(context: Context, fence: int | None, wait_type: WaitType) -> None:
    """The same for a fence that was made before. Raises DeviceError."""
    step_ns, wait = 0 if wait_type in ("active", "aggressive") else _STEP_NS, context.gl.glClientWaitSync
    state = wait(fence, opengl.SYNC_FLUSH_COMMANDS_BIT, step_ns)
    while state == opengl.TIMEOUT_EXPIRED:
        state = wait(fence, 0, step_ns)
    if state == opengl.WAIT_FAILED:
        context.check_errors("waiting for the GPU")
        raise DeviceError(f"{context.renderer} does not say when it is done; its context may be lost")
