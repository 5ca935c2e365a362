"""What Dear ImGui draws over pictures: compared with stored pictures, in all sizes, with OpenGL's state as found."""

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.living import living
from tests.helpers.markers import on_both_apis
from texelflow.app.frame.stages.frame_figures import CameraFigures, Figures
from texelflow.app.frame.stages.frame_pipeline import FrameRecord, StageRecord
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.overlay import panel
from texelflow.app.overlay.controls import SETTINGS_TITLE, controls
from texelflow.app.overlay.gui import Gui, free_area
from texelflow.app.overlay.input_events import Button, Input, Left, Moved
from texelflow.app.overlay.overlay_placement import ScreenArea
from texelflow.app.overlay.performance import Facts, FigureLook, performance
from texelflow.app.overlay.timeline import TIMELINE_EM, BarState, Pointing, timeline
from texelflow.app.picture.preprocess import ImageSize
from texelflow.app.settings.settings import Corner, Settings
from texelflow.gpu_delegate.base.errors import DeviceError, MediaError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, open_context

if find_spec("imgui_bundle") is None:
    pytest.skip("imgui-bundle has no wheel for this Python on this machine", allow_module_level=True)

DATA = Path(__file__).parents[2] / "data"
GRAY = 0.5
STATES = {
    name: number
    for number, name in {
        0x8CA6: "draw framebuffer", 0x8CAA: "read framebuffer", 0x8B8D: "program", 0x84E0: "active texture",
        0x8069: "texture", 0x8919: "sampler", 0x8894: "array buffer", 0x85B5: "vertex array", 0x88EF: "unpack buffer",
        0x88ED: "pack buffer", 0x0CF5: "unpack alignment", 0x0CF2: "unpack row length", 0x0BE2: "blend",
        0x0C11: "scissor", 0x0B71: "depth test", 0x0B90: "stencil test", 0x0B44: "cull face",
        0x80C9: "blend from", 0x80C8: "blend to", 0x8009: "blend equation",
    }.items()
}  # fmt: skip
CORNERS: tuple[Corner, ...] = get_args(Corner)
Parts = Sequence[Callable[[], None]]
PRESS, RELEASE = Button(0, True), Button(0, False)


REPLAY = ("decode", "upload", "image_to_tensor", "network", "composite", "blit", "overlay", "swap")
LIVE = ("decode", "upload", "image_to_tensor", "network", "refine", "composite", "record", "blit", "overlay", "swap")
CAMERA = CameraFigures(
    "V4L2 /dev/video0, MJPG 640x480, 30 fps",
    "driver",
    29.94,
    812,
    3,
    0,
    work="network ran 412 of 900: 480 still, 8 over budget",
)


def figures_of(frames: int, has_gpu: bool, camera: CameraFigures | None = None) -> Figures:
    """Figures of frames whose times are made up."""
    figures, now_ns = Figures(cpu_s=lambda: 1.5, camera=lambda: camera), 0
    names = LIVE if camera else REPLAY
    for index in range(frames):
        now_ns += 70_000_000 if index % 40 == 39 else 30_000_000 + 137_000 * (index * 7919 % 31)
        stages = [
            StageRecord(name, now_ns, 0.5 * place + index % 7 / 10, 0.3 * place if has_gpu and place else None)
            for place, name in enumerate(names, 1)
        ]
        captured_ns = now_ns - 40_000_000 - 1_000_000 * (index % 7) if camera else None
        counts = 460800, int(index == 5), 0
        figures.add(FrameRecord(index, index, index * 33.3, now_ns, tuple(stages), *counts, captured_ns))
    return figures


FULL, COMPACT = FigureLook(full=True), FigureLook()
TIMELINE = BarState(0.4, "{:.2f}".format, "0:01.234 / 0:04.000", ("frame 37 of 120   0.5x",), 0.2, 0.9, (0.3, 0.5))
FACTS = Facts("A renderer (of tests)", "gl", "selfie", "fp32", 25, 1000 / 30, "the timer tells nothing")


@contextmanager
def drawing(context: Context, size: ImageSize) -> Iterator[tuple[Gui, OffscreenTarget]]:
    """A Gui, and something gray to draw into."""
    target, gui = OffscreenTarget(context, size), Gui(context)
    try:
        context.gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, target.framebuffer)
        context.gl.glClearColor(GRAY, GRAY, GRAY, 1)
        context.gl.glClear(opengl.COLOR_BUFFER_BIT)
        yield gui, target
    finally:
        gui.release()
        target.release()


