"""Lays out memory plans as blocks over time and addresses, to be drawn.

Nothing is drawn here: memory_plot.py does that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.memory.memory_plan import MemoryPlan
from texelflow.gpu_delegate.plan.memory.offsets import naive
from texelflow.gpu_delegate.plan.memory.op_graph import op_records
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.memory.strategies import BOUNDS, END_TO_END, STRATEGIES, PlanKind, Strategy
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph
from texelflow.gpu_delegate.targets.llvm.native_program import NativeProgram

COLORS = 7  # of blocks: neighbors differ
OUTER = -1  # in place of a color: an input or output, whose place is the caller's


@dataclass(frozen=True)
class TensorUse:
    """Tasks that run one after another, and the tensors that they use."""

    title: str
    task: str  # what a task is called
    tasks: int
    records: tuple[UsageRecord, ...]
    names: Mapping[int, str]
    outer: frozenset[int]  # inputs and outputs of the model, where their memory is planned, too
    alignment_bytes: int

    @cached_property
    def busiest(self) -> int:
        """The first task at which the most bytes are alive."""
        alive = np.zeros(self.tasks + 2, np.int64)
        for record in self.records:
            alive[record.first_task] += record.size_bytes
            alive[record.last_task + 1] -= record.size_bytes
        return int(np.argmax(np.cumsum(alive)[: max(1, self.tasks)]))


@dataclass(frozen=True)
class TensorBlock:
    """A tensor in the picture: tasks from first to end (not included) across, bytes up."""

    name: str
    first_task: int
    end_task: int
    address_bytes: int
    size_bytes: int
    color: int  # below COLORS, or OUTER

    @property
    def tasks(self) -> tuple[int, int]:
        return self.first_task, self.end_task

    @property
    def addresses(self) -> tuple[int, int]:
        return self.address_bytes, self.address_bytes + self.size_bytes


@dataclass(frozen=True)
class MemoryPanel:
    """A plan as blocks."""

    title: str
    tasks: int
    blocks: tuple[TensorBlock, ...]
    buffer_bytes: tuple[int, ...]  # one after another upward
    bound_bytes: int  # no plan of its kind takes less

    @property
    def total_bytes(self) -> int:
        return sum(self.buffer_bytes)


@dataclass(frozen=True)
class StrategyRow:
    """All strategies of a kind on the same records."""

    kind: PlanKind
    panels: tuple[MemoryPanel, ...]


@dataclass(frozen=True)
class StrategySection:
    """All strategies on a program or on a graph, each kind a row."""

    use: TensorUse
    naive_bytes: int
    rows: tuple[StrategyRow, ...]


@dataclass(frozen=True)
class MemoryPage:
    """All that is drawn of a model: the plan that is used beside the naive one, and what else there could be."""

    title: str
    use: TensorUse
    used: MemoryPanel
    naive: MemoryPanel
    sections: tuple[StrategySection, ...]


def memory_page(compiled: CompiledGraph | NativeProgram, alignment_bytes: int, planner: str, where: str) -> MemoryPage:
    """The page of a program, whose memory the strategy of this name has planned, and which runs there."""
    task = "step" if isinstance(compiled, NativeProgram) else "dispatch"
    use, plan = use_in_program(compiled, task, alignment_bytes), compiled.plan
    sections = tuple(_section(each) for each in (use, use_in_graph(compiled.source)) if each.records)
    colors, bound_bytes = plan_colors(use, plan), _bound_of(plan, *sections[:1])
    kept_in = counted(len(plan.buffer_bytes), "object") if len(plan.buffer_bytes) > 1 else "one arena"
    used = plan_panel(use, plan, colors, bound_bytes, f"In use: {planner}, {kept_in}")
    apart = naive(use.records, use.alignment_bytes)
    unshared = plan_panel(use, apart, colors, bound_bytes, "Naive: a place for each")
    return MemoryPage(f"{compiled.source.name}, {where}", use, used, unshared, sections)


def plan_panel(
    use: TensorUse, plan: MemoryPlan, colors: Mapping[int, int], bound_bytes: int = 0, title: str = ""
) -> MemoryPanel:
    """A plan of the tensors as blocks in these colors."""
    blocks = tuple(
        TensorBlock(
            use.names[record.tensor] or f"tensor {record.tensor}",
            record.first_task,
            min(record.last_task + 1, use.tasks),
            plan.offsets[record.tensor],
            record.size_bytes,
            colors[record.tensor],
        )
        for record in use.records
    )
    return MemoryPanel(title, use.tasks, blocks, plan.buffer_bytes, bound_bytes)


def plan_colors(use: TensorUse, plan: MemoryPlan) -> Mapping[int, int]:
    """A color for each tensor: of several buffers that of its buffer, in one arena another than its neighbors'."""
    return _by_neighbor(use, plan) if len(plan.buffer_bytes) == 1 else _by_buffer(use, plan)


