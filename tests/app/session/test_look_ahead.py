"""A recording that looks one frame ahead shows the right frame with its own mask, whatever changes meanwhile."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import write_clip
from tests.helpers.display import Display
from tests.helpers.live_stage import demo_frame
from tests.helpers.markers import exhaustive
from tests.helpers.replay_stage import Script, Stage, run
from texelflow.app.frame.looks.effects import Effect
from texelflow.app.frame.textures.offscreen_target import on_opengl
from texelflow.app.media.sources import FileSource
from texelflow.app.models.model_loading import SegmentationModel, load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.gpu_delegate.targets.gl import opengl

Picture = npt.NDArray[np.uint8]


@pytest.fixture(scope="module")
def model() -> SegmentationModel:
    return load_segmentation("selfie", SpecOptions())


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dozen frames of two people, each another picture."""
    return write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", [demo_frame(40 + 4 * k) for k in range(12)])


@pytest.fixture(scope="module")
def pictures(clip: Path) -> list[Picture]:
    with FileSource(clip) as source:
        return [frame.rgba[..., :3] for frame in source]


def drawn(stage: Stage, effect: Effect) -> Picture:
    """The current frame with an effect: RGB (H, W, 3)."""
    gl, target = stage.window.context.gl, on_opengl(stage.canvas.drawn(effect))
    pixels = np.empty((target.size[1], target.size[0], 4), np.uint8)
    gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, target.framebuffer)
    gl.glReadPixels(0, 0, *target.size, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data)
    return pixels[::-1, :, :3].copy()


def number_of(stage: Stage, pictures: list[Picture]) -> int:
    """Of the frame that is drawn."""
    seen = drawn(stage, "none").astype(int)
    return int(np.argmin([np.abs(seen - picture).mean() for picture in pictures]))


def play(
    display: Display, model: SegmentationModel, clip: Path, script: Callable[[Stage], Script], effect: Effect
) -> None:
    run(display, model, clip, script, effect=effect, delay_video=True, smooth=0.5)


def redrawn(stage: Stage) -> Script:
    yield from stage.until(lambda: not stage.session.controller.stale)


def test_a_mask_that_is_needed_while_paused_is_made(
    display: Display, model: SegmentationModel, clip: Path, pictures: list[Picture]
) -> None:
    masks: list[Picture] = []

    def script(stage: Stage) -> Script:
        yield from stage.paused_at(3)
        for index in (4, 5):
            stage.playback.step(1)
            yield from stage.at(index)
        stage.session.controller.change(effect="tint")
        yield from redrawn(stage)
        assert number_of(stage, pictures) == 5
        masks.append(drawn(stage, "mask"))

    effects: tuple[Effect, ...] = ("tint", "none")
    for effect in effects:
        play(display, model, clip, script, effect)
    assert masks[0].mean() > 20
    assert np.abs(masks[0].astype(int) - masks[1]).mean() < 6


def test_the_frame_is_the_right_one_when_masks_begin_and_end(
    display: Display, model: SegmentationModel, clip: Path, pictures: list[Picture]
) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.paused_at(2)
        for index, effect in enumerate(("none", "none", "tint", "tint", "none", "tint", "none", "none", "tint"), 3):
            stage.session.controller.change(effect=effect)
            stage.playback.step(1)
            yield from stage.at(index)
            assert number_of(stage, pictures) == index, effect
        assert index == len(pictures) - 1

    play(display, model, clip, script, "none")


@exhaustive
def test_another_model_shows_the_same_frame(
    display: Display, model: SegmentationModel, clip: Path, pictures: list[Picture]
) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.paused_at(4)
        stage.session.controller.change(model="selfie-landscape")
        yield from stage.until(lambda: stage.session.model == "selfie-landscape")
        yield from redrawn(stage)
        assert number_of(stage, pictures) == 4
        stage.playback.step(1)
        yield from stage.at(5)
        assert number_of(stage, pictures) == 5

    play(display, model, clip, script, "tint")


def test_the_fit_to_edges_changes_while_paused(display: Display, model: SegmentationModel, clip: Path) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.paused_at(4)
        fitted = drawn(stage, "mask")
        for edges in (False, True):
            stage.session.controller.change(edges=edges)
            yield from redrawn(stage)
            assert (np.abs(fitted.astype(int) - drawn(stage, "mask")).mean() < 0.5) == edges

    play(display, model, clip, script, "tint")
