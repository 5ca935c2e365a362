"""Files that are dropped onto a window: the first that is an image or a video is put behind people."""

import ctypes
import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers import live_stage, replay_stage
from tests.helpers.clips import numbered, write_clip
from tests.helpers.display import Display
from tests.helpers.live_stage import Theatre
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.session.drop import first_background
from texelflow.app.window.glfw_window import Window
from texelflow.gpu_delegate.base.errors import MediaError


def drop(window: Window, *paths: bytes) -> None:
    """Call what the library glfw calls when files are dropped."""
    library, handle, own = window._glfw._glfw, window._handle, window._drops._callback
    held = library.glfwSetDropCallback(handle, own)  # gives what was set before
    held(handle, len(paths), (ctypes.c_char_p * len(paths))(*paths))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("no picture")
    cv2.imwrite(str(tmp_path / "blue.png"), np.full((48, 64, 3), (255, 0, 0), np.uint8))
    write_clip(tmp_path / "moving.mp4", numbered(3))
    return tmp_path


def test_live_takes_the_first_good_one_and_says_why_others_are_none(theatre: Theatre, files: Path) -> None:
    def script(stage: live_stage.Stage) -> live_stage.Script:
        yield from stage.frames(1)
        drop(stage.window, *(bytes(files / name) for name in ("text.txt", "blue.png", "moving.mp4")))
        yield from stage.until(lambda: stage.settings.background == str(files / "blue.png"))
        assert stage.settings.effect == "replace"
        assert stage.words == "background blue.png"
        yield from stage.until(lambda: bool((stage.drawn()[..., 2] == 255).any()))
        drop(stage.window, bytes(files / "text.txt"))
        yield from stage.until(lambda: "is not a video in a known format" in stage.words)
        drop(stage.window, os.fsencode(files) + b"/\xff.png")
        yield from stage.until(lambda: "has a name that no setting takes" in stage.words)
        assert stage.settings.background == str(files / "blue.png"), "it stays"

    theatre.run(script)


def test_replay_takes_a_video_while_it_is_paused(display: Display, files: Path) -> None:
    def script(stage: replay_stage.Stage) -> replay_stage.Script:
        yield from stage.paused_at(1)
        drop(stage.window, bytes(files / "moving.mp4"))
        yield from stage.until(lambda: stage.settings.background == str(files / "moving.mp4"))
        yield from stage.until(lambda: stage.canvas.look.effect == "replace")

    replay_stage.run(display, load_segmentation("selfie"), files / "moving.mp4", script)


def test_which_of_several(files: Path) -> None:
    assert first_background([files / "text.txt", files / "moving.mp4"]) == str(files / "moving.mp4")
    with pytest.raises(MediaError, match=r"not a regular file.*; nor can the other 1 be one"):
        first_background([files, files / "text.txt"])
    for names in ([files / "nowhere.png"], [files / "a\nb.png"], [Path("x" * 5000)]):
        with pytest.raises(MediaError) as refused:
            first_background(names)
        assert str(refused.value).isprintable()
