"""Opens an OpenGL context, checks it, and counts what is read back through it.

A context belongs to the thread that opened it: everything that touches OpenGL happens there.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

import moderngl

from ...base import debug
from ...base.errors import ContextLostError, DeviceError
from ...device.families import Family, family_of
from ...device.limits import check_limits
from ..glsl.shader import explain_log, for_es
from . import opengl
from .call_list import ListedCall
from .calls import Calls
from .counting import CountingLoader, ReadbackCounter
from .device_failures import outdated, version_text
from .egl import LEAST_ES, Api, EglContext
from .library import CurrentContext
from .messages import Messages, errors_of
from .native_context import NativeContext, OpenedNative, TriedDevice, open_native
from .opengl import GL, Load
from .program_cache import ProgramCache
from .read_limits import read_limits
from .resets import ResetWatch

REQUIRED = (4, 3)  # for compute shaders
DRAWING = (3, 3)  # for drawing pictures with a mask computed elsewhere
MOST_LABEL_BYTES = 255  # accepted by every driver; a longer label is an error
_ENDINGS = {opengl.COMPUTE_SHADER: "comp", opengl.VERTEX_SHADER: "vert", opengl.FRAGMENT_SHADER: "frag"}
_NOTHING = ctypes.CFUNCTYPE(None)
_MOST_ERRORS = 64
_ERROR_NAMES = {
    0x500: "GL_INVALID_ENUM",
    0x501: "GL_INVALID_VALUE",
    0x502: "GL_INVALID_OPERATION",
    0x505: "GL_OUT_OF_MEMORY",
    0x506: "GL_INVALID_FRAMEBUFFER_OPERATION",
    0x507: "GL_CONTEXT_LOST",
}


class _Loader:
    """The interface that moderngl expects of a context; its entry points count read-backs."""

    def __init__(self, native: NativeContext | None, counting: CountingLoader) -> None:
        self._native = native
        self._counting = counting
        self._nothing: Any = _NOTHING(lambda: None)  # must live as long as moderngl may call it
        self._absent = 0  # what is loaded where there is no entry point

    def load_opengl_function(self, name: str) -> int:
        return self._counting.load(name) or self._absent

    def tolerate(self) -> None:
        """From now on what does not exist is loaded as a function that does nothing: moderngl calls some unseen."""
        self._absent = ctypes.cast(self._nothing, ctypes.c_void_p).value or 0

    def __enter__(self) -> None:
        if self._native is not None:
            self._native.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._native is not None:
            self._native.__exit__(*exc)

    def release(self) -> None:
        """Does nothing: our Context releases the native one."""


class Context:
    """An open context: `gl` (ctypes entry points), `calls` (lists of calls), `mgl` (moderngl's), `limits`, `readback`.

    Use it as a context manager, or call release(); objects created in it are freed with it.
    """

    def __init__(
        self,
        opened: OpenedNative | None,
        load: Load,
        standalone: bool,
        needed: tuple[int, int] = REQUIRED,
        mgl: moderngl.Context | None = None,
    ) -> None:
        self.readback = ReadbackCounter()
        self.thread = threading.get_ident()
        self._native = native = opened.native if opened else None
        self._needed = needed
        self.device = opened.device if opened else None  # of EGL's, as all that were tried
        self.tried: tuple[TriedDevice, ...] = opened.tried if opened else ()
        counting = CountingLoader(load, self.readback)
        self._loader = _Loader(native, counting)
        self.gl = GL(counting.load)
        self.calls = Calls(self.gl)
        self.api: Api = "gles" if self.gl.is_es else "gl"
        self.vendor, self.renderer, self.version = map(self.gl.string, (opengl.VENDOR, opengl.RENDERER, opengl.VERSION))
        if self.gl.version < (LEAST_ES if self.gl.is_es else needed):
            raise DeviceError(f"{too_old(self.gl, self.renderer, needed)}; update the driver or use --backend cpu")
        self.can_compute = self.gl.version >= (LEAST_ES if self.gl.is_es else REQUIRED)
        self.limits = read_limits(self.gl)
        if self.can_compute:
            check_limits(self.limits, self.renderer, self.gl.is_es)
        else:
            # Limits of compute shaders are unknown here and read as 0. A lost context reports errors without end.
            any(self.gl.glGetError() == 0 for _ in range(_MOST_ERRORS))
        if self.gl.is_es:
            self._loader.tolerate()
        loader: Any = self._loader  # moderngl declares a dict here, and takes any object with these methods
        self._owns_mgl = mgl is None
        code = _code(LEAST_ES if self.gl.is_es else needed)
        self.mgl = mgl or moderngl.create_context(require=code, standalone=standalone, context=loader)
        self._messages = Messages(self.gl)
        self.resets = ResetWatch(self.gl, counting.load)
        self.debug_files = debug.Folder(Path(debug.FOLDER))
        self.programs = ProgramCache(self.gl, (self.vendor, self.renderer, self.version))

    @classmethod
    def from_current(cls, load: Load, needed: tuple[int, int] = REQUIRED) -> "Context":
        """The context that is current in this thread (a window's), by the function loader of its creator.

        release() does not destroy that context. Raises DeviceError if it is older than OpenGL `needed`.
        """
        return cls(None, load, standalone=False, needed=needed)

    @classmethod
    def from_moderngl(cls, mgl: moderngl.Context) -> "Context":
        """A context that somebody made with moderngl, and that is current in this thread; release leaves it alone.

        What moderngl itself reads back is not counted here. Raises DeviceError if none is current, or below OpenGL 4.3.
        """
        return cls(None, CurrentContext().load, standalone=False, mgl=mgl)

    @property
    def family(self) -> Family:
        """The GPUs that this one is tuned like."""
        return family_of(self.vendor, self.renderer)

    @property
    def gl_version(self) -> str:
        """The API with its version, and the driver's: OpenGL 4.6 (Core Profile) Mesa 25.0, OpenGL ES 3.1 Mesa 25.0."""
        return self.version if self.gl.is_es else f"OpenGL {self.version}"

    @property
    def is_software(self) -> bool:
        """Whether a software renderer does the work on the CPU."""
        return self.family.name == "software"

    def check_thread(self) -> None:
        """Assert that the caller is on the thread that owns the context."""
        assert threading.get_ident() == self.thread, "OpenGL is used outside the thread that opened the context"

    def check_errors(self, where: str, code: int | None = None) -> None:
        """Raise DeviceError if an OpenGL error is pending; `where` says what was being done.

        `code` is what glGetError has given, if it was called already.
        Of a GPU that was reset it is ContextLostError, as soon as OpenGL has errors of that, or a second later.
        Other messages of the driver become OpenGLWarnings, each text once.
        """
        code = self.gl.glGetError() if code is None else code
        if not code and not self._messages.waiting:  # the usual case, for each stage of each frame
            self.resets.check()
            return
        self.resets.check_status()
        names: list[str] = []
        while code and len(names) < 8:
            names.append(_ERROR_NAMES.get(code, hex(code)))
            code = self.gl.glGetError()
        taken = self._messages.take()
        errors = errors_of(taken)
        if "GL_CONTEXT_LOST" in names:
            raise ContextLostError(f"the GPU was reset while {where} ({self.renderer})")
        if names or errors:
            advice = "; try a smaller size" if "GL_OUT_OF_MEMORY" in names else ""
            what = errors[0] if errors else ", ".join(names)
            raise DeviceError(f"OpenGL failed while {where}: {what} ({self.renderer}){advice}")
        self._messages.warn(where, taken)

    @property
    def has_messages(self) -> bool:
        """Whether the driver has reported something by itself: free, while glGetError may wait."""
        return bool(self._messages.waiting)

    def check_messages(self, where: str) -> None:
        """As check_errors, but only if the driver has reported something by itself."""
        if self.has_messages:
            self.check_errors(where)

    def loaded_program(self, sources: Mapping[int, str]) -> int:
        """A program that was linked of these sources in an earlier run; 0 for none, or where the driver refuses it."""
        waiting = tuple(self._messages.waiting)
        program = self.programs.load(sources)
        if program == 0:  # it is compiled: nobody need hear of the refusal
            any(self.gl.glGetError() == 0 for _ in range(_MOST_ERRORS))
            self._messages.waiting.clear()
            self._messages.waiting.extend(waiting)
        return program or 0

    def scope(self, name: str) -> contextlib.AbstractContextManager[None]:
        """A debug group: commands issued inside it are shown together under this name in OpenGL debuggers."""
        return _Scope(self.gl, label_text(name)) if self.gl.khr_debug else contextlib.nullcontext()

    def scope_calls(self, name: str) -> tuple[list[ListedCall], list[ListedCall]]:
        """The calls that begin and end such a group, for lists; none where there are no groups."""
        text = label_text(name)
        begin = "glPushDebugGroup", (opengl.DEBUG_SOURCE_APPLICATION, 0, len(text), text)
        return ([begin], [("glPopDebugGroup", ())]) if self.gl.khr_debug else ([], [])

    def label(self, kind: int, name: int, text: str) -> None:
        """Name an object, bound before, for debuggers; kind is opengl.BUFFER, TEXTURE, PROGRAM or FRAMEBUFFER."""
        if self.gl.khr_debug:
            self.gl.glObjectLabel(kind, name, -1, label_text(text))

    def make_current(self) -> None:
        """Make it the thread's current context again; a window's context is made current by the window."""
        if self._native is not None:
            self._native.__enter__()

    def sibling(self) -> "Context | None":
        """Another context with the same objects, current in the thread that asks; None where there are no such.

        This one may be in use on its own thread meanwhile. Raises DeviceError.
        """
        native = self._native
        if not isinstance(native, EglContext):
            return None
        return _opened(OpenedNative(native.sibling(), self.device, self.tried), self._needed)

    def release(self) -> None:
        """Free the context and everything in it; a second call does nothing."""
        native, self._native = self._native, None
        self.programs.write()
        self.calls.wait()
        self._messages.detach()
        if self._owns_mgl:
            self.mgl.release()
        if native is not None:
            native.release()
        self._messages.warn("shutting down", self._messages.take())

    def __enter__(self) -> "Context":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # the user gets one line, on this exception
            self._messages.waiting.clear()
        self.release()


def open_context(needed: tuple[int, int] = REQUIRED, api: Api | None = None, device: str | None = None) -> Context:
    """Open a context of its own without any window; it is current in this thread from now on.

    Through EGL, where `device`, by default TEXELFLOW_GPU of the environment, chooses by a number or a part of a name;
    else the first that works is taken, hardware ahead of software. `api` is by default TEXELFLOW_GL_API of the
    environment, else OpenGL, or OpenGL ES 3.1 on devices that lack the version needed. Through WGL on Windows, CGL on
    macOS. Raises DeviceError: no EGL, no device, OpenGL below `needed`, which is REQUIRED or, for a compositor alone,
    DRAWING; a process that was forked from one with OpenGL.
    """
    if _first_process() != os.getpid():
        raise DeviceError(
            "OpenGL was in use before this process was forked, and would hang here: "
            "start processes anew (multiprocessing's spawn), or fork before OpenGL is used"
        )
    context = _opened(open_native(needed, api, device), needed)
    for tried in context.tried:
        if tried.failure:
            debug.tell(debug.RUN, f"debug: EGL's {tried.name} does not work: {tried.failure.why}")
    debug.tell(debug.RUN, f"debug: {context.gl_version} on {context.renderer}, {context.vendor}")
    return context


def _opened(native: OpenedNative, needed: tuple[int, int]) -> Context:
    """The context of one that is current in this thread. Raises DeviceError, having released that."""
    try:
        return Context(native, native.native.load_opengl_function, standalone=True, needed=needed)
    except BaseException:
        native.native.release()
        raise


@cache
def _first_process() -> int:
    """The process that asked first: what a driver has there, threads above all, is not in processes forked from it."""
    return os.getpid()


def compile_compute(context: Context, source: str, label: str) -> int:
    """Compile and link one compute shader; returns the program's name, labeled for debuggers.

    Raises DeviceError with the driver's first errors by file and line.
    """
    return compile_program(context, {opengl.COMPUTE_SHADER: source}, label)


def compile_program(context: Context, sources: Mapping[int, str], label: str) -> int:
    """A program of sources by shader stage (OpenGL's constant), linked now or in an earlier run.

    Raises as compile_compute.
    """
    gl, start = context.gl, perf_counter()
    if debug.level() >= debug.GLSL:
        for stage, source in sources.items():
            context.debug_files.write(label, _ENDINGS[stage], source.encode())
    if gl.is_es:
        sources = {stage: for_es(text, gl.version, gl.extensions) for stage, text in sources.items()}
    program = context.loaded_program(sources)
    how = "loaded" if program else "compiled"
    if not program:
        program = _linked(context, sources, label)
        context.programs.keep(sources, program)
    context.label(opengl.PROGRAM, program, label)
    debug.tell(debug.RUN, f"debug: {label} {how} in {(perf_counter() - start) * 1e3:.1f} ms")
    return program


def _linked(context: Context, sources: Mapping[int, str], label: str) -> int:
    """A program that the driver has compiled of sources. Raises DeviceError with what it says of them."""
    gl = context.gl
    program, shaders = gl.glCreateProgram(), list[int]()
    try:
        for stage, source in sources.items():
            shaders.append(gl.glCreateShader(stage))
            encoded = ctypes.c_char_p(source.encode())
            gl.glShaderSource(shaders[-1], 1, ctypes.byref(encoded), None)
            gl.glCompileShader(shaders[-1])
            _check_log(gl.glGetShaderiv, gl.glGetShaderInfoLog, shaders[-1], opengl.COMPILE_STATUS, source, label)
            gl.glAttachShader(program, shaders[-1])
        context.programs.prepare(program)
        gl.glLinkProgram(program)
        _check_log(gl.glGetProgramiv, gl.glGetProgramInfoLog, program, opengl.LINK_STATUS, "", label)
    except DeviceError:
        gl.glDeleteProgram(program)
        raise
    finally:
        for shader in shaders:
            gl.glDeleteShader(shader)
    return program


def _check_log(get: Any, get_log: Any, name: int, status: int, source: str, label: str) -> None:
    value = ctypes.c_int()
    get(name, status, ctypes.byref(value))
    if value.value:
        return
    get(name, opengl.INFO_LOG_LENGTH, ctypes.byref(value))
    log = ctypes.create_string_buffer(max(value.value, 1))
    get_log(name, len(log), None, log)
    raise DeviceError(f"shader {label} does not compile: {explain_log(log.value.decode(errors='replace'), source)}")


class _Scope:
    """A named group of commands. A class, since a generator takes three times as long, for each stage of each frame."""

    def __init__(self, gl: GL, text: bytes) -> None:
        self._gl, self._text = gl, text

    def __enter__(self) -> None:
        self._gl.glPushDebugGroup(opengl.DEBUG_SOURCE_APPLICATION, 0, len(self._text), self._text)

    def __exit__(self, *_: object) -> None:
        self._gl.glPopDebugGroup()


@lru_cache(maxsize=256)
def label_text(name: str) -> bytes:
    """A name as OpenGL accepts it: valid UTF-8 without zero bytes, cut at MOST_LABEL_BYTES between two characters."""
    text = name.replace("\0", " ").encode(errors="replace")[:MOST_LABEL_BYTES]
    return text.decode(errors="ignore").encode()


def _code(version: tuple[int, int]) -> int:
    """A version as moderngl writes it: 430 for 4.3."""
    return 100 * version[0] + 10 * version[1]


def too_old(gl: GL, renderer: str, needed: tuple[int, int] = REQUIRED) -> str:
    """What is wrong with a context below the version of OpenGL that is needed, or below OpenGL ES 3.1."""
    api: Api = "gles" if gl.is_es else "gl"
    return outdated([version_text(api, gl.version)], renderer, [version_text(api, LEAST_ES if gl.is_es else needed)])
