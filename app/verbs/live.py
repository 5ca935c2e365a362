"""Settings go in; a window shows the camera until the user closes it, and the figures of the run come out."""

import contextlib
import gc
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.errors import TexelflowError

from ..console import Console
from ..files import settle
from ..frame.moving_background import check_background
from ..live.sourcing import OpenSource, Waker, open_source, open_source_in_sight
from ..models.loading import load_segmentation
from ..session.derived import choice_of, files_of
from ..session.opening import Place, open_place, open_session
from ..session.run_stats import Tally
from ..settings.settings import Settings
from ..settings.watch import Watch
from ..signals import exit_code, stop_flag
from ..window.loading_screen import WindowClosedError


def live(watch: Watch, console: Console) -> tuple[dict[str, Any], int]:
    """Run it: the figures, and the exit code, 0, or 130 or 143 if it was interrupted.

    Raises TexelflowError: no camera, no display, a file that is not there; one without an exit code for a window that
    was closed before the first picture.
    """
    tally, wake = Tally(), Waker()
    check(watch.settings, watch.path)
    with console.download() as progress:  # fetched before anything is opened; each session reads it
        load_segmentation(watch.settings.model, progress=progress)
    with contextlib.ExitStack() as stack:
        source = open_source(watch.settings, wake)
        stack.callback(source.capture.close)
        place = stack.enter_context(open_place(source, _title(source), watch, wake, console, tally.take))
        signal = _run(place, source, wake)
    return tally.summary(), exit_code(signal)


def _run(place: Place, source: OpenSource, wake: Waker) -> int | None:
    """One session after the other, each as the one before asked for; the signal that ended it, if any.

    Where none can be had by some settings, those before count again, and a line says why. Raises TexelflowError.
    """
    settings, notice, last = place.watch.settings, "", source.first
    before: Settings | None = None
    reopened: OpenSource | None = source
    while True:
        with contextlib.ExitStack() as stack:
            try:
                reopened = reopened or open_source_in_sight(settings, wake, place.window, place.gui, last)
                stack.callback(reopened.capture.close)
                place.window.rename(_title(reopened))
                model = load_segmentation(settings.model)
                session = stack.enter_context(open_session(place, reopened, model, settings))
            except TexelflowError as error:
                if before is None or isinstance(error, WindowClosedError):
                    raise
                settings, before, reopened, notice = before, None, None, str(error)
                continue
            with stop_flag() as stopped:
                session.say(notice)
                session.run(lambda: bool(stopped))
        if not session.desk.reopens:
            return stopped.number
        before, settings, reopened, notice = settings, session.desk.settings, None, ""
        del session
        gc.collect()  # its parts refer to each other, and some hold much memory


def _title(source: OpenSource) -> str:
    return f"{source.capture.description} - texelflow"


def check(settings: Settings, config: Path) -> None:
    """Raise TexelflowError for files that are not there, or cannot be written, before anything is opened.

    `config` is the file of these settings.
    """
    choice = choice_of(settings)
    if choice.background:
        check_background(choice.background)
    settle(files_of(settings, config))
