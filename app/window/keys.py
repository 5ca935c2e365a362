"""The table of keys: which command each key means. The list of keys on the screen is made from it.

Keys are identified by the character that they type, so that `[` works on every keyboard layout. Where that fails, as
on a Cyrillic keyboard, or for digits that need Shift, the position of the key on an American keyboard counts.
"""

import string
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Command = Literal[
    "pause", "step", "jump", "seek", "speed", "go", "mark", "loop",
    "effect", "overlay", "screenshot", "fullscreen", "help", "leave", "quit",
    "record", "toggle", "model", "zoom", "pan", "frame", "background",
]  # fmt: skip


@dataclass(frozen=True)
class Key:
    """One press: the character that it types ('' for none), the key's name on an American keyboard ('left', 'q')."""

    text: str
    place: str
    shift: bool = False
    repeated: bool = False  # held down

    @property
    def names(self) -> tuple[str, ...]:
        """What it may stand for in the table, the best first."""
        if len(self.text) != 1 or self.text == " ":
            return (f"shift+{self.place}",) if self.shift and self.place not in _SAME_WITH_SHIFT else (self.place,)
        typed = self.text.lower()
        elsewhere = not typed.isascii() or self.place in tuple(string.digits)
        return (typed, self.place) if elsewhere else (typed,)


_SAME_WITH_SHIFT = ("space", "escape", "backspace")


@dataclass(frozen=True)
class Action:
    """What to do; `value` says how far or which one, `name` which setting."""

    command: Command
    value: int = 0
    name: str = ""


@dataclass(frozen=True)
class Binding:
    """A row of the table: how its keys are shown, what each of them does, and what that is good for."""

    shown: str
    actions: Mapping[str, Action]
    help: str
    repeats: bool = False  # whether a key that is held down does it again and again


Table = tuple[Binding, ...]

_COMMON: Table = (
    Binding("e", {"e": Action("effect")}, "the next effect"),
    Binding("1-9", {digit: Action("effect", int(digit)) for digit in "123456789"}, "an effect by its number"),
    Binding("s", {"s": Action("screenshot")}, "a screenshot (PNG) into the current folder"),
    Binding("o", {"o": Action("overlay")}, "figures on the picture: a few, all, none"),
    Binding("f", {"f": Action("fullscreen")}, "full screen and back"),
    Binding("? h", {"?": Action("help"), "h": Action("help")}, "this list"),
    Binding("Escape", {"escape": Action("leave")}, "leave full screen; else quit"),
    Binding("q", {"q": Action("quit")}, "quit"),
)

_PICTURE: Table = (
    Binding("p", {"p": Action("toggle", name="panel")}, "all settings"),
    Binding("m", {"m": Action("toggle", name="mirror")}, "flip horizontally, or not"),
    Binding("v", {"v": Action("toggle", name="side_by_side")}, "the picture as it came beside the result"),
    Binding("g", {"g": Action("toggle", name="edges")}, "edges guided by the picture, on and off"),
    Binding("d", {"d": Action("toggle", name="delay_video")}, "look one frame ahead, or not"),
    Binding("t", {"t": Action("frame")}, "follow a person, all of them, nobody"),
    Binding("+ = -", {"+": Action("zoom", 1), "=": Action("zoom", 1), "-": Action("zoom", -1)}, "zoom in, out", True),
    Binding("0", {"0": Action("zoom")}, "zoom 1, the middle"),
)


def _panning(left: str, right: str) -> Binding:
    """The keys that move what is zoomed; those of both sides differ, since arrows mean something else in recordings."""
    keys = {left: ("x", -1), right: ("x", 1), "up": ("y", -1), "down": ("y", 1)}
    actions = {key: Action("pan", step, axis) for key, (axis, step) in keys.items()}
    return Binding(
        " ".join(key.capitalize() if len(key) > 1 else key for key in keys), actions, "move what is zoomed", True
    )


REPLAY: Table = (
    Binding("Space", {"space": Action("pause")}, "pause and play; at the end, play again from the start"),
    Binding(", .", {",": Action("step", -1), ".": Action("step", 1)}, "a frame back, forward", True),
    Binding(
        "Left Right",
        {"left": Action("jump", -5), "right": Action("jump", 5)},
        "5 s back, forward, to the nearest key frame before that",
        True,
    ),
    Binding(
        "Shift+Left Shift+Right",
        {"shift+left": Action("seek", -1), "shift+right": Action("seek", 1)},
        "1 s back, forward, exactly",
        True,
    ),
    Binding("Home End", {"home": Action("go", 0), "end": Action("go", -1)}, "to the first frame, to the last"),
    Binding("[ ]", {"[": Action("speed", -1), "]": Action("speed", 1)}, "playback speed down, up: 0.25 to 4"),
    Binding("Backspace", {"backspace": Action("speed", 0)}, "playback speed 1"),
    Binding("a b", {"a": Action("mark", 0), "b": Action("mark", 1)}, "repeat from here, to here; again: no more"),
    Binding("l", {"l": Action("loop")}, "repeat the whole file, or no more"),
    *_PICTURE,
    _panning("j", "k"),
    *_COMMON,
)

LIVE: Table = (
    Binding("r", {"r": Action("record")}, "record the picture into the current folder, or end that"),
    Binding("c", {"c": Action("toggle", name="virtual_camera")}, "the virtual camera, on and off"),
    *_PICTURE,
    _panning("left", "right"),
    Binding("x", {"x": Action("toggle", name="freeze")}, "hold the picture, or go on"),
    Binding("u", {"u": Action("toggle", name="mute")}, "record silence, or sound again"),
    Binding("b", {"b": Action("background")}, "the next of the built-in backgrounds"),
    Binding("n", {"n": Action("model")}, "the small model, or the usual one again"),
    Binding("a", {"a": Action("toggle", name="auto")}, "work less to hold the frame rate, on and off"),
    *_COMMON,
)


_MOUSE = (  # what it does is in app/session/picture_mouse.py
    ("Wheel Drag", "zoom around the mouse; move what is zoomed"),
    ("Click", "numbers of hidden faces; open one, or close it"),
)
TABLES: Mapping[str, Table] = MappingProxyType({"replay": REPLAY, "live": LIVE})  # by verb


def action_of(key: Key, bindings: Table = REPLAY) -> Action | None:
    """What a press asks for; None for keys that mean nothing, and for held ones where holding means nothing."""
    for name in key.names:
        for binding in bindings:
            if name in binding.actions:
                return None if key.repeated and not binding.repeats else binding.actions[name]
    return None


def help_rows(bindings: Table = REPLAY) -> tuple[tuple[str, str], ...]:
    """(keys, what they do) of each row, for the list on the screen; then what the mouse does."""
    return (*((binding.shown, binding.help) for binding in bindings), *_MOUSE)
