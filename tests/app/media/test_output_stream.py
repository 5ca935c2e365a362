"""Recordings and pictures written to real pipes: the reader gets every frame at once, and may leave."""

import contextlib
import os
import pty
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from tests.helpers.clips import Recipe, moving, number_of, numbered, packets, write_clip
from tests.helpers.portable import needs_terminal
from tests.helpers.running import ROOT
from texelflow.app.media.output_stream import OutputStream, standard_output
from texelflow.app.media.recorder import Recorder
from texelflow.app.media.sources import FileSource
from texelflow.gpu_delegate.base.errors import OutputError, UsageError

RATE = Fraction(30)
PRODUCER = """
    import sys
    from fractions import Fraction
    import numpy as np
    from texelflow.app.media.output_stream import standard_output
    from texelflow.app.media.png import PngStream
    from texelflow.app.media.recorder import Recorder
    from texelflow.app.streams import guarded
    from texelflow.gpu_delegate.base.errors import OutputError
    kind, frames, *sound = sys.argv[1:]
    def make():
        stream = standard_output()
        if kind == "png":
            return PngStream(stream)
        audio = sound[0] if sound else None
        return Recorder(stream, 64, 48, Fraction(1, 30), Fraction(30), audio_from=audio, codec=kind, made_by="test")
    with guarded():
        try:
            with make() as writer:
                for index in range(int(frames)):
                    rgba = np.full((48, 64, 4), 20 + 6 * (index % 36), np.uint8)
                    rgba[..., 3] = 100
                    writer.write(rgba, index)
        except BrokenPipeError:
            print(f"left after {writer.frames > 0}", file=sys.stderr)
        except OutputError as error:
            print(error, file=sys.stderr)
"""


def produced(*arguments: object, out: Any = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", textwrap.dedent(PRODUCER), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.PIPE)


@pytest.mark.parametrize("codec", ["auto", "vp9"])
def test_a_pipe_is_played_while_it_is_written(codec: str) -> None:
    with produced(codec, 36) as process, av.open(process.stdout, format="matroska") as container:
        frames = list(container.decode(video=0))
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
    assert [number_of(frame.to_ndarray(format="rgb24")) for frame in frames] == list(range(36))
    assert [round(float(frame.time) * 30) for frame in frames if frame.time is not None] == list(range(36))


def test_a_pipe_has_the_sound_and_may_be_kept_as_a_file(tmp_path: Path) -> None:
    clip, kept = write_clip(tmp_path / "in.mp4", moving(30), Recipe(sound="aac")), tmp_path / "kept.mkv"
    with kept.open("wb") as file, produced("auto", 30, clip, out=file) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert [data for _, data in packets(kept, "audio")] == [data for _, data in packets(clip, "audio")]
    with FileSource(kept) as source:
        assert [number_of(frame.rgba) for frame in source] == list(range(30))
    assert source.truncated is None


def test_pictures_come_one_after_the_other() -> None:
    with produced("png", 10) as process, av.open(process.stdout, format="png_pipe") as container:
        frames = [frame.to_ndarray(format="rgba") for frame in container.decode(video=0)]
    assert process.returncode == 0
    assert [number_of(frame) for frame in frames] == list(range(10))
    assert all((frame[..., 3] == 100).all() for frame in frames)


@pytest.mark.parametrize("kind", ["auto", "png"])
def test_a_reader_that_leaves_ends_the_run(kind: str) -> None:
    with produced(kind, 1_000_000) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(3000)) == 3000
        process.stdout.close()
        assert process.stderr.read() == b"left after True\n"
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    with open("/dev/full", "wb") as full, produced("auto", 10, out=full) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b"standard output cannot be written: no space left on device\n"


def test_every_frame_is_in_the_pipe_when_write_returns(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    read, seen = tmp_path / "read.mkv", b""
    with open(writing, "wb") as file, Recorder(OutputStream(file), 64, 48, Fraction(1, 30), RATE) as recorder:
        for index, rgb in enumerate(numbered(5)):
            recorder.write(np.dstack([rgb, rgb[..., 0]]), index)
            seen += os.read(reading, 1 << 16)
            read.write_bytes(seen)
            with FileSource(read) as source:
                assert [number_of(frame.rgba) for frame in source] == list(range(index + 1))
    os.close(reading)


@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_stream_takes_all_bytes_or_says_why_not(unbuffered: bool) -> None:
    reading, writing = os.pipe()
    data = bytes(range(256)) * 100
    file = open(writing, "wb", buffering=0 if unbuffered else -1)  # noqa: SIM115  # its end fails
    stream = OutputStream(file)
    stream.append(data)
    assert os.read(reading, 1 << 16) == data
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        stream.append(data)
    assert (stream.size_bytes, stream.largest_bytes) == (25600, 25600)
    with contextlib.suppress(BrokenPipeError):
        file.close()
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OutputError, match="no space left"):
        OutputStream(full).append(data)


@needs_terminal
def test_a_terminal_is_no_place_for_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = pty.openpty()
    with open(there, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        with pytest.raises(UsageError, match="--out -: standard output is a terminal"):
            standard_output()
    os.close(here)


def test_a_closed_stream_is_no_place_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UsageError, match="--out -: standard output is closed"):
        standard_output()


def test_transparency_in_a_pipe_is_refused() -> None:
    with open(os.devnull, "wb") as nowhere, pytest.raises(UsageError, match="has no transparency"):
        Recorder(OutputStream(nowhere), 64, 48, Fraction(1, 30), RATE, alpha=True)
