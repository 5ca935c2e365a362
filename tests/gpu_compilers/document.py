"""Writes the figures of all platforms into docs/gpu.md."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from .compilers import Report, Row
from .platforms import PLATFORMS
from .tables import HEAD, lines_of_table, sum_cells

DOCUMENT = Path("docs", "gpu.md")
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
KERNELS_OF = "selfie"
# The columns of the table of kernels: a platform, and figures of it in one cell.
SHOWN: Mapping[str, tuple[str, ...]] = {
    "tgl": ("width", "executed"),
    "radv-navi22": ("registers", "waves", "latency"),
    "a618": ("instructions", "registers", "waves"),
    "g52": ("instructions", "spills", "waves"),
}


def write_document(reports: Sequence[Report], path: Path = DOCUMENT) -> None:
    """Replace what stands between the two marks. Raises OSError, ValueError where they are missing."""
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise ValueError(f"{path} does not have the marks {BEGIN} and {END}")
    path.write_text(f"{head}{BEGIN}\n\n" + "\n".join(lines_of(reports)) + f"\n\n{END}{tail}", encoding="utf-8")


def lines_of(reports: Sequence[Report]) -> Iterator[str]:
    """The tables: sums of all models, of one, and its kernels."""
    versions = sorted({f"Mesa {report.mesa}" for report in reports if report.mesa})
    models = list(dict.fromkeys(chain.from_iterable(report.rows for report in reports)))
    yield f"{' and '.join(versions)}; {', '.join(models)} together:"
    yield ""
    yield from lines_of_table(
        (*HEAD[:1], *HEAD[2:], "what it is"),
        [_whole(report, tuple(chain.from_iterable(report.rows.values()))) for report in reports],
    )
    shown = [report for report in reports if KERNELS_OF in report.rows]
    yield from ("", f"`{KERNELS_OF}` alone:", "")
    yield from lines_of_table(HEAD[:1] + HEAD[2:], [_alone(report, report.rows[KERNELS_OF]) for report in shown])
    by_name = {report.platform: report.rows[KERNELS_OF] for report in shown if report.platform in SHOWN}
    yield from ("", f"The dispatches of `{KERNELS_OF}`:", "")
    yield from lines_of_table(
        ("#", "kernel", *(f"{name}: {' / '.join(SHOWN[name])}" for name in by_name)), _kernel_lines(by_name)
    )


def _whole(report: Report, rows: tuple[Row, ...]) -> tuple[str, ...]:
    return (*_alone(report, rows), PLATFORMS[report.platform].words)


def _alone(report: Report, rows: Sequence[Row]) -> tuple[str, ...]:
    name, _, *cells = sum_cells(report.platform, "", rows)
    return (name, *cells)


def _kernel_lines(by_name: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, ...]]:
    """A line for each dispatch; another for the one that another family's tuning has in its place."""
    most = max((len(rows) for rows in by_name.values()), default=0)
    for number in range(most):
        own = {name: rows[number] for name, rows in by_name.items() if number < len(rows)}
        for kernel in dict.fromkeys(row.dispatch.name for row in own.values()):
            here = {name: row for name, row in own.items() if row.dispatch.name == kernel}
            yield (str(number), kernel, *(_cell(here[n], SHOWN[n]) if n in here else "" for n in by_name))


def _cell(row: Row, shown: Sequence[str]) -> str:
    if row.figures is None:
        return row.problem or ""
    return " / ".join(str(value if value is not None else "-") for value in (getattr(row.figures, n) for n in shown))
