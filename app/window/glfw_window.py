"""Opens a window on the screen, with an OpenGL context, and reads the keys pressed in it."""

import contextlib
import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.call_list import SWAP, CallList
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import DRAWING, REQUIRED, Context
from texelflow.gpu_delegate.targets.gl.device_failures import version_text
from texelflow.gpu_delegate.targets.gl.egl import LEAST_ES, Api
from texelflow.gpu_delegate.targets.gl.library import load_library

from ..console import one_line
from ..glfw_library import load_glfw
from ..overlay.input_events import Input
from ..picture.picture import ImageSize
from .drops import Drops
from .keys import Key
from .listener import Listener

_NAME = "texelflow"
_LONGEST_TITLE = 200
_SWAPS_AFTER_DAMAGE = 2  # software OpenGL learns a window's new size from a swap, too late for the picture swapped
_SMALLEST = (64, 48)  # smaller windows cannot be handled in some window managers


def fitted(size: ImageSize, room: ImageSize) -> ImageSize:
    """A size made smaller, if need be, to fit into some room (both (width, height)); its shape is kept."""
    scale = min([1.0, *(space / side for side, space in zip(size, room, strict=True) if space > 0)])
    width, height = (max(1, round(side * scale)) for side in size)
    return width, height


class Window:
    """One window, the only one at a time, with the current context of this thread. Close it, or leave its with-block.

    `context` is gone once it is closed. The framebuffer's rows go bottom up, as OpenGL's windows' do. If it is
    `multisampled`, as drivers can be set to make it, OpenGL copies nothing into it in another size.
    """

    framebuffer = 0

    def __init__(self, size: ImageSize, title: str, version: tuple[int, int] = REQUIRED, api: Api = "gl") -> None:
        """Opens it, as large as `size` if the screen is. Raises DeviceError: no display, no glfw, OpenGL too old.

        `version` is that of OpenGL; of OpenGL ES it is LEAST_ES.
        """
        self._glfw = _library()
        self._keys: list[Key] = []
        self._pressed: tuple[str, bool, bool] = ("", False, False)  # place, shift, repeated of the last key
        self._place: tuple[int, int, int, int] | None = None  # where it was before it filled the screen
        self._swaps_due = _SWAPS_AFTER_DAMAGE
        self._iconified = self._points = False
        self._closing = threading.Lock()
        self._title, self._version, self._api = _fitting(title), version, api
        self._open(size)

    def _open(self, size: ImageSize) -> None:
        glfw = self._glfw
        self._handle = _create(glfw, size, self._title, self._version, self._api)
        try:
            glfw.make_context_current(self._handle)
            self._pace()
            self.size: ImageSize = glfw.get_framebuffer_size(self._handle)  # in pixels, as far as events were handled
            self.context = Context.from_current(_loader(glfw), self._version)
            self.calls = CallCache(self.context.calls)
            self._swap = self._swap_calls()
            self.multisampled = self.context.gl.integer(opengl.SAMPLE_BUFFERS) > 0
            self._listener = Listener(glfw, self._handle)
            self._drops = Drops(glfw, self._handle)
            self._listen()
        except BaseException:
            glfw.terminate()
            raise

    def _swap_calls(self) -> CallList:
        """The call that shows what was drawn."""
        glfw, handle, calls = self._glfw, self._handle, self.context.calls
        address = ctypes.cast(glfw._glfw.glfwSwapBuffers, ctypes.c_void_p).value or 0
        calls.adopt(SWAP, lambda _: glfw.swap_buffers(handle), address)
        return calls.listed([(SWAP, (ctypes.cast(handle, ctypes.c_void_p).value,))])

    def reopen(self) -> None:
        """Another window in its place, with another context, since that of this one is lost. Raises DeviceError."""
        glfw, listening, fills_screen = self._glfw, self.listening, self.fullscreen
        if self._handle is not None:
            here = (*glfw.get_window_pos(self._handle), *glfw.get_window_size(self._handle))
            self._reopens_at = self._place or here
            with self._closing:
                handle, self._handle = self._handle, None
            self.context.release()
            glfw.destroy_window(handle)
        self._glfw = glfw = _library()
        self._open(self._reopens_at[2:])
        glfw.set_window_pos(self._handle, *self._reopens_at[:2])
        self._place, self._iconified = None, False
        self._on_damage()
        self.listening = listening
        self._show_mouse()
        if fills_screen:
            self.toggle_fullscreen()

    @property
    def scale(self) -> float:
        """How many times larger than usual text has to be drawn here."""
        return max(0.5, float(self._glfw.get_window_content_scale(self._handle)[0]))

    @property
    def closed(self) -> bool:
        """Whether the person has closed it."""
        return bool(self._glfw.window_should_close(self._handle))

    @property
    def minimized(self) -> bool:
        """Whether there is nothing to draw on."""
        return self._iconified or 0 in self.size

    @property
    def damaged(self) -> bool:
        """Whether it has to be drawn again: what it shows is lost, or has another size."""
        return self._swaps_due > 0

    @property
    def fullscreen(self) -> bool:
        """Whether it fills the screen."""
        return self._place is not None

    def events(self, timeout_s: float = 0) -> list[Key]:
        """The keys pressed since the last call, after waiting for the first event for at most timeout_s."""
        if timeout_s > 0:
            self._glfw.wait_events_timeout(timeout_s)
        else:
            self._glfw.poll_events()
        keys, self._keys = self._keys, []
        return keys

    @property
    def listening(self) -> bool:
        """Whether inputs are gathered."""
        return self._listener.on

    @listening.setter
    def listening(self, listening: bool) -> None:
        self._listener.on = listening

    @property
    def points(self) -> bool:
        """Whether the mouse is shown in full screen, too, since there is something to be clicked."""
        return self._points

    @points.setter
    def points(self, points: bool) -> None:
        if points != self._points:
            self._points = points
            self._show_mouse()

    def inputs(self) -> list[Input]:
        """What was done with mouse and keys since the last call, if it listens."""
        return self._listener.take()

    def dropped(self) -> list[Path]:
        """The files that were dropped onto it since the last call, those of the last drop alone."""
        return self._drops.take()

    def rename(self, title: str) -> None:
        """Give it another title."""
        self._title = _fitting(title)
        self._glfw.set_window_title(self._handle, self._title)

    def wake(self) -> None:
        """End the wait for events, or the next one; from any thread, also after the window was closed."""
        with self._closing:
            if self._handle is not None:
                self._glfw.post_empty_event()

    def swap(self) -> None:
        """Show what was drawn; waits for the screen where there is a screen to wait for."""
        self.context.calls.run(self._swap)
        self._swaps_due = max(0, self._swaps_due - 1)

    def toggle_fullscreen(self) -> None:
        """Fill the screen that most of the window is on; or go back to where it was before."""
        glfw = self._glfw
        if self._place is not None:
            x, y, width, height = self._place
            self._place = None
            glfw.set_window_monitor(self._handle, None, x, y, width, height, 0)
        else:
            place = (*glfw.get_window_pos(self._handle), *glfw.get_window_size(self._handle))
            monitor = _monitor_at(glfw, place)
            if monitor is None:
                return
            self._place = place
            mode = glfw.get_video_mode(monitor)
            glfw.set_window_monitor(self._handle, monitor, 0, 0, *mode.size, mode.refresh_rate)
        self._show_mouse()
        self._pace()
        self._on_damage()

    def close(self) -> None:
        """Close it and free its context; harmless when repeated, and where it could not be opened again."""
        with self._closing:  # glfw must not end while another thread wakes it
            handle, self._handle = self._handle, None
        if handle is not None:
            self.context.release()
            self._glfw.terminate()

    def _show_mouse(self) -> None:
        """Where it is in the way, and good for nothing, it is hidden."""
        glfw, hidden = self._glfw, self.fullscreen and not self.points
        glfw.set_input_mode(self._handle, glfw.CURSOR, glfw.CURSOR_HIDDEN if hidden else glfw.CURSOR_NORMAL)

    def _pace(self) -> None:
        """Swaps wait for the screen; not under Wayland, where they would wait without end for one that is hidden."""
        glfw = self._glfw
        wayland = hasattr(glfw, "get_platform") and glfw.get_platform() == glfw.PLATFORM_WAYLAND
        glfw.swap_interval(0 if wayland else 1)

    def _listen(self) -> None:
        glfw, handle = self._glfw, self._handle
        glfw.set_key_callback(handle, self._on_key)
        glfw.set_char_callback(handle, self._on_text)
        glfw.set_window_refresh_callback(handle, self._on_damage)
        glfw.set_framebuffer_size_callback(handle, self._on_size)
        glfw.set_window_iconify_callback(handle, self._on_iconify)

    def _on_damage(self, *_: object) -> None:
        self._swaps_due = _SWAPS_AFTER_DAMAGE

    def _on_size(self, _: object, width: int, height: int) -> None:
        self.size = width, height
        self._on_damage()

    def _on_iconify(self, _: object, iconified: int) -> None:
        self._iconified = bool(iconified)
        self._on_damage()

    def _on_key(self, _: object, key: int, scancode: int, action: int, modifiers: int) -> None:
        """Called ahead of _on_text if the key types something; so those keys wait for that."""
        glfw = self._glfw
        self._listener.key(key, scancode, action, modifiers)
        if action == glfw.RELEASE:
            return
        place, shift, repeated = _place_of(glfw, key), bool(modifiers & glfw.MOD_SHIFT), action == glfw.REPEAT
        self._pressed = place, shift, repeated
        if len(place) != 1 and place and not modifiers & ~(glfw.MOD_SHIFT | _LOCKS):
            self._keys.append(Key("", place, shift, repeated))

    def _on_text(self, _: object, codepoint: int) -> None:
        self._listener.text(codepoint)
        if chr(codepoint) != " ":
            self._keys.append(Key(chr(codepoint), *self._pressed))

    def __enter__(self) -> "Window":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_LOCKS = 0x10 | 0x20  # Caps Lock and Num Lock, where they are reported


