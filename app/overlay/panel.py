"""Figures and words go in; they are drawn over the picture, readable whatever it shows. Called within Gui.draw.

Sizes are in em, the height of a line of text. Each block of text is one string, since calls cost more than letters do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

from app.console import one_line
from app.overlay.figures import Figures, Spread, Summary
from app.overlay.gui import load_imgui

_BACK, _RULE = 0xCC1A1512, 0x30FFFFFF  # colours are alpha, blue, green, red
_BRIGHT, _PLAIN, _DIM = 0xFFFFFFFF, 0xFFE2DBD5, 0xFFA69C92
_CPU, _GPU, _LATE = 0xFFF2C879, 0xFF8FD98A, 0xFF5C6BFF
_MARGIN, _PADDING, _GRAPH, _GAP = 0.6, 0.7, 3.4, 0.45  # em
_NAME_LETTERS = 16
_COLUMN = "{:>6}"
_HEADINGS = "".join(map(_COLUMN.format, ("p50", "p95", "p99", "max")))
_NOTE_LETTERS = 80
_LATE_SHARE = 1.1  # of the budget: what takes longer is late


@dataclass(frozen=True)
class Facts:
    """What stays the same from frame to frame. `note` says why there are no GPU times; None where there are."""

    renderer: str
    backend: str
    model: str
    precision: str
    dispatches: int
    budget_ms: float  # between two frames of the source; 0 if unknown
    note: str | None = None


@dataclass(frozen=True)
class Block:
    """Lines of text in one colour, from a column and a line of the panel on; both in letters of its font."""

    column: int
    line: int
    color: int
    text: str


@dataclass(frozen=True)
class Texts:
    """The words of the performance panel, laid out. Lines of the table are counted from below the graph."""

    header: str
    short_header: str
    late: bool  # whether the source is not kept up with
    blocks: tuple[Block, ...]
    columns: int
    lines: int


def performance(figures: Figures, facts: Facts) -> None:
    """The panel at the top left: header, graph of frame times, table, facts; less of it in small pictures."""
    canvas = _Canvas()
    summary = figures.summary
    letters = int((canvas.width / canvas.em - 2 * (_MARGIN + _PADDING)) * canvas.em / canvas.letter)
    texts = _full_texts(summary, facts, letters)
    head, graph, table = 1.0, _GRAPH + 2 * _GAP, float(texts.lines)
    room = canvas.height / canvas.em - 2 * (_MARGIN + _PADDING)
    has_table = texts.columns <= letters and head + graph + table <= room
    has_graph = has_table or head + graph <= room
    header = texts.header if len(texts.header) <= letters else texts.short_header
    columns = max(len(header), texts.columns if has_table else 0)
    height = head + (graph if has_graph else 0) + (table if has_table else 0)
    x, y = canvas.box(_MARGIN, _MARGIN, columns * canvas.letter / canvas.em, height)
    canvas.text(x, y, _LATE if texts.late else _BRIGHT, header)
    y += canvas.em * (1 + _GAP)
    if has_graph:
        canvas.graph(
            x, y, columns * canvas.letter, _GRAPH * canvas.em, figures.intervals_ms, figures.window, facts.budget_ms
        )
    if has_table:
        y += canvas.em * (_GRAPH + _GAP)
        for block in texts.blocks:
            canvas.text(x + block.column * canvas.letter, y + block.line * canvas.em, block.color, block.text)


def key_list(rows: Sequence[tuple[str, str]]) -> None:
    """Keys and what they do, in the middle."""
    canvas = _Canvas()
    keys, words = ([_plain(row[side]) for row in rows] for side in (0, 1))
    wide = max(map(len, keys), default=0) + 2
    columns = wide + max(map(len, words), default=0)
    x, y = canvas.centred(columns, len(rows))
    canvas.text(x, y, _CPU, "\n".join(keys))
    canvas.text(x + wide * canvas.letter, y, _PLAIN, "\n".join(words))


def status(text: str) -> None:
    """One line at the bottom left."""
    canvas, text = _Canvas(), _plain(text)
    top = canvas.height / canvas.em - _MARGIN - 1 - 2 * _GAP
    x, y = canvas.box(_MARGIN, top, len(text) * canvas.letter / canvas.em, 1, _GAP)
    canvas.text(x, y, _PLAIN, text)


def progress(title: str, done: int, total: int) -> None:
    """A bar in the middle that says how much is done; without an end in sight (total 0) it stays empty."""
    canvas, title = _Canvas(), _plain(title)
    share = min(1.0, max(0.0, done / total)) if total > 0 else 0.0
    count = f"{done}/{total}" if total > 0 else ""
    columns = max(len(title) + 2 + len(count), 36)
    x, y = canvas.centred(columns, 2)
    canvas.text(x, y, _BRIGHT, title)
    canvas.text(x + (columns - len(count)) * canvas.letter, y, _DIM, count)
    y += 1.4 * canvas.em
    canvas.bar(x, y, columns * canvas.letter, 0.4 * canvas.em, share)


def message(text: str) -> None:
    """A few words at the bottom, in the middle, above the status line."""
    canvas, text = _Canvas(), _plain(text)
    wide = len(text) * canvas.letter / canvas.em
    left = max(_MARGIN, (canvas.width / canvas.em - wide) / 2 - _PADDING)
    x, y = canvas.box(left, canvas.height / canvas.em - 5.2, wide, 1)
    canvas.text(x, y, _BRIGHT, text)


@lru_cache(maxsize=8)
def _full_texts(summary: Summary, facts: Facts, letters: int) -> Texts:
    """The panel's words; `letters` is the width of the picture in them, for lines that must be broken."""
    late = 0 < _LATE_SHARE * facts.budget_ms < summary.frame_ms
    short = f"{summary.frames_per_s:.1f} fps  {summary.frame_ms:.1f} ms"
    header = f"{short}   dropped {summary.dropped}  repeated {summary.repeated}"
    table, columns = _table(summary)
    wide = min(max(columns, len(header)), letters)
    lines = len(summary.stages) + 1 + (any(stage.gpu for stage in summary.stages))
    notes = "\n".join(_wrapped(_moment(summary), wide))
    still = "\n".join(_wrapped(_still(facts), wide))
    below = notes.count("\n") + 1
    blocks = (*table, Block(0, lines, _PLAIN, notes), Block(0, lines + below, _DIM, still))
    columns = max(columns, *(len(line) for line in f"{notes}\n{still}".split("\n")))
    return Texts(header, short, late, blocks, columns, lines + below + still.count("\n") + 1)


