"""Plans the memory of programs that run in turns: a buffer of its own for each, the rest shared.

Programs that run one after another each need their own inputs and outputs, and use the rest in turns. While an input or
output is not alive, other tensors of the same program use its memory; so one program alone takes hardly more than
without sharing.
"""

from collections.abc import Collection, Sequence

from .memory_plan import MemoryPlan, Planner, in_one_arena, side_by_side
from .offsets import PlacedOffsets
from .profiles import by_size
from .records import UsageRecord


def with_own(
    records: Sequence[UsageRecord], own: Collection[int], planner: Planner, alignment_bytes: int
) -> MemoryPlan:
    """The tensors `own`, and what fits beside them, in a buffer behind those that programs may share."""
    placed, offsets = PlacedOffsets(len(records), alignment_bytes), dict[int, int]()
    for record in by_size([record for record in records if record.tensor in own]):
        offsets[record.tensor] = placed.put(record)
    own_bytes, shared = placed.total_bytes, list[UsageRecord]()
    for record in by_size([record for record in records if record.tensor not in own]):
        offset = placed.put_within(record, own_bytes)
        if offset is None:
            shared.append(record)
        else:
            offsets[record.tensor] = offset
    return side_by_side(planner(shared, alignment_bytes), in_one_arena(offsets, own_bytes))
