"""`texelflow inspect MODEL --cpu native`: prints the functions that this CPU runs for a model."""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu.delegation import IN_NATIVE_CODE
from texelflow.gpu_delegate.delegate.native_parts import native_parts
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES, LINE_FLOATS
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_program import NativeProgram, compile_native
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool, default_threads

from ...console import Console
from ...models.meaning import Meaning
from .coverage import borders, left_as_json
from .inspect_tables import memory_table, show_coverage, show_partitions
from .memory_lines import memory_on_cpu
from .memory_picture import memory_page
from .memory_plot import save_memory_plot

_COLUMNS = ("#", "step", "function", "row groups", "slice blocks", "MMAC", "weights KiB")


def inspect_native(
    graph: Graph, meaning: Meaning, fuse: bool, json: bool, console: Console, plot: Path | None = None
) -> int:
    """Print the steps, or one JSON object, and draw the memory; the exit code is 0.

    Of a model that does not run wholly in native code, print what does. Raises UnsupportedError with
    `plot`, DeviceError, and as save_memory_plot.
    """
    try:
        program = compile_native(graph, native_target(), fuse)
    except UnsupportedError as error:
        if plot:
            raise
        return _inspect_parts(graph, meaning, error, json, console)
    if plot:
        where = f"on the CPU, {program.target.name}"
        save_memory_plot(plot, memory_page(program, FLOAT_BYTES * LINE_FLOATS, ARENA.strategy.name, where))
    if json:
        more = {"shown": asdict(meaning)} | ({"plot": str(plot)} if plot else {})
        console.json(_as_json(program, fuse) | more)
        return 0
    target = program.target
    what = f"{graph.name} on {target.name}: {len(graph.nodes)} operators, {len(program.kernels)} steps"
    rows = [
        (number, k.name, k.symbol, k.row_groups, k.slice_blocks, round(k.macs / 1e6, 2), _kib(k.weights_bytes))
        for number, k in enumerate(program.kernels)
    ]
    console.say(meaning.line)
    console.table(what, _COLUMNS, rows, dense=True)
    functions = len({kernel.symbol for kernel in program.kernels})
    console.say(f"{functions} functions of {len(program.text) >> 10} KiB of text")
    console.show("", memory_table([memory_on_cpu(program, fuse)]))
    if plot:
        console.say(f"plot: {plot}")
    return 0


def _inspect_parts(graph: Graph, meaning: Meaning, refused: UnsupportedError, json: bool, console: Console) -> int:
    """What runs in native code of a model that does not wholly, and why the rest is TensorFlow Lite's."""
    target = native_target()
    with closing(WorkerPool(target, default_threads())) as pool:
        found = native_parts(graph, pool)
    works = [network.work for network in found.compiled]
    if json:
        parts = [
            {"operators": partition.nodes, "steps": work.dispatches, "mmac": work.macs / 1e6, **asdict(border)}
            for partition, work, border in zip(found.partitions, works, borders(found), strict=True)
        ]
        about = {"name": graph.name, "cpu": target.name, "refused": str(refused), "shown": asdict(meaning)}
        console.json({**about, "partitions": parts, "nodes_left": left_as_json(found)})
        return 0
    console.say(meaning.line)
    console.say(str(refused))
    show_coverage(console, found, IN_NATIVE_CODE)
    if works:
        show_partitions(console, found, [(work.dispatches, work.macs / 1e6) for work in works], "steps")
    return 0


def _kib(size_bytes: int) -> float:
    return round(size_bytes / 1024, 1)


def _as_json(program: NativeProgram, fuse: bool) -> dict[str, Any]:
    return {
        "name": program.source.name,
        "cpu": program.target.name,
        "passes": {report.name: report.applied for report in program.passes},
        "steps": [
            {
                "name": kernel.name,
                "function": kernel.symbol,
                "operators": sorted({node.index for node in kernel.nodes if node.index >= 0}),
                "row_groups": kernel.row_groups,
                "slice_blocks": kernel.slice_blocks,
                "mmac": kernel.macs / 1e6,
                "weights_bytes": kernel.weights_bytes,
            }
            for kernel in program.kernels
        ],
        "weights_bytes": program.weights.nbytes,
        "tensors_bytes": program.plan.total_bytes,
        "memory": asdict(memory_on_cpu(program, fuse)),
    }
