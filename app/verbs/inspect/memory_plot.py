"""Draws memory plans with matplotlib: time across, addresses up, a block for each tensor.

Every axes has its place on the page in inches, so that nothing overlaps whatever the model is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.plan.memory.strategies import PlanKind

from ...plots import BLUE, GREEN, ORANGE, PURPLE, SKY_BLUE, VERMILION, YELLOW, new_figure, save_figure
from .memory_picture import OUTER, MemoryPage, MemoryPanel, StrategyRow, StrategySection, TensorBlock, TensorUse

_FILLS = (SKY_BLUE, ORANGE, GREEN, YELLOW, BLUE, VERMILION, PURPLE)
_WITH_LIGHT_TEXT = (GREEN, BLUE, VERMILION)
_OUTER_FILL, _FREE_FILL, _INK, _FAINT = "#D0D0D0", "#F4F4F4", "#222222", "#666666"
_DPI = 100
_WIDTH = 12.0  # inches, as all that follows
_EDGE, _AXIS, _MARGIN = 0.2, 0.55, 0.85  # beside everything; for the numbers of an axis; for marks behind a panel
_HEAD, _USED, _BELOW = 1.3, 4.8, 0.65
_SECTION_HEAD, _ROW_HEAD, _ROW, _GAP, _SECTION_GAP = 0.32, 0.54, 1.25, 0.16, 0.2
_NAIVE_PART = 0.24
_LABEL_POINTS = (8.0, 7.0, 6.5)
_LEAST_PIXELS = 12  # of a block's side, for any text
_MEASURED_POINTS = 10.0
_MOST_ABOVE = 2.0  # times the smallest plan: larger ones are cut off, so that these can be read
_ROW_NAMES: Mapping[PlanKind, str] = MappingProxyType({"objects": "shared objects", "offsets": "one arena"})
_EQUAL = 0.0005  # of a plan: differences by alignment alone
_BUSIEST, _CUT_OFF = "\u25be", "\u25b4"
_MANY = 400  # blocks of a panel, which an SVG file then has as a picture
_MIB, _KIB = 1 << 20, 1 << 10


@dataclass(frozen=True)
class _Unit:
    """What an axis counts in."""

    name: str
    size_bytes: int

    def words(self, size_bytes: int) -> str:
        return f"{size_bytes / self.size_bytes:.{2 if self.size_bytes == _MIB else 0}f} {self.name}"


class _Page:
    """A figure on which axes are placed from the top down."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.figure = new_figure(_WIDTH, height, None)
        self.figure.set_dpi(_DPI)
        self.renderer = self.figure.canvas.get_renderer()
        self.widths: dict[str, float] = {}

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        bottom = self.height - top - height
        axes = self.figure.add_axes(
            (left / _WIDTH, bottom / self.height, width / _WIDTH, height / self.height), facecolor="white"
        )
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(labelsize=8, color=_FAINT)
        return axes

    def text(self, left: float, top: float, text: str, **style: Any) -> None:
        style = {"va": "baseline", "color": _INK, **style}
        self.figure.text(left / _WIDTH, 1 - top / self.height, text, **style)

    def text_pixels(self, lines: Sequence[str], points: float) -> tuple[float, float]:
        """Width and height of lines of text, with a little room around them."""
        width = max(map(self._width, lines)) * points / _MEASURED_POINTS
        return width * 1.03 + 6, len(lines) * points * 1.25 * _DPI / 72 + 2

    def _width(self, line: str) -> float:
        """Of a line in pixels, measured once in one size."""
        from matplotlib.font_manager import FontProperties

        if line not in self.widths:
            found = self.renderer.get_text_width_height_descent(line, FontProperties(size=_MEASURED_POINTS), False)
            self.widths[line] = float(found[0])
        return self.widths[line]


def save_memory_plot(path: Path, page: MemoryPage) -> None:
    """The page as a file, 1200 pixels wide. Raises UsageError without matplotlib, MediaError."""
    save_figure(path, memory_figure(page), _DPI)


