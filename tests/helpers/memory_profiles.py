"""What is alive at each task, by which planners' orders and bounds are checked.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (arXiv 2001.03288), section 3.
"""

from collections.abc import Sequence

from texelflow.gpu_delegate.plan.memory.records import UsageRecord


def task_profiles(records: Sequence[UsageRecord]) -> tuple[tuple[int, ...], ...]:
    """For each task from 0 on the numbers of the records alive then, the largest first."""
    profiles: list[list[int]] = [[] for _ in range(max((record.last_task + 1 for record in records), default=0))]
    for number in sorted(range(len(records)), key=lambda k: -records[k].size_bytes):
        for profile in profiles[records[number].first_task : records[number].last_task + 1]:
            profile.append(number)
    return tuple(map(tuple, profiles))
