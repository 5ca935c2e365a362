"""Every format of video, with and without alpha and sound: what was recorded is read back."""

import os
import random
import signal
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
from av import AudioFrame

from tests.app.media.test_recorder_ends import in_subprocess, numbers_in
from tests.helpers.clips import moving, numbered, packets
from tests.helpers.markers import one_in
from texelflow.app.media.finished import is_finished
from texelflow.app.media.growing_file import GrowingFile
from texelflow.app.media.recorder import Recorder
from texelflow.app.media.sources import FileSource
from texelflow.app.picture.convert import Rgba
from texelflow.gpu_delegate.base.errors import UsageError

RATE = 30
SOUND_RATE = 48000
FORMATS = [("mov", "prores"), ("webm", "vp9"), ("mkv", "vp9"), ("mkv", "ffv1"), ("mov", "h264")]


def with_alpha(count: int, width: int = 160, height: int = 120) -> list[Rgba]:
    """A disc that moves, transparent in the middle with a soft edge, over colors that go on under it."""
    y, x = np.mgrid[0:height, 0:width]
    shape = [((x - width / 2 - 2 * index) ** 2 + (y - height / 2) ** 2) / 8 for index in range(count)]
    masks = [np.clip(np.rint(each), 0, 255).astype(np.uint8) for each in shape]
    return [np.dstack([rgb, mask]) for rgb, mask in zip(moving(count, width, height), masks, strict=True)]


def opaque(frames: Sequence[npt.NDArray[np.uint8]]) -> list[Rgba]:
    return [np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)]) for rgb in frames]


def record(path: Path, frames: Sequence[Rgba], sound: Path | None = None, **options: Any) -> list[str]:
    height, width, _ = frames[0].shape
    with Recorder(path, width, height, Fraction(1, RATE), Fraction(RATE), audio_from=sound, **options) as recorder:
        for index, rgba in enumerate(frames):
            recorder.write(rgba, index)
    return recorder.warnings


