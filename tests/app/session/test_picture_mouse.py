"""The mouse over a picture: the wheel zooms around it, dragging moves, clicks pick faces; the panel keeps its own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.display import Display
from tests.helpers.live_stage import Script, Stage, Theatre
from tests.helpers.markers import one_in
from tests.helpers.replay_stage import Stage as Played
from tests.helpers.replay_stage import run
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.overlay.input_events import Button, Input, Left, Moved, Wheel
from texelflow.app.overlay.overlay_placement import ScreenArea
from texelflow.app.session.picture_mouse import PictureMouse, Pointed, ZoomedPart
from texelflow.app.settings.settings import MOST_ZOOM

AREA = ScreenArea(20, 10, 180, 130)
WHOLE = ZoomedPart(1.0, (0.5, 0.5))
PRESS, RELEASE = Button(0, True), Button(0, False)


def after(part: ZoomedPart, *inputs: Input) -> ZoomedPart:
    return PictureMouse().follow(inputs, (AREA,), part)[0]


def seen_at(part: ZoomedPart, place: tuple[float, float]) -> tuple[float, float]:
    """What of the whole picture is at a place of what is shown."""
    x, y = (middle + (at - 0.5) / part.zoom for middle, at in zip(part.center, place, strict=True))
    return x, y


fractions = st.floats(0, 0.99)


@given(st.floats(1, MOST_ZOOM), fractions, fractions, st.floats(-3, 30) | st.floats(-1e9, 1e9), fractions, fractions)
def test_the_wheel_zooms_around_the_mouse(
    zoom: float, left: float, top: float, steps: float, x: float, y: float
) -> None:
    before = ZoomedPart(zoom, (left, top)).moved(0, 0)
    mouse = Moved(AREA.left + x * AREA.width, AREA.top + y * AREA.height)
    found = after(before, mouse, Wheel(0, steps))
    assert 1 <= found.zoom <= MOST_ZOOM
    assert all(0.5 / found.zoom - 1e-9 <= middle <= 1 - 0.5 / found.zoom + 1e-9 for middle in found.center)
    if found.zoom >= before.zoom:  # further out the frame's edge may be in the way
        assert seen_at(found, (x, y)) == pytest.approx(seen_at(before, (x, y)), abs=1e-6)


def test_dragging_moves_what_is_seen_along() -> None:
    before = ZoomedPart(2.0, (0.5, 0.5))
    drag = Moved(100, 70), PRESS, Moved(110, 70), Moved(140, 100), RELEASE, Moved(30, 30)
    assert after(before, *drag) == ZoomedPart(2.0, (0.375, 0.375))
    assert after(before, Moved(100, 70), PRESS, Moved(-500, 70)) == ZoomedPart(2.0, (0.75, 0.5))
    assert after(WHOLE, *drag) == WHOLE
    assert after(before, Moved(100, 70), PRESS, Left(), Moved(140, 100)) == before


def test_nothing_is_done_beside_the_picture() -> None:
    before = ZoomedPart(2.0, (0.5, 0.5))
    assert after(before, Wheel(0, 1)) == before
    assert after(before, Moved(10, 70), Wheel(0, 1), PRESS, Moved(100, 70)) == before


def test_a_click_is_a_press_that_does_not_move() -> None:
    areas = AREA, ScreenArea(200, 10, 360, 130)
    mouse = PictureMouse()
    assert mouse.follow([Moved(240, 40), PRESS, Moved(242, 41), RELEASE], areas, WHOLE)[1] == (
        Pointed(1, 42 / 160, 31 / 120),
    )
    assert mouse.follow([PRESS, Moved(300, 40), RELEASE, Button(1, True), Button(1, False)], areas, WHOLE)[1] == ()


WHEEL_UP, WHEEL_DOWN = 4, 5  # buttons of X's pointer


def test_wheel_and_drag_in_a_window(theatre: Theatre) -> None:
    """Real events; over the panel they are the panel's."""

    def script(stage: Stage) -> Script:
        number = stage.display.window("texelflow")
        stage.display.xdotool("windowsize", number, 640, 480)
        yield from stage.until(lambda: stage.window.size == (640, 480))
        yield from stage.frames(1)
        mouse = "mousemove", "--window", number
        stage.display.xdotool(*mouse, 160, 120, *("click", WHEEL_UP) * 3)
        yield from stage.until(lambda: stage.settings.zoom == 1.331, "three steps")
        assert stage.settings.pan == "0.4378,0.4378"  # 0.25 is where it was
        stage.display.xdotool(*mouse, 300, 240, "mousedown", 1, *mouse, 310, 240, *mouse, 364, 240, "mouseup", 1)
        yield from stage.until(lambda: stage.settings.pan == "0.3757,0.4378", "that the edge is there")
        stage.display.xdotool(*mouse, 160, 120, *("click", WHEEL_DOWN) * 4)
        yield from stage.until(lambda: (stage.settings.zoom, stage.settings.pan) == (1.0, "0.5000,0.5000"), "all of it")
        yield from stage.pressed("p", lambda: stage.settings.panel)
        yield from stage.frames(3)
        stage.display.xdotool(*mouse, 500, 240)
        yield from stage.frames(2)
        stage.display.xdotool(*("click", WHEEL_UP) * 3)
        yield from stage.frames(5)
        assert stage.settings.zoom == 1.0
        stage.display.xdotool(*mouse, 160, 120, "click", WHEEL_UP)
        yield from stage.until(lambda: stage.settings.zoom == 1.1, "zoom beside the panel")

    theatre.run(script)


@one_in(2, "mirror", [True, False])
def test_a_click_shows_numbers_of_hidden_faces_and_the_next_ones_open_and_close_them(
    display: Display, still: Path, mirror: bool
) -> None:
    def script(stage: Played) -> Script:
        yield from stage.paused_at(3)
        stages, number = stage.session.parts.stages, display.window(still.name)
        yield from stage.until(lambda: any(face.track for face in stages.findings), "a face")
        face = next(face for face in stages.findings if face.track)
        left, top, right, bottom = face.box
        x = 160 - (left + right) / 2 if mirror else (left + right) / 2
        mouse = "mousemove", "--window", number, round(x), round((top + bottom) / 2)
        display.xdotool(*mouse, "click", 1)
        yield from stage.until(lambda: stage.settings.face_numbers, "numbers")
        assert not stage.settings.open_faces, "by one click, perhaps to get at the window, nobody is uncovered"
        display.xdotool("click", 1)
        yield from stage.until(lambda: stage.settings.open_faces == str(face.track), "the face's number")
        display.xdotool("click", 1)
        yield from stage.until(lambda: stage.settings.open_faces == "", "it is closed again")

    run(display, load_segmentation("selfie"), still, script, effect="pixelate-faces", face_delay=0, mirror=mirror)
