"""texelflow.write: what replay writes, with its times and its sound, and what any pictures become."""

import _thread
import os
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.clips import DEMO_CLIP, Recipe, moving, packets, time_of, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in

Pixels = npt.NDArray[np.uint8]

UNEVEN = (0, 20, 30, 90, 100, 101, 300, 310)  # ms
ON_CPU: dict[str, Any] = {"backend": "cpu"}


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording whose frames come at uneven times, with sound."""
    recipe = Recipe(time_base=Fraction(1, 1000), pts=UNEVEN, sound="flac")
    return write_clip(tmp_path_factory.mktemp("clips") / "uneven.mkv", moving(len(UNEVEN), 160, 120), recipe)


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def frames_of(path: Path, format: str = "rgb24") -> list[Pixels]:
    with av.open(str(path)) as container:
        return [np.asarray(frame.to_ndarray(format=format), np.uint8) for frame in container.decode(video=0)]


def times_of(path: Path) -> list[Fraction]:
    with av.open(str(path)) as container:
        return [time_of(frame) for frame in container.decode(video=0)]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


def pictures(count: int, channels: int = 3) -> list[Pixels]:
    made = [np.full((48, 64, channels), 20 + 30 * index, np.uint8) for index in range(count)]
    for picture in made if channels == 4 else ():
        picture[..., 3] = 255
        picture[:, :32, 3] = 0
    return made


# As replay writes -----------------------------------------------------------------------------------------------------


def test_png_files_have_the_bytes_of_replays(uneven: Path, tmp_path: Path, replay: Command) -> None:
    options = "--effect", "cutout", "--backend", "cpu", "--from", 2, "--to", 5
    assert replay("replay", uneven, "--out", tmp_path / "wanted", *options).code == 0
    video = texelflow.video(uneven, effect="cutout", start=2, end=5, **ON_CPU)
    assert texelflow.write(tmp_path / "found", video) == 4
    assert bytes_of(tmp_path / "found") == bytes_of(tmp_path / "wanted")
    assert list(video) == []


@one_in(2, "name", ["out.mp4", "out.mkv"])
def test_a_video_has_the_frames_times_and_sound_of_replays(
    uneven: Path, tmp_path: Path, replay: Command, name: str
) -> None:
    wanted, found = tmp_path / f"wanted-{name}", tmp_path / name
    assert replay("replay", uneven, "--out", wanted, "--backend", "cpu", "--quality", 60).code == 0
    assert texelflow.write(found, texelflow.video(uneven, **ON_CPU), quality=60) == len(UNEVEN)
    assert times_of(found) == [Fraction(ms, 1000) for ms in UNEVEN]
    assert np.array_equal(frames_of(found), frames_of(wanted))
    assert packets(found, "audio") == packets(wanted, "audio") != []


@exhaustive
def test_a_picture_becomes_one(tmp_path: Path, replay: Command) -> None:
    photo = Path(DEMO_CLIP).parent / "demo.jpg"
    assert replay("replay", photo, "--out", tmp_path / "wanted.png", "--backend", "cpu").code == 0
    assert texelflow.write(tmp_path / "found.png", texelflow.video(photo, **ON_CPU)) == 1
    assert (tmp_path / "found.png").read_bytes() == (tmp_path / "wanted.png").read_bytes()


# Of others' pictures --------------------------------------------------------------------------------------------------


def test_pictures_made_of_a_videos_get_its_times_sound_and_numbers(uneven: Path, tmp_path: Path) -> None:
    video = texelflow.video(uneven, effect="none", start=1, **ON_CPU)
    turned = (picture[::-1, ::-1] for picture in video)
    assert texelflow.write(tmp_path / "turned.mkv", turned, like=video, codec="ffv1") == len(UNEVEN) - 1
    assert times_of(tmp_path / "turned.mkv") == [Fraction(ms - UNEVEN[1], 1000) for ms in UNEVEN[1:]]
    assert packets(tmp_path / "turned.mkv", "audio")
    plain = list(texelflow.video(uneven, effect="none", start=1, **ON_CPU))
    assert np.array_equal(frames_of(tmp_path / "turned.mkv"), [picture[::-1, ::-1] for picture in plain])
    video = texelflow.video(uneven, effect="none", **ON_CPU)
    chosen = (picture for picture in video if video.index % 3 == 2)
    assert texelflow.write(tmp_path / "chosen", chosen, like=video) == 2
    assert sorted(os.listdir(tmp_path / "chosen")) == ["000002.png", "000005.png"]


@exhaustive
def test_a_video_that_was_begun_is_written_from_there(uneven: Path, tmp_path: Path) -> None:
    video = texelflow.video(uneven, effect="none", **ON_CPU)
    next(video)
    assert texelflow.write(tmp_path / "rest", video) == len(UNEVEN) - 1
    assert min(os.listdir(tmp_path / "rest")) == "000001.png"


def test_arrays_come_evenly(tmp_path: Path) -> None:
    made = pictures(5)
    reused = np.empty_like(made[0])

    def one_buffer() -> Iterator[Pixels]:
        for picture in made:
            reused[:] = picture
            yield reused

    assert texelflow.write(tmp_path / "a.mkv", one_buffer(), rate=12.5, codec="ffv1") == 5
    assert times_of(tmp_path / "a.mkv") == [Fraction(2 * n, 25) for n in range(5)]
    assert np.array_equal(frames_of(tmp_path / "a.mkv"), made)
    assert texelflow.write(tmp_path / "gray", [picture[..., 0] for picture in made]) == 5
    assert texelflow.write(tmp_path / "one.png", [np.asfortranarray(made[0])]) == 1
    with pytest.raises(texelflow.UsageError, match="a picture is NoneType, not an array"):
        texelflow.write(tmp_path / "none.mp4", [None])


def test_a_rate_may_be_any_number(tmp_path: Path) -> None:
    assert texelflow.write(tmp_path / "a.mkv", pictures(2), rate=np.float32(4)) == 2  # type: ignore[arg-type]
    assert times_of(tmp_path / "a.mkv") == [0, Fraction(1, 4)]


def test_transparency_is_kept_where_there_is_one_and_laid_over_black_elsewhere(tmp_path: Path) -> None:
    assert texelflow.write(tmp_path / "a.mov", pictures(3, 4)) == 3
    assert [frame[0, (4, 60), 3].tolist() for frame in frames_of(tmp_path / "a.mov", "rgba")] == [[0, 255]] * 3
    with pytest.warns(RuntimeWarning, match=r"a\.mp4: \.mp4 has no transparency, so pictures are laid over black"):
        texelflow.write(tmp_path / "a.mp4", pictures(3, 4))
    assert [np.abs(frame[0, (4, 60), 0] - [0.0, 20 + 30 * n]).max() <= 2 for n, frame in
            enumerate(frames_of(tmp_path / "a.mp4"))] == [True] * 3  # fmt: skip


@exhaustive
def test_cutouts_of_a_video_are_laid_over_black_where_there_is_no_transparency(tmp_path: Path) -> None:
    video = texelflow.video(DEMO_CLIP, effect="cutout", start=60, end=61, **ON_CPU)
    with pytest.warns(RuntimeWarning, match="laid over black"):
        assert texelflow.write(tmp_path / "cutout.mp4", video) == 2
    assert frames_of(tmp_path / "cutout.mp4")[0][:20].max() < 40  # nothing of the room


# What is interrupted --------------------------------------------------------------------------------------------------


def test_an_error_among_the_pictures_leaves_a_finished_file(tmp_path: Path) -> None:
    def failing() -> Iterator[Pixels]:
        yield from pictures(3)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        texelflow.write(tmp_path / "a.mp4", failing())
    assert len(frames_of(tmp_path / "a.mp4")) == 3


def test_ctrl_c_leaves_a_finished_file(tmp_path: Path) -> None:
    out = tmp_path / "a.mkv"

    def interrupt() -> None:
        while not out.exists() or out.stat().st_size < 50_000:
            time.sleep(0.005)
        _thread.interrupt_main()

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        texelflow.write(out, texelflow.video(DEMO_CLIP, effect="none", **ON_CPU), codec="ffv1")
    watcher.join()
    assert 0 < len(frames_of(out)) < 240
    assert not [thread for thread in threading.enumerate() if thread.name == "texelflow video"]


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "made", "options", "said"),
    [
        ("there.mp4", pictures(1), {}, "exists already; choose another name, or force=True to write over it"),
        ("a.gif", pictures(1), {}, "a video cannot end in '.gif'; its name must end in .mp4, "),
        ("no/a.mp4", pictures(1), {}, "there is no folder "),
        ("a.mp4", pictures(1), {"codec": "vp9"}, "codec vp9 does not go into .mp4"),
        ("a.mp4", pictures(1), {"codec": "h265"}, "codec h265: one of auto, h264, "),
        ("a.mp4", pictures(1), {"quality": 101}, "quality 101: a whole number from 0 to 100 is needed"),
        ("a.mp4", pictures(1), {"rate": 0}, "rate=0: pictures a second are needed"),
        ("a.mp4", pictures(1), {"like": "talk.mp4"}, "like='talk.mp4': what texelflow.video returned is needed"),
        ("a.mp4", pictures(1)[0], {}, "pictures are an iterable of arrays, not one ndarray; give a list: [picture]"),
        ("a.mp4", "talk.mp4", {}, "not a name; texelflow.video('talk.mp4') has a file's"),
        (pictures(1), "a.mp4", {}, "the path comes first: texelflow.write('a.mp4', pictures)"),
        (pictures(1), pictures(1), {}, "path=list: the name of a video file"),
        ("a.mp4", pictures(1), {"rate": "30"}, "rate='30': pictures a second are needed"),
        ("a.mp4", 3, {}, "pictures are an iterable of arrays, not one int"),
        ("a.mp4", [], {}, "there is no picture to write"),
        ("a.mp4", [np.zeros((4, 4, 3))], {}, "or (H, W) gray, not float64 (4, 4, 3); (frame * 255).clip"),
        ("a.mp4", [*pictures(1), *pictures(1, 4)], {}, "picture 1 is (48, 64, 4), and those before it are (48, 64, 3)"),
        ("a.png", pictures(2), {}, "a.png' takes one picture, and there are more; name a folder or a video"),
        ("", pictures(1), {}, "path='': the name of a video file, or of a folder for PNG files, is needed"),
        ("-", pictures(1), {}, "path '-': pipes are for the command line"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Any, made: Any, options: dict[str, Any], said: str
) -> None:
    (tmp_path / "there.mp4").write_bytes(b"kept")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(texelflow.UsageError) as refused:
        texelflow.write(name, made, **options)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert (tmp_path / "there.mp4").read_bytes() == b"kept"


def test_pictures_that_were_taken_all_at_once_have_no_times(uneven: Path, tmp_path: Path) -> None:
    video = texelflow.video(uneven, **ON_CPU)
    with pytest.raises(texelflow.UsageError, match="not taken one by one: give a generator"):
        texelflow.write(tmp_path / "a.mkv", list(video), like=video)


def test_a_video_is_not_written_over_itself(uneven: Path) -> None:
    with pytest.raises(texelflow.UsageError, match="that is the video itself"):
        texelflow.write(uneven, texelflow.video(uneven), force=True)
    assert uneven.stat().st_size


def test_what_is_there_is_written_over_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.mkv").write_bytes(b"other")
    assert texelflow.write(tmp_path / "a.mkv", pictures(2), force=True) == 2
    assert len(frames_of(tmp_path / "a.mkv")) == 2
