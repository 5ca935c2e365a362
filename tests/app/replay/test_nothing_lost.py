"""Replays that end before their time, by signals, full disks and failures: what was written until then is whole."""

import contextlib
import json
import os
import re
import signal
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from time import sleep
from typing import Any

import av
import pytest

from tests.helpers.clips import Recipe, moving, packets, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.running import ROOT, Running, events_of, pictures_of, rows_of, small_disk, times_of
from texelflow.app.frame.stages.frame_pipeline import Stage
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.media.sources import VideoFrame
from texelflow.app.media.video_encoder import EncodedPicture, VideoEncoder
from texelflow.app.outputs.frame_outputs import Outputs
from texelflow.app.outputs.screenshots import Screenshots
from texelflow.app.session import session_opening as opening
from texelflow.gpu_delegate.targets.gl.context import Context

pytestmark = pytest.mark.gl

RATE, FRAMES = 30, 1200
UNDER_WAY = 8  # frames between the device and the file


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 s, which nobody waits for."""
    recipe = Recipe(sound="aac", codec_options={"crf": "30", "preset": "ultrafast"})
    return write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", moving(FRAMES), recipe)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2 s that do not compress well."""
    return write_clip(tmp_path_factory.mktemp("clip") / "short.mp4", moving(100, 160, 120))


def check_video(out: Path, rows: int, lost: int) -> None:
    """Holds the first frames of the clip with their times, all but `lost` of those that the log tells of."""
    times = times_of(out)
    if times:  # Matroska counts milliseconds, and what comes first may be sound
        shown = [float(time - times[0]) for time in times]
        assert shown == pytest.approx([index / RATE for index in range(len(times))], abs=0.001)
    assert rows - lost <= len(times) <= rows + UNDER_WAY


def check_pictures(folder: Path, rows: int, lost: int) -> None:
    """Holds the first frames, all but `lost`; none is half-written."""
    names = pictures_of(folder)
    assert names == [f"{index:06d}.png" for index in range(len(names))]
    assert rows - lost <= len(names) <= rows + UNDER_WAY


def outputs_in(folder: Path, out: str, log: str) -> list[object]:
    """Options for everything that a replay writes."""
    return ["--out", folder / out, "--log", folder / log, "--trace", folder / "t.json", "--masks", folder / "masks"]


def frames_in(trace: Path) -> set[int]:
    """Numbers of the frames that a trace tells of."""
    return {event["args"]["frame"] for event in events_of(trace) if "frame" in event.get("args", {})}


# Signals