def _library() -> Any:
    """The module glfw, with its library initialized. Raises DeviceError."""
    advice = "windows need a display, everything else works without"
    try:
        glfw = load_glfw()
    except ImportError as error:
        raise DeviceError(f"no window: the library glfw cannot be loaded; pip install glfw ({advice})") from error
    _leave_egl()
    _hold_opengl()
    complaints = _complaints(glfw)
    try:
        if glfw.init():
            return glfw
    except OSError as error:  # it comes back to the current folder, which must be there for that
        raise DeviceError(
            f"no window: the current folder cannot be used ({error.strerror}); change to another"
        ) from None
    why = complaints[0] if complaints else "there is no display"
    raise DeviceError(f"no window: {one_line(why)}; {advice}")


def _complaints(glfw: Any) -> list[str]:
    """What glfw complains of from now on, instead of warnings."""
    heard: list[str] = []
    glfw.set_error_callback(lambda code, text: heard.append(text.decode(errors="replace")) if len(heard) < 9 else None)
    return heard


def _fitting(title: str) -> str:
    """A title as window managers take it."""
    return one_line(title)[:_LONGEST_TITLE] or _NAME


def _leave_egl() -> None:
    """A context without a window may still be current, and GLX ends the whole process where one of EGL's is."""
    with contextlib.suppress(OSError):
        load_library("libEGL.so.1").eglReleaseThread()


