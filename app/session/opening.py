"""A window, a source and settings go in; a session comes out, with everything compiled in the window's sight."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ..capture.capture import Capture
from ..console import Console
from ..frame.backdrop import Backdrop
from ..frame.machine import Machine, machine_in
from ..frame.pipeline import FrameRecord, Pipeline
from ..frame.targets import OffscreenTarget
from ..live.outputs import STEM, LiveOutputs
from ..live.sourcing import OpenSource, Waker
from ..models.loading import SegmentationModel
from ..overlay.gui import Gui
from ..settings.settings import Settings
from ..settings.watch import Watch
from ..window.loading_screen import LoadingScreen
from ..window.opening import open_window
from ..window.screen import Screen
from ..window.screenshots import Screenshots
from ..window.window import Window
from .derived import choice_of, refinement_of, work_of
from .model_stages import Ground, Scenes, scene_in_steps
from .session import Parts, Session
from .workload import Workload


@dataclass(frozen=True)
class Place:
    """What is there before any session, and after it."""

    window: Window
    gui: Gui
    machine: Machine
    watch: Watch
    console: Console
    observe: Callable[[FrameRecord], None]  # gets the record of each frame


@contextlib.contextmanager
def open_place(
    source: OpenSource, title: str, watch: Watch, wake: Waker, console: Console, observe: Callable[[FrameRecord], None]
) -> Iterator[Place]:
    """A window for pictures of that size, which the source wakes from now on. Raises DeviceError."""
    size = source.first.picture.format.upright_size
    with open_window(size, title, watch.settings.backend) as window, contextlib.ExitStack() as stack:
        wake.window = window
        gui = Gui(window.context)
        stack.callback(gui.release)
        machine = machine_in(window.context, watch.settings.backend, console)
        yield Place(window, gui, machine, watch, console, observe)


@contextlib.contextmanager
def open_session(place: Place, source: OpenSource, model: SegmentationModel, settings: Settings) -> Iterator[Session]:
    """Compile the model, which is that of the settings, and be ready to run; outputs are finished at the end.

    Raises WindowClosedError if the person closes the window before that is done, TexelflowError.
    """
    with contextlib.ExitStack() as stack:
        ground = _ground(place, source, settings, stack)
        scenes = _first_scene(place, source, ground, model, settings)
        stack.callback(scenes.release)
        parts = _parts(place, source.capture, ground, scenes, settings, stack)
        yield Session(parts, settings, place.watch, source.first, place.observe, place.console.note)
        parts.outputs.finish()
        for line in parts.outputs.lines():
            place.console.note(line)


def _ground(place: Place, source: OpenSource, settings: Settings, stack: contextlib.ExitStack) -> Ground:
    context, format = place.window.context, source.first.picture.format
    target = OffscreenTarget(context, format.upright_size)
    stack.callback(target.release)
    backdrop = Backdrop(context, format.upright_size, choice_of(settings).background, waits=False)
    stack.callback(backdrop.release)
    return Ground(place.machine, format, settings.fit, settings.precision, target, backdrop)


def _first_scene(
    place: Place, source: OpenSource, ground: Ground, model: SegmentationModel, settings: Settings
) -> Scenes:
    """Compiled while the window shows how far that is."""
    steps = scene_in_steps(ground, model, choice_of(settings), refinement_of(settings))
    with LoadingScreen(place.window, place.gui, lambda: source.first, _aspect(ground)) as start:
        return Scenes(start.run(steps, f"compiling shaders for {model.name}"), settings.model)


def _parts(
    place: Place, capture: Capture, ground: Ground, scenes: Scenes, settings: Settings, stack: contextlib.ExitStack
) -> Parts:
    context = place.window.context
    outputs = LiveOutputs(context, scenes, capture.nominal_fps or capture.fps)
    stack.callback(outputs.release)
    screen = Screen(place.window, place.gui, scenes, _aspect(ground))
    stages = [*scenes.stages, outputs.stage, *screen.stages]
    pipeline = Pipeline(stages, context, lambda: scenes.uploaded_bytes)
    stack.callback(pipeline.release)
    screenshots = stack.enter_context(contextlib.closing(Screenshots(context, ground.target, Path(STEM), Path())))
    workload = Workload(work_of(settings), bool(settings.small_model))
    return Parts(place.window, screen, capture, ground, scenes, outputs, pipeline, screenshots, workload)


def _aspect(ground: Ground) -> Fraction:
    """Cameras' pixels are square."""
    return Fraction(*ground.format.upright_size)
