"""What MediaPipe found in a few pictures and a clip, kept as numbers, for machines without it."""

import functools
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.tools.mediapipe_beside.drawn_people import DrawnClip, drawn_clips, drawn_stills, photo
from tests.tools.mediapipe_beside.held_beside import Job, Theirs, found_by_mediapipe, theirs_of

__all__ = ["kept_jobs", "kept_names", "kept_of", "read_kept", "write_kept"]

_DATA = Path(__file__).parents[2] / "data"
_KEPT = _DATA / "people" / "found_by_mediapipe.json"
_STILLS = {  # of drawn_stills, by their numbers
    "face-detection-short": (("hopper", 0), ("astronaut", 2)),
    "face-detection-full": (("hopper", 4), ("astronaut", 3)),
    "face-landmark": (("hopper", 0), ("hopper", 6), ("astronaut", 3)),
    "face-landmark-attention": (("astronaut", 0),),
    "hand-landmark-full": (("hand_point", 0), ("hand_half", 1), ("hand_fist", 7)),
    "pose-landmark": (("astronaut", 2), ("hopper", 5)),
}
_TRACKED = {"hand-landmark-full": "hand_fist", "face-landmark": "hopper"}
_FRAMES = 6


def kept_names() -> list[str]:
    """What each of `kept_jobs` is called: its solution, and what it is shown."""
    return [*(f"{solution}, pictures" for solution in _STILLS), *(f"{solution}, tracked" for solution in _TRACKED)]


@functools.cache
def kept_jobs() -> tuple[Job, ...]:
    """Pictures one by one, then clips."""
    photos = {
        path.stem: photo(path) for folder in ("people", "scenes/photos") for path in (_DATA / folder).glob("*.jpg")
    }
    other = {name: photos["hand_point" if name.startswith("hand") else "hopper"] for name in photos}
    jobs = []
    for solution, wanted in _STILLS.items():
        clips = tuple(list(drawn_stills(name, photos[name], other[name]))[place] for name, place in wanted)
        jobs.append(Job(solution, True, 1 if solution.startswith(("pose", "body")) else 2, clips))
    for solution, name in _TRACKED.items():
        clip = next(drawn_clips(name, photos[name], other[name]))
        jobs.append(Job(solution, False, 1, (replace(clip, frames=clip.frames[:_FRAMES]),)))
    return tuple(jobs)


def write_kept(python: Path) -> None:
    """Ask MediaPipe and keep what it says. Raises UsageError."""
    with tempfile.TemporaryDirectory() as folder:
        found_by_mediapipe(kept_jobs(), python, Path(folder))
        found = json.loads((Path(folder) / "found.json").read_text())
    for job in found:
        for clip in job:
            for frame in clip:
                for thing in frame:
                    thing["points"] = [[round(value, 2) for value in point] for point in thing["points"]]
                    if "certainty" in thing:
                        thing["certainty"] = [round(value, 3) for value in thing["certainty"]]
    _KEPT.write_text(json.dumps(found, separators=(",", ":")) + "\n")


def kept_of(solution: str) -> tuple[DrawnClip, tuple[Theirs, ...]]:
    """The first picture of a solution, and what MediaPipe found there."""
    place, job = next((place, job) for place, job in enumerate(kept_jobs()) if job.solution == solution)
    return job.clips[0], read_kept()[place][0][0]


def read_kept() -> list[list[list[tuple[Theirs, ...]]]]:
    """For each of the kept jobs and each of its clips, frame by frame."""
    return [
        [[tuple(theirs_of(thing, job.solution) for thing in frame) for frame in clip] for clip in clips]
        for job, clips in zip(kept_jobs(), json.loads(_KEPT.read_text()), strict=True)
    ]
