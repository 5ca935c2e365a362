"""The rows of `bench memory` go in; a picture comes out: a bar for each network and strategy, before fusion and after.

What shares nothing is not drawn, since all others would be short beside it: titles say how much that is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..plots import BLUE, ORANGE, SKY_BLUE, VERMILION, new_figure, save_figure
from .memory_tables import MIB, by_network, naive_row

_Row = dict[str, Any]

_GRAPHS = {"ops": "before fusion", "fused": "after fusion"}
_COLOURS = {
    ("objects", "ops"): VERMILION, ("objects", "fused"): ORANGE,
    ("offsets", "ops"): BLUE, ("offsets", "fused"): SKY_BLUE,
}  # fmt: skip
_BAR = 0.38  # of the height of a strategy's row
_WIDTH, _ROW, _AROUND = 12.0, 0.21, 0.75  # inches: of the picture, of a strategy's row, of a panel's title and axis
_MOST_PANELS = 3  # side by side


def save_memory_bars(path: Path, rows: Sequence[_Row]) -> None:
    """A panel for each network. Raises UsageError without matplotlib, MediaError."""
    networks = by_network([row for row in rows if row["graph"] in _GRAPHS])
    strategies = list(dict.fromkeys((row["kind"], row["strategy"]) for row in rows if row["strategy"] != "naive"))
    across = min(_MOST_PANELS, len(networks))
    down = -(-len(networks) // across)
    figure = new_figure(_WIDTH * (1 + across) / (1 + _MOST_PANELS), down * (len(strategies) * _ROW + _AROUND) + 0.6)
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for panel, (network, own) in zip(panels, networks.items(), strict=False):
        _draw(panel, network, own, strategies)
    for panel in panels[len(networks) :]:
        panel.set_axis_off()
    panels[0].set_yticks(range(len(strategies)), [f"{strategy} ({kind})" for kind, strategy in strategies])
    panels[0].invert_yaxis()
    figure.legend(handles=_legend(), loc="outside lower center", ncols=5, frameon=False)
    save_figure(path, figure)


def _draw(panel: Any, network: str, rows: Sequence[_Row], strategies: Sequence[tuple[str, str]]) -> None:
    """Bars of a network, the upper of each pair before fusion, and a line at each bound."""
    totals = []
    for place, graph in enumerate(_GRAPHS):
        own = [row for row in rows if row["graph"] == graph]
        if naive := naive_row(own):
            totals.append(f"{naive['bytes'] / MIB:.1f}")
        for row in own:
            if row["strategy"] == "naive":
                continue
            at = strategies.index((row["kind"], row["strategy"])) + (place - 0.5) * _BAR
            panel.barh(at, row["bytes"] / MIB, _BAR, color=_COLOURS[row["kind"], graph], zorder=2)
            bound = row["lower_bound_bytes"] / MIB
            panel.plot([bound, bound], [at - _BAR / 2, at + _BAR / 2], color="black", linewidth=1.0, zorder=3)
    panel.set_title(f"{network} (naive: {', '.join(totals)})", fontsize="small")
    panel.set_xlabel("MiB", fontsize="small")
    panel.tick_params(labelsize="small")
    panel.grid(axis="x", alpha=0.3)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bars = [Patch(color=colour, label=f"{kind}, {_GRAPHS[graph]}") for (kind, graph), colour in _COLOURS.items()]
    return [*bars, Line2D([], [], color="black", linewidth=0, marker="|", markersize=10, label="lower bound")]
