"""What `replay` is asked to do goes in; what can be said against it, and its files, come out before any work begins."""

from dataclasses import dataclass, field
from pathlib import Path

from texelflow.gpu_delegate.errors import UsageError
from texelflow.gpu_delegate.layout import Precision

from ..files import Files, Kind, Read, Write
from ..frame.looks import Choice, LookOptions, choose_look, look_of
from ..frame.outputs import wants_folder
from ..media.sources import Position
from ..models.catalogue import place_of
from ..models.spec import SpecOptions
from .pacing import FASTEST, SLOWEST

FITS = ("stretch", "crop", "letterbox")


@dataclass(frozen=True)
class ReplayOptions:
    """One replay: what of a file, through which model, to where. `speed` is for a window."""

    file: Path
    out: Path | None = None
    look: LookOptions = field(default_factory=LookOptions)
    masks: Path | None = None
    first: Position = 0
    last: Position | None = None
    log: Path | None = None
    trace: Path | None = None
    model: str = "selfie"
    backend: str = "auto"
    precision: Precision = "fp32"
    fit: str = "stretch"
    spec: SpecOptions = field(default_factory=SpecOptions)
    window: bool = False
    overlay: bool | None = None  # None: in windows, not in recordings
    speed: float | None = None
    loop: bool = False
    closes: bool = False  # a window that nobody has touched closes at the end
    force: bool = False  # what is there may be written over

    @property
    def keeps_all(self) -> bool:
        """Whether every frame counts, also in a window."""
        return self.out is not None or self.masks is not None

    @property
    def needs_picture(self) -> bool:
        """Whether anything is drawn."""
        return self.window or self.out is not None


def check_options(options: ReplayOptions) -> Choice:
    """The look that the options choose. Raises UsageError, and MediaError for a background that is no good."""
    if options.fit not in FITS:
        raise UsageError(f"--fit {options.fit}: one of {', '.join(FITS)} is needed")
    if options.backend == "cpu" and options.precision != "fp32":
        raise UsageError(f"--precision {options.precision} is for the GPU: leave it or --backend cpu out")
    if not options.window:
        _check_without_window(options)
    if options.speed is not None and not SLOWEST <= options.speed <= FASTEST:
        raise UsageError(f"--speed {options.speed:g}: a factor from {SLOWEST:g} to {FASTEST:g} is needed")
    if options.loop and options.keeps_all:
        raise UsageError("--loop does not go with --out or --masks: there would be no end to them")
    choice = choose_look(options.look)
    if options.out:
        wants_folder(options.out, choice.look.effect)
    return choice


def files_of(options: ReplayOptions) -> Files:
    """What a replay by options that have been checked reads and writes."""
    background = look_of(options.look).background
    reads = [Read("the input itself", options.file), Read("the model", place_of(options.model))]
    reads += [Read("the background", background)] if background else []
    named: list[tuple[str, Path | None, Kind]] = [
        ("--out", options.out, "pictures" if options.out and wants_folder(options.out, "tint") else "video"),
        ("--masks", options.masks, "pictures"),
        ("--log", options.log, "log"),
        ("--trace", options.trace, "trace"),
    ]
    return Files(tuple(reads), tuple(Write(option, path, kind) for option, path, kind in named if path))


def _check_without_window(options: ReplayOptions) -> None:
    for name, given in (("--speed", options.speed is not None), ("--loop", options.loop)):
        if given:
            raise UsageError(f"{name} needs --window: without one every frame runs as fast as it can, once")
    if options.overlay and not options.out:
        raise UsageError("--overlay needs --out or --window: it is drawn into the picture")
