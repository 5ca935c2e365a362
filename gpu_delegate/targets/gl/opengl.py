"""OpenGL's entry points and constants, callable through ctypes.

Every call releases the GIL while the driver works. Names are OpenGL's own, so that its manual applies.
"""
# ruff: noqa: N815

import ctypes
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, Protocol, get_args, get_type_hints

from ...base.errors import DeviceError

Load = Callable[[str], int]  # name of an entry point to its address, 0 if there is none

Uint = Annotated[int, ctypes.c_uint]
Int = Annotated[int, ctypes.c_int]
Byte = Annotated[int, ctypes.c_ubyte]
Float = Annotated[float, ctypes.c_float]
Size = Annotated[int, ctypes.c_ssize_t]
U64 = Annotated[int, ctypes.c_uint64]
Pointer = Annotated[Any, ctypes.c_void_p]  # an address, None, or a ctypes array
Array = Annotated[ctypes.Array[Any], ctypes.Array]  # nothing else: an address would be truncated to 32 bits
Text = Annotated[bytes, ctypes.c_char_p]
Sync = Annotated[int | None, ctypes.c_void_p]

_AS_THEY_ARE = (ctypes.c_uint, ctypes.c_int, ctypes.c_ubyte, ctypes.c_char_p, ctypes.Array)