def picture(
    context: Context, size: ImageSize, parts: Parts, scale: float = 1.0, times: int = 1
) -> npt.NDArray[np.uint8]:
    """What the parts look like: uint8 (H, W, 3)."""
    with drawing(context, size) as (gui, target):
        for _ in range(times):
            gui.draw(target.framebuffer, size, scale, parts)
        context.gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, target.framebuffer)
        pixels = np.empty((size[1], size[0], 4), np.uint8)
        context.gl.glReadPixels(0, 0, *size, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data)
        return np.ascontiguousarray(pixels[::-1, :, :3])


def compact(camera: CameraFigures | None = None, look: FigureLook = COMPACT, footer_em: float = 0.0) -> None:
    """As in a window; beside the panel of settings, if that was drawn."""
    performance(figures_of(130, False, camera), FACTS, look, free_area(footer_em=footer_em))


def settings_panel() -> None:
    """The panel, in which nothing changes."""
    controls(Settings())


def bar() -> None:
    """The bar of a recording, over all of the lowest lines."""
    timeline(TIMELINE, free_area(row_em=TIMELINE_EM))


def beside_settings() -> None:
    """The figures and the bar, which make room for the panel."""
    performance(figures_of(130, True, CAMERA), FACTS, COMPACT, free_area(SETTINGS_TITLE, TIMELINE_EM))
    timeline(TIMELINE, free_area(SETTINGS_TITLE, row_em=TIMELINE_EM))


PICTURES: dict[str, tuple[ImageSize, Parts]] = {
    "compact": (
        (640, 480),
        [
            lambda: compact(CAMERA),
            lambda: panel.message("? shows the keys, p the settings", 0.5),
            bar,
        ],
    ),
    "corner": ((320, 240), [lambda: compact(look=FigureLook(corner="bottom-right", scale=1.5), footer_em=2.5)]),
    "wall": (
        (640, 480),
        [
            lambda: performance(figures_of(130, False), FACTS, FULL, free_area()),
            lambda: panel.status("frame 60/120  2.002 s  speed 1"),
            lambda: panel.message("saved 100 %s %n.png"),
        ],
    ),
    "gpu": ((640, 480), [lambda: performance(figures_of(130, True), FACTS, FULL, free_area())]),
    "small": ((256, 144), [lambda: performance(figures_of(50, True), FACTS, FULL, free_area())]),
    "live": (
        (640, 480),
        [
            lambda: performance(figures_of(130, True, CAMERA), FACTS, FULL, free_area()),
            lambda: panel.status("frame 812   blur", "texelflow-1.mp4 00:12, dropped 0"),
        ],
    ),
    "live_wide": (
        (1280, 720),
        [
            lambda: performance(figures_of(130, False, CAMERA), FACTS, FULL, free_area()),
            lambda: panel.signal("no picture from V4L2 /dev/video0; trying again in 4 s"),
            lambda: panel.status("frame 812   blur"),
        ],
    ),
    "live_small": (
        (320, 240),
        [
            lambda: performance(figures_of(130, True, CAMERA), FACTS, FULL, free_area()),
            lambda: panel.signal("no picture from http://192.0.2.7:8080/video; trying again in 4 s"),
            lambda: panel.status("", "texelflow-1.mp4 00:12, dropped 0"),
        ],
    ),
    "progress": ((320, 240), [lambda: panel.progress("compiling selfie", 9, 25)]),
    "keys": (
        (640, 480),
        [
            lambda: panel.key_list([("Space", "pause and play")] + [("x", "y")] * 9),
        ],
    ),
}


@pytest.mark.parametrize("name", PICTURES)
@on_both_apis
def test_pictures_are_those_stored(context: Context, name: str, request: pytest.FixtureRequest) -> None:
    size, parts = PICTURES[name]
    drawn, file = picture(context, size, parts), DATA / f"overlay_{name}.png"
    if request.config.getoption("--update-snapshots"):
        cv2.imwrite(str(file), drawn[:, :, ::-1], (cv2.IMWRITE_PNG_COMPRESSION, 9))
    if not context.is_software or sys.version_info < (3, 11):
        pytest.skip("stored pictures are software OpenGL's with the Dear ImGui of Python 3.11 and newer")
    stored = np.asarray(cv2.imread(str(file)))[:, :, ::-1]
    assert np.abs(drawn.astype(int) - stored).mean() < 0.8
    assert np.abs(drawn.astype(int) - round(255 * GRAY)).mean() > 2, "something is drawn"


