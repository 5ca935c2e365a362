"""Endings, codecs and qualities of videos: what goes together is chosen, the rest is refused in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.files import ENDINGS
from texelflow.app.media.codecs import CODECS, USUAL_QUALITY, choose_encoding, quantizer
from texelflow.gpu_delegate.base.errors import UsageError


@pytest.mark.parametrize(
    ("ending", "codec", "alpha", "encoder"),
    [
        (".mp4", "auto", False, "libx264"),
        (".m4v", "auto", False, "libx264"),
        (".mov", "auto", False, "libx264"),
        (".MKV", "auto", False, "libx264"),
        (".webm", "auto", False, "libvpx-vp9"),
        (".mov", "auto", True, "prores_ks"),
        (".webm", "auto", True, "libvpx-vp9"),
        (".webm", "vp9", True, "libvpx-vp9"),
        (".mov", "prores", False, "prores_ks"),
        (".mkv", "vp9", False, "libvpx-vp9"),
        (".mkv", "ffv1", False, "ffv1"),
    ],
)
def test_what_goes_together(ending: str, codec: str, alpha: bool, encoder: str) -> None:
    chosen = choose_encoding(ending, codec, alpha=alpha)
    assert (chosen.encoder, chosen.alpha) == (encoder, alpha)
    assert ("a" in chosen.rgba_format) == alpha


def test_every_ending_of_a_video_has_a_codec() -> None:
    assert {choose_encoding(ending).codec for ending in ENDINGS["video"]} == {"h264", "vp9"}


@pytest.mark.parametrize(
    ("ending", "codec", "quality", "alpha", "line"),
    [
        (".mp4", "prores", None, False, "--codec prores does not go into .mp4, but into .mov; .mp4 takes h264"),
        (".webm", "h264", None, False, "but into .mp4 or .m4v or .mov or .mkv; .webm takes vp9"),
        (".mov", "ffv1", None, False, "but into .mkv; .mov takes h264 or prores"),
        (".mp4", "auto", None, True, "a video in .mp4 has no transparency; .mov and .webm have it, and a folder of"),
        (".mkv", "vp9", None, True, ".mov and .webm have it"),
        (".mov", "h264", None, True, "--codec h264 has no transparency in .mov; there --codec prores has"),
        (".MOV", "h264", None, True, "there --codec prores has"),
        (".mkv", "ffv1", 80, False, "--quality has no meaning for --codec ffv1"),
        (".mp4", "auto", 101, False, "--quality 101: it goes from 0"),
        (".webm", "auto", -1, True, "--quality -1: it goes from 0"),
        (".mp4", "hevc", None, False, "--codec hevc: choose one of auto, h264, vp9, prores, ffv1"),
        (".png", "auto", None, False, "a video cannot end in '.png'; its name must end in .mp4, .m4v"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    ending: str, codec: str, quality: int | None, alpha: bool, line: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_encoding(ending, codec, quality, alpha)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_table_of_qualities_is_the_one_that_is_documented() -> None:
    rows = [
        line.strip("| ").split(" | ")
        for line in (quantizer.__doc__ or "").splitlines()
        if line.strip("| ")[:1].isdigit()
    ]
    assert len(rows) == 5
    for quality, *levels in rows:
        assert [quantizer(codec, int(quality.split()[0])) for codec in ("h264", "vp9", "prores")] == list(
            map(int, levels)
        )
    assert choose_encoding(".mp4").options["crf"] == "18"
    assert quantizer("h264", USUAL_QUALITY) == 18


@given(st.integers(0, 99), st.sampled_from([codec for codec in CODECS if codec not in ("auto", "ffv1")]))
def test_more_quality_is_never_coarser(quality: int, codec: str) -> None:
    assert quantizer(codec, quality) >= quantizer(codec, quality + 1)
