"""The table of keys: each key means one thing, is explained, and is found on keyboards of other layouts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.window.keys import LIVE, REPLAY, Action, Key, Table, action_of, help_rows

PLACES = ["", "q", "a", "1", "[", ".", "space", "left", "escape", "home"]


@pytest.mark.parametrize("bindings", [REPLAY, LIVE])
def test_no_key_means_two_things(bindings: Table) -> None:
    names = [name for binding in bindings for name in binding.actions]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("bindings", [REPLAY, LIVE])
def test_each_key_is_shown_and_explained(bindings: Table) -> None:
    for binding in bindings:
        shown = binding.shown.lower().split()
        assert binding.shown == "1-9" or sorted(binding.actions) == sorted(shown)
        assert binding.help
        assert binding.help.isprintable()
    assert [keys for keys, _ in help_rows(bindings)] == [
        *(binding.shown for binding in bindings),
        "Wheel Drag",
        "Click",
    ]


@pytest.mark.parametrize(
    ("key", "action"),
    [
        (Key("q", "q"), Action("quit")),
        (Key("Q", "q", shift=True), Action("quit")),  # Caps Lock, or Shift
        (Key("", "space"), Action("pause")),
        (Key("", "space", shift=True), Action("pause")),
        (Key("", "left"), Action("jump", -5)),
        (Key("", "left", shift=True), Action("seek", -1)),
        (Key("", "home", shift=True), None),
        (Key("?", "/", shift=True), Action("help")),
        (Key("?", "-", shift=True), Action("help")),  # German
        (Key("[", "8"), Action("speed", -1)),  # German: AltGr and 8
        (Key("ü", "["), Action("speed", -1)),  # German: where others have it
        (Key("a", "q"), Action("mark", 0)),  # French
        (Key("&", "1"), Action("effect", 1)),  # French: digits want Shift
        (Key("1", "1", shift=True), Action("effect", 1)),
        (Key("1", ""), Action("effect", 1)),  # the keypad
        (Key("й", "q"), Action("quit")),  # Russian
        (Key("'", "q"), None),  # Dvorak
        (Key("0", "0"), Action("zoom")),
        (Key("+", "=", shift=True), Action("zoom", 1)),  # American
        (Key("+", "]"), Action("zoom", 1)),  # German
        (Key("", "up"), Action("pan", -1, "y")),
        (Key("z", "z"), None),
        (Key("", ""), None),
    ],
)
def test_what_a_key_means_on_several_keyboards(key: Key, action: Action | None) -> None:
    assert action_of(key) == action


def test_holding_a_key_repeats_what_goes_step_by_step_and_toggles_nothing() -> None:
    assert action_of(Key(".", ".", repeated=True)) == Action("step", 1)
    assert action_of(Key("", "right", repeated=True)) == Action("jump", 5)
    for text in "fsoelabq1":
        assert action_of(Key(text, text, repeated=True)) is None
    assert action_of(Key("", "space", repeated=True)) is None


@given(st.text(max_size=2), st.sampled_from(PLACES), st.booleans(), st.booleans())
def test_any_key_is_an_action_or_nothing(text: str, place: str, shift: bool, repeated: bool) -> None:
    assert isinstance(action_of(Key(text, place, shift, repeated)), (Action, type(None)))
