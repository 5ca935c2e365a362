"""What is behind the person: images and recordings cover the frame, play at their own pace, fail in one line."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.clips import Recipe, number_of, numbered, set_display_matrix, write_clip
from tests.helpers.commands import Command
from tests.helpers.living import living
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.pictures import Bench, Image, noise
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.frame.drawing.backdrop import Backdrop
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.looks.background import background_file, cover, read_image
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.looks.moving_background import BackgroundFeed, check_background
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.media.sources import VideoFrame
from texelflow.app.picture.picture import Orientation, Picture, PictureFormat, rgba_format
from texelflow.app.picture.preprocess import ImageSize, Preprocessor
from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.targets.gl.context import Context

DEFAULT = background_file("")
COUNT, GAP_MS = 6, 100


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames whose brightness tells their numbers, ten in a second."""
    return write_clip(tmp_path_factory.mktemp("background") / "moving.mp4", numbered(COUNT, 96, 48), Recipe(rate=10))


class Scene:
    """Frames without any person, of which the background alone is to be seen."""

    def __init__(self, context: Context, background: Path | None, waits: bool = True, size: ImageSize = (64, 48)):
        self._bench = Bench(context, noise(size), np.zeros((2, 2), np.float32))
        self._target = OffscreenTarget(context, size)
        self.backdrop = Backdrop(GlPictures(context), size, background, waits)
        look = ChosenLook(Look("replace"))
        self.canvas = Canvas(GlPictures(context), self._bench, self._target, "stretch", look, backdrop=self.backdrop)

    def at(self, time_ms: float) -> Image:
        """The picture of a frame of that time."""
        self.canvas.stage.run(VideoFrame(0, 0, time_ms, Picture(rgba_format((1, 1)), ())))
        return self._bench.read(self._target)

    def until_message(self, time_ms: float = 0) -> str:
        """What is said about a background, as soon as something is."""
        end = time.monotonic() + PATIENCE_S
        while not self.canvas.message and time.monotonic() < end:
            self.at(time_ms)
        return self.canvas.message

    def release(self) -> None:
        for part in (self.canvas, self.backdrop, self._target, self._bench):
            part.release()


@pytest.fixture
def scenes(context: Context) -> Iterator[list[Scene]]:
    made: list[Scene] = []
    yield made
    for scene in made:
        scene.release()


# Pictures cover the frame


@pytest.mark.parametrize("to", [(65, 47), (20, 31), (7, 5)])
@one_in(
    4,
    "form",
    [
        rgba_format((33, 77)),
        PictureFormat((61, 37), "yuv", 8, (1, 1), "bt709", False, "left"),
        PictureFormat((64, 36), "nv12", 8, (1, 1), "bt601", True, "left", Orientation(True, True, False)),
        PictureFormat((31, 90), "gray", 10),
    ],
    ids=lambda form: form.layout,
)
def test_pictures_of_any_kind_cover_the_frame(context: Context, form: PictureFormat, to: ImageSize) -> None:
    random = np.random.default_rng(5)
    samples = np.uint8 if form.bits == 8 else np.uint16
    picture = Picture(form, tuple(random.integers(0, 1 << form.bits, s, samples) for s in form.plane_shapes))
    scale = min(form.upright_size[0] / to[0], form.upright_size[1] / to[1])
    taps = max(1, min(4, round(scale / 2)))
    fine = Preprocessor(form, (to[0] * taps, to[1] * taps), "crop").image_to_tensor(picture)[0]
    expected = 255 * fine.reshape(to[1], taps, to[0], taps, 3).mean((1, 3))
    bench = Bench(context, noise(to), np.zeros((2, 2), np.float32))
    backdrop, target = Backdrop(GlPictures(context), to), OffscreenTarget(context, to)
    backdrop.show(picture)
    canvas = Canvas(GlPictures(context), bench, target, "stretch", ChosenLook(Look("replace")), backdrop=backdrop)
    canvas.stage.run(VideoFrame(0, 0, 0.0, picture))
    assert np.abs(bench.read(target)[..., :3] - expected).max() <= 1
    for part in (canvas, backdrop, target, bench):
        part.release()


