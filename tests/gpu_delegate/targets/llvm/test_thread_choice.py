"""Whether runs are shared among threads: by what was measured, and again from time to time."""

import numpy as np
import pytest

from tests.model_files.sketch import GraphCase
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.thread_choice import LONG_S, RUNS, SECONDS, TRIED, TRIED_AGAIN, ThreadChoice


def used(choice: ThreadChoice, shared_s: float, alone_s: float, runs: int) -> list[bool]:
    """Which of so many runs were shared, if they take so long."""
    found = []
    for _ in range(runs):
        found.append(choice.shares)
        choice.note(shared_s if choice.shares else alone_s)
    return found


@pytest.mark.parametrize(
    ("shared_s", "alone_s", "shares"), [(1e-3, 1.6e-3, True), (1e-3, 0.8e-3, False), (1e-3, 0.97e-3, True)]
)
def test_what_takes_less_time_is_used(shared_s: float, alone_s: float, shares: bool) -> None:
    choice = ThreadChoice()
    assert sorted(used(choice, shared_s, alone_s, 2 * TRIED)) == [False] * TRIED + [True] * TRIED
    assert set(used(choice, shared_s, alone_s, RUNS)) == {shares}


def test_a_machine_that_becomes_busy_and_quiet_again() -> None:
    choice, quick = ThreadChoice(), SECONDS / RUNS / 2
    used(choice, quick, 2 * quick, 2 * TRIED)
    assert used(choice, quick, 2 * quick, 3 * RUNS).count(False) == TRIED_AGAIN
    used(choice, 9 * quick, 2 * quick, 2 * RUNS)
    assert not choice.shares
    used(choice, quick, 2 * quick, 4 * RUNS)
    assert choice.shares


def test_a_long_run_is_shared_at_once() -> None:
    choice = ThreadChoice()
    assert all(used(choice, LONG_S, LONG_S / 2, 2 * TRIED))


def test_both_ways_compute_the_same_bits() -> None:
    graph = GraphCase("CONV_2D", "a few tasks", lambda m: m.conv(m.image(33, 31, 24), 40, (3, 3))).graph()
    network = NativeNetwork.load(graph)
    values = np.random.default_rng(0).uniform(-1, 1, network.input_shapes[0]).astype(np.float32)
    assert len({network.run(values)[0].tobytes() for _ in range(3 * TRIED)}) == 1
