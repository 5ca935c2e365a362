"""Orders of tasks: the lowest peak of all orders, dependencies kept, and never worse than the given order."""

import itertools
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu_delegate.plan.test_hazards import check_barriers
from tests.helpers.sharing import outputs_by_plan, planned_anew
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.hazards import STORAGE, Access
from texelflow.gpu_delegate.plan.memory.memory_options import REWRITTEN, MemoryOptions
from texelflow.gpu_delegate.plan.memory.order import least_peak
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import accesses_of, compile_graph, reordered_bytes

Tasks = list[list[Access]]
SIZE = 4  # the end of a buffer, of which tasks may write a part


@st.composite
def task_lists(draw: st.DrawFn) -> tuple[Tasks, dict[int, int]]:
    """Each task writes a buffer of its own or the second half of one before, and reads some before it, or 0."""
    tasks: Tasks = []
    buffers = [0]
    for number in range(draw(st.integers(1, 6))):
        reads = draw(st.lists(st.sampled_from(buffers), min_size=1, max_size=2, unique=True))
        half = draw(st.booleans()) and len(buffers) > 1
        written = draw(st.sampled_from(buffers[1:])) if half else number + 1
        start = SIZE // 2 if half else 0
        end = draw(st.sampled_from((SIZE // 2, SIZE))) if not half else SIZE
        tasks.append([*(Access(k, 0, SIZE, STORAGE) for k in reads), Access(written, start, end, STORAGE, True)])
        buffers = list(dict.fromkeys([*buffers, written]))
    return tasks, {buffer: draw(st.integers(1, 9)) for buffer in buffers}


def waits(tasks: Tasks, earlier: int, later: int) -> bool:
    return any(a.conflicts(b) for a, b in itertools.product(tasks[earlier], tasks[later]))


def is_in_order(tasks: Tasks, order: Sequence[int]) -> bool:
    places = {task: place for place, task in enumerate(order)}
    pairs = itertools.combinations(range(len(tasks)), 2)
    return all(places[a] < places[b] for a, b in pairs if waits(tasks, a, b))


def peak_of(tasks: Tasks, sizes: dict[int, int], order: Sequence[int], kept: set[int]) -> int:
    """The most alive at a time: 0 is the input, alive from the start on."""
    users = {
        buffer: [k for k, task in enumerate(order) if any(a.buffer == buffer for a in tasks[task])] for buffer in sizes
    }
    lives = {
        buffer: (min(found), len(order) if buffer in kept else max(found)) for buffer, found in users.items() if found
    }
    lives[0] = (0, lives.get(0, (0, 0))[1])
    return max(sum(sizes[b] for b, (first, last) in lives.items() if first <= k <= last) for k in range(len(order)))


@settings(max_examples=60)
@given(task_lists(), st.booleans())
def test_the_order_has_the_least_peak_of_all(case: tuple[Tasks, dict[int, int]], keeps: bool) -> None:
    tasks, sizes = case
    kept = {max(sizes)} | ({0} if keeps else set())
    found = least_peak(tasks, sizes, {0}, kept)
    assert sorted(found.tasks) == list(range(len(tasks)))
    assert is_in_order(tasks, found.tasks)
    assert found.peak_bytes == peak_of(tasks, sizes, found.tasks, kept)
    orders = (order for order in itertools.permutations(range(len(tasks))) if is_in_order(tasks, order))
    assert found.peak_bytes == min(peak_of(tasks, sizes, order, kept) for order in orders)
    assert found.is_least
    narrow = least_peak(tasks, sizes, {0}, kept, most_sets=1)
    assert is_in_order(tasks, narrow.tasks)
    assert found.peak_bytes <= narrow.peak_bytes <= peak_of(tasks, sizes, range(len(tasks)), kept)
    assert not narrow.is_least or narrow.peak_bytes == found.peak_bytes


def test_many_branches_are_ordered_by_what_each_leaves() -> None:
    """Branches that each need much and leave little, written as layers: one after the other they need one at a time."""
    branches = 15
    tasks: Tasks = [[Access(0, 0, SIZE, STORAGE), Access(1 + k, 0, SIZE, STORAGE, True)] for k in range(branches)]
    ends = [[Access(1 + k, 0, SIZE, STORAGE), Access(100 + k, 0, SIZE, STORAGE, True)] for k in range(branches)]
    join = [*(Access(100 + k, 0, SIZE, STORAGE) for k in range(branches)), Access(200, 0, SIZE, STORAGE, True)]
    sizes = {0: 1, 200: 1, **{1 + k: 100 for k in range(branches)}, **{100 + k: 1 for k in range(branches)}}
    found = least_peak([*tasks, *ends, join], sizes, {0}, {200})
    assert found.peak_bytes == 100 + branches
    assert is_in_order([*tasks, *ends, join], found.tasks)


def layered() -> Graph:
    """Branches that grow and shrink again, in a file that has all that grow first."""
    m = Sketch(0)
    x = m.image(16, 16, 4)
    grown = [m.conv(x, 32) for _ in range(3)]
    small = [m.pool("MAX_POOL_2D", large, (2, 2), stride=(2, 2)) for large in grown]
    m.output(m.binary("ADD", m.binary("ADD", small[0], small[1]), small[2]))
    return read_model(m.build())


def test_kernels_change_places_without_changing_a_value(context: Context) -> None:
    made = compile_graph(layered(), SOFTWARE, CompileOptions(fuse=False, memory=MemoryOptions("naive")))
    alignment_bytes = SOFTWARE.offset_alignment_bytes
    as_given, ordered = (
        planned_anew(made, MemoryOptions(keeps_inputs=False, reorders=reorders), alignment_bytes)
        for reorders in (False, True)
    )
    assert ordered.plan.total_bytes < as_given.plan.total_bytes
    assert reordered_bytes(as_given, alignment_bytes) == ordered.plan.total_bytes
    assert reordered_bytes(ordered, alignment_bytes) == ordered.plan.total_bytes
    assert {kernel.name for kernel in ordered.kernels} == {kernel.name for kernel in as_given.kernels}
    check_barriers(accesses_of(ordered), ordered.barriers)
    found = outputs_by_plan(context, {"naive": made, "ordered": ordered})
    assert found["ordered"] == found["naive"]
    assert REWRITTEN.reorders is False, "nobody gets another order who has not asked for it"
