"""The gallery of backgrounds: a click chooses one, files that are none are left out, nothing holds up drawing."""

import os
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import cv2
import numpy as np
import pytest

from tests.helpers.clips import numbered, write_clip
from tests.helpers.living import living
from tests.helpers.waiting import until
from texelflow.app.frame.looks.effects import BUILT_IN_BACKGROUNDS
from texelflow.app.frame.looks.thumbnails import MOST_FOUND, THUMBNAIL_SIZE, Candidate, backgrounds_in, thumbnail
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.overlay.controls import controls
from texelflow.app.overlay.gallery import Gallery
from texelflow.app.overlay.gui import Gui
from texelflow.app.overlay.input_events import Button, Held, Input, Left, Moved
from texelflow.app.settings.settings import Settings, changed
from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE = (640, 480)
BUILT_IN = [*BUILT_IN_BACKGROUNDS]
OF_PERSON = ["a red.png", "b moving.mp4"]  # in their order
TILES_BEFORE = 4  # none, two blurs, a color


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One image, one video, and much that looks like either."""
    folder = tmp_path_factory.mktemp("backgrounds")
    cv2.imwrite(str(folder / "a red.png"), np.full((90, 160, 3), (0, 0, 255), np.uint8))
    write_clip(folder / "b moving.mp4", numbered(3, 96, 48))
    whole = (folder / "a red.png").read_bytes()
    (folder / "cut off.png").write_bytes(whole[:-20])
    (folder / "huge.png").write_bytes(whole[:16] + b"\0\0\x40\0\0\0\x20\0" + whole[24:])  # 16384x8192 by what it says
    (folder / "text.jpg").write_text("no picture")
    (folder / "text.mp4").write_text("no video")
    (folder / "notes.txt").write_text("not looked at")
    (folder / "folder.png").mkdir()
    os.mkfifo(folder / "pipe.png")
    (folder / "a\nbreak.png").write_bytes(whole)  # no setting takes such a name
    return folder


class Room:
    """The panel with a gallery, without any window: what is done to it is fed."""

    def __init__(self, context: Context, folder: Path) -> None:
        self.before = self.settings = Settings(backgrounds=str(folder))
        self.gui, self.gallery = Gui(context), Gallery(context)
        self._target = OffscreenTarget(context, SIZE)
        self.most_new = 0  # textures in one picture

    @property
    def names(self) -> list[str]:
        """Of the backgrounds that are there with their pictures."""
        return [each.candidate.name for each in self.gallery.textures.shown if each.texture]

    def step(self) -> None:
        """Draw a picture."""
        before = len(self.names)
        self.gui.draw(self._target.framebuffer, SIZE, 1.0, [self._part])
        self.most_new = max(self.most_new, len(self.names) - before)

    def settled(self) -> bool:
        """Draw a picture; whether no other thumbnail is to come."""
        self.step()
        sleep(0.001)
        return not self.gallery.textures.busy

    def click(self, tile: int) -> tuple[str, ...]:
        """On a tile by its number; the settings that this has changed."""
        before = self.settings
        self.do(Moved(305 + 90 * (tile % 4), 81 + 54 * (tile // 4)), Button(0, True), Button(0, False))
        return changed(before, self.settings)

    def do(self, *inputs: Input) -> None:
        for done in inputs:
            self.gui.feed([done])
            self.step()
            self.step()

    def _part(self) -> None:
        self.settings = controls(self.settings, "live", self.gallery, frame_height=720)

    def release(self) -> None:
        self.gallery.release()
        self.gui.release()
        self._target.release()


@pytest.fixture
def room(context: Context, folder: Path) -> Iterator[Room]:
    made = Room(context, folder)
    made.do(Left())
    until(made.settled)
    yield made
    made.release()


def test_files_that_are_no_backgrounds_are_left_out(room: Room, folder: Path) -> None:
    assert room.names == [*BUILT_IN, *(str(folder / name) for name in OF_PERSON)]
    assert room.most_new == 1, "an upload a picture, no more"
    assert room.settings == room.before


def test_a_click_chooses(room: Room, folder: Path) -> None:
    assert room.click(0) == ("effect",)
    assert room.settings.effect == "none"
    assert room.click(1) == ("effect", "blur")
    assert (room.settings.effect, room.settings.blur) == ("blur", 14.4)  # of 720 rows
    assert room.click(2) == ("blur",)
    assert room.settings.blur == 0
    assert room.click(TILES_BEFORE + 1) == ("effect", "background")
    assert (room.settings.effect, room.settings.background) == ("replace", "room")
    assert room.click(TILES_BEFORE + len(BUILT_IN) + 1) == ("background",)
    assert room.settings.background == str(folder / "b moving.mp4")


def test_a_color_is_picked(room: Room) -> None:
    assert room.click(3) == ("effect", "background")
    green = room.settings.background
    assert room.gui.takes_keys, "no key is a command while it is open"
    room.do(Moved(520, 150), Button(0, True), Button(0, False))
    assert room.settings.background != green
    assert room.settings.background.startswith("#")
    room.do(Held("escape", True), Held("escape", False))
    assert not room.gui.takes_keys


def test_the_folder_is_looked_at_again_and_what_was_chosen_elsewhere_is_there(
    room: Room, folder: Path, tmp_path: Path
) -> None:
    elsewhere = str(tmp_path / "elsewhere.png")
    cv2.imwrite(elsewhere, np.zeros((9, 16, 3), np.uint8))
    room.settings = Settings(backgrounds=str(folder / "nowhere"), background=elsewhere)
    room.step()
    until(room.settled)
    assert (room.names, room.gallery.textures.has_folder) == ([*BUILT_IN, elsewhere], False)
    Path(elsewhere).unlink()
    room.settings = Settings(backgrounds=str(folder), background=elsewhere)
    room.step()
    until(room.settled)
    assert room.names == [*BUILT_IN, *(str(folder / name) for name in OF_PERSON)]
    assert room.gallery.textures.has_folder


def test_opengl_is_left_as_it_was_and_nothing_is_read_back(context: Context, folder: Path) -> None:
    gl, before, read = context.gl, living(context), context.readback.bytes
    drawn, bound = Room(context, folder), gl.generate("Textures")
    gl.glBindTexture(opengl.TEXTURE_2D, bound)
    gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, 77)
    until(drawn.settled)
    assert gl.integer(opengl.TEXTURE_BINDING_2D) == bound
    assert gl.integer(opengl.UNPACK_ROW_LENGTH) == 77
    gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, 0)
    drawn.release()
    gl.delete("Textures", bound)
    assert living(context) == before
    assert context.readback.bytes == read
    context.check_errors("drawing the gallery")


def test_thumbnails(folder: Path) -> None:
    found = thumbnail(Candidate(str(folder / "a red.png"), (0, 0)))
    assert found.shape == (THUMBNAIL_SIZE[1], THUMBNAIL_SIZE[0], 4)
    assert found.reshape(-1, 4).tolist() == [[255, 0, 0, 255]] * (THUMBNAIL_SIZE[0] * THUMBNAIL_SIZE[1])
    sharp, soft = (thumbnail(Candidate("room", (0, 0), blur_px)) for blur_px in (0.0, 4.0))
    assert np.abs(np.diff(sharp.astype(int), axis=1)).mean() > 2 * np.abs(np.diff(soft.astype(int), axis=1)).mean()
    for name in ("cut off.png", "huge.png", "text.jpg", "text.mp4", "folder.png", "pipe.png"):
        with pytest.raises(MediaError):
            thumbnail(Candidate(str(folder / name), (0, 0)))


def test_a_folder_without_end_is_bounded(tmp_path: Path) -> None:
    for number in range(MOST_FOUND + 20):
        (tmp_path / f"{number:03}.JPG").touch()
    assert len(backgrounds_in(tmp_path)) == len(BUILT_IN) + MOST_FOUND
    for nowhere in (tmp_path / "0.JPG", tmp_path / "nowhere", Path("\0"), Path("x" * 5000)):
        assert [each.name for each in backgrounds_in(nowhere)] == BUILT_IN