@one_in(
    3,
    ("number", "code", "out", "log", "backend"),
    [
        (signal.SIGINT, 130, "out.mkv", "x.csv", "gl"),
        (signal.SIGTERM, 143, "out.mp4", "x.json", "cpu"),
        (signal.SIGHUP, 129, "out", "x.json", "cpu"),
    ],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_signal_finishes_all_files(
    number: int, code: int, out: str, log: str, backend: str, clip: Path, tmp_path: Path
) -> None:
    with Running("replay", clip, *outputs_in(tmp_path, out, log), "--backend", backend) as running:
        running.until(lambda: len(rows_of(tmp_path / log)) > 20)
        running.send(number)
        found, line = running.end()
    rows = len(rows_of(tmp_path / log))
    assert found == code
    assert line == f"texelflow: interrupted after {rows} frames; what was written is complete"
    assert 20 < rows < FRAMES
    assert frames_in(tmp_path / "t.json") == set(range(rows))
    assert len(pictures_of(tmp_path / "masks")) == rows
    if out == "out":
        assert len(pictures_of(tmp_path / out)) == rows
    else:
        check_video(tmp_path / out, rows, 0)
        times = times_of(tmp_path / out)
        assert len(times) == rows
        assert packets(tmp_path / out, "audio")[-1][0] <= times[-1] + Fraction(1, 10)
    if log.endswith(".json"):
        assert json.loads((tmp_path / log).read_text())["summary"]["interrupted"]


@one_in(
    3, ("out", "log", "backend"), [("out.mp4", "x.json", "cpu"), ("out.mkv", "x.csv", "gl"), ("out", "x.json", "cpu")]
)
def test_a_kill_loses_what_is_under_way_alone(out: str, log: str, backend: str, clip: Path, tmp_path: Path) -> None:
    options = [*outputs_in(tmp_path, out, log), "--backend", backend]
    with Running("replay", clip, *options) as running:
        running.until(lambda: len(rows_of(tmp_path / log)) > 40)
        running.send(signal.SIGKILL)
        assert running.end() == (-signal.SIGKILL, "")
    rows = len(rows_of(tmp_path / log))
    assert len(frames_in(tmp_path / "t.json")) >= rows - 1
    if out != "out":
        check_video(tmp_path / out, rows, UNDER_WAY)
    for folder in (tmp_path / "masks", tmp_path / "out"):
        if folder.exists():
            (folder / f".texelflow-{0:016x}.part").write_bytes(
                b"left behind"
            )  # as it is, if the kill comes at the right time
    with Running("replay", clip, "--to", 0, *options, "--force") as running:
        assert running.end() == (0, "")
    check_pictures(tmp_path / "masks", rows, UNDER_WAY)
    if out == "out":
        check_pictures(tmp_path / "out", rows, UNDER_WAY)


def test_a_second_ctrl_c_ends_at_once(clip: Path, tmp_path: Path) -> None:
    log = tmp_path / "x.json"
    with Running("replay", clip, *outputs_in(tmp_path, "out.mp4", "x.json"), "--backend", "cpu") as running:
        running.until(lambda: len(rows_of(log)) > 40)
        running.send(signal.SIGSTOP)  # so that both come at once
        running.send(signal.SIGINT)
        running.send(signal.SIGTERM)
        running.send(signal.SIGCONT)
        code, line = running.end()
    assert (code, line) in {(130, "texelflow: interrupted"), (143, "texelflow: interrupted")}
    rows = len(rows_of(log))
    check_video(tmp_path / "out.mp4", rows, UNDER_WAY)
    check_pictures(tmp_path / "masks", rows, UNDER_WAY)


@exhaustive
def test_a_pipe_that_stalls_ends_with_the_first_signal(tmp_path: Path) -> None:
    """In the middle of a recording whose end never comes: what came is whole."""
    recipe = Recipe(codec="mpeg2video", codec_options={})
    data = write_clip(tmp_path / "a.ts", moving(60), recipe).read_bytes()
    out, log = tmp_path / "out.mkv", tmp_path / "x.json"
    reader, writer = os.pipe()
    os.write(writer, data)
    with Running("replay", "-", "--out", out, "--log", log, "--backend", "cpu", stdin=reader) as running:
        running.until(lambda: len(rows_of(log)) > 50)
        sleep(0.7)  # and nothing comes any more
        running.send(signal.SIGTERM)
        code, line = running.end()
    os.close(writer)
    os.close(reader)
    rows = len(rows_of(log))
    assert (code, line) == (143, f"texelflow: interrupted after {rows} frames; what was written is complete")
    check_video(out, rows, 0)


@one_in(3, "library", ["multiarray_umath", "libavcodec", "llvm"])
def test_signals_before_the_first_frame_leave_what_was_there(library: str, clip: Path, tmp_path: Path) -> None:
    """While modules are loaded, a device is opened and shaders are compiled."""
    out = tmp_path / "out.mp4"
    out.write_bytes(b"an older recording")
    with Running("replay", clip, "--out", out, "--force", "--backend", "gl") as running:
        maps = Path(f"/proc/{running.process.pid}/maps")
        running.until(lambda: library in maps.read_text().casefold())
        running.send(signal.SIGINT)
        assert running.end() == (130, "texelflow: interrupted")
    assert out.read_bytes() == b"an older recording"


@pytest.mark.parametrize(
    "outputs",
    [
        ("--log", "link.json"),
        ("--trace", "link.json"),
        ("--out", "clip.mp4"),
        ("--log", "x.json", "--trace", "x.json"),
        ("--out", "folder", "--masks", "./folder"),
    ],
)
def test_no_output_is_written_over_the_recording_or_another_output(
    outputs: tuple[str, ...], short: Path, tmp_path: Path, texelflow: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(short.read_bytes())
    (tmp_path / "link.json").symlink_to(clip)
    monkeypatch.chdir(tmp_path)
    complaint = texelflow("replay", clip, *outputs, "--backend", "cpu").complaint
    assert "choose another name" in complaint
    assert clip.read_bytes() == short.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["clip.mp4", "link.json"]


def test_nothing_is_replaced_before_there_is_a_frame(short: Path, tmp_path: Path, texelflow: Command) -> None:
    names = ("out.mp4", "x.json", "t.json")
    for name in names:
        (tmp_path / name).write_bytes(b"older")
    outputs = outputs_in(tmp_path, "out.mp4", "x.json")
    command = "replay", short, "--from", 999, *outputs, "--backend", "cpu", "--force"
    assert "no frame in the range" in texelflow(*command).complaint
    assert [(tmp_path / name).read_bytes() for name in names] == [b"older"] * 3


# Full disks


@one_in(
    4,
    ("option", "name", "size_bytes", "kept"),
    [
        ("--out", "out.mp4", 20480, lambda path: len(times_of(path))),
        ("--out", "out.mkv", 20480, lambda path: len(times_of(path))),
        ("--out", "out", 204_800, lambda path: len(pictures_of(path))),
        ("--masks", "masks", 40_960, lambda path: len(pictures_of(path))),
        ("--log", "x.json", 8192, lambda path: len(rows_of(path))),
        ("--log", "x.csv", 4096, lambda path: len(rows_of(path))),
        ("--trace", "t.json", 8192, lambda path: len(events_of(path))),
    ],
    ids=["mp4", "mkv", "pictures", "masks", "json", "csv", "trace"],
)
def test_a_full_disk(
    option: str, name: str, size_bytes: int, kept: Callable[[Path], int], short: Path, tmp_path: Path,
    texelflow: Command,
) -> None:  # fmt: skip
    with small_disk(tmp_path / "disk", size_bytes) as (disk, is_disk):
        if "." not in name and not is_disk:
            pytest.skip("many small files fill a disk, and none can be mounted here")
        line = texelflow("replay", short, option, disk / name, "--backend", "cpu").complaint
        assert name in line
        assert "whole" in line or "frames were kept" in line
        assert 0 < kept(disk / name) < 1000
        if is_disk:
            (disk / name).rename(disk / "kept")
            with (disk / "fill").open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
            assert name in texelflow("replay", short, option, disk / name, "--backend", "cpu").complaint
            left = [
                path for path in disk.rglob("*") if path.name not in ("kept", "fill") and path.parent.name != "kept"
            ]
            assert all(path.is_dir() for path in left), left


def test_a_disk_that_is_full_when_a_recording_is_finished(short: Path, tmp_path: Path, texelflow: Command) -> None:
    whole = tmp_path / "whole.mp4"
    texelflow("replay", short, "--out", whole, "--backend", "cpu")
    with small_disk(tmp_path / "disk", 4096 * (whole.stat().st_size // 4096)) as (disk, _):
        line = texelflow("replay", short, "--out", disk / "out.mp4", "--backend", "cpu").complaint
        assert "frames were kept" in line
        assert len(times_of(disk / "out.mp4")) >= 45


def test_a_screenshot_on_a_full_disk(context: Context, tmp_path: Path) -> None:
    target = OffscreenTarget(context, (2048, 2048))
    with small_disk(tmp_path / "disk", 1) as (disk, _):
        shots = Screenshots(context, target, Path("clip.mp4"), disk)
        shots.take(7, alpha=False)
        lines: list[str] = []
        for _ in range(1000):
            lines += shots.collect()
            if not shots.pending:
                break
            sleep(0.01)
        shots.close()
        assert [name for name in lines if "clip-000007.png' cannot be written" in name] == lines != []
        assert os.listdir(disk) == []
    target.release()


# Failures in the middle


@exhaustive
def test_an_error_of_opengl(short: Path, tmp_path: Path, texelflow: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Faulty(Outputs):
        def __init__(self, context: Context, *rest: Any, **more: Any) -> None:
            super().__init__(context, *rest, **more)
            take = self.stage.run

            def fail(frame: VideoFrame) -> None:
                take(frame)
                if frame.index == 20:
                    context.gl.glEnable(0xFFFF)

            self.stage = Stage("faulty", fail)

    monkeypatch.setattr(opening, "Outputs", Faulty)
    line = texelflow("replay", short, *outputs_in(tmp_path, "out.mp4", "x.json"), "--backend", "gl").complaint
    assert "OpenGL failed while running stage faulty of frame 20: " in line
    rows = len(rows_of(tmp_path / "x.json"))
    assert rows == 20
    check_video(tmp_path / "out.mp4", rows, UNDER_WAY)
    check_pictures(tmp_path / "masks", rows, UNDER_WAY)
    events_of(tmp_path / "t.json")


@exhaustive
@one_in(2, "suffix", [".mp4", ".mkv"])
def test_a_recording_that_vanishes_while_it_is_read(suffix: str, tmp_path: Path) -> None:
    clip = write_clip(tmp_path / f"clip{suffix}", moving(200, 160, 120))
    log, out = tmp_path / "x.json", tmp_path / "out.mp4"
    with Running("replay", clip, *outputs_in(tmp_path, "out.mp4", "x.json"), "--backend", "cpu") as running:
        running.until(lambda: len(rows_of(log)) > 5)
        os.truncate(clip, clip.stat().st_size // 2)
        code, line = running.end()
    assert code == 3
    assert "cut off" in line
    rows = len(rows_of(log))
    assert 5 < rows < 200
    check_video(out, rows, 0)
    check_pictures(tmp_path / "masks", rows, 0)


@one_in(2, "out", ["out.mp4", "out.mkv"])
def test_an_encoder_that_fails(
    out: str, short: Path, tmp_path: Path, texelflow: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, taken = VideoEncoder._encode, 0

    def fail(encoder: VideoEncoder, frame: av.VideoFrame) -> EncodedPicture:
        nonlocal taken
        taken += 1
        if taken == 51:
            raise av.FFmpegError(542398533, "Generic error in an external library")
        return encode(encoder, frame)

    monkeypatch.setattr(VideoEncoder, "_encode", fail)
    line = texelflow("replay", short, *outputs_in(tmp_path, out, "x.json"), "--backend", "cpu").complaint
    assert "(Generic error in an external library); 50 of 51 frames were kept" in line
    assert len(times_of(tmp_path / out)) == 50
    rows = len(rows_of(tmp_path / "x.json"))
    check_pictures(tmp_path / "masks", rows, UNDER_WAY)


# Clocks


@pytest.mark.parametrize("folder", ["app", "gpu_delegate"])
def test_nothing_asks_what_time_it_is(folder: str) -> None:
    """The clock on the wall may be set back; durations, time stamps and waits come from monotonic clocks."""
    walls = re.compile(
        r"\b(time\.time(_ns)?\(|from time import .*\btime(_ns)?\b|datetime|CLOCK_REALTIME|localtime|gmtime)"
    )
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 20
    for file in files:
        # Drivers date sound by that clock: it is asked how far it is from ours. Stores date files, and a line of an
        # archive's manifest says when it was written: both are only told.
        if file.name not in ("sound_device.py", "stores.py", "manifest_lines.py"):
            assert not walls.search(file.read_text(encoding="utf-8")), file