def memory_figure(page: MemoryPage) -> Any:
    """The page as a figure of matplotlib."""
    rows = sum(_section_height(section) for section in page.sections)
    sheet = _Page(_HEAD + _USED + _BELOW + rows)
    _draw_head(sheet, page)
    _draw_used(sheet, page)
    top, columns = _HEAD + _USED + _BELOW, max(len(row.panels) for each in page.sections for row in each.rows)
    for section in page.sections:
        _draw_section(sheet, section, top, columns)
        top += _section_height(section)
    return sheet.figure


def _draw_head(sheet: _Page, page: MemoryPage) -> None:
    used, naive, use = page.used, page.naive, page.use
    unit = _unit_of(naive.total_bytes)
    sheet.text(_EDGE, 0.32, page.title, fontsize=13, fontweight="bold")
    line = f"{counted(len(use.records), 'tensor')} over {counted(use.tasks, use.task)}: "
    line += (
        f"{unit.words(used.total_bytes)} in use, {naive.total_bytes / max(1, used.total_bytes):.1f} times less than "
    )
    line += f"the naive {unit.words(naive.total_bytes)}; no such plan takes less than {unit.words(used.bound_bytes)}"
    sheet.text(_EDGE, 0.58, line, fontsize=9)
    key = "Colors tell neighbors apart" if len(used.buffer_bytes) == 1 else "A color for each shared object"
    key += f"; gray: inputs and outputs of the model; {_BUSIEST} the {use.task} with the most bytes alive"
    key += f"; dashed: the lower bound; bold: the smallest; {_CUT_OFF} cut off"
    sheet.text(_EDGE, 0.78, key, fontsize=8, color=_FAINT)


def _draw_used(sheet: _Page, page: MemoryPage) -> None:
    """The plan in use, large, and beside it the naive one, with the height of the other marked."""
    room = _WIDTH - 2 * (_EDGE + _AXIS + _MARGIN)
    naive_width = room * _NAIVE_PART
    used, naive = page.used, page.naive
    axes = sheet.axes(_EDGE + _AXIS, _HEAD, room - naive_width, _USED)
    unit = _unit_of(used.total_bytes)
    _draw_panel(axes, used, used.total_bytes, unit, 0.8)
    _draw_names(sheet, axes, used)
    _title(axes, used.title, 10)
    _time_axis(axes, page.use, 12)
    axes.set_ylabel(unit.name, fontsize=8)
    if unit.words(used.total_bytes) != unit.words(used.bound_bytes):
        marks = [(used.total_bytes, f"in use\n{unit.words(used.total_bytes)}")]
        marks.append((used.bound_bytes, f"at least\n{unit.words(used.bound_bytes)}"))
    else:
        marks = [(used.total_bytes, f"{unit.words(used.total_bytes)},\nthe least\npossible")]
    _draw_marks(sheet, axes, marks)
    axes = sheet.axes(_WIDTH - _EDGE - _MARGIN - naive_width, _HEAD, naive_width, _USED)
    unit = _unit_of(naive.total_bytes)
    _draw_panel(axes, naive, naive.total_bytes, unit, 0.5)
    _draw_names(sheet, axes, naive)
    _title(axes, naive.title, 10)
    _time_axis(axes, page.use, 5)
    axes.axhline(used.total_bytes, color=_INK, linewidth=1, linestyle=(0, (4, 2)))
    marks = [(naive.total_bytes, f"naive\n{unit.words(naive.total_bytes)}")]
    _draw_marks(sheet, axes, [*marks, (used.total_bytes, f"in use\n{unit.words(used.total_bytes)}")])


def _section_height(section: StrategySection) -> float:
    return _SECTION_HEAD + len(section.rows) * (_ROW_HEAD + _ROW + _GAP) + _SECTION_GAP


def _draw_section(sheet: _Page, section: StrategySection, top: float, columns: int) -> None:
    """Small panels of all strategies, on the same scale."""
    use = section.use
    what = (
        f"Every strategy on {use.title}: {counted(len(use.records), 'tensor')} over "
        f"{counted(use.tasks, use.task)}, naive {_unit_of(section.naive_bytes).words(section.naive_bytes)}"
    )
    sheet.text(_EDGE, top + 0.12, what, fontsize=10, fontweight="bold")
    totals = [panel.total_bytes for row in section.rows for panel in row.panels]
    highest = min(max(totals), round(_MOST_ABOVE * min(totals)))
    for number, row in enumerate(section.rows):
        _draw_row(sheet, row, top + _SECTION_HEAD + _ROW_HEAD + number * (_ROW_HEAD + _ROW + _GAP), columns, highest)


