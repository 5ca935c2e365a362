"""Settings go in; a window shows the camera until the person has seen enough, and what that came to comes out."""

import contextlib
from pathlib import Path
from typing import Any

from app.capture.capture import Capture
from app.capture.opener import opener
from app.capture.source import SourceError
from app.console import Console
from app.frame.outputs import wants_folder
from app.live.chosen import choice_of, wanted_of
from app.live.opening import OpenSource, Place, open_session
from app.live.tally import Tally
from app.media.moving_background import check_background
from app.media.recorder import check_output
from app.models.loading import load_segmentation
from app.overlay.gui import Gui
from app.settings.settings import Settings
from app.settings.watch import Watch
from app.signals import exit_code, stop_flag
from app.window.opening import open_window
from app.window.window import Window

_PATIENCE_S = 20.0  # for the first picture: some cameras take 12 s to open


class Waker:
    """Wakes a window that waits for events, from any thread, once there is one."""

    window: Window | None = None

    def __call__(self) -> None:
        if self.window:
            self.window.wake()


def live(watch: Watch, console: Console) -> tuple[dict[str, Any], int]:
    """Run it: what it came to, and the exit code, 0, or 130 or 143 if it was interrupted.

    Raises TexelflowError: no camera, no display, a file that is not there; one without an exit code for a window that
    was closed before the first picture.
    """
    settings, notice, tally, wake = watch.settings, "", Tally(), Waker()
    check(settings)
    with console.download() as progress:
        model = load_segmentation(settings.model, progress=progress)
    with contextlib.ExitStack() as stack:
        source = open_source(settings, wake)
        stack.callback(lambda: source.capture.close())
        title = f"{source.capture.description} - texelflow"
        window = open_window(source.first.picture.format.upright_size, title, settings.backend)
        wake.window = stack.enter_context(window)
        gui = Gui(window.context)
        stack.callback(gui.release)
        place = Place(window, gui, watch, console, tally.take)
        while True:
            with open_session(place, source, model, settings) as session, stop_flag() as stopped:
                session.say(notice)
                session.run(lambda: bool(stopped))
            if not session.desk.reopens:
                return tally.summary(), exit_code(stopped.number)
            source.capture.close()
            settings, notice, source = reopened(settings, session.desk.settings, wake)
            model = load_segmentation(settings.model)


def check(settings: Settings) -> None:
    """Raise TexelflowError for files that are not there, or cannot be written, before anything is opened."""
    choice = choice_of(settings)
    if choice.background:
        check_background(choice.background)
    for path in (settings.record, settings.mattes):
        if path and not wants_folder(Path(path), "mask"):
            check_output(path)


def open_source(settings: Settings, wake: Waker) -> OpenSource:
    """The source that is wanted, and its first picture. Raises SourceError."""
    capture = Capture(opener(settings.camera, wanted_of(settings)), wake)
    try:
        return OpenSource(capture, capture.first(_PATIENCE_S))
    except BaseException:
        capture.close()
        raise


def reopened(before: Settings, after: Settings, wake: Waker) -> tuple[Settings, str, OpenSource]:
    """The source by other settings, or by those before and a line that says why. Raises SourceError: by neither."""
    try:
        return after, "", open_source(after, wake)
    except SourceError as error:
        return before, str(error), open_source(before, wake)
