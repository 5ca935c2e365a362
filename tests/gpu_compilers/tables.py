"""Tables and sums of reports in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .compilers import Row
from .platforms import PLATFORMS
from .records import Cost, total

SUMMED = ("instructions", "executed", "spills", "fills", "code_bytes", "branches", "latency", "inverse_throughput")


@dataclass(frozen=True)
class Sum:
    """The figures of a model's dispatches together."""

    dispatches: int
    narrow: int  # that have fewer threads of a SIMD thread than the GPU could give, and the work-group has
    most_registers: int
    one_wave: int  # dispatches of which only one or two waves fit a unit
    seconds: float  # to compile, each text once
    slowest_s: float
    numbers: Mapping[str, float]  # of SUMMED, where the driver gives them
    issued_m: float  # millions of instructions by all SIMD threads, as far as trips are known


def summed(rows: Sequence[Row], full_width: int = 0) -> Sum:
    """Over a model's dispatches; a text that several have is compiled once, and counts for each."""
    known = [(row, row.figures) for row in rows if row.figures]
    numbers = {
        name: sum(values)
        for name in SUMMED
        if (values := [value for _, figures in known if (value := getattr(figures, name)) is not None])
    }
    once = {row.dispatch.key: row.seconds for row in rows}
    return Sum(
        len(rows),
        sum((figures.width or full_width) < min(full_width, row.dispatch.threads) for row, figures in known),
        max((figures.registers or 0 for _, figures in known), default=0),
        sum((figures.waves or 9) <= 1 for _, figures in known),
        sum(once.values()),
        max(once.values(), default=0.0),
        numbers,
        sum(
            (figures.executed or figures.instructions or 0) * row.dispatch.simd_threads(figures.width)
            for row, figures in known
        )
        / 1e6,
    )


HEAD = ("platform", "model", "dispatches", "instructions", "executed", "issued, M", "narrow", "registers", "one wave",
        "spills:fills", "code KB", "branches", "latency k", "inverse k", "compile s", "slowest s")  # fmt: skip


def sum_cells(platform: str, model: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """A line of the table of sums."""
    found = summed(rows, PLATFORMS[platform].full_width)

    def number(name: str, unit: float = 1.0) -> str:
        value = found.numbers.get(name)
        return "" if value is None else f"{value / unit:.0f}"

    issued = f"{found.issued_m:.1f}" if found.issued_m else ""
    return (
        platform, model, str(found.dispatches), number("instructions"), number("executed"), issued, str(found.narrow),
        str(found.most_registers or ""), str(found.one_wave), f"{number('spills')}:{number('fills')}",
        number("code_bytes", 1e3), number("branches"), number("latency", 1e3), number("inverse_throughput", 1e3),
        *(("", "") if PLATFORMS[platform].listed else (f"{found.seconds:.2f}", f"{found.slowest_s:.2f}")),
    )  # fmt: skip


ROW_HEAD = ("#", "kernel", "groups x threads", "SIMD", "instr.", "executed", "cycles", "regs", "spills:fills", "waves",
            "bytes", "branches", "latency", "inverse")  # fmt: skip


def row_cells(row: Row) -> tuple[str, ...]:
    """A line of the table of kernels."""
    head = (str(row.dispatch.number), row.dispatch.name, f"{row.dispatch.groups} x {row.dispatch.threads}")
    found = row.figures
    if found is None:
        return (*head, row.problem or "", *[""] * (len(ROW_HEAD) - 4))
    cells = (
        found.width, found.instructions, found.executed, found.cycles, found.registers,
        f"{found.spills}:{found.fills}", found.waves, found.code_bytes, found.branches, found.latency,
        found.inverse_throughput,
    )  # fmt: skip
    return (*head, *("" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in cells))


def lines_of_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Markdown, its columns as wide as their cells."""
    cells = [tuple(head), *map(tuple, lines)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(head))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
            for line in cells]  # fmt: skip
    return [text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]]


def words_of(platform: str) -> str:
    """A platform's name, and what it is."""
    return f"{platform}: {PLATFORMS[platform].words}"


AGAINST_HEAD = ("platform", "model", "dispatches", "cost", "of before", "issued, M", "of before", "spilling", "narrow")


def against_cells(platform: str, model: str, before: Sequence[Cost], now: Sequence[Cost]) -> tuple[str, ...]:
    """A line of the table of differences."""
    width = PLATFORMS[platform].full_width
    old, new = total(before, width), total(now, width)

    def share(a: float, b: float) -> str:
        return f"{b / a:.0%}" if a else ""

    return (
        platform, model, f"{old.dispatches} -> {new.dispatches}", f"{old.cost:.0f} -> {new.cost:.0f}",
        share(old.cost, new.cost), f"{old.issued / 1e6:.1f} -> {new.issued / 1e6:.1f}", share(old.issued, new.issued),
        f"{old.spilling} -> {new.spilling}", f"{old.narrow} -> {new.narrow}",
    )  # fmt: skip
