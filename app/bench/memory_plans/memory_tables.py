"""Prints the tables of `bench memory`, plain or in Markdown: a summary, bytes by strategy, times."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate.plan.memory.memory_options import MemoryMode, MemoryOptions

from ...console import Console
from ..measuring.markdown_table import markdown_lines

_Row = dict[str, Any]
_Rows = Sequence[_Row]
_Cells = list[tuple[str, ...]]

MIB = 1 << 20
_NONE = "-"
_IN_FULL = 4  # the most networks of which plain text has every strategy
_BESIDE = 2  # spaces between the columns of a table
_GRAPHS = {"ops": "before fusion, a record for each operator's output", "fused": "after fusion"}
_MODES: Mapping[str, MemoryMode] = MappingProxyType({"offsets": "arena", "objects": "objects"})
_KINDS = {"offsets": "offsets in one arena", "objects": "shared objects"}
_MARKS = {"offsets": "; * is proven to be the least", "objects": ", and how many; * is proven to be the least"}
# What arXiv 2001.03288 compares with, by kind: arXiv 1907.01989, and Sekiyama et al. (2018).
EARLIER = {"objects": ("greedy-in-order", "min-cost-flow"), "offsets": ("strip-packing",)}


def show_memory(rows: _Rows, markdown: bool, console: Console) -> None:
    """All tables, and what they say of our default; plain text has those of strategies for a few networks alone."""
    brief = not markdown and len(by_network(rows)) > _IN_FULL
    for title, cells in _brief_tables(rows) if brief else _tables(rows):
        if markdown:
            for line in ("", f"{title}:", "", *markdown_lines(cells)):
                console.say(line)
        else:
            for part in _narrow(_without_empty(cells), console.columns):
                console.table(title, part[0], part[1:], dense=True)
    for line in memory_lines(rows):
        console.say(line)
    if brief:
        console.say(f"what each strategy takes: --markdown, --json, or up to {_IN_FULL} networks by their names")


def _tables(rows: _Rows) -> Iterator[tuple[str, _Cells]]:
    """Titles and cells, of what there is."""
    for graph, said in _GRAPHS.items():
        own = [row for row in rows if row["graph"] == graph]
        yield from _summaries(own)
        for kind, of in _KINDS.items():
            if planned := [row for row in own if row["kind"] == kind]:
                yield f"MiB {said}: {of}{_MARKS[kind]}", strategy_cells(planned)
    yield from _times([row for row in rows if row["graph"] != "fused"], "Milliseconds of planning, before fusion")


def _brief_tables(rows: _Rows) -> Iterator[tuple[str, _Cells]]:
    """Without those that have a column for each network."""
    yield from _summaries(rows)
    yield from _times([row for row in rows if row["graph"] == "synthetic"], "Milliseconds of planning")


def _summaries(rows: _Rows) -> Iterator[tuple[str, _Cells]]:
    for graph, said in _GRAPHS.items():
        if own := [row for row in rows if row["graph"] == graph]:
            yield f"MiB {said}; * is proven to be the least", summary_cells(own)


def _times(rows: _Rows, title: str) -> Iterator[tuple[str, _Cells]]:
    for kind, of in _KINDS.items():
        if timed := [row for row in rows if row["kind"] == kind]:
            yield f"{title}: {of}", time_cells(timed)


def _without_empty(cells: _Cells) -> _Cells:
    """Without columns in which no network has a figure."""
    kept = [column for column in zip(*cells, strict=True) if set(column[1:]) != {_NONE}]
    return list(zip(*kept, strict=True))


def _narrow(cells: _Cells, columns: int) -> Iterator[_Cells]:
    """Tables of the first column and as many others as fit each into that many columns of text."""
    widths = [max(map(len, column)) + _BESIDE for column in zip(*cells, strict=True)]
    start = 1
    while start < len(widths):
        end = start + 1
        while end < len(widths) and sum(widths[start : end + 1], widths[0]) < columns:
            end += 1
        yield [(row[0], *row[start:end]) for row in cells]
        start = end


def summary_cells(rows: _Rows) -> _Cells:
    """A row for each network: nothing shared, TensorFlow Lite's default, ours, and the CPU path's arena."""
    ours = "ours", "above bound", "naive / ours", "under TFLite", "under earlier"
    head = ("network", "tensors", "naive", "TFLite", *ours, "CPU path")
    return [head, *(_summary(network, own) for network, own in by_network(rows).items())]


def _summary(network: str, rows: _Rows) -> tuple[str, ...]:
    ours, naive, tflite = default_row(rows), naive_row(rows), tflite_row(rows)
    cpu_bytes = rows[0]["cpu_path_bytes"]
    return (
        network,
        str(rows[0]["tensors"]),
        _mib(naive),
        _mib(tflite),
        _mib(ours),
        _NONE if ours is None else f"{_above(ours):.1%}{_star(ours)}",
        _NONE if ours is None else f"{_ratio(naive, ours):.1f}",
        _saving(ours, tflite),
        _saving(ours, earlier_row(rows, "offsets")),
        _NONE if cpu_bytes is None else f"{cpu_bytes / MIB:.3f}",
    )


def strategy_cells(rows: _Rows) -> _Cells:
    """A row for each strategy, a column for each network; the bound is last. A star is for the proven least."""
    networks = by_network(rows)
    cells: _Cells = [("strategy", *networks)]
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        found = [_row_of(own, rows[0]["kind"], strategy) for own in networks.values()]
        cells.append((strategy, *(_planned(row) for row in found)))
    if rows:
        cells.append(("lower bound", *(f"{own[0]['lower_bound_bytes'] / MIB:.3f}" for own in networks.values())))
    return cells


def _planned(row: _Row | None) -> str:
    if row is None:
        return _NONE
    objects = f" ({row['objects']})" if row["kind"] == "objects" else ""
    return f"{row['bytes'] / MIB:.3f}{_star(row)}{objects}"


def time_cells(rows: _Rows) -> _Cells:
    """A row for each strategy, a column for each network."""
    networks = by_network(rows)
    cells: _Cells = [("strategy", *networks)]
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        found = [_row_of(own, rows[0]["kind"], strategy) for own in networks.values()]
        cells.append((strategy, *(_NONE if row is None else f"{row['ms']:.2f}" for row in found)))
    return cells


def memory_lines(rows: _Rows) -> Iterator[str]:
    """Whether the default is never larger than TensorFlow Lite's and always proven, and what it saves at most."""
    graphs = [list(own) for _, own in groupby(rows, key=lambda row: (row["network"], row["graph"]))]
    found = [(one, own) for own in graphs if (one := default_row(own)) is not None]
    if not found:
        return
    larger = [_named(one) for one, own in found if (of := tflite_row(own)) and one["bytes"] > of["bytes"]]
    yield f"ours is larger than TensorFlow Lite's default: {', '.join(larger) or 'nowhere'}"
    unproven = [_named(one) for one, _ in found if not one["proven"]]
    yield f"ours is not proven to be the least: {', '.join(unproven) or 'nowhere'}"
    times = max((_ratio(naive_row(own), one), _named(one)) for one, own in found)
    yield f"naive takes up to {times[0]:.1f} times as much: {times[1]}"
    for kind, mode in _MODES.items():
        name = MemoryOptions(mode).strategy.name
        pairs = [(_row_of(own, kind, name), earlier_row(own, kind)) for own in graphs]
        savings = [(1 - 1 / _ratio(of, one), _named(one)) for one, of in pairs if one and of]
        if savings:
            earlier = " and ".join(EARLIER[kind])
            yield f"{kind} by {name}: up to {max(savings)[0]:.1%} under {earlier}: {max(savings)[1]}"