TEXTURE_2D, TEXTURE_BUFFER, TEXTURE0 = 0x0DE1, 0x8C2A, 0x84C0
TEXTURE_MIN_FILTER, TEXTURE_MAG_FILTER, TEXTURE_WRAP_S, TEXTURE_WRAP_T = 0x2801, 0x2800, 0x2802, 0x2803
NEAREST, CLAMP_TO_EDGE = 0x2600, 0x812F
RGBA, RED, RGBA8, RGBA32F, R32F, RGBA16F, R8 = 0x1908, 0x1903, 0x8058, 0x8814, 0x822E, 0x881A, 0x8229
RGBA8UI = 0x8D7C
UNSIGNED_BYTE, FLOAT = 0x1401, 0x1406
ARRAY_BUFFER, COPY_READ_BUFFER, COPY_WRITE_BUFFER = 0x8892, 0x8F36, 0x8F37
PIXEL_PACK_BUFFER, PIXEL_UNPACK_BUFFER = 0x88EB, 0x88EC
UNIFORM_BUFFER, SHADER_STORAGE_BUFFER = 0x8A11, 0x90D2
STREAM_DRAW, STREAM_READ, STATIC_DRAW, DYNAMIC_DRAW, DYNAMIC_COPY = 0x88E0, 0x88E1, 0x88E4, 0x88E8, 0x88EA
MAP_READ_BIT, MAP_WRITE_BIT, WRITE_ONLY = 0x1, 0x2, 0x88B9
PACK_ALIGNMENT, UNPACK_ALIGNMENT, UNPACK_ROW_LENGTH = 0x0D05, 0x0CF5, 0x0CF2
RG, RG8, R16, UNSIGNED_SHORT, MAP_INVALIDATE_BUFFER_BIT = 0x8227, 0x822B, 0x822A, 0x1403, 0x8
READ_ONLY, READ_FRAMEBUFFER, DRAW_FRAMEBUFFER, FRAMEBUFFER = 0x88B8, 0x8CA8, 0x8CA9, 0x8D40
COMPUTE_SHADER, COMPILE_STATUS, LINK_STATUS, INFO_LOG_LENGTH = 0x91B9, 0x8B81, 0x8B82, 0x8B84
VERTEX_SHADER, FRAGMENT_SHADER, TRIANGLES = 0x8B31, 0x8B30, 0x0004
LINEAR, COLOR_BUFFER_BIT, SAMPLE_BUFFERS = 0x2601, 0x4000, 0x80A8
SYNC_GPU_COMMANDS_COMPLETE, SYNC_FLUSH_COMMANDS_BIT = 0x9117, 0x1
ALREADY_SIGNALED, TIMEOUT_EXPIRED, CONDITION_SATISFIED, WAIT_FAILED = 0x911A, 0x911B, 0x911C, 0x911D
TIMESTAMP, QUERY_RESULT, QUERY_RESULT_AVAILABLE, QUERY_COUNTER_BITS = 0x8E28, 0x8866, 0x8867, 0x8864
GPU_DISJOINT, IMPLEMENTATION_COLOR_READ_TYPE, IMPLEMENTATION_COLOR_READ_FORMAT = 0x8FBB, 0x8B9A, 0x8B9B
TEXTURE_FETCH_BARRIER_BIT, SHADER_IMAGE_ACCESS_BARRIER_BIT, SHADER_STORAGE_BARRIER_BIT = 0x8, 0x20, 0x2000
PIXEL_BUFFER_BARRIER_BIT, BUFFER_UPDATE_BARRIER_BIT, TEXTURE_UPDATE_BARRIER_BIT = 0x80, 0x200, 0x100
UNIFORM_BARRIER_BIT, FRAMEBUFFER_BARRIER_BIT, ALL_BARRIER_BITS = 0x4, 0x400, 0xFFFFFFFF
VENDOR, RENDERER, VERSION, EXTENSIONS, NUM_EXTENSIONS = 0x1F00, 0x1F01, 0x1F02, 0x1F03, 0x821D
MAJOR_VERSION, MINOR_VERSION = 0x821B, 0x821C
TEXTURE_WIDTH, TEXTURE_HEIGHT, TEXTURE_INTERNAL_FORMAT, BUFFER_SIZE = 0x1000, 0x1001, 0x1003, 0x8764
BUFFER, PROGRAM, TEXTURE = 0x82E0, 0x82E2, 0x1702  # for glObjectLabel, and FRAMEBUFFER
DEBUG_CALLBACK_FUNCTION = 0x8244
DRAW_FRAMEBUFFER_BINDING, PIXEL_UNPACK_BUFFER_BINDING, TEXTURE_BINDING_2D = 0x8CA6, 0x88EF, 0x8069
READ_FRAMEBUFFER_BINDING, VIEWPORT, COLOR_WRITEMASK, POLYGON_MODE = 0x8CAA, 0x0BA2, 0x0C23, 0x0B40
BLEND, CULL_FACE, DEPTH_TEST, STENCIL_TEST, SCISSOR_TEST = 0x0BE2, 0x0B44, 0x0B71, 0x0B90, 0x0C11
RASTERIZER_DISCARD, COLOR_LOGIC_OP, FRAMEBUFFER_SRGB = 0x8C89, 0x0BF2, 0x8DB9
FRONT_AND_BACK, FILL = 0x0408, 0x1B02
ONE, ONE_MINUS_SRC_ALPHA = 1, 0x0303
BLEND_SRC_RGB, BLEND_DST_RGB, BLEND_SRC_ALPHA, BLEND_DST_ALPHA = 0x80C9, 0x80C8, 0x80CB, 0x80CA
DEBUG_SOURCE_APPLICATION, DEBUG_OUTPUT, DEBUG_OUTPUT_SYNCHRONOUS, DONT_CARE = 0x824A, 0x92E0, 0x8242, 0x1100


NOT_IN_ES = frozenset(
    {
        "glGetBufferSubData",
        "glClearBufferSubData",
        "glBindTextures",
        "glBindBuffersRange",
        "glBindTextureUnit",
        "glPolygonMode",
    }
)
_DEBUGGING = (
    "glObjectLabel", "glGetObjectLabel", "glPushDebugGroup", "glPopDebugGroup", "glDebugMessageCallback",
    "glDebugMessageControl", "glGetPointerv",
)  # fmt: skip
_TIMING = ("glQueryCounter", "glGetQueryObjectui64v", "glGetQueryObjectiv", "glGetQueryiv")
_BUFFER_STORAGE = ("GL_ARB_buffer_storage", "GL_EXT_buffer_storage")
_WRONG_TEXTURE_BUFFERS = ("softpipe",)  # renderers that fetch wrong texels (Mesa 22.3)
_TEXTURE_BUFFERS, _TIMER = ("GL_EXT_texture_buffer", "GL_OES_texture_buffer"), "GL_EXT_disjoint_timer_query"


