"""The panel of settings: real clicks and keys in a real window change settings, and what is typed is no command."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from time import monotonic
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from tests.helpers.choices import any_settings
from tests.helpers.display import Display
from tests.helpers.living import living
from tests.helpers.markers import exhaustive
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.frame.looks.effects import MASK_EFFECTS, mask_effects, picture_effects
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.overlay.controls import controls, usable_specs
from texelflow.app.overlay.gui import Gui
from texelflow.app.overlay.input_events import Button, Held, Input, Left, Moved, Typed, Wheel
from texelflow.app.picture.preprocess import ImageSize
from texelflow.app.settings.settings import Settings, changed, specs
from texelflow.app.window.glfw_window import Window
from texelflow.app.window.keys import Key
from texelflow.app.window.screen import Screen
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, open_context

if find_spec("imgui_bundle") is None:
    pytest.skip("imgui-bundle has no wheel for this Python on this machine", allow_module_level=True)

SIZE = (640, 560)
PLAIN, WITH_PANEL = Settings(), Settings(panel=True)
BOXES, SLIDERS, WAYS_BACK = 408.0, 560.0, 612.0  # pixels from the left: where rows can be clicked
PRESS, RELEASE = Button(0, True), Button(0, False)
ROW = 23.0
PICTURE = 44.0  # pixels from the top: the first section, which is unfolded
ROWS = {  # the middles of its rows, pixels from the top
    name: PICTURE + ROW * place + 2
    for place, name in enumerate((spec.name for spec in specs() if spec.section == "picture"), 1)
}
FOLDED = {  # the middles of the sections below it
    name: PICTURE + ROW * (len(ROWS) + place) + 4
    for place, name in enumerate(("mask", "framing", "camera", "recording", "performance", "model", "window"), 1)
}


class Panel:
    """The panel without any window: what is done to it is fed."""

    def __init__(self, context: Context, settings: Settings = PLAIN, size: ImageSize = SIZE) -> None:
        self.settings, self.size = settings, size
        self.gui, self._target = Gui(context), OffscreenTarget(context, size)
        self.do(Left())

    def do(self, *inputs: Input) -> Settings:
        """One after the other, with pictures after each; the settings then."""
        for done in inputs:
            self.gui.feed([done])
            for _ in range(2):
                self.gui.draw(self._target.framebuffer, self.size, 1.0, [self._part])
        return self.settings

    def click(self, x: float, y: float) -> Settings:
        return self.do(Moved(x, y), PRESS, RELEASE)

    def enter(self, text: str) -> Settings:
        """Type into the field that has the keyboard, in place of what is there."""
        keys = Held("mod_ctrl", True), Held("a", True), Held("a", False), Held("mod_ctrl", False)
        return self.do(*keys, *map(Typed, text), Held("enter", True), Held("enter", False))

    def _part(self) -> None:
        self.settings = controls(self.settings)

    def release(self) -> None:
        self.gui.release()
        self._target.release()


@contextmanager
def panel(context: Context, settings: Settings = PLAIN, size: ImageSize = SIZE) -> Iterator[Panel]:
    made = Panel(context, settings, size)
    try:
        yield made
    finally:
        made.release()


def test_the_panel_has_what_the_model_is_able_to_do() -> None:
    for effects, rows in (
        (MASK_EFFECTS, set()),
        (mask_effects(True), {"legend"}),
        (picture_effects(True), {"strength"}),
    ):
        found = {spec.name: spec for spec in usable_specs("live", effects)}
        assert found.keys() & {"strength", "legend"} == rows
        assert found["effect"].choices == effects


def test_the_cross_is_there_in_a_small_window_too(context: Context) -> None:
    with panel(context, WITH_PANEL, (480, 360)) as small:
        target = small._target
        pixels = np.empty((360, 480, 4), np.uint8)
        context.gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, target.framebuffer)
        context.gl.glReadPixels(0, 0, 480, 360, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data)
    assert pixels[::-1][6:21, 450:474, :3].min(axis=2).max() > 180, "a bright line in the title's right end"


class TestWithoutWindow:
    @exhaustive
    @hypothesis_settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(any_settings)
    def test_what_nobody_touches_stays(self, context: Context, settings: Settings) -> None:
        with panel(context, settings) as untouched:
            for y in range(30, SIZE[1], 12):
                untouched.do(Moved(SLIDERS, y))
            assert untouched.settings == settings

    def test_panels_come_one_after_the_other_however_few_pictures_each_has(self, context: Context) -> None:
        settings, target = Settings(effect="tint", mirror=True), OffscreenTarget(context, SIZE)
        kept: list[Settings] = []
        for pictures in (1, 1, 2, 1, 3, 1):
            gui = Gui(context)
            for _ in range(pictures):
                gui.draw(target.framebuffer, target.size, 1.0, [lambda: kept.append(controls(settings))])
            gui.release()
        target.release()
        assert kept == [settings] * 9

    def test_the_way_back_to_the_default(self, context: Context) -> None:
        y = ROWS["light_wrap"]
        with panel(context, Settings(light_wrap=0.25, smooth=0.25)) as clicked:
            assert clicked.click(WAYS_BACK, y) == Settings(smooth=0.25)

    @exhaustive
    def test_a_radius_is_none_or_one_that_there_is(self, context: Context) -> None:
        y = ROWS["blur"]
        with panel(context) as slid:
            slid.do(Moved(BOXES, y), PRESS)
            found = {slid.do(Moved(x, y)).blur for x in range(int(BOXES), 597, 3)}
            found |= {slid.do(Moved(x, y)).blur for x in range(597, int(BOXES) - 20, -3)}
        assert min(found) == 0
        assert max(found) == 500
        assert min(found - {0}) >= 4

    @exhaustive
    def test_what_waits_for_the_next_start_cannot_be_changed(self, context: Context) -> None:
        with panel(context, size=(640, 560)) as clicked:
            top = int(FOLDED["model"] - ROW * len(ROWS) - 4)  # once the first section is folded
            clicked.click(500, PICTURE)
            clicked.click(500, top)
            for y in range(top + 25, top + 330, 11):
                for below in (0, 2 * ROW):  # the second of a list
                    clicked.click(BOXES, y + below)
                waiting = {spec.name for spec in specs() if spec.changes.startswith("restart")}
                assert not waiting & {*changed(PLAIN, clicked.settings)}
        assert changed(PLAIN, clicked.settings), "others of this section can be"

    def test_texts_count_with_enter_if_they_can_be(self, context: Context) -> None:
        with panel(context) as typed:
            typed.click(500, FOLDED["camera"])
            typed.click(BOXES + 20, FOLDED["camera"] + 3 * ROW + 2)
            assert typed.gui.takes_keys
            assert typed.enter("99") == PLAIN
            typed.click(BOXES + 20, FOLDED["camera"] + 3 * ROW + 2)
            assert typed.enter("320x200") == Settings(size="320x200")
            assert not typed.gui.takes_keys
            typed.click(BOXES + 20, FOLDED["camera"] + 2 * ROW + 2)
            assert typed.enter("1") == Settings(("0", "1"), size="320x200"), "another camera"

    def test_it_scrolls(self, context: Context) -> None:
        """The last section is reached, and its box clicked."""
        with panel(context) as scrolled:
            for y in reversed(FOLDED.values()):  # unfolds all
                scrolled.click(500, y)
            scrolled.do(Moved(300, 300), *[Wheel(0, -5)] * 16)
            for y in range(SIZE[1] - 100, SIZE[1] - 10, 6):
                scrolled.click(BOXES, y)
            assert {"overlay", "fullscreen"} & {*changed(PLAIN, scrolled.settings)}

    def test_it_stays_at_the_right_of_a_picture_that_shrinks_or_grows(self, context: Context) -> None:
        with panel(context) as resized:
            for wide in (600, 700):  # letters stay as large
                resized.size, resized.settings = (wide, SIZE[1] - 10), WITH_PANEL
                resized.do(Left())
                assert resized.click(wide - 20, 17) == PLAIN, "its cross is at its right"

    @pytest.mark.parametrize("size", [(1, 1), (64, 400), (256, 144), (2000, 300)])
    def test_every_size(self, context: Context, size: ImageSize) -> None:
        with panel(context, size=size) as small:
            assert small.do(Moved(1, 1), PRESS, RELEASE) in (PLAIN, Settings(panel=False))

    @exhaustive
    def test_opengl_3_3_will_do_and_no_objects_are_left(self, context: Context) -> None:
        try:
            with open_context(DRAWING) as older:
                before = living(older)
                with panel(older) as drawn:
                    drawn.click(SLIDERS, 300)
                assert living(older) == before
                older.check_errors("drawing the panel")
        finally:
            context.make_current()


class Picture:
    """What is behind the panel."""

    def __init__(self, context: Context) -> None:
        self.target = OffscreenTarget(context, (64, 48))

    def shown(self) -> OffscreenTarget:
        return self.target


class Room:
    """A real window with the panel in it, and somebody at its mouse."""

    def __init__(self, display: Display, window: Window, settings: Settings) -> None:
        self.settings, self.window = settings, window
        self.gui = Gui(window.context)
        self._picture = Picture(window.context)
        self.screen = Screen(window, self.gui, self._picture, Fraction(4, 3))
        self.screen.parts = (self._part,)
        self.keys: list[Key] = []
        self._display, self._number = display, display.window("panel")
        self.until(lambda: window.listening)

    def _part(self) -> None:
        self.settings = controls(self.settings)

    def until(self, true: Callable[[], bool]) -> None:
        end = monotonic() + PATIENCE_S
        while not true():
            assert monotonic() < end, "it did not happen"
            self.step()

    def step(self) -> None:
        self.keys += self.screen.keys(0.005)
        self.screen.redraw()

    def click(self, x: float, y: float) -> None:
        """As a person does, who sees what the mouse is over before pressing."""
        self._display.xdotool("mousemove", "--window", self._number, int(x), int(y))
        for _ in range(3):
            self.step()
        self._display.xdotool("click", 1)

    def press(self, *keys: str) -> None:
        self._display.press(*keys)

    def release(self) -> None:
        self.gui.release()
        self._picture.target.release()


@contextmanager
def room(display: Display, settings: Settings = WITH_PANEL) -> Iterator[Room]:
    with Window(SIZE, "panel") as window:
        made = Room(display, window, settings)
        try:
            yield made
        finally:
            made.release()
            window.context.check_errors("the panel in a window")


class TestInWindow:
    def test_a_box_a_slider_and_a_list(self, display: Display) -> None:
        with room(display) as used:
            used.click(BOXES, ROWS["mirror"])
            used.until(lambda: used.settings.mirror)
            used.click(BOXES, ROWS["mirror"])
            used.until(lambda: not used.settings.mirror)
            used.click(SLIDERS, ROWS["light_wrap"])
            used.until(lambda: used.settings.light_wrap > 0.7)
            used.click(SLIDERS, ROWS["effect"])
            used.click(BOXES + 10, ROWS["effect"] + ROW)
            used.until(lambda: used.settings.effect != "blur")
            names = changed(WITH_PANEL, used.settings)
            assert set(names) == {"light_wrap", "effect"}

    def test_typing_is_no_command(self, display: Display) -> None:
        with room(display) as used:
            used.press("e")
            used.until(lambda: [key.text for key in used.keys] == ["e"])
            used.click(BOXES + 30, ROWS["background"])
            used.until(lambda: used.gui.takes_keys)
            used.press("q", "numbersign", "0", "0", "f", "f", "0", "0", "Home", "Delete")
            for _ in range(20):
                used.step()
            assert used.settings.background == "", "not before Enter"
            used.press("Return")
            used.until(lambda: used.settings.background == "#00ff00")
            used.until(lambda: not used.gui.takes_keys)
            used.press("q")
            used.until(lambda: len(used.keys) > 1)
            assert [key.text for key in used.keys] == ["e", "q"]

    def test_paste(self, display: Display) -> None:
        with room(display, Settings(panel=True, background="before")) as used:
            glfw: Any = import_module("glfw")  # loads a shared library, which only windows need
            glfw.set_clipboard_string(None, "a picture\nwith ä.png")
            used.click(BOXES + 30, ROWS["background"])
            used.until(lambda: used.gui.takes_keys)
            used.press("ctrl+a", "ctrl+v", "Return")
            used.until(lambda: used.settings.background != "before")
            assert used.settings.background in ("a picture with ä.png", "a picturewith ä.png")
            assert used.keys == []

    def test_once_it_is_closed_nobody_listens(self, display: Display) -> None:
        with room(display) as used:
            used.click(620, 17)
            used.until(lambda: not used.settings.panel)
            used.screen.parts = ()
            used.until(lambda: not used.window.listening)
            used.window.inputs()
            used.click(SLIDERS, 300)
            used.press("x")
            used.until(lambda: bool(used.keys))
            assert used.window.inputs() == []
            used.screen.parts = (lambda: None,)
            used.until(lambda: not used.window.damaged)
            assert not used.window.listening
