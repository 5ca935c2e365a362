"""Replay's window under a window manager, which does what the person asks for with keys and buttons."""

from pathlib import Path

import pytest

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.display import SCREEN, ManagedDisplay
from tests.helpers.replay_stage import Script, Stage, opened, run
from texelflow.app.models.model_loading import SegmentationModel, load_segmentation
from texelflow.app.models.spec import SpecOptions

POINTER = 0.01  # more of the screen than its arrow takes


def lit(display: ManagedDisplay) -> float:
    """The share of the screen that shows something."""
    return float(display.picture().any(-1).mean())


@pytest.fixture(scope="module")
def model() -> SegmentationModel:
    return load_segmentation("selfie", SpecOptions())


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip") / "managed.mp4", moving(200, 160, 120), Recipe(rate=10))


def test_a_key_fills_the_screen_and_gives_it_back(
    managed: ManagedDisplay, model: SegmentationModel, clip: Path
) -> None:
    def script(stage: Stage) -> Script:
        window = stage.window
        yield from stage.until(lambda: stage.here >= 0)
        stage.press("space")
        yield from stage.until(lambda: stage.playback.paused, "a pause")
        stage.press("f")
        yield from stage.until(lambda: window.size == SCREEN and not window.damaged, "filling the screen")
        yield from stage.settled()
        assert lit(managed) > 0.99
        stage.press("f")
        yield from stage.until(lambda: window.size == (160, 120) and not window.damaged, "leaving it")
        yield from stage.settled()
        assert POINTER < lit(managed) < 0.2

    run(managed, model, clip, script)


def test_minimized_nothing_is_drawn_until_it_comes_back(
    managed: ManagedDisplay, model: SegmentationModel, clip: Path
) -> None:
    def script(stage: Stage) -> Script:
        number = managed.window(clip.name)
        yield from stage.until(lambda: stage.here >= 1)
        managed.minimize(number)
        yield from stage.until(lambda: stage.window.minimized, "being minimized")
        assert lit(managed) < POINTER
        drawn, here = len(stage.played.records), stage.here
        yield from stage.until(lambda: stage.here >= here + 3)
        assert len(stage.played.records) == drawn
        managed.minimize(number, False)
        yield from stage.until(lambda: not stage.window.minimized, "coming back")
        yield from stage.until(lambda: len(stage.played.records) > drawn)
        yield from stage.settled()
        assert lit(managed) > POINTER

    run(managed, model, clip, script)


def test_closing_it_ends_the_session(managed: ManagedDisplay, model: SegmentationModel, clip: Path) -> None:
    asked = False

    def never() -> bool:
        nonlocal asked
        if not asked and session.parts.playback and session.parts.playback.frame is not None:
            asked = True
            managed.ask_to_close(managed.window(clip.name))
        return False

    with opened(clip, model) as (session, _, _):
        session.run(never)
    assert asked
