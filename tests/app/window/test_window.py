"""Windows on a real screen (Xvfb, software OpenGL): what they show, their sizes, their keys, and how they end."""

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.display import SCREEN, Display
from tests.helpers.markers import exhaustive
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.glfw_library import variant_for
from texelflow.app.overlay.input_events import Button, Held, Input, Left, Moved, Typed, Wheel
from texelflow.app.window.blit import blit, letterbox
from texelflow.app.window.glfw_window import Window, fitted
from texelflow.app.window.keys import Key
from texelflow.app.window.window_opening import contexts_to_try
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import DRAWING, REQUIRED, Context, open_context
from texelflow.gpu_delegate.targets.gl.egl import Api

SIZE = (160, 120)
sides = st.integers(1, 5000)


def wait_for(window: Window, true: Callable[[], bool]) -> None:
    """Handle events until something is true."""
    end = monotonic() + PATIENCE_S
    while not true():
        assert monotonic() < end, "it did not happen"
        window.events(0.01)


def pressed(window: Window, count: int) -> list[Key]:
    """So many keys, waiting for them."""
    keys: list[Key] = []
    end = monotonic() + PATIENCE_S
    while len(keys) < count:
        assert monotonic() < end, f"{len(keys)} of {count} keys came"
        keys += window.events(0.01)
    return keys


