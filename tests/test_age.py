"""From the test pattern to the screen: the number in what is shown is the record's, and its age is known."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from time import monotonic, perf_counter_ns

import numpy as np
import numpy.typing as npt
import pytest

from app.capture.capture import Capture
from app.capture.opener import opener
from app.capture.pattern import read_time_code, time_code_of
from app.capture.source import Wanted
from app.console import Console
from app.frame.canvas import Canvas
from app.frame.looks import LookOptions, choose_look
from app.frame.machine import machine_in
from app.frame.pipeline import FrameRecord, Pipeline
from app.frame.segmenter import make_segmenter
from app.frame.targets import OffscreenTarget
from app.live.tally import Tally
from app.models.loading import load_segmentation
from app.overlay import panel
from app.overlay.figures import CameraFigures, Figures, ages, frames_in_flight
from app.overlay.gui import Gui
from app.window.screen import Screen
from app.window.window import Window
from gpu_delegate import opengl
from tests.display import Display
from tests.test_overlay import FACTS

SIZE, FPS, FRAMES = (320, 240), 30.0, 15
PATIENCE_S = 30.0


@dataclass
class Live:
    """The pattern on its way through a window, as live has it."""

    window: Window
    capture: Capture
    pipeline: Pipeline
    target: OffscreenTarget
    screen: Screen
    figures: Figures
    records: list[FrameRecord] = field(default_factory=list)

    def show_next(self) -> FrameRecord:
        """The newest picture, waited for, through all stages to the screen."""
        end = monotonic() + PATIENCE_S
        while (frame := self.capture.take()) is None:
            assert monotonic() < end, "no picture came"
            self.window.events(0.01)
        counts = self.capture.take_counts()
        self.pipeline.submit(frame, counts.dropped, counts.repeated)
        (record,) = self.pipeline.completed()
        self.figures.add(record)
        self.records.append(record)
        return record

    def picture(self) -> npt.NDArray[np.uint8]:
        """RGB (H, W, 3) of the picture that was made last."""
        gl, (width, height) = self.window.context.gl, self.target.size
        pixels = np.empty((height, width, 4), np.uint8)
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, self.target.framebuffer)
        gl.glReadPixels(0, 0, width, height, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data)
        return pixels[::-1, :, :3]


@contextmanager
def live(backend: str, effect: str) -> Iterator[Live]:
    """A window with the pattern in it."""
    console = Console(quiet=True)
    with ExitStack() as stack:
        window = stack.enter_context(Window(SIZE, "pattern"))
        capture = stack.enter_context(Capture(opener("pattern", Wanted(SIZE, FPS)), window.wake))
        machine = machine_in(window.context, backend, console)
        first = capture.first(PATIENCE_S)
        model = load_segmentation("selfie")
        segmenter = make_segmenter(machine, model, first.picture.format, "stretch", console)
        stack.callback(segmenter.release)
        target = OffscreenTarget(window.context, SIZE)
        stack.callback(target.release)
        canvas = Canvas(window.context, segmenter, target, "stretch", choose_look(LookOptions(effect=effect)))
        stack.callback(canvas.release)
        gui = Gui(window.context)
        stack.callback(gui.release)
        screen = Screen(window, gui, canvas, Fraction(*SIZE))
        figures = Figures(camera=lambda: figures_of(capture))
        screen.parts = (lambda: panel.performance(figures, FACTS),)
        pipeline = Pipeline([*segmenter.stages, canvas.stage, *screen.stages], window.context, timing="wall")
        stack.callback(pipeline.release)
        yield Live(window, capture, pipeline, target, screen, figures)


def figures_of(capture: Capture) -> CameraFigures:
    counts = capture.counts
    return CameraFigures(capture.description, capture.stamps, capture.fps, counts.used, counts.dropped, counts.repeated)


@pytest.mark.parametrize(("backend", "effect"), [("cpu", "none"), ("gl", "tint")])
def test_the_number_in_the_final_picture_is_that_of_its_record(display: Display, backend: str, effect: str) -> None:
    with live(backend, effect) as shown:
        for _ in range(FRAMES):
            record = shown.show_next()
            now_ns = perf_counter_ns()
            assert read_time_code(shown.picture()) == time_code_of(record.index)
            assert record.captured_ns
            assert record.captured_ns <= record.start_ns <= record.end_ns <= now_ns
        records, figures, capture = shown.records, shown.figures, shown.capture
    assert all(one.index < two.index for one, two in pairwise(records))
    spread, mean = ages(records), frames_in_flight(records)
    assert spread
    assert 0 < spread.p50 <= spread.p95 <= spread.max
    assert mean >= 1
    assert figures.summary.age
    assert figures.summary.camera
    assert figures.summary.camera.stamps == capture.stamps == "made"
    tally = Tally()
    for record in records:
        tally.take(record)
    summary = tally.summary()
    assert summary["frames_in_flight"] == pytest.approx(mean, abs=0.01)
    assert summary["age_at_swap"]["p95_ms"] == pytest.approx(spread.p95, abs=0.01)
    counts = capture.counts
    assert counts.used == FRAMES + 1
    assert counts.dropped >= records[-1].index - FRAMES, "every number that was not shown was counted"


def test_the_screen_shows_the_last_picture_and_nothing_is_read_back(display: Display) -> None:
    with live("cpu", "none") as shown:
        figures, shown.screen.parts = shown.screen.parts, ()
        for _ in range(3):
            record = shown.show_next()
        while shown.window.damaged:
            shown.screen.redraw()
        shown.window.context.gl.glFinish()
        display.xdotool("getdisplaygeometry")  # answered once the server has done what it was asked before
        assert read_time_code(display.picture()[: SIZE[1], : SIZE[0]]) == time_code_of(record.index)
        before, shown.screen.parts = shown.window.context.readback.bytes, figures
        for _ in range(3):
            shown.show_next()
        assert shown.window.context.readback.bytes == before
