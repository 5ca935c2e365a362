"""However slow the encoders are, no more frames are in memory than is stated."""

import gc
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest

from tests.helpers.clips import moving, write_clip
from tests.helpers.markers import exhaustive
from tests.model_files.frame_models import class_network
from texelflow.app.console import Console
from texelflow.app.frame.textures.readback import ReadBytes
from texelflow.app.media.media_inputs import open_input
from texelflow.app.outputs.file_sinks import VideoSink
from texelflow.app.outputs.output_worker import OutputWorker
from texelflow.app.outputs.picture_readers import DeviceReader, FrameStamp, ReadyReader
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.replay.held_frames import most_decoded, most_frame_bytes, most_frames, most_written
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.gpu_delegate.base.errors import MediaError

pytestmark = pytest.mark.gl

FRAMES = 40


@pytest.fixture
def options(tmp_path: Path) -> ReplayOptions:
    (tmp_path / "classes.tflite").write_bytes(class_network((48, 32)))
    clip = write_clip(tmp_path / "clip.mp4", moving(FRAMES, 64, 48))
    named = {"out": str(tmp_path / "out.mp4"), "masks": str(tmp_path / "masks.mkv")}
    return ReplayOptions(clip, {**named, "model": str(tmp_path / "classes.tflite"), "channel": "1", "backend": "cpu"})


def _on_the_way(worker: OutputWorker) -> int:
    """Frames that are read, or are to be, and are not written."""
    reader = worker._reader
    if isinstance(reader, DeviceReader):
        return len(reader._ring._waiting) + worker._worker.waiting
    assert isinstance(reader, ReadyReader), "the CPU draws"
    return len(reader.ready) + worker._worker.waiting


@exhaustive
@pytest.mark.parametrize("backend", ["cpu", "gl"])
def test_slow_encoders(backend: str, options: ReplayOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    options = replace(options, flags={**options.flags, "backend": backend})
    write = VideoSink.write

    def slow(sink: VideoSink, stamp: FrameStamp, data: ReadBytes) -> None:
        sleep(0.02)
        write(sink, stamp, data)

    monkeypatch.setattr(VideoSink, "write", slow)
    decoded, written = list[int](), list[int]()

    def look(done: int, total: int) -> None:
        if done % 2:
            living = gc.get_objects()
            decoded.append(sum(isinstance(each, VideoFrame) for each in living))
            workers = [each for each in living if isinstance(each, OutputWorker)]
            written.extend(_on_the_way(each) for each in workers)

    gc.collect()  # what other tests have left
    assert replay(options, Console(quiet=True), look)[0]["frames"] == FRAMES
    assert len(decoded) == FRAMES // 2
    assert most_decoded() / 2 < max(decoded), decoded
    assert max(decoded) <= most_decoded()
    assert 0 < max(written) <= most_written()
    assert most_frames(2) == most_decoded() + 3 + 2 * most_written()


def test_none_stays_behind(options: ReplayOptions) -> None:
    """Whether or not Python has looked for what refers to itself since: recordings come one after the other."""
    bad = replace(options, file=options.file.with_name("bad.mkv"), flags={**options.flags, "out": ""}, force=True)
    data = write_clip(options.file.with_name("whole.mkv"), moving(FRAMES, 64, 48)).read_bytes()
    bad.file.write_bytes(data[: len(data) // 2] + bytes(len(data) // 2))
    gc.collect()
    gc.disable()
    try:
        for each in (options, bad):
            replay(each, Console(quiet=True))
            assert not [each for each in gc.get_objects() if isinstance(each, VideoFrame)]
    finally:
        gc.enable()


def test_frames_that_are_too_large_are_refused(options: ReplayOptions) -> None:
    with open_input(options.file) as clip:
        needed = most_frame_bytes(clip.format, 2)
    with pytest.raises(MediaError, match="frames of 64x48 would take"):
        replay(replace(options, most_frame_bytes=needed - 1), Console(quiet=True))
    assert replay(replace(options, most_frame_bytes=needed), Console(quiet=True))[0]["frames"] == FRAMES
