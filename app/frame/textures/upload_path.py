"""Measures in a few frames which way to upload pictures of a format is fastest on this machine.

A driver copies what is uploaded directly before the call returns, and some drivers wait there until the device has done
with the picture before. Buffers cost a copy of ours, but let the device fetch pixels when it is ready. Which is
faster differs, so it is measured; direct is simplest, and stays unless another one is clearly faster.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from time import perf_counter

import numpy as np

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.targets.gl.context import Context

from ...picture.picture import Picture, PictureFormat
from .upload import DEPTH, DIRECT, ORPHANED, RING, FrameTextures, UploadPath

CLEARLY_FASTER = 0.9  # of direct's time, or less
_FRAMES, _ROUNDS = 4, 3
_LARGE_FRAMES, _LARGE_ROUNDS = 1, DEPTH + 1  # of pictures beyond _LARGE_BYTES: until each buffer of a ring was used
_LARGE_BYTES, _MOST_BYTES = 16 << 20, 64 << 20  # no picture beyond that is tried out
_GRAY = 128


def choose_path(context: Context, format: PictureFormat) -> UploadPath:
    """Try the ways and decide; takes as long as 36 uploads, 12 of large pictures. Raises DeviceError as FrameTextures.

    Software OpenGL uploads by copying within RAM, so there a buffer can only be one copy more, and nothing is tried;
    nor is it for pictures so large that users would notice.
    """
    if context.is_software or _bytes(format) > _MOST_BYTES:
        debug.tell(debug.RUN, "debug: frames go up directly, nothing else was tried")
        return DIRECT
    times_ms = upload_times_ms(context, format)
    named = tuple((path.name, ms) for path, ms in times_ms.items())
    chosen = replace(fastest(times_ms), times_ms=named)
    tried = ", ".join(f"{name} {ms:.3f} ms" for name, ms in named)
    debug.tell(debug.RUN, f"debug: frames go up by the way {chosen.name} ({tried})")
    return chosen


def upload_times_ms(context: Context, format: PictureFormat) -> dict[UploadPath, float]:
    """Milliseconds of a frame by each way. Raises DeviceError as FrameTextures does."""
    picture = _blank(format)
    return {path: _measure(context, picture, path) for path in (DIRECT, RING, ORPHANED)}


def _blank(format: PictureFormat) -> Picture:
    kind = np.uint8 if format.sample_bytes == 1 else np.uint16
    planes = (np.full(shape, _GRAY, kind) for shape in format.plane_shapes)  # zeros would be one page of memory
    return Picture(format, tuple(planes))


def _bytes(format: PictureFormat) -> int:
    return sum(map(prod, format.plane_shapes)) * format.sample_bytes


def fastest(times_ms: Mapping[UploadPath, float]) -> UploadPath:
    """The way to take: direct, unless another one is clearly faster."""
    best = min(times_ms, key=lambda path: times_ms[path])
    return best if times_ms[best] <= CLEARLY_FASTER * times_ms[DIRECT] else DIRECT


def _measure(context: Context, picture: Picture, path: UploadPath) -> float:
    """Milliseconds for one frame: of the best round, each of some frames that the device has finished with."""
    rounds_ms, is_large = list[float](), _bytes(picture.format) > _LARGE_BYTES
    frames, rounds = (_LARGE_FRAMES, _LARGE_ROUNDS) if is_large else (_FRAMES, _ROUNDS)
    with FrameTextures(context, picture.format, path) as textures:
        for _ in range(rounds):
            context.gl.glFinish()
            start = perf_counter()
            for _ in range(frames):
                textures.upload(picture)
            context.gl.glFinish()
            rounds_ms.append((perf_counter() - start) * 1e3 / frames)
    return min(rounds_ms)