class BufferSpan(Protocol):
    """Part of a buffer object; classes with more fields match, too."""

    @property
    def buffer(self) -> int: ...
    @property
    def offset_bytes(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...


@dataclass(frozen=True)
class BufferRange:
    """Part of a buffer object and nothing else."""

    buffer: int
    offset_bytes: int
    size_bytes: int


class GL:
    """Entry points as attributes, loaded from their annotations; flags tell of those that not every context has.

    Drivers hand out addresses of functions that a context does not have, so version and extensions alone decide. What
    OpenGL ES lacks altogether raises AssertionError when called there.
    """

    addresses: dict[str, int]  # of the entry points, by name; 0 for one that the context does not have
    extensions: frozenset[str]  # of the context, by their names
    is_es: bool  # whether the context is one of OpenGL ES
    multi_bind: bool  # True where glBindTextures and glBindBuffersRange exist (OpenGL 4.4 or ARB_multi_bind)
    texture_units: bool  # True where glBindTextureUnit exists (OpenGL 4.5 or ARB_direct_state_access)
    buffer_storage: bool  # True where glBufferStorage exists (OpenGL 4.4, ARB_buffer_storage or EXT_buffer_storage)
    khr_debug: bool  # True where labels, scopes and messages exist (OpenGL 4.3, ES 3.2 or KHR_debug)
    texture_buffers: bool  # True where buffer textures exist (OpenGL, ES 3.2 or EXT_texture_buffer)
    texture_norm16: bool  # True where textures of 16 bits a sample exist (OpenGL or EXT_texture_norm16)
    float_linear: bool  # True where textures of float32 are filtered (OpenGL or OES_texture_float_linear)
    program_binaries: bool  # True where glGetProgramBinary exists (OpenGL 4.1, ARB_get_program_binary or ES)
    time_stamps: bool  # True where queries of time stamps exist (OpenGL 3.3 or EXT_disjoint_timer_query)

    glUseProgram: Callable[[Uint], None]
    glDispatchCompute: Callable[[Uint, Uint, Uint], None]
    glMemoryBarrier: Callable[[Uint], None]
    glFinish: Callable[[], None]
    glFlush: Callable[[], None]
    glFenceSync: Callable[[Uint, Uint], Sync]
    glClientWaitSync: Callable[[Sync, Uint, U64], Uint]
    glDeleteSync: Callable[[Sync], None]

    glGenBuffers: Callable[[Int, Pointer], None]
    glDeleteBuffers: Callable[[Int, Pointer], None]
    glBindBuffer: Callable[[Uint, Uint], None]
    glBindBufferBase: Callable[[Uint, Uint, Uint], None]
    glBindBufferRange: Callable[[Uint, Uint, Uint, Size, Size], None]
    glBindBuffersRange: Callable[[Uint, Uint, Int, Array, Array, Array], None]
    glBufferData: Callable[[Uint, Size, Pointer, Uint], None]
    glBufferStorage: Callable[[Uint, Size, Pointer, Uint], None]
    glBufferSubData: Callable[[Uint, Size, Size, Pointer], None]
    glGetBufferSubData: Callable[[Uint, Size, Size, Pointer], None]
    glGetBufferParameteri64v: Callable[[Uint, Uint, Pointer], None]
    glIsBuffer: Callable[[Uint], Byte]
    glCopyBufferSubData: Callable[[Uint, Uint, Size, Size, Size], None]
    glClearBufferSubData: Callable[[Uint, Uint, Size, Size, Uint, Uint, Pointer], None]
    glMapBufferRange: Callable[[Uint, Size, Size, Uint], Pointer]
    glUnmapBuffer: Callable[[Uint], Byte]

    glGenTextures: Callable[[Int, Pointer], None]
    glDeleteTextures: Callable[[Int, Pointer], None]
    glActiveTexture: Callable[[Uint], None]
    glBindTexture: Callable[[Uint, Uint], None]
    glBindTextures: Callable[[Uint, Int, Array], None]
    glBindTextureUnit: Callable[[Uint, Uint], None]
    glBindImageTexture: Callable[[Uint, Uint, Int, Byte, Int, Uint, Uint], None]
    glTexBuffer: Callable[[Uint, Uint, Uint], None]
    glTexBufferRange: Callable[[Uint, Uint, Uint, Size, Size], None]
    glTexParameteri: Callable[[Uint, Uint, Int], None]
    glTexImage2D: Callable[[Uint, Int, Int, Int, Int, Int, Uint, Uint, Pointer], None]
    glTexSubImage2D: Callable[[Uint, Int, Int, Int, Int, Int, Uint, Uint, Pointer], None]
    glIsTexture: Callable[[Uint], Byte]
    glGetTexLevelParameteriv: Callable[[Uint, Int, Uint, Pointer], None]
    glGenSamplers: Callable[[Int, Pointer], None]
    glDeleteSamplers: Callable[[Int, Pointer], None]
    glSamplerParameteri: Callable[[Uint, Uint, Int], None]
    glBindSampler: Callable[[Uint, Uint], None]
    glPixelStorei: Callable[[Uint, Int], None]
    glReadPixels: Callable[[Int, Int, Int, Int, Uint, Uint, Pointer], None]

    glCreateShader: Callable[[Uint], Uint]
    glShaderSource: Callable[[Uint, Int, Pointer, Pointer], None]
    glCompileShader: Callable[[Uint], None]
    glGetShaderiv: Callable[[Uint, Uint, Pointer], None]
    glGetShaderInfoLog: Callable[[Uint, Int, Pointer, Pointer], None]
    glDeleteShader: Callable[[Uint], None]
    glCreateProgram: Callable[[], Uint]
    glAttachShader: Callable[[Uint, Uint], None]
    glLinkProgram: Callable[[Uint], None]
    glGetProgramiv: Callable[[Uint, Uint, Pointer], None]
    glGetProgramInfoLog: Callable[[Uint, Int, Pointer, Pointer], None]
    glDeleteProgram: Callable[[Uint], None]
    glProgramParameteri: Callable[[Uint, Uint, Int], None]
    glGetProgramBinary: Callable[[Uint, Int, Pointer, Pointer, Pointer], None]
    glProgramBinary: Callable[[Uint, Uint, Pointer, Int], None]
    glGetUniformLocation: Callable[[Uint, Text], Int]
    glUniform1i: Callable[[Int, Int], None]
    glUniform2i: Callable[[Int, Int, Int], None]
    glUniform4i: Callable[[Int, Int, Int, Int, Int], None]
    glUniform1f: Callable[[Int, Float], None]
    glUniform2f: Callable[[Int, Float, Float], None]
    glUniform4f: Callable[[Int, Float, Float, Float, Float], None]
    glUniform1fv: Callable[[Int, Int, Array], None]
    glObjectLabel: Callable[[Uint, Uint, Int, Text], None]
    glGetObjectLabel: Callable[[Uint, Uint, Int, Pointer, Pointer], None]
    glPushDebugGroup: Callable[[Uint, Uint, Int, Text], None]
    glPopDebugGroup: Callable[[], None]
    glDebugMessageCallback: Callable[[Pointer, Pointer], None]
    glGetPointerv: Callable[[Uint, Pointer], None]
    glDebugMessageControl: Callable[[Uint, Uint, Uint, Int, Pointer, Byte], None]

    glBindFramebuffer: Callable[[Uint, Uint], None]
    glViewport: Callable[[Int, Int, Int, Int], None]
    glColorMask: Callable[[Byte, Byte, Byte, Byte], None]
    glPolygonMode: Callable[[Uint, Uint], None]
    glClearColor: Callable[[Float, Float, Float, Float], None]
    glClear: Callable[[Uint], None]
    glBlitFramebuffer: Callable[[Int, Int, Int, Int, Int, Int, Int, Int, Uint, Uint], None]
    glGenVertexArrays: Callable[[Int, Pointer], None]
    glDeleteVertexArrays: Callable[[Int, Pointer], None]
    glBindVertexArray: Callable[[Uint], None]
    glDrawArrays: Callable[[Uint, Int, Int], None]
    glEnable: Callable[[Uint], None]
    glDisable: Callable[[Uint], None]
    glBlendFuncSeparate: Callable[[Uint, Uint, Uint, Uint], None]

    glGenQueries: Callable[[Int, Pointer], None]
    glDeleteQueries: Callable[[Int, Pointer], None]
    glQueryCounter: Callable[[Uint, Uint], None]
    glGetQueryObjectui64v: Callable[[Uint, Uint, Pointer], None]
    glGetQueryObjectiv: Callable[[Uint, Uint, Pointer], None]
    glGetQueryiv: Callable[[Uint, Uint, Pointer], None]
    glIsQuery: Callable[[Uint], Byte]

    glGetError: Callable[[], Uint]
    glGetIntegerv: Callable[[Uint, Pointer], None]
    glGetInteger64v: Callable[[Uint, Pointer], None]
    glGetIntegeri_v: Callable[[Uint, Uint, Pointer], None]
    glGetString: Callable[[Uint], Text | None]
    glGetStringi: Callable[[Uint, Uint], Text | None]

    def __init__(self, load: Load) -> None:
        hints = _hints()
        for name in ("glGetString", "glGetIntegerv", "glGetStringi"):  # they tell what else there is
            setattr(self, name, entry_point(load(name), hints[name]))
        version, has = self.version, self._named_extensions()
        self.extensions = has
        self.is_es = self.string(VERSION).startswith("OpenGL ES")
        endings = es_endings(version, has) if self.is_es else {}
        lacks = NOT_IN_ES if self.is_es else frozenset()
        self.addresses = {name: 0 if name in lacks else load(name + endings.get(name, "")) for name in hints}
        for name, hint in hints.items():
            refuse = partial(_refuse, name)
            setattr(self, name, refuse if name in lacks else entry_point(self.addresses[name], hint))
        self.multi_bind = not self.is_es and (version >= (4, 4) or "GL_ARB_multi_bind" in has)
        self.texture_units = not self.is_es and (version >= (4, 5) or "GL_ARB_direct_state_access" in has)
        self.buffer_storage = (version >= (4, 4) and not self.is_es) or bool(has & set(_BUFFER_STORAGE))
        self.khr_debug = version >= ((3, 2) if self.is_es else (4, 3)) or "GL_KHR_debug" in has
        has_texture_buffers = not self.is_es or version >= (3, 2) or bool(has & set(_TEXTURE_BUFFERS))
        self.texture_buffers = has_texture_buffers and self.string(RENDERER) not in _WRONG_TEXTURE_BUFFERS
        self.texture_norm16 = not self.is_es or "GL_EXT_texture_norm16" in has
        self.float_linear = not self.is_es or "GL_OES_texture_float_linear" in has
        self.program_binaries = self.is_es or version >= (4, 1) or "GL_ARB_get_program_binary" in has
        self.time_stamps = _TIMER in has if self.is_es else version >= (3, 3)

    @property
    def version(self) -> tuple[int, int]:
        """(major, minor) of the current context."""
        return self.integer(MAJOR_VERSION), self.integer(MINOR_VERSION)

    def _named_extensions(self) -> frozenset[str]:
        found = (self.glGetStringi(EXTENSIONS, i) for i in range(self.integer(NUM_EXTENSIONS)))
        return frozenset(name.decode() for name in found if name)

    def integer(self, name: int, index: int | None = None) -> int:
        """The 32-bit value of a glGet name, or of one of its indices."""
        value = ctypes.c_int()
        if index is None:
            self.glGetIntegerv(name, ctypes.byref(value))
        else:
            self.glGetIntegeri_v(name, index, ctypes.byref(value))
        return value.value

    def integers(self, name: int, count: int) -> tuple[int, ...]:
        """The 32-bit values of a glGet name that has so many."""
        values = (ctypes.c_int * count)()
        self.glGetIntegerv(name, values)
        return tuple(values)

    def integer64(self, name: int) -> int:
        """The 64-bit value of a glGet name."""
        value = ctypes.c_int64()
        self.glGetInteger64v(name, ctypes.byref(value))
        return value.value

    def string(self, name: int) -> str:
        """The text of a glGetString name."""
        return (self.glGetString(name) or b"").decode(errors="replace")

    def read_buffer(self, target: int, offset_bytes: int, size_bytes: int, address: int) -> None:
        """Copy part of the buffer that is bound to a target to memory. Raises DeviceError where it cannot be mapped."""
        if not self.is_es:
            self.glGetBufferSubData(target, offset_bytes, size_bytes, address)
            return
        way = self.generate("Buffers")  # what gl_buffers.py makes cannot be mapped itself
        self.glBindBuffer(COPY_WRITE_BUFFER, way)
        self.glBufferData(COPY_WRITE_BUFFER, size_bytes, None, STREAM_READ)
        self.glCopyBufferSubData(target, COPY_WRITE_BUFFER, offset_bytes, 0, size_bytes)
        mapped = self.glMapBufferRange(COPY_WRITE_BUFFER, 0, size_bytes, MAP_READ_BIT)
        if mapped:
            ctypes.memmove(address, mapped, size_bytes)
            self.glUnmapBuffer(COPY_WRITE_BUFFER)
        self.delete("Buffers", way)
        if not mapped:
            raise DeviceError(f"{self.string(RENDERER)} does not hand out {size_bytes} bytes; try a smaller size")

    def bind_texture(self, unit: int, target: int, texture: int) -> None:
        """Bind a texture to a unit; it must have been bound to its target before.

        The active unit afterwards is undefined: code that changes a texture binds it itself.
        """
        if self.texture_units:
            self.glBindTextureUnit(unit, texture)
        else:
            self.glActiveTexture(TEXTURE0 + unit)
            self.glBindTexture(target, texture)

    def generate(self, kind: str) -> int:
        """A new object's name; kind is the end of its glGen function: Buffers, Textures, VertexArrays, Queries."""
        name = ctypes.c_uint()
        getattr(self, "glGen" + kind)(1, ctypes.byref(name))
        return name.value

    def delete(self, kind: str, name: int) -> None:
        """Delete one object; kind as in generate."""
        getattr(self, "glDelete" + kind)(1, ctypes.byref(ctypes.c_uint(name)))


@cache
def _hints() -> Mapping[str, Any]:
    """The annotations of the entry points, by name."""
    return {n: hint for n, hint in get_type_hints(GL, include_extras=True).items() if n.startswith("gl")}


def c_types(name: str) -> tuple[tuple[Any, ...], Any]:
    """The ctypes types of an entry point's arguments, and of its result: None for one that has none."""
    arguments, result = get_args(_hints()[name])
    return tuple(_ctype(argument) for argument in arguments), _ctype(result)


def text_of(load: Load, name: int) -> str:
    """The text of a glGetString name, for who needs no other entry point."""
    get = entry_point(load("glGetString"), Callable[[Uint], Text | None])
    return (get(name) or b"").decode(errors="replace")


def es_endings(version: tuple[int, int], extensions: Set[str]) -> dict[str, str]:
    """What the names of entry points end with in OpenGL ES, where they belong to an extension of that version."""
    debugging = {} if version >= (3, 2) else dict.fromkeys(_DEBUGGING, "KHR")
    texels = "" if version >= (3, 2) else "EXT" if _TEXTURE_BUFFERS[0] in extensions else "OES"
    always = dict.fromkeys((*_TIMING, "glBufferStorage"), "EXT")
    return {**debugging, **dict.fromkeys(("glTexBuffer", "glTexBufferRange"), texels), **always}


def _refuse(name: str, *_: object) -> None:
    raise AssertionError(f"OpenGL ES has no {name}")


def entry_point(address: int, hint: Any) -> Callable[..., Any]:
    """The C function at an address; hint is Callable with the annotations of this module.

    Types that ctypes passes correctly by default are not declared: each declared argument costs 0.1 µs per call.
    """
    arguments, result = get_args(hint)
    declared = [_ctype(argument) for argument in arguments]
    if all(each in _AS_THEY_ARE for each in declared):
        declared = []
    return ctypes.CFUNCTYPE(_ctype(result), *declared)(address)


def _ctype(hint: Any) -> Any:
    """The ctypes type that an annotation carries; None for no value."""
    if hint is None or hint is type(None):
        return None
    if hasattr(hint, "__metadata__"):
        return hint.__metadata__[0]
    return next(_ctype(part) for part in get_args(hint) if part is not type(None))
