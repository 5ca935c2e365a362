"""Hold faces, hands and people that are found against MediaPipe's own solutions: a table, in the same run.

    pip install mediapipe==0.10.21                 # in an environment of its own, with Python 3.9 to 3.12
    python -m tests.tools.mediapipe_beside --python ENVIRONMENT/bin/python
    python -m tests.tools.mediapipe_beside --python ... --pictures FOLDER --networks native --solution face-landmark

Each photograph is shown as it is, turned, small, large, at the edge and beside another one, each by itself
(static_image_mode), and moving, in clips that are tracked. Distances are means over a thing's points, as shares of its
size, the longer side of the box around them; of bodies those points count that MediaPipe calls visible. `itself` is how
far MediaPipe is from MediaPipe on the same frames with noise of one level of 255: what no other program can be below.

--networks says what computes ours: `bytes` is TensorFlow Lite on pixels that OpenCV cuts and rounds as MediaPipe's
graphs for CPUs do, `floats` the same without rounding, `native` the program's own code for CPUs.

--write keeps MediaPipe's numbers for tests/data/people, which tests compare with where MediaPipe is not installed.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.helpers.oracle_networks import oracle_finder
from tests.tools.command import run_tool
from tests.tools.mediapipe_beside.drawn_people import drawn_clips, drawn_stills, photo, with_others
from tests.tools.mediapipe_beside.held_beside import (
    SOLUTIONS_BESIDE,
    Apart,
    FinderMaker,
    Job,
    apart,
    found_by_mediapipe,
    found_by_us,
    noisy,
    theirs_apart,
)
from tests.tools.mediapipe_beside.kept_numbers import write_kept
from tests.tools.mediapipe_beside.native_finder import native_finder
from texelflow.app.console import Console
from texelflow.app.verb_options import JsonOption
from texelflow.gpu_delegate.base.errors import UsageError

_DATA = Path(__file__).parents[2] / "data"
_PHOTOS = (_DATA / "people", _DATA / "scenes" / "photos")
_WAYS: dict[str, FinderMaker] = {
    "bytes": lambda solution, most: oracle_finder(solution, most, in_bytes=True),
    "floats": oracle_finder,
    "native": native_finder,
}


def mediapipe_beside_tool(
    python: Annotated[Path, typer.Option(metavar="FILE", help="Of an environment with mediapipe 0.10.21.")],
    pictures: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER", help="With photographs, several times for several.")
    ] = None,
    solution: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"Of {', '.join(SOLUTIONS_BESIDE)}; several times.")
    ] = None,
    networks: Annotated[str, typer.Option(metavar="WAY", help=f"{', '.join(_WAYS)}.")] = "native",
    each: Annotated[bool, typer.Option("--each", help="A row for each picture and clip.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Keep MediaPipe's numbers in tests/data/people.")] = False,
    json: JsonOption = False,
) -> int:
    """Hold faces, hands and people that are found against MediaPipe's own solutions."""
    console = Console(quiet=json)
    names = tuple(solution or SOLUTIONS_BESIDE)
    unknown = [name for name in names if name not in SOLUTIONS_BESIDE]
    if unknown or networks not in _WAYS:
        raise UsageError(f"{[*unknown, networks][0]}: one of {', '.join([*SOLUTIONS_BESIDE, *_WAYS])} is needed")
    if write:
        write_kept(python)
        return 0
    rows: dict[tuple[str, str], tuple[Apart, Apart]] = {}
    for name in names:
        _hold(_jobs(name, _photographs(pictures or _PHOTOS)), python, _WAYS[networks], each, rows)
    console.table(
        f"MediaPipe 0.10.21 and ours, {networks}",
        [
            "solution",
            "frames",
            "found by it, by us",
            "as many",
            "IoU mean, least",
            "% apart: mean, 95 %, most",
            "itself",
        ],
        [_row(key, *row) for key, row in rows.items()],
    )
    if json:
        console.json([{"solution": name, "kind": kind, **row.figures} for (name, kind), (row, _) in rows.items()])
    return 0


def _hold(
    jobs: Sequence[Job],
    python: Path,
    made: FinderMaker,
    each: bool,
    rows: dict[tuple[str, str], tuple[Apart, Apart]],
) -> None:
    """Run jobs by MediaPipe, again with noise, and by us, and add to the rows what that says."""
    with tempfile.TemporaryDirectory() as folder:
        theirs = found_by_mediapipe(jobs, python, Path(folder))
        itself = found_by_mediapipe([noisy(job) for job in jobs], python, Path(folder))
    for job, their, other in zip(jobs, theirs, itself, strict=True):
        for clip, frames, noised, ours in zip(job.clips, their, other, found_by_us(job, made), strict=True):
            kind = clip.name if each else "pictures" if job.still else "tracked"
            row = rows.setdefault((job.solution, kind), (Apart(), Apart()))
            for of_theirs, of_noised, of_ours in zip(frames, noised, ours, strict=True):
                apart(row[0], of_theirs, of_ours)
                theirs_apart(row[1], of_theirs, of_noised)


def _photographs(folders: Sequence[Path]) -> list[tuple[str, Path]]:
    found = [(path.stem, path) for folder in folders for path in sorted(folder.glob("*.jpg"))]
    if not found:
        raise UsageError(f"{', '.join(map(str, folders))}: no .jpg is there")
    return found


def _jobs(name: str, photographs: Sequence[tuple[str, Path]]) -> list[Job]:
    named_hands = [(title, path) for title, path in photographs if title.startswith("hand_")]
    others = [(title, path) for title, path in photographs if not title.startswith("hand_")]
    shown = named_hands or others if name.startswith("hand-") else others
    photos = [(title, photo(path)) for title, path in shown]
    most = 1 if name.startswith(("pose", "body")) else 8
    jobs = []
    for title, picture, other in with_others(photos):
        jobs.append(Job(name, True, most, tuple(drawn_stills(title, picture, other))))
        if "detection" not in name and name != "body-hands":
            jobs += [Job(name, False, most, (clip,)) for clip in drawn_clips(title, picture, other)]
    return jobs


def _row(key: tuple[str, str], row: Apart, itself: Apart) -> list[str]:
    said, own = row.figures, itself.figures
    names = ("apart mean", "apart 95", "apart most")
    iou = f"{said['overlap mean']:.3f}, {said['overlap least']:.3f}" if row.paired else ""
    far = ", ".join(f"{100 * said[name]:.2f}" for name in names) if row.paired else ""
    noise = ", ".join(f"{100 * own[name]:.2f}" for name in names) if itself.paired else ""
    many = f"{row.same_number} of {row.frames}"
    return [", ".join(key), str(row.frames), f"{row.theirs}, {row.ours}", many, iou, far, noise]


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("mediapipe_beside", mediapipe_beside_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