def quarters(context: Context, size: tuple[int, int] = (40, 20)) -> OffscreenTarget:
    """Red, green, blue and white: top left, top right, bottom left, bottom right."""
    target = OffscreenTarget(context, size)
    gl, (width, height) = context.gl, size
    gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, target.framebuffer)
    corners = {(0, 1): (1, 0, 0), (1, 1): (0, 1, 0), (0, 0): (0, 0, 1), (1, 0): (1, 1, 1)}  # rows go bottom up
    texels = np.zeros((height, width, 4), np.uint8)
    for (x, y), color in corners.items():
        part = texels[y * height // 2 : (y + 1) * height // 2, x * width // 2 : (x + 1) * width // 2]
        part[...] = (*(255 * channel for channel in color), 255)
    gl.glBindTexture(opengl.TEXTURE_2D, target.texture)
    gl.glTexSubImage2D(opengl.TEXTURE_2D, 0, 0, 0, width, height, opengl.RGBA, opengl.UNSIGNED_BYTE, texels.ctypes.data)
    return target


def shown(window: Window, display: Display, target: OffscreenTarget) -> npt.NDArray[np.uint8]:
    """What a window shows of a picture: RGB (H, W, 3); it lies at the screen's top left corner."""
    while window.damaged:
        blit(target, letterbox(Fraction(*target.size), window.size), window)
        window.swap()
        window.events()
    window.context.gl.glFinish()
    window.context.check_errors("showing a picture")
    width, height = window.size
    display.xdotool("getdisplaygeometry")  # answered once the server has done what it was asked before
    return display.picture()[:height, :width]


class TestSizes:
    @given(st.tuples(sides, sides), st.tuples(sides, sides))
    def test_a_window_fits_the_room_and_keeps_its_shape(self, size: tuple[int, int], room: tuple[int, int]) -> None:
        width, height = fitted(size, room)
        assert 1 <= width <= max(1, min(size[0], room[0]))
        assert 1 <= height <= max(1, min(size[1], room[1]))
        assert width == max(1, round(height * size[0] / size[1])) or abs(height - width * size[1] / size[0]) <= 1
        assert (width, height) == size or width == room[0] or height == room[1]

    def test_a_screen_that_tells_no_size_limits_nothing(self) -> None:
        assert fitted((640, 480), (0, 0)) == (640, 480)

    @given(st.fractions(Fraction(1, 1000), 1000), st.tuples(sides, sides))
    def test_a_picture_touches_two_opposite_edges_and_lies_in_the_middle(
        self, aspect: Fraction, size: tuple[int, int]
    ) -> None:
        x, y, width, height = letterbox(aspect, size)
        assert width == size[0] or height == size[1]
        for start, length, whole in ((x, width, size[0]), (y, height, size[1])):
            assert 1 <= length <= whole
            assert 0 <= whole - length - 2 * start <= 1
        assert abs(width - height * aspect) <= max(Fraction(1), aspect) or abs(height - width / aspect) <= 1


class TestPicture:
    @pytest.mark.parametrize("api", ["gl", "gles"])
    def test_it_is_upright_with_bars_beside_it(self, display: Display, api: Api) -> None:
        with Window(SIZE, "upright", api=api) as window:
            assert window.context.api == api
            assert window.context.can_compute
            picture = shown(window, display, quarters(window.context, (40, 40)))
        assert picture.shape == (120, 160, 3)
        assert not picture[:, :20].any()
        assert not picture[:, 140:].any()
        colors = picture[[30, 30, 90, 90], [50, 110, 50, 110]].tolist()
        assert colors == [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]

    def test_it_follows_the_window_s_size(self, display: Display) -> None:
        with Window(SIZE, "follows") as window:
            number = display.window("follows")
            target = quarters(window.context)
            for size in ((300, 100), (65, 49), (120, 500)):
                display.xdotool("windowsize", number, *size)
                wait_for(window, lambda size=size: window.size == size)  # type: ignore[misc]
                picture = shown(window, display, target)
                x, y, width, height = letterbox(Fraction(2), size)
                lit = np.argwhere(picture.any(-1))
                assert lit.min(0).tolist() == [size[1] - y - height, x]
                assert (lit.max(0) + 1).tolist() == [size[1] - y, x + width]

    def test_its_edges_are_filtered_linearly(self, display: Display) -> None:
        with Window((400, 200), "filtered") as window:
            row = shown(window, display, quarters(window.context))[10].astype(int)
        greens = row[190:211, 1]
        assert 0 < greens[10] < 255
        assert (np.diff(greens) >= 0).all()

    def test_it_is_the_same_in_a_window_with_samples(self, display: Display) -> None:
        glfw: Any = import_module("glfw")
        pictures = []
        for samples in (0, 4):
            glfw.init()
            glfw.window_hint(glfw.SAMPLES, samples)
            with Window((80, 90), "samples") as window:
                if samples and not window.multisampled:
                    pytest.skip("this display has no windows with samples")
                assert window.multisampled == (samples > 0)
                pictures.append(shown(window, display, quarters(window.context)))
        assert np.array_equal(pictures[0], pictures[1])

    def test_full_screen_and_back_to_the_same_place(self, display: Display) -> None:
        with Window(SIZE, "filling") as window:
            display.xdotool("windowmove", "--sync", display.window("filling"), 130, 70)
            target = quarters(window.context)
            window.toggle_fullscreen()
            wait_for(window, lambda: window.size == SCREEN)
            assert window.fullscreen
            picture = shown(window, display, target)
            assert picture[[200, 400], 10].tolist() == [[255, 0, 0], [0, 0, 255]]
            assert not picture[:100].any()
            window.toggle_fullscreen()
            wait_for(window, lambda: window.size == SIZE)
            assert not window.fullscreen
            geometry = display.xdotool("getwindowgeometry", display.window("filling"))
            assert "130,70" in geometry


class TestKeys:
    def test_what_is_typed_and_where_the_key_is(self, display: Display) -> None:
        with Window(SIZE, "typing") as window:
            display.window("typing")
            display.press("q", "shift+Left", "bracketleft", "question", "space", "Escape", "7", "period")
            keys = pressed(window, 8)
        found = [(key.text, key.place, key.shift) for key in keys]
        assert found[0] == ("q", "q", False)
        assert found[1] == ("", "left", True)
        assert found[2][0] == "["
        assert found[3][0] == "?"
        assert found[4] == ("", "space", False)
        assert found[5] == ("", "escape", False)
        assert [text for text, _, _ in found[6:]] == ["7", "."]
        assert not any(key.repeated for key in keys)

    def test_control_and_a_letter_type_nothing(self, display: Display) -> None:
        with Window(SIZE, "control") as window:
            display.window("control")
            display.press("ctrl+q", "ctrl+Left", "x")
            keys = pressed(window, 1)
        assert [key.text for key in keys] == ["x"]


class TestInputs:
    def test_they_are_gathered_while_it_listens(self, display: Display) -> None:
        with Window(SIZE, "listening") as window:
            number = display.window("listening")
            display.xdotool("mousemove", "--window", number, 20, 30)
            display.press("x")
            pressed(window, 1)
            assert window.inputs() == []
            window.listening = True
            display.xdotool("mousemove", "--window", number, 50, 60, "click", 1, "click", 4, "key", "a", "Left", "F9")
            found: list[Input] = []

            def is_done() -> bool:
                found.extend(window.inputs())
                return Held("left_arrow", False) in found

            wait_for(window, is_done)
            assert found[0] == Moved(20, 30), "where it was before"
            places = [each for each in found if isinstance(each, Moved)]
            assert places[-1] == Moved(50, 60)
            clicks = [Button(0, True), Button(0, False), Wheel(0, 1)]
            keys = [Held("a", True), Typed("a"), Held("a", False), Held("left_arrow", True), Held("left_arrow", False)]
            assert [each for each in found if not isinstance(each, Moved)] == clicks + keys
            window.listening = False
            assert window.inputs() == [Left()]
            display.xdotool("click", 1, "key", "x")
            pressed(window, 1)
            assert window.inputs() == []

    def test_the_pointer_is_hidden_in_full_screen_unless_it_is_of_use(self, display: Display) -> None:
        glfw: Any = import_module("glfw")  # loads a shared library, which only windows need

        def is_hidden() -> bool:
            return bool(glfw.get_input_mode(glfw.get_current_context(), glfw.CURSOR) == glfw.CURSOR_HIDDEN)

        with Window(SIZE, "pointing") as window:
            assert not is_hidden()
            window.toggle_fullscreen()
            assert is_hidden()
            window.listening = True
            assert is_hidden(), "it may be noticed without being of use"
            window.points = True
            assert not is_hidden()
            window.points = False
            assert is_hidden()


class TestEnd:
    def test_its_close_button(self, display: Display) -> None:
        with Window(SIZE, "closing") as window:
            number = display.window("closing")
            assert not window.closed
            display.ask_to_close(number)
            wait_for(window, lambda: window.closed)

    @exhaustive
    def test_twenty_one_after_the_other(self, display: Display) -> None:
        handles = []
        for number in range(20):
            with Window(SIZE, f"number {number}") as window:
                shown(window, display, quarters(window.context))
            handles.append(len(list(Path("/proc/self/fd").iterdir())))
        assert handles[-1] <= handles[2]

    def test_one_where_a_context_without_a_window_is_current(self, display: Display) -> None:
        with open_context() as context:
            with Window(SIZE, "beside") as window:
                assert shown(window, display, quarters(window.context)).any()
            context.make_current()
            context.gl.glFinish()
            context.check_errors("working after a window")

    def test_while_other_threads_wake_it(self, display: Display) -> None:
        window, ended = Window(SIZE, "woken"), Event()

        def wake() -> None:
            while not ended.is_set():
                window.wake()

        thread = Thread(target=wake)
        thread.start()
        for _ in range(20):
            window.events(timeout_s=5.0)
        window.close()
        ended.set()
        thread.join()
        glfw: Any = import_module("glfw")
        glfw.get_error()
        window.wake()
        assert glfw.get_error()[0] == glfw.NO_ERROR

    @pytest.mark.parametrize(
        ("environment", "variant"),
        [
            ({}, "x11"),
            ({"DISPLAY": ":0"}, "x11"),
            ({"DISPLAY": ":0", "XDG_SESSION_TYPE": "wayland"}, "x11"),  # over ssh, or through sudo
            ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, "x11"),
            ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w", "XDG_SESSION_TYPE": "wayland"}, "wayland"),
            ({"WAYLAND_DISPLAY": "w"}, "wayland"),
        ],
    )
    def test_the_library_that_fits_the_displays(self, environment: dict[str, str], variant: str) -> None:
        assert variant_for(environment) == variant


