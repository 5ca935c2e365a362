"""`texelflow inspect MODEL --cpu native`: a model goes in; the functions that this CPU runs for it are printed."""

from typing import Any

from texelflow.gpu_delegate.graph import Graph
from texelflow.gpu_delegate.llvm.compiler import native_target
from texelflow.gpu_delegate.llvm.program import NativeProgram, compile_native
from texelflow.gpu_delegate.memory.bounds import lower_bound_bytes
from texelflow.gpu_delegate.packing import Float32Array

from ..console import Console

_COLUMNS = ("#", "step", "function", "row groups", "slice blocks", "MMAC", "weights KiB")


def inspect_native(graph: Graph, fuse: bool, json: bool, console: Console) -> int:
    """Print the steps, or one JSON object; the exit code is 0. Raises UnsupportedError, DeviceError."""
    program = compile_native(graph, native_target(), fuse)
    if json:
        console.json(_as_json(program))
        return 0
    target = program.target
    what = f"{graph.name} on {target.name}: {len(graph.nodes)} operators, {len(program.kernels)} steps"
    rows = [
        (number, k.name, k.symbol, k.row_groups, k.slice_blocks, round(k.macs / 1e6, 2), _kib(k.weights))
        for number, k in enumerate(program.kernels)
    ]
    console.table(what, _COLUMNS, rows, dense=True)
    functions = len({kernel.symbol for kernel in program.kernels})
    least, planned = lower_bound_bytes(program.records), program.plan.total_bytes
    console.say(
        f"{functions} functions of {len(program.text) >> 10} KiB of text, weights {program.weights.nbytes >> 10} KiB, "
        f"tensors {planned >> 10} KiB, at least {least >> 10} KiB"
    )
    return 0


def _kib(values: Float32Array) -> float:
    return round(values.nbytes / 1024, 1)


def _as_json(program: NativeProgram) -> dict[str, Any]:
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
    }
