"""Runs MediaPipe and the program on the same clips, and says how far apart what they find is."""

import itertools
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers.still_frames import frame_of
from tests.tools.mediapipe_beside.drawn_people import DrawnClip
from texelflow.app.models.decoders.found import Finding, Points
from texelflow.app.tracking.finder import FrameFinder
from texelflow.app.tracking.region_rules import around_box
from texelflow.app.tracking.solutions import Solution, solution_of
from texelflow.gpu_delegate.base.errors import UsageError

__all__ = [
    "SOLUTIONS_BESIDE",
    "Apart",
    "FinderMaker",
    "Job",
    "Theirs",
    "apart",
    "found_by_mediapipe",
    "found_by_us",
    "noisy",
    "theirs_apart",
    "theirs_of",
]

SOLUTIONS_BESIDE = (
    "face-detection-short", "face-detection-full", "face-landmark", "face-landmark-attention", "hand-landmark-full",
    "hand-landmark-lite", "pose-landmark", "body-hands",
)  # fmt: skip
_SCRIPT = Path(__file__).parent / "mediapipe_script.py"
_SEEN = 0.5
_BOXED = 10  # with fewer points things have boxes of their own
_MIRRORED = {"left": "right", "right": "left"}
FinderMaker = Callable[[Solution, int], FrameFinder]


@dataclass(frozen=True)
class Theirs:
    """One thing that MediaPipe found, in pixels."""

    points: Points
    box: tuple[float, float, float, float]
    label: str
    seen: npt.NDArray[np.bool_]  # which points count: those of a body that are to be seen


@dataclass(frozen=True)
class Job:
    """Clips for one solution; `still`: each frame by itself."""

    solution: str
    still: bool
    most: int
    clips: Sequence[DrawnClip] = field(repr=False)


@dataclass
class Apart:
    """How far apart things in frames of a kind are."""

    frames: int = 0
    same_number: int = 0
    theirs: int = 0
    ours: int = 0
    same_label: int = 0
    paired: int = 0
    overlaps: list[float] = field(default_factory=list)
    means: list[float] = field(default_factory=list)  # of a thing's points, as shares of its size
    farthest: list[float] = field(default_factory=list)
    shifts: list[tuple[float, float]] = field(default_factory=list)  # of all points, in pixels

    @property
    def figures(self) -> dict[str, float]:
        """What a row says; without overlaps and distances where nothing was found by both."""
        said: dict[str, float] = {
            name: getattr(self, name) for name in ("frames", "theirs", "ours", "same_number", "same_label", "paired")
        }
        if self.paired:
            said |= {"overlap mean": float(np.mean(self.overlaps)), "overlap least": min(self.overlaps)}
            said |= {"apart mean": float(np.mean(self.means)), "apart 95": float(np.percentile(self.means, 95))}
            said |= {"apart most": max(self.means), "farthest point": max(self.farthest)}
            x, y = np.mean(self.shifts, axis=0).tolist()
            said |= {"shift x": x, "shift y": y}
        return said


def found_by_mediapipe(jobs: Sequence[Job], python: Path, folder: Path) -> list[list[list[tuple[Theirs, ...]]]]:
    """For each job and clip of it, frame by frame. Raises UsageError where the script fails."""
    listed = []
    for number, job in enumerate(jobs):
        names = [f"{number}_{place}.npy" for place in range(len(job.clips))]
        for name, clip in zip(names, job.clips, strict=True):
            np.save(folder / name, clip.frames)
        listed.append({"solution": job.solution, "still": job.still, "most": job.most, "clips": names})
    (folder / "jobs.json").write_text(json.dumps(listed))
    run = subprocess.run([python, _SCRIPT, folder], capture_output=True, text=True, check=False)
    if run.returncode:
        raise UsageError(f"MediaPipe's script failed: {run.stderr.strip().splitlines()[-1:]}")
    found = json.loads((folder / "found.json").read_text())
    return [
        [[tuple(theirs_of(thing, job.solution) for thing in frame) for frame in clip] for clip in clips]
        for job, clips in zip(jobs, found, strict=True)
    ]


