"""Hands the newest picture of a camera, a stream or the test pattern to a taker in this program, without a window."""

import contextlib
import threading
from collections.abc import Callable
from time import perf_counter_ns

from ..console import Console
from ..frame.looks.moving_background import check_background
from ..outputs.output_worker import Sink
from ..session.abilities import check_abilities
from ..session.clock import NewestWins
from ..session.derived import asked_memory, check_hybrid, chosen_look_of
from ..session.session_model import session_model
from ..session.session_opening import open_host_without_window, open_session
from ..settings.config_watch import ConfigWatch
from .sourcing import OpenSource, Waker, open_source


def take_live(
    watch: ConfigWatch, console: Console, taker: Sink, stopping: threading.Event, opened: Callable[[OpenSource], None]
) -> None:
    """Run it until it is stopping, or the source ends. `opened` is called once there is a first picture.

    Raises TexelflowError: no camera, settings that a model cannot follow.
    """
    settings, wake = watch.settings, Waker()
    if background := chosen_look_of(settings).background:
        check_background(background)
    check_hybrid(settings.hybrid, settings.backend, settings.cpu)
    asked_memory(settings)
    with console.download() as progress:
        model = session_model(settings, progress)
    check_abilities(model, settings, watch.flags)
    with contextlib.ExitStack() as stack:
        source = open_source(settings, wake)
        stack.callback(source.close)
        opened(source)
        host = stack.enter_context(open_host_without_window(True, model, "live", watch, console))
        wake.loop = host.wake
        clock = NewestWins(source.captures[0], source.first)
        opening = open_session(host, source.for_session(clock), model, settings, lambda settings: None)
        session = stack.enter_context(opening)
        if clock.capture.has_new:
            clock.due(perf_counter_ns())  # the first is old by now: all was compiled meanwhile
        session.parts.outputs.begin_pictures(taker)
        session.run(stopping.is_set)
