"""Prints figures of shared weights: tables, what sharing has saved, and a picture over instances."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from texelflow.app.console import Console, counted
from texelflow.app.plots import BLUE, ORANGE, VERMILION, new_figure, save_figure

from .shared_weights import SharingRow
from .weights_part import CACHES

_MIB = 1 << 20
_STYLES = {"none": (VERMILION, "o", "-"), "soft": (BLUE, "s", "-"), "hard": (ORANGE, "x", ":")}
_TITLES = {"none": "no cache", "soft": "finalize_soft()", "hard": "finalize_hard()"}
_SIZES = ("weights_bytes", "tensor_bytes", "peak_bytes")
_TIMES = ("init_ms", "second_init_ms", "ms")
_PANELS = {"peak_bytes": "peak of the process (MiB)", "weights_bytes": "weights (MiB)"}


@dataclass(frozen=True)
class SharingFindings:
    """What sharing saves for one model on one backend; None where too little was measured for it."""

    model: str
    backend: str
    are_weights_constant: bool | None  # whatever the number of instances, with a cache
    baseline: int | None  # the most instances without a cache of which twice as many were measured, too
    twice_peak: float | None  # the peak of twice as many with a soft cache, over that of these
    hard_peak: float | None  # with a hard cache over that with a soft one, at the worst
    second_open: float | None  # until a second instance is ready, over the first one's: before finalizing
    second_soft: float | None  # and after finalize_soft()


def sharing_findings(rows: Sequence[SharingRow]) -> Iterator[SharingFindings]:
    """For each model and backend of the rows, in their order."""
    good = [row for row in rows if not row["reason"]]
    for model, backend in dict.fromkeys((row["model"], row["backend"]) for row in good):
        own = [row for row in good if (row["model"], row["backend"]) == (model, backend)]
        none, soft, hard = ({row["instances"]: row for row in own if row["cache"] == cache} for cache in CACHES)
        weights = {row["weights_bytes"] for row in own if row["cache"] != "none"}
        baseline = max((count for count in none if 2 * count in soft), default=None)
        yield SharingFindings(
            model,
            backend,
            len(weights) == 1 if weights else None,
            baseline,
            soft[2 * baseline]["peak_bytes"] / none[baseline]["peak_bytes"] if baseline else None,
            max(
                (hard[count]["peak_bytes"] / soft[count]["peak_bytes"] for count in soft if count in hard), default=None
            ),
            _second(hard),
            _second(soft),
        )


def _second(rows: Mapping[int, SharingRow]) -> float | None:
    parts = [row["second_init_ms"] / row["init_ms"] for row in rows.values() if row["second_init_ms"] is not None]
    return median(parts) if parts else None


def show_weights(rows: Sequence[SharingRow], console: Console) -> None:
    """A table of what was measured, what failed, and a table of what sharing has saved."""
    columns = ("model", "backend", "count", "cache", "weights MiB", "tensors MiB", "peak MiB", "first ms",
               "second ms", "run ms")  # fmt: skip
    good = [row for row in rows if not row["reason"]]
    console.table("Instances of a model", columns, [_cells(row) for row in good], dense=True)
    for model, backend, reason in dict.fromkeys((row["model"], row["backend"], row["reason"]) for row in rows):
        failed = [row for row in rows if (row["model"], row["backend"], row["reason"]) == (model, backend, reason)]
        if reason:
            console.warn(f"{model}, {backend}, {counted(len(failed), 'row')} not measured: {reason}")
    heads = ("model", "backend", "weights with a cache", "peak, twice as many with", "peak, hard over soft",
             "second, open", "second, after soft")  # fmt: skip
    console.table("What sharing saves", heads, [_found(found) for found in sharing_findings(rows)])


def _cells(row: SharingRow) -> tuple[Any, ...]:
    sizes = (
        "-" if row[name] is None else f"{row[name] / _MIB:.2f}"
        for name in ("weights_bytes", "tensor_bytes", "peak_bytes")
    )
    times = ("-" if row[name] is None else f"{row[name]:.1f}" for name in _TIMES)
    return row["model"], row["backend"], row["instances"], row["cache"], *sizes, *times


def _found(found: SharingFindings) -> tuple[str, ...]:
    constant = {True: "constant", False: "grow", None: "-"}[found.are_weights_constant]
    twice = (
        "-"
        if found.twice_peak is None
        else f"{2 * (found.baseline or 0)}: {found.twice_peak:.0%} of {found.baseline}'s"
    )
    parts = (found.hard_peak, found.second_open, found.second_soft)
    return found.model, found.backend, constant, twice, *("-" if part is None else f"{part:.1%}" for part in parts)


def save_weights_plot(path: Path, rows: Sequence[SharingRow]) -> None:
    """Peak memory and weights over instances, a column for each model and backend. Raises UsageError, MediaError."""
    good = [row for row in rows if not row["reason"]]
    pairs = list(dict.fromkeys((row["model"], row["backend"]) for row in good))
    figure = new_figure(max(6.0, 3.0 * len(pairs)), 6.0)
    panels = figure.subplots(len(_PANELS), len(pairs), squeeze=False, sharex=True)
    for column, pair in enumerate(pairs):
        own = [row for row in good if (row["model"], row["backend"]) == pair]
        panels[0][column].set_title(", ".join(pair), fontsize="medium")
        for panel, name in zip(panels[:, column], _PANELS, strict=True):
            _draw_lines(panel, own, name)
        panels[-1][column].set_xlabel("instances")
    for panel, title in zip(panels[:, 0], _PANELS.values(), strict=True):
        panel.set_ylabel(title)
    lines, names = panels[0][0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(CACHES), frameon=False)
    save_figure(path, figure, 100)


def _draw_lines(panel: Any, rows: Sequence[SharingRow], name: str) -> None:
    for cache, (color, marker, line) in _STYLES.items():
        points = sorted((row["instances"], row[name] / _MIB) for row in rows if row["cache"] == cache)
        panel.plot(*zip(*points, strict=True), marker + line, color=color, label=_TITLES[cache], markersize=5)
    counts = sorted({row["instances"] for row in rows})
    panel.set_xticks(counts if len(counts) < 3 else [each for each in counts if each == 1 or 8 * each >= counts[-1]])
    panel.set(xlim=(0, counts[-1] * 1.05), ylim=(0, 1.1 * max(row[name] for row in rows) / _MIB))
    panel.grid(alpha=0.3)