def _table(summary: Summary) -> tuple[tuple[Block, ...], int]:
    """The table's blocks and its width: CPU and GPU times side by side, or wall clock alone under the same headings."""
    names = "\n".join(stage.name[:_NAME_LETTERS] for stage in summary.stages)
    cpu = "\n".join(_cells(stage.cpu) for stage in summary.stages)
    column, end = _NAME_LETTERS, _NAME_LETTERS + len(_HEADINGS)
    if not any(stage.gpu for stage in summary.stages):
        heading = (Block(0, 0, _DIM, "wall ms"), Block(column, 0, _DIM, _HEADINGS))
        return (*heading, Block(0, 1, _PLAIN, names), Block(column, 1, _CPU, cpu)), end
    gpu = "\n".join(_cells(stage.gpu) for stage in summary.stages)
    headings = (
        Block(column + 2, 0, _CPU, "CPU ms"),
        Block(end + 4, 0, _GPU, "GPU ms"),
        Block(column, 1, _DIM, f"{_HEADINGS}  {_HEADINGS}"),
    )
    blocks = (Block(0, 2, _PLAIN, names), Block(column, 2, _CPU, cpu), Block(end + 2, 2, _GPU, gpu))
    return (*headings, *blocks), end + 2 + len(_HEADINGS)


def _cells(spread: Spread | None) -> str:
    if spread is None:
        return "".join(_COLUMN.format("-") for _ in range(4))
    return "".join(map(_COLUMN.format, map(_ms, (spread.p50, spread.p95, spread.p99, spread.max))))


def _ms(value: float) -> str:
    """As many digits as fit and mean something."""
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _moment(summary: Summary) -> Iterable[str]:
    yield f"up {_bytes(summary.uploaded_bytes)}/frame"
    yield f"read back {_bytes(summary.readback_bytes)}/frame"
    yield f"CPU {summary.process_percent:.0f}%"
    if summary.overlay_ms is not None:
        yield f"overlay {_ms(summary.overlay_ms)} ms"


def _still(facts: Facts) -> Iterable[str]:
    yield f"{_plain(facts.model)} {facts.precision}"
    yield f"{facts.backend}, {facts.dispatches} dispatches"
    yield _plain(facts.renderer)
    if facts.note:
        yield _plain(facts.note)


def _bytes(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.2f} MB"