def _hold_opengl() -> None:
    """Without this glfw unloads OpenGL after each window, and imgui-bundle's own copy stands in the next one's way."""
    for name in ("libGLX.so.0", "libGL.so.1"):
        with contextlib.suppress(OSError):
            load_library(name)


def context_hints(glfw: Any, version: tuple[int, int], api: Api) -> dict[int, int]:
    """What glfw is told of a context of at least that version of OpenGL, or of OpenGL ES."""
    if api == "gles":  # GLX need not have it
        kind = {glfw.CLIENT_API: glfw.OPENGL_ES_API, glfw.CONTEXT_CREATION_API: glfw.EGL_CONTEXT_API}
        return {**kind, glfw.CONTEXT_VERSION_MAJOR: LEAST_ES[0], glfw.CONTEXT_VERSION_MINOR: LEAST_ES[1]}
    kind = {glfw.OPENGL_PROFILE: glfw.OPENGL_CORE_PROFILE, glfw.OPENGL_FORWARD_COMPAT: True}
    return {**kind, glfw.CONTEXT_VERSION_MAJOR: version[0], glfw.CONTEXT_VERSION_MINOR: version[1]}


def _create(glfw: Any, size: ImageSize, title: str, version: tuple[int, int], api: Api) -> Any:
    """A window with such a context; on failure glfw is terminated. Raises DeviceError."""
    complaints = _complaints(glfw)
    hints = {
        **context_hints(glfw, version, api),
        glfw.OPENGL_DEBUG_CONTEXT: debug.level() >= debug.RUN,  # debug contexts give more messages, and are slower
        glfw.DEPTH_BITS: 0,
        glfw.STENCIL_BITS: 0,
        glfw.AUTO_ICONIFY: False,  # full screen stays while the user works on another screen
    }
    for hint, value in hints.items():
        glfw.window_hint(hint, value)
    for name in ("X11_CLASS_NAME", "X11_INSTANCE_NAME", "WAYLAND_APP_ID"):
        if hasattr(glfw, name):
            glfw.window_hint_string(getattr(glfw, name), _NAME)
    monitor = glfw.get_primary_monitor()
    room = glfw.get_monitor_workarea(monitor)[2:] if monitor else size
    wanted = fitted(size, room)
    width, height = (max(pair) for pair in zip(wanted, _SMALLEST, strict=True))
    handle = None
    for robustness in (glfw.LOSE_CONTEXT_ON_RESET, glfw.NO_ROBUSTNESS):  # some drivers do not tell of resets
        glfw.window_hint(glfw.CONTEXT_ROBUSTNESS, robustness)
        handle = handle or glfw.create_window(width, height, title, None, None)
    if not handle:
        glfw.terminate()
        why = one_line(complaints[0]) if complaints else "the display has no OpenGL"
        needed = f"{version_text(api, LEAST_ES if api == 'gles' else version)} is needed"
        otherwise = "use --backend cpu" if version > DRAWING else "see texelflow doctor"
        raise DeviceError(f"no window: {why}; {needed}, update the GPU's driver or {otherwise}")
    return handle


