"""Draws boxes, text, bars and graphs over the picture with Dear ImGui.

Sizes are in em, the height of a line of text. Each block of text is one string, since calls cost more than characters.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import Any

from .gui import SMALLEST_FONT_PX, letter_px, load_imgui

BACK, OPAQUE, RULE = 0xDC1A1512, 0xF41A1512, 0x30FFFFFF  # colors are alpha, blue, green, red
BRIGHT, PLAIN, DIM = 0xFFFFFFFF, 0xFFE2DBD5, 0xFFA69C92
CPU, GPU, LATE = 0xFFF2C879, 0xFF8FD98A, 0xFF5C6BFF
PADDING = 0.7  # em
LARGE = 1.6  # times usual text
LATE_SHARE = 1.1  # of the budget: what takes longer is late


def label_top(level: float, bottom: float, high: float) -> float:
    """Where a label of a line in a graph begins: below the line, or above it where the graph has no room below."""
    return level + 2 if level + 2 + high <= bottom else level - 1 - high


def scale_top_ms(intervals_ms: Sequence[float], budget_ms: float) -> float:
    """The time at the graph's upper edge: twice the budget, or more, in steps, if most frames take longer."""
    typical = sorted(intervals_ms)[len(intervals_ms) * 9 // 10] if intervals_ms else 0.0
    return next(top for top in accumulate([max(2 * budget_ms, 4.0)] + [2] * 40, float.__mul__) if top >= typical)


class Painter:
    """Dear ImGui's list of what to draw behind all its windows; x and y are pixels from the upper left corner."""

    def __init__(self, in_front: bool = False, scale: float = 1.0, alpha: float = 1.0, drawn_in: Any = None) -> None:
        """`in_front` of its windows instead, or into the list `drawn_in`; text is `scale` times as large as usual.

        alpha: from 0, not to be seen, to 1.
        """
        self._imgui: Any = load_imgui()
        imgui = self._imgui
        behind = imgui.get_foreground_draw_list if in_front else imgui.get_background_draw_list
        self._list, self._alpha = drawn_in or behind(), min(1.0, max(0.0, alpha))
        usual = imgui.get_font_size()
        self._is_usual = scale == 1
        self.em = usual if self._is_usual else max(SMALLEST_FONT_PX, round(usual * scale))
        self.letter = letter_px(self.em)
        self.large_letter = max(self.letter, self.em / 2) * LARGE  # versions round widths differently
        size = self._imgui.get_io().display_size
        self.width, self.height = size.x, size.y

    def box(
        self, left: float, top: float, wide: float, high: float, padding: float = PADDING, color: int = BACK
    ) -> tuple[float, float]:
        """A dark box around content of wide x high em; pixels of where that content begins."""
        x, y, em = round(left * self.em), round(top * self.em), self.em
        right, bottom = x + (wide + 2 * PADDING) * em, y + (high + 2 * padding) * em
        self.fill(x, y, right, bottom, color, 0.45 * em)
        return round(x + PADDING * em), round(y + padding * em)

    def centered(self, columns: int, lines: int) -> tuple[float, float]:
        """A dark box in the middle, through which hardly anything is seen."""
        wide = columns * self.letter / self.em
        left, top = (self.width / self.em - wide) / 2 - PADDING, (self.height / self.em - lines) / 2 - PADDING
        return self.box(max(0.0, left), max(0.0, top), wide, lines, color=OPAQUE)

    def text(self, x: float, y: float, color: int, text: str, scale: float = 1.0) -> None:
        """Lines of text, from their upper left corner; `scale` times as large as usual."""
        at = self._imgui.ImVec2(x, y)
        color = self._faded(color)
        if scale == 1 and self._is_usual:
            self._list.add_text(at, color, text)
        else:
            self._list.add_text(self._imgui.get_font(), self.em * scale, at, color, text)

    def dot(self, x: float, y: float, color: int) -> None:
        """A dot as wide as a letter, in a line of text that begins there."""
        top, wide = y + (self.em - self.letter) / 2, self.letter * 1.3
        self.fill(x, top, x + wide, top + wide, color, wide / 2)

    def bar(self, x: float, y: float, wide: float, high: float, share: float) -> None:
        """A horizontal bar, filled from the left."""
        self.fill(x, y, x + wide, y + high, RULE, high / 2)
        if share:
            self.fill(x, y, x + max(high, wide * share), y + high, CPU, high / 2)

    def graph(
        self, x: float, y: float, wide: float, high: float, times_ms: Sequence[float], places: int, budget_ms: float
    ) -> None:
        """Times as bars from the left to the right, the last at the right edge; the budget as a labeled line."""
        top_ms = scale_top_ms(times_ms, budget_ms)
        self.fill(x, y, x + wide, y + high, 0x18FFFFFF, 0.2 * self.em)
        step = wide / max(1, places)
        left, gap = x + wide - step * len(times_ms), 1 if step >= 3 else 0
        colors, late_ms = (self._faded(CPU), self._faded(LATE)), LATE_SHARE * budget_ms or inf
        bar, vector, bottom, wide_px = self._list.add_rect_filled, self._imgui.ImVec2, y + high, step - gap
        for place, time_ms in enumerate(times_ms):  # more than a hundred, in each picture
            start, top = left + step * place, bottom - high * min(1.0, time_ms / top_ms)
            bar(vector(start, top), vector(start + wide_px, bottom), colors[time_ms > late_ms])
        if budget_ms:
            level = round(y + high * (1 - budget_ms / top_ms))
            self.fill(x, level, x + wide, level + 1, BRIGHT, 0)
            label, top = f"{budget_ms:.1f} ms budget", label_top(level, y + high, self.em)
            self.fill(x, top, x + (len(label) + 1) * self.letter, top + self.em, BACK, 0)
            self.text(x + self.letter / 2, top, BRIGHT, label)

    def fill(self, left: float, top: float, right: float, bottom: float, color: int, rounding: float) -> None:
        """A rectangle, with round corners of that radius."""
        vector = self._imgui.ImVec2
        self._list.add_rect_filled(vector(left, top), vector(right, bottom), self._faded(color), rounding)

    def _faded(self, color: int) -> int:
        return round((color >> 24) * self._alpha) << 24 | color & 0xFFFFFF