@pytest.mark.parametrize("size", [(1, 1), (16, 9), (64, 400), (400, 64), (256, 144), (2000, 300)])
def test_every_size_is_drawn(context: Context, size: ImageSize) -> None:
    everything = [part for _, parts in PICTURES.values() for part in parts]
    for scale in (0.5, 3.0):
        assert picture(context, size, everything, scale).shape == (size[1], size[0], 3)


def covered(context: Context, size: ImageSize, part: Callable[[], None], scale: float = 1.0) -> npt.NDArray[np.bool_]:
    """Where it is drawn: (H, W)."""
    drawn: npt.NDArray[np.bool_] = (picture(context, size, [part], scale) != round(255 * GRAY)).any(axis=2)
    return drawn


@pytest.mark.parametrize("corner", CORNERS)
def test_three_lines_and_a_graph_cover_a_fifth_at_most_in_the_corner_that_was_chosen(
    context: Context, corner: Corner
) -> None:
    for camera, size, scale in ((CAMERA, (640, 480), 1.0), (None, (640, 480), 2.0), (CAMERA, (320, 200), 1.0)):
        seen = covered(context, size, lambda: compact(camera, FigureLook(corner=corner)), scale)  # noqa: B023
        rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
        assert 0.03 < seen.mean() <= 0.2
        above, left = rows[0], columns[0]
        below, right = size[1] - 1 - rows[-1], size[0] - 1 - columns[-1]
        assert (above < below) == corner.startswith("top")
        assert (left < right) == corner.endswith("left")
        assert max(min(above, below), min(left, right)) <= 9


def test_figures_and_the_bar_are_beside_the_panel_of_settings(context: Context) -> None:
    size = (640, 480)
    alone = picture(context, size, [settings_panel], times=3)
    both = (picture(context, size, [settings_panel, beside_settings], times=3) != alone).any(axis=2)
    panels_left = np.flatnonzero((alone != round(255 * GRAY)).any(axis=(0, 2)))[0]
    assert not both[:, panels_left:].any()
    assert both[:100, :panels_left].mean() > 0.5
    assert both[440:, :panels_left].mean() > 0.5


def test_figures_grow_with_their_scale_and_go_where_there_is_no_room(context: Context) -> None:
    usual = covered(context, (640, 480), compact).mean()
    large = covered(context, (640, 480), lambda: compact(look=FigureLook(scale=1.5))).mean()
    assert large == pytest.approx(2.25 * usual, rel=0.2)
    assert not covered(
        context, (640, 480), lambda: performance(figures_of(9, True), FACTS, FULL, ScreenArea(9, 9, 30, 300))
    ).any()


