"""Prints the tables and lines of `texelflow inspect`."""

from collections.abc import Iterable, Sequence

from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from texelflow.gpu_delegate.base.wording import number_ranges
from texelflow.gpu_delegate.cpu.delegation import ON_GPU
from texelflow.gpu_delegate.delegate.report import OpLine, op_lines
from texelflow.gpu_delegate.model.graph import Graph, Shape, Tensor
from texelflow.gpu_delegate.model.quantization import is_quantized, quantization_of, step_size, zero_point_of
from texelflow.gpu_delegate.plan.compiled_parts import AnyParts
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph
from texelflow.gpu_delegate.targets.glsl.roofline import Peaks

from ...advice.data_moves import WAYS
from ...console import Console
from ...models.meaning import Meaning
from .coverage import borders, summary, unknown_custom_ops
from .declines import alike
from .inspection import Inspection, arena_picture
from .memory_lines import Memory

_COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
_MIB = 1 << 20
_KERNEL_COLUMNS = 13, 16  # of the names of kernels, in a narrow terminal and in a wide one
_WIDE = 120
_MOST_PARTITIONS = 12  # in a table: more are summed up
_SAVED_BY = (
    "in and out: inputs behind their last reader and outputs ahead of their writer share memory; views: tensors lie",
    "inside others; in place: kernels write where they read. Weights are those in buffers, others are in the code.",
)
_MOST_SHAPES = 6  # of one side of a model ...
_MOST_CROSSING = 2  # ... and of a partition


def show_head(console: Console, graph: Graph, meaning: Meaning, machine: str, peaks: Peaks | None) -> None:
    """The model, what is shown of it, and what it is compiled for."""
    sides = (_shapes(graph.tensors[tensor].shape for tensor in side) for side in (graph.inputs, graph.outputs))
    console.show(Text.assemble((graph.name, "bold"), f"  {' -> '.join(sides)}  {len(graph.nodes)} operators"))
    if types := types_line(graph):
        console.show(types)
    console.show(Text(meaning.line))
    console.show(Text(machine, "dim"))
    if peaks:
        console.show(
            f"peaks: {peaks.macs_per_s / 1e9:.1f} GMAC/s, {peaks.bytes_per_s / 1e9:.1f} GB/s, "
            f"so arithmetic bounds from {peaks.ridge:.1f} MAC per byte on"
        )


def types_line(graph: Graph) -> str:
    """What inputs and outputs are that are not all float32, and how much of a graph is quantized; "" if nothing is."""
    tensors = graph.tensors
    sides = [[_type(tensors[index]) for index in side][:_MOST_SHAPES] for side in (graph.inputs, graph.outputs)]
    if {*sides[0], *sides[1]} <= {"float32"}:
        sides = []
    said = [" -> ".join(", ".join(side) for side in sides)] if sides else []
    if count := sum(is_quantized(tensor) for tensor in tensors.values()):
        most = max(len(quantization_of(tensor).scales) for tensor in tensors.values() if is_quantized(tensor))
        channels = f", weights per channel in up to {most} scales" if most > 1 else ""
        said.append(f"{count} of {len(tensors)} tensors quantized{channels}")
    return "; ".join(said)


def _type(tensor: Tensor) -> str:
    """uint8 (step 0.0078, zero at 128)."""
    if not is_quantized(tensor):
        return tensor.dtype
    return f"{tensor.dtype} (step {step_size(tensor):.3g}, zero at {zero_point_of(tensor)})"


def show_coverage(console: Console, found: AnyParts, places: tuple[str, str] = ON_GPU) -> None:
    """What runs where, and why."""
    _title(console, summary(found, places))
    lines = op_lines(found)
    if found.reasons:
        console.show(_ops(lines, places[0]))
    else:
        console.show(Columns([Text(f"{line.count:4} {line.op}") for line in lines], padding=(0, 2)))
    if names := unknown_custom_ops(found.graph):
        console.show(
            f"custom ops: {', '.join(names)}; TensorFlow Lite, too, runs the model only where it has their code, or "
            "with texelflow.custom_op (docs/delegate.md)"
        )


