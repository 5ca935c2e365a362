"""Draws a section of the settings panel: a row for each setting, by which the user changes it.

Called within Gui.draw. Nothing is kept here: a field of text has Dear ImGui's memory until Enter is pressed.
"""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

from ..settings.settings import MOST_CAMERAS, Settings, SettingValue, Spec, meaning, value_of

_LABELS = 0.4  # of the width
_TOOLTIP_LETTERS = 80  # in a line
_WIDE_RANGE = 100  # from the least to the most, from which a slider is logarithmic
_WRONG = 0xFF5C6BFF  # alpha, blue, green, red
_FILL = -1e-6  # a width: all of the available one
_SIZES = ("320x240", "640x360", "640x480", "1280x720", "1920x1080", "3840x2160")


def setting_rows(imgui: Any, settings: Settings, rows: Sequence[Spec]) -> Settings:
    """The settings of one section, a row each: the name, what changes it, and the way back to its default."""
    columns = imgui.TableColumnFlags_
    if imgui.begin_table(rows[0].section, 3, imgui.TableFlags_.sizing_stretch_prop):
        imgui.table_setup_column("name", columns.width_stretch, _LABELS)
        imgui.table_setup_column("value", columns.width_stretch, 1 - _LABELS)
        imgui.table_setup_column("default", columns.width_fixed, imgui.get_frame_height())
        for spec in rows:
            imgui.push_id(spec.name)
            settings = _row(imgui, settings, spec)
            imgui.pop_id()
        imgui.end_table()
    return settings


def _row(imgui: Any, settings: Settings, spec: Spec) -> Settings:
    """One setting; an invalid value is ignored."""
    before = getattr(settings, spec.name)
    imgui.begin_disabled(spec.changes.startswith("restart"))
    imgui.table_next_column()
    imgui.align_text_to_frame_padding()
    imgui.text(spec.label)
    _explain(imgui, spec)
    imgui.table_next_column()
    imgui.set_next_item_width(_FILL)
    value = _widget(imgui, spec, before)
    _explain(imgui, spec)
    imgui.table_next_column()
    if before != spec.default:
        value = spec.default if imgui.arrow_button("default", imgui.Dir.left) else value
        imgui.set_item_tooltip(f"Back to {spec.usual}.")
    imgui.end_disabled()
    valid: Any = value_of(spec, value)
    return settings if valid is None or valid == before else replace(settings, **{spec.name: valid})


def _widget(imgui: Any, spec: Spec, value: Any) -> SettingValue:
    """What changes a setting of that kind."""
    if spec.kind == "bool":
        return bool(imgui.checkbox("##value", value)[1])
    if spec.kind == "choice":
        return _chosen(imgui, spec.choices, value)
    if spec.kind in ("int", "float"):
        return _number(imgui, spec, value)
    if spec.kind == "texts":
        return _texts(imgui, spec, value)
    return _text(imgui, spec, value)


def _texts(imgui: Any, spec: Spec, value: str | tuple[str, ...]) -> SettingValue:
    """A field for each, and one more to add another; what is emptied is gone."""
    before = (value,) if isinstance(value, str) else value
    typed = []
    for place, text in enumerate((*before, "")[:MOST_CAMERAS]):
        imgui.push_id(place)
        imgui.set_next_item_width(_FILL)
        typed.append(_text(imgui, spec, text, "none" if text else "another"))
        imgui.pop_id()
    found = tuple(filter(None, typed))
    return found[0] if len(found) == 1 else found


def _number(imgui: Any, spec: Spec, value: Any) -> SettingValue:
    """A slider; or a field where each value costs a while. Dear ImGui rounds floats: only what was changed counts."""
    if spec.changes != "running":
        entered, found = imgui.input_float(
            "##value", value, format="%g", flags=imgui.InputTextFlags_.enter_returns_true
        )
        return round(float(found), 3) if entered else value
    flags = imgui.SliderFlags_.always_clamp
    if spec.kind == "int":
        return int(imgui.slider_int("##value", value, int(spec.low), int(spec.high), flags=flags)[1])
    words = spec.zero if spec.zero and not value else "%.2f" if spec.high <= 10 else "%.1f"
    flags |= imgui.SliderFlags_.logarithmic if spec.high >= _WIDE_RANGE * spec.low > 0 else 0
    moved, found = imgui.slider_float("##value", value, 0.0 if spec.zero else spec.low, spec.high, words, flags)
    if moved and spec.zero and found < spec.low:
        return 0.0 if found < value else spec.low
    return round(float(found), 3) if moved else value


def _text(imgui: Any, spec: Spec, value: str, hint: str = "") -> str:
    """A field whose text counts once Enter is pressed, and what is proposed; the hint stands in an empty one."""
    proposed = _SIZES if spec.kind == "size" else spec.choices
    room = imgui.calc_item_width()
    if proposed:
        imgui.set_next_item_width(room - imgui.get_frame_height())
    hint = hint or ("none" if spec.default else spec.usual)
    entered, typed = imgui.input_text_with_hint("##value", hint, value, imgui.InputTextFlags_.enter_returns_true)
    text = str(typed) if entered else value
    if value_of(spec, typed) is None:  # while it is being typed
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        imgui.get_window_draw_list().add_rect(low, high, _WRONG)
    if proposed:
        _explain(imgui, spec)
        imgui.same_line(0, 0)
        text = _chosen(imgui, proposed, text, imgui.ComboFlags_.no_preview)
    return text


def _chosen(imgui: Any, choices: tuple[str, ...], value: str, flags: int = 0) -> str:
    """One of several."""
    picked = value
    if imgui.begin_combo("##choice", value, flags):
        if imgui.is_key_pressed(imgui.Key.escape):
            imgui.close_current_popup()
        for choice in choices:
            if imgui.selectable(choice, choice == value)[0]:
                picked = choice
        imgui.end_combo()
    return picked


def _explain(imgui: Any, spec: Spec) -> None:
    """What the setting is for, where the mouse rests on it."""
    values = f": {meaning(spec)}" if meaning(spec) else ""
    takes = f"\n{spec.takes.capitalize()}." if spec.takes else ""
    if imgui.is_item_hovered(imgui.HoveredFlags_.for_tooltip | imgui.HoveredFlags_.allow_when_disabled):
        imgui.set_tooltip(f"{spec.help}\n{fill(spec.flag + values, _TOOLTIP_LETTERS, break_on_hyphens=False)}{takes}")
