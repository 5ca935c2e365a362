"""Makes buffers on the device for masks."""

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

from ...picture.preprocess import ImageSize


def mask_buffer(context: Context, size: ImageSize, size_bytes: int, computed: bool = True) -> BufferRange:
    """Room for a mask of (width, height), which a shader writes if it is computed.

    Raises DeviceError if the device has no memory for it, or does not let a shader write so much.
    """
    limit = context.limits.storage_block_bytes
    what = f"a mask of {size[0]}x{size[1]} pixels"
    if computed and size_bytes > limit:
        raise DeviceError(f"{what} is too large for {context.renderer}: at most {limit >> 20} MiB; try --backend cpu")
    gl = context.gl
    buffer = gl.generate("Buffers")
    gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, buffer)
    gl.glBufferData(opengl.COPY_WRITE_BUFFER, size_bytes, None, opengl.DYNAMIC_COPY)
    context.label(opengl.BUFFER, buffer, what)
    context.check_errors(f"making room for {what}")
    return BufferRange(buffer, 0, size_bytes)
