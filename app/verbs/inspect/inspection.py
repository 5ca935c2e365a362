"""What `texelflow inspect` shows of a compiled graph, with the machine's peaks, as plain values."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel, compile_s
from texelflow.gpu_delegate.targets.glsl.roofline import Peaks, cost_of

from ...advice.data_moves import MoveLine, moves_of
from ..tile_words import why_chosen
from .memory_lines import Memory, memory_on_gpu

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FREE = "·"


@dataclass(frozen=True)
class PassLine:
    """One pass: what it does, how often it did, why it did not elsewhere (reason to how often)."""

    name: str
    what: str
    applied: int
    nodes_after: int
    declined: Mapping[str, int]


@dataclass(frozen=True)
class Dispatch:
    """One dispatch, with what it costs at least. roof and least_ms are None where no peaks were measured."""

    number: int
    name: str
    program: int  # equal shaders are one program
    grid: tuple[int, int, int]
    work_group: tuple[int, int, int]
    threads: int  # of all work-groups
    idle_threads: int  # past the edges of the map
    operators: tuple[int, ...]  # of the file
    mmac: float  # as executed
    repeated_mmac: float  # of these, what work-groups and threads compute again
    characters: int  # of its source
    moved_bytes: int
    mac_per_byte: float
    roof: str | None
    least_ms: float | None
    barrier: bool  # before it
    signature: str  # by which choices are known; none for vector nodes alone
    tile: Tile | None
    chosen: str  # what the tile comes from


@dataclass(frozen=True)
class Inspection:
    """All of it. Shapes are (B, H, W, C), as in the file."""

    name: str
    precision: Precision
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    operators: Mapping[str, int]
    passes: tuple[PassLine, ...]
    fusion_declined: Mapping[str, int]
    dispatches: tuple[Dispatch, ...]
    memory: Memory
    peaks: Peaks | None
    moves: tuple[MoveLine, ...]
    compile_s: float  # of the CPU, about, where the driver has kept nothing

    @property
    def idle(self) -> float:
        """The part of all threads that are past the edges of maps."""
        return sum(d.idle_threads for d in self.dispatches) / max(1, sum(d.threads for d in self.dispatches))

    @property
    def programs(self) -> int:
        return len({dispatch.program for dispatch in self.dispatches})

    @property
    def barriers(self) -> int:
        return sum(dispatch.barrier for dispatch in self.dispatches)


def inspect_compiled(compiled: CompiledGraph, peaks: Peaks | None, device: Device, family: str) -> Inspection:
    """Everything to tell about a model, which was compiled for that device of that family."""
    source = compiled.source
    return Inspection(
        name=source.name,
        precision=compiled.precision,
        inputs=_shapes(source, source.inputs),
        outputs=_shapes(source, source.outputs),
        operators=dict(Counter(node.op for node in source.nodes).most_common()),
        passes=tuple(
            PassLine(r.name, r.summary, r.applied, r.nodes_after, _counted(r.declined)) for r in compiled.passes
        ),
        fusion_declined=_counted(reason.partition(": ")[2] for reason in compiled.declined),
        dispatches=_dispatches(compiled, peaks, lambda kernel: why_chosen(kernel, device.choices, family)),
        memory=memory_on_gpu(compiled, device),
        peaks=peaks,
        moves=moves_of(compiled),
        compile_s=compile_s(compiled.kernels, device.tuning.operation_compile_us),
    )


def arena_picture(compiled: CompiledGraph, columns: int = 100, rows: int = 12) -> list[str]:
    """The arena as text: addresses downward, dispatches to the right, a letter for each tensor, a dot for free bytes.

    Few dispatches are drawn several columns wide; of more than there are columns every n-th is drawn.
    """
    count, total = max(len(compiled.kernels), 1), max(compiled.plan.total_bytes, 1)
    step, width = -(-count // columns), max(1, min(4, columns // count))
    letters = {record.tensor: _LETTERS[i % len(_LETTERS)] for i, record in enumerate(compiled.records)}
    picture = [[_FREE] * len(range(0, count, step)) for _ in range(rows)]
    for record in sorted(compiled.records, key=lambda record: -record.size_bytes):
        start = compiled.plan.offsets[record.tensor]
        top = start * rows // total
        bottom = max(top + 1, round((start + record.size_bytes) * rows / total))
        for row in picture[top:bottom]:
            for column, number in enumerate(range(0, count, step)):
                if record.first_task <= number <= record.last_task:
                    row[column] = letters[record.tensor]
    return ["".join(cell * width for cell in row) for row in picture]


def _dispatches(compiled: CompiledGraph, peaks: Peaks | None, why: Callable[[Kernel], str]) -> tuple[Dispatch, ...]:
    programs: dict[str, int] = {}
    for kernel in compiled.kernels:
        programs.setdefault(kernel.source, len(programs) + 1)
    return tuple(
        _dispatch(number, kernel, compiled, programs[kernel.source], peaks, why(kernel))
        for number, kernel in enumerate(compiled.kernels)
    )


def _dispatch(
    number: int, kernel: Kernel, compiled: CompiledGraph, program: int, peaks: Peaks | None, chosen: str
) -> Dispatch:
    cost = cost_of(compiled, kernel)
    return Dispatch(
        number=number,
        name=kernel.name,
        program=program,
        grid=kernel.grid,
        work_group=kernel.local,
        threads=kernel.threads,
        idle_threads=kernel.idle_threads,
        operators=tuple(sorted({node.index for node in kernel.nodes if node.index >= 0})),
        mmac=cost.macs / 1e6,
        repeated_mmac=kernel.repeated_macs / 1e6,
        characters=len(kernel.source),
        moved_bytes=cost.moved_bytes,
        mac_per_byte=cost.intensity,
        roof=peaks.roof(cost) if peaks else None,
        least_ms=peaks.least_ms(cost) if peaks else None,
        barrier=bool(compiled.barriers[number]),
        signature=kernel.signature,
        tile=kernel.tile,
        chosen=chosen,
    )


def _shapes(graph: Graph, tensors: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    return tuple(graph.tensors[tensor].shape for tensor in tensors)


def _counted(reasons: Iterable[str]) -> Mapping[str, int]:
    return dict(Counter(reasons).most_common())
