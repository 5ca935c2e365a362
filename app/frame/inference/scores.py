"""Uploads the scores of a network's classes from RAM to a buffer on the device, as PHWC4, when asked for."""

import numpy as np

from texelflow.gpu_delegate.model.packing import Float32Array, phwc4
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

from ...picture.preprocess import ImageSize
from ..textures.picture_device import PictureDevice


class ScoresUpload:
    """A buffer that is made at its first use. `uploaded_bytes` counts what went up so far."""

    def __init__(self, pictures: PictureDevice, size: ImageSize) -> None:
        """`size` is (width, height) of the scores."""
        self.uploaded_bytes = 0
        self._pictures, self._size = pictures, size
        self._buffer: BufferRange | None = None
        self._shown: Float32Array | None = None

    def shown(self, output_bhwc: Float32Array) -> BufferRange:
        """The buffer with these scores (1, H, W, C); what it has already does not go up again. Raises DeviceError."""
        if self._buffer is None or self._shown is not output_bhwc:
            self._upload(np.ascontiguousarray(phwc4(output_bhwc[0])))
            self._shown = output_bhwc
        assert self._buffer is not None
        return self._buffer

    def _upload(self, packed: Float32Array) -> None:
        self._buffer = self._buffer or self._pictures.memory(self._size, packed.nbytes)
        self._pictures.write(self._buffer, packed)
        self.uploaded_bytes += packed.nbytes

    def release(self) -> None:
        """Delete the buffer."""
        if self._buffer:
            self._pictures.free(self._buffer)
