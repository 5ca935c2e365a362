"""Cut steps: each part of each step is done once, after the steps before it, for any sizes and threads."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.targets.llvm.cutting import StepSize, cut_step, joined_rounds
from texelflow.gpu_delegate.targets.llvm.work import WorkRound


def shared_rounds(steps: list[StepSize], threads: int) -> tuple[WorkRound, ...]:
    """All steps, one after the other."""
    return joined_rounds(cut_step(number, step, threads) for number, step in enumerate(steps))


SIZES = st.builds(StepSize, st.integers(1, 70), st.integers(1, 9), st.integers(0, 40_000_000))


@given(st.lists(SIZES, max_size=6), st.integers(1, 5))
def test_each_part_of_each_step_comes_once_and_behind_those_before_it(steps: list[StepSize], threads: int) -> None:
    rounds = shared_rounds(steps, threads)
    assert all(tasks and all(tasks) for tasks in rounds)
    done = list[set[tuple[int, int, int]]]()
    for tasks in rounds:
        if len(tasks) > 1:
            assert threads > 1
            assert len({part.step for task in tasks for part in task}) == 1
            assert len(tasks) <= 4 * threads
            assert steps[tasks[0][0].step].work // len(tasks) >= 75_000
        parts = [part for task in tasks for part in task]
        cells = [(p.step, y, z) for p in parts for y, z in product(range(p.y0, p.y1), range(p.z0, p.z1))]
        assert len(cells) == len({*cells})
        assert [cell[0] for cell in cells] == sorted(cell[0] for cell in cells)
        done.append({*cells})
    whole = {(n, y, z) for n, s in enumerate(steps) for y, z in product(range(s.row_groups), range(s.slice_blocks))}
    assert set().union(*done) == whole
    assert sum(map(len, done)) == len(whole)
    numbers = [part.step for tasks in rounds for task in tasks for part in task]
    assert numbers == sorted(numbers)


def test_rows_are_cut_before_slices_and_little_work_stays_whole() -> None:
    wide, deep, small = StepSize(64, 4, 10**7 - 1), StepSize(2, 32, 10**7), StepSize(8, 8, 140_000)
    rounds = shared_rounds([small, wide, small, small, deep], 2)
    assert [len(tasks) for tasks in rounds] == [1, 4, 1, 4]
    assert {(part.z0, part.z1) for (part,) in rounds[1]} == {(0, 4)}
    assert {(part.y0, part.y1) for (part,) in rounds[3]} == {(0, 2)}
    assert [part.step for part in rounds[2][0]] == [2, 3]
    assert len(shared_rounds([small, wide, deep], 1)) == 1
