"""Masks of recordings are refined as live's are: steady, the same in each run, and the same wherever a range begins."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import Recipe, write_clip
from tests.helpers.live_stage import demo_frame
from tests.helpers.markers import exhaustive
from texelflow.app.console import Console
from texelflow.app.media.sources import FileSource
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.session.derived import lead_of
from texelflow.app.settings.settings import defaults

pytestmark = pytest.mark.gl

Masks = npt.NDArray[np.int16]  # (frames, height, width)
FRAMES = 16


@pytest.fixture(scope="module")
def portrait(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two people who do not move, with a camera's noise."""
    noise = np.random.default_rng(10)
    still = demo_frame(60, 2).astype(np.float32)
    frames = [np.clip(still + noise.normal(0, 5, still.shape), 0, 255).astype(np.uint8) for _ in range(FRAMES)]
    recipe = Recipe(codec_options={"crf": "12", "preset": "ultrafast", "g": "1"})
    return write_clip(tmp_path_factory.mktemp("portrait") / "portrait.mp4", frames, recipe)


def masks(clip: Path, folder: Path, first: int = 0, **flags: object) -> Masks:
    """Those of a replay, from 0 to 255."""
    options = ReplayOptions(clip, {"masks": str(folder), "backend": "cpu", **flags}, first=first)
    assert replay(options, Console(quiet=True))[1] == 0
    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == [f"{index:06d}.png" for index in range(first, FRAMES)]
    return np.array([cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in paths], np.int16)


def changes(found: Masks) -> float:
    """By how much a pixel changes from frame to frame, of 255."""
    return float(np.abs(np.diff(found, axis=0)).mean())


@exhaustive
def test_masks_keep_still(portrait: Path, tmp_path: Path) -> None:
    raw = masks(portrait, tmp_path / "raw", refine=False)
    refined = masks(portrait, tmp_path / "refined")
    assert changes(refined) < 0.8 * changes(raw)


@exhaustive
def test_two_runs_give_the_same_bytes(portrait: Path, tmp_path: Path) -> None:
    for name in ("one.mp4", "two.mp4"):
        options = ReplayOptions(portrait, {"out": str(tmp_path / name), "backend": "gl", "effect": "blur"})
        assert replay(options, Console(quiet=True))[1] == 0
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "two.mp4").read_bytes()


@exhaustive
def test_a_range_begins_as_if_all_had_been_seen(portrait: Path, tmp_path: Path) -> None:
    smooth = 0.1
    first = lead_of(replace(defaults("replay"), smooth=smooth)) + 2
    assert 8 < first < FRAMES - 2
    whole = masks(portrait, tmp_path / "whole", smooth=smooth)
    part = masks(portrait, tmp_path / "part", first, smooth=smooth)
    alone = masks(portrait, tmp_path / "alone", first, smooth=smooth, refine=False)
    assert np.abs(part - whole[first:]).max() <= 1
    assert np.abs(alone - whole[first:]).max() > 20


@exhaustive
def test_a_range_ends_as_if_all_was_to_be_seen(portrait: Path, tmp_path: Path) -> None:
    """With a look at the frame after it."""
    whole, part = (tmp_path / name for name in ("whole", "part"))
    masks(portrait, whole)
    flags = {"masks": str(part), "backend": "cpu"}
    assert replay(ReplayOptions(portrait, flags, last=3), Console(quiet=True))[0]["frames"] == 4
    assert [path.read_bytes() for path in sorted(part.iterdir())] == [
        (whole / f"{index:06d}.png").read_bytes() for index in range(4)
    ]


@pytest.mark.parametrize("delay", [True, False])
def test_every_frame_is_there_once_and_shows_itself(portrait: Path, tmp_path: Path, delay: bool) -> None:
    frames = [np.full((48, 64, 3), 12 * index, np.uint8) for index in range(FRAMES)]
    clip = write_clip(tmp_path / "levels.mp4", frames, Recipe(codec_options={"crf": "1", "g": "1"}))
    out = tmp_path / "out.mp4"
    flags = {"out": str(out), "backend": "cpu", "effect": "none", "delay_video": delay}
    summary, code = replay(ReplayOptions(clip, flags, first=3), Console(quiet=True))
    assert (code, summary["frames"]) == (0, FRAMES - 3)
    with FileSource(out) as source:
        levels = [round(float(frame.rgba[..., :3].mean()) / 12) for frame in source]
    assert levels == list(range(3, FRAMES))
