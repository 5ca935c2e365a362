"""The guard that keeps others from seeing the room: its decisions alone, without a session."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.frame.looks.effects import EFFECTS, Effect, mask_effects, picture_effects, shows_room
from texelflow.app.outputs.frame_outputs import OutputKind
from texelflow.app.session.room_guard import WITHIN_NS, RoomGuard, Shown, hiding, mask_bounds, opened_by, shown_to
from texelflow.app.settings.settings import Settings

MASKS = mask_effects(has_classes=True)
HIDING = ("replace", "color", "blur", "mask", "checker")
KINDS: tuple[OutputKind, ...] = ("recording", "masks", "cutouts", "virtual camera")


def shown(effect: Effect, *outputs: OutputKind, alpha: bool = False, beside: bool = False) -> Shown:
    return shown_to(effect, MASKS, outputs, alpha, beside)


def test_every_effect_is_judged() -> None:
    assert {effect for effect in EFFECTS if not shows_room(effect)} == {*HIDING, "cutout"}
    assert shows_room("cutout", opaque=True)


def test_a_second_press_in_time_shows_it() -> None:
    guard = RoomGuard(False, "blur")
    assert guard.objection(shown("none"), 0) == "", "nobody takes it"
    line = guard.objection(shown("none", "recording"), 0)
    assert line == "effect none shows the room, and it is recorded: once more within 2 s to do it"
    assert guard.objection(shown("none", "recording"), WITHIN_NS) == ""
    assert guard.may_show(shown("none", "recording"))
    assert guard.objection(shown("none", "recording", "virtual camera"), WITHIN_NS), "another one takes it"
    assert guard.objection(shown("blur", "recording"), WITHIN_NS) == ""
    assert guard.objection(shown("none", "recording"), WITHIN_NS), "that was for as long as it was shown"


def test_too_late_is_a_first_press() -> None:
    guard = RoomGuard(False, "blur")
    assert guard.objection(shown("none", "virtual camera"), 0)
    assert guard.passed_over(WITHIN_NS) is None
    assert guard.passed_over(WITHIN_NS + 1) == "none"
    assert guard.objection(shown("none", "virtual camera"), WITHIN_NS + 1)


def test_another_effect_in_between_is_a_first_press() -> None:
    guard = RoomGuard(False, "blur")
    assert guard.objection(shown("none", "recording"), 0)
    assert guard.objection(shown("checker", "recording"), 0) == ""
    assert guard.objection(shown("none", "recording"), 1)
    assert guard.objection(shown("tint", "recording"), 2)
    assert guard.objection(shown("none", "recording"), 3)


def test_what_is_named_needs_no_second_press() -> None:
    guard = RoomGuard(False, "none")
    assert guard.objection(shown("none", "recording"), 0) == ""
    assert guard.objection(shown("tint", "recording"), 0)
    assert guard.name(shown("tint", "recording")) == ""
    assert guard.objection(shown("tint", "recording"), 0) == ""


def test_what_a_session_begins_with_goes_on_and_no_more() -> None:
    guard = RoomGuard(False, "blur")  # begun anew, for another camera, while something else was shown
    guard.allow(shown("none", "recording"))
    assert guard.objection(shown("none", "recording"), 0) == ""
    assert guard.objection(shown("none", "recording", "virtual camera"), 0)
    guard.allow(shown("none"))
    assert guard.objection(shown("none"), 0) == ""
    assert guard.objection(shown("none", "recording"), 0)
    private = RoomGuard(True, "blur")
    private.allow(shown("none", "recording"))
    assert private.objection(shown("none", "recording"), 0)


def test_transparency_hides_where_it_is_kept() -> None:
    guard = RoomGuard(False, "blur")
    assert guard.objection(shown("cutout", "recording", alpha=True), 0) == ""
    assert guard.objection(shown("cutout", "recording"), 0)
    assert guard.objection(shown("cutout", "recording", "virtual camera", alpha=True), 0)


def test_an_effect_that_a_network_has_not_counts_as_what_is_drawn() -> None:
    alone = picture_effects(has_alpha=False)
    recorded: tuple[OutputKind, ...] = ("recording",)
    assert shown_to("blur", alone, recorded, False, False).shows_room
    assert not shown_to("blur", MASKS, recorded, False, False).shows_room


@given(st.sampled_from(MASKS), st.sets(st.sampled_from(KINDS)), st.booleans(), st.booleans(), st.integers(0, 9))
def test_a_private_session_never_shows_the_room(
    effect: Effect, outputs: set[OutputKind], alpha: bool, beside: bool, times: int
) -> None:
    guard, wanted = RoomGuard(True, effect), shown(effect, *outputs, alpha=alpha, beside=beside)
    lines = [guard.objection(wanted, now) for now in range(times)] + [guard.name(wanted)]
    assert all(bool(line) == (wanted.shows_room or beside) for line in lines)
    assert effect not in HIDING or not wanted.shows_room


def test_settings_of_the_mask_by_which_the_room_is_seen() -> None:
    for at_bound in (Settings(), Settings(threshold=1, gamma=10, grow=-20), Settings(gamma=0.5, grow=5, feather=20)):
        assert not opened_by(at_bound)
    for wide, words in (
        (Settings(threshold=0.49), "threshold 0.49 (0.5 at least)"),
        (Settings(gamma=0.1), "gamma 0.1 (0.5 at least)"),
        (Settings(grow=5.5), "grow 5.5 (5 at most)"),
        (Settings(feather=50), "feather 50 (20 at most)"),
    ):
        assert opened_by(wide) == words
        wanted = shown_to("blur", MASKS, (), False, False, words)
        assert RoomGuard(True, "blur").objection(wanted, 0) == f"{words} shows the room, and the session is private"
        assert RoomGuard(False, "blur").objection(wanted, 0) == ""
    assert opened_by(Settings(gamma=0.1), as_flag=True).startswith("--gamma 0.1")


@given(st.floats(0, 1), st.floats(0.1, 10), st.floats(-20, 20), st.floats(0, 50), st.sampled_from(MASKS), st.booleans())
def test_what_hides_comes_nearest(
    threshold: float, gamma: float, grow: float, feather: float, effect: Effect, beside: bool
) -> None:
    wide = Settings(threshold=threshold, gamma=gamma, grow=grow, feather=feather, effect=effect, side_by_side=beside)
    hidden = hiding(wide, shown(effect, "recording", beside=beside), "blur")
    again = shown(hidden.effect, "recording", beside=hidden.side_by_side)
    assert RoomGuard(True, "blur").may_show(replace(again, opened=opened_by(hidden)))
    assert not mask_bounds(hidden)
    assert max(0.0, 0.5 - hidden.threshold) ** hidden.gamma == 0, "what the network gives 0 stays background"
    assert hiding(hidden, again, "blur") == hidden
