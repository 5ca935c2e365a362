"""Makes the files of planned clips, with people moving in them, once, and keeps them.

The folder's list tells what each is made of: one whose description has changed is made anew.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import av
import cv2
import numpy as np

from tests.archive_proof.recipes import PlannedClip
from tests.helpers.clips import DEMO_CLIP, Recipe, Rgb, set_display_matrix, write_clip

LIST = "clips.json"  # beside the folder's files, no recording itself
_EDITION = 1  # of how files are made of descriptions
_TURNS = {1: (0, 1, -1, 0), 2: (-1, 0, 0, -1), 3: (0, -1, 1, 0)}
_WIDTH, _HEIGHT = 400, 300  # of the demo clip's pictures, from which others are cut
_MILLISECOND = Fraction(1, 1000)


def made_clips(folder: Path, clips: Sequence[PlannedClip]) -> list[Path]:
    """Their files, in the order of the clips; those that are there by the same description are left as they are."""
    known_file = folder / LIST
    known = json.loads(known_file.read_text()) if known_file.exists() else {}
    wanted = {clip.name: json.loads(json.dumps({"edition": _EDITION, **asdict(clip)})) for clip in clips}
    for clip in clips:
        path = folder / clip.name
        if known.get(clip.name) != wanted[clip.name] or not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _make(path, clip)
    for left in known.keys() - wanted.keys():
        (folder / left).unlink(missing_ok=True)
    if known != wanted:
        known_file.write_text(json.dumps(wanted, indent=1))
    return [folder / clip.name for clip in clips]


class MovingPeople(Sequence[Rgb]):
    """Pictures of a clip, each made when it is asked for: the demo clip's, cut out where a slow walk leads."""

    def __init__(self, clip: PlannedClip) -> None:
        choose = Random(f"walk {clip.seed}")
        self._clip = clip
        self._start, self._step = choose.randrange(200), choose.choice((1, 1, 2))
        self._mirrored, self._zoom = choose.random() < 0.5, choose.uniform(0.55, 0.95)
        self._phase = choose.uniform(0, 6)

    def __len__(self) -> int:
        return self._clip.frames

    def __getitem__(self, index: int) -> Rgb:  # type: ignore[override]  # no slices
        if not 0 <= index < len(self):
            raise IndexError
        pictures = _demo_pictures()
        period = 2 * len(pictures) - 2  # forwards, then backwards, so that nothing jumps
        position = (self._start + index * self._step) % period
        picture = pictures[min(position, period - position)]
        width, height = self._clip.size
        wide = int(_WIDTH * self._zoom)
        high = min(_HEIGHT, wide * height // width)
        way = index / self._clip.rate / 3 + self._phase
        left = int((_WIDTH - wide) * (0.5 + 0.5 * np.sin(way)))
        top = int((_HEIGHT - high) * (0.5 + 0.5 * np.cos(way * 0.7)))
        cut = picture[top : top + high, left : left + wide]
        cut = cut[:, ::-1] if self._mirrored else cut
        return np.ascontiguousarray(cv2.resize(cut, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8))


@cache
def _demo_pictures() -> tuple[Rgb, ...]:
    with av.open(str(DEMO_CLIP)) as file:
        return tuple(f.to_ndarray(format="rgb24", width=_WIDTH, height=_HEIGHT) for f in file.decode(video=0))


def _make(path: Path, clip: PlannedClip) -> None:
    people, choose = MovingPeople(clip), Random(f"file {clip.seed}")
    if clip.fault in ("garbage", "empty", "text"):
        text = b"No recording, but a line of text.\n" * 20
        path.write_bytes({"garbage": choose.randbytes(20000), "empty": b"", "text": text}[clip.fault])
        return
    if clip.is_picture:
        done, encoded = cv2.imencode(path.suffix, people[0][..., ::-1])
        assert done
        path.write_bytes(bytes(encoded))
        return
    write_clip(path, people, _recipe(clip, choose))
    if clip.kind.turned:
        set_display_matrix(path, *_TURNS[clip.kind.turned])
    if clip.fault in ("no index", "cut off"):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * 6 // 10])
    if clip.fault == "damaged":
        _damage(path, choose)


def _recipe(clip: PlannedClip, choose: Random) -> Recipe:
    kind, pts = clip.kind, None
    if kind.varies:
        times = np.cumsum([0, *(choose.choice((20, 40, 41, 80, 200)) for _ in range(clip.frames - 1))])
        pts = [int(time) for time in times]
    return Recipe(
        kind.codec, kind.pixel_format, clip.rate, _MILLISECOND if pts else None, pts, sound=kind.sound,
        codec_options=dict(kind.options) | {"threads": "1"},  # so that files are the same each time
        container_options={"fflags": "+bitexact"} | ({"movflags": "faststart"} if clip.fault == "cut off" else {}),
    )  # fmt: skip


def _damage(path: Path, choose: Random) -> None:
    """Noise in place of a part of every ninth packet of the middle third."""
    with av.open(str(path)) as file:
        places = [(packet.pos, packet.size) for packet in file.demux(video=0) if packet.pos is not None]
    data = bytearray(path.read_bytes())
    for pos, size in places[len(places) // 3 : len(places) * 2 // 3 : 9]:
        start, count = pos + size // 3, size // 3
        data[start : start + count] = choose.randbytes(count)
    path.write_bytes(data)
