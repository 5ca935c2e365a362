"""What a picture looks like: an effect with its numbers, the file behind the person, and colors as they are written."""

from dataclasses import dataclass
from pathlib import Path

from ...tracking.auto_framing import FramingMode
from .color_names import CSS_COLORS
from .effects import COLOR, FOUND_EFFECTS, HIDING_FACES, Effect, LegendSide

Color = tuple[float, float, float]  # red, green, blue from 0 to 1

_HAS_LIGHT_WRAP: tuple[Effect, ...] = ("blur", "replace", "color")  # there is something else behind the person
_PARTS_PERSON: tuple[Effect, ...] = ("replace", "color", "blur", "cutout", "checker")  # from what was behind


@dataclass(frozen=True)
class Look:
    """What the picture looks like.

    The mask m is clamp(m - threshold + 0.5) ** gamma wherever it is used, grown and feathered by pixels of the frame
    (mask_edge.py). mirror mirrors the frame, not the background. side_by_side is for windows: the frame as it is, and
    beside it the result. strength is that of a network's picture over the frame (network_picture.py), legend the side
    on which the names of classes stand. clears: colors under transparency are no finer than what is seen of them.
    open_faces are numbers of those that are not hidden where others are; face_numbers shows all numbers.
    """

    effect: Effect = "tint"
    color: Color = (0.1, 0.75, 0.45)
    radius: float | None = None  # of blur, in pixels of the frame; None goes by its height
    light_wrap: float = 0.0  # from 0 to 1: strength of light of the new background on the person's edge
    threshold: float = 0.5
    gamma: float = 1.0
    grow: float = 0.0
    feather: float = 0.0
    mirror: bool = False
    side_by_side: bool = False
    strength: float = 1.0
    legend: LegendSide = "right"
    clears: bool = False
    open_faces: frozenset[int] = frozenset()
    face_numbers: bool = False

    @property
    def curves_mask(self) -> bool:
        """Whether values of the mask become others."""
        return (self.threshold, self.gamma) != (0.5, 1.0)

    @property
    def edges_mask(self) -> bool:
        """Whether the mask gets another edge."""
        return self.needs_mask and (self.grow != 0 or self.feather > 0)

    @property
    def wraps(self) -> bool:
        """Whether there is a light wrap: only from a new background."""
        return self.light_wrap > 0 and self.effect in _HAS_LIGHT_WRAP

    @property
    def parts_person(self) -> bool:
        """Whether something else is seen behind the person, so that pixels of the edge must not show the old one."""
        return self.effect in _PARTS_PERSON

    @property
    def hides_faces(self) -> bool:
        """Whether nothing that is made of the frame may show a face."""
        return self.effect in HIDING_FACES

    @property
    def needs_mask(self) -> bool:
        """Whether the network has to run that makes masks."""
        return self.effect not in ("none", *FOUND_EFFECTS)


LOOK_DEFAULTS = Look()


@dataclass(frozen=True)
class Framing:
    """Which part of the frame pictures show: the one that follows a person or all, and within it one by hand.

    That is `zoom` times smaller, from 1 to 4, and its middle at `center`, fractions from the left and from the top, as
    far as edges let it.
    """

    mode: FramingMode = "off"
    zoom: float = 1.0
    center: tuple[float, float] = (0.5, 0.5)

    @property
    def shows_all(self) -> bool:
        """Whether it is all of the frame, always."""
        return self.mode == "off" and self.zoom == 1


WHOLE = Framing()


@dataclass(frozen=True)
class ChosenLook:
    """A look, the file of its background if one was chosen, and which part of the frame is shown."""

    look: Look
    background: Path | None = None
    framing: Framing = WHOLE


def parse_color(text: str) -> Color | None:
    """The color that #rrggbb or a name of CSS means, each part from 0 to 1; None for everything else.

    A file that is called as a color is is meant by ./red.
    """
    found = COLOR.fullmatch(text)
    digits = found[1] if found else CSS_COLORS.get(text.lower())
    if digits is None:
        return None
    red, green, blue = bytes.fromhex(digits)
    return red / 255, green / 255, blue / 255
