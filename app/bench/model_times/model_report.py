"""Prints the figures of a model for a person: lines, tables and plots."""

from collections.abc import Mapping
from typing import Any

from ...compile_words import compile_line
from ...console import Console, counted
from ..measuring.energy import energy_line
from ..measuring.time_plot import save_plot, text_plot
from .model_options import ModelBench

_Figures = Mapping[str, Any]

_MIB = 1 << 20
_PLOT_ROWS = 12


def finish_model(figures: _Figures, options: ModelBench, console: Console) -> None:
    """Show everything, and draw the plot that was asked for. Raises UsageError without matplotlib, MediaError."""
    _show_head(figures, console)
    if options.dry_run:
        console.say(f"ready after {figures['init_ms']:.1f} ms ({_steps(figures['init_steps_ms'])}); nothing ran")
        console.say(_memory_line(figures["memory"]))
    else:
        _show_times(figures, console)
    if per_op := figures.get("per_op"):
        _show_dispatches(per_op, console)
    if series := figures.get("series"):
        console.show(*text_plot(series["at_s"], series["ms"], console.columns, _PLOT_ROWS))
    if figures["interrupted"]:
        console.note(f"interrupted after {figures['count']} runs; the figures are theirs")
    if options.plot is not None:
        save_plot(options.plot, figures)
        console.say(f"plot: {options.plot}")
    for what, path in (
        ("dispatches", options.profile_csv), ("outputs", options.outputs), ("what runs where", options.runtime_info)
    ):  # fmt: skip
        if path is not None:
            console.say(f"{what}: {path}")


def _show_head(figures: _Figures, console: Console) -> None:
    named = f"{figures['benchmark_name']}: " if "benchmark_name" in figures else ""
    where = f"{figures['model']}, {figures['model_bytes'] / 1e6:.2f} MB, {figures['backend']}, {figures['precision']}"
    threads = f", {counted(figures['threads'], 'thread')}" if "threads" in figures else ""
    console.say(f"{named}{where}, on {figures['renderer']}{threads}")
    if "delegation" in figures:
        console.say(str(figures["delegation"]))
    elif "dispatches" in figures:
        console.say(f"{counted(figures['dispatches'], 'dispatch')}, {figures['mmac']:.1f} MMAC")
    if "compiling" in figures:
        console.say(compile_line(**figures["compiling"]))
    console.say(f"timed: {figures['timed']}")


def _show_times(figures: _Figures, console: Console) -> None:
    """The lines of benchmark_model, then ours."""
    names = ("count", "first", "curr", "min", "max", "avg", "std")
    console.say(" ".join(f"{name}={figures[name]}" for name in names))
    warmup = figures["warmup"].get("avg", "-")
    timings = {"Init": round(figures["init_ms"] * 1e3), "First inference": round(figures["first_ms"] * 1e3)}
    timings |= {"Warmup (avg)": warmup, "Inference (avg)": figures["avg"]}
    console.say("Inference timings in us: " + ", ".join(f"{name}: {value}" for name, value in timings.items()))
    rows = [("initialization", figures["init_ms"], _steps(figures["init_steps_ms"]))]
    rows += [("first inference", figures["first_ms"], "")]
    for name in ("min", "median", "mean", "p95", "max", "std"):
        rows.append((name, figures[f"{name}_ms"], f"of {figures['count']} runs" if name == "min" else ""))
    if figures["cpu_ms"] is not None:
        rows.append(("CPU time of a run", figures["cpu_ms"], "of all threads of the process"))
    console.table("Times", ("", "ms", ""), rows)
    console.say(_memory_line(figures["memory"]))
    console.say(energy_line(figures["energy"]))
    if "peak_share" in figures:
        share = f"{figures['peak_share']:.0%} of the {figures['peak_gmacs']:.1f} that this device reached just now"
        console.say(f"arithmetic: {figures['gmacs']:.2f} GMAC/s, {share}")


def _steps(steps_ms: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in steps_ms.items())


def _memory_line(memory: Mapping[str, int | None]) -> str:
    """What is known of it, in MiB."""
    named = {
        "init_growth_bytes": "the process grew by {} until it was ready",
        "growth_bytes": "by {} in all",
        "peak_bytes": "peak {}",
        "watched_peak_bytes": "at the looks of a watch {} at most",
        "gl_bytes": "GL buffers {}",
    }
    found = {text: memory.get(name) for name, text in named.items()}
    parts = [text.format(f"{value / _MIB:.1f} MiB") for text, value in found.items() if value is not None]
    return "memory: " + (", ".join(parts) or "this system does not tell")


def _show_dispatches(per_op: Mapping[str, Any], console: Console) -> None:
    if not per_op["rows"]:
        console.say(f"dispatches: {per_op['clock']}")
        return
    rows = [
        (number, row["name"], row["ms"], row["median_ms"], row["mmac"], row["mmac"] / row["ms"] if row["ms"] else 0.0)
        for number, row in enumerate(per_op["rows"])
    ]
    columns = ("", "dispatch", "ms (least)", "ms (median)", "MMAC", "GMAC/s")
    console.table(f"{counted(len(rows), 'dispatch')}, each repeated by itself", columns, rows)
    console.say(
        f"sum {per_op['sum_ms']:.2f} ms (least), {per_op['sum_median_ms']:.2f} ms (median), beside "
        f"{per_op['whole_ms']:.2f} ms of a whole run (median); by {per_op['clock']}"
    )
