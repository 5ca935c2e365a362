"""Hands in front of a camera change the picture, and the picture follows faces, with the networks that find them."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.clips import write_clip
from tests.helpers.hands import drawn_hand
from tests.helpers.live_stage import Script, Stage, Theatre
from tests.helpers.markers import exhaustive


@pytest.fixture(scope="module")
def thumb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds of a thumb up."""
    picture = np.asarray(cv2.resize(drawn_hand("thumb-up"), (320, 240), interpolation=cv2.INTER_AREA), np.uint8)
    return write_clip(tmp_path_factory.mktemp("thumb") / "thumb.mp4", [picture] * 180)


@exhaustive
def test_a_thumb_that_is_held_up_does_what_it_is_for_once(theatre: Theatre, thumb: Path) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.until(lambda: stage.settings.mirror, "the thumb's action")
        assert "thumb up: mirror" in stage.words
        assert stage.parts.stages.findings[0].kind == "hand"
        seen = stage.records[-1].time_ms
        yield from stage.until(lambda: stage.records[-1].time_ms > seen + 1500)
        assert stage.settings.mirror, "not again"

    theatre.run(script, camera=str(thumb), effect="none", gestures="thumb-up=mirror")


def test_the_picture_follows_a_face_when_it_is_asked_to(theatre: Theatre, still: Path) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(1)
        assert not stage.parts.stages.findings
        before = stage.drawn()
        yield from stage.pressed("t", lambda: stage.settings.frame == "person")
        yield from stage.until(lambda: any(each.kind == "face" for each in stage.parts.stages.findings), "a face")
        yield from stage.until(lambda: (stage.drawn() != before).mean() > 0.3, "its part of the frame")
        yield from stage.pressed("t", lambda: stage.settings.frame == "group")
        yield from stage.pressed("t", lambda: stage.settings.frame == "off")
        yield from stage.until(lambda: not stage.parts.stages.findings, "the finder's end")
        yield from stage.until(lambda: (stage.drawn() == before).all(), "all of the frame")

    theatre.run(script, camera=str(still), effect="none")
