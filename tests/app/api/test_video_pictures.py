"""texelflow.video: the pictures that replay writes, with their times, and nothing left behind."""

import os
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.clips import DEMO_CLIP, Recipe, moving, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in

UNEVEN = (0, 20, 30, 90, 100, 101, 300, 310)  # ms
ON_CPU: dict[str, Any] = {"backend": "cpu"}


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording whose frames come at uneven times."""
    recipe = Recipe(time_base=Fraction(1, 1000), pts=UNEVEN, sound="flac")
    return write_clip(tmp_path_factory.mktemp("clips") / "uneven.mkv", moving(len(UNEVEN), 160, 120), recipe)


def written(folder: Path) -> dict[int, npt.NDArray[np.uint8]]:
    """The pictures of a folder by their numbers, RGB or RGBA."""
    found = dict[int, npt.NDArray[np.uint8]]()
    for name in sorted(os.listdir(folder)):
        bgr = np.asarray(cv2.imread(str(folder / name), cv2.IMREAD_UNCHANGED), np.uint8)
        order = cv2.COLOR_BGRA2RGBA if bgr.shape[2] == 4 else cv2.COLOR_BGR2RGB
        found[int(Path(name).stem)] = np.asarray(cv2.cvtColor(bgr, order), np.uint8)
    return found


def threads() -> list[threading.Thread]:
    """Those of videos."""
    return [thread for thread in threading.enumerate() if thread.name == "texelflow video"]


@one_in(2, "effect", ["cutout", "blur"])
def test_pictures_are_those_that_replay_writes(
    uneven: Path, tmp_path: Path, effect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--effect", effect, "--backend", "cpu", "--from", 2, "--to", 6
    assert Command(capsys)("replay", uneven, "--out", tmp_path / "out", *options).code == 0
    video = texelflow.video(uneven, effect=effect, start=2, end=6, **ON_CPU)
    assert (video.size, video.frames) == ((160, 120), 5)
    came, times = dict[int, npt.NDArray[np.uint8]](), list[float]()
    for picture in video:
        assert picture.flags.writeable
        came[video.index] = picture
        times.append(video.time)
    assert times == [ms / 1000 for ms in UNEVEN[2:7]]
    wanted = written(tmp_path / "out")
    assert came.keys() == wanted.keys() == {2, 3, 4, 5, 6}
    assert all(np.array_equal(came[index], wanted[index]) for index in wanted)
    assert len({picture.tobytes() for picture in came.values()}) == 5
    assert next(video, None) is None


@pytest.mark.parametrize(
    ("start", "end", "numbers"), [(0.05, 0.1, [3, 4]), ("0.05s", "0:00.1", [3, 4]), (7, None, [7]), (0, 0.0, [0])]
)
def test_a_part_is_said_in_frames_or_seconds(uneven: Path, start: Any, end: Any, numbers: list[int]) -> None:
    video = texelflow.video(uneven, start=start, end=end, effect="none", **ON_CPU)
    assert [video.index for _ in video] == numbers


@exhaustive
@pytest.mark.gl
def test_pictures_are_drawn_by_opengl_on_a_thread_of_its_own(uneven: Path) -> None:
    on_gpu = list(texelflow.video(uneven, end=2, effect="tint", backend="gl"))
    on_cpu = list(texelflow.video(uneven, end=2, effect="tint", **ON_CPU))
    assert max(np.abs(a.astype(int) - b).max() for a, b in zip(on_gpu, on_cpu, strict=True)) <= 2


def test_a_loop_that_is_left_early_leaves_nothing_behind() -> None:
    for picture in texelflow.video(DEMO_CLIP, effect="none", **ON_CPU):
        assert picture.shape == (480, 640, 3)
        break
    assert not threads()
    with texelflow.video(DEMO_CLIP, effect="none", **ON_CPU) as video:
        next(video)
        assert threads()
    assert not threads()
    assert list(video) == []
    video.close()


def test_what_is_live_gives_its_newest_picture() -> None:
    with texelflow.video("pattern", size=(64, 48), fps=1000, effect="none", **ON_CPU) as camera:
        assert (camera.size, camera.rate, camera.frames) == ((64, 48), 1000, None)
        numbers, times = list[int](), list[float]()
        for _, picture in zip(range(4), camera, strict=False):
            assert (picture.shape, picture.dtype.name) == ((48, 64, 3), "uint8")
            numbers.append(camera.index)
            times.append(camera.time)
    assert numbers == sorted(set(numbers))
    assert times == sorted(set(times))
    assert numbers[0] > 0  # 0 is from before all was compiled


def test_a_recording_that_is_cut_off_says_so(uneven: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(uneven.read_bytes()[: uneven.stat().st_size * 3 // 4])
    video = texelflow.video(cut, effect="none", **ON_CPU)
    with pytest.warns(RuntimeWarning, match=r"cut\.mkv is cut off"):
        assert 0 < len(list(video)) < len(UNEVEN)


@pytest.mark.parametrize(
    ("source", "settings", "said"),
    [
        ("nowhere.mp4", {}, "'nowhere.mp4' does not exist"),
        (b"clip.mp4", {}, "a path, an address or a camera's number, not by bytes"),
        (np.zeros((4, 4, 3), np.uint8), {}, "not by ndarray"),
        ("-", {}, "video '-': pictures of a pipe are for the command line"),
        (DEMO_CLIP, {"efect": "blur"}, "efect is no setting; did you mean effect?"),
        (DEMO_CLIP, {"effect": "blurr"}, "effect blurr: one of tint, "),
        (DEMO_CLIP, {"light_wrap": 2}, "light_wrap 2: a number from 0 to 1 is needed"),
        (DEMO_CLIP, {"effect": "none", "blur": 5}, "blur goes with effect blur, not with none"),
        (DEMO_CLIP, {"background": "nowhere.jpg"}, "background nowhere.jpg"),
        (DEMO_CLIP, {"out": "a.mp4"}, "out cannot be set here: texelflow.write(path, pictures) writes files"),
        (DEMO_CLIP, {"record": "a.mp4"}, "out cannot be set here"),
        (DEMO_CLIP, {"panel": True}, "panel cannot be set here: there is no window"),
        (DEMO_CLIP, {"fps": 30}, "fps is a setting of cameras and streams alone"),
        (DEMO_CLIP, {"start": -1}, "start=-1: a frame's number (120), seconds (4.5) or text"),
        (DEMO_CLIP, {"end": float("nan")}, "end=nan: a frame's number"),
        (DEMO_CLIP, {"start": 3, "end": 1}, "the range ends (1) before it begins (3)"),
        ("pattern", {"start": 3}, "start and end are for recordings"),
        ("foo://camera", {}, "foo:// is not an address that can be opened"),
    ],
)
def test_what_is_wrong_is_told_at_once_in_one_line(source: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(texelflow.TexelflowError) as refused:
        texelflow.video(source, **settings)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "--" not in str(refused.value)
    assert not threads()


def test_times_belong_to_a_picture() -> None:
    video = texelflow.video(DEMO_CLIP)
    with pytest.raises(texelflow.UsageError, match="none has come yet"):
        _ = video.time
    assert repr(video) == "<texelflow.video 'people.mp4': 640x480>"


@exhaustive
def test_a_range_without_frames_is_an_error_of_the_first_picture() -> None:
    with pytest.raises(texelflow.MediaError, match="has no frame in the range asked for"):
        next(texelflow.video(DEMO_CLIP, start=5000, effect="none", **ON_CPU))
    assert not threads()


@exhaustive
def test_a_process_that_is_forked_is_refused() -> None:
    video: Iterator[Any] = texelflow.video(DEMO_CLIP, effect="none", **ON_CPU)
    next(video)
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        next(video)
        return
    try:
        next(video)
    except texelflow.UsageError as error:
        os._exit(7 if "fork" in str(error) else 8)
    os._exit(9)
