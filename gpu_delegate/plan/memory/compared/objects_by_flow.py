"""A planner of shared objects by minimum-cost flow: which tensor takes over which object, solved by scipy.

Source: Lee et al., "On-Device Neural Net Inference with Mobile GPUs" (arXiv 1907.01989), section 5, which solves the
same as a minimum-cost flow.
"""

from collections.abc import Sequence

import numpy as np

from ....base.errors import DeviceError
from ..memory_plan import MemoryPlan, in_objects
from ..profiles import record_columns
from ..records import UsageRecord

MOST_TENSORS = 3000  # of which the costs take 72 MB, and the solver some seconds
NO_SCIPY = "min-cost-flow needs scipy, which is not installed: pip install scipy"


def min_cost_flow(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Each tensor after the one whose object it takes over, or with a new one, so that objects grow least in all.

    A new object costs its size, one that is taken over what the tensor is larger than the one before: chains in which
    sizes fall and rise again cost more than they have to. Raises DeviceError without scipy and for too many tensors.
    """
    if len(records) > MOST_TENSORS:
        raise DeviceError(
            f"min-cost-flow takes at most {MOST_TENSORS} tensors, not {len(records)}: use another planner"
        )
    before = _predecessors(records)
    objects, sizes = dict[int, int](), list[int]()
    for number in sorted(range(len(records)), key=lambda k: records[k].first_task):
        record, at = records[number], before[number]
        if at is None:
            objects[record.tensor] = len(sizes)
            sizes.append(record.size_bytes)
        else:
            objects[record.tensor] = taken = objects[records[at].tensor]
            sizes[taken] = max(sizes[taken], record.size_bytes)
    return in_objects(objects, sizes)


def _predecessors(records: Sequence[UsageRecord]) -> list[int | None]:
    """For each record the number of the one whose object it takes over; None for a new one."""
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise DeviceError(NO_SCIPY) from None
    first, last, sizes = record_columns(records)
    may_follow = last[None, :] < first[:, None]
    # Instead of the cost, what taking over saves: no more than there is, and nothing where it may not. Of equal
    # savings those that leave less of the objects unused: these parts of a byte are less than one in all.
    size, given = sizes[:, None], sizes[None, :]
    unused = np.maximum(given - size, 0) / ((len(records) + 1) * sizes.max(initial=1))
    _, before = linear_sum_assignment(np.where(may_follow, np.minimum(size, given) - unused, 0), maximize=True)
    return [int(at) if may_follow[number, at] else None for number, at in enumerate(before)]