def theirs_of(thing: dict[str, Any], solution: str) -> Theirs:
    """One thing of the script's list; labels of hands as their owners have them."""
    points = np.array(thing["points"], np.float32).reshape(-1, 3)
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    box = tuple(thing.get("box") or [*low.tolist(), *high.tolist()])
    label = thing.get("label", "")
    if solution.startswith("hand-"):
        label = _MIRRORED[label]
    seen = np.ones(len(points), bool)
    if solution == "pose-landmark":
        seen = np.array(thing["certainty"]) >= _SEEN
    return Theirs(points, box, label, seen)


def found_by_us(job: Job, made: FinderMaker) -> list[list[tuple[Finding, ...]]]:
    """The same for one job."""
    solution = _as_theirs(job.solution)
    found = list[list[tuple[Finding, ...]]]()
    for clip in job.clips:
        finder = made(solution, job.most)
        found.append([])
        for index, frame in enumerate(clip.frames):
            if job.still:
                finder.begin_anew()
            found[-1].append(finder.find(frame_of(frame, index)))
    return found


def noisy(job: Job) -> Job:
    """The same with noise of at most one level of 255 in all frames."""
    generator = np.random.default_rng(1)

    def noised(clip: DrawnClip) -> DrawnClip:
        noise = generator.integers(-1, 2, clip.frames.shape)
        return replace(clip, frames=np.clip(clip.frames.astype(np.int16) + noise, 0, 255).astype(np.uint8))

    return replace(job, clips=tuple(noised(clip) for clip in job.clips))


def theirs_apart(figures: Apart, theirs: Sequence[Theirs], others: Sequence[Theirs]) -> None:
    """As apart, of MediaPipe and itself."""
    findings = [
        Finding("", 1.0, around_box(other.box) if len(other.points) < _BOXED else None, other.label, other.points)
        for other in others
    ]
    apart(figures, theirs, findings)


def _as_theirs(name: str) -> Solution:
    """A solution with the filters that MediaPipe's has, only bodies', whose detector looks at each frame as there."""
    solution = solution_of(name)
    if not solution:
        raise UsageError(f"no solution is called {name}")
    followed = solution.followed
    if followed and not name.startswith(("pose", "body")):
        followed = replace(followed, filter=None)
    return replace(solution, followed=followed, looks_again_s=0.0, shows_whole=False)


def apart(figures: Apart, theirs: Sequence[Theirs], ours: Sequence[Finding]) -> None:
    """Add what one frame says."""
    figures.frames += 1
    figures.theirs += len(theirs)
    figures.ours += len(ours)
    figures.same_number += len(theirs) == len(ours)
    for thing, near in nearest_pairs(theirs, ours):
        figures.paired += 1
        figures.same_label += near.label == thing.label
        points, wanted = near.points[thing.seen, :2], thing.points[thing.seen, :2]
        low, high = wanted.min(axis=0), wanted.max(axis=0)
        distances = np.hypot(*(points - wanted).T) / (high - low).max()
        figures.means.append(float(distances.mean()))
        figures.farthest.append(float(distances.max()))
        figures.shifts.append(tuple((points - wanted).mean(axis=0).tolist()))
        if len(thing.points) < _BOXED:
            figures.overlaps.append(overlap_of(near.box, thing.box))
        else:
            figures.overlaps.append(overlap_of(_box_of(points), (*low.tolist(), *high.tolist())))


def nearest_pairs(theirs: Sequence[Theirs], ours: Sequence[Finding]) -> list[tuple[Theirs, Finding]]:
    """The nearest two, then the nearest two of the others."""
    by_distance = sorted(
        (_distance(ours[j], theirs[i]), i, j) for i, j in itertools.product(range(len(theirs)), range(len(ours)))
    )
    pairs, left, right = [], set[int](), set[int]()
    for _, i, j in by_distance:
        if i not in left and j not in right:
            pairs.append((theirs[i], ours[j]))
            left.add(i)
            right.add(j)
    return pairs


def overlap_of(first: Sequence[float], second: Sequence[float]) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    wide = min(first[2], second[2]) - max(first[0], second[0])
    high = min(first[3], second[3]) - max(first[1], second[1])
    common = max(wide, 0) * max(high, 0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return common / (areas - common) if areas > common else 0.0


def _distance(finding: Finding, thing: Theirs) -> float:
    return float(np.abs(finding.points[:, :2].mean(axis=0) - thing.points[:, :2].mean(axis=0)).sum())


def _box_of(points: npt.NDArray[np.float32]) -> tuple[float, float, float, float]:
    (left, top), (right, bottom) = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    return float(left), float(top), float(right), float(bottom)
