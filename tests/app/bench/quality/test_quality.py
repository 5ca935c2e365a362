"""The figures by which masks are judged, on masks whose quality is known; and the verb on the demo clip's beginning."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import exhaustive
from texelflow.app.bench.quality.mask_quality import (
    BAND,
    TOLERANCE,
    MaskScorer,
    Quality,
    Truth,
    f_score,
    least_of_parabola,
    outline,
)
from texelflow.app.bench.quality.mask_ways import STEPS
from texelflow.app.bench.quality.quality import PERFECT, QualityBench, bench_quality, show_quality
from texelflow.app.console import Console
from texelflow.assets.make_clip import true_matte
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

Floats = npt.NDArray[np.float32]


def disc(x: float, y: float = 60, radius: float = 35) -> Floats:
    """A matte (120, 160) with an edge that is one pixel soft."""
    rows, columns = np.mgrid[:120, :160]
    return np.asarray(np.clip(radius - np.hypot(columns - x, rows - y) + 0.5, 0, 1), np.float32)


def judged(masks: list[Floats], mattes: list[Floats]) -> Quality:
    judge = MaskScorer()
    for mask, matte in zip(masks, mattes, strict=True):
        judge.add(mask, Truth(matte))
    return judge.quality()


PATH = [40 + 2.0 * frame + 8 * np.sin(frame / 3) for frame in range(30)]
MATTES = [disc(x) for x in PATH]
LAST = 21  # of the demo clip's frames, for the verb


def test_a_perfect_mask_is_perfect() -> None:
    found = judged(MATTES, MATTES)
    assert (found.f_score, found.matte_error, found.edge_error, found.flicker) == (1, 0, 0, 0)
    assert abs(found.lag_frames) < 0.05
    assert found.frames == 30


@pytest.mark.parametrize("lag", [-1, 1, 2, 3])
def test_lag_is_that_of_the_masks(lag: int) -> None:
    late = [MATTES[min(max(n - lag, 0), 29)] for n in range(30)]
    assert judged(late, MATTES).lag_frames == pytest.approx(lag, abs=0.05)


def test_lag_tells_parts_of_frames() -> None:
    late = [disc(x - 0.4 * step) for x, step in zip(PATH, np.diff([PATH[0], *PATH]), strict=True)]
    assert judged(late, MATTES).lag_frames == pytest.approx(0.4, abs=0.1)


def test_a_wrong_mask_that_stays_does_not_flicker_and_one_that_comes_and_goes_does() -> None:
    still = [disc(80)] * 6
    wrong = [disc(80, radius=38)] * 6
    assert judged(wrong, still).flicker == 0
    assert judged(wrong * 3, still * 3).lag_frames == 0
    blinking = [wrong[0] if n % 2 else still[0] for n in range(6)]
    found = judged(blinking, still)
    assert found.flicker == pytest.approx(np.abs(wrong[0] - still[0]).mean())
    assert found.matte_error == pytest.approx(found.flicker / 2)


@pytest.mark.parametrize(("grown", "right"), [(0, True), (TOLERANCE - 0.5, True), (TOLERANCE + 2, False)])
def test_outlines_count_as_right_within_the_tolerance(grown: float, right: bool) -> None:
    score = f_score(disc(80, radius=35 + grown), Truth(disc(80)))
    assert (score == 1) if right else (score == 0)


def test_half_an_outline_has_half_the_precision() -> None:
    two = np.maximum(disc(40, radius=20), disc(115, radius=20))
    assert f_score(two, Truth(disc(40, radius=20))) == pytest.approx(2 * 0.5 / 1.5, abs=0.01)


def test_nobody_is_found_where_nobody_is() -> None:
    nobody = np.zeros((120, 160), np.float32)
    assert f_score(nobody, Truth(nobody)) == 1
    assert f_score(disc(80), Truth(nobody)) == f_score(nobody, Truth(disc(80))) == 0
    assert judged([nobody] * 2, [nobody] * 2).edge_error == 0


def test_an_outline_is_what_touches_the_background_not_the_frames_edge() -> None:
    assert outline(np.ones((5, 7), np.float32)).sum() == 0
    half = np.zeros((5, 7), np.float32)
    half[:, 3:] = 0.5
    assert np.array_equal(np.flatnonzero(outline(half)[0]), [3])
    band = Truth(np.pad(half, 20, "edge")).band.any(0)
    assert np.array_equal(np.flatnonzero(band), np.arange(23 - BAND, 24 + BAND))


@pytest.mark.parametrize(
    ("values", "least"), [((4, 1, 0, 1), 2), ((4, 1, 1, 4), 1.5), ((0, 1, 4), 0), ((2, 1, 0), 2), ((1, 1, 1), 0)]
)
def test_a_parabola_lies_between_whole_steps(values: tuple[float, ...], least: float) -> None:
    assert least_of_parabola(np.array(values, np.float64)) == least


def test_one_frame_is_too_few() -> None:
    with pytest.raises(ValueError, match="two frames"):
        judged(MATTES[:1], MATTES[:1])


# The verb


@pytest.fixture(scope="module")
def figures(selfie_model: Path) -> dict[str, Any]:
    return bench_quality(QualityBench(model=str(selfie_model), last=LAST), Console(quiet=True))


@exhaustive
@pytest.mark.gl
def test_the_verb_judges_every_step(figures: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    steps = {step["name"]: step for step in figures["steps"]}
    assert list(steps) == [*(name for name, step in STEPS.items() if not step.held), PERFECT]
    assert steps["delayed"]["frames"] == steps["both"]["frames"] - 1 == LAST
    assert all(0 < step["f_score"] <= 1 and 0 < step["matte_error"] < 0.05 for step in steps.values())
    assert steps["both"]["flicker"] < steps["raw"]["flicker"]
    on_the_grid = [steps[name]["matte_error"] for name in ("raw", "smooth")]  # what is fitted to edges is finer
    assert steps[PERFECT]["matte_error"] < min(on_the_grid)
    show_quality(figures, Console())
    shown = capsys.readouterr().out
    assert all(name in shown for name in steps)


@exhaustive
@pytest.mark.gl
def test_mattes_of_a_folder_are_those_that_are_computed(selfie_model: Path, tmp_path: Path) -> None:
    few = QualityBench(model=str(selfie_model), last=4)
    figures = bench_quality(few, Console(quiet=True))
    for frame in range(5):
        cv2.imwrite(str(tmp_path / f"{frame:03}.png"), np.round(true_matte(frame) * 255))
    found = bench_quality(replace(few, mattes=tmp_path), Console(quiet=True))
    for ours, theirs in zip(figures["steps"], found["steps"], strict=True):
        assert ours["f_score"] == pytest.approx(theirs["f_score"], abs=0.02)
        assert ours["matte_error"] == pytest.approx(theirs["matte_error"], abs=1e-3)


@pytest.mark.parametrize("wrong", ["none", "size", "text"])
def test_mattes_that_do_not_fit_are_refused(wrong: str, tmp_path: Path) -> None:
    if wrong == "size":
        cv2.imwrite(str(tmp_path / "000.png"), np.zeros((4, 6), np.uint8))
    elif wrong == "text":
        (tmp_path / "000.png").write_text("no picture")
    with pytest.raises(MediaError, match=r"000\.png") as raised:
        bench_quality(QualityBench(mattes=tmp_path, last=1), Console(quiet=True))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("options", [QualityBench(seed=-1), QualityBench(backend="gpu")])
def test_nonsense_is_refused(options: QualityBench) -> None:
    with pytest.raises(UsageError):
        bench_quality(options, Console(quiet=True))
