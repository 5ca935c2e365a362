"""The options that say what pictures look like and where they go mean what they should, or are refused in one line."""

from pathlib import Path

import pytest

from app.frame.looks import choose_look, next_effect
from app.frame.outputs import wants_folder
from app.frame.render import EFFECTS, Look
from gpu_delegate.errors import UsageError


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
    assert choose_look(effect, background, blur).look == look


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
        choose_look(effect, background, blur)


def test_effects_follow_each_other_round_and_round() -> None:
    look, seen = Look("mask", radius=9), []
    for _ in EFFECTS:
        look = next_effect(look)
        seen.append(look.effect)
    assert tuple(seen) == EFFECTS
    assert next_effect(look, -1) == Look("cutout", radius=9)
