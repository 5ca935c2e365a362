"""The settings that say what pictures look like and where they go mean what they should, or are refused in one line."""

from pathlib import Path

import pytest

from texelflow.app.frame.looks.effects import (
    EFFECTS,
    MASK_EFFECTS,
    Effect,
    effect_by_number,
    found_effects,
    mask_effects,
)
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.outputs.png_files import wants_folder
from texelflow.app.overlay.performance import FigureLook
from texelflow.app.replay.replay_options import ReplayOptions, check_options
from texelflow.app.session.abilities import lacks_effect
from texelflow.app.session.derived import chosen_look_of, figure_look_of, refinement_of
from texelflow.app.settings.config_watch import ConfigWatch
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.base.errors import MediaError, UsageError


def chosen(**flags: object) -> ChosenLook:
    """What replay draws by these flags; those that are None were not given."""
    given = {name: value for name, value in flags.items() if value is not None}
    options = ReplayOptions(Path("clip.mp4"), given)
    settings = options.watch().settings
    check_options(options, settings)
    return chosen_look_of(settings)


def test_a_folder_is_meant_where_there_is_no_suffix(tmp_path: Path) -> None:
    (tmp_path / "shots.d").mkdir()
    assert wants_folder(tmp_path / "shots.d")
    assert wants_folder(tmp_path / "new")
    assert not wants_folder(tmp_path / "new.mp4")
    assert not wants_folder(Path("-"))
    assert chosen(effect="cutout", out=str(tmp_path / "new.mov")).look.effect == "cutout"
    with pytest.raises(UsageError, match=r"--out .*/new\.mp4: a video in \.mp4 has no transparency; \.mov and \.webm"):
        chosen(effect="cutout", out=str(tmp_path / "new.mp4"))


@pytest.mark.parametrize(
    ("effect", "background", "blur", "look"),
    [
        (None, None, None, Look("tint")),
        (None, None, 12.5, Look("blur", radius=12.5)),
        ("blur", None, None, Look("blur")),
        ("cutout", None, None, Look("cutout")),
        (None, "#3366ff", None, Look("color", (0.2, 0.4, 1.0))),
        ("replace", "#3366ff", None, Look("color", (0.2, 0.4, 1.0))),
        (None, "Crimson", None, Look("color", (220 / 255, 20 / 255, 60 / 255))),
        ("replace", None, None, Look("replace")),
    ],
)
def test_flags_choose_a_look(effect: str | None, background: str | None, blur: float | None, look: Look) -> None:
    assert chosen(effect=effect, background=background, blur=blur).look == look


@pytest.mark.parametrize(
    ("effect", "background", "blur", "complaint"),
    [
        ("glow", None, None, "--effect glow: one of tint, replace, color, blur, cutout, mask"),
        ("tint", None, 8, "--blur goes with --effect blur, not with tint"),
        (None, "#3366ff", 8, "--blur goes with --effect blur, not with replace"),
        ("blur", "#3366ff", None, "--background goes with --effect replace or color, not with blur"),
        ("blur", None, 3.9, r"--blur 3\.9: a number from 4 to 500"),
        ("blur", None, 501, "--blur 501: a number from 4 to 500"),
        ("blur", None, float("nan"), "--blur nan: a number from 4 to 500"),
        ("color", "beach.jpg", None, "takes a color such as"),
    ],
)
def test_flags_that_mean_nothing_together_are_refused(
    effect: str | None, background: str | None, blur: float | None, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        chosen(effect=effect, background=background, blur=blur)


def test_live_takes_a_background_to_mean_that_it_is_shown() -> None:
    for flags, effect in (({}, "blur"), ({"background": "x.png"}, "replace"), ({"blur": 9.0}, "blur")):
        assert ConfigWatch(None, flags).settings.effect == effect
    assert ConfigWatch(None, {"background": "x.png", "effect": "tint"}).settings.effect == "tint"


def test_how_figures_look_means_that_they_are_shown() -> None:
    for flags, shown in (
        ({}, False), ({"overlay_style": "full"}, True), ({"overlay_scale": 2.0, "overlay": False}, False),
    ):  # fmt: skip
        assert ConfigWatch(None, flags).settings.overlay == shown
    settings = ConfigWatch(None, {"overlay_style": "full", "overlay_corner": "top-right"}).settings
    assert figure_look_of(settings) == FigureLook(True, "top-right", 1.0)


def test_effects_follow_each_other_round_and_round() -> None:
    seen: list[Effect] = ["mask"]
    for _ in MASK_EFFECTS:
        seen.append(effect_by_number(0, seen[-1], MASK_EFFECTS))
    assert seen[1:] == ["none", "checker", *MASK_EFFECTS[:6]]
    assert effect_by_number(0, "blur", ("picture", "none")) == "none", "one that it lacks is drawn as its first"


def test_what_a_network_lacks_is_said_by_what_it_puts_out() -> None:
    masks = mask_effects(has_classes=False)
    assert "finds things and has no mask" in lacks_effect("mask", "pose", found_effects())
    for effects in (masks, found_effects(masks)):  # alone, and with a finder beside it
        assert "does not have the 2 to 256 classes" in lacks_effect("classes", "selfie", effects)


def test_effects_have_numbers() -> None:
    assert tuple(effect_by_number(place, "mask", MASK_EFFECTS) for place in range(1, len(EFFECTS) + 1)) == EFFECTS


def test_the_keys_of_the_first_effects_stay() -> None:
    assert EFFECTS[:6] == ("tint", "replace", "color", "blur", "cutout", "mask")


def test_a_look_has_all_that_was_said() -> None:
    settings = Settings(
        effect="replace", light_wrap=0.3, threshold=0.4, gamma=0.5, grow=-3, feather=6, mirror=True, side_by_side=True
    )
    assert chosen_look_of(settings) == ChosenLook(Look("replace", Look.color, None, 0.3, 0.4, 0.5, -3, 6, True, True))


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"light_wrap": 1.01}, "--light-wrap 1.01: a number from 0 to 1"),
        ({"threshold": -0.1}, "--threshold -0.1: a number from 0 to 1"),
        ({"feather": float("nan")}, "--feather nan: a number from 0 to 50"),
        ({"grow": 21.0}, "--grow 21: a number from -20 to 20"),
        ({"gamma": 0.0}, "--gamma 0: a number from 0.1 to 10"),
        (
            {"background": "https://example.org/beach.jpg"},
            "or a color such as red or #3366cc is needed",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(flags: dict[str, object], complaint: str) -> None:
    for verb in ("live", "replay"):
        with pytest.raises(UsageError, match=complaint):
            ConfigWatch(None, flags, verb)


def test_settings_keep_what_another_effect_uses() -> None:
    color = (0.2, 0.4, 1.0)
    assert chosen_look_of(Settings(effect="blur", background="#3366ff", blur=8.0)) == ChosenLook(Look("blur", color, 8))
    assert chosen_look_of(Settings(effect="replace", background="#3366ff", blur=8.0)) == ChosenLook(
        Look("color", color, 8)
    )
    assert chosen_look_of(Settings(effect="blur", background="missing.mp4")) == ChosenLook(
        Look("blur"), Path("missing.mp4")
    )
    with pytest.raises(MediaError, match=r"missing\.mp4"):
        chosen(background="missing.mp4")


def test_without_refinement_masks_are_left_as_they_are() -> None:
    refinement = refinement_of(Settings(refine=False, delay_video=True))
    assert (refinement.edges, refinement.least, refinement.delay) == (False, 1.0, 0)
