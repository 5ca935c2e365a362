"""What `replay` is asked to do goes in; what can be said against it comes out, before any work begins."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from app.frame.looks import Choice, LookOptions, choose_look
from app.frame.outputs import wants_folder
from app.media.recorder import check_output
from app.media.sources import Position
from app.models.spec import SpecOptions
from app.verbs.frame_log import check_log
from app.verbs.trace import check_trace
from app.window.pacing import FASTEST, SLOWEST
from gpu_delegate.errors import UsageError
from gpu_delegate.layout import Precision

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

    @property
    def keeps_all(self) -> bool:
        """Whether every frame counts, also in a window."""
        return self.out is not None or self.masks is not None

    @property
    def needs_picture(self) -> bool:
        """Whether anything is drawn."""
        return self.window or self.out is not None


def check_options(options: ReplayOptions) -> Choice:
    """The look that the options choose. Raises UsageError for options that do not go together, MediaError for files."""
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
    _check_distinct(options)
    if options.out and not wants_folder(options.out, choice.look.effect):
        check_output(options.out, options.file)
    if options.log:
        check_log(options.log)
    if options.trace:
        check_trace(options.trace)
    return choice


def _check_distinct(options: ReplayOptions) -> None:
    """No output may destroy the recording, or another output; links are followed."""
    named = {"--out": options.out, "--masks": options.masks, "--log": options.log, "--trace": options.trace}
    names = {os.path.realpath(options.file): "the input itself"}
    for name, path in named.items():
        other = names.setdefault(os.path.realpath(path), name) if path else name
        if other != name:
            raise UsageError(f"{name} {path}: that is {other}; choose another name")


def _check_without_window(options: ReplayOptions) -> None:
    for name, given in (("--speed", options.speed is not None), ("--loop", options.loop)):
        if given:
            raise UsageError(f"{name} needs --window: without one every frame runs as fast as it can, once")
    if options.overlay and not options.out:
        raise UsageError("--overlay needs --out or --window: it is drawn into the picture")
