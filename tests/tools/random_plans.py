"""Plans the memory of random tensors by default and as TensorFlow Lite does: no set of them may take more by default.

python -m tests.tools.random_plans --sets 10000 --seed 0
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from tests.tools.command import run_tool
from texelflow.app.bench.memory_plans.memory_bench import TFLITE_DEFAULT
from texelflow.app.console import Console
from texelflow.app.signals import exit_code, stop_flag
from texelflow.gpu_delegate.plan.memory.memory_bounds import lower_bound_bytes
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.memory.strategies import strategy_of

MOST_TENSORS, LONGEST = 120, 12  # of a set; tasks that a tensor is alive for, but for one in ten
UNIT_BYTES, MOST_UNITS = (
    64,
    10_000,
)  # sizes are so many times a unit, small ones as likely as large ones or evenly drawn


@dataclass(frozen=True)
class PlannedSet:
    """Bytes that a set of tensors takes."""

    ours: int
    tflite: int
    bound: int
    proven: bool


def random_records(seed: int) -> list[UsageRecord]:
    """Some tensors, one or two for each task."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, MOST_TENSORS + 1))
    evenly = rng.integers(1, MOST_UNITS, count)
    sizes = UNIT_BYTES * (evenly if rng.random() < 0.5 else np.exp(rng.uniform(0, np.log(MOST_UNITS), count))).astype(
        int
    )
    firsts = np.arange(count) // int(rng.integers(1, 3))
    lives = np.where(rng.random(count) < 0.1, rng.integers(0, count, count), rng.integers(0, LONGEST, count))
    lasts = np.minimum(firsts + lives, count)
    rows = zip(sizes.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
    return [UsageRecord(number, *row) for number, row in enumerate(rows)]


def planned_set(records: Sequence[UsageRecord]) -> PlannedSet:
    """By default, and the smallest that TensorFlow Lite's default strategies find."""
    ours = ARENA.strategy.plan(records, 1)
    tflite = min(strategy_of("objects", name).plan(records, 1).total_bytes for name in TFLITE_DEFAULT)
    return PlannedSet(ours.total_bytes, tflite, lower_bound_bytes(records), ours.is_proven)


def random_plans(
    sets: Annotated[int, typer.Option(metavar="N", help="Sets of tensors.", min=1)] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the first set.")] = 0,
) -> int:
    """Plan random sets of tensors; exit code 1 where the default takes more than TensorFlow Lite's."""
    console, found, larger = Console(), list[PlannedSet](), list[int]()
    with stop_flag() as stop, console.steps("planning") as report:
        for number in range(seed, seed + sets):
            if stop:
                break
            report(number - seed, sets, f"set {number}")
            found.append(planned_set(random_records(number)))
            if found[-1].ours > found[-1].tflite:
                larger.append(number)
    smaller = sum(one.ours < one.tflite for one in found)
    under = 1 - float(np.mean([one.ours / one.tflite for one in found] or [1]))
    console.say(
        f"{len(found)} sets: ours is larger in {len(larger)}, smaller in {smaller}, {under:.1%} under on average"
    )
    console.say(f"proven to be the least: {sum(one.proven for one in found)}")
    console.say(f"sets in which ours is larger: {', '.join(map(str, larger)) or 'none'}")
    return exit_code(stop.number) or int(bool(larger))


if __name__ == "__main__":
    sys.exit(run_tool("random_plans", random_plans))
