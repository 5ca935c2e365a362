"""Runs Dear ImGui on our own OpenGL backend, which draws into a framebuffer and leaves OpenGL's state as it was."""

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ..console import one_line
from ..glfw_library import library_named
from ..picture.preprocess import ImageSize
from ..signals import postponed
from .input_events import Button, Held, Input, Left, Moved, Typed, Wheel
from .overlay_placement import ScreenArea, largest_beside

FONT_PX = 13.0  # at scale 1
SMALLEST_FONT_PX = 9.0
_MARGIN = 0.6  # em, between what is drawn and the edges of the picture
_SHORTEST_S, _LONGEST_S = 1e-3, 0.1  # between two pictures, as Dear ImGui is told
_LEAST_ONE = ("_main_scale", "input_text_cursor_size")  # of a style: below 1 the cross and the text cursor vanish
_LINES = 36  # of text that fit into a frame at least, unless that would be too small to read
_GLSL, _GLSL_ES = "#version 330", "#version 300 es"
_FONT = ("assets", "fonts", "Inconsolata-Medium.ttf")
_ADVICE = "pip install imgui-bundle, and the system's libgl1 and libx11-6, or leave out --overlay and --window"


def font_px(size: ImageSize, scale: float) -> int:
    """How high text is, in pixels, in a picture of that size (width, height) on a screen with that content scale."""
    fitting = min(FONT_PX * scale, size[1] / _LINES, size[0] / (1.2 * _LINES))
    return round(max(SMALLEST_FONT_PX, fitting))


class Gui:
    """One Dear ImGui with its own OpenGL 3 backend: no window, no settings file. Call release() at the end.

    Belongs to the thread of the context; several may live side by side. Input is optional, by `feed`.
    takes_mouse: whether what was drawn last has anything to be clicked; has_mouse: whether the mouse was over such a
    thing then, or drags one; takes_keys: whether text is typed into it, or an open list waits for a choice.
    """

    def __init__(self, context: Context) -> None:
        """Raises DeviceError if imgui-bundle cannot be loaded or cannot draw here."""
        self._imgui = load_imgui()
        self.renew(context)
        self.takes_mouse = self.has_mouse = self.takes_keys = False
        self._gui: Any = None
        self._font_px = 0
        self._inputs: list[Input] = []
        self._drawn_s = perf_counter()

    def renew(self, context: Context) -> None:
        """Draw in this context from now on; what was in another one has been released."""
        self._gl, self._renderer = context.gl, context.renderer

    def feed(self, inputs: Sequence[Input]) -> None:
        """Input of the user, for the next drawing."""
        if inputs and isinstance(inputs[0], Moved) and self._inputs and isinstance(self._inputs[-1], Moved):
            self._inputs.pop()  # a mouse may move for long while nothing is drawn
        self._inputs += inputs

    def draw(
        self, framebuffer: int, size: ImageSize, scale: float = 1.0, parts: Sequence[Callable[[], None]] = ()
    ) -> None:
        """Draw the parts, later ones on top, over a framebuffer of that size in pixels; `scale` is the screen's.

        Draws nothing where there is no pixel. Raises DeviceError if Dear ImGui fails.
        """
        if min(size) < 1 or not parts:
            self.takes_mouse = self.has_mouse = self.takes_keys = False
            places = [done for done in self._inputs if isinstance(done, Moved)]
            self._inputs = [Left(), *places[-1:]] if self._inputs else []  # nobody was there to see what was done
            return
        self._prepare(font_px(size, scale))
        imgui = self._imgui
        io = imgui.get_io()
        io.display_size = imgui.ImVec2(*size)
        self._tell(io)
        with self._failures_told(), _restored(self._gl):
            self._gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, framebuffer)
            imgui.backends.opengl3_new_frame()
            imgui.new_frame()
            try:
                for part in parts:
                    part()
            except BaseException:
                self._end_failed_frame()
                raise
            imgui.render()
            imgui.backends.opengl3_render_draw_data(imgui.get_draw_data())
        self.takes_mouse, self.has_mouse = io.metrics_render_windows > 0, bool(io.want_capture_mouse)
        self.takes_keys = io.want_text_input or imgui.is_popup_open("", imgui.PopupFlags_.any_popup)

    def _end_failed_frame(self) -> None:
        """So that others can follow; where a part has left a window open, that takes a new Dear ImGui."""
        try:
            self._imgui.end_frame()
        except RuntimeError:
            self.release()

    def release(self) -> None:
        """Free everything; harmless when repeated."""
        if self._gui is not None:
            self._imgui.set_current_context(self._gui)
            if sys.version_info < (3, 11):
                with contextlib.suppress(RuntimeError):
                    self._part_from_next()
            with _restored(self._gl):
                self._imgui.backends.opengl3_shutdown()
            self._imgui.destroy_context(self._gui)
            self._gui = None

    def _part_from_next(self) -> None:
        """Begin and end a frame without drawing it.

        Python 3.10's Dear ImGui confuses what one context has in its first picture with the next context's.
        """
        self._imgui.new_frame()
        self._imgui.begin("the last picture")
        self._imgui.button("of this context")
        self._imgui.end()
        self._imgui.end_frame()

    def _prepare(self, px: int) -> None:
        """Make ours the current one; another size of text takes a new one, whose letters are drawn for that size."""
        if px != self._font_px:
            self.release()
            self._font_px = px
        imgui = self._imgui
        if self._gui is not None:
            imgui.set_current_context(self._gui)
            return
        with self._failures_told(), _restored(self._gl):
            self._gui = imgui.create_context()
            imgui.set_current_context(self._gui)
            io = imgui.get_io()
            io.set_ini_filename("")
            io.set_log_filename("")
            style = self._imgui.get_style()
            style.scale_all_sizes(px / FONT_PX)
            for name in _LEAST_ONE:
                if hasattr(style, name):  # older bindings lack some
                    setattr(style, name, max(1.0, getattr(style, name)))
            io.fonts.add_font_from_file_ttf(str(Path(imgui_folder()).joinpath(*_FONT)), px)
            if not imgui.backends.opengl3_init(_GLSL_ES if self._gl.is_es else _GLSL):
                raise RuntimeError("its backend does not start")

    def _tell(self, io: Any) -> None:
        """What has been done since the last picture, and how long ago that was."""
        last_s, self._drawn_s = self._drawn_s, perf_counter()
        io.delta_time = min(max(self._drawn_s - last_s, _SHORTEST_S), _LONGEST_S)
        inputs, self._inputs = self._inputs, []
        for done in inputs:
            match done:
                case Moved(x, y):
                    io.add_mouse_pos_event(x, y)
                case Button(number, down):
                    io.add_mouse_button_event(number, down)
                case Wheel(across, up):
                    io.add_mouse_wheel_event(across, up)
                case Held(name, down):
                    keys = self._imgui.Key  # the bindings for Python 3.10 have other names for Ctrl and Shift
                    io.add_key_event(getattr(keys, name, None) or getattr(keys, f"im_gui_{name}"), down)
                case Typed(text):
                    io.add_input_characters_utf8(text)
                case Left():  # at once: as an event it would also take back where the mouse is told to be after it
                    io.clear_events_queue()
                    io.clear_input_keys()
                    io.clear_input_mouse()

    @contextlib.contextmanager
    def _failures_told(self) -> Iterator[None]:
        """Dear ImGui's failed assertions arrive as RuntimeError."""
        try:
            yield
        except RuntimeError as error:
            what = one_line(str(error))
            raise DeviceError(f"the overlay cannot be drawn on {self._renderer}: {what}; {_ADVICE}") from error


