"""A range that begins late is as decoded from the start, and what is before it is not decoded."""

from fractions import Fraction
from pathlib import Path

import pytest

from tests.app.media.test_seeking import X264, assert_same, in_order
from tests.helpers.clips import Recipe, moving, packets, write_clip
from tests.helpers.markers import one_in
from texelflow.app.media.late_source import LateSource
from texelflow.app.media.media_inputs import open_input
from texelflow.app.media.sources import FileSource, Position, VideoFrame
from texelflow.gpu_delegate.base.errors import MediaError

FRAMES = 1120
RECIPES = {
    "a.mp4": Recipe(codec_options={**X264, "g": "250", "preset": "ultrafast"}),
    "a.mkv": Recipe(
        codec_options={"crf": "16", "preset": "ultrafast", "x264-params": "open-gop=1:keyint=50:bframes=3"}
    ),
    "a.ts": Recipe("mpeg2video", codec_options={"g": "60", "bf": "2"}),
    "a.avi": Recipe("mpeg4", codec_options={"g": "60"}),
}


@pytest.fixture(scope="module", params=RECIPES)
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("late") / request.param, moving(FRAMES, 32, 16), RECIPES[request.param])


@pytest.fixture(scope="module")
def expected(clip: Path) -> list[VideoFrame]:
    return in_order(clip)


@one_in(
    4,
    ("first", "last"),
    [(901, 905), (1000, None), (FRAMES - 1, None), (Fraction(34), Fraction(341, 10)), (Fraction(37), None)],
)
def test_late_ranges_are_as_decoded_from_the_start(
    clip: Path, expected: list[VideoFrame], first: Position, last: Position | None
) -> None:
    begin = first if isinstance(first, int) else round(first * 30)
    end = FRAMES - 1 if last is None else last if isinstance(last, int) else int(last * 30)
    with open_input(clip, first, last) as source:
        source.lead = 30
        frames = list(source)
    assert isinstance(source, LateSource)
    assert [frame.index for frame in frames] == list(range(begin - 30, end + 1))
    assert [frame.index for frame in frames if frame.lead] == list(range(begin - 30, begin))
    for frame in frames:
        assert_same(frame, expected[frame.index])


@pytest.mark.parametrize("first", [FRAMES, 5000, Fraction(60)])
def test_a_range_behind_the_end_is_told(clip: Path, first: Position) -> None:
    with open_input(clip, first) as source, pytest.raises(MediaError, match=f"its frames are 0 to {FRAMES - 1}"):
        list(source)


def test_what_is_before_the_range_is_not_decoded(tmp_path: Path) -> None:
    """Damage there is not met, which decoding from the start counts."""
    path = write_clip(tmp_path / "a.mp4", moving(FRAMES, 64, 48), Recipe(codec_options={**X264, "g": "100", "bf": "0"}))
    data, (_, packet) = bytearray(path.read_bytes()), packets(path, "video")[424]
    end = data.index(packet) + len(packet)
    data[end - len(packet) // 2 : end] = bytes(len(packet) // 2)
    path.write_bytes(data)
    with FileSource(path, 1000) as whole, open_input(path, 1000) as late:
        for frame, wanted in zip(late, whole, strict=True):
            assert_same(frame, wanted)
    assert whole.damaged_frames
    assert not late.damaged_frames


def test_what_is_missing_at_the_end_is_told(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mkv", moving(FRAMES, 32, 16), RECIPES["a.mp4"])
    path.write_bytes(path.read_bytes()[:-2000])
    with FileSource(path) as whole:
        frames = len(list(whole))
    with open_input(path, 950) as late:
        assert [frame.index for frame in late] == list(range(950, frames))
    assert late.truncated == whole.truncated
    assert late.truncated is not None
