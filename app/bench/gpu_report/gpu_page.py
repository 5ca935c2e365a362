"""Writes the report of `bench gpu` as one HTML page, which needs no other file."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .gpu_tables import ReportTable, tables_of

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #1d2330; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 2em 0 .4em; border-bottom: 1px solid #d5dae3; }
table { border-collapse: collapse; margin: .6em 0 1em; font-variant-numeric: tabular-nums; }
th, td { padding: .15em .8em .15em 0; text-align: left; vertical-align: top; }
th { font-weight: 600; border-bottom: 1px solid #d5dae3; }
td.number, th.number { text-align: right; }
.lacking { color: #8a4b00; } .facts { color: #5a6373; } summary { cursor: pointer; color: #2a55a5; }
"""
_FOLDED_ROWS = 16  # a table that is longer is opened by a click


def report_page(report: Mapping[str, Any]) -> str:
    """HTML with all sections, what failed in them, and what was left out for lack of time."""
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>texelflow: report on a GPU</title>',
            f"<style>{_STYLE}</style></head><body>",
            *_head(report),
            *(line for name, section in report["sections"].items() for line in _section(name, section)),
            "</body></html>",
            "",
        )
    )


def _head(report: Mapping[str, Any]) -> Iterator[str]:
    system = report["system"]
    yield f"<h1>{escape(renderer_of(report))}</h1>"
    facts = [
        f"texelflow {report['texelflow']}, {report['day']}",
        f"{system['platform']}, {system['cpus']} CPUs, Python {system['python']}",
        f"measured in {report['spent_s']:.0f} of {report['budget_s']:.0f} s",
    ]
    if report["interrupted"]:
        facts.append("interrupted")
    yield f'<p class="facts">{escape("; ".join(facts))}</p>'


def renderer_of(report: Mapping[str, Any]) -> str:
    """The GPU's name, from whatever has told it."""
    measurements = [each for section in report["sections"].values() for each in section["measurements"]]
    figures = [each["figures"] for each in measurements if each["figures"]]
    findings = (finding for each in figures for finding in each.get("findings", ()))
    found = (
        *(each.get("renderer") for each in figures),
        *(each["found"] for each in findings if (each["topic"], each["name"]) == ("OpenGL", "renderer")),
    )
    return next((str(name) for name in found if name and name != "TensorFlow Lite"), "a GPU that was not found")


def _section(name: str, section: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h2 id="{escape(name)}">{escape(section["title"])}</h2>'
    try:
        tables = tables_of(name, section["measurements"])
    except (LookupError, TypeError, ValueError) as error:
        tables = ()
        yield f'<p class="lacking">no table of these figures ({escape(repr(error))}): see the JSON</p>'
    for table in tables:
        yield from _folded(table) if len(table.rows) > _FOLDED_ROWS else _table(table)
    for each in section["measurements"]:
        if each["reason"]:
            yield f'<p class="lacking">{escape(each["name"])}: {escape(each["reason"])}</p>'
    if section["left_out"]:
        yield f'<p class="lacking">left out: {escape("; ".join(section["left_out"]))}</p>'


def _folded(table: ReportTable) -> Iterator[str]:
    yield f"<details><summary>{escape(table.title or f'{len(table.rows)} rows')}</summary>"
    yield from _table(ReportTable(table.columns, table.rows))
    yield "</details>"


def _table(table: ReportTable) -> Iterator[str]:
    if table.title:
        yield f"<p>{escape(table.title)}</p>"
    numeric = [all(_is_number(row[column]) for row in table.rows) for column in range(len(table.columns))]
    yield "<table>"
    for tag, row in (("th", table.columns), *(("td", row) for row in table.rows)):
        cells = "".join(_cell(tag, cell, right) for cell, right in zip(row, numeric, strict=True))
        yield f"<tr>{cells}</tr>"
    yield "</table>"


def _cell(tag: str, cell: str, right: bool) -> str:
    return f"<{tag}{' class=number' if right else ''}>{escape(cell)}</{tag}>"


def _is_number(cell: str) -> bool:
    return not cell.strip("-+.,%0123456789e MiB")
