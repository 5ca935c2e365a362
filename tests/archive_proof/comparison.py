"""Compares the results of an archive with those of each input replayed alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from tests.archive_proof.judge import VideoDifference, compare_videos
from tests.archive_proof.manifest_records import Line

_ENDINGS = (".mp4", ".png")
_GAVE_RESULT = (0, 3)  # exit codes


@dataclass(frozen=True)
class Compared:
    """Results beside those of single runs: how many files are the same, byte for byte, and which are not."""

    files: int
    same: int
    differing: tuple[str, ...]  # of inputs that were not cut
    cut: Mapping[str, VideoDifference]  # by the result's name


def single_replays(done: Mapping[str, Line], singles: Path, flags: Sequence[str]) -> list[list[str]]:
    """The arguments by which each input is replayed alone, to `singles`, which gets the folders for it."""
    return [_replay_of(line, singles, flags) for line in done.values()]


def compare_with_singles(done: Mapping[str, Line], out: Path, singles: Path, codes: Sequence[int]) -> Compared:
    """All files, with those that the single runs made, which ended with these exit codes."""
    ended = zip(done, codes, strict=True)
    differing = [f"{name}: alone it ends with {code}" for name, code in ended if code not in _GAVE_RESULT]
    cut, files, same = dict[str, VideoDifference](), 0, 0
    for line in done.values():
        for name in line["outputs"].values():
            one, other = single_result(singles, name), out / name
            files += 1
            if not one.exists():
                differing.append(f"{name}: a single run gives no such file")
            elif one.is_dir():
                files -= 1  # of many pictures
            elif one.read_bytes() == other.read_bytes():
                same += 1
            elif line["pieces"] > 1:
                cut[name] = compare_videos(one, other)
            else:
                differing.append(f"{name}: other bytes than in a single run, {compare_videos(one, other).text}")
    return Compared(files, same, tuple(differing), cut)


def single_result(singles: Path, name: str) -> Path:
    """Where a single run writes a result of that name: replay takes no folder with a dot in its name."""
    return singles / (name if Path(name).suffix in _ENDINGS else name.replace(".", "_"))


def _replay_of(line: Line, singles: Path, flags: Sequence[str]) -> list[str]:
    outputs = [f"--{kind}={single_result(singles, name)}" for kind, name in line["outputs"].items()]
    for name in line["outputs"].values():
        (singles / name).parent.mkdir(parents=True, exist_ok=True)
    return [line["input"], *flags, *outputs, "--force", "--json"]


@dataclass(frozen=True)
class PictureDifference:
    """Two folders of pictures: how many differ, and the largest difference of a sample, of 255."""

    pictures: int
    differing: int
    largest: int
    same_names: bool


def compare_pictures(one: Path, other: Path) -> PictureDifference:
    """All samples of all pictures of both."""
    names = [sorted(path.name for path in folder.iterdir()) for folder in (one, other)]
    differing = largest = 0
    for name in sorted({*names[0]} & {*names[1]}):
        a, b = one / name, other / name
        if a.read_bytes() != b.read_bytes():
            first, second = (cv2.imread(str(path), cv2.IMREAD_UNCHANGED).astype(np.int16) for path in (a, b))
            difference = int(np.abs(first - second).max())
            largest, differing = max(largest, difference), differing + (difference > 0)
    return PictureDifference(len(names[0]), differing, largest, names[0] == names[1])
