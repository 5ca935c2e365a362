"""Clicks and flashes in step, once a second: made for clips and microphones, and measured in recordings."""

import fcntl
import os
import subprocess
import termios
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter_ns, sleep

import av
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.waiting import until
from texelflow.app.capture.capture import TIME_BASE
from texelflow.app.media.sound_blocks import RATE_HZ, Samples
from texelflow.app.media.sound_encoder import SoundTrack
from texelflow.app.outputs.file_sinks import Timing, VideoSink, nominal_rate

SIZE, FPS = (64, 48), 30
EVERY_S = 0.5
_WHITE, _BLACK = 235, 16
_LOUD = 0.3
_MOST_TAKES, _BUSY = 5, 0.25  # the share of the time for which threads wait for a CPU
_FEED = RATE_HZ // 100  # samples that are written to a microphone at once


def sound(first: int, samples: int, rate_hz: float = RATE_HZ) -> Samples:
    """Samples (2, n) from a number on: 5 ms of a tone each half second, by a clock of that rate."""
    since = (np.arange(first, first + samples) / rate_hz) % EVERY_S * RATE_HZ
    tone = np.where(since < RATE_HZ // 200, 0.8 * np.sin(0.4 * since), 0)
    return np.tile(tone.astype(np.float32), (2, 1))


def picture(seconds: float) -> npt.NDArray[np.uint8]:
    """I420 at a time: white for a tenth of a second when it clicks."""
    luma = _WHITE if (seconds + 1e-9) % EVERY_S < 0.1 else _BLACK
    codes = np.full(SIZE[0] * SIZE[1] * 3 // 2, 128, np.uint8)
    codes[: SIZE[0] * SIZE[1]] = luma
    return codes


def write_clicks(path: Path, seconds: float, codec: str = "aac") -> Path:
    """A clip of both."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=FPS, options={"g": "5", "tune": "zerolatency"})
        audio = container.add_stream(codec, rate=RATE_HZ)
        assert isinstance(video, av.VideoStream)
        assert isinstance(audio, av.AudioStream)
        video.width, video.height, video.pix_fmt = *SIZE, "yuv420p"
        audio.codec_context.layout = "stereo"
        for index in range(round(seconds * FPS)):
            rows = picture(index / FPS).reshape(-1, SIZE[0])
            frame = av.VideoFrame.from_ndarray(rows, format="yuv420p")
            frame.pts, frame.time_base = index, Fraction(1, FPS)
            samples = av.AudioFrame.from_ndarray(sound(index * RATE_HZ // FPS, RATE_HZ // FPS), "fltp", "stereo")
            samples.sample_rate, samples.pts = RATE_HZ, index * RATE_HZ // FPS
            samples.time_base = Fraction(1, RATE_HZ)
            container.mux(audio.encode(samples))
            container.mux(video.encode(frame))
        container.mux(audio.encode(None))
        container.mux(video.encode(None))
    return path


def heard(path: Path) -> Samples:
    """All samples of a recording from its first picture on, (channels, n), where they are in time."""
    with av.open(str(path)) as container:
        track = np.zeros((2, 0), np.float32)
        resampler = av.AudioResampler("fltp", "stereo", RATE_HZ)
        for frame in container.decode(audio=0):
            first = round(frame.time * RATE_HZ)
            for part in resampler.resample(frame):
                samples = part.to_ndarray()[:, max(0, -first) :]
                missing = max(0, first) - track.shape[1]
                track = np.concatenate([track, np.zeros((2, max(0, missing)), np.float32), samples], axis=1)
    return track


def clicks_s(track: Samples) -> list[float]:
    """When it clicks, in seconds."""
    return _begins([float(index) / RATE_HZ for index in np.flatnonzero(np.abs(track[0]) > _LOUD)])


def flashes_s(path: Path) -> list[float]:
    """When pictures begin to be white."""
    with av.open(str(path)) as container:
        frames = [(frame.time, frame.to_ndarray()[: frame.height].mean()) for frame in container.decode(video=0)]
    return _begins([time for time, luma in frames if luma > 128])


def offsets_ms(path: Path) -> list[float]:
    """How much later than the nearest flash each click is, those in the first and the last tenth of a second aside."""
    flashes, track = flashes_s(path), heard(path)
    clicks = [click for click in clicks_s(track) if 0.1 < click < track.shape[1] / RATE_HZ - 0.1]
    return [1000 * (click - min(flashes, key=lambda flash: abs(flash - click))) for click in clicks]


def out_of_step_ms(path: Path) -> float:
    """By how much pictures that are white lie outside of the tenth of a second after a click, and others inside.

    For recordings that have not all pictures.
    """
    clicks = np.array(clicks_s(heard(path)))
    assert len(clicks) > 4
    with av.open(str(path)) as container:
        frames = [(frame.time, frame.to_ndarray()[: frame.height].mean() > 128) for frame in container.decode(video=0)]
    assert sum(is_white for _, is_white in frames) > 4
    worst = 0.0
    for time, is_white in frames[2:]:
        after = np.abs(time - clicks - 0.05)  # from the middle of the nearest flash
        outside = float(after.min()) - 0.05
        worst = max(worst, outside if is_white else -outside)
    return 1000 * worst


def _begins(times: list[float]) -> list[float]:
    return [time for before, time in zip([-9.0, *times], times, strict=False) if time - before > EVERY_S / 4]


def kept_from_cpu_ns() -> int:
    """How long the threads that there are have waited for a CPU so far; 0 where the system does not tell."""
    waited_ns = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread may have ended since
            waited_ns += int(path.read_text().split()[1])
    return waited_ns


class Feeder:
    """Writes clicks into a pipe in real time, as a sound card gives them. `begun_ns` is when sample 0 was heard.

    `waited_ms`: how long samples waited at most for whoever reads, or for a busy machine to write them. `kept`: for
    what share of the time, until it is closed, other work kept threads of this process from a CPU.
    """

    def __init__(self, pipe: Path) -> None:
        self.begun_ns, self.waited_ms, self.kept = 0, 0.0, 0.0
        self._made_ns, self._kept_ns = perf_counter_ns(), kept_from_cpu_ns()
        self._pipe, self._ended = pipe, threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End; harmless when repeated."""
        if not self._ended.is_set():
            self.kept = (kept_from_cpu_ns() - self._kept_ns) / (perf_counter_ns() - self._made_ns)
        self._ended.set()
        os.close(os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK))  # where nobody has opened it
        self._thread.join(5)

    def _feed(self) -> None:
        wave = (sound(0, round(EVERY_S * RATE_HZ)).T * 32767).astype("<i2")
        with open(self._pipe, "wb", buffering=0) as pipe:
            self.begun_ns, fed, waiting = perf_counter_ns(), 0, array("i", [0])
            while not self._ended.is_set():
                early_s = fed / RATE_HZ - (perf_counter_ns() - self.begun_ns) / 1e9
                sleep(max(0.0, early_s))
                fcntl.ioctl(pipe, termios.FIONREAD, waiting)
                self.waited_ms = max(self.waited_ms, waiting[0] / (RATE_HZ * 4) * 1000 + max(0.0, -early_s * 1000))
                try:
                    pipe.write(wave[(first := fed % len(wave)) : first + _FEED].tobytes())
                except BrokenPipeError:
                    return
                fed += _FEED


@contextmanager
def alsa_clicks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Feeder]]:
    """A microphone of ALSA's plugin `file`, the only one there is: its name, and what it hears.

    It is read a sample at a time, which a busy machine does not do in time; ALSA does not know what waits in the pipe.
    """
    pipe, settings = folder / "pipe", folder / "alsa.conf"
    os.mkfifo(pipe)
    settings.write_text(
        f'pcm.clicks {{ type file slave.pcm {{ type null }} file /dev/null infile "{pipe}" format raw }}'
    )
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(settings))
    feeder = Feeder(pipe)
    try:
        yield "clicks", feeder
    finally:
        feeder.close()