@pytest.mark.parametrize(
    ("asked", "backend", "tries"),
    [
        ("", "auto", [(REQUIRED, "gl"), (REQUIRED, "gles"), (DRAWING, "gl")]),
        ("", "gl", [(REQUIRED, "gl"), (REQUIRED, "gles")]),
        ("", "cpu", [(DRAWING, "gl"), (DRAWING, "gles")]),
        ("gl", "auto", [(REQUIRED, "gl"), (DRAWING, "gl")]),
        ("gles", "auto", [(REQUIRED, "gles")]),
    ],
)
def test_opengl_es_comes_before_opengl_that_only_draws(
    monkeypatch: pytest.MonkeyPatch, asked: str, backend: str, tries: list[tuple[tuple[int, int], Api]]
) -> None:
    monkeypatch.setenv("TEXELFLOW_GL_API", asked)
    assert contexts_to_try(backend) == tries


class TestRefusals:
    """Each is one line, and ends nothing but the attempt."""

    @staticmethod
    def said(version: tuple[int, int] = REQUIRED, **environment: str) -> str:
        """What a new process says, with this environment, of a window: the same at the second try."""
        program = (
            "from texelflow.app.window.glfw_window import Window\n"
            "from texelflow.gpu_delegate.base.errors import DeviceError\n"
            "for attempt in range(2):\n"
            "    try:\n"
            f"        with Window((9, 9), 'never', {version}) as window:\n"
            "            print('computes' if window.context.can_compute else 'draws')\n"
            "    except DeviceError as error:\n"
            "        print(error)\n"
        )
        kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program], env={**kept, **environment}, capture_output=True, text=True
        )
        assert done.stderr == ""
        assert done.returncode == 0
        first, second = done.stdout.splitlines()
        assert first == second
        return first

    @exhaustive
    def test_no_display(self) -> None:
        assert "no window" in self.said()
        assert "everything else works without" in self.said(DISPLAY=":8765")

    def test_no_library(self) -> None:
        assert "pip install glfw" in self.said(PYGLFW_LIBRARY="/nowhere/libglfw.so")

    @exhaustive
    def test_opengl_too_old(self, display: Display) -> None:
        for version, answer in ((REQUIRED, "OpenGL 4.3 is needed"), (DRAWING, "draws")):
            assert answer in self.said(version, DISPLAY=display.name, MESA_GL_VERSION_OVERRIDE="3.3")
        assert self.said(DRAWING, DISPLAY=display.name) == "computes"
