"""Live records the sound of clips and streams with their pictures; what speaks against a microphone is one line."""

import json
import socket
import threading
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest

from tests.helpers.clicks import FPS, SIZE, clicks_s, heard, out_of_step_ms, picture, sound, write_clicks
from tests.helpers.clocks import wait_for_sources
from tests.helpers.commands import Command
from tests.helpers.live_stage import Script, Stage, Theatre
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.capture.capture import Capture
from texelflow.app.capture.opener import opener
from texelflow.app.capture.source import CaptureRequest
from texelflow.app.media.sound_blocks import RATE_HZ, SoundBlock
from texelflow.app.session.derived import capture_request_of
from texelflow.app.settings.settings import Settings


def test_a_clip_is_recorded_with_its_sound(theatre: Theatre) -> None:
    def script(stage: Stage) -> Script:
        whites, taken = 0, 0
        while whites < 6 or stage.records[-1].index < 2.5 * FPS:  # of those that a busy machine writes
            yield from stage.frames(1)
            before, taken = taken, stage.parts.outputs.counts["recording"].taken
            whites += taken > before and stage.drawn()[..., 0].mean() > 128

    clip = write_clicks(theatre.folder / "clicks.mp4", 1.25)  # it begins again in mid-recording, off the beat
    theatre.run(script, camera=str(clip), effect="none", record="out.mp4")
    assert out_of_step_ms(theatre.folder / "out.mp4") < 40


def test_no_sound_is_recorded_where_none_is_wanted(theatre: Theatre) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(5)

    clip = write_clicks(theatre.folder / "clicks.mp4", 1)
    theatre.run(script, camera=str(clip), effect="none", record="out.mp4", sound=False)
    with av.open(str(theatre.folder / "out.mp4")) as container:
        assert not container.streams.audio


def test_what_is_asked_of_a_source() -> None:
    assert capture_request_of(Settings()).sound
    assert not capture_request_of(Settings(sound=False)).sound
    assert not capture_request_of(Settings(microphone="default")).sound, "it takes the place of the source's"


@pytest.mark.parametrize("suffix", ["mp4", "mov"])
def test_a_clip_is_heard_as_it_is_shown(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texelflow.app.capture.clip._MOST_LATE_NS", PATIENCE_S * 1e9)  # nor is anything put off
    wait_for_sources(monkeypatch)
    clip = write_clicks(tmp_path / f"clicks.{suffix}", 0.7, "pcm_s16le" if suffix == "mov" else "aac")
    with Capture(opener(str(clip), CaptureRequest(loop=True, sound=True))) as capture:
        first = capture.first(PATIENCE_S)  # that the test sees: on a busy machine the second
        until(lambda: capture.sound.end_ns - capture.start_ns > 1.1e9)
        blocks, _ = capture.sound.since(0)
    assert capture.start_ns == blocks[0].at_ns
    assert first.captured_ns is not None
    assert first.captured_ns - capture.start_ns == pytest.approx(first.index * 1e9 / FPS, abs=1)
    assert max(abs(after.at_ns - before.end_ns) for before, after in pairwise(blocks)) < 1_000_000, "also at the loop"
    clicks = clicks_of(blocks, capture.start_ns)
    assert [click for click in clicks if click > 0.1][:2] == pytest.approx([0.5, 0.7], abs=0.003)


def test_a_stream_is_heard_with_its_pictures() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        url = f"udp://127.0.0.1:{free.getsockname()[1]}"
    ended = threading.Event()
    thread = threading.Thread(target=_send, args=(url, ended), daemon=True)
    thread.start()
    flashes, dark = list[float](), -9  # and the last frame that was dark
    try:
        with Capture(opener(url, CaptureRequest(sound=True))) as capture:
            capture.first(PATIENCE_S)
            while len(flashes) < 2:
                frame = capture.take()
                if frame is None or frame.captured_ns is None:
                    time.sleep(0.002)
                    continue
                if frame.picture.planes[0].mean() <= 128:
                    dark = frame.index
                elif frame.index == dark + 1:  # of others nobody knows when they began
                    flashes.append((frame.captured_ns - capture.start_ns) / 1e9)
            until(lambda: capture.sound.end_ns > capture.start_ns + (flashes[-1] + 0.1) * 1e9)
            clicks = clicks_of(capture.sound.since(0)[0], capture.start_ns)
    finally:
        ended.set()
        thread.join(5)
    assert max(min(abs(click - flash) for click in clicks) for flash in flashes) < 0.04


def clicks_of(blocks: list[SoundBlock], start_ns: int) -> list[float]:
    """When it clicks, in seconds since a time; blocks follow each other."""
    return [
        (block.at_ns - start_ns) / 1e9 + click
        for block in blocks
        for click in clicks_s(block.samples)
        if click > 0.001 or clicks_s(block.samples) == [click]
    ]


def _send(url: str, ended: threading.Event) -> None:
    """Clicks and flashes, in real time."""
    with av.open(f"{url}?pkt_size=1316", "w", format="mpegts") as container:
        video = container.add_stream("mpeg2video", rate=FPS, options={"g": "6"})
        audio = container.add_stream("aac", rate=RATE_HZ)
        assert isinstance(video, av.VideoStream)
        assert isinstance(audio, av.AudioStream)
        video.width, video.height, video.pix_fmt, video.bit_rate = *SIZE, "yuv420p", 2_000_000
        audio.codec_context.layout = "stereo"
        begun, index = time.perf_counter(), 0
        while not ended.is_set():
            samples = av.AudioFrame.from_ndarray(sound(index * RATE_HZ // FPS, RATE_HZ // FPS), "fltp", "stereo")
            samples.sample_rate, samples.pts = RATE_HZ, index * RATE_HZ // FPS
            frame = av.VideoFrame.from_ndarray(picture(index / FPS).reshape(-1, SIZE[0]), format="yuv420p")
            frame.pts, frame.time_base = index, Fraction(1, FPS)
            container.mux(audio.encode(samples))
            container.mux(video.encode(frame))
            index += 1
            time.sleep(max(0.0, begun + index / FPS - time.perf_counter()))


def test_a_microphone_that_is_not_there_ends_in_one_line(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alsa.conf").touch()
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(tmp_path / "alsa.conf"))
    told = Command(capfd)("live", "--camera", "pattern", "--microphone", "nobody").complaint
    assert "microphone nobody cannot be opened" in told


def test_the_list_has_microphones(capfd: pytest.CaptureFixture[str]) -> None:
    told = json.loads(Command(capfd)("live", "--list", "--json").out)
    assert {"cameras", "microphones"} == told.keys()
    assert all({"microphone", "name"} == each.keys() for each in told["microphones"])


def test_what_is_heard_is_in_the_file(tmp_path: Path) -> None:
    clip = write_clicks(tmp_path / "clicks.mp4", 1)
    assert clicks_s(heard(clip)) == pytest.approx([0, 0.5], abs=0.003), "or nothing above says anything"
