"""Times the networks of the papers on OpenGL, in native code and in XNNPACK, for docs/papers.md.

Each is `bench model` in a process of its own, for at most some seconds: three minutes on two idle cores.

    python -m tests.tools.papers            # prints the table
    python -m tests.tools.papers --write    # and into docs/papers.md, between its marks
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from tests.tools.command import run_tool
from texelflow.app.bench.measuring.markdown_table import markdown_lines
from texelflow.app.bench.measuring.measuring_process import MeasuringProcess
from texelflow.app.console import Console
from texelflow.app.models.networks import NETWORKS
from texelflow.app.signals import exit_code, stop_flag

DOCUMENT = Path(__file__).parents[2] / "docs" / "papers.md"
BEGIN, END = "<!-- times: python -m tests.tools.papers --write -->", "<!-- end of times -->"
TIMED = ("mobilenet-v1", "mobilenet-v2", "deeplab-v3", "inception-v3", "posenet", "ssd-mobilenet", "blazeface")
WAYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "OpenGL": (),
        "native": ("--backend", "cpu", "--cpu", "native", "--threads", "1"),
        "XNNPACK": ("--backend", "cpu", "--cpu", "tflite", "--threads", "1"),
    }
)
RUNS = ("--warmup=3", "--runs=30", "--max_secs=4", "--json")
PATIENCE_S = 120.0

Figures = Mapping[str, Any]


def times_table(found: Mapping[str, Mapping[str, Figures | None]]) -> str:
    """Least and median ms of each network in each way, and how many times as long as native code; in Markdown."""
    head = ["network", "million multiply-adds"]
    for way in WAYS:
        head += [f"{way}, ms"] + ([] if way == "native" else ["times native"])
    cells = [tuple(head)]
    for network, ways in found.items():
        native, row = ways.get("native"), [network, _cell(ways.get("OpenGL"), "mmac", "{:.0f}")]
        for way in WAYS:
            own = ways.get(way)
            row.append("-" if own is None else f"{own['min_ms']:.2f}/{own['median_ms']:.2f}")
            if way != "native":
                row.append("-" if own is None or native is None else f"{own['min_ms'] / native['min_ms']:.2f}")
        cells.append(tuple(row))
    return "\n".join(markdown_lines(cells))


def _cell(figures: Figures | None, name: str, form: str) -> str:
    return "-" if figures is None or name not in figures else form.format(figures[name])


def where(found: Mapping[str, Mapping[str, Figures | None]]) -> str:
    """What ran it, as the figures tell."""
    names = [own["renderer"] for ways in found.values() for own in ways.values() if own]
    return f"Least/median, one thread but for OpenGL: {', '.join(dict.fromkeys(names))}."


def written(document: str, text: str) -> str:
    """The document with another text between its marks."""
    before, _, rest = document.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{behind}"


def papers(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAMES", help=f"Of {', '.join(NETWORKS)}.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Renew the table in docs/papers.md.")] = False,
) -> int:
    """Time the papers' networks."""
    console, child = Console(), MeasuringProcess()
    found: dict[str, dict[str, Figures | None]] = {}
    with stop_flag(child.end) as child.stop:
        for network in names or TIMED:
            found[network] = {}
            for way, options in WAYS.items():
                if child.stop:
                    return exit_code(child.stop.number)
                console.note(f"{network}: {way}")
                found[network][way] = _measured(child, [*options, *RUNS, "--", network], console)
    text = f"{where(found)}\n\n{times_table(found)}"
    console.say(text)
    if write:
        DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 0


def _measured(child: MeasuringProcess, options: Sequence[str], console: Console) -> Figures | None:
    measured = child.verb(("bench", "model", *options), PATIENCE_S)
    if measured.why:
        console.note(measured.why)
    return None if measured.why else measured.figures


if __name__ == "__main__":
    sys.exit(run_tool("papers", papers))
