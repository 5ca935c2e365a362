"""A recording in pieces with a network that remembers: each piece sees enough before it to know what the whole does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import write_clip
from tests.helpers.markers import one_in
from tests.model_files.matte_models import recurrent_matte
from texelflow.app.console import Console
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_engine import ReplayEngine
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.session.derived import RECURRENT_LEAD, lead_of
from texelflow.app.settings.settings import defaults, with_values

FIRST, LAST = 60, 64


@pytest.fixture
def engine() -> Iterator[ReplayEngine]:
    with ReplayEngine(Console(quiet=True)) as found:
        yield found


def masks_in(folder: Path, numbers: Sequence[int]) -> npt.NDArray[np.int16]:
    return np.array(
        [cv2.imread(str(folder / f"{number:06d}.png"), cv2.IMREAD_UNCHANGED) for number in numbers], np.int16
    )


@one_in(2, "refine", [False, True])
def test_a_late_range_has_the_masks_of_the_whole(engine: ReplayEngine, tmp_path: Path, refine: bool) -> None:
    """Within 1 of 255: this network, whose gates forget as random ones do, leaves less of what is 48 frames ago."""
    soft = np.random.default_rng(2).integers(0, 256, (6, 16, 3), np.uint8)
    wide = np.asarray(cv2.resize(soft, (224, 48), interpolation=cv2.INTER_CUBIC), np.uint8)
    frames = [np.ascontiguousarray(wide[:, 2 * number : 2 * number + 64]) for number in range(LAST + 1)]
    clip, model = write_clip(tmp_path / "clip.mp4", frames), tmp_path / "matte.tflite"
    model.write_bytes(recurrent_matte(says=True))
    flags = {"backend": "cpu", "model": str(model), "refine": refine, "smooth": 0.2}
    settings = with_values(defaults("replay"), flags)
    assert lead_of(settings, remembers=True) == RECURRENT_LEAD > lead_of(settings)

    def masks(first: int, piece_lead: int | None = None) -> npt.NDArray[np.int16]:
        folder = tmp_path / f"{first} {piece_lead}"
        options = ReplayOptions(
            clip, first=first, last=LAST, piece_lead=piece_lead, settings=replace(settings, masks=str(folder))
        )  # fmt: skip
        assert replay(options, engine.console, engine=engine)[1] == 0
        return masks_in(folder, range(FIRST, LAST + 1))

    whole = masks(0)
    assert np.ptp(whole) > 100
    assert np.abs(masks(FIRST) - whole).max() <= 1
    assert np.abs(masks(FIRST, RECURRENT_LEAD) - whole).max() <= 1
    assert np.abs(masks(FIRST, 0) - whole).max() > 1
