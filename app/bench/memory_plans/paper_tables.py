"""The tables of the memory paper (arXiv 2001.03288), cell by cell: rows of `bench memory` beside published figures.

The figures of the paper's own tables are in no text that was at hand: a cell is blank that nobody else has published.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...console import Console
from ..measuring.markdown_table import markdown_lines
from .memory_tables import MIB, by_network

_Row = dict[str, Any]
_Cells = list[tuple[str, ...]]

PAPER_NETWORKS = ("mobilenet-v1", "mobilenet-v2", "deeplab-v3", "inception-v3", "posenet", "blazeface")
_FLOW = "min-cost flow (1907.01989)"
_IN_ORDER = "greedy in order (1907.01989)"
# What the paper compares, and then TensorFlow Lite's choice and ours: the strategies of which the smallest counts.
PAPER_ROWS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "objects": {
        "greedy by size": ("greedy-by-size",),
        "greedy by size improved": ("greedy-by-size-improved",),
        "greedy by breadth": ("greedy-by-breadth",),
        _IN_ORDER: ("greedy-in-order",),
        _FLOW: ("min-cost-flow",),
        "naive": ("naive",),
        "TensorFlow Lite's OpenGL": ("greedy-by-size-improved", "greedy-by-breadth"),
        "ours": ("best",),
    },
    "offsets": {
        "greedy by size": ("greedy-by-size",),
        "greedy by breadth": ("greedy-by-breadth",),
        f"{_IN_ORDER}, end to end": ("greedy-in-order-end-to-end",),
        "strip packing (1804.10001)": ("strip-packing",),
        "naive": ("naive",),
        "TensorFlow Lite's OpenCL": (
            "greedy-by-size", "greedy-by-size-improved-end-to-end", "greedy-by-breadth-end-to-end",
        ),
        "ours": ("best",),
    },
})  # fmt: skip
_TITLES = {"objects": "shared objects", "offsets": "offsets in one arena"}
SOURCE = "blog.tensorflow.org/2020/10/optimizing-tensorflow-lite-runtime.html"
PUBLISHED: Mapping[tuple[str, str, str], str] = MappingProxyType({
    ("objects", "naive", "mobilenet-v2"): "26, 65 buffers",
    ("objects", "TensorFlow Lite's OpenGL", "mobilenet-v2"): "7, 4 buffers",
    ("offsets", "naive", "mobilenet-v2"): "26",
})  # fmt: skip


def show_paper(rows: Sequence[_Row], markdown: bool, console: Console) -> None:
    """Both tables, and whose the figures in brackets are."""
    for kind, title in _TITLES.items():
        cells = paper_cells([row for row in rows if row["kind"] == kind], kind)
        head = f"MiB of {title} before fusion; * is proven to be the least; [published]"
        if markdown:
            for line in ("", f"{head}:", "", *markdown_lines(cells)):
                console.say(line)
        else:
            console.table(head, cells[0], cells[1:], dense=True)
    console.say(f"published, MB: {SOURCE}; the figures of the paper's own tables are in no text that was at hand")


def paper_cells(rows: Sequence[_Row], kind: str) -> _Cells:
    """A row for each strategy of the paper, a column for each network; the bound is last."""
    networks = by_network(rows)
    cells: _Cells = [("strategy", *networks)]
    for label, strategies in PAPER_ROWS[kind].items():
        found = (_cell(own, kind, label, strategies) for own in networks.values())
        cells.append((label, *found))
    return [*cells, ("lower bound", *_bounds(networks))]


def _cell(rows: Sequence[_Row], kind: str, label: str, strategies: Sequence[str]) -> str:
    """Of one network: MiB, a star, how many objects, what is published. Nothing where a library is lacking."""
    found = [row for row in rows if row["strategy"] in strategies]
    if not found:
        return "-"
    row = min(found, key=lambda row: int(row["bytes"]))
    objects = f" ({row['objects']})" if kind == "objects" else ""
    published = PUBLISHED.get((kind, label, row["network"]))
    star = "*" if row["proven"] else ""
    return f"{row['bytes'] / MIB:.3f}{star}{objects}" + (f" [{published}]" if published else "")


def _bounds(networks: Mapping[str, Sequence[_Row]]) -> Iterator[str]:
    for rows in networks.values():
        yield f"{rows[0]['lower_bound_bytes'] / MIB:.3f}"
