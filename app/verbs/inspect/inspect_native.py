"""`texelflow inspect MODEL --cpu native`: prints the functions that this CPU runs for a model."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES, LINE_FLOATS
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_program import NativeProgram, compile_native

from ...console import Console
from .inspect_tables import memory_table
from .memory_lines import memory_on_cpu
from .memory_picture import memory_page
from .memory_plot import save_memory_plot

_COLUMNS = ("#", "step", "function", "row groups", "slice blocks", "MMAC", "weights KiB")


def inspect_native(graph: Graph, fuse: bool, json: bool, console: Console, plot: Path | None = None) -> int:
    """Print the steps, or one JSON object, and draw the memory; the exit code is 0.

    Raises UnsupportedError, DeviceError, and as save_memory_plot.
    """
    program = compile_native(graph, native_target(), fuse)
    if plot:
        where = f"on the CPU, {program.target.name}"
        save_memory_plot(plot, memory_page(program, FLOAT_BYTES * LINE_FLOATS, ARENA.strategy.name, where))
    if json:
        console.json(_as_json(program, fuse) | ({"plot": str(plot)} if plot else {}))
        return 0
    target = program.target
    what = f"{graph.name} on {target.name}: {len(graph.nodes)} operators, {len(program.kernels)} steps"
    rows = [
        (number, k.name, k.symbol, k.row_groups, k.slice_blocks, round(k.macs / 1e6, 2), _kib(k.weights))
        for number, k in enumerate(program.kernels)
    ]
    console.table(what, _COLUMNS, rows, dense=True)
    functions = len({kernel.symbol for kernel in program.kernels})
    console.say(f"{functions} functions of {len(program.text) >> 10} KiB of text")
    console.show("", memory_table([memory_on_cpu(program, fuse)]))
    if plot:
        console.say(f"plot: {plot}")
    return 0


def _kib(values: Float32Array) -> float:
    return round(values.nbytes / 1024, 1)


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
                "weights_bytes": kernel.weights.nbytes,
            }
            for kernel in program.kernels
        ],
        "weights_bytes": program.weights.nbytes,
        "tensors_bytes": program.plan.total_bytes,
        "memory": asdict(memory_on_cpu(program, fuse)),
    }
