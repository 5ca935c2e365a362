"""An exact planner of shared objects: an integer program, solved by scipy's HiGHS.

Each object is named by its largest tensor: which tensors are such, and whom the others join, are the unknowns of an
integer program. Of what a task has alive at most one tensor joins an object, which makes the program's relaxation so
tight that networks seldom need a branch. Tensors that always find an object free are left for last.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....base.errors import DeviceError
from ..memory_bounds import objects_bound_bytes
from ..memory_plan import MemoryPlan, Planner
from ..object_times import ObjectTimes
from ..profiles import full_tasks, record_columns
from ..records import UsageRecord
from ..smallest import EXACT_SECONDS

MOST_SOLVED = 400  # tensors: each pair of them is an unknown
MOST_SORTED_OUT = 4000  # tensors: each is compared with all others, at all tasks
NO_HIGHS = "exact plans of objects need scipy, which is not installed: pip install scipy"


def least_objects(records: Sequence[UsageRecord], plan: MemoryPlan, seconds: float) -> MemoryPlan:
    """The smallest plan that is found within about that time, no larger than the given one, and what is proven of it.

    Raises DeviceError without scipy.
    """
    least = objects_bound_bytes(records)
    if plan.total_bytes <= least or len(records) > MOST_SORTED_OUT:
        return replace(plan, least_bytes=least)
    end_s = time.monotonic() + seconds
    hard, easy = _without_easy(records, end_s)
    if len(hard) > MOST_SOLVED:
        return replace(plan, least_bytes=least)
    leaders, solved_bytes = _solve(hard, max(end_s - time.monotonic(), 0.0))
    least = max(least, solved_bytes)
    if leaders is not None:
        found = _plan(hard, leaders, easy)
        plan = min(plan, found, key=lambda plan: plan.total_bytes)
    return replace(plan, least_bytes=min(least, plan.total_bytes))


def _without_easy(records: Sequence[UsageRecord], end_s: float) -> tuple[list[UsageRecord], list[UsageRecord]]:
    """The records without, and in order those that are alive with fewer than there are objects of their size at least.

    At any task all alive are in different objects: there are as many of a size as a task has tensors of that size. At
    that time of the monotonic clock what has not been looked at stays.
    """
    first, last, sizes = record_columns(records)
    tasks = np.array(full_tasks(records), np.int64)
    alive = (first[:, None] <= tasks) & (tasks <= last[:, None])
    together = (first[:, None] <= last) & (first <= last[:, None])
    np.fill_diagonal(together, False)
    left, easy, before = np.ones(len(records), bool), list[int](), -1
    while before < len(easy):
        before = len(easy)
        for number in np.argsort(sizes, kind="stable"):
            if time.monotonic() > end_s:
                break
            others = left & (sizes >= sizes[number])
            others[number] = False
            if left[number] and (together[number] & left).sum() < alive[others].sum(axis=0).max(initial=0):
                left[number] = False
                easy.append(int(number))
    return [record for record, is_left in zip(records, left, strict=True) if is_left], [records[k] for k in easy]


def _solve(records: Sequence[UsageRecord], seconds: float) -> tuple[dict[int, int] | None, int]:
    """The largest tensor in the object of each tensor, None where none was found in time, and the bytes proven."""
    try:
        from scipy.optimize import Bounds, milp
    except ImportError:
        raise DeviceError(NO_HIGHS) from None
    order = sorted(records, key=lambda record: (-record.size_bytes, record.first_task))
    pairs = [(k, at) for k, r in enumerate(order) for at in range(k + 1) if k == at or not r.overlaps(order[at])]
    unit = math.gcd(*(record.size_bytes for record in records)) or 1
    costs = np.array([order[k].size_bytes // unit if k == leader else 0 for k, leader in pairs], float)
    found = milp(
        costs,
        constraints=_constraints(order, pairs),
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0, 1),
        options={"time_limit": seconds, "mip_rel_gap": 0},
    )
    proven = 0 if found.mip_dual_bound is None else math.ceil(found.mip_dual_bound - 1e-3) * unit
    if found.x is None:
        return None, proven
    chosen = (pair for pair, value in zip(pairs, found.x, strict=True) if value > 0.5)
    return {order[k].tensor: order[leader].tensor for k, leader in chosen}, proven


def _constraints(order: Sequence[UsageRecord], pairs: Sequence[tuple[int, int]]) -> list[Any]:
    """Each tensor joins one object; of a task's tensors at most one joins another one's, if that one has an object."""
    from scipy.optimize import LinearConstraint
    from scipy.sparse import coo_matrix

    tasks = full_tasks(order)
    unknowns = {pair: number for number, pair in enumerate(pairs)}
    joining = [[k for k in range(leader + 1, len(order)) if (k, leader) in unknowns] for leader in range(len(order))]
    rows = list[tuple[int, int, int]]()  # constraint, unknown, factor
    count = 0
    for leader, others in enumerate(joining):
        alive = {tuple(k for k in others if order[k].first_task <= task <= order[k].last_task) for task in tasks}
        for together in sorted(alive - {()}):
            rows += [(count, unknowns[k, leader], 1) for k in together]
            rows.append((count, unknowns[leader, leader], -1))
            count += 1
    shape = (count, len(pairs))
    row, column, factor = np.array(rows, np.int64).reshape(-1, 3).T
    one = coo_matrix((np.ones(len(pairs)), ([k for k, _ in pairs], range(len(pairs)))))
    return [LinearConstraint(one, 1, 1), LinearConstraint(coo_matrix((factor, (row, column)), shape), -np.inf, 0)]


def _plan(hard: Sequence[UsageRecord], leaders: dict[int, int], easy: Sequence[UsageRecord]) -> MemoryPlan:
    objects, numbers = ObjectTimes(len(hard) + len(easy)), dict[int, int]()
    for record in sorted(hard, key=lambda record: -record.size_bytes):
        numbers[leaders[record.tensor]], _ = objects.put(record, numbers.get(leaders[record.tensor]))
    for record in reversed(easy):
        objects.put(record, objects.best_by_size(record))
    return objects.plan()


def exact_objects(planner: Planner) -> Planner:
    """What EXACT_SECONDS of the solver make of a planner's plans. The planner raises DeviceError without scipy."""

    def plan(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
        return least_objects(records, planner(records, alignment_bytes), EXACT_SECONDS)

    return plan
