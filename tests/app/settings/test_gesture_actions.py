"""What gestures are for, as the setting says it: pairs, and a line on what there is where one is wrong."""

import pytest

from texelflow.app.session.derived import companions_of, gestures_of
from texelflow.app.settings.config import dump
from texelflow.app.settings.gesture_actions import GESTURE_ACTIONS, parse_gestures
from texelflow.app.settings.settings import Settings, meaning, specs, with_values
from texelflow.app.tracking.gesture_names import GESTURES
from texelflow.app.window.keys import LIVE, Key, action_of
from texelflow.gpu_delegate.base.errors import UsageError


def test_pairs_are_read_however_they_are_written() -> None:
    wanted = {"open-palm": "freeze", "thumb-up": "effect-2"}
    for text in ("open-palm=freeze,thumb-up=effect-2", " Open palm = freeze , thumb-up=Effect 2 "):
        assert parse_gestures(text) == wanted
    assert parse_gestures("") == {}


@pytest.mark.parametrize(
    "wrong", ["open-palm", "open-palm=", "=freeze", "wave=freeze", "fist=fly", "fist=mute,fist=freeze", "fist=mute,"]
)
def test_what_is_wrong_is_said_in_one_line(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"gestures .*: pairs such as .* of hand-raised, .* freeze, .* is needed"):
        with_values(Settings(), {"gestures": wrong})


def test_help_and_the_file_list_all_of_both() -> None:
    spec = next(spec for spec in specs() if spec.name == "gestures")
    for listed in (meaning(spec), dump(Settings())):
        assert all(gesture in listed for gesture in GESTURES)
        assert all(action in listed or action.startswith("effect-") for action in GESTURE_ACTIONS)
        assert "effect-1 to effect-9" in listed


def test_each_action_is_a_key_of_live() -> None:
    for key in GESTURE_ACTIONS.values():
        assert action_of(Key(key, ""), LIVE)


def test_hands_are_looked_for_where_a_gesture_is_for_something() -> None:
    assert companions_of(Settings()) == ()
    assert companions_of(Settings(frame="group")) == ("face",)
    settings = with_values(Settings(), {"gestures": "fist=mute"})
    assert companions_of(settings) == ("hand",)
    assert gestures_of(settings) == {"fist": "mute"}
    assert companions_of(with_values(Settings(), {"gestures": "hand-raised=freeze"})) == ("face", "hand")