def show_partitions(
    console: Console, found: AnyParts, costs: Sequence[tuple[int, float]], each: str = "dispatches"
) -> None:
    """The partitions and what crosses their borders, the largest ones if there are many.

    `costs` has dispatches, or what `each` calls them, and millions of multiply-accumulates.
    """
    _title(console, "Partitions")
    table = plain_table(
        ("#", "right"), ("operators", "left"), ("reads", "left"), ("writes", "left"),
        ("KiB in", "right"), ("KiB out", "right"), (each, "right"), ("MMAC", "right"),
    )  # fmt: skip
    rows = list(zip(found.partitions, borders(found), costs, strict=True))
    largest = sorted(range(len(rows)), key=lambda number: -len(rows[number][0].nodes))[:_MOST_PARTITIONS]
    for number in sorted(largest):
        partition, border, (dispatches, mmac) = rows[number]
        table.add_row(
            str(number), f"{len(partition.nodes)}: {number_ranges(partition.nodes)}",
            _shapes(border.inputs, _MOST_CROSSING), _shapes(border.outputs, _MOST_CROSSING),
            f"{border.bytes_in / 1024:.1f}", f"{border.bytes_out / 1024:.1f}",
            str(dispatches), f"{mmac:.2f}",
        )  # fmt: skip
    console.show(table)
    if len(rows) > len(largest):
        others = sum(len(rows[number][0].nodes) for number in set(range(len(rows))) - {*largest})
        console.show(f"and {len(rows) - len(largest)} smaller ones with {others} operators")


def show_report(console: Console, found: Inspection, compiled: CompiledGraph, on_cpu: Memory | None = None) -> None:
    """What becomes of a compiled graph; `on_cpu` is what it would take in the CPU's own code."""
    _passes(console, found)
    if found.moves:
        _moves(console, found)
    _dispatches(console, found)
    _memory(console, found, compiled, on_cpu)


def _ops(lines: Sequence[OpLine], here: str) -> Table:
    table = plain_table(("op", "left"), ("operators", "right"), (here, "right"), ("why not the others", "left"))
    for line in lines:
        why = "\n".join(f"{reason} ({number_ranges(numbers)})" for reason, numbers in line.left.items())
        runs = line.count - line.left_count
        table.add_row(line.op, str(line.count), str(runs or "-"), Text(why, "yellow"))
    return table


def _moves(console: Console, found: Inspection) -> None:
    _title(console, "Moves")
    groups: dict[tuple[str, str], dict[str, list[int]]] = {}
    for line in found.moves:
        groups.setdefault((WAYS[line.way], line.why), {}).setdefault(line.op, []).append(line.operator)
    table = plain_table(("data is moved", "left"), ("times", "right"), ("by operators", "left"), ("because", "left"))
    order = list(WAYS.values())
    for (way, why), ops in sorted(groups.items(), key=lambda item: order.index(item[0][0])):
        named = "; ".join(f"{op} {number_ranges(n for n in numbers if n >= 0)}".rstrip() for op, numbers in ops.items())
        table.add_row(way, str(sum(map(len, ops.values()))), named, Text(why))
    console.show(table)


def _passes(console: Console, found: Inspection) -> None:
    _title(console, "Passes")
    what = "what it does; where it declined"
    table = plain_table(("pass", "left"), ("applied", "right"), ("ops left", "right"), (what, "left"))
    for line in found.passes:
        if line.applied or line.declined:
            text = Text(line.what)
            for reason, count in alike(line.declined, named=True).items():
                text.append(f"\ndeclined {count}x: {reason}", "yellow")
            table.add_row(line.name, str(line.applied or "-"), str(line.nodes_after), text)
    console.show(table)
    others = [line.name for line in found.passes if not line.applied and not line.declined]
    if others:
        console.show(Text(f"with nothing to do: {', '.join(others)}", "dim"))
    for reason, count in alike(found.fusion_declined).items():
        console.show(Text(f"fusion declined {count}x: {reason}", "yellow"))


def _dispatches(console: Console, found: Inspection) -> None:
    _title(
        console,
        f"{len(found.dispatches)} dispatches of {found.programs} shaders, {found.barriers} barriers (|), "
        f"{_macs(found)}, {found.idle:.0%} of threads idle, longest source {_longest(found) / 1024:.0f} KiB",
    )
    columns = [("#", "right"), ("kernel", "left"), ("shader", "right"), ("grid", "right"), ("group", "right")]
    columns += [("idle", "right")]
    columns += [("MMAC", "right"), ("KiB", "right"), ("MAC/B", "right"), ("chosen", "left")]
    table = plain_table(*columns, *([("bound by", "left"), (">= ms", "right")] if found.peaks else []))
    most = _KERNEL_COLUMNS[console.columns >= _WIDE]
    for d in found.dispatches:
        cells = [f"{'|' if d.barrier else ' '}{d.number:3}", _in_lines(d.name, most), str(d.program)]
        cells += [_size(d.grid), _size(d.work_group)]
        cells.append(f"{d.idle_threads / d.threads:.0%}" if d.idle_threads else "")
        cells += [f"{d.mmac:.2f}", f"{d.moved_bytes / 1024:.0f}", f"{d.mac_per_byte:.2f}", d.chosen]
        if d.roof is not None and d.least_ms is not None:
            cells += [d.roof, f"{d.least_ms:.3f}"]
        table.add_row(*cells)
    console.show(table)
    if found.peaks:
        least_ms = sum(d.least_ms or 0 for d in found.dispatches)
        console.show(f"{least_ms:.2f} ms in all at these peaks")