def default_row(rows: _Rows) -> _Row | None:
    """Ours, of one graph."""
    return next((row for row in rows if row["default"]), None)


def tflite_row(rows: _Rows) -> _Row | None:
    """TensorFlow Lite's, of one graph."""
    return next((row for row in rows if row["tflite_default"]), None)


def naive_row(rows: _Rows) -> _Row | None:
    """Where nothing is shared, of one graph."""
    return _row_of(rows, "offsets", "naive")


def earlier_row(rows: _Rows, kind: str) -> _Row | None:
    """The smallest of a kind that was known before the paper, of one graph."""
    found = [row for strategy in EARLIER[kind] if (row := _row_of(rows, kind, strategy))]
    return min(found, key=lambda row: int(row["bytes"]), default=None)


def _row_of(rows: _Rows, kind: str, strategy: str) -> _Row | None:
    return next((row for row in rows if row["kind"] == kind and row["strategy"] == strategy), None)


def by_network(rows: _Rows) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in rows:
        found.setdefault(row["network"], []).append(row)
    return found


def _named(row: _Row) -> str:
    return f"{row['network']} after fusion" if row["graph"] == "fused" else str(row["network"])


def _mib(row: _Row | None) -> str:
    return _NONE if row is None else f"{row['bytes'] / MIB:.3f}"


def _ratio(row: _Row | None, to: _Row | None) -> float:
    """How many times as large; 1 where there is nothing to compare."""
    return row["bytes"] / to["bytes"] if row and to and to["bytes"] and row["bytes"] else 1.0


def _above(row: _Row) -> float:
    """How far from the bound, of which it is a part."""
    return row["bytes"] / row["lower_bound_bytes"] - 1 if row["lower_bound_bytes"] else 0.0


def _star(row: _Row) -> str:
    return "*" if row["proven"] else ""


def _saving(row: _Row | None, of: _Row | None) -> str:
    return _NONE if row is None or of is None else f"{1 - _ratio(row, of):.1%}"
