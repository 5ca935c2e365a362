"""Replays one recording: its frames run through a session to a video, masks, a log, or a window that plays it."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import MediaError

from ..console import Console, Report, counted
from ..files import settle
from ..frame.stages.frame_pipeline import DECODE, FrameRecord
from ..media.feed import Feed
from ..media.media_inputs import open_input
from ..media.piece_source import PieceSource
from ..media.recording import Recording, VideoInfo
from ..media.seeking import SeekableSource
from ..models.finding_loading import ShownModel
from ..outputs.file_sinks import Timing
from ..outputs.frame_log import FrameLog
from ..outputs.json_lines import JsonLines
from ..outputs.png_files import PIPE
from ..outputs.trace import TraceWriter
from ..picture.picture import PictureFormat
from ..session.abilities import check_abilities
from ..session.clock import EveryFrame
from ..session.derived import lead_of, reach_of, trail_of, writes_any
from ..session.pacing import Pacer
from ..session.playback import Playback
from ..session.session import Session
from ..session.session_opening import SessionHost, SessionSource, open_host_with_window, open_session
from ..settings.config_watch import ConfigWatch
from ..settings.settings import Settings
from ..signals import exit_code, stop_flag
from ..threads import ahead
from .held_frames import most_frame_bytes
from .replay_engine import ReplayEngine
from .replay_options import ReplayOptions, check_options, files_of
from .summary import summarize_replay

_GIB = 1 << 30
CUT_OFF = 3  # exit code: what there was of the recording has been done


def replay(
    options: ReplayOptions, console: Console, report: Report | None = None, engine: ReplayEngine | None = None
) -> tuple[dict[str, Any], int]:
    """Run it: what it came to, and the exit code, 0, 3 for a recording cut off, 130 or 143 if it was interrupted.

    `report` gets (frames so far, in all) in place of a progress of its own. An `engine` keeps what the next one needs,
    too, but of windows; it may end the replay, as a signal does. No file is touched before all is opened and compiled.
    Raises TexelflowError, one without an exit code for a window that was closed before the first frame; what was
    recorded before stays, and can be played.
    """
    watch = options.watch()
    check_options(options, watch.settings)
    force = settle(files_of(options, watch.settings), options.force)
    with contextlib.ExitStack() as stack:
        engine = engine or stack.enter_context(ReplayEngine(console))
        opened = _open(options, watch, engine, stack)
        summary, signal = _run(options, watch.settings, opened, force, report)
    for line in summary["warnings"]:
        console.warn(line)
    if summary["interrupted"]:
        frames = counted(summary["frames"], "frame")
        console.warn(f"interrupted after {frames}; what was written is complete")
    return summary, exit_code(signal) or (CUT_OFF if summary["cut_off"] else 0)


@dataclass(frozen=True)
class _Opened:
    """A recording that is open, and where it is shown."""

    recording: Recording | SeekableSource
    source: SessionSource
    model: ShownModel
    host: SessionHost
    engine: ReplayEngine

    def interrupt(self) -> None:
        """Let nobody wait for frames that may never come."""
        if isinstance(self.recording, Recording):
            self.recording.interrupt()


def _open(options: ReplayOptions, watch: ConfigWatch, engine: ReplayEngine, stack: contextlib.ExitStack) -> _Opened:
    settings = watch.settings
    recording, source = (source_to_watch if options.window else source_to_run)(options, settings, stack)
    model = engine.model(settings)  # fetched and read before anything is opened to show it
    check_abilities(model, settings, options.flags)
    if model.remembers and options.piece_lead is None and not isinstance(recording, SeekableSource):
        recording.lead = lead_of(settings, remembers=True)
    if options.window:
        host = open_host_with_window(source, model, "replay", watch, engine.console)
    else:
        host = engine.host(watch, draws=options.taker is not None)
    return _Opened(recording, source, model, stack.enter_context(host), engine)


def source_to_run(
    options: ReplayOptions, settings: Settings, stack: contextlib.ExitStack
) -> tuple[Recording, SessionSource]:
    """Every frame, as fast as it goes."""
    file = stack.enter_context(_piece(options) or open_input(options.file, options.first, options.last))
    _check_memory(options, settings, file.format)
    file.lead = lead_of(settings) if options.piece_lead is None else options.piece_lead
    file.trail = trail_of(settings)
    frames = stack.enter_context(contextlib.closing(ahead(iter(file))))
    stack.callback(file.interrupt)  # first of all: closing `frames` waits for the one that is being read
    clock = EveryFrame(frames, float(1000 / file.info.average_rate), str(options.file))
    return file, SessionSource(
        clock, file.format, timing_of(options, file.info), options.file.name, options.file, lambda: None,
        made_by=options.made_by, pipes_pictures=options.pipes_pictures,
        piece_first=None if options.piece_lead is None else int(options.first),
    )  # fmt: skip


def source_to_watch(
    options: ReplayOptions, settings: Settings, stack: contextlib.ExitStack
) -> tuple[SeekableSource, SessionSource]:
    """At its own pace, controlled by the user; every frame where it is recorded meanwhile."""
    file = stack.enter_context(SeekableSource(options.file, options.first, options.last))
    feed = stack.enter_context(contextlib.closing(Feed(file)))
    pacer = Pacer(options.speed or 1.0, keeps_all=writes_any(settings))
    clock = Playback(file, feed, pacer, options.loop)
    return file, SessionSource(
        clock, file.format, timing_of(options, file.info), f"{options.file.name} - texelflow", options.file, feed.peek,
        made_by=options.made_by,
    )  # fmt: skip


def _check_memory(options: ReplayOptions, settings: Settings, frame: PictureFormat) -> None:
    """Raise MediaError for frames that are larger than is allowed."""
    outputs = sum(map(bool, (settings.out, settings.masks, settings.cutouts)))
    needed = most_frame_bytes(frame, outputs, reach_of(settings))
    if options.most_frame_bytes is not None and needed > options.most_frame_bytes:
        (width, height), most = frame.size, options.most_frame_bytes
        asked = f"would take {needed / _GIB:.1f} GiB of memory, of {most / _GIB:.1f} GiB that are allowed"
        raise MediaError(f"'{options.file}': its frames of {width}x{height} {asked}; scale it down")


def _piece(options: ReplayOptions) -> PieceSource | None:
    """A piece of a recording, if that is what is asked for."""
    if options.piece_lead is None:
        return None
    first, last = options.first, options.last
    assert isinstance(first, int), "pieces are counted in frames"
    assert isinstance(last, int)
    return PieceSource(options.file, first, last, options.index)


def timing_of(options: ReplayOptions, info: VideoInfo) -> Timing:
    cut = options.first != 0 or options.last is not None
    has_sound = info.has_audio and str(options.file) != PIPE and options.piece_lead is None  # a pipe is read but once
    sound = options.file if has_sound else None
    return Timing(info.time_base, info.average_rate, info.sample_aspect_ratio, sound, cut)


def _run(
    options: ReplayOptions, settings: Settings, opened: _Opened, force: bool, report: Report | None
) -> tuple[dict[str, Any], int | None]:
    """All frames, until the end, a signal, or the user quits: the figures, and the signal."""
    host = opened.host

    def check_files(changed: Settings) -> None:
        settle(files_of(options, changed), force)  # while all was compiled others may have written

    if options.sampled_every:
        total = expected_frames(options, opened.recording.info)
        opened.engine.sample(host, settings, opened.source.format, options.sampled_every, total)
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(open_session(host, opened.source, opened.model, settings, check_files))
        check_files(settings)
        if options.taker:
            session.parts.outputs.begin_pictures(options.taker)
        reports = stack.enter_context(_reports(options, session))
        host.observers.append(reports.add)
        with stop_flag(opened.interrupt) as stopped, _progress(options, opened, report) as shown:
            host.observers.append(shown)
            _run_session(session, lambda: bool(stopped) or opened.engine.stopping.is_set(), options.closes)
            interrupted = bool(stopped) or opened.engine.stopping.is_set()
        session.finish()
        frames = counted(host.stats.frames, "frame")
        session.written += [
            f"written: {path} ({frames})"
            for path in (options.log, settings.json_lines, options.trace)
            if path and host.stats.frames
        ]
        summary = summarize_replay(options, settings, opened.recording, session, host, interrupted)
        reports.close(summary)
    return summary, stopped.number


def _run_session(session: Session, stopped: Callable[[], bool], closes: bool) -> None:
    """Until its end or a signal; what the source lacks because the signal ended it is no error of its own."""
    try:
        session.run(lambda: stopped() or (closes and _watched(session)))
    except MediaError:  # of the outputs: finishing them raises it again
        if not stopped():
            raise


def _watched(session: Session) -> bool:
    """Whether the last frame is shown, and no key was pressed."""
    playback = session.parts.playback
    return playback is not None and playback.at_end and not session.controller.touched


@contextlib.contextmanager
def _progress(
    options: ReplayOptions, opened: _Opened, report: Report | None
) -> Iterator[Callable[[FrameRecord], None]]:
    """What counts frames on a terminal; a window shows where it is by itself."""
    if options.window:
        yield lambda record: None
        return
    total, stats = expected_frames(options, opened.recording.info), opened.host.stats
    with contextlib.ExitStack() as stack:
        shown = report or stack.enter_context(opened.host.console.frames(options.file.name))
        shown(0, total)
        yield lambda record: shown(stats.frames, total)


def expected_frames(options: ReplayOptions, info: VideoInfo) -> int:
    """How many frames are to come, for the progress bar; 0 if nobody knows."""
    first, last = (
        position if isinstance(position, int) or position is None else int(position * info.average_rate)
        for position in (options.first, options.last)
    )
    count = info.frame_count or 0
    end = count if last is None else min(last + 1, count) if count else last + 1
    return max(0, end - (first or 0))


class _Reports:
    """The log, the lines of what was found and the trace, as far as they were asked for."""

    def __init__(self, log: FrameLog | None, lines: JsonLines | None, trace: TraceWriter | None) -> None:
        self._log, self._others = log, [each for each in (lines, trace) if each]

    def add(self, record: FrameRecord) -> None:
        """One more frame. Raises MediaError."""
        if self._log:
            self._log.add(record)
        for each in self._others:
            each.add(record)

    def close(self, summary: dict[str, Any]) -> None:
        """No more frames will come; the log gets the summary. Raises MediaError."""
        if self._log:
            self._log.close(summary)
        for each in self._others:
            each.close()


@contextlib.contextmanager
def _reports(options: ReplayOptions, session: Session) -> Iterator[_Reports]:
    """No file is opened before there is a record."""
    parts = session.parts
    names = (DECODE, *parts.pipeline.names)
    with contextlib.ExitStack() as stack:
        finds = parts.stages.current.finder is not None
        name = session.controller.settings.json_lines
        lines = stack.enter_context(JsonLines(Path(name))) if name else None
        log = stack.enter_context(FrameLog(options.log, names, session.dispatches, finds)) if options.log else None
        trace = stack.enter_context(TraceWriter(options.trace)) if options.trace else None
        if trace:
            span = trace.span
            parts.outputs.observe = lambda kind, start_ns, took_ms: span(f"encode {kind}", "write", start_ns, took_ms)
        yield _Reports(log, lines, trace)
