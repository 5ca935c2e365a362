"""For which frames the network runs: by turns, by what is still, and by the automatic mode, all without any clock."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.markers import exhaustive
from texelflow.app.frame.stages.frame_pipeline import FrameRecord, StageRecord
from texelflow.app.session.workload import LONGEST_MS, MOST_EVERY, Governor, Level, Work, Workload, busy_ms, ladder

STILL_DB, MOVING_DB = 60.0, 12.0
BUDGET_MS = 1000 / 30
LEAST_APART = 60  # frames between two steps up, whatever the load


def reasons(workload: Workload, frames: int, db: Callable[[int], float | None], gap_ms: float = BUDGET_MS) -> list[str]:
    return [workload.decide(k, k * gap_ms, db(k)) for k in range(frames)]


def test_every_frame_gets_a_mask_unless_less_is_asked_for() -> None:
    workload = Workload(Work())
    assert not workload.compares
    assert set(reasons(workload, 100, lambda _: STILL_DB)) == {"fresh"}
    assert str(workload.counts) == "network ran 100 of 100"


@pytest.mark.parametrize("every", [2, 3, MOST_EVERY])
def test_every_nth_frame(every: int) -> None:
    workload = Workload(Work(every=every))
    found = reasons(workload, 3 * every, lambda _: MOVING_DB)
    assert found == (["fresh"] + ["every"] * (every - 1)) * 3
    assert str(workload.counts) == f"network ran 3 of {3 * every}: {3 * (every - 1)} not due"


def test_no_mask_is_older_than_a_bound_whatever_is_asked_for() -> None:
    found = reasons(Workload(Work(every=1000)), 200, lambda _: MOVING_DB)
    assert [k for k, reason in enumerate(found) if reason == "fresh"] == [0, 60, 120, 180]


def test_a_still_picture_keeps_its_mask_for_a_second() -> None:
    workload = Workload(Work(skip_still=True))
    assert workload.compares
    found = reasons(workload, 61, lambda _: STILL_DB, gap_ms=50)
    fresh = [k for k, reason in enumerate(found) if reason == "fresh"]
    assert fresh == [0, 1, 21, 41]  # two still frames let what is smoothed come to rest; then one in 20 x 50 ms
    assert LONGEST_MS == 20 * 50
    assert set(found) == {"fresh", "still"}


def test_a_still_picture_keeps_its_mask_for_60_frames_where_time_stands_still() -> None:
    found = reasons(Workload(Work(skip_still=True)), 130, lambda _: STILL_DB, gap_ms=0)
    assert [k for k, reason in enumerate(found) if reason == "fresh"] == [0, 1, 61, 121]


def test_motion_gets_a_mask_at_once_and_so_does_what_cannot_be_compared() -> None:
    moving = {10: MOVING_DB, 15: None}
    found = reasons(Workload(Work(skip_still=True)), 20, lambda k: moving.get(k, STILL_DB))
    assert [k for k, reason in enumerate(found) if reason == "fresh"] == [0, 1, 10, 11, 12, 15, 16, 17]


def test_how_much_alike_is_still_is_an_option() -> None:
    for still_db, expected in ((35.0, "still"), (36.5, "fresh")):
        assert reasons(Workload(Work(skip_still=True, still_db=still_db)), 9, lambda _: 36.0)[-1] == expected


def test_a_new_scene_gets_a_mask_at_once() -> None:
    workload = Workload(Work(every=10, skip_still=True))
    before = reasons(workload, 5, lambda _: STILL_DB)
    workload.reset()
    assert before[-1] != "fresh"
    assert workload.decide(5, 5 * BUDGET_MS, STILL_DB) == "fresh"
    assert workload.decide(6, 6 * BUDGET_MS, STILL_DB) == "every"


def test_time_that_goes_back_gets_a_mask() -> None:
    workload = Workload(Work(skip_still=True))
    reasons(workload, 20, lambda _: STILL_DB)
    assert workload.decide(20, -5.0, STILL_DB) == "fresh"


@given(
    st.integers(1, 80), st.booleans(), st.lists(st.sampled_from([STILL_DB, MOVING_DB, None]), min_size=1, max_size=200)
)
def test_no_options_leave_a_picture_without_a_mask_for_long(every: int, skip: bool, db: list[float | None]) -> None:
    workload = Workload(Work(every=every, skip_still=skip))
    found = reasons(workload, len(db), lambda k: db[k], gap_ms=20)
    fresh = [k for k, reason in enumerate(found) if reason == "fresh"]
    assert fresh[0] == 0
    assert max(np.diff([*fresh, len(db)])) <= MOST_EVERY
    assert found.count("fresh") == workload.counts.fresh


def test_a_number_of_frames_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="every 0"):
        Workload(Work(every=0))


# The automatic mode --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """What frames take, in ms: with the chosen model, with the small one, without the network."""

    chosen: float
    small: float
    skipped: float

    def of(self, fresh: bool, small_model: bool) -> float:
        return (self.small if small_model else self.chosen) if fresh else self.skipped

    def expected(self, level: Level) -> float:
        """A frame in the mean while everything moves, as a share of its time."""
        costs = self.of(True, level.small_model) + (level.every - 1) * self.skipped
        return costs / level.every / BUDGET_MS


class Machine:
    """Frames on a machine with a load; a frame takes its turn with the model that it is asked for."""

    def __init__(self, workload: Workload, noise: float = 0.0) -> None:
        self.workload, self.noise = workload, noise
        self.frame = 0
        self.levels: list[Level] = []  # of each frame
        self._random = np.random.default_rng(7)

    def run(self, load: Load, frames: int, db: Callable[[int], float] = lambda _: MOVING_DB) -> list[Level]:
        """The levels of these frames."""
        for _ in range(frames):
            level = self.workload.level
            reason = self.workload.decide(self.frame, self.frame * BUDGET_MS, db(self.frame), level.small_model)
            took_ms = load.of(reason == "fresh", level.small_model) * self._random.lognormal(0, self.noise)
            self.workload.observe(self.frame, took_ms, BUDGET_MS)
            self.levels.append(level)
            self.frame += 1
        return self.levels[-frames:]


def changes(levels: list[Level]) -> list[int]:
    return [k for k in range(1, len(levels)) if levels[k] != levels[k - 1]]


def steps_up(levels: list[Level], rungs: tuple[Level, ...]) -> list[int]:
    return [k for k in changes(levels) if rungs.index(levels[k]) < rungs.index(levels[k - 1])]


AUTO = Work(auto=True)


def test_a_machine_that_is_fast_enough_does_all_the_work() -> None:
    machine = Machine(Workload(AUTO))
    assert set(machine.run(Load(25, 10, 5), 3000)) == {Level()}
    assert str(machine.workload.counts) == "network ran 3000 of 3000"


def test_a_machine_that_is_too_slow_does_less_within_a_second() -> None:
    machine = Machine(Workload(AUTO))
    assert machine.run(Load(120, 80, 5), 30)[-1] == Level(3, True, True)
    assert machine.workload.counts.budget > 0


def test_one_frame_in_ten_may_take_long() -> None:
    machine = Machine(Workload(AUTO))
    for _ in range(100):
        machine.run(Load(20, 10, 5), 9)
        machine.run(Load(900, 10, 5), 1)
    assert set(machine.levels) == {Level()}


def test_the_small_model_is_tried_before_frames_go_without_a_mask() -> None:
    assert set(Machine(Workload(AUTO)).run(Load(60, 30, 5), 3000)[200:]) <= {
        Level(skip_still=True, small_model=True),
        Level(skip_still=True),  # the chosen one is tried now and then
    }


def test_without_a_small_model_there_are_fewer_masks() -> None:
    machine = Machine(Workload(AUTO, has_small_model=False))
    assert machine.run(Load(40, 0, 5), 600)[-1] == Level(2, True)
    assert not any(level.small_model for level in machine.levels)


def test_a_rung_that_fails_is_tried_ever_less_often() -> None:
    machine = Machine(Workload(AUTO))
    tries = steps_up(machine.run(Load(60, 10, 5), 20_000), ladder(True))
    apart = np.diff(tries)
    assert len(tries) >= 6
    assert (apart[1:4] > 1.8 * apart[:3]).all()
    assert apart.max() < 2500  # it is never given up


def test_all_comes_back_when_the_load_is_gone() -> None:
    machine = Machine(Workload(AUTO))
    assert machine.run(Load(300, 200, 20), 9000)[-1].every == 8
    assert machine.run(Load(15, 8, 4), 3000)[-1] == Level()


def test_what_is_still_costs_nothing_and_says_nothing() -> None:
    """At rest frames are cheap; that is no reason to go back to a rung that does not hold in motion."""
    machine = Machine(Workload(AUTO, has_small_model=False))
    machine.run(Load(45, 0, 3), 60)
    assert machine.workload.level == Level(2, True)
    assert set(machine.run(Load(45, 0, 3), 3000, lambda _: STILL_DB)) == {Level(2, True)}


def test_lost_frames_of_the_camera_count_where_there_is_little_time_left() -> None:
    for took_ms, expected in ((27.0, Level(skip_still=True)), (20.0, Level())):
        workload = Workload(AUTO)
        for k in range(10):
            workload.decide(k, k * BUDGET_MS)
            workload.observe(k, took_ms, BUDGET_MS, dropped=k % 2)
            if workload.level != Level():
                break
        assert workload.level == expected


def test_what_another_model_takes_says_nothing() -> None:
    """While the small model is being made the chosen one goes on."""
    workload = Workload(AUTO)
    for k in range(12):
        workload.decide(k, k * BUDGET_MS)
        workload.observe(k, 100.0, BUDGET_MS)
    assert workload.level == Level(skip_still=True, small_model=True)
    for k in range(12, 200):
        workload.decide(k, k * BUDGET_MS, small_model=False)
        workload.observe(k, 100.0, BUDGET_MS)
    assert workload.level == Level(skip_still=True, small_model=True)


def test_frames_whose_cost_is_never_told_are_forgotten() -> None:
    workload = Workload(AUTO)
    reasons(workload, 1000, lambda _: MOVING_DB)
    for k in range(900):
        workload.observe(k, 1000.0, BUDGET_MS)
    assert workload.level == Level()


def test_options_hold_in_the_automatic_mode_too() -> None:
    machine = Machine(Workload(Work(every=4, auto=True)))
    machine.run(Load(10, 10, 2), 400)
    assert set(machine.levels) == {Level(every=4)}
    assert machine.workload.counts.every == 300


def test_options_may_change_at_any_time() -> None:
    machine = Machine(Workload(AUTO))
    machine.run(Load(300, 200, 5), 100)
    machine.workload.work = Work()
    assert machine.workload.level == Level()
    assert set(machine.run(Load(300, 200, 5), 100)) == {Level()}


costs = st.floats(0.5, 400)
loads = st.builds(lambda big, small, rest: Load(big + rest, min(big, small) + rest, rest), costs, costs, costs)


@exhaustive
@settings(deadline=None)
@given(loads, st.booleans())
def test_any_load_settles_on_a_rung_that_holds_or_is_the_last_worth_it(load: Load, has_small: bool) -> None:
    rungs = ladder(has_small)
    machine = Machine(Workload(AUTO, has_small))
    levels = machine.run(load, 1500)
    usual = max(rungs, key=levels[300:].count)
    lower = [load.expected(level) for level in rungs[rungs.index(usual) + 1 :]]
    assert load.expected(usual) <= 0.95 + 1e-9 or not lower or lower[0] > 0.9 * load.expected(usual) - 1e-9
    higher = rungs[: rungs.index(usual)]
    assert all(load.expected(level) > 0.7 - 1e-9 for level in higher if level.small_model == usual.small_model)


@exhaustive
@settings(deadline=None)
@given(st.lists(st.tuples(loads, st.integers(1, 400)), min_size=1, max_size=12), st.floats(0, 0.5))
def test_no_load_makes_it_flap(parts: list[tuple[Load, int]], noise: float) -> None:
    rungs = ladder(True)
    machine = Machine(Workload(AUTO), noise)
    for load, frames in parts:
        machine.run(load, frames)
    up = steps_up(machine.levels, rungs)
    assert all(apart >= LEAST_APART for apart in np.diff([0, *up]))
    assert len(changes(machine.levels)) <= (len(up) + 1) * len(rungs)


@exhaustive
@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(loads, st.integers(1, 400)), min_size=1, max_size=6), st.booleans())
def test_from_any_past_it_returns_to_the_top(parts: list[tuple[Load, int]], has_small: bool) -> None:
    machine = Machine(Workload(AUTO, has_small))
    for load, frames in parts:
        machine.run(load, frames)
    assert machine.run(Load(12, 6, 2), 6000)[-1] == Level()


def test_a_governor_with_one_rung_stays_there() -> None:
    governor = Governor([Level()])
    assert not any(governor.observe(True, share) for share in [5.0] * 50 + [0.1] * 500)


# What a frame took ---------------------------------------------------------------------------------------------------


def record(*stages: StageRecord) -> FrameRecord:
    return FrameRecord(0, 0, 0.0, 0, stages, 0)


def test_a_frame_took_what_was_done_for_it_without_decoding_and_the_wait_for_the_screen() -> None:
    stages = [StageRecord(name, 0, 2.0) for name in ("decode", "upload", "network", "swap")]
    assert busy_ms(record(*stages)) == 4.0


def test_a_frame_took_the_time_of_the_device_where_that_is_more() -> None:
    stages = StageRecord("decode", 0, 9.0), StageRecord("network", 0, 0.5, 12.0), StageRecord("swap", 0, 16.0, 0.5)
    assert busy_ms(record(*stages)) == 12.0
