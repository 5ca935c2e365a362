"""Replays and live recordings are killed as whole programs; `make fuzz` kills a hundred of them."""

import shutil
from pathlib import Path

import pytest

from tests.app.media.test_recorder_ends import clip  # noqa: F401  # a fixture
from tests.fuzz.kills import GRACE_S, Counts, Handed, Kill, judge, plan, run_kills
from tests.helpers.markers import exhaustive
from tests.helpers.running import times_of


@exhaustive
@pytest.mark.window
@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="live needs a display: install xvfb")
def test_killed_programs_keep_what_they_owe(tmp_path: Path) -> None:
    counts = run_kills(2, 784, tmp_path)  # at 5 frames a second
    assert (counts.kills, counts.broken) == (2, ())
    assert counts.kept >= counts.owed > 0


def test_the_judge_tells_what_is_lost_late_or_wrong(clip: Path) -> None:  # noqa: F811
    times = [float(time) for time in times_of(clip)]
    handed = [Handed(index, time) for index, time in enumerate(times)]
    kill, now_ns = Kill(live=False, suffix=".mp4"), int(2e9)
    assert judge(Counts(), kill, handed, now_ns, clip).broken == ()
    one_more = [*handed, Handed(now_ns - int(GRACE_S * 1e9), times[-1] + 1)]
    assert "150 of 151 frames" in judge(Counts(), kill, one_more, now_ns, clip).broken[0]
    younger = [*handed, Handed(now_ns - int(GRACE_S * 1e9) + 1, times[-1] + 1)]
    assert judge(Counts(), kill, younger, now_ns, clip).broken == ()
    assert "150 frames of 149" in judge(Counts(), kill, handed[:-1], now_ns, clip).broken[0]
    assert "other times" in judge(Counts(), kill, [*handed[:9], *handed[10:], *younger[-1:]], now_ns, clip).broken[0]
    assert "0 of 150 frames" in judge(Counts(), kill, handed, now_ns, clip.with_name("none.mp4")).broken[0]


def test_plans_are_the_same_every_time_and_have_all_kinds() -> None:
    kills = list(plan(100, 1))
    assert kills == list(plan(100, 1))
    assert kills != list(plan(100, 2))
    kinds = {(kill.live, kill.suffix, kill.closing) for kill in kills}
    assert {(False, ".mp4", True), (False, ".mkv", True), (True, ".mp4", False), (True, ".mkv", False)} <= kinds
