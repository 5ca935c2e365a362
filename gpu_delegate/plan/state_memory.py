"""The memory of what is kept from run to run: a buffer for each state, which other programs may have, too.

The output that takes a state's place is written there at once where no kernel needs the old value any more by then;
else it has a place of its own, and is copied behind the last kernel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..model.graph import ABSENT, Graph
from .dispatch import BoundDispatch
from .memory.memory_plan import BufferPlace, MemoryPlan
from .memory.records import UsageRecord
from .views import Views


def kept_inputs(graph: Graph) -> tuple[int, ...]:
    """The inputs that nobody writes before a run."""
    return tuple(state.read for state in graph.states if state.read != ABSENT)


def replaced_states(
    graph: Graph,
    kernels: Sequence[BoundDispatch],
    records: Sequence[UsageRecord],
    views: Views,
    levels: Sequence[int] | None,
) -> Mapping[int, int]:
    """By output the state in whose memory it is written: by a kernel behind all that read the state.

    Kernels of one of the `levels` run side by side.
    """
    times = levels or range(len(kernels))
    sizes = {record.tensor: record.size_bytes for record in records}
    read, written = dict[int, int](), dict[int, int]()
    for time, kernel in zip(times, kernels, strict=True):
        read.update({views.place(tensor)[0]: time for tensor in kernel.inputs})
        for tensor in kernel.outputs:
            written.setdefault(views.place(tensor)[0], time)
    pairs = [(state.written, state.read) for state in graph.states if ABSENT not in (state.written, state.read)]
    return MappingProxyType(
        {
            output: kept
            for output, kept in pairs
            if sizes.get(output, -1) == sizes.get(kept) and output in written and read.get(kept, -1) < written[output]
        }
    )


def with_state_buffers(plan: MemoryPlan, states: Sequence[UsageRecord]) -> MemoryPlan:
    """The plan with a buffer for each of these behind the others."""
    first = len(plan.buffer_bytes)
    places = {record.tensor: BufferPlace(first + number, 0) for number, record in enumerate(states)}
    sizes = tuple(record.size_bytes for record in states)
    least_bytes = plan.least_bytes + sum(sizes) if plan.least_bytes else 0
    return replace(
        plan, places={**plan.places, **places}, buffer_bytes=(*plan.buffer_bytes, *sizes), least_bytes=least_bytes
    )
