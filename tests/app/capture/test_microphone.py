"""Microphones: a real one of ALSA's where that loads, one that fails at will, their clock, and folders."""

import os
import queue
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter_ns, sleep

import av
import numpy as np
import pytest

from tests.helpers.clicks import EVERY_S, FPS, Feeder, heard_in_takes, offsets_ms, picture, pulse_clicks, sound_sink
from tests.helpers.waiting import until
from texelflow.app.capture import alsa
from texelflow.app.capture.microphone import Blocks, Microphone
from texelflow.app.capture.sound_device import ArrivalClock, list_microphones, open_microphone
from texelflow.app.capture.source import SourceError, SourceLostError
from texelflow.app.media.sound_blocks import RATE_HZ, SoundBlock, duration_ns
from texelflow.app.media.sound_encoder import SoundTrack
from texelflow.app.outputs.picture_readers import FrameStamp

SECONDS = float(os.environ.get("SOUND_SECONDS", "0"))
MOST_MS = 40
BLOCK = 480
needs_alsa = pytest.mark.skipif("alsa" not in av.formats_available, reason="this PyAV has no ALSA")


@needs_alsa
def test_a_recording_is_in_step_with_the_microphone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(folder: Path, name: str, feeder: Feeder) -> None:
        assert_in_step(folder / "take.mp4", name, feeder, 1.5)

    heard_in_takes(tmp_path, monkeypatch, take)


@needs_alsa
@pytest.mark.skipif(not SECONDS, reason="a minute: make sound, with pulseaudio and libasound2-plugins")
def test_a_long_recording_is_in_step_with_the_microphone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pulse_clicks(tmp_path, monkeypatch) as (name, feeder):
        assert_in_step(tmp_path / "take.mp4", name, feeder, SECONDS)


