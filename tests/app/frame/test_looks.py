"""The options that say what pictures look like and where they go mean what they should, or are refused in one line."""

from pathlib import Path

import pytest

from texelflow.app.frame.effects import EFFECTS, Effect, effect_by_number
from texelflow.app.frame.looks import Choice, LookOptions, choose_look, look_of
from texelflow.app.frame.render import Look
from texelflow.app.outputs.png_files import wants_folder
from texelflow.gpu_delegate.errors import MediaError, UsageError


def test_a_folder_is_meant_where_there_is_no_suffix(tmp_path: Path) -> None:
    (tmp_path / "shots.d").mkdir()
    assert wants_folder(tmp_path / "shots.d", "cutout")
    assert wants_folder(tmp_path / "new", "tint")
    assert not wants_folder(tmp_path / "new.mp4", "tint")
    with pytest.raises(UsageError, match=r"no transparency; give a folder .* --out .*/new$"):
        wants_folder(tmp_path / "new.mp4", "cutout")


@pytest.mark.parametrize(
    ("effect", "background", "blur", "look"),
    [
        (None, None, None, Look("tint")),
        (None, None, 12.5, Look("blur", radius=12.5)),
        ("blur", None, None, Look("blur")),
        ("cutout", None, None, Look("cutout")),
        (None, "#3366ff", None, Look("color", (0.2, 0.4, 1.0))),
        ("replace", "#3366ff", None, Look("color", (0.2, 0.4, 1.0))),
        ("replace", None, None, Look("replace")),
    ],
)
def test_options_choose_a_look(effect: str | None, background: str | None, blur: float | None, look: Look) -> None:
    assert choose_look(LookOptions(effect, background, blur)).look == look


@pytest.mark.parametrize(
    ("effect", "background", "blur", "complaint"),
    [
        ("glow", None, None, "--effect glow: one of tint, replace, color, blur, cutout, mask"),
        ("tint", None, 8, "--blur goes with --effect blur, not with tint"),
        (None, "#3366ff", 8, "--blur goes with --effect blur, not with color"),
        ("blur", "#3366ff", None, "--background goes with --effect replace or color, not with blur"),
        ("blur", None, 3.9, "a radius from 4 to 500 pixels"),
        ("blur", None, 501, "a radius from 4 to 500 pixels"),
        ("blur", None, float("nan"), "a radius from 4 to 500 pixels"),
        ("color", "beach.jpg", None, "takes a colour such as"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(
    effect: str | None, background: str | None, blur: float | None, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        choose_look(LookOptions(effect, background, blur))


def test_effects_follow_each_other_round_and_round() -> None:
    seen: list[Effect] = ["mask"]
    for _ in EFFECTS:
        seen += [effect] if (effect := effect_by_number(0, seen[-1])) else []
    assert seen[1:] == ["none", "checker", *EFFECTS[:6]]


def test_effects_have_numbers() -> None:
    assert tuple(effect_by_number(place + 1, "mask") for place in range(len(EFFECTS))) == EFFECTS
    assert effect_by_number(len(EFFECTS) + 1, "mask") is None


def test_the_keys_of_the_first_effects_stay() -> None:
    assert EFFECTS[:6] == ("tint", "replace", "color", "blur", "cutout", "mask")


def test_a_look_has_all_that_was_said() -> None:
    options = LookOptions("replace", None, None, 0.3, 0.4, 0.5, 0.6, True, True)
    assert choose_look(options) == Choice(Look("replace", Look.color, None, 0.3, 0.4, 0.5, 0.6, True, True))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (LookOptions(light_wrap=1.01), "--light-wrap 1.01: a number from 0 to 1"),
        (LookOptions(threshold=-0.1), "--threshold -0.1: a number from 0 to 1"),
        (LookOptions(softness=float("nan")), "--softness nan: a number from 0 to 1"),
        (LookOptions(gamma=0), "--gamma 0: a number from 0.1 to 10"),
        (LookOptions("glow", "#3366ff", 8), "--effect glow: one of"),
    ],
)
def test_what_is_out_of_range_is_refused(options: LookOptions, complaint: str) -> None:
    for choose in (choose_look, look_of):
        with pytest.raises(UsageError, match=complaint):
            choose(options)


def test_settings_keep_what_another_effect_uses() -> None:
    colour = (0.2, 0.4, 1.0)
    assert look_of(LookOptions("blur", "#3366ff", 8)) == Choice(Look("blur", colour, 8))
    assert look_of(LookOptions("replace", "#3366ff", 8)) == Choice(Look("color", colour, 8))
    assert look_of(LookOptions("blur", "missing.mp4")) == Choice(Look("blur"), Path("missing.mp4"))
    with pytest.raises(MediaError, match=r"missing\.mp4"):
        choose_look(LookOptions(None, "missing.mp4"))
