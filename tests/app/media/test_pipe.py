"""Recordings through pipes: the same frames as from files, refusals in one line, and nobody waits for ever."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.frame.looks.test_background import png
from tests.helpers.clips import Recipe, moving, number_of, numbered, write_clip
from tests.helpers.portable import needs_terminal
from tests.helpers.running import ROOT
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.media.container import PassingBytes, examine_container
from texelflow.app.media.pipe import PipeReader, open_pipe
from texelflow.app.media.recording import Recording
from texelflow.app.media.sources import FileSource
from texelflow.gpu_delegate.base.errors import MediaError

FRAGMENTED = {"movflags": "frag_keyframe+empty_moov"}
RECIPES = {
    "a.mkv": Recipe(sound="flac"),
    "a.webm": Recipe(codec="libvpx", codec_options={}),
    "a.ts": Recipe(codec="mpeg2video", codec_options={}),
    "a.y4m": Recipe(codec="wrapped_avframe", codec_options={}),
    "a.avi": Recipe(codec="mjpeg", pixel_format="yuvj420p", codec_options={}),
    "fragmented.mp4": Recipe(container_options=FRAGMENTED),
    "a.mjpeg": Recipe(codec="mjpeg", pixel_format="yuvj420p", codec_options={}),
}


@contextlib.contextmanager
def piped(data: bytes) -> Iterator[int]:
    """The end of a pipe that the bytes come out of; whether they are read to their end or not."""
    reader, writer = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(writer, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield reader
    finally:
        os.close(reader)
        thread.join()


def frames_of(source: Recording) -> list[tuple[int, int, float, int]]:
    with source:
        return [(frame.index, frame.pts, frame.time_ms, int(frame.rgba.sum())) for frame in source]


def refusal(data: bytes) -> str:
    with piped(data) as pipe, pytest.raises(MediaError) as caught:
        list(open_pipe(pipe))
    message = str(caught.value)
    assert message.isprintable()
    return message


class TestRecordings:
    @pytest.mark.parametrize("name", RECIPES)
    def test_frames_and_times_are_those_of_the_file(self, tmp_path: Path, name: str) -> None:
        path = write_clip(tmp_path / name, moving(20), RECIPES[name])
        for part in (1.0, 0.6):
            path.write_bytes(path.read_bytes()[: round(part * path.stat().st_size)])
            with piped(path.read_bytes()) as pipe:
                source = open_pipe(pipe)
                found = frames_of(source)
            file = FileSource(path)
            assert found == frames_of(file)
            assert (source.truncated, source.damaged_frames) == (file.truncated, file.damaged_frames)
            assert source.info.path == "-"

    def test_ranges_end_without_reading_the_rest(self, tmp_path: Path) -> None:
        data = write_clip(tmp_path / "a.y4m", moving(60, 640, 480), RECIPES["a.y4m"]).read_bytes()
        assert len(data) > 1 << 24
        with piped(data) as pipe, open_pipe(pipe, 2, 4) as source:
            assert [frame.index for frame in source] == [2, 3, 4]

    def test_what_is_behind_the_last_frame_is_read(self, tmp_path: Path) -> None:
        recipe = Recipe(container_options={"movflags": "faststart"})
        data = write_clip(tmp_path / "a.mp4", moving(5), recipe).read_bytes()
        free = (1 << 20).to_bytes(4, "big") + b"free"
        for behind, truncated in ((bytes((1 << 20) - 8), False), (bytes(1 << 19), True)):
            with piped(data + free + behind) as pipe:
                source = open_pipe(pipe)
                assert len(frames_of(source)) == 5
            assert (source.truncated is not None) == truncated

    def test_pictures_one_behind_the_other(self) -> None:
        pictures = [png(gray) for gray in numbered(6)]
        for end, expected, truncated in ((b"", 6, False), (pictures[0][:-9], 6, True), (b"what is this", 6, True)):
            with piped(b"".join(pictures) + end) as pipe:
                source = open_pipe(pipe, rate=Fraction(10))
                with source:
                    frames = list(source)
            assert [number_of(frame.rgba) for frame in frames] == list(range(expected))
            assert [frame.time_ms for frame in frames] == [100 * index for index in range(expected)]
            assert (source.truncated is not None) == truncated

    def test_a_file_may_be_standard_input(self, tmp_path: Path) -> None:
        path = write_clip(tmp_path / "a.mkv", moving(5))
        line = "from texelflow.app.media.media_inputs import open_input; print(len(list(open_input('-'))))"
        with path.open("rb") as file:
            done = subprocess.run([sys.executable, "-c", line], stdin=file, capture_output=True, cwd=ROOT, check=False)
        assert done.stdout == b"5\n", done.stderr


class TestRefusals:
    def test_mp4_with_its_index_at_the_end(self, tmp_path: Path) -> None:
        assert "fragmented" in refusal(write_clip(tmp_path / "a.mp4", moving(5)).read_bytes())
        damaged = write_clip(tmp_path / "b.mp4", moving(5), RECIPES["fragmented.mp4"]).read_bytes()[:40]
        assert "a damaged mp4" in refusal(damaged)

    def test_nothing_and_nonsense(self) -> None:
        assert "nothing came" in refusal(b"")
        assert "no video in a known format" in refusal(b"hello\n" * 100)
        assert "has no picture" in refusal(png(numbered(1)[0])[:-9])

    @needs_terminal
    def test_terminals(self) -> None:
        main, other = os.openpty()
        with pytest.raises(MediaError, match="no recording comes from"):
            open_pipe(other)
        os.close(main)
        os.close(other)

    def test_closed_streams(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        os.close(writer)
        with pytest.raises(MediaError, match="closed"):
            open_pipe(reader)


class TestWaiting:
    def test_interrupt_ends_whoever_waits(self, tmp_path: Path) -> None:
        """At the beginning, and in the middle of a recording whose end never comes."""
        data = write_clip(tmp_path / "a.ts", numbered(30), RECIPES["a.ts"]).read_bytes()
        reader, writer = os.pipe()
        os.write(writer, data[:60000])
        source, seen = open_pipe(reader), list[int]()
        thread = threading.Thread(target=lambda: seen.extend(frame.index for frame in source))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        source.interrupt()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        source.close()
        assert seen == list(range(len(seen)))
        assert seen
        assert source.truncated is None
        os.close(writer)
        os.close(reader)

    def test_little_is_read_ahead(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        source, written = PipeReader(reader), 0
        assert source.peek(0) == b""
        for _ in range(400):
            with contextlib.suppress(BlockingIOError):
                written += os.write(writer, bytes(1 << 16))
            threading.Event().wait(0.0005)
        assert written < 6 << 20
        assert source.take(1 << 16) == bytes(1 << 16)
        source.interrupt()
        assert source.read(1) == b""
        os.close(writer)
        os.close(reader)


@given(st.integers(0, 3000), st.integers(1, 700), st.sampled_from(["a.mkv", "fragmented.mp4", "a.ts"]))
def test_layout_of_what_passes_is_that_of_the_file(cut: int, portion: int, name: str) -> None:
    data = _CLIPS[name][:cut]
    passing = PassingBytes()
    for start in range(0, len(data), portion):
        passing.feed(data[start : start + portion])
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        assert passing.ended() == examine_container(file.name)


def _clips() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        names = ("a.mkv", "fragmented.mp4", "a.ts")
        return {name: write_clip(Path(folder) / name, numbered(3), RECIPES[name]).read_bytes() for name in names}


_CLIPS = _clips()
