"""A recording that is replayed in pieces is as replayed in one go: the same bytes, or masks within 1 of 255."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import DEMO_CLIP, Recipe, Rgb, write_clip
from tests.helpers.markers import exhaustive, one_in
from texelflow.app.archive.jobs.jobs import PieceDone
from texelflow.app.archive.rendering.piece_cutting import cut_frames, why_apart, why_kind_stays_whole
from texelflow.app.console import Console
from texelflow.app.media.join import join_video
from texelflow.app.media.piece_source import index_frames
from texelflow.app.media.sources import FileSource
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_engine import ReplayEngine
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.session.derived import lead_of
from texelflow.app.settings.settings import defaults, with_values

FRAMES = int(os.environ.get("PIECE_TEST_FRAMES", "460"))
PIECE = 300
LONG = FRAMES > 900
AFTER = 8  # frames of a range with refinement
SEEN = 80  # frames of the demo clip, there and back
SIZE = 128, 96
DIM = 260  # from there on there is little light, and not always as much
SHORT = Recipe(codec_options={"crf": "20", "preset": "ultrafast", "g": "24"})
OPEN = Recipe(codec_options={"crf": "20", "preset": "ultrafast", "x264-params": "open-gop=1:keyint=50:bframes=3"})
ALIKE = 1  # of 255

Masks = npt.NDArray[np.int16]  # (frames, height, width)


@pytest.fixture(scope="module")
def frames() -> list[Rgb]:
    """People who move, there and back, at times in little light."""
    with FileSource(DEMO_CLIP, last=SEEN - 1) as source:
        there = [cv2.resize(frame.rgba[..., :3], SIZE, interpolation=cv2.INTER_AREA) for frame in source]
    cycle = [*there, *there[::-1]]
    found = [np.asarray(cycle[number % len(cycle)], np.uint8) for number in range(FRAMES)]
    for number in range(DIM, FRAMES):
        found[number] = (found[number] * (0.45 + 0.05 * np.sin(number / 9))).astype(np.uint8)
    return found


@pytest.fixture(scope="module")
def clips(frames: list[Rgb], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("clips")
    return {
        "short": write_clip(folder / "short.mp4", frames[: 400 if LONG else 60], SHORT),
        "open": write_clip(folder / "open.mkv", frames, OPEN),
    }


@pytest.fixture(scope="module")
def engine() -> Iterator[ReplayEngine]:
    with ReplayEngine(Console(quiet=True)) as found:
        yield found


def masks_in(folder: Path, numbers: Sequence[int]) -> Masks:
    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == [f"{number:06d}.png" for number in numbers]
    return np.array([cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in paths], np.int16)


def hash_of(masks: Masks) -> str:
    return hashlib.sha256(masks.tobytes()).hexdigest()[:16]


def test_pieces_without_refinement_become_the_same_file(
    clips: Mapping[str, Path], engine: ReplayEngine, tmp_path: Path
) -> None:
    """On the CPU's own code, also where the light changes across the border of pieces."""
    clip, whole, joined = clips["open"], tmp_path / "whole.mp4", tmp_path / "joined.mp4"
    settings = with_values(defaults("replay"), {"refine": False, "backend": "cpu", "model": "selfie-landscape"})
    index = index_frames(clip)
    assert why_kind_stays_whole("recording", settings) is None
    ranges = cut_frames(index.frames, PIECE, lead_of(settings))
    assert [each.lead for each in ranges] == [0] * len(ranges)
    assert len(ranges) > 1
    done, paths = list[PieceDone](), [tmp_path / f"{number}.mp4" for number in range(len(ranges))]
    for number, (piece, path) in enumerate(zip(ranges, paths, strict=True)):
        options = ReplayOptions(
            clip, first=piece.first, last=piece.last, piece_lead=piece.lead, index=index,
            settings=replace(settings, masks=str(path)),
        )  # fmt: skip
        found, code = replay(options, engine.console, engine=engine)
        assert code == 0
        ends = found["decoded_head"], found["decoded_tail"]
        done.append(PieceDone(number, piece, found["frames"], {}, 0, "", *ends))
    assert why_apart(done) is None
    options = ReplayOptions(clip, settings=replace(settings, masks=str(whole)))
    assert replay(options, engine.console, engine=engine)[0]["frames"] == FRAMES
    assert join_video(paths, joined).frames == FRAMES
    assert joined.read_bytes() == whole.read_bytes()


@exhaustive
@pytest.mark.gl
@one_in(2, ("name", "backend", "smooth", "border"), [("open", "cpu", 0.5, 96), ("short", "gl", 0.2, 32)])
def test_a_late_range_with_refinement_differs_by_one_at_most(
    clips: Mapping[str, Path], engine: ReplayEngine, tmp_path: Path, name: str, backend: str, smooth: float, border: int
) -> None:
    """Some frames behind the border of two pieces, those of the second from its lead on, before any encoding."""
    flags = {"backend": backend, "model": "selfie-landscape", "smooth": smooth}
    settings, first = with_values(defaults("replay"), flags), PIECE if LONG else border
    lead = lead_of(settings)
    assert 0 < lead < first

    def masks(begin: int, piece_lead: int | None) -> Masks:
        folder = tmp_path / f"{begin} {piece_lead}"
        options = ReplayOptions(
            clips[name], first=begin, last=first + AFTER - 1, piece_lead=piece_lead,
            settings=replace(settings, masks=str(folder)),
        )  # fmt: skip
        assert replay(options, engine.console, engine=engine)[1] == 0
        return masks_in(folder, range(begin, first + AFTER))

    whole, late, alone = masks(0, None)[first:], masks(first, lead), masks(first, 0)
    apart, unled = (int(np.abs(found - whole).max()) for found in (late, alone))
    print(f"late: {hash_of(late)}, whole: {hash_of(whole)}, largest difference {apart} of 255, {unled} without lead")
    assert np.ptp(whole) > 250
    assert apart <= ALIKE < unled
