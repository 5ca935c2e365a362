"""Keeps others from seeing the room behind a person unasked, by the effect and by who takes the pictures.

While pictures are recorded or sent, an effect that shows what is behind people has to be asked for twice, unless the
command line or the file of settings names it; with --private there is none.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..frame.looks.effects import Effect, nearest_effect, shows_room
from ..outputs.frame_outputs import OutputKind
from ..settings.settings import Settings

WITHIN_NS = 2_000_000_000  # the second press
# Where a mask of 0 stays 0, one of a step of 8 bits below a 16th, and its edge near the person: in pixels of the frame
_LEAST: Mapping[str, float] = MappingProxyType({"threshold": 0.5, "gamma": 0.5})
_MOST: Mapping[str, float] = MappingProxyType({"grow": 5.0, "feather": 20.0})
_WORDS: dict[OutputKind, str] = {"recording": "it is recorded", "virtual camera": "other programs see it"}


@dataclass(frozen=True)
class Shown:
    """A picture: its effect, who takes it, whether one of them keeps no transparency, whether the frame as it came is
    beside it in the window, and by which setting of the mask, if any, what is behind people is in the mask."""

    effect: Effect
    takers: frozenset[OutputKind]
    opaque: bool
    beside: bool
    opened: str = ""

    @property
    def shows_room(self) -> bool:
        """Whether what is behind people is in it, for those who take it."""
        return shows_room(self.effect, self.opaque)


def mask_bounds(settings: Settings) -> dict[str, float]:
    """The settings of the mask by which what is behind people would be in it, each with the value nearest to its own
    by which it is not."""
    least = {name: bound for name, bound in _LEAST.items() if getattr(settings, name) < bound}
    return least | {name: bound for name, bound in _MOST.items() if getattr(settings, name) > bound}


def opened_by(settings: Settings, as_flag: bool = False) -> str:
    """The first of these with its value and the bound: 'threshold 0 (0.5 at least)'; '' if there is none."""
    for name, bound in mask_bounds(settings).items():
        side = "least" if name in _LEAST else "most"
        return f"{'--' * as_flag}{name} {getattr(settings, name):g} ({bound:g} at {side})"
    return ""


def shown_to(
    effect: Effect,
    able: Sequence[Effect],
    outputs: Collection[OutputKind],
    keeps_alpha: bool,
    beside: bool,
    opened: str = "",
) -> Shown:
    """What is drawn for an effect that is wanted, where a network is able to have some; `outputs` are the active ones.

    keeps_alpha says whether the recording does; the virtual camera never does.
    """
    takers = frozenset(kind for kind in outputs if kind in _WORDS)
    opaque = "virtual camera" in takers or ("recording" in takers and not keeps_alpha)
    return Shown(nearest_effect(effect, able), takers, opaque, beside, opened)


def hiding(settings: Settings, shown: Shown, effect: Effect) -> Settings:
    """The settings that come nearest to those that show something, without the room; `effect` is for one that does."""
    chosen = effect if shown.shows_room else settings.effect
    return replace(settings, effect=chosen, side_by_side=False, **mask_bounds(settings))  # type: ignore[arg-type]


class RoomGuard:
    """Decides what may be shown. `named` is the effect that the command line and the file began with."""

    def __init__(self, is_private: bool, named: Effect) -> None:
        self.is_private = is_private
        self._named = {named}
        self._allowed: tuple[Effect, frozenset[OutputKind]] | None = None  # what was asked for twice
        self._asked: tuple[Effect, frozenset[OutputKind]] | None = None  # once
        self._until_ns = 0

    def name(self, shown: Shown) -> str:
        """The file of settings names what is shown; why it cannot be, '' if it can."""
        if self.is_private and not self.may_show(shown):
            return self._of_private(shown)
        self._named.add(shown.effect)
        return ""

    def allow(self, shown: Shown) -> None:
        """What a session begins with may be shown to those that it begins with: it was asked for before, or named."""
        self._allowed = shown.effect, shown.takers

    def may_show(self, shown: Shown) -> bool:
        """Whether nobody has to be asked."""
        if self.is_private:
            return not (shown.shows_room or shown.beside or shown.opened)
        if not shown.shows_room:
            return True
        if not shown.takers or shown.effect in self._named:
            return True
        return self._allowed is not None and self._allowed[0] == shown.effect and shown.takers <= self._allowed[1]

    def objection(self, shown: Shown, now_ns: int) -> str:
        """What is to be said instead of showing it; '' if it may be, because it was asked for the second time."""
        if self._allowed and self._allowed[0] != shown.effect:
            self._allowed = None
        if self.may_show(shown):
            self._asked = None
            return ""
        if self.is_private:
            return self._of_private(shown)
        wanted = shown.effect, shown.takers
        if self._asked == wanted and now_ns <= self._until_ns:
            self._allowed, self._asked = wanted, None
            return ""
        self._asked, self._until_ns = wanted, now_ns + WITHIN_NS
        who = " and ".join(_WORDS[kind] for kind in sorted(shown.takers))
        return f"effect {shown.effect} shows the room, and {who}: once more within 2 s to do it"

    @staticmethod
    def _of_private(shown: Shown) -> str:
        what = f"effect {shown.effect}" if shown.shows_room else "side by side" if shown.beside else shown.opened
        return f"{what} shows the room, and the session is private"

    def passed_over(self, now_ns: int) -> Effect | None:
        """The effect that was asked for once and not again in time: the next one is the one behind it."""
        return self._asked[0] if self._asked and now_ns > self._until_ns else None