def assert_in_step(path: Path, name: str, feeder: Feeder, seconds: float) -> None:
    """Record clicks and flashes for so long."""
    microphone = open_microphone(name)
    try:
        until(lambda: microphone.history.end_ns)
        half_ns = int(EVERY_S * 1e9)
        epoch_ns = feeder.begun_ns + half_ns * ((perf_counter_ns() - feeder.begun_ns) // half_ns + 1)  # on a click
        sink = sound_sink(path, SoundTrack(microphone.history, epoch_ns))
        for index in range(round(seconds * FPS)):
            due_ns = epoch_ns + index * 1_000_000_000 // FPS
            sleep(max(0.0, (due_ns - perf_counter_ns()) / 1e9))
            sink.write(FrameStamp(index, (due_ns - epoch_ns) // 1000), picture((due_ns - feeder.begun_ns) / 1e9))
        sink.close(True)
        assert microphone.lines() == []
    finally:
        feeder.close()
        microphone.close()
    offsets = offsets_ms(path)
    assert len(offsets) > seconds, "half of the clicks at least, however busy the machine"
    least, most, waited = min(offsets), max(offsets), feeder.waited_ms
    print(f"{seconds:g} s: clicks {least:.1f} to {most:.1f} ms after flashes, {waited:.1f} waited in the pipe")
    assert max(-least, most) < MOST_MS + waited


@needs_alsa
def test_one_that_is_not_there_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(tmp_path / "none.conf"))
    (tmp_path / "none.conf").touch()
    with pytest.raises(SourceError, match=r"^microphone nobody cannot be opened \(input/output error\): [^\n]+$"):
        open_microphone("nobody")
    assert capfd.readouterr() == ("", ""), "ALSA's own complaints are not shown"


@needs_alsa
@pytest.mark.skipif(not os.path.exists("/usr/share/alsa/alsa.conf"), reason="needs libasound2-data")
def test_the_settings_of_the_system_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ALSA_CONFIG_PATH", "ALSA_CONFIG_DIR", "ALSA_PLUGIN_DIR"):
        monkeypatch.delenv(name, raising=False)
    microphone = open_microphone("null")
    microphone.close()
    assert os.environ["ALSA_CONFIG_DIR"] == "/usr/share/alsa"
    assert all(each.microphone and each.microphone.isprintable() for each in list_microphones())


class TestFolders:
    """Where ALSA is told to look."""

    THERE = ("/usr/share/alsa", "/usr/lib/x86_64-linux-gnu/alsa-lib", "/usr/lib64/alsa-lib")

    def test_only_what_is_there_and_was_not_set(self) -> None:
        there = self.THERE.__contains__
        both = {"ALSA_CONFIG_DIR": self.THERE[0], "ALSA_PLUGIN_DIR": self.THERE[1]}
        assert alsa.variables({}, "x86_64", there) == both
        assert alsa.variables({}, "aarch64", there) == both | {"ALSA_PLUGIN_DIR": self.THERE[2]}
        assert alsa.variables({"ALSA_CONFIG_DIR": "/mine", "ALSA_PLUGIN_DIR": "/own"}, "x86_64", there) == {}
        assert alsa.variables({}, "x86_64", lambda _: False) == {}

    def test_what_to_install(self) -> None:
        environment = {"ALSA_CONFIG_DIR": "/a", "ALSA_PLUGIN_DIR": "/b"}
        files = {"/a/alsa.conf", "/b/libasound_module_pcm_pulse.so"}
        assert alsa.alsa_advice(environment, files.__contains__) == ""
        assert "libasound2-plugins" in alsa.alsa_advice(environment, {"/a/alsa.conf"}.__contains__)
        assert "libasound2-data" in alsa.alsa_advice({}, lambda _: False)


class Device:
    """One whose driver does what a test says: numbers are blocks, errors are raised; None is the end."""

    def __init__(self) -> None:
        self.events: queue.Queue[int | Exception | None] = queue.Queue()
        self.opened = 0

    def hear(self) -> Blocks:
        self.opened += 1
        if self.opened == 2:
            raise SourceError("it is not there")
        return self._blocks()

    def _blocks(self) -> Blocks:
        while (event := self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield SoundBlock(perf_counter_ns(), np.zeros((2, event), np.float32))


def test_one_that_is_unplugged_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texelflow.app.capture.microphone._AGAIN_S", 0.01)
    device, lines = Device(), list[str]()

    def told(line: str) -> bool:
        lines.extend(microphone.lines())
        return line in lines

    microphone = Microphone("desk", device.hear)
    try:
        device.events.put(BLOCK)
        until(lambda: microphone.history.end_ns)
        device.events.put(SourceLostError("no such device"))
        until(lambda: told("microphone desk: no such device; recordings go on with silence"))
        until(lambda: device.opened == 3)
        device.events.put(BLOCK)
        until(lambda: told("microphone desk is back"))
        device.events.put(RuntimeError("odd"))
        until(lambda: told("microphone desk: RuntimeError odd; recordings go on with silence"))
        assert len(lines) == 3
    finally:
        device.events.put(None)
        microphone.close()
    assert microphone.lines() == []


def test_one_that_hangs_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texelflow.app.capture.microphone._SILENT_NS", 20_000_000)
    device = Device()
    microphone = Microphone("desk", device.hear)
    sleep(0.05)
    assert microphone.lines() == ["microphone desk: it sends nothing; recordings go on with silence"]
    assert microphone.lines() == []
    device.events.put(None)
    microphone.close()


class TestClock:
    """When blocks were heard; the device's own count and stamps begin anywhere."""

    def place(self, clock: ArrivalClock, stamp_ns: int | None, came_ns: int, wall_ns: int) -> int:
        at_ns = clock.place(stamp_ns, BLOCK, came_ns, wall_ns)
        assert at_ns + duration_ns(BLOCK) <= came_ns, "not before it came"
        return at_ns

    @pytest.mark.parametrize("stamped", [False, True])
    def test_threads_that_come_late_shift_nothing(self, stamped: bool) -> None:
        clock, late, came_ns = ArrivalClock(), np.random.default_rng(2), 0
        for number in range(1000):
            heard_ns = number * duration_ns(BLOCK)
            stall_ms = late.uniform(0, 600) if number % 70 == 40 else 0
            came_ns = max(came_ns, heard_ns + duration_ns(BLOCK) + round(stall_ms * 1e6))
            assert self.place(clock, 10**18 + number if stamped else None, came_ns, came_ns) == heard_ns

    def test_stamps_of_the_system_tell_of_what_waits_in_the_driver(self) -> None:
        clock, wall_ns = ArrivalClock(), 10**18
        for number in range(50):
            stamp_ns = wall_ns + number * duration_ns(BLOCK)
            came_ns = 700_000_000 + (number + 1) * duration_ns(BLOCK)
            at_ns = self.place(clock, stamp_ns, came_ns, wall_ns + came_ns)
            assert at_ns == number * duration_ns(BLOCK)

    def test_samples_that_were_lost_are_a_gap(self) -> None:
        clock, wall_ns, lost_ns = ArrivalClock(), 10**18, 400_000_000
        for number in range(50):
            heard_ns = number * duration_ns(BLOCK) + (lost_ns if number >= 25 else 0)
            came_ns = heard_ns + 15_000_000
            assert self.place(clock, wall_ns + heard_ns, came_ns, wall_ns + came_ns) == heard_ns


@pytest.mark.skipif(sys.platform != "linux", reason="the names are ALSA's")
def test_rates_and_channels_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(folder: Path, name: str, feeder: Feeder) -> None:
        microphone = open_microphone(name)
        until(lambda: len(microphone.history.since(0)[0]) >= 20)
        blocks, _ = microphone.history.since(0)
        feeder.close()
        microphone.close()
        assert {block.samples.shape for block in blocks} == {(2, RATE_HZ // 100)}
        gaps_ms = [(after.at_ns - block.end_ns) / 1e6 for block, after in pairwise(blocks)]
        assert max(map(abs, gaps_ms)) < MOST_MS

    heard_in_takes(tmp_path, monkeypatch, take)