def _macs(found: Inspection) -> str:
    """As executed, and how much of that is repeated."""
    macs = sum(dispatch.mmac for dispatch in found.dispatches)
    again = sum(dispatch.repeated_mmac for dispatch in found.dispatches)
    return f"{macs:.1f} MMAC" + (f" ({again:.1f} of them repeated)" if again >= 0.05 else "")


def _longest(found: Inspection) -> int:
    """Characters of the longest source."""
    return max((dispatch.characters for dispatch in found.dispatches), default=0)


def _in_lines(name: str, most: int) -> str:
    """A kernel's name, in lines that end between its ops."""
    lines = [""]
    for part in name.replace("+", "+ ").split():
        if lines[-1] and len(lines[-1] + part) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def memory_table(lines: Sequence[Memory]) -> Table:
    """What tensors take where, and what was saved; all in MiB."""
    table = plain_table(
        ("MiB", "left"), ("planner", "left"), ("tensors", "right"), ("naive", "right"), ("in and out", "right"),
        ("views", "right"), ("in place", "right"), ("planned", "right"), ("bound", "right"), ("weights", "right"),
    )  # fmt: skip
    for line in lines:
        saved = (line.outer_saved_bytes, line.views_saved_bytes, line.in_place_saved_bytes)
        buffers = f", {line.buffers} objects" if line.mode == "objects" else ""
        table.add_row(
            line.where, f"{line.planner}{buffers}", str(line.tensors), _mib(line.naive_bytes),
            *(f"{-each / _MIB:+.2f}" if each else "-" for each in saved),
            _mib(line.planned_bytes), _mib(line.lower_bound_bytes), _mib(line.weights_bytes),
        )  # fmt: skip
    return table


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / _MIB:.2f}"


def _memory(console: Console, found: Inspection, compiled: CompiledGraph, on_cpu: Memory | None) -> None:
    plan = found.memory
    _title(console, "Memory")
    console.show(memory_table([plan, *([on_cpu] if on_cpu else [])]))
    saved = 1 - plan.planned_bytes / plan.naive_bytes if plan.naive_bytes else 0
    stored = [f"{_mib(size_bytes)} MiB as {kind}" for kind, size_bytes in sorted(plan.stored.items())]
    console.show(
        f"{saved:.0%} less than naive; inputs and outputs: {_mib(plan.outer_bytes)} MiB as float32; "
        f"tensors between kernels: {', '.join(stored) or 'none'}"
    )
    if plan.wide_bytes > plan.planned_bytes:
        wide = "halves" if found.precision != "fp32" else "float32"
        whole = f"{_mib(plan.planned_bytes)} MiB planned, with {wide} it would be {_mib(plan.wide_bytes)}"
        console.show(f"whole numbers that bytes hold are stored as bytes: {whole}")
    console.show(_order_line(plan))
    for line in _SAVED_BY:
        console.show(Text(line, "dim"))
    console.show(Text("the memory: addresses downward, dispatches to the right, a letter for each tensor", "dim"))
    for row in arena_picture(compiled, columns=console.columns - 4):
        text = Text("  ")
        for letter in row:
            text.append(letter, _COLORS[ord(letter) % len(_COLORS)] if letter.isalpha() else "dim")
        console.show(text)


def _order_line(plan: Memory) -> str:
    if plan.reordered_bytes >= plan.planned_bytes:
        return "no other order of kernels is known to take less"
    less = f"{plan.reordered_bytes / _MIB:.2f} MiB ({1 - plan.reordered_bytes / plan.planned_bytes:.0%} less)"
    return f"in another order of kernels, which --reorder takes: {less}"


def plain_table(*columns: tuple[str, str]) -> Table:
    """Columns by name, each left or right, without lines between them."""
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    return table


def _title(console: Console, text: str) -> None:
    console.show("")
    console.show(Text(text, "bold"))


def _size(size: tuple[int, int, int]) -> str:
    return "x".join(map(str, size))


def _shapes(shapes: Iterable[Shape], most: int = _MOST_SHAPES) -> str:
    """1x64x64x8, 1x2 and 3 more."""
    texts = ["x".join(map(str, shape)) or "scalar" for shape in shapes]
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")
