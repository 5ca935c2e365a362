"""`texelflow bench models`: one table of what models take on the GPU and on the CPU.

The table is that of Figure 7 and Tables 4 and 5 of "On-Device Neural Net Inference with Mobile GPUs" (arXiv
1907.01989). Every measurement is `bench model` in a process of its own: what fails, crashes or hangs there is a row
that says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from texelflow.gpu_delegate.base.errors import CatalogueError, UsageError

from ...console import Console, counted
from ...models.catalogue import CATALOGUE, resolve
from ...models.networks import NETWORKS
from ...signals import exit_code, stop_flag
from ..measuring.markdown_table import markdown_lines
from ..measuring.measuring_process import MeasuringProcess
from .model_options import MOST_THREADS, check_counts

Row = dict[str, Any]

MOST_RUN_S = 30.0  # of the warm-up, and of the runs that count, for one model in one way
PATIENCE_S = 300.0  # for all of that


@dataclass(frozen=True)
class ModelTable:
    """What `bench models` is asked to do."""

    names: tuple[str, ...] = ()  # none: all that there are
    warmup: int = 10
    runs: int = 100
    threads: tuple[int, ...] = (1, 2)


def parse_threads(text: str) -> tuple[int, ...]:
    """1,2. Raises UsageError."""
    parts = text.split(",")
    if not all(_is_thread_count(part) for part in parts):
        raise UsageError(f"--threads {text}: numbers from 1 to {MOST_THREADS} with commas between them are needed")
    return tuple(dict.fromkeys(int(part) for part in parts))


def _is_thread_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(MOST_THREADS)) and 1 <= int(text) <= MOST_THREADS


def bench_models(options: ModelTable, console: Console) -> tuple[list[Row], int]:
    """A row for each model, and the exit code: a signal's if one ended it. Raises UsageError if no model ran."""
    check_counts(options.runs, options.warmup)
    names, rows = options.names or (*CATALOGUE, *NETWORKS), list[Row]()
    child = MeasuringProcess()
    with stop_flag(child.end) as child.stop:
        for number, name in enumerate(names, 1):
            console.note(f"{number} of {len(names)}: {name}")
            row = _row(name, options, child, console)
            if child.stop:
                break
            rows.append(row)
    if rows and not child.stop and not any(row["gpu"] or row["cpu"] for row in rows):
        raise UsageError(rows[0]["reasons"][0])
    return rows, exit_code(child.stop.number)


def _row(name: str, options: ModelTable, child: MeasuringProcess, console: Console) -> Row:
    """The figures of one model on the GPU and, by the number of threads, on the CPU; reasons where there are none."""
    row: Row = {"model": name, "gpu": None, "cpu": {}, "reasons": []}
    if name not in NETWORKS:
        try:
            with console.download() as progress:
                resolve(name, progress)
        except CatalogueError as error:
            row["reasons"].append(str(error))
            return row
    common = (f"--warmup={options.warmup}", f"--runs={options.runs}", f"--max_secs={MOST_RUN_S:g}", "--json")
    for threads in (None, *options.threads):
        if child.stop:
            break
        on_cpu = () if threads is None else ("--backend", "cpu", "--threads", str(threads))
        found = _measured(child, ("bench", "model", *common, *on_cpu, "--", name))
        if isinstance(found, str):
            row["reasons"] += [found] if found not in row["reasons"] else []
        elif threads is None and found.get("partitions") == []:  # the delegate has left all to the CPU
            row["reasons"].append(found["delegation"])
        elif threads is None:
            row["gpu"] = found
        else:
            row["cpu"][str(threads)] = found
    return row


def _measured(child: MeasuringProcess, arguments: Sequence[str]) -> Row | str:
    """The figures that a process of its own prints, or in one line why it printed none."""
    measured = child.verb(arguments, PATIENCE_S)
    return measured.why if measured.figures is None or measured.why else measured.figures


def table_rows(rows: Sequence[Row], threads: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The cells of the table, columns as of table_columns."""
    for row in rows:
        gpu, cpu = row["gpu"], row["cpu"]
        best = min((figures["mean_ms"] for figures in cpu.values()), default=None)
        yield (
            row["model"],
            _cell(gpu, "mmac", "{:.0f}"),
            _where(gpu),
            _cell(gpu, "dispatches", "{}"),
            _cell(gpu, "mean_ms", "{:.2f}"),
            _cell(gpu, "peak_share", "{:.0%}"),
            *(_cell(cpu.get(count), "mean_ms", "{:.2f}") for count in threads),
            f"{best / gpu['mean_ms']:.2f}" if gpu and best is not None else "-",
            "; ".join(row["reasons"]),
        )


def table_columns(threads: Sequence[str]) -> tuple[str, ...]:
    """What is in each column; times are means."""
    on_cpu = (f"CPU ms, {counted(int(count), 'thread')}" for count in threads)
    return ("model", "MMAC", "on the GPU", "dispatches", "GPU ms", "of peak", *on_cpu, "GPU speed-up", "reason")


def show_models_table(rows: Sequence[Row], markdown: bool, console: Console) -> None:
    """The table, in Markdown if asked for, and what it was measured on."""
    threads = sorted({count for row in rows for count in row["cpu"]}, key=int)
    columns, cells = table_columns(threads), list(table_rows(rows, threads))
    if markdown:
        for line in markdown_lines([columns, *cells]):
            console.say(line)
    else:
        console.table("Models: means in ms", columns, cells)
    timed = {"partitions" in row["gpu"]: row["gpu"]["timed"] for row in rows if row["gpu"]}
    for in_part, what in sorted(timed.items()):
        console.say(f"GPU ms of what runs there {'in part' if in_part else 'as a whole'}: {what}")
    renderers = dict.fromkeys(row["gpu"]["renderer"] for row in rows if row["gpu"])
    runs = dict.fromkeys(row["gpu"]["count"] for row in rows if row["gpu"])
    peaks = [row["gpu"]["peak_gmacs"] for row in rows if row["gpu"] and "peak_gmacs" in row["gpu"]]
    if peaks:
        console.say(
            f"on {', '.join(renderers)}; runs of each: {', '.join(map(str, runs))}; peak, measured beside each: "
            f"{min(peaks):.1f} to {max(peaks):.1f} GMAC/s; GPU speed-up: against the fastest CPU column"
        )


def _where(gpu: Row | None) -> str:
    if gpu is None:
        return "-"
    if "partitions" not in gpu:
        return "whole"
    taken = sum(map(len, gpu["partitions"]))
    return f"{taken} of {counted(gpu['operators'], 'op')}, {counted(len(gpu['partitions']), 'partition')}"


def _cell(figures: Row | None, name: str, form: str) -> str:
    return "-" if figures is None or figures.get(name) is None else form.format(figures[name])
