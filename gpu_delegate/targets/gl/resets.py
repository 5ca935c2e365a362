"""Detects that the GPU was reset, or has lost its memory while the computer slept.

Drivers tell of a reset where the context was made to be told (EGL_LOSE_CONTEXT_ON_RESET and its like; OpenGL 4.5,
KHR_robustness). Of a suspend the clocks tell; whether memory has survived it is seen by checksums of some buffers.
"""

import ctypes
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from time import perf_counter_ns

from ...base.errors import ContextLostError
from . import opengl
from .opengl import GL, Load, Uint, entry_point

_INTERVAL_NS = 1_000_000_000
_LEAST_SLEEP_S = 0.5
_STRATEGY, _LOSE_CONTEXT_ON_RESET = 0x8256, 0x8252
_REASONS = {
    0x8253: "this program's work hung it",
    0x8254: "another program's work hung it",
    0x92BB: "its memory was cleared",  # by NVIDIA's driver, over a suspend
}


class ResetWatch:
    """Looks after the context that is current when this is made, and again whenever it is used.

    `slept_s` tells how long the computer has been suspended since some moment.
    """

    def __init__(self, gl: GL, load: Load) -> None:
        self._gl, self._status = gl, _status_function(gl, load)
        self._checksums: dict[int, tuple[int, int]] = {}  # by buffer: its size in bytes, and that of its content
        self._keepers: Counter[int] = Counter()  # how many want a buffer compared
        self._next_ns = 0
        self._lost = ""  # what has happened
        self.slept_s: Callable[[], float] = suspended_s
        self._slept_s = suspended_s()

    @property
    def tells(self) -> bool:
        """Whether the driver tells of resets."""
        return self._status is not None

    def keep(self, buffer: int, size_bytes: int, checksum: int) -> None:
        """After a suspend, compare a buffer that nothing writes with the CRC-32 of its content."""
        self._checksums[buffer] = size_bytes, checksum
        self._keepers[buffer] += 1

    def forget(self, buffer: int) -> None:
        """Compare it no more, as far as one of those is concerned who have asked for it."""
        self._keepers[buffer] -= 1
        if self._keepers[buffer] <= 0:
            del self._keepers[buffer]
            self._checksums.pop(buffer, None)

    def check(self) -> None:
        """Raise ContextLostError if all in the context is lost. May be called for each frame: once a second it asks."""
        now_ns = perf_counter_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + _INTERVAL_NS
            self.check_now()

    def check_now(self) -> None:
        """The same at once."""
        self.check_status()
        before_s, self._slept_s = self._slept_s, self.slept_s()
        if self._slept_s - before_s > _LEAST_SLEEP_S and not all(map(self._is_intact, self._checksums)):
            self._lost = "the GPU lost its memory while the computer slept"
            raise ContextLostError(self._lost)

    def check_status(self) -> None:
        """Raise ContextLostError if the driver tells of a reset."""
        if not self._lost and self._status and (status := self._status()):
            self._lost = f"the GPU was reset: {_REASONS.get(status, 'the driver does not say why')}"
        if self._lost:
            raise ContextLostError(self._lost)

    def _is_intact(self, buffer: int) -> bool:
        size_bytes, checksum = self._checksums[buffer]
        content = ctypes.create_string_buffer(size_bytes)
        self._gl.glBindBuffer(opengl.COPY_READ_BUFFER, buffer)
        self._gl.read_buffer(opengl.COPY_READ_BUFFER, 0, size_bytes, ctypes.addressof(content))
        return zlib.crc32(content) == checksum


def suspended_s() -> float:
    """How long this computer has been suspended since some moment; always 0 where no clocks tell."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    return 0.0


def _status_function(gl: GL, load: Load) -> Callable[[], int] | None:
    """What tells of resets: glGetGraphicsResetStatus by the name that it has here; None where nothing is told."""
    ending = None
    if gl.version >= ((3, 2) if gl.is_es else (4, 5)):
        ending = ""
    elif "GL_KHR_robustness" in gl.extensions:
        ending = "KHR" if gl.is_es else ""
    else:
        ending = next((e for e in ("ARB", "EXT") if f"GL_{e}_robustness" in gl.extensions), None)
    if ending is None or gl.integer(_STRATEGY) != _LOSE_CONTEXT_ON_RESET:
        return None
    address = load("glGetGraphicsResetStatus" + ending)
    return entry_point(address, Callable[[], Uint]) if address else None
