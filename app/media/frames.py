"""RGBA frames for measurements: from a .npy file, or of a given size from the demo clip."""

import os
import tokenize
from importlib import resources

import cv2
import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ..picture.convert import Rgba
from ..picture.preprocess import ImageSize
from ..picture.size import parse_size
from .sources import MAX_PIXELS, MAX_SIDE, FileSource

CLIP_FRAMES = (30, 60, 90, 110, 130, 150, 180, 230)  # with one person, with two, in little light
MOST_BYTES = 1 << 28  # of all of them
# What numpy.load raises on damaged headers, which are Python literals
_UNREADABLE = (
    *(OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError),
    *(ArithmeticError, MemoryError, RecursionError, TypeError),
)


def parse_frame_size(text: str) -> ImageSize:
    """640x480 as (width, height). Raises UsageError."""
    size = parse_size(text)
    if size is None:
        raise UsageError(f"--size {text[:40]}: width and height in pixels are needed, such as 640x480")
    return check_size(size, f"--size {text}")


def check_size(size: ImageSize, what: str) -> ImageSize:
    """The size itself. Raises UsageError if it is over what videos may have here."""
    if max(size) > MAX_SIDE or size[0] * size[1] > MAX_PIXELS:
        raise UsageError(f"{what}: frames may have {MAX_SIDE} pixels a side and {MAX_PIXELS >> 20} million in all")
    return size


def clip_frames(size: ImageSize) -> list[Rgba]:
    """Eight frames of the demo clip, resized; fewer where they are so large that eight would fill the memory."""
    count = max(1, MOST_BYTES // (size[0] * size[1] * 4))
    wanted = CLIP_FRAMES[:count]
    with (
        resources.as_file(resources.files("texelflow.assets") / "people.mp4") as path,
        FileSource(path, last=wanted[-1]) as source,
    ):
        chosen = [frame.rgba for frame in source if frame.index in wanted]
    return [np.asarray(cv2.resize(rgba, size, interpolation=cv2.INTER_AREA), np.uint8) for rgba in chosen]


def read_frames(path: str | os.PathLike[str]) -> Rgba:
    """The frames (N, H, W, 4) of a .npy file, mapped from the disk. Raises MediaError; nothing in it is executed."""
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise MediaError(f"'{name}' is not a file; give a .npy file with frames (N, H, W, 4) of uint8")
    try:
        with np.errstate(over="raise"):  # a header may claim more than 64 bits hold
            frames = np.load(name, mmap_mode="r", allow_pickle=False)
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())[:100]
        raise MediaError(f"'{name}' cannot be read as .npy ({reason}); make it with numpy.save") from error
    if not isinstance(frames, np.ndarray) or frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 4:
        found = f"{frames.dtype} {frames.shape}" if isinstance(frames, np.ndarray) else "an archive of arrays"
        raise MediaError(f"'{name}' holds {found[:80]}; frames are uint8 of shape (N, H, W, 4)")
    if not frames.size:
        raise MediaError(f"'{name}' holds no pixels: its shape is {frames.shape}")
    check_size((frames.shape[2], frames.shape[1]), f"'{name}'")
    return frames
