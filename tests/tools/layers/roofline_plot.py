"""Draws the figures of layers as a roofline plot: the roofs, and under them a point for each layer.

As in Williams et al., "Roofline", CACM 2009. Compulsory bytes say where a point stands; those of rivals are moved to
the right a little, so that none hides another.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from texelflow.app.plots import BLUE, GREEN, PURPLE, VERMILION, new_figure, save_figure

from .layer_tables import TITLES, machine_line, present
from .layer_times import OURS

# Ours is filled, the others are rings
_COLORS = {OURS: BLUE, "xnnpack": VERMILION, "ncnn": GREEN, "mnn": PURPLE}
_MARKERS = {"3x3": "D", "depthwise": "o", "pointwise": "s"}
_INK = "0.25"
_PANEL = (5.6, 5.2)  # inches
_ASIDE = 1.07  # times the intensity, for each further contender
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)  # GFLOP/s


def save_roofline(path: Path, figures: Mapping[str, Any]) -> None:
    """A panel for each size that has layers, which one has. Raises UsageError without matplotlib, MediaError."""
    sizes = {size: found for size, found in figures["sizes"].items() if found["layers"]}
    figure = new_figure(_PANEL[0] * len(sizes), _PANEL[1] + 0.6)
    panels = figure.subplots(1, len(sizes), sharex=True, sharey=True, squeeze=False)[0]
    rates = [rate for found in sizes.values() for _, _, _, rate in _points(found)]
    lowest = min(rates) / 1.6
    for panel, (size, found) in zip(panels, sizes.items(), strict=True):
        _draw_roofs(panel, figures["roofs"], lowest)
        for kind, name, intensity, rate in _points(found):
            face = _COLORS[name] if name == OURS else "none"
            place = intensity * _ASIDE ** list(_COLORS).index(name)
            panel.plot(
                place, rate, _MARKERS[kind], color=_COLORS[name], markerfacecolor=face, markersize=6,
                markeredgewidth=1.3, zorder=4 if name == OURS else 3,
            )  # fmt: skip
        panel.set_title(f"pictures of {size} x {size}", fontsize="medium")
        panel.set_xlabel("operations per compulsory byte (FLOP/B)")
    panels[0].set_ylabel("GFLOP/s, by the least time")
    figure.legend(handles=_legend(sizes), loc="outside lower center", ncols=4 * len(sizes), frameon=False)
    figure.suptitle(machine_line(figures).partition("; ")[0], fontsize="medium")
    save_figure(path, figure)


def _points(found: Mapping[str, Any]) -> list[tuple[str, str, float, float]]:
    """Kind, contender, intensity and GFLOP/s; equal layers are one point, at the median of their rates."""
    rates: dict[tuple[str, str, str], list[float]] = {}
    intensities: dict[str, float] = {}
    for row in found["layers"]:
        intensities[row["name"]] = row["intensity"]
        for name in present(found):
            rate = row["mflop"] / row["times"][name]["min_us"] * 1e3
            rates.setdefault((row["kind"], name, row["name"]), []).append(rate)
    return [(kind, name, intensities[layer], median(values)) for (kind, name, layer), values in rates.items()]


def _draw_roofs(panel: Any, roofs: Mapping[str, Any], lowest: float) -> None:
    """A slope for each level up to the peak of multiply-adds, and that of narrower vectors."""
    widest, peak = max(((int(lanes), rate) for lanes, rate in roofs["gflops"].items()), key=lambda each: each[1])
    first, last = 0.2, 100.0
    for level, gbytes in roofs["gbytes"].items():
        ridge = peak / gbytes
        start = max(first, lowest / gbytes)
        panel.plot([start, ridge], [start * gbytes, peak], color=_INK, linewidth=1.0, zorder=2)
        place = start * 1.12
        panel.text(
            place, place * gbytes * 1.06, f"{level} {gbytes:.0f} GB/s", rotation=math.degrees(math.atan(gbytes)),
            rotation_mode="anchor", transform_rotates_text=True, fontsize="small", color=_INK,
        )  # fmt: skip
    ridge = min(peak / gbytes for gbytes in roofs["gbytes"].values())
    panel.plot([ridge, last], [peak, peak], color=_INK, linewidth=1.0, zorder=2)
    panel.annotate(
        f"{peak:.0f} GFLOP/s, {widest} lanes", (ridge, peak), xytext=(2, 4), textcoords="offset points",
        fontsize="small", color=_INK,
    )  # fmt: skip
    panel.set(xscale="log", yscale="log", xlim=(first, last), ylim=(lowest, peak * 1.5))
    ticks = [tick for tick in _TICKS if lowest <= tick <= peak * 1.5]
    panel.set_yticks(ticks, [str(tick) for tick in ticks])
    panel.set_yticks([], minor=True)
    panel.set_xticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
    panel.set_xticks([], minor=True)
    panel.grid(which="major", alpha=0.25)


def _legend(sizes: Mapping[str, Any]) -> list[Any]:
    from matplotlib.lines import Line2D

    names = present(next(iter(sizes.values())))
    who = [
        Line2D([], [], color=_COLORS[name], linewidth=0, marker="o", label=TITLES[name], markeredgewidth=1.4,
               markerfacecolor=_COLORS[name] if name == OURS else "none")
        for name in names
    ]  # fmt: skip
    kinds = [
        Line2D([], [], color=_INK, linewidth=0, marker=marker, label=kind, markerfacecolor="none")
        for kind, marker in _MARKERS.items()
    ]
    return who + kinds