def _draw_row(sheet: _Page, row: StrategyRow, top: float, columns: int, highest: int) -> None:
    width = (_WIDTH - 2 * _EDGE - _AXIS - (columns - 1) * _GAP) / columns
    least = min(panel.total_bytes for panel in row.panels)
    unit = _unit_of(highest)
    for number, panel in enumerate(row.panels):
        axes = sheet.axes(_EDGE + _AXIS + number * (width + _GAP), top, width, _ROW)
        _draw_panel(axes, panel, highest, unit, 0.25)
        axes.axhline(panel.bound_bytes, color=_INK, linewidth=0.8, linestyle=(0, (4, 2)))
        axes.set_xticks([])
        if number:
            axes.set_yticks([])
        else:
            axes.set_ylabel(f"{_ROW_NAMES[row.kind]}\n{unit.name}", fontsize=8)
        weight = "bold" if panel.total_bytes < least * (1 + _EQUAL) else "normal"
        points = _fitting_points(sheet, panel.title, width * _DPI)
        for above, text, style in (
            (0.36, panel.title, {"fontsize": points, "fontweight": weight}),
            (0.20, _told_size(panel, unit, highest), {"fontsize": 7.5}),
            (0.06, _told_rest(panel, row.kind), {"fontsize": 7.5}),
        ):
            axes.text(0, 1 + above / _ROW, text, transform=axes.transAxes, color=_INK, **style)


def _told_size(panel: MemoryPanel, unit: _Unit, highest: int) -> str:
    return unit.words(panel.total_bytes) + (f" {_CUT_OFF}" if panel.total_bytes > highest else "")


def _told_rest(panel: MemoryPanel, kind: PlanKind) -> str:
    objects = f"{counted(len(panel.buffer_bytes), 'object')}, " if kind == "objects" else ""
    above = panel.total_bytes / max(1, panel.bound_bytes) - 1
    return f"{objects}{f'+{above:.0%}' if above > _EQUAL else 'the least'}"


