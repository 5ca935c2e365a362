"""The rows of `bench memory` go in; a picture comes out: for each network a bar for each strategy, before fusion and after.

What shares nothing is not drawn, since all others would be short beside it: titles say how much that is.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ..plots import BLUE, ORANGE, SKY_BLUE, VERMILION, YELLOW, new_figure, save_figure
from .memory_tables import naive_row

_Row = dict[str, Any]

_COLOURS = {("offsets", "ops"): BLUE, ("offsets", "fused"): SKY_BLUE, ("objects", "ops"): VERMILION,
            ("objects", "fused"): ORANGE}  # fmt: skip
_TITLES = {"ops": "before fusion", "fused": "after fusion"}
_INK = "0.25"
_COLUMNS, _WIDTH, _BAR_INCHES, _PANEL_INCHES = 3, 12.0, 0.2, 0.9
_HEIGHT = {"ops": 0.4, "fused": 0.4}  # of bars, of a strategy's row
_MIB = 1 << 20


def save_memory_bars(path: Path, rows: Sequence[_Row]) -> None:
    """A panel for each network. Raises UsageError without matplotlib, MediaError."""
    networks = {name: list(own) for name, own in groupby(rows, key=lambda row: row["network"])}
    networks = {name: own for name, own in networks.items() if own[0]["graph"] in _TITLES}
