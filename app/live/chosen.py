"""Settings go in; what they ask of each part of a session comes out."""

from app.capture.source import Wanted
from app.frame.looks import Choice, LookOptions, look_of
from app.frame.refine import Refinement
from app.live.workload import Work
from app.settings.settings import Settings, parse_size


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
