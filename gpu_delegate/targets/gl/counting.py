"""Counts what is read back from the GPU, by wrapping OpenGL's entry points.

Every way in which pixels or buffers reach the CPU is counted, whether the engine, the program or moderngl makes the
call, since all of them load their entry points here. `calls` is the number of such calls. `bytes` is what reaches the
CPU, once: a read into a bound pixel pack buffer is a call with 0 bytes (it stays on the device), and the map of that
buffer counts its bytes. A range that stays mapped counts when it is mapped. Sizes are those of the data without row
padding; where OpenGL is given the size of the caller's memory (glReadnPixels, glGetTextureImage), that size counts.
"""

import ctypes
import functools
from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_int, c_int64, c_ssize_t, c_uint, c_void_p
from dataclasses import dataclass
from typing import Any

from .opengl import MAP_READ_BIT, WRITE_ONLY, Load

_PIXEL_PACK_BUFFER_BINDING = 0x88ED
_BUFFER_SIZE = 0x8764
_TEXTURE_WIDTH, _TEXTURE_HEIGHT, _TEXTURE_DEPTH, _COMPRESSED_IMAGE_SIZE = 0x1000, 0x1001, 0x8071, 0x86A0

# Channels by pixel format: the RG, RGB and RGBA families with their integer kinds; whatever is not listed has one.
_CHANNELS = {
    0x8227: 2,
    0x8228: 2,
    0x1907: 3,
    0x80E0: 3,
    0x8D98: 3,
    0x8D9A: 3,
} | {0x1908: 4, 0x80E1: 4, 0x8D99: 4, 0x8D9B: 4}
_CHANNEL_BYTES = {0x1400: 1, 0x1401: 1, 0x1402: 2, 0x1403: 2, 0x1404: 4, 0x1405: 4, 0x1406: 4, 0x140B: 2}
_PACKED_BYTES = {0x8032: 1, 0x8362: 1, 0x8363: 2, 0x8364: 2, 0x8033: 2, 0x8365: 2, 0x8034: 2, 0x8366: 2, 0x8DAD: 8}


@dataclass
class ReadbackCounter:
    """What was read back since the context was opened."""

    bytes: int = 0
    calls: int = 0


def pixel_bytes(pixel_format: int, pixel_type: int) -> int:
    """Bytes of one pixel in a format and type of OpenGL's; packed types that are not listed have 4."""
    if pixel_type in _CHANNEL_BYTES:
        return _CHANNELS.get(pixel_format, 1) * _CHANNEL_BYTES[pixel_type]
    return _PACKED_BYTES.get(pixel_type, 4)


@functools.lru_cache(4096)
def _same(address: int) -> int:
    """Returns the same object each time: moderngl keeps a reference to every one that it is given."""
    return address


class CountingLoader:
    """Wraps a function loader and returns counting entry points for every function that reads back.

    Keep it as long as anything that it loaded may be called: it owns the code at the addresses.
    """

    def __init__(self, load: Load, counter: ReadbackCounter) -> None:
        self._load = load
        self._counter = counter
        self._thunks: dict[str, Any] = {}

    def load(self, name: str) -> int:
        """The address of an entry point, counting if it reads back; 0 if there is none."""
        address = _same(self._load(name) or 0)
        base = name.removesuffix("ARB").removesuffix("EXT").removesuffix("KHR").removesuffix("OES")
        if not address or base not in _READERS:
            return address
        if name not in self._thunks:
            self._thunks[name] = self._thunk(address, *_READERS[base])
        return ctypes.cast(self._thunks[name], c_void_p).value or 0

    def _thunk(self, address: int, prototype: Any, count: "Count") -> Any:
        real = prototype(address)

        def counting(*arguments: Any) -> Any:
            size = count(self, *arguments)
            if size is not None:
                self._counter.calls += 1
                self._counter.bytes += size
            return real(*arguments)

        return prototype(counting)

    def call(self, name: str, *arguments: Any) -> None:
        """Call an entry point that returns nothing, with ctypes values as arguments."""
        CFUNCTYPE(None, *(c_void_p if type(a).__name__ == "CArgObject" else type(a) for a in arguments))(
            self._load(name)
        )(*arguments)

    def outside_pack_buffer(self, size: int) -> int:
        """The size if pixels go to the caller's memory, 0 if they go to a bound pixel pack buffer."""
        bound = c_int()
        self.call("glGetIntegerv", c_uint(_PIXEL_PACK_BUFFER_BINDING), byref(bound))
        return 0 if bound.value else size

    def image_size(self, target: int, level: int, pixel_format: int, pixel_type: int) -> int:
        """Bytes of one level of the bound texture."""
        sides = (self.level_value(target, level, side) for side in (_TEXTURE_WIDTH, _TEXTURE_HEIGHT, _TEXTURE_DEPTH))
        width, height, depth = sides
        return width * height * depth * pixel_bytes(pixel_format, pixel_type)

    def level_value(self, target: int, level: int, name: int) -> int:
        """One glGetTexLevelParameter of the bound texture."""
        value = c_int()
        self.call("glGetTexLevelParameteriv", c_uint(target), c_int(level), c_uint(name), byref(value))
        return value.value

    def buffer_size(self, getter: str, target: int) -> int:
        """Bytes of a whole buffer, by target or by name."""
        value = c_int64()
        self.call(getter, c_uint(target), c_uint(_BUFFER_SIZE), byref(value))
        return value.value


