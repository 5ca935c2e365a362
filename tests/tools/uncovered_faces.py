"""Counts frames of random clips in which a face can be seen that is to be hidden.

The clips are those of tests/generators/face_clips.py, faces are found by the real network in native code. What counts
is the middle of a face, from brows to mouth, of which more than a tenth can be seen.
"""

import argparse
import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from tests.generators.face_clips import SIZE, FaceClip, Mask, face_clip
from texelflow.app.frame.finding.finding_stage import FindingStage
from texelflow.app.frame.finding.native_regions import NativeRegions
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.tracking.face_covers import FaceCover
from texelflow.app.tracking.face_guard import GUARD_MODEL, FaceGuard, guarding

__all__ = ["open_guard", "uncovered"]

_SMALL = 0.1  # of the middle of a face


@contextlib.contextmanager
def open_guard() -> Iterator[FaceGuard]:
    """What finds faces to hide them, in native code."""
    network = NativeRegions(guarding(load_finding_model(GUARD_MODEL)), rgba_format(SIZE), 2)
    try:
        yield FaceGuard(network)
    finally:
        network.release()


def uncovered(clip: FaceClip, guard: FaceGuard, ahead: int) -> list[float]:
    """For each frame the largest share of a face's middle that can be seen, where so many frames are seen ahead."""
    guard.begin_anew()
    stage, shares = FindingStage(None, guard=guard), list[float]()
    drawn = [
        (VideoFrame(number, number, 1000 * number / 30, rgba_picture(rgba)), seen)
        for number, (rgba, seen) in enumerate(clip.drawn())
    ]
    for number, (frame, seen) in enumerate(drawn):
        stage.upcoming = tuple(later for later, _ in drawn[number + 1 : number + 1 + ahead])
        stage.run(frame)
        bare = ~_covered(stage.covers())
        faces = ((face & bare).sum() / clip.face_size(place) for place, face in enumerate(seen))
        shares.append(max(map(float, faces), default=0.0))
    return shares


def _covered(covers: Sequence[FaceCover]) -> Mask:
    y, x = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
    covered = np.zeros(SIZE[::-1], bool)
    for cover in covers:
        across, down = (x - cover.center_x) / cover.half_width, (y - cover.center_y) / cover.half_height
        covered |= np.abs(across) ** 3 + np.abs(down) ** 3 <= 1
    return covered


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first clip")
    parser.add_argument("--ahead", type=int, default=15, help="frames that are seen before they are drawn")
    given, bare, frames = parser.parse_args(), 0, 0
    with open_guard() as guard:
        for seed in range(given.seed, given.seed + given.clips):
            clip = face_clip(seed)
            shares = uncovered(clip, guard, given.ahead)
            open_frames = {number: round(share, 2) for number, share in enumerate(shares) if share > _SMALL}
            bare, frames = bare + len(open_frames), frames + len(shares)
            if open_frames:
                print(f"{seed}: {clip.words}: {open_frames}")
    print(f"{bare} of {frames} frames show more than {_SMALL:.0%} of the middle of a face")


if __name__ == "__main__":
    _main()
