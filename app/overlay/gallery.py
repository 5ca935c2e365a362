"""The gallery of backgrounds: a grid of tiles to choose what is put behind people.

Nothing, two blurs, a color with a picker, and pictures and videos: those of the package and those of a folder.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from texelflow.gpu_delegate.targets.gl.context import Context

from ..frame.looks.effects import DEFAULT_BACKGROUND, LEAST_RADIUS, Effect
from ..frame.looks.looks import Color, Look, parse_color
from ..frame.looks.thumbnails import THUMBNAIL_SIZE, VIDEO_ENDINGS, default_folder
from ..settings.settings import Settings, as_text, with_background
from .draw import BRIGHT, CPU, DIM
from .gui import load_imgui
from .thumbnail_textures import LIGHT_SAMPLE, STRONG_SAMPLE, ThumbnailTextures

_LEAST_WIDE = 5.8  # em: of a tile
_GAP, _ROUND, _LINE = 0.4, 0.3, 0.17  # em: between tiles; of their corners; around the chosen one
_LIGHT_RADIUS = 0.02  # of the frame's height
_PICKER = 14.0  # em: how wide
_EMPTY, _STRIP = 0xFF3A322C, 0xB0000000  # alpha, blue, green, red


@dataclass(frozen=True)
class Offer:
    """One thing to choose: how it looks, whether it is chosen now, and the settings that choose it."""

    key: str
    chosen: bool
    settings: Settings
    label: str = ""
    hint: str = ""
    texture: int = 0
    fill: int = _EMPTY
    mark: Literal["", "nothing", "video"] = ""


class Gallery:
    """The grid, for windows of one context. Call release() at the end."""

    def __init__(self, context: Context) -> None:
        """No file is looked for before it is drawn; `textures` has the thumbnails."""
        self._color: Color = Look.color
        self.renew(context)

    def renew(self, context: Context) -> None:
        """Have the textures in this context; what was in another one has been released."""
        self.textures = ThumbnailTextures(context)
        self._folder: Path | None = None

    def draw(self, settings: Settings, frame_height: int, effects: Sequence[Effect]) -> Settings:
        """Draw it within Gui.draw, as wide as there is room; frames have that height, in pixels.

        What takes another effect than these is left out.
        """
        imgui = load_imgui()
        folder = Path(settings.backgrounds) if settings.backgrounds else default_folder()
        self._follow(settings, folder, imgui.is_window_appearing())
        tiles = self._tiles(settings, frame_height)
        clicked = _grid(imgui, [tile for tile in tiles if tile.settings.effect in effects])
        imgui.push_style_color(imgui.Col_.text, DIM)
        lacks = " There is no such folder." if settings.backgrounds and not self.textures.has_folder else ""
        imgui.text_wrapped(f"Drop a picture or a video onto the window, or keep some in {_shortened(folder)}.{lacks}")
        imgui.pop_style_color()
        if clicked and clicked.key == "color":
            imgui.open_popup("picker")
        return _picked(imgui, clicked.settings if clicked else settings, self._color)

    def release(self) -> None:
        """Delete all textures."""
        self.textures.release()

    def _follow(self, settings: Settings, folder: Path, appears: bool) -> None:
        """Look into the folder when it is another, and whenever the panel is opened; add what was chosen elsewhere."""
        if appears or folder != self._folder:
            self._folder = folder
            self.textures.look(folder)
        if color := parse_color(settings.background):
            self._color = color
        elif settings.background:
            self.textures.add(settings.background, folder)
        self.textures.advance()

    def _tiles(self, settings: Settings, frame_height: int) -> Iterator[Offer]:
        effect, textures = settings.effect, self.textures
        light_px = max(LEAST_RADIUS, round(_LIGHT_RADIUS * frame_height, 1))
        yield Offer("none", effect == "none", replace(settings, effect="none"), "None", "As it came.", mark="nothing")
        for label, radius, sample in (("Light blur", light_px, LIGHT_SAMPLE), ("Strong blur", 0.0, STRONG_SAMPLE)):
            chosen, blurred = (effect, settings.blur) == ("blur", radius), replace(settings, effect="blur", blur=radius)
            hint = f"A radius of {radius:g} pixels." if radius else "A radius by the height of the picture."
            yield Offer(label, chosen, blurred, label, hint, textures.texture_of(sample))
        written, has_color = _written(self._color), parse_color(settings.background) is not None
        chosen = effect == "color" or (effect == "replace" and has_color)
        yield Offer("color", chosen, with_background(settings, written), "Color", written, fill=_packed(self._color))
        for shown in textures.shown:
            name = shown.candidate.name
            chosen = effect == "replace" and name == (settings.background or DEFAULT_BACKGROUND)
            replaced, hint = with_background(settings, name), as_text(Path(name).name)
            is_video = name.lower().endswith(VIDEO_ENDINGS)
            yield Offer(name, chosen, replaced, "", hint, shown.texture, mark="video" if is_video else "")


def _grid(imgui: Any, tiles: Sequence[Offer]) -> Offer | None:
    """Tiles in rows, as many in each as there is room for; the one that was clicked."""
    em, room, clicked = imgui.get_font_size(), imgui.get_content_region_avail().x, None
    gap = _GAP * em
    columns = max(1, int((room + gap) / (_LEAST_WIDE * em + gap)))
    wide = max(1.0, (room - gap * (columns - 1)) / columns)
    size = imgui.ImVec2(wide, max(1.0, wide * THUMBNAIL_SIZE[1] / THUMBNAIL_SIZE[0]))
    imgui.push_style_var(imgui.StyleVar_.item_spacing, imgui.ImVec2(gap, gap))
    for place, tile in enumerate(tiles):
        if place % columns:
            imgui.same_line()
        if imgui.invisible_button(str(place), size):  # not by a name: some characters mean something there
            clicked = tile
        _draw(imgui, tile, em)
        imgui.set_item_tooltip(tile.hint)
    imgui.pop_style_var()
    return clicked


def _draw(imgui: Any, tile: Offer, em: float) -> None:
    """What the button that came last looks like."""
    low, high, draw = imgui.get_item_rect_min(), imgui.get_item_rect_max(), imgui.get_window_draw_list()
    vector, rounding = imgui.ImVec2, _ROUND * em
    if tile.texture:
        reference = getattr(imgui, "ImTextureRef", int)(tile.texture)  # older bindings take the number itself
        draw.add_image_rounded(reference, low, high, vector(0, 0), vector(1, 1), BRIGHT, rounding)
    else:
        draw.add_rect_filled(low, high, tile.fill, rounding)
    if tile.label:
        top, text = high.y - 1.3 * em, imgui.calc_text_size(tile.label)
        draw.add_rect_filled(vector(low.x, top), high, _STRIP, rounding)
        draw.add_text(vector((low.x + high.x - text.x) / 2, top + 0.15 * em), BRIGHT, tile.label)
    if tile.mark == "video":
        x, y, side = low.x + 0.4 * em, low.y + 0.4 * em, 0.8 * em
        draw.add_triangle_filled(vector(x, y), vector(x, y + side), vector(x + side, y + side / 2), BRIGHT)
    elif tile.mark == "nothing":
        x, y, radius = (low.x + high.x) / 2, (low.y + high.y - 1.3 * em) / 2, 0.8 * em
        draw.add_circle(vector(x, y), radius, DIM, thickness=_LINE * em)
        slash = 0.7 * radius
        draw.add_line(vector(x - slash, y + slash), vector(x + slash, y - slash), DIM, _LINE * em)
    if tile.chosen or imgui.is_item_hovered():
        line = _LINE * em if tile.chosen else 0.5 * _LINE * em
        draw.add_rect(low, high, CPU if tile.chosen else BRIGHT, rounding, thickness=max(1.0, line))


def _picked(imgui: Any, settings: Settings, color: Color) -> Settings:
    """Settings by the picker of colors, where it is open."""
    if not imgui.begin_popup("picker"):
        return settings
    if imgui.is_key_pressed(imgui.Key.escape):
        imgui.close_current_popup()
    imgui.set_next_item_width(_PICKER * imgui.get_font_size())
    flags = imgui.ColorEditFlags_.no_side_preview | imgui.ColorEditFlags_.display_hex
    moved, found = imgui.color_picker3("##color", [*color], flags)
    imgui.end_popup()
    return with_background(settings, _written(found)) if moved else settings


def _written(color: Sequence[float]) -> str:
    """A color, each part from 0 to 1, as the setting has it."""
    return "#" + "".join(f"{round(255 * min(1.0, max(0.0, part))):02x}" for part in color)


def _packed(color: Color) -> int:
    red, green, blue = (round(255 * part) for part in color)
    return 0xFF000000 | blue << 16 | green << 8 | red


def _shortened(folder: Path) -> str:
    """A folder in a line of text, the user's own as ~."""
    with contextlib.suppress(ValueError, RuntimeError):
        folder = Path("~", folder.relative_to(Path.home()))
    return as_text(str(folder))
