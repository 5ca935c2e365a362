"""Settings go in; what they ask of each part of a session comes out."""

from pathlib import Path

from ..capture.source import Wanted
from ..files import Files, Kind, Read, Write
from ..frame.looks import Choice, LookOptions, look_of
from ..frame.outputs import wants_folder
from ..frame.refine import Refinement
from ..models.catalogue import place_of
from ..settings.settings import Settings, parse_size
from .workload import Work


def wanted_of(settings: Settings) -> Wanted:
    """Of a source; a recording begins again at its end, as a camera has none."""
    return Wanted(parse_size(settings.size), settings.fps, settings.pixels, settings.api, loop=True)


def choice_of(settings: Settings) -> Choice:
    """Of pictures. Opens no file."""
    return look_of(
        LookOptions(
            effect=settings.effect,
            background=settings.background or None,
            blur=settings.blur or None,
            light_wrap=settings.light_wrap,
            threshold=settings.threshold,
            softness=settings.softness,
            gamma=settings.gamma,
            mirror=settings.mirror,
            side_by_side=settings.side_by_side,
        )
    )


def refinement_of(settings: Settings) -> Refinement:
    """Of masks."""
    return Refinement(settings.edges, settings.smooth, int(settings.delay_video))


def work_of(settings: Settings) -> Work:
    """Of the network."""
    return Work(settings.every, settings.skip_still, settings.still_db, settings.auto)


def files_of(settings: Settings, config: Path) -> Files:
    """Of the disk; `config` is the file of settings. Outputs that are there already get the next free number."""
    reads = [Read("the file of settings", config), Read("the camera", Path(settings.camera))]
    reads += [Read("a model", place_of(name)) for name in (settings.model, settings.small_model) if name]
    if background := choice_of(settings).background:
        reads.append(Read("the background", background))
    mattes: Kind = "pictures" if settings.mattes and wants_folder(Path(settings.mattes), "mask") else "video"
    named: list[tuple[str, str, Kind]] = [
        ("--record", settings.record, "video"),
        ("--mattes", settings.mattes, mattes),
        ("--cutouts", settings.cutouts, "pictures"),
    ]
    return Files(tuple(reads), tuple(Write(flag, Path(path), kind, "numbered") for flag, path, kind in named if path))
