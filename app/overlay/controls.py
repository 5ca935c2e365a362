"""The panel in which the user changes settings.

Called within Gui.draw. What is used most is at the top and unfolded; the rest waits in sections below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..frame.looks.effects import EFFECTS, Effect
from ..settings.settings import Settings, Spec, Verb, specs
from .gallery import Gallery
from .gui import load_imgui
from .setting_rows import setting_rows

SETTINGS_TITLE = "Settings"  # of the panel, by which others find where it is
_WIDE, _GAP = 29.0, 0.6  # em: the panel's width, and its distance from the edges of the picture
_TITLES: Mapping[str, str] = MappingProxyType(  # of sections, in the panel's order; others come behind them
    {
        "picture": "Picture",
        "mask": "Mask",
        "framing": "Framing",
        "camera": "Camera",
        "output": "Recording",
        "work": "Performance",
        "model": "Model",
        "window": "Window",
    }
)
_UNFOLDED = ("picture",)
_ONLY_WITH: Mapping[str, Effect] = MappingProxyType({"strength": "picture", "legend": "classes"})  # settings, effects


def controls(
    settings: Settings,
    verb: Verb = "live",
    gallery: Gallery | None = None,
    frame_height: int = 480,
    effects: tuple[Effect, ...] = EFFECTS,
) -> Settings:
    """A verb's settings with what was changed in this picture of the panel, whose own cross is the setting panel.

    Frames have that height, in pixels; effects are those that the model is able to have.
    """
    imgui = load_imgui()
    em, screen = imgui.get_font_size(), imgui.get_io().display_size
    gap, wide = _GAP * em, min(_WIDE * em, screen.x)
    corner = imgui.ImVec2(max(0.0, screen.x - wide - gap), gap)
    size = imgui.ImVec2(wide, max(1.0, screen.y - 2 * gap))
    imgui.set_next_window_pos(corner, imgui.Cond_.appearing)
    imgui.set_next_window_size(size, imgui.Cond_.appearing)
    imgui.set_next_window_bg_alpha(0.85)
    unfolded, is_open = imgui.begin(SETTINGS_TITLE, True, imgui.WindowFlags_.no_saved_settings)
    if _is_resized(imgui, screen):
        imgui.set_window_pos(corner)
        imgui.set_window_size(size)
    if unfolded:
        if gallery and imgui.collapsing_header("Background", imgui.TreeNodeFlags_.default_open):
            settings = gallery.draw(settings, frame_height, effects)
        settings = _sections(imgui, settings, usable_specs(verb, effects))
    imgui.end()
    return settings if is_open else replace(settings, panel=False)


def usable_specs(verb: Verb, effects: tuple[Effect, ...]) -> list[Spec]:
    """What of a verb's settings can be changed in its window, with the effects that the model is able to have."""
    rows = [spec for spec in specs(verb) if verb == "live" or spec.section != "output"]
    rows = [spec for spec in rows if _ONLY_WITH.get(spec.name, effects[0]) in effects]
    return [replace(spec, choices=effects) if spec.name == "effect" else spec for spec in rows]


def _sections(imgui: Any, settings: Settings, rows: Sequence[Spec]) -> Settings:
    """All rows, by section."""
    there = dict.fromkeys(spec.section for spec in rows)
    for section in dict.fromkeys([*(section for section in _TITLES if section in there), *there]):
        unfolds = imgui.TreeNodeFlags_.default_open if section in _UNFOLDED else 0
        if imgui.collapsing_header(_TITLES.get(section, section.capitalize()), unfolds):
            settings = setting_rows(imgui, settings, [spec for spec in rows if spec.section == section])
    return settings


def _is_resized(imgui: Any, screen: Any) -> bool:
    """Whether the picture has another size than when the panel was drawn last; noted in the panel's own memory."""
    storage, sides = imgui.get_state_storage(), {imgui.get_id("width"): screen.x, imgui.get_id("height"): screen.y}
    resized = any(storage.get_float(name) != side for name, side in sides.items())
    for name, side in sides.items():
        storage.set_float(name, side)
    return resized and not imgui.is_window_appearing()