def _draw_panel(axes: Any, panel: MemoryPanel, highest: int, unit: _Unit, line_points: float) -> None:
    """The blocks, and behind them the buffers."""
    from matplotlib.collections import PolyCollection
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    start, buffers = 0, []
    for size_bytes in panel.buffer_bytes:
        buffers.append(_corners(0, panel.tasks, start, start + size_bytes))
        start += size_bytes
    many = len(panel.blocks) > _MANY
    axes.add_collection(PolyCollection(buffers, facecolors=_FREE_FILL, edgecolors="white", linewidths=0.8))
    blocks = [_corners(*block.tasks, *block.addresses) for block in panel.blocks]
    fills = [_fill(block) for block in panel.blocks]
    line = 0.0 if many else line_points
    axes.add_collection(PolyCollection(blocks, facecolors=fills, edgecolors="white", linewidths=line, rasterized=many))
    axes.set(xlim=(0, max(1, panel.tasks)), ylim=(0, max(1, highest)))
    step = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(0, max(1, highest) / unit.size_bytes)
    axes.set_yticks([each * unit.size_bytes for each in step if each * unit.size_bytes <= max(1, highest)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit.size_bytes:g}"))


def _draw_names(sheet: _Page, axes: Any, panel: MemoryPanel) -> None:
    """The names of tensors in their blocks, along the longer side if they do not fit otherwise."""
    box = axes.get_position()
    across = box.width * _WIDTH * _DPI / max(1, panel.tasks)
    up = box.height * sheet.height * _DPI / max(1, panel.total_bytes)
    for block in panel.blocks:
        width, height = (block.end_task - block.first_task) * across, block.size_bytes * up
        found = _fitting(sheet, block, width, height) if min(width, height) > _LEAST_PIXELS else None
        if found:
            text, points, rotation = found
            axes.text(
                (block.first_task + block.end_task) / 2, block.address_bytes + block.size_bytes / 2, text,
                fontsize=points, rotation=rotation, ha="center", va="center", linespacing=1.15, parse_math=False,
                color="white" if _fill(block) in _WITH_LIGHT_TEXT else _INK,
            )  # fmt: skip


def _fitting(sheet: _Page, block: TensorBlock, width: float, height: float) -> tuple[str, float, int] | None:
    """What of a name, how large and how turned; the most of it that a block of so many pixels has room for."""
    for lines in _wordings(block):
        for points in _LABEL_POINTS:
            across, up = sheet.text_pixels(lines, points)
            for rotation, fits in ((0, across <= width and up <= height), (90, across <= height and up <= width)):
                if fits:
                    return "\n".join(lines), points, rotation
    return None


def _wordings(block: TensorBlock) -> Iterator[tuple[str, ...]]:
    """A name from the longest to the shortest form: first all of it and the size, at last its end alone."""
    parts = block.name.partition(";")[0].split("/")
    size = _unit_of(block.size_bytes).words(block.size_bytes)
    names = list(dict.fromkeys("/".join(parts[-count:]) for count in (len(parts), 2, 1)))
    yield from ((name, size) for name in names)
    yield from ((name,) for name in names)


def _draw_marks(sheet: _Page, axes: Any, marks: Sequence[tuple[int, str]]) -> None:
    """Words behind the panel at heights in bytes, from the top down, each below the one before."""
    box, highest = axes.get_position(), axes.get_ylim()[1]
    left, inches = box.x1 * _WIDTH, box.height * sheet.height
    free = sheet.height
    for size_bytes, text in marks:
        height = (text.count("\n") + 1) * 0.15
        marked = box.y0 * sheet.height + size_bytes / highest * inches
        at = min(marked, free - height / 2)
        axes.plot(
            [(left + 0.05) / _WIDTH, (left + 0.13) / _WIDTH, (left + 0.21) / _WIDTH],
            [marked / sheet.height, marked / sheet.height, at / sheet.height],
            transform=sheet.figure.transFigure, color=_INK, linewidth=0.8, clip_on=False,
        )  # fmt: skip
        sheet.figure.text((left + 0.25) / _WIDTH, at / sheet.height, text, fontsize=8, va="center", color=_INK)
        free = at - height / 2


def _time_axis(axes: Any, use: TensorUse, ticks: int) -> None:
    """Its numbers in the middle of tasks, its name, and over the panel a mark where the most bytes are alive."""
    from matplotlib.ticker import MaxNLocator

    tasks = max(1, use.tasks)
    places = MaxNLocator(ticks, integer=True, steps=[1, 2, 5, 10]).tick_values(0, tasks)
    numbers = [int(each) for each in places if each < tasks]
    axes.set_xticks([each + 0.5 for each in numbers], [str(each) for each in numbers])
    axes.set_xlabel(use.task, fontsize=8)
    axes.plot(
        [(use.busiest + 0.5) / max(1, use.tasks)], [1.015], "v", transform=axes.transAxes, clip_on=False,
        color=_INK, markersize=5,
    )  # fmt: skip


def _title(axes: Any, text: str, points: float) -> None:
    axes.text(0, 1.045, text, transform=axes.transAxes, fontsize=points, fontweight="bold", color=_INK)


def _fitting_points(sheet: _Page, text: str, width: float) -> float:
    return next((points for points in (8.5, 8.0, 7.5, 7.0) if sheet.text_pixels([text], points)[0] * 1.1 <= width), 6.5)


def _fill(block: TensorBlock) -> str:
    return _OUTER_FILL if block.color == OUTER else _FILLS[block.color]


def _corners(left: float, right: float, bottom: float, top: float) -> list[tuple[float, float]]:
    return [(left, bottom), (right, bottom), (right, top), (left, top)]


def _unit_of(size_bytes: int) -> _Unit:
    return _Unit("MiB", _MIB) if size_bytes >= _MIB else _Unit("KiB", _KIB)