def pictures(path: Path) -> list[Rgba]:
    """Decoded with alpha, which FFmpeg's own decoder of VP9 drops."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        decoder = stream.codec_context
        if decoder.name == "vp9":
            decoder = av.CodecContext.create("libvpx-vp9", "r")
        frames = [frame for packet in container.demux(stream) for frame in decoder.decode(packet)]
    return [
        np.asarray(
            frame.reformat(format="rgba", interpolation=0x46004, src_colorspace=1, dst_color_range=2).to_ndarray()
        )
        for frame in frames
    ]


# Alpha


@pytest.mark.parametrize(("suffix", "most", "mean"), [("mov", 1, 0.5), ("webm", 24, 0.5)])
@pytest.mark.parametrize("size", [(160, 120), (161, 119)], ids=["even", "odd"])
def test_alpha_comes_back(suffix: str, most: int, mean: float, size: tuple[int, int], tmp_path: Path) -> None:
    """Within 1 of 255 in ProRes; in VP9, at the usual quality, 24 at the most and half a one on average."""
    frames, out = with_alpha(6, *size), tmp_path / f"out.{suffix}"
    record(out, frames, alpha=True)
    read = pictures(out)
    assert len(read) == 6
    width, height = size
    for rgba, wanted in zip(read, frames, strict=True):
        assert rgba.shape == (height + height % 2, width + width % 2, 4)
        error = np.abs(rgba[:height, :width].astype(int) - wanted)
        assert error[..., 3].max() <= most
        assert error[..., 3].mean() <= mean
        assert error[..., :3].mean() < 2  # also where alpha is 0: it is straight
        if suffix == "mov":
            for level in (0, 255):  # these are exact
                assert (rgba[:height, :width, 3][wanted[..., 3] == level] == level).all()


def test_more_quality_is_a_better_alpha_and_a_larger_file(tmp_path: Path) -> None:
    frames, errors, sizes = with_alpha(4), [], []
    for quality in (10, 50, 100):
        out = tmp_path / f"{quality}.webm"
        record(out, frames, alpha=True, quality=quality)
        errors.append(float(np.mean([np.abs(a.astype(int) - b) for a, b in zip(pictures(out), frames, strict=True)])))
        sizes.append(out.stat().st_size)
    assert errors == sorted(errors, reverse=True)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2] / 3


def test_a_player_that_knows_no_alpha_shows_the_colors(tmp_path: Path) -> None:
    frames = with_alpha(5)
    record(tmp_path / "out.webm", frames, alpha=True)
    with FileSource(tmp_path / "out.webm") as source:
        read = list(source)
    assert source.truncated is None
    assert source.damaged_frames == 0
    for frame, wanted in zip(read, frames, strict=True):
        assert np.abs(frame.rgba[..., :3].astype(int) - wanted[..., :3]).mean() < 2


def test_key_frames_of_pictures_with_alpha_are_told_from_others(tmp_path: Path) -> None:
    record(tmp_path / "out.webm", with_alpha(40), alpha=True)
    with av.open(str(tmp_path / "out.webm")) as container:
        stream = container.streams.video[0]
        keys = [packet.is_keyframe for packet in container.demux(stream) if packet.size]
        assert [index for index, key in enumerate(keys) if key] == [0, 15, 30]
        container.seek(1100, stream=stream)  # ms
        assert next(container.demux(stream)).pts == 1000


@pytest.mark.parametrize(("suffix", "line"), [("mp4", ".mov and .webm"), ("mkv", ".mov and .webm")])
def test_alpha_elsewhere_is_refused_before_anything_is_written(suffix: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=line):
        Recorder(tmp_path / f"out.{suffix}", 64, 48, Fraction(1, RATE), Fraction(RATE), alpha=True)
    with pytest.raises(UsageError, match="--quality 500"):
        Recorder(tmp_path / "out.mp4", 64, 48, Fraction(1, RATE), Fraction(RATE), quality=500)
    with (
        Recorder(tmp_path / "out.mov", 64, 48, Fraction(1, RATE), Fraction(RATE), alpha=True) as recorder,
        pytest.raises(UsageError, match="I420 has no transparency"),
    ):
        recorder.write_i420(np.zeros(64 * 48 * 3 // 2, np.uint8), 0)
    assert list(tmp_path.iterdir()) == []


# Codecs


@pytest.mark.parametrize(("suffix", "codec"), FORMATS)
def test_two_recordings_are_the_same_bytes_and_show_the_frames(suffix: str, codec: str, tmp_path: Path) -> None:
    frames = opaque(moving(20, 320, 240))
    one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    for out in (one, two):
        assert record(out, frames, codec=codec) == []
    assert one.read_bytes() == two.read_bytes()
    with av.open(str(one)) as container:
        assert container.streams.video[0].codec_context.name == codec
        assert container.format.name == ("mov,mp4,m4a,3gp,3g2,mj2" if suffix == "mov" else "matroska,webm")
        assert (b"webm" in one.read_bytes()[:64]) == (suffix == "webm")
    for rgba, wanted in zip(pictures(one), frames, strict=True):
        error = np.abs(rgba.astype(int) - wanted)
        assert error.mean() < (2 if codec != "ffv1" else 1e-9)


def test_two_recordings_with_alpha_and_converted_sound_are_the_same_bytes(sounding: Path, tmp_path: Path) -> None:
    for suffix in ("mov", "webm"):
        one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
        for out in (one, two):
            record(out, with_alpha(20), sounding, alpha=True)
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(("suffix", "codec"), FORMATS)
def test_planes_go_into_every_codec(suffix: str, codec: str, tmp_path: Path) -> None:
    luma, cb, cr = (np.full(shape, code, np.uint8) for shape, code in (((48, 64), 90), ((24, 32), 180), ((24, 32), 70)))
    luma[:, 32:] = 160
    planes = np.concatenate([plane.ravel() for plane in (luma, cb, cr)])
    out = tmp_path / f"out.{suffix}"
    with Recorder(out, 64, 48, Fraction(1, RATE), Fraction(RATE), codec=codec) as recorder:  # type: ignore[arg-type]
        for pts in range(3):
            recorder.write_i420(planes, pts)
    with av.open(str(out)) as container:
        decoded = [frame.reformat(format="yuv420p").to_ndarray() for frame in container.decode(video=0)]
    assert len(decoded) == 3
    assert np.abs(decoded[0].ravel().astype(int) - planes).max() <= 4


# Killed


@pytest.mark.parametrize(
    ("suffix", "options"), [("webm", {"alpha": True}), ("mov", {"alpha": True}), ("mkv", {"codec": "ffv1"})]
)
def test_every_state_of_the_file_plays_and_only_the_last_is_finished(
    suffix: str, options: dict[str, Any], sounding: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[tuple[int, bytes]] = []
    write, taken, out, left = GrowingFile._write, 0, tmp_path / f"out.{suffix}", tmp_path / f"left.{suffix}"

    def watched(file: GrowingFile, offset: int, data: bytes) -> None:
        write(file, offset, data)
        states.append((taken, out.read_bytes()))

    monkeypatch.setattr(GrowingFile, "_write", watched)
    with Recorder(
        out, 64, 48, Fraction(1, RATE), Fraction(RATE), audio_from=sounding, audio_cut=True, made_by="me", **options
    ) as recorder:
        for index, rgba in enumerate(opaque(numbered(8))):
            recorder.write(rgba, index)
            taken = index + 1
    choose, before = random.Random(5), b""
    for count, state in states:
        part = state[: choose.randrange(min(len(before), len(state)), len(state) + 1)]
        for data in [part, state] if count else []:
            left.write_bytes(data)
            numbers = numbers_in(left)
            assert numbers[:count] == list(range(count))
            assert len(numbers) <= count + 1
            assert not is_finished(left) or len(data) == out.stat().st_size
        before = state
    assert is_finished(out)
    assert numbers_in(out) == list(range(8))


UNFINISHED = """
    import os, sys
    from fractions import Fraction
    import numpy as np
    from texelflow.app.media.recorder import Recorder
    frame = np.full((48, 64, 4), 128, np.uint8)
    with Recorder(
        sys.argv[1], 64, 48, Fraction(1, 30), Fraction(30), audio_from=sys.argv[2], alpha=True, made_by="test"
    ) as recorder:
        for index in range(100_000):
            frame[..., :3] = 20 + 6 * (index % 36)
            recorder.write(frame, index)
            os.write(1, b".")