def _wrapped(phrases: Iterable[str], wide: int) -> list[str]:
    """Phrases on as few lines as they fit on; one longer than a line gets lines of its own, broken between words."""
    lines = [""]
    for phrase in phrases:
        is_long = len(phrase) > wide
        if is_long and lines[-1]:
            lines.append("")
        apart = "   " if lines[-1] else ""
        for word in phrase.split(" ") if is_long else [phrase]:
            if len(lines[-1]) + len(apart) + len(word) <= wide:
                lines[-1] += apart + word
            else:
                lines.append(word[:wide])
            apart = " "
    return lines


def _plain(text: str) -> str:
    """Text as it is, on one line, not without end, without what no font shows."""
    return one_line(text)[: 2 * _NOTE_LETTERS]


def label_top(level: float, bottom: float, high: float) -> float:
    """Where a label of a line in a graph begins: below the line, or above it where the graph has no room below."""
    return level + 2 if level + 2 + high <= bottom else level - 1 - high


def scale_top_ms(intervals_ms: Sequence[float], budget_ms: float) -> float:
    """The time at the graph's upper edge: twice the budget, or more, in steps, if most frames take longer."""
    typical = sorted(intervals_ms)[len(intervals_ms) * 9 // 10] if intervals_ms else 0.0
    return next(top for top in accumulate([max(2 * budget_ms, 4.0)] + [2] * 40, float.__mul__) if top >= typical)


class _Canvas:
    """Dear ImGui's list of what to draw behind all windows; x and y are pixels from the upper left corner."""

    def __init__(self) -> None:
        self._imgui: Any = load_imgui()
        self._list = self._imgui.get_background_draw_list()
        self.em = self._imgui.get_font_size()
        self.letter = self._imgui.calc_text_size("m").x
        size = self._imgui.get_io().display_size
        self.width, self.height = size.x, size.y

    def box(self, left: float, top: float, wide: float, high: float, padding: float = _PADDING) -> tuple[float, float]:
        """A dark box around content of wide x high em; pixels of where that content begins."""
        x, y, em = round(left * self.em), round(top * self.em), self.em
        right, bottom = x + (wide + 2 * _PADDING) * em, y + (high + 2 * padding) * em
        self._rectangle(x, y, right, bottom, _BACK, 0.45 * em)
        return round(x + _PADDING * em), round(y + padding * em)

    def centred(self, columns: int, lines: int) -> tuple[float, float]:
        """A dark box in the middle."""
        wide = columns * self.letter / self.em
        left = (self.width / self.em - wide) / 2 - _PADDING
        return self.box(max(0.0, left), max(0.0, (self.height / self.em - lines) / 2 - _PADDING), wide, lines)

    def text(self, x: float, y: float, color: int, text: str) -> None:
        self._list.add_text(self._imgui.ImVec2(x, y), color, text)

    def bar(self, x: float, y: float, wide: float, high: float, share: float) -> None:
        """A horizontal bar, filled from the left."""
        self._rectangle(x, y, x + wide, y + high, _RULE, high / 2)
        if share:
            self._rectangle(x, y, x + max(high, wide * share), y + high, _CPU, high / 2)

    def graph(
        self, x: float, y: float, wide: float, high: float, times_ms: Sequence[float], places: int, budget_ms: float
    ) -> None:
        """Times as bars from the left to the right, the last at the right edge; the budget as a labelled line."""
        top_ms = scale_top_ms(times_ms, budget_ms)
        self._rectangle(x, y, x + wide, y + high, 0x18FFFFFF, 0.2 * self.em)
        step = wide / max(1, places)
        left, gap = x + wide - step * len(times_ms), 1 if step >= 3 else 0
        for place, time_ms in enumerate(times_ms):
            start = left + step * place
            top = y + high * (1 - min(1.0, time_ms / top_ms))
            late = 0 < _LATE_SHARE * budget_ms < time_ms
            self._rectangle(start, top, start + step - gap, y + high, _LATE if late else _CPU, 0)
        if budget_ms:
            level = round(y + high * (1 - budget_ms / top_ms))
            self._rectangle(x, level, x + wide, level + 1, _BRIGHT, 0)
            label, top = f"{budget_ms:.1f} ms budget", label_top(level, y + high, self.em)
            self._rectangle(x, top, x + (len(label) + 1) * self.letter, top + self.em, _BACK, 0)
            self.text(x + self.letter / 2, top, _BRIGHT, label)

    def _rectangle(self, left: float, top: float, right: float, bottom: float, color: int, rounding: float) -> None:
        vector = self._imgui.ImVec2
        self._list.add_rect_filled(vector(left, top), vector(right, bottom), color, rounding)
