"""Recordings are killed and their disks fill: every frame that was taken is in a file that plays."""

import errno
import random
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from time import sleep

import av
import numpy as np
import pytest

from tests.helpers.clips import Recipe, number_of, numbered, packets, write_clip
from tests.helpers.markers import one_in
from tests.helpers.running import small_disk, times_of
from texelflow.app.media import growing_file
from texelflow.app.media.growing_file import GrowingFile
from texelflow.app.media.mp4 import Mp4Muxer
from texelflow.app.media.muxer import Muxer, Packet
from texelflow.app.media.recorder import Recorder
from texelflow.app.media.sources import FileSource
from texelflow.gpu_delegate.base.errors import MediaError

SUFFIXES = ["mp4", "mov", "mkv"]
FULL_BYTES = 200_000
SIZE = (160, 120)


def in_subprocess(body: str, *arguments: object) -> "subprocess.Popen[str]":
    code = textwrap.dedent(body)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def numbers_in(path: Path) -> list[int]:
    """Which frames of tests.helpers.clips.numbered a file shows."""
    with FileSource(path) as source:
        return [number_of(frame.rgba) for frame in source]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """5 s with sound, of which each frame can be told from the others."""
    frames = [numbered(36)[index % 36] for index in range(150)]
    return write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", frames, Recipe(sound="aac"))


def copy(clip: Path, out: Path, frames: int, sound: bool) -> Iterator[int]:
    """Record the first frames of a clip; how many were taken, after each of them."""
    with FileSource(clip, 0, frames - 1) as source:
        info = source.info
        audio = clip if sound else None
        with Recorder(
            out, info.width, info.height, info.time_base, Fraction(30), audio_from=audio, audio_cut=True
        ) as recorder:
            for frame in source:
                recorder.write(frame.rgba, frame.pts)
                yield recorder.frames


# Killed