Count = Callable[..., "int | None"]  # (loader, *arguments) to the bytes that reach the CPU, None if nothing is read


def _read_pixels(loader: CountingLoader, x: int, y: int, width: int, height: int, form: int, kind: int, *_: Any) -> int:
    return loader.outside_pack_buffer(max(width, 0) * max(height, 0) * pixel_bytes(form, kind))


def _get_tex_image(loader: CountingLoader, target: int, level: int, form: int, kind: int, _data: int) -> int:
    return loader.outside_pack_buffer(loader.image_size(target, level, form, kind))


def _get_compressed(loader: CountingLoader, target: int, level: int, _data: int) -> int:
    return loader.outside_pack_buffer(loader.level_value(target, level, _COMPRESSED_IMAGE_SIZE))


def _room(loader: CountingLoader, *arguments: Any) -> int:
    return loader.outside_pack_buffer(max(arguments[-2], 0))


def _sub_data(loader: CountingLoader, target: int, offset: int, size: int, _data: int) -> int:
    return max(size, 0)


def _map_buffer(loader: CountingLoader, target: int, access: int) -> int | None:
    return None if access == WRITE_ONLY else loader.buffer_size("glGetBufferParameteri64v", target)


def _map_named(loader: CountingLoader, name: int, access: int) -> int | None:
    return None if access == WRITE_ONLY else loader.buffer_size("glGetNamedBufferParameteri64v", name)


def _map_range(loader: CountingLoader, target: int, offset: int, length: int, access: int) -> int | None:
    return max(length, 0) if access & MAP_READ_BIT else None


def _void(*arguments: Any) -> Any:
    return CFUNCTYPE(None, *arguments)


_MAP = CFUNCTYPE(c_void_p, c_uint, c_uint)
_MAP_RANGE = CFUNCTYPE(c_void_p, c_uint, c_ssize_t, c_ssize_t, c_uint)
_SUB_DATA = _void(c_uint, c_ssize_t, c_ssize_t, c_void_p)
_READERS: dict[str, tuple[Any, Count]] = {
    "glReadPixels": (_void(c_int, c_int, c_int, c_int, c_uint, c_uint, c_void_p), _read_pixels),
    "glReadnPixels": (_void(c_int, c_int, c_int, c_int, c_uint, c_uint, c_int, c_void_p), _room),
    "glGetTexImage": (_void(c_uint, c_int, c_uint, c_uint, c_void_p), _get_tex_image),
    "glGetnTexImage": (_void(c_uint, c_int, c_uint, c_uint, c_int, c_void_p), _room),
    "glGetTextureImage": (_void(c_uint, c_int, c_uint, c_uint, c_int, c_void_p), _room),
    "glGetTextureSubImage": (_void(c_uint, *([c_int] * 7), c_uint, c_uint, c_int, c_void_p), _room),
    "glGetCompressedTexImage": (_void(c_uint, c_int, c_void_p), _get_compressed),
    "glGetnCompressedTexImage": (_void(c_uint, c_int, c_int, c_void_p), _room),
    "glGetCompressedTextureImage": (_void(c_uint, c_int, c_int, c_void_p), _room),
    "glGetCompressedTextureSubImage": (_void(c_uint, *([c_int] * 7), c_int, c_void_p), _room),
    "glGetBufferSubData": (_SUB_DATA, _sub_data),
    "glGetNamedBufferSubData": (_SUB_DATA, _sub_data),
    "glMapBuffer": (_MAP, _map_buffer),
    "glMapNamedBuffer": (_MAP, _map_named),
    "glMapBufferRange": (_MAP_RANGE, _map_range),
    "glMapNamedBufferRange": (_MAP_RANGE, _map_range),
}
