"""Usage records of tensors that a program keeps, and of others, go in; its own buffer and those to share come out.

Programs that run one after another need their inputs and outputs each, and the rest in turns. While an input or output
is not alive, its memory has others of the same program, so that less is shared, and one program alone takes hardly more
than without that.
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