def use_in_program(compiled: CompiledGraph | NativeProgram, task: str, alignment_bytes: int) -> TensorUse:
    """The tasks of a program, each called so."""
    names = {record.tensor: compiled.tensor(record.tensor).name for record in compiled.records}
    outer = frozenset(compiled.graph.inputs) | frozenset(compiled.graph.outputs)
    count = len(compiled.kernels)
    return TensorUse("the compiled program", task, count, compiled.records, names, outer, alignment_bytes)


def use_in_graph(graph: Graph) -> TensorUse:
    """The operators of a graph as read."""
    records = op_records(graph)
    names = {record.tensor: graph.tensors[record.tensor].name for record in records}
    tasks = max((record.last_task + 1 for record in records), default=0)
    return TensorUse("the graph of operators", "operator", tasks, records, names, frozenset(), 1)


def _bound_of(plan: MemoryPlan, *sections: StrategySection) -> int:
    """What no plan of the kind takes less than, of those that were found for the same tensors."""
    kind = "objects" if len(plan.buffer_bytes) > 1 else "offsets"
    return max((row.panels[0].bound_bytes for each in sections for row in each.rows if row.kind == kind), default=0)


def _section(use: TensorUse) -> StrategySection:
    """Each strategy, but for those that are drawn already, and for the naive one, which would leave others no room."""
    rows: list[StrategyRow] = []
    for kind, bound in BOUNDS.items():
        plans = dict(_plans(use, [each for each in STRATEGIES if each.kind == kind and _is_drawn(each)]))
        if plans:
            least = max(bound(use.records, use.alignment_bytes), *(plan.least_bytes for plan in plans.values()))
            rows.append(StrategyRow(kind, tuple(_panels(use, plans, least))))
    return StrategySection(use, naive(use.records, use.alignment_bytes).total_bytes, tuple(rows))


def _is_drawn(strategy: Strategy) -> bool:
    return strategy.name not in ("naive", "best") and not strategy.name.endswith(END_TO_END)


def _plans(use: TensorUse, strategies: Iterable[Strategy]) -> Iterator[tuple[str, MemoryPlan]]:
    """Of each strategy that can be had here."""
    for strategy in strategies:
        with suppress(DeviceError):  # a planner that needs a library, or has too many records
            yield strategy.name, strategy.plan(use.records, use.alignment_bytes)


def _panels(use: TensorUse, plans: Mapping[str, MemoryPlan], bound_bytes: int) -> Iterator[MemoryPanel]:
    """In one arena a tensor has the same color under all strategies."""
    shared: Mapping[int, int] | None = None
    for name, plan in plans.items():
        if len(plan.buffer_bytes) > 1:
            colors = _by_buffer(use, plan)
        else:
            colors = shared = shared or _by_neighbor(use, plan)
        yield plan_panel(use, plan, colors, bound_bytes, name)


def _by_buffer(use: TensorUse, plan: MemoryPlan) -> Mapping[int, int]:
    """A color for each shared object; those beside each other differ."""
    tensors = (record.tensor for record in use.records)
    return {each: OUTER if each in use.outer else plan.places[each].buffer % COLORS for each in tensors}


def _by_neighbor(use: TensorUse, plan: MemoryPlan) -> Mapping[int, int]:
    """A color for each tensor; those that touch in the picture differ, as far as there are colors."""
    records: Sequence[UsageRecord] = use.records
    first = np.array([record.first_task for record in records])
    last = np.array([record.last_task for record in records])
    start = np.array([plan.offsets[record.tensor] for record in records])
    end = start + np.array([record.size_bytes for record in records])
    colors = np.full(len(records), OUTER)
    for number in np.lexsort((start, first)):
        if records[number].tensor in use.outer:
            continue
        touching = (first <= last[number] + 1) & (last >= first[number] - 1)
        touching &= (start <= end[number]) & (end >= start[number])
        near, far = (np.bincount(each[each >= 0], minlength=COLORS) for each in (colors[touching], colors))
        colors[number] = int(np.lexsort((far, near))[0])  # fewest neighbors have it, then fewest at all
    return {record.tensor: int(color) for record, color in zip(records, colors, strict=True)}