class TestTimeline:
    """The bar without any window: what the mouse does is fed."""

    SIZE = (640, 480)

    def pointings(
        self, context: Context, *inputs: Sequence[Input], shown: BarState = TIMELINE, settings: bool = False
    ) -> list[Pointing]:
        """What it says of each picture, before which some inputs came."""
        found: list[Pointing] = []

        def tried() -> None:
            found.append(timeline(shown, free_area(SETTINGS_TITLE if settings else "", row_em=TIMELINE_EM)))

        parts: Parts = [settings_panel, tried] if settings else [tried]
        with drawing(context, self.SIZE) as (gui, target):
            for done in ([Moved(1, 1)], [], *inputs):
                gui.feed(done)
                gui.draw(target.framebuffer, self.SIZE, 1.0, parts)
        return found[2:]

    def test_it_is_dragged_also_beyond_its_ends(self, context: Context) -> None:
        over, held, *dragged, end, gone = self.pointings(
            context, [Moved(320, 460)], [PRESS], [Moved(160, 100)], [Moved(-50, 0)], [Moved(900, 470)], [RELEASE], []
        )
        assert (over, held.over) == (Pointing(True), True)
        assert [each.held for each in (held, *dragged, end)] == pytest.approx([0.5, 0.236, 0.0, 1.0, 1.0], abs=5e-3)
        assert [each.ends for each in (over, held, *dragged, end, gone)] == [False] * 5 + [True, False]
        assert gone == Pointing()

    def test_where_it_is_let_go_counts_unless_the_mouse_is_gone(self, context: Context) -> None:
        begun = [Moved(320, 460)], [PRESS]
        *_, moved, gone = self.pointings(context, *begun, [Moved(160, 100), RELEASE], [])
        assert moved.held == pytest.approx(0.236, abs=5e-3)
        assert (moved.ends, gone) == (True, Pointing())
        *_, lost = self.pointings(context, *begun, [Left()])
        assert lost.held is None

    def test_where_the_end_is_unknown_nothing_is_dragged(self, context: Context) -> None:
        shown = replace(TIMELINE, place=None, left="0:01.234")
        assert self.pointings(context, [Moved(320, 460)], [PRESS], [], shown=shown) == [Pointing()] * 3

    def test_the_mouse_is_that_of_the_panel_where_that_is(self, context: Context) -> None:
        """The bar is left of it; a header that is held in the panel keeps the mouse when that is moved to the bar."""
        away: Sequence[Input] = [Moved(120, 460)]
        inputs: list[Sequence[Input]] = [[Moved(520, 44)], [], [PRESS], away, [], [RELEASE], [], [PRESS]]
        *panels, own = self.pointings(context, *inputs, settings=True)
        assert [each.held for each in panels] == [None] * 7
        assert own.held == pytest.approx(0.5, abs=0.05)


def test_the_panel_leaves_most_of_the_picture_and_grows_with_the_scale(context: Context) -> None:
    size, (part,) = PICTURES["gpu"]
    covered = (picture(context, size, [part]) != round(255 * GRAY)).any(axis=2)
    assert 0.1 < covered.mean() < 0.36
    twice = (picture(context, (1280, 960), [part], 2.0) != round(255 * GRAY)).any(axis=2)
    assert twice.mean() == pytest.approx(covered.mean(), abs=0.03)


@pytest.mark.parametrize(
    "text", ["漢字 ж é \U0001f600", "\udcff\udc80", "a\0b\n\x1b[31m", "%s%n{0}", "x" * 100_000, ""]
)
def test_any_text_is_drawn(context: Context, text: str) -> None:
    facts = Facts(text, text, text, text, 1, 0.0, text)
    figures = figures_of(3, True, CameraFigures(text, text, 0.0, 0, 0, 0, 1, text))
    parts = [
        lambda: performance(figures, facts, FULL, free_area()),
        lambda: panel.status(text),
        lambda: panel.status(text, text),
        lambda: panel.signal(text),
        lambda: panel.message(text),
        lambda: panel.progress(text, 3, 2),
        lambda: panel.progress(text, 0, 0),
        lambda: panel.key_list([(text, text)]),
        lambda: panel.key_list([]),
    ]
    picture(context, (320, 240), parts)


def test_messages_are_beside_the_settings_where_there_is_room(context: Context) -> None:
    def hint() -> None:
        free = free_area(SETTINGS_TITLE)
        if free.width:  # from the second picture on it is known
            panel.message("? shows the keys, p the settings", free=free)

    size = (640, 480)
    alone = picture(context, size, [settings_panel], times=3)
    written = (picture(context, size, [settings_panel, hint], times=3) != alone).any(axis=(0, 2))
    panels_left = np.flatnonzero((alone != round(255 * GRAY)).any(axis=(0, 2)))[0]
    assert written[:panels_left].mean() > 0.3
    assert not written[panels_left:].any()


def test_messages_are_at_the_top_where_figures_are_below(context: Context) -> None:
    seen = covered(context, (640, 480), lambda: panel.message("the end", at_top=True)).any(axis=1)
    assert 0 < np.flatnonzero(seen)[0] < np.flatnonzero(seen)[-1] < 60


def test_messages_are_in_front_of_the_settings_and_broken_into_lines(context: Context) -> None:
    words = " ".join(["word"] * 60)
    parts: Parts = [settings_panel, lambda: panel.message(words, free=ScreenArea(0, 0, 90, 480))]
    seen = picture(context, (640, 480), parts, times=2)
    lit = np.any(np.all(seen[350:, 352:380] > 240, axis=2), axis=1)  # between names and values
    assert len(np.flatnonzero(np.diff(lit.astype(int)) == 1)) >= 3, "lines of bright letters"