def test_an_image_is_the_same_to_the_bit(context: Context, scenes: list[Scene], tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    cv2.imwrite(str(path), noise((300, 101), 3)[..., :3])
    scenes.append(Scene(context, path, size=(65, 47)))
    assert np.array_equal(scenes[0].at(0), cover(read_image(path), (65, 47)))


def test_a_picture_that_comes_along_is_there_when_none_was_chosen(context: Context, scenes: list[Scene]) -> None:
    scenes.append(Scene(context, None))
    assert np.array_equal(scenes[0].at(0), cover(read_image(DEFAULT), (64, 48)))


def test_a_portrait_recording_is_upright(context: Context, scenes: list[Scene], tmp_path: Path) -> None:
    frame = np.zeros((64, 64, 3), np.uint8)
    frame[:32] = 200
    path = write_clip(tmp_path / "portrait.mp4", [frame] * 2)
    set_display_matrix(path, 0, 1, -1, 0)  # a quarter turn clockwise: what is stored above is to the right
    scenes.append(Scene(context, path))
    picture = scenes[0].at(0)[..., 0].astype(int)
    assert picture[:, 40:].min() > 190
    assert picture[:, :24].max() < 10


# A recording plays at its own pace


def test_a_recording_plays_by_the_frames_times_and_begins_again(
    context: Context, scenes: list[Scene], clip: Path
) -> None:
    scenes.append(Scene(context, clip))
    times = [0, 40, 99, 100, 250, 250, 599, 600, 650, 700, 1650, 1849, 1850]
    assert [number_of(scenes[0].at(70_000 + time_ms)) for time_ms in times] == [t // GAP_MS % COUNT for t in times]
    assert not scenes[0].canvas.message
    assert scenes[0].canvas.uploaded_bytes > 10 * 96 * 48


def test_a_jump_in_time_moves_it_by_a_second_at_most(context: Context, scenes: list[Scene], clip: Path) -> None:
    scenes.append(Scene(context, clip))
    numbers = [number_of(scenes[0].at(time_ms)) for time_ms in (0, 1e9, 5, 105, 105)]
    assert numbers == [0, 4, 4, 5, 5]


def test_a_recording_of_one_frame_is_an_image(context: Context, scenes: list[Scene], tmp_path: Path) -> None:
    path = write_clip(tmp_path / "one.mkv", numbered(1))
    scenes.append(Scene(context, path))
    assert [number_of(scenes[0].at(time_ms)) for time_ms in (0, 500, 1500)] == [0, 0, 0]


def test_what_comes_too_late_is_shown_and_puts_off_the_rest(clip: Path) -> None:
    feed, brightness = BackgroundFeed(clip, (64, 48)), list[float]()
    end, late_ms = time.monotonic() + PATIENCE_S, 10_000
    for time_ms, wait in ((0, True), (late_ms, False), (late_ms + GAP_MS, True)):
        picture = None
        while picture is None and time.monotonic() < end:
            picture = feed.at(time_ms, wait)
        assert picture is not None
        brightness.append(float(picture.planes[0].mean()))
    feed.close(wait=True)
    step = 6 * 219 / 255  # between two of numbered()
    _, late, after = (round((luma - brightness[0]) / step) for luma in brightness)
    assert after == (late + 1) % COUNT


# Another one, while frames run


def test_another_file_is_shown_when_it_is_read_and_the_old_one_until_then(
    context: Context, scenes: list[Scene], clip: Path, tmp_path: Path
) -> None:
    bright = tmp_path / "bright.png"
    cv2.imwrite(str(bright), np.full((5, 5, 3), 250, np.uint8))
    scenes.append(Scene(context, clip, waits=False))
    scene, seen = scenes[0], set[int]()
    scene.at(0)
    scene.canvas.set_background(tmp_path / "unwanted.png")  # nobody hears of what was replaced before it came
    scene.canvas.set_background(bright)
    end = time.monotonic() + PATIENCE_S
    while 250 not in seen and time.monotonic() < end:
        seen.add(int(scene.at(0)[0, 0, 0]))
    assert seen <= {20, 250}
    assert 250 in seen
    assert not scene.canvas.message
    for background, shown in ((clip, 20), (None, int(cover(read_image(DEFAULT), (64, 48))[0, 0, 0])), (bright, 250)):
        scene.canvas.set_background(background)
        while scene.at(0)[0, 0, 0] != shown and time.monotonic() < end:
            pass
        assert scene.at(0)[0, 0, 0] == shown
        assert not scene.canvas.message


@one_in(3, "name", ["missing.mp4", "words.mp4", "words.png", "", "pipe"])
def test_what_cannot_be_shown_is_refused_at_the_start_and_told_later(
    context: Context, scenes: list[Scene], clip: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    if name == "pipe":
        os.mkfifo(path)
    elif name.startswith("words"):
        path.write_bytes((b"\x89PNG\r\n\x1a\n" if name.endswith("png") else b"") + b"words and no pictures" * 9)
    before = living(context)
    for refuse in (check_background, lambda path: Backdrop(GlPictures(context), (64, 48), path)):
        with pytest.raises(MediaError, match=name or tmp_path.name) as caught:
            refuse(path)
        assert "\n" not in str(caught.value)
    assert living(context) == before
    scenes.append(Scene(context, clip, waits=False))
    scenes[0].at(0)
    scenes[0].canvas.set_background(path)
    assert (name or tmp_path.name) in scenes[0].until_message()
    assert number_of(scenes[0].at(0)) == 0


# Files that end otherwise than they should


def test_a_recording_that_goes_away_leaves_its_last_picture(
    context: Context, scenes: list[Scene], tmp_path: Path
) -> None:
    path = write_clip(tmp_path / "goes.mp4", numbered(3), Recipe(rate=10))
    scenes.append(Scene(context, path))
    scenes[0].at(0)
    path.unlink()
    numbers = [number_of(scenes[0].at(time_ms)) for time_ms in range(100, 1500, 100)]
    assert set(numbers[6:]) == {2}
    assert "goes.mp4" in scenes[0].canvas.message
    assert "another background is shown" in scenes[0].canvas.message


def test_a_cut_off_recording_is_repeated_as_far_as_it_goes(
    context: Context, scenes: list[Scene], tmp_path: Path
) -> None:
    whole = write_clip(tmp_path / "whole.mkv", numbered(30, 160, 120), Recipe(rate=10)).read_bytes()
    path = tmp_path / "cut.mkv"
    path.write_bytes(whole[: len(whole) * 2 // 3])
    scenes.append(Scene(context, path))
    numbers = [number_of(scenes[0].at(time_ms)) for time_ms in range(0, 6000, 100)]
    assert numbers.count(0) >= 2
    assert 5 < max(numbers) < 29
    assert scenes[0].until_message(6000) == f"background {path} is cut off; the part that is there is repeated"


# Nothing is left behind


def test_all_is_freed(context: Context, clip: Path) -> None:
    before, threads = living(context), {*threading.enumerate()}
    for waits in (True, False):
        scene = Scene(context, clip, waits)
        scene.at(0)
        scene.canvas.set_background(DEFAULT)
        scene.at(100)
        assert living(context) != before
        scene.release()
    until(lambda: {*threading.enumerate()} <= threads)
    assert living(context) == before


@exhaustive
@pytest.mark.gl
def test_recordings_before_a_video_are_the_same_in_every_run(
    clip: Path, people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texelflow = Command(capsys)
    options = ["--background", clip, "--light-wrap", 0.5, "--mirror", "--to", 6, "--backend", "cpu"]
    for run in "ab":
        texelflow("replay", people, "--out", tmp_path / run, *options)
    for picture in (tmp_path / "a").iterdir():
        assert picture.read_bytes() == (tmp_path / "b" / picture.name).read_bytes()
    first, last = (np.asarray(cv2.imread(str(tmp_path / "a" / f"{index:06d}.png"))) for index in (0, 6))
    assert int(last[0, 0, 0]) - int(first[0, 0, 0]) == pytest.approx(12, abs=2)  # two frames of numbered() later
