"""`texelflow live`: shows a camera in a window, in recordings or as a virtual camera until the user quits."""

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import MediaError, TexelflowError, UsageError

from ..capture.opener import is_camera
from ..console import Console
from ..files import Files, Read, settle
from ..frame.looks.moving_background import check_background
from ..frame.stages.frame_pipeline import FrameRecord
from ..live.background_tuning import background_tuning
from ..live.loopback_readers import readers
from ..live.sourcing import OpenSource, Waker, on_demand, open_source, open_source_in_sight
from ..models.finding_loading import ShownModel
from ..names import free_name
from ..outputs.json_lines import JsonLines
from ..outputs.png_files import PIPE
from ..picture.video_frame import VideoFrame
from ..session.abilities import check_abilities
from ..session.derived import (
    asked_memory,
    check_hybrid,
    check_videos,
    chosen_look_of,
    reads_of,
    writes_any,
    writes_of,
)
from ..session.session import Session
from ..session.session_model import session_model
from ..session.session_opening import SessionHost, open_host_with_window, open_host_without_window, open_session
from ..settings.config_watch import ConfigWatch
from ..settings.settings import Settings
from ..signals import exit_code, stop_flag
from ..window.loading_screen import WindowClosedError


def live(watch: ConfigWatch, console: Console, window: bool = True) -> tuple[dict[str, Any], int]:
    """Run it: what it came to, and the exit code, 0, or 130 or 143 if it was interrupted.

    Without a window outputs alone take pictures. Raises TexelflowError: no camera, no display, a file that is not
    there; one without an exit code for a window that was closed before the first picture.
    """
    wake = Waker()
    check(watch.settings, watch.path)
    check_cameras(watch.settings, watch.flags)
    if not window:
        _check_without_window(watch.settings)
    with console.download() as progress:  # fetched before anything is opened; each session reads it
        model = session_model(watch.settings, progress)
    check_abilities(model, watch.settings, watch.flags)
    with contextlib.ExitStack() as stack:
        source = open_source(watch.settings, wake)
        stack.callback(source.close)
        host = stack.enter_context(_open_host(source, model, watch, console, window))
        wake.loop = host.wake
        if name := watch.settings.json_lines:
            host.observers.append(stack.enter_context(_lines(name, console)))
        stack.enter_context(background_tuning(host.compute, model, watch.settings))
        signal = _run(host, source, wake)
    return host.stats.summary(), exit_code(signal)


@contextlib.contextmanager
def _lines(name: str, console: Console) -> Iterator[Callable[[FrameRecord], None]]:
    """What writes a line for each frame, to a name that is free. A disk that is full ends that alone."""
    path = Path(name) if name == PIPE else free_name(Path(name), set())
    trouble = list[MediaError]()

    def add(record: FrameRecord) -> None:
        if not trouble:
            try:
                lines.add(record)
            except MediaError as error:
                trouble.append(error)
                console.warn(str(error))

    with JsonLines(path) as lines:
        yield add


def _open_host(
    source: OpenSource, model: ShownModel, watch: ConfigWatch, console: Console, window: bool
) -> contextlib.AbstractContextManager[SessionHost]:
    if window:
        return open_host_with_window(source.for_session(), model, "live", watch, console)
    console.note(f"{source.description}: Ctrl-C ends it")
    return open_host_without_window(True, model, "live", watch, console)


def _run(host: SessionHost, source: OpenSource, wake: Waker) -> int | None:
    """One session after the other, each as the one before asked for; the signal that ended it, if any.

    Where none can be had by some settings, those before count again, and a line says why. Raises TexelflowError.
    """
    settings, notice, last = host.watch.settings, "", source.first
    before: Settings | None = None
    reopened: OpenSource | None = source
    while True:
        with contextlib.ExitStack() as stack:
            try:
                reopened = reopened or _reopened(host, settings, wake, last)
                stack.callback(reopened.close)
                if host.window:
                    host.window.rename(reopened.title)
                session = stack.enter_context(_session(host, reopened, settings, wake))
            except TexelflowError as error:
                if before is None or isinstance(error, WindowClosedError):
                    raise
                settings, before, reopened, notice = before, None, None, str(error)
                continue
            with stop_flag() as stopped:
                if notice:
                    session.controller.complain(notice)
                session.run(lambda: bool(stopped))
        if not session.controller.reopens:
            return stopped.number
        before, settings, reopened, notice = settings, session.controller.settings, None, ""
        del session
        gc.collect()  # its parts refer to each other, and some hold much memory


@contextlib.contextmanager
def _session(host: SessionHost, source: OpenSource, settings: Settings, wake: Waker) -> Iterator[Session]:
    """A session; of a virtual camera alone, that nobody watches here, one camera is open while somebody reads it."""

    def read_by() -> int | None:
        outputs = session.parts.outputs
        alone = outputs.active == ("virtual camera",)  # whatever records meanwhile needs the camera as well
        return readers(outputs.camera_device) if alone and outputs.camera_device else None

    clock = None
    is_one = len(settings.cameras) == 1
    if host.window is None and settings.virtual_camera and is_one and not writes_any(settings):
        clock = on_demand(source, settings, wake, read_by)
    opened = open_session(host, source.for_session(clock), session_model(settings), settings, _checking(host))
    with opened as session, contextlib.ExitStack() as stack:
        if clock:
            stack.callback(clock.close)
        yield session


def _reopened(host: SessionHost, settings: Settings, wake: Waker, last: VideoFrame) -> OpenSource:
    if host.window and host.gui:
        return open_source_in_sight(settings, wake, host.window, host.gui, last)
    return open_source(settings, wake)


def _checking(host: SessionHost) -> Callable[[Settings], None]:
    return lambda settings: check_files(settings, host.watch.path)


def check(settings: Settings, config: Path | None) -> None:
    """Raise TexelflowError for what is not there, or cannot be written, before anything is opened.

    `config` is the file of these settings.
    """
    background = chosen_look_of(settings).background
    if background:
        check_background(background)
    check_videos(settings, strict=False)
    check_files(settings, config)
    check_hybrid(settings.hybrid, settings.backend, settings.cpu)
    asked_memory(settings)


def check_files(settings: Settings, config: Path | None) -> None:
    """Raise UsageError for outputs that are read, too, or cannot be written; those there get the next free number."""
    cameras = (Read("the camera", Path(camera)) for camera in settings.cameras)
    reads = (*cameras, *reads_of(settings, config, "live"))
    settle(Files(reads, tuple(write.numbered() for write in writes_of(settings))))


def check_cameras(settings: Settings, flags: Mapping[str, object]) -> None:
    """Raise UsageError for a camera that is named twice, and for options that go with one camera alone."""
    cameras = settings.cameras
    twice = next((camera for camera in cameras if is_camera(camera) and cameras.count(camera) > 1), None)
    if twice is not None:
        raise UsageError(f"--camera {twice} is there twice, and a camera can be opened once; name another one")
    if len(cameras) > 1 and flags.get("sound") and not settings.microphone:
        raise UsageError("--sound goes with one camera: of several no sound is recorded; name a --microphone")


def _check_without_window(settings: Settings) -> None:
    """Raise UsageError where nobody would get any picture."""
    if not (settings.virtual_camera or settings.json_lines or writes_any(settings)):
        outputs = "--out, --masks, --cutouts, --json-lines or --virtual-camera"
        raise UsageError(f"--no-window needs {outputs}: nobody would see a picture")