def test_nothing_is_said_before_there_is_something_to_say(context: Context) -> None:
    picture(context, (640, 480), [lambda: performance(Figures(), FACTS, FULL, free_area())])


def states(gl: opengl.GL) -> dict[str, object]:
    box = (ctypes.c_int * 4)()
    numbers = STATES if gl.is_es else STATES | {"restart": 0x8F9D}
    found: dict[str, object] = {name: gl.integer(number) for name, number in numbers.items()}
    for name, number in (("viewport", 0x0BA2), ("scissor box", 0x0C10)):
        gl.glGetIntegerv(number, box)
        found[name] = tuple(box)
    return found


@on_both_apis
def test_opengls_state_is_as_found_and_nothing_is_read_back(context: Context) -> None:
    gl, (_, parts) = context.gl, PICTURES["wall"]
    buffer = gl.generate("Buffers")
    with drawing(context, (64, 64)) as (gui, target):
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, 0)
        gl.glBindBuffer(opengl.PIXEL_UNPACK_BUFFER, buffer)
        gl.glPixelStorei(opengl.UNPACK_ALIGNMENT, 2)
        gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, 7)
        gl.glViewport(1, 2, 3, 4)
        gl.glUseProgram(0)  # the current one may have been deleted by tests before, and cannot come back
        before, read_bytes = states(gl), context.readback.bytes
        gui.draw(target.framebuffer, target.size, 1.0, parts)
        gui.draw(target.framebuffer, target.size, 2.0, parts)
        gui.release()
        assert states(gl) == before
        assert context.readback.bytes == read_bytes
        gl.glPixelStorei(opengl.UNPACK_ALIGNMENT, 1)
        gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, 0)
        gl.glBindBuffer(opengl.PIXEL_UNPACK_BUFFER, 0)
    gl.delete("Buffers", buffer)


@on_both_apis
def test_guis_live_side_by_side_and_leave_no_objects(context: Context) -> None:
    _, parts = PICTURES["gpu"]

    def once() -> None:
        with drawing(context, (64, 64)) as (gui, target), drawing(context, (64, 64)) as (other, _):
            for _ in range(2):
                gui.draw(target.framebuffer, target.size, 1.0, parts)
                other.draw(target.framebuffer, target.size, 3.0, parts)

    before = living(context)
    for _ in range(25):
        once()
    assert living(context) == before
    with drawing(context, (64, 64)) as (gui, target):
        gui.draw(target.framebuffer, target.size, 1.0, parts)
        assert living(context) != before


def test_opengl_3_3_will_do(context: Context) -> None:
    size, parts = PICTURES["small"]
    wanted = picture(context, size, parts)
    try:
        with open_context(DRAWING) as older:
            found = picture(older, size, parts)
            older.check_errors("drawing the overlay")
    finally:
        context.make_current()
    assert np.abs(found.astype(int) - wanted).max() <= 2


def test_failed_assertions_are_one_line_and_harm_nothing(context: Context) -> None:
    size, parts = PICTURES["small"]
    with drawing(context, size) as (gui, target):
        from imgui_bundle import imgui

        with pytest.raises(DeviceError, match=r"^the overlay cannot be drawn on .*IM_ASSERT.*$"):
            gui.draw(target.framebuffer, size, 1.0, [imgui.pop_style_color])

        def fails() -> None:
            imgui.begin("a window that is left open")
            raise MediaError("why it fails")

        with pytest.raises(MediaError, match="why it fails"):
            gui.draw(target.framebuffer, size, 1.0, [fails])
        gui.draw(target.framebuffer, size, 1.0, parts)


def test_dear_imgui_is_loaded_by_a_gui_alone_and_its_absence_is_told() -> None:
    program = """
import os, sys
from texelflow.app.overlay import gui, overlay, panel
assert not any(name.startswith("imgui_bundle") for name in sys.modules)
sys.modules["imgui_bundle"] = None
try:
    gui.load_imgui()
except gui.DeviceError as error:
    print(error)
assert "PYGLFW_LIBRARY" not in os.environ
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=DATA.parents[1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no overlay: Dear ImGui cannot be loaded")
    assert done.stdout.count("\n") == 1
