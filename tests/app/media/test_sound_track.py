"""Sound is encoded while pictures are recorded: in step, whole after a kill, with silence where none comes."""

import shutil
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.helpers.clicks import FPS, clicks_s, flashes_s, heard, offsets_ms, picture, sound, sound_sink
from texelflow.app.media.sound_blocks import RATE_HZ, SoundBlock, SoundHistory
from texelflow.app.media.sound_encoder import SoundTrack
from texelflow.app.outputs.file_sinks import VideoSink
from texelflow.app.outputs.picture_readers import FrameStamp

EPOCH_NS = 77_000_000_000
_BLOCK = RATE_HZ // 100


def blocks(seconds: float, rate_hz: float = RATE_HZ) -> list[SoundBlock]:
    """Clicks by a clock of that rate, with true times."""
    return [
        SoundBlock(EPOCH_NS + round(first / rate_hz * 1e9), sound(first, _BLOCK, rate_hz))
        for first in range(0, int(seconds * rate_hz), _BLOCK)
    ]


def recorded(
    path: Path, seconds: float, heard: Iterable[SoundBlock], begin_s: float = 0.0, late_s: float = -0.1
) -> tuple[VideoSink, SoundHistory]:
    """A recording of so long in one go; sound comes so much later than its pictures."""
    history, waiting = SoundHistory(expected=True), list(heard)
    sink = sound_sink(path, SoundTrack(history, EPOCH_NS))
    for index in range(round(seconds * FPS)):
        at_s = begin_s + index / FPS
        while waiting and waiting[0].end_ns <= EPOCH_NS + (at_s - late_s) * 1e9:
            history.put([waiting.pop(0)])
        sink.write(FrameStamp(index, round(at_s * 1e6)), picture(at_s))
    history.put(waiting[:100])
    return sink, history


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv"])
def test_sound_and_picture_are_in_step(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"take.{suffix}"
    sink, _ = recorded(path, 1.5, blocks(4), begin_s=1.3)
    assert sink.close(True) == f"written: {path} (1.5 s, 45 frames, with sound)"
    offsets = offsets_ms(path)
    assert len(offsets) == 3
    assert max(map(abs, offsets)) < 2
    track = heard(path)
    assert clicks_s(track)[0] == pytest.approx(0.2, abs=0.002), "the sound begins with the first picture"
    assert track.shape[1] / RATE_HZ == pytest.approx(1.5, abs=0.03), "and ends with the last one"
    with av.open(str(path)) as container:
        (stream,) = container.streams.audio
        assert (stream.codec_context.name, stream.rate, stream.channels) == ("aac", RATE_HZ, 2)
        times = [float(packet.dts * packet.time_base) for packet in container.demux() if packet.dts is not None]
    assert max(np.maximum.accumulate(times) - times) < 0.2, "interleaved"


def test_what_is_muted_is_silence(tmp_path: Path) -> None:
    path, history, now = tmp_path / "take.mp4", SoundHistory(expected=True), [0.0]
    sink, waiting = sound_sink(path, SoundTrack(history, EPOCH_NS, lambda: 0.75 < now[0] < 1.75)), blocks(3)
    for index in range(round(2.5 * FPS)):
        now[0] = index / FPS
        while waiting and waiting[0].at_ns <= EPOCH_NS + now[0] * 1e9:
            history.put([waiting.pop(0)])
        sink.write(FrameStamp(index, round(now[0] * 1e6)), picture(now[0]))
    sink.close(True)
    assert [round(click, 1) for click in clicks_s(heard(path))] == [0.0, 0.5, 2.0]
    assert heard(path).shape[1] / RATE_HZ == pytest.approx(2.5, abs=0.05)


def test_a_killed_recording_has_its_sound_up_to_the_last_frame(tmp_path: Path) -> None:
    for suffix in ("mp4", "mkv"):
        path, left = tmp_path / f"take.{suffix}", tmp_path / f"left.{suffix}"
        sink, _ = recorded(path, 2.5, blocks(3))
        shutil.copy(path, left)  # what write(2) has taken so far
        sink.close(True)
        assert len(flashes_s(left)) == 5
        assert len(clicks_s(heard(left))) == 5
        assert heard(left).shape[1] / RATE_HZ > 2.4
        assert max(map(abs, offsets_ms(left))) < 2


def test_sound_that_comes_late_is_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "late.mkv"
    sink, _ = recorded(path, 2, blocks(2.5), late_s=0.7)
    sink.close(True)
    assert len(offsets_ms(path)) == 3
    assert max(map(abs, offsets_ms(path))) < 2


def test_gaps_are_silence_and_nothing_shifts(tmp_path: Path) -> None:
    path = tmp_path / "gap.mp4"
    kept = [block for block in blocks(9) if not 0.75e9 < block.at_ns - EPOCH_NS < 5.25e9]
    sink, _ = recorded(path, 7, kept)
    sink.close(True)
    track = heard(path)
    clicks = clicks_s(track)
    assert [click for click in clicks if 0.1 < click < 5.3] == pytest.approx([0.5], abs=0.002)
    assert np.abs(track[0, RATE_HZ : 5 * RATE_HZ]).max() < 0.01
    assert [click for click in clicks if 5.3 < click < 6.9] == pytest.approx([5.5, 6.0, 6.5], abs=0.002)
    assert track.shape[1] / RATE_HZ == pytest.approx(7, abs=0.03)


def test_a_microphone_that_says_nothing_gives_silence(tmp_path: Path) -> None:
    path = tmp_path / "silent.mp4"
    sink, _ = recorded(path, 1, [])
    sink.close(True)
    assert not heard(path).any()
    assert heard(path).shape[1] / RATE_HZ == pytest.approx(1, abs=0.03)


def test_a_source_without_sound_gets_no_track(tmp_path: Path) -> None:
    sink = sound_sink(tmp_path / "take.mp4", SoundTrack(SoundHistory(), EPOCH_NS))
    sink.write(FrameStamp(0, 0), picture(0))
    assert sink.close(True) == f"written: {tmp_path}/take.mp4 (0.0 s, 1 frame)"
    with av.open(str(tmp_path / "take.mp4")) as container:
        assert not container.streams.audio


def test_a_clock_that_drifts_stays_in_step(tmp_path: Path) -> None:
    path = tmp_path / "drift.mp4"
    sink, _ = recorded(path, 8, blocks(9, RATE_HZ * 1.004))
    sink.close(True)
    offsets = offsets_ms(path)
    assert len(offsets) == 15
    assert 8 < max(map(abs, offsets)) < 15, "32 ms, if it were not followed"


def test_opus_in_webm(tmp_path: Path) -> None:
    history = SoundHistory()
    history.put(blocks(2))
    track = SoundTrack(history, EPOCH_NS)
    with av.open(str(tmp_path / "take.webm"), "w") as container:
        track.attach(container)
        for packet in track.packets(Fraction(0), Fraction(1)):
            container.mux(packet)
        track.end()
        for packet in track.packets(Fraction(0), Fraction(3, 2)):
            container.mux(packet)
    with av.open(str(tmp_path / "take.webm")) as container:
        assert container.streams.audio[0].codec_context.name == "opus"
    assert clicks_s(heard(tmp_path / "take.webm"))[1:3] == pytest.approx([0.5, 1.0], abs=0.002)