"""


@one_in(3, ("suffix", "number"), [("webm", signal.SIGKILL), ("webm", signal.SIGINT), ("mov", signal.SIGKILL)])
def test_a_run_that_ends_early_leaves_alpha_that_plays_and_no_tag(
    suffix: str, number: signal.Signals, sounding: Path, tmp_path: Path
) -> None:
    out = tmp_path / f"killed.{suffix}"
    process = in_subprocess(UNFINISHED, out, sounding)
    assert process.stdout is not None
    taken = sum(
        len(os.read(process.stdout.fileno(), 1)) for _ in range(9)
    )  # unlike read, which takes more than it gives
    process.send_signal(number)
    taken += len(process.communicate()[0])
    read = pictures(out)
    assert 1 < taken <= len(read) <= taken + 1
    assert all(abs(float(rgba[..., 3].mean()) - 128) <= 1 for rgba in read)
    assert not is_finished(out)


# Sound


def clicking(path: Path, codec: str, layout: str = "mono", seconds: int = 2) -> Path:
    """Pictures, and silence with a click each half second, the first at a quarter."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=RATE, options={"preset": "ultrafast"})
        sound = container.add_stream(codec, rate=SOUND_RATE, options={"strict": "experimental"})  # for Vorbis
        assert isinstance(video, av.VideoStream)
        assert isinstance(sound, av.AudioStream)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        sound.codec_context.layout = layout
        for rgb in moving(RATE * seconds):
            container.mux(video.encode(av.VideoFrame.from_ndarray(rgb, "rgb24").reformat(format="yuv420p")))
        container.mux(video.encode(None))
        wave = np.zeros((sound.codec_context.channels, SOUND_RATE * seconds), np.float32)
        for start in range(SOUND_RATE // 4, wave.shape[1], SOUND_RATE // 2):
            wave[:, start : start + 48] = 0.8
        for first in range(0, wave.shape[1], 960):
            frame = AudioFrame.from_ndarray(np.ascontiguousarray(wave[:, first : first + 960]), "fltp", layout)
            frame.sample_rate, frame.pts = SOUND_RATE, first
            container.mux(sound.encode(frame))
        container.mux(sound.encode(None))
    return path


@pytest.fixture(scope="module")
def sounding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clicking(tmp_path_factory.mktemp("sound") / "sound.mp4", "aac")


def clicks(path: Path) -> list[float]:
    """Seconds after the first picture at which each click is loudest."""
    with av.open(str(path)) as container:
        start_s = min(
            float(packet.pts * packet.time_base) for packet in container.demux(video=0) if packet.pts is not None
        )
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        loud = list[tuple[float, float]]()
        for frame in container.decode(stream):
            assert frame.pts is not None
            wave = np.abs(frame.to_ndarray().astype(float))
            wave = wave.max(0) if frame.format.is_planar else wave.reshape(-1, len(frame.layout.channels)).max(1)
            begin_s = float(frame.pts * stream.time_base) if stream.time_base else 0.0
            loud += [(begin_s + index / frame.sample_rate, float(value)) for index, value in enumerate(wave)]
    times, levels = np.array(loud).T
    most = levels.max()
    found = list[float]()
    for time in times[levels > most / 2]:
        if not found or time - found[-1] > 0.1:
            found.append(float(time) - start_s)
    return found


def copied(source_path: Path, out: Path, first: int = 0, last: int | None = None, **options: Any) -> list[str]:
    with FileSource(source_path, first, last) as source:
        info, cut = source.info, (first, last) != (0, None)
        with Recorder(
            out,
            info.width,
            info.height,
            info.time_base,
            info.average_rate,
            audio_from=source_path,
            audio_cut=cut,
            **options,
        ) as recorder:
            for frame in source:
                recorder.write(frame.rgba, frame.pts)
    return recorder.warnings


@pytest.mark.parametrize("codec", ["libopus", "vorbis"])
def test_sound_that_webm_holds_is_copied_unchanged(codec: str, tmp_path: Path) -> None:
    clip = tmp_path / "in.mkv"
    clicking(clip, codec, "stereo")
    assert copied(clip, tmp_path / "out.webm") == []
    before, after = packets(clip, "audio"), packets(tmp_path / "out.webm", "audio")
    assert [data for _, data in before] == [data for _, data in after]


@one_in(
    4,
    ("codec", "suffix", "layout"),
    [("aac", "mp4", "mono"), ("aac", "mkv", "5.1"), ("libmp3lame", "mp4", "stereo"), ("aac", "ts", "stereo")],
)
def test_other_sound_becomes_opus_in_step(codec: str, suffix: str, layout: str, tmp_path: Path) -> None:
    clip, out = clicking(tmp_path / f"in.{suffix}", codec, layout), tmp_path / "out.webm"
    (warning,) = copied(clip, out, alpha=True)
    name = "mp3" if codec == "libmp3lame" else codec
    assert warning == f"the sound is converted from {name} to Opus, as .webm takes no {name}"
    with av.open(str(out)) as container:
        context = container.streams.audio[0].codec_context
        assert (context.name, context.channels) == ("opus", 1 if layout == "mono" else 2)
    before, after = clicks(clip), clicks(out)
    assert len(before) == 4
    assert after == pytest.approx(before, abs=0.003)
    assert abs(float(packets(out, "audio")[-1][0]) - 2) < 0.1  # to its end


def test_converted_sound_of_a_cut_is_limited_to_it(sounding: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.webm"
    copied(sounding, out, 15, 44)
    assert clicks(out) == pytest.approx([0.25, 0.75], abs=0.01)
    assert 0.9 < float(packets(out, "audio")[-1][0]) < 1.05


def test_damaged_sound_is_left_out_and_the_pictures_are_kept(sounding: Path, tmp_path: Path) -> None:
    data, out = bytearray(sounding.read_bytes()), tmp_path / "out.webm"
    heard = packets(sounding, "audio")
    for _, packet in heard[: len(heard) // 2]:
        place = data.index(packet)
        data[place : place + len(packet)] = b"\xff" * len(packet)
    (tmp_path / "in.mp4").write_bytes(data)
    assert len(copied(tmp_path / "in.mp4", out)) == 1
    assert len(pictures(out)) == 2 * RATE
    assert clicks(out) == pytest.approx([1.25, 1.75], abs=0.03)