def _loader(glfw: Any) -> Callable[[str], int]:
    return lambda name: int(glfw.get_proc_address(name) or 0)


def _place_of(glfw: Any, key: int) -> str:
    """A key's name on an American keyboard: one character where it types one; '' for keys of no interest."""
    names = {
        glfw.KEY_SPACE: "space",
        glfw.KEY_ESCAPE: "escape",
        glfw.KEY_BACKSPACE: "backspace",
        glfw.KEY_LEFT: "left",
        glfw.KEY_RIGHT: "right",
        glfw.KEY_UP: "up",
        glfw.KEY_DOWN: "down",
        glfw.KEY_HOME: "home",
        glfw.KEY_END: "end",
    }
    if key in names:
        return names[key]
    return chr(key).lower() if glfw.KEY_SPACE < key <= glfw.KEY_GRAVE_ACCENT else ""


def _monitor_at(glfw: Any, place: tuple[int, int, int, int]) -> Any:
    """The monitor that shows most of a window at (x, y, width, height)."""
    x, y, width, height = place

    def overlap(monitor: Any) -> int:
        left, top = glfw.get_monitor_pos(monitor)
        wide, high = glfw.get_video_mode(monitor).size
        across = min(x + width, left + wide) - max(x, left)
        down = min(y + height, top + high) - max(y, top)
        return int(max(0, across) * max(0, down))

    return max(glfw.get_monitors(), key=overlap, default=None)
