"""Chooses what reads pictures of frames, by where they are drawn."""

from texelflow.gpu_delegate.targets.gl.context import Context

from ..frame.textures.native_pictures import NativePictures
from .native_readers import NativeReaders
from .picture_readers import DeviceReaders, FrameReaders, Pictures, RamMasks


def readers_of(device: Context | NativePictures | None, pictures: Pictures | RamMasks, keeps_all: bool) -> FrameReaders:
    """What reads them in RAM, or on their device; keeps_all: every frame counts.

    A software renderer is waited for, so where every frame counts colors are converted on the encoder's thread.

    Raises ValueError where pictures are drawn, and there is no device.
    """
    if isinstance(pictures, RamMasks):
        return pictures
    if device is None:
        raise ValueError("pictures are on a device, which is needed")
    if isinstance(device, NativePictures):
        return NativeReaders(device, pictures)
    return DeviceReaders(device, pictures, converts=not (keeps_all and device.is_software))