@lru_cache(maxsize=1)  # each picture asks for it several times
def load_imgui() -> Any:
    """Dear ImGui's module. Large, and it loads libraries of the system: only who draws needs it. Raises DeviceError."""
    try:
        with library_named(), postponed(), warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # imgui-bundle cannot open a library of the system as a file
            from imgui_bundle import imgui
    except (ImportError, OSError) as error:
        raise DeviceError(f"no overlay: Dear ImGui cannot be loaded: {one_line(str(error))}; {_ADVICE}") from error
    return imgui


def free_area(taken_by: str = "", footer_em: float = 0.0, row_em: float = 0.0) -> ScreenArea:
    """What a window of Dear ImGui, drawn before in this picture, leaves of the picture: the largest part beside it.

    Without a footer and margins; or of the lowest row alone, if one is asked for.
    """
    imgui = load_imgui()
    em, size = imgui.get_font_size(), imgui.get_io().display_size
    whole, margin = ScreenArea(0, 0, size.x, size.y), 0.0 if row_em else _MARGIN * em
    if row_em:
        whole = ScreenArea(0, max(0.0, size.y - row_em * em), size.x, size.y)
    taken = None
    if taken_by:
        imgui.begin(taken_by)  # once more: it is the same window
        place, extent, appears = imgui.get_window_pos(), imgui.get_window_size(), imgui.is_window_appearing()
        imgui.end()
        if appears:  # how large it is shows in its second picture
            return ScreenArea(0, 0, 0, 0)
        taken = ScreenArea(place.x, place.y, place.x + extent.x, place.y + extent.y)
    return largest_beside(whole, taken).within(margin, footer_em * em)


def letter_px(em_px: float) -> float:
    """How wide a letter of that height is, within Gui.draw. Dear ImGui before 1.92 stretches those of its one size."""
    imgui = load_imgui()
    usual = imgui.get_font_size()
    if em_px == usual or sys.version_info < (3, 11):
        return float(imgui.calc_text_size("m").x * em_px / usual)
    imgui.push_font(None, em_px)
    wide = float(imgui.calc_text_size("m").x)
    imgui.pop_font()
    return wide


def imgui_folder() -> Path:
    """Where imgui-bundle is installed."""
    import imgui_bundle

    return Path(imgui_bundle.__file__).parent


@contextlib.contextmanager
def _restored(gl: opengl.GL) -> Iterator[None]:
    """Restores the state that Dear ImGui's backend changes, and sets the state that it expects."""
    framebuffer = gl.integer(opengl.DRAW_FRAMEBUFFER_BINDING)
    unpack_buffer = gl.integer(opengl.PIXEL_UNPACK_BUFFER_BINDING)
    stores = {name: gl.integer(name) for name in (opengl.UNPACK_ALIGNMENT, opengl.UNPACK_ROW_LENGTH)}
    gl.glBindBuffer(opengl.PIXEL_UNPACK_BUFFER, 0)
    try:
        yield
    finally:
        for name, value in stores.items():
            gl.glPixelStorei(name, value)
        gl.glBindBuffer(opengl.PIXEL_UNPACK_BUFFER, unpack_buffer)
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, framebuffer)
