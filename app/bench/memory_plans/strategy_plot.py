"""Draws the rows of `bench memory`: a bar for each network and strategy, before fusion and after.

Bars far above the bounds are cut, with their figures, so that the others can be told apart. Objects laid end to end are
left out: they are as long as the objects.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.plan.memory.strategies import END_TO_END

from ...plots import BLUE, ORANGE, SKY_BLUE, VERMILION, new_figure, save_figure
from .memory_tables import MIB, by_network

_Row = dict[str, Any]

_GRAPHS = {"ops": "before fusion", "fused": "after fusion"}
_COLORS = {
    ("objects", "ops"): VERMILION, ("objects", "fused"): ORANGE,
    ("offsets", "ops"): BLUE, ("offsets", "fused"): SKY_BLUE,
}  # fmt: skip
_BAR = 0.4  # of the height of a strategy's row
_WIDTH, _ROW, _AROUND = 12.0, 0.24, 0.75  # inches: of the picture, of a strategy's row, of a panel's title and axis
_MOST_PANELS = 3  # side by side
_MOST_BOUNDS = 2.0  # times the largest bound that a panel shows
_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}


def save_memory_bars(path: Path, rows: Sequence[_Row]) -> None:
    """A panel for each network. Raises UsageError without matplotlib, MediaError."""
    drawn = [row for row in rows if row["graph"] in _GRAPHS and not row["strategy"].endswith(END_TO_END)]
    networks, strategies = by_network(drawn), list(dict.fromkeys((row["kind"], row["strategy"]) for row in drawn))
    across = min(_MOST_PANELS, len(networks))
    down = -(-len(networks) // across)
    figure = new_figure(_WIDTH * (1 + across) / (1 + _MOST_PANELS), down * (len(strategies) * _ROW + _AROUND) + 0.6)
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for panel, (network, own) in zip(panels, networks.items(), strict=False):
        _draw(panel, own, strategies)
        panel.set_title(f"{network}, MiB", fontsize="medium")
    for panel in panels[len(networks) :]:
        panel.set_axis_off()
    panels[0].set_yticks(range(len(strategies)), [f"{strategy} ({kind})" for kind, strategy in strategies])
    panels[0].set_ylim(len(strategies) - 0.5, -0.5)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=5 if across > 1 else 1, frameon=False)
    save_figure(path, figure)


def _draw(panel: Any, rows: Sequence[_Row], strategies: Sequence[tuple[str, str]]) -> None:
    """Bars of a network, the upper of each pair before fusion, and a line at each bound."""
    most = _MOST_BOUNDS * max(row["lower_bound_bytes"] for row in rows) / MIB or 1.0
    for number, strategy in enumerate(strategies):
        own = [row for row in rows if (row["kind"], row["strategy"]) == strategy]
        for row in own:
            at = number + (list(_GRAPHS).index(row["graph"]) - 0.5) * _BAR
            panel.barh(at, min(most, row["bytes"] / MIB), _BAR, color=_COLORS[row["kind"], row["graph"]], zorder=2)
            bound = row["lower_bound_bytes"] / MIB
            panel.plot([bound, bound], [at - _BAR / 2, at + _BAR / 2], color="black", linewidth=1.2, zorder=3)
        if any(row["bytes"] / MIB > most for row in own):
            figures = ", ".join(f"{row['bytes'] / MIB:.1f}" for row in own)
            panel.text(most, number, figures, ha="right", va="center", fontsize="x-small", bbox=_PLATE, zorder=4)
    panel.set_xlim(0, most)
    panel.tick_params(labelsize="small")
    panel.grid(axis="x", alpha=0.3)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bars = [Patch(color=color, label=f"{kind}, {_GRAPHS[graph]}") for (kind, graph), color in _COLORS.items()]
    return [*bars, Line2D([], [], color="black", linewidth=0, marker="|", markersize=10, label="lower bound")]
