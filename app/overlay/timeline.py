"""Draws the timeline of a recording at the bottom of the picture, and says what the mouse does on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .draw import BACK, BRIGHT, CPU, DIM, PADDING, PLAIN, RULE, Painter
from .gui import load_imgui
from .overlay_placement import ScreenArea

TIMELINE_EM = 2.8  # how high it is, from the bottom of the picture, with the margin there
_MARGIN, _LEAST = 0.6, 12.0  # em: around it, and the width without which it is left out
_TRACK, _TRACK_TOP, _TEXT_TOP, _KNOB = 0.3, 0.45, 0.95, 0.75  # em


@dataclass(frozen=True)
class BarState:
    """What the bar shows; places are shares of the whole recording, from 0 to 1.

    place: where it is; None where the end of the recording is unknown: then there is no bar, only text. tip: what is
    said of a place that the mouse is over. `right` has the text at the right, in less and less words. begin and end are
    those of the range that is played, `marks` what else is to be seen.
    """

    place: float | None
    tip: Callable[[float], str]
    left: str
    right: tuple[str, ...]
    begin: float = 0.0
    end: float = 1.0
    marks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Pointing:
    """What the mouse does at the bar: whether it is over it, the place where it holds it, whether it lets go there."""

    over: bool = False
    held: float | None = None
    ends: bool = False


def timeline(shown: BarState, free: ScreenArea, alpha: float = 1.0) -> Pointing:
    """Draw the bar into the lowest lines of what is free of the picture; nothing if that is too narrow.

    It is behind other windows of Dear ImGui, which get the mouse where they are.
    """
    imgui = load_imgui()
    em = imgui.get_font_size()
    margin = _MARGIN * em
    area = ScreenArea(free.left + margin, free.bottom - TIMELINE_EM * em, free.right - margin, free.bottom - margin)
    if area.width < _LEAST * em or area.top < free.top:
        return Pointing()
    with _Strip(imgui, area):
        painter = Painter(alpha=alpha, drawn_in=imgui.get_window_draw_list())
        _draw(painter, shown, area)
        if shown.place is None:
            return Pointing()
        imgui.invisible_button("place", imgui.ImVec2(area.width, area.height))
        track = area.width - 2 * PADDING * em
        share = (imgui.get_io().mouse_pos.x - area.left - PADDING * em) / max(1.0, track)
        share = min(1.0, max(0.0, share))
        over, ends = imgui.is_item_hovered(), imgui.is_item_deactivated()
        held = imgui.is_item_active() or (ends and imgui.is_mouse_pos_valid())  # it may have been moved meanwhile
        if over or held:
            _draw_tip(shown.tip(share), area, area.left + PADDING * em + share * track)
        return Pointing(over, share if held else None, ends)


class _Strip:
    """A window of Dear ImGui without anything of its own; leave its with-block to end it."""

    def __init__(self, imgui: Any, area: ScreenArea) -> None:
        self._imgui, self._area = imgui, area

    def __enter__(self) -> None:
        imgui, area, flags = self._imgui, self._area, self._imgui.WindowFlags_
        imgui.push_style_var(imgui.StyleVar_.window_padding, imgui.ImVec2(0, 0))
        imgui.push_style_var(imgui.StyleVar_.window_min_size, imgui.ImVec2(1, 1))
        imgui.set_next_window_pos(imgui.ImVec2(area.left, area.top))
        imgui.set_next_window_size(imgui.ImVec2(area.width, area.height))
        own = flags.no_decoration | flags.no_background | flags.no_move | flags.no_saved_settings | flags.no_nav
        imgui.begin("timeline", None, own | flags.no_focus_on_appearing | flags.no_bring_to_front_on_focus)

    def __exit__(self, *_: object) -> None:
        self._imgui.end()
        self._imgui.pop_style_var(2)


def _draw(painter: Painter, shown: BarState, area: ScreenArea) -> None:
    em, letter = painter.em, painter.letter
    painter.fill(area.left, area.top, area.right, area.bottom, BACK, 0.45 * em)
    left, right = area.left + PADDING * em, area.right - PADDING * em
    if shown.place is not None:
        _draw_track(painter, shown, left, area.top + _TRACK_TOP * em, right - left)
    top = area.top + _TEXT_TOP * em
    letters = int((right - left) / letter)
    painter.text(left, top, BRIGHT, shown.left[:letters])
    room = letters - len(shown.left) - 2
    text = next((text for text in shown.right if len(text) <= room), "")
    painter.text(right - len(text) * letter, top, PLAIN, text)


def _draw_tip(text: str, area: ScreenArea, x: float) -> None:
    """A few words above the bar, where the mouse is."""
    painter = Painter(in_front=True)
    wide = len(text) * painter.letter + 2 * PADDING * painter.em
    left = max(area.left, min(x - wide / 2, area.right - wide)) / painter.em
    painter.text(*painter.box(left, area.top / painter.em - 2.2, wide / painter.em - 2 * PADDING, 1, 0.4), BRIGHT, text)


def _draw_track(painter: Painter, shown: BarState, left: float, top: float, wide: float) -> None:
    em, place = painter.em, shown.place or 0.0
    bottom = top + _TRACK * em

    def x(share: float) -> float:
        return left + min(1.0, max(0.0, share)) * wide

    painter.fill(left, top, left + wide, bottom, RULE, _TRACK * em / 2)
    if (shown.begin, shown.end) != (0.0, 1.0):
        painter.fill(x(shown.begin), top, x(shown.end), bottom, RULE, 0)
        for edge in (shown.begin, shown.end):
            painter.fill(x(edge) - 1, top - 0.15 * em, x(edge) + 1, bottom + 0.15 * em, DIM, 0)
    if place > shown.begin:
        painter.fill(x(shown.begin), top, x(place), bottom, CPU, _TRACK * em / 2)
    for mark in shown.marks:
        painter.fill(x(mark) - 1, top - 0.15 * em, x(mark) + 1, bottom + 0.15 * em, BRIGHT, 0)
    half, middle = _KNOB * em / 2, (top + bottom) / 2
    painter.fill(x(place) - half, middle - half, x(place) + half, middle + half, BRIGHT, half)