@one_in(4, "sound", [False, True])
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_every_state_of_the_file_plays(
    suffix: str, sound: bool, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill leaves what one of the writes has left, or a part of the next one, also while the file is finished."""
    states: list[tuple[int, bytes]] = []
    write, taken = GrowingFile._write, 0
    out, left = tmp_path / f"out.{suffix}", tmp_path / f"left.{suffix}"

    def watched(file: GrowingFile, offset: int, data: bytes) -> None:
        write(file, offset, data)
        states.append((taken, out.read_bytes()))

    monkeypatch.setattr(GrowingFile, "_write", watched)
    recording = copy(clip, out, 20, sound)
    while taken < 20:
        taken = next(recording)
    assert list(recording) == []  # it is finished
    choose, before = random.Random(5), b""
    for count, state in states:
        parts = [state[:end] for end in sorted(choose.randrange(len(before), len(state) + 1) for _ in range(2))]
        for data in [*parts, state] if count else []:
            left.write_bytes(data)
            numbers = numbers_in(left)
            assert numbers[:count] == list(range(count))
            assert len(numbers) <= count + 1
        before = state
    assert len(states) > 21  # the index as well
    assert numbers_in(out) == list(range(20))


UNFINISHED = """
    import os, sys, time
    from fractions import Fraction
    import numpy as np
    from texelflow.app.media.recorder import Recorder
    path, pause_s, *sound = sys.argv[1:]
    frame = np.full((48, 64, 4), 255, np.uint8)
    with Recorder(path, 64, 48, Fraction(1, 30), Fraction(30), audio_from=sound[0] if sound else None) as recorder:
        for index in range(100_000):
            frame[..., :3] = 20 + 6 * (index % 36)
            recorder.write(frame, index)
            os.write(1, b".")
            time.sleep(float(pause_s))
"""


@one_in(
    3,
    ("suffix", "sound", "pause_s", "most_s"),
    [
        ("mp4", False, 0.0, 1.0),
        ("mkv", True, 0.0, 1.0),
        ("mp4", True, 0.2, 1.0),  # 5 frames a second
        ("mkv", False, 0.2, 1.0),
        ("mov", False, 1.0, 0.2),  # the first frame alone
        ("mkv", True, 1.0, 0.2),
    ],
)
def test_a_kill_loses_no_frame_that_was_taken(
    suffix: str, sound: bool, pause_s: float, most_s: float, clip: Path, tmp_path: Path
) -> None:
    path = tmp_path / f"killed.{suffix}"
    process = in_subprocess(UNFINISHED, path, pause_s, *([clip] if sound else []))
    assert process.stdout is not None
    taken = process.stdout.read(1)
    sleep(random.Random(f"{suffix} {sound} {pause_s}").uniform(0, most_s))
    process.kill()
    taken += process.stdout.read()  # communicate() would leave out what was read ahead
    process.communicate()
    numbers = numbers_in(path)
    assert len(taken) <= len(numbers) <= len(taken) + 1
    assert numbers == [index % 36 for index in range(len(numbers))]


def test_ctrl_c_finishes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "stopped.mp4"
    process = in_subprocess(UNFINISHED, path, 0.0)
    assert process.stdout is not None
    taken = process.stdout.read(100)
    process.send_signal(signal.SIGINT)
    taken += process.communicate()[0]
    assert len(times_of(path)) >= len(taken) >= 100


# Finished


def is_finished(path: Path) -> bool:
    """Whether the file has an index over all its frames, none left over from its making."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        if path.suffix == ".mkv":
            return container.duration is not None and b"\x1c\x53\xbb\x6b" in path.read_bytes()[-5000:]
        return box_kinds(path) == [b"ftyp", b"mdat", b"moov"] and stream.frames == len(times_of(path))


def box_kinds(path: Path) -> list[bytes]:
    """Of the boxes that an mp4 consists of."""
    data, start, kinds = path.read_bytes(), 0, []
    while start < len(data):
        size_bytes, kind = int.from_bytes(data[start : start + 4], "big"), data[start + 4 : start + 8]
        kinds.append(kind)
        start += int.from_bytes(data[start + 8 : start + 16], "big") if size_bytes == 1 else size_bytes
    return kinds


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_finished_file_has_an_index_and_is_sought_in(suffix: str, clip: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    assert list(copy(clip, out, 100, sound=True))[-1] == 100
    assert is_finished(out)
    with av.open(str(out)) as container:
        assert container.duration == pytest.approx(100 / 30 * 1e6, abs=50_000)
        stream = container.streams.video[0]
        assert stream.time_base
        container.seek(round(64 / 30 / stream.time_base), stream=stream)
        packet = next(container.demux(stream))
        assert packet.is_keyframe
        assert packet.pts is not None
        assert float(packet.pts * stream.time_base) == pytest.approx(60 / 30, abs=0.05)  # every fifteenth is one
    assert len(packets(out, "audio")) >= 150


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_the_index_is_no_larger_than_the_room_that_was_reserved(
    suffix: str, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[tuple[int, int]] = []

    def watched(end: Callable[[Muxer, GrowingFile, bytes], None]) -> Callable[[Muxer, GrowingFile, bytes], None]:
        def measured(muxer: Muxer, file: GrowingFile, kept: bytes) -> None:
            before, promised = file.size_bytes, muxer._ending_bytes()
            end(muxer, file, kept)
            ended.append((file.size_bytes - before, promised))

        return measured

    for kind in Muxer.__subclasses__():
        monkeypatch.setattr(kind, "_end", watched(kind._end))
    for frames, sound in ((1, False), (1, True), (150, True)):
        list(copy(clip, tmp_path / f"out.{suffix}", frames, sound))
    with Recorder(tmp_path / f"vfr.{suffix}", 64, 48, Fraction(1, 90_000), Fraction(30)) as recorder:
        for index in range(200):  # no two of them last as long
            recorder.write(np.full((48, 64, 4), index, np.uint8), 3000 * index + index * index)
    assert len(ended) == 4
    assert all(0 < index_bytes <= promised for index_bytes, promised in ended), ended


def test_frames_beyond_4_gb_are_found(clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hole in the middle of the file, which takes no room."""
    part, offsets = Mp4Muxer._part, list[int]()

    def far(muxer: Mp4Muxer, packets: Sequence[Packet], offset: int) -> bytes:
        offsets.append(offset)
        if len(offsets) == 10:
            assert isinstance(muxer._file, GrowingFile)
            muxer._file.size_bytes += 5 << 30
            muxer._file._reserved_bytes = sys.maxsize
            offset = muxer._file.size_bytes
        return part(muxer, packets, offset)

    monkeypatch.setattr(Mp4Muxer, "_part", far)
    out = tmp_path / "large.mp4"
    list(copy(clip, out, 20, sound=True))
    assert out.stat().st_size > 5 << 30 > 1000 * out.stat().st_blocks
    assert numbers_in(out) == list(range(20))


# Full disks


def fill(path: Path, sound: Path | None, made_by: str | None = None) -> tuple[int, int, str]:
    """Record noise until the disk is full: how many frames were handed over, how many counted, and the complaint."""
    noise = np.random.default_rng(0)
    with Recorder(path, *SIZE, Fraction(1, 30), Fraction(30), audio_from=sound, made_by=made_by) as recorder:
        for index in range(3000):
            try:
                recorder.write(noise.integers(0, 255, (SIZE[1], SIZE[0], 4), np.uint8), index)
            except MediaError as error:
                return index + 1, recorder.frames, str(error)
    raise AssertionError("the disk took everything")


def check_full(path: Path, handed: int, frames: int, complaint: str) -> None:
    """All frames are there but the last at most, and what the complaint says is true."""
    assert len(times_of(path)) == frames >= 3
    assert handed - frames <= 1
    assert "disk is full" in complaint
    assert re.search(r"(\d+) of (\d+) frames were kept", complaint)
    assert f"; {frames} of {handed} frames were kept; " in complaint


@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_full_disk_has_all_frames_and_an_index(suffix: str, sound: bool, clip: Path, tmp_path: Path) -> None:
    source = clip if sound else None
    with small_disk(tmp_path / "disk", FULL_BYTES) as (disk, _):
        out = disk / f"out.{suffix}"
        handed, frames, complaint = fill(out, source)
        check_full(out, handed, frames, complaint)
        assert is_finished(out)
        taken = packets(out, "video")
        assert out.stat().st_blocks * 512 <= out.stat().st_size + 4096  # no more than it needs
        assert out.stat().st_size > FULL_BYTES * 0.6
    roomy = tmp_path / f"roomy.{suffix}"
    with Recorder(roomy, *SIZE, Fraction(1, 30), Fraction(30), audio_from=source) as recorder:
        noise = np.random.default_rng(0)
        for index in range(frames):
            recorder.write(noise.integers(0, 255, (SIZE[1], SIZE[0], 4), np.uint8), index)
    assert taken == packets(roomy, "video")


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_disk_that_sound_fills_at_the_end_has_all_frames_and_an_index(
    suffix: str, clip: Path, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 40_960) as (disk, _):
        out = disk / f"out.{suffix}"
        recorder = Recorder(out, 64, 48, Fraction(1, 15360), Fraction(30), audio_from=clip)
        for index in range(20):
            recorder.write(np.full((48, 64, 4), 20 + 6 * index, np.uint8), 512 * index)
        with pytest.raises(MediaError, match="disk is full; 20 of 20 frames were kept"):
            recorder.close()
        assert numbers_in(out) == list(range(20))
        assert is_finished(out)
        heard = packets(out, "audio")
    assert 40 < len(heard) < len(packets(clip, "audio"))


@one_in(2, "suffix", ["mp4", "mkv"])
def test_a_limit_of_the_size_of_files_is_a_full_disk(suffix: str, tmp_path: Path) -> None:
    body = """
        import resource, sys
        from pathlib import Path
        from tests.app.media.test_recorder_ends import fill
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        print(*fill(Path(sys.argv[1]), None), sep="\\n")
    """
    path = tmp_path / f"full.{suffix}"
    output, errors = in_subprocess(body, path).communicate()
    assert errors == ""
    handed, frames, complaint = output.splitlines()
    check_full(path, int(handed), int(frames), complaint)
    assert is_finished(path)


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_where_no_room_can_be_reserved_a_full_disk_costs_the_index_alone(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_file, "_reserving", lambda: lambda *_: errno.EOPNOTSUPP)
    with small_disk(tmp_path / "disk", FULL_BYTES) as (disk, _):
        out = disk / f"out.{suffix}"
        check_full(out, *fill(out, None))


def test_a_disk_without_room_for_the_first_frame_has_no_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4096) as (disk, _):
        with (
            pytest.raises(MediaError, match="disk is full; choose"),
            Recorder(disk / "out.mp4", 640, 480, Fraction(1, 30), Fraction(30)) as recorder,
        ):
            recorder.write(np.random.default_rng(0).integers(0, 255, (480, 640, 4), np.uint8), 0)
        assert not list(disk.iterdir())
