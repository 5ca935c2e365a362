"""The options of `replay`: checked before any work begins, and the files that they name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.layout import stores_halves

from ..files import Files, Read, Write
from ..frame.looks.moving_background import check_background
from ..media.media_inputs import input_kind
from ..media.piece_source import FrameIndex
from ..media.sources import Position
from ..outputs.output_worker import Sink
from ..session.derived import asked_memory, check_hybrid, check_videos, chosen_look_of, reads_of, writes_any, writes_of
from ..session.pacing import FASTEST, SLOWEST
from ..settings.config_watch import ConfigWatch
from ..settings.settings import Settings

_OF_WINDOWS = ("fullscreen", "panel", "side_by_side")


@dataclass(frozen=True)
class ReplayOptions:
    """One replay: what of a file, by which settings, to where. `speed` is for a window.

    `flags` are the settings that were given, values by name, which count above those of the file `config`.
    """

    file: Path
    flags: Mapping[str, object] = field(default_factory=dict)
    first: Position = 0
    last: Position | None = None
    log: Path | None = None
    trace: Path | None = None
    window: bool = False
    speed: float | None = None
    loop: bool = False
    closes: bool = False  # a window that nobody has touched closes at the end
    force: bool = False  # what is there may be written over
    config: Path | None = None
    made_by: str | None = None  # tags outputs that are finished
    pipes_pictures: bool = False  # a pipe gets PNG, not a video
    settings: Settings | None = None  # in place of a file of settings
    index: FrameIndex | None = None  # of the file, where somebody has it
    piece_lead: int | None = None  # first to last is a piece, to be joined with others; the network sees so many before
    most_frame_bytes: int | None = None  # of the frames that are in memory; what needs more is refused
    sampled_every: int = 0  # of so many frames one is compared with TensorFlow Lite; 0: none
    taker: Sink | None = None  # gets the pictures, too

    def watch(self) -> ConfigWatch:
        """The settings, and what watches their file. Raises UsageError."""
        return ConfigWatch(self.config, self.flags, "replay", self.settings, overlay=self.window)


def check_options(options: ReplayOptions, settings: Settings) -> None:
    """Raise UsageError for what does not go together, MediaError for a background that is no good."""
    keeps_all = writes_any(settings)
    if settings.backend == "cpu" and stores_halves(settings.precision):
        raise UsageError(f"--precision {settings.precision} is for the GPU: leave it or --backend cpu out")
    check_hybrid(settings.hybrid, settings.backend, settings.cpu)
    asked_memory(settings)
    if not options.window:
        _check_without_window(options, settings)
    if options.speed is not None and not SLOWEST <= options.speed <= FASTEST:
        raise UsageError(f"--speed {options.speed:g}: a factor from {SLOWEST:g} to {FASTEST:g} is needed")
    if options.loop and keeps_all:
        raise UsageError("--loop does not go with --out, --masks or --cutouts: there would be no end to them")
    _check_look(options.flags, settings)
    check_videos(settings, strict=True, pipes_pictures=options.pipes_pictures)


def files_of(options: ReplayOptions, settings: Settings) -> Files:
    """What a replay reads and writes."""
    named = ("--log", options.log), ("--trace", options.trace)
    kinds = {"--log": "log", "--trace": "trace"}
    reports = [Write(flag, path, kinds[flag]) for flag, path in named if path]  # type: ignore[arg-type]
    return Files(
        (Read("the input itself", options.file), *reads_of(settings, options.config, "replay")),
        (*writes_of(settings, input_kind(str(options.file)) == "picture"), *reports),
    )


def _check_look(flags: Mapping[str, object], settings: Settings) -> None:
    """What was given for one effect alone goes with that effect; in a file it may wait for its effect."""
    effect, choice = settings.effect, chosen_look_of(settings)
    if flags.get("blur") and effect != "blur":
        raise UsageError(f"--blur goes with --effect blur, not with {effect}")
    if flags.get("background") and effect not in ("replace", "color"):
        raise UsageError(f"--background goes with --effect replace or color, not with {effect}")
    if flags.get("background") and effect == "color" and choice.background:
        raise UsageError(f"--background {choice.background}: the effect color takes a color such as #20c070")
    if choice.background and effect == "replace":
        check_background(choice.background)


def _check_without_window(options: ReplayOptions, settings: Settings) -> None:
    for name, given in (("--speed", options.speed is not None), ("--loop", options.loop)):
        if given:
            raise UsageError(f"{name} needs --window: without one every frame runs as fast as it can, once")
    for name in _OF_WINDOWS:
        if options.flags.get(name):
            raise UsageError(f"--{name.replace('_', '-')} needs --window")
    for name in ("overlay", "overlay_style", "overlay_corner", "overlay_scale"):
        if options.flags.get(name) and not (settings.out or options.taker):
            raise UsageError(f"--{name.replace('_', '-')} needs --out or --window: figures are drawn into the picture")