def heard_in_takes(folder: Path, monkeypatch: pytest.MonkeyPatch, take: Callable[[Path, str, Feeder], None]) -> None:
    """Have a take of that microphone, in a folder of its own, be right; one of several, where the machine was too busy
    to hear for those before.
    """
    for last in (*[False] * (_MOST_TAKES - 1), True):
        own = Path(mkdtemp(dir=folder))
        with alsa_clicks(own, monkeypatch) as (name, feeder):
            try:
                take(own, name, feeder)
            except AssertionError:
                feeder.close()
                if last or feeder.kept < _BUSY:
                    raise
            else:
                return


@contextmanager
def pulse_clicks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Feeder]]:
    """The same through PulseAudio, and ALSA's plugin for that."""
    socket, pipe = folder / "socket", folder / "pipe"
    modules = (
        f"module-native-protocol-unix auth-anonymous=1 socket={socket}",
        f"module-pipe-source file={pipe} format=s16le rate={RATE_HZ} channels=2",
    )
    monkeypatch.setenv("PULSE_SERVER", f"unix:{socket}")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    command = ["pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", *(f"--load={module}" for module in modules)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: socket.exists() and pipe.exists())
            feeder = Feeder(pipe)
            try:
                yield "pulse", feeder
            finally:
                feeder.close()
        finally:
            server.terminate()


def sound_sink(path: Path, sound: SoundTrack) -> VideoSink:
    """What records such pictures with that sound, as live does."""
    timing = Timing(TIME_BASE, nominal_rate(FPS))
    return VideoSink(path, SIZE, timing, codes=True, sound=sound)
