"""The files in assets/ are what their README says, and the clip shows what the script's true mattes say."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from tests.helpers.clips import time_of
from texelflow.assets import make_clip
from texelflow.assets.make_clip import FIGURES, FPS, FRAMES, HEIGHT, WIDTH

ASSETS = Path(make_clip.__file__).parent
CLIP = ASSETS / "people.mp4"
LUMA_BT709 = np.array([0.2126, 0.7152, 0.0722]) * 219 / 255


def test_clip_is_as_promised() -> None:
    with av.open(str(CLIP)) as file:
        stream = file.streams.video[0]
        codec = stream.codec_context
        assert (codec.name, codec.pix_fmt, codec.width, codec.height) == ("h264", "yuv420p", WIDTH, HEIGHT)
        assert (codec.color_range, codec.colorspace) == (1, 1)  # limited, BT.709
        assert stream.average_rate == FPS
        times = [time_of(frame) for frame in file.decode(stream)]
    assert times == [Fraction(index, FPS) for index in range(FRAMES)]


def test_clip_is_small_and_its_index_comes_first() -> None:
    data = CLIP.read_bytes()
    assert len(data) < 2_000_000
    assert 0 < data.index(b"moov") < data.index(b"mdat")


def test_clip_shows_background_and_people_where_the_true_matte_says() -> None:
    with av.open(str(CLIP)) as file:
        for index, frame in enumerate(file.decode(video=0)):
            if index % 30 != 5:
                continue
            luma = frame.to_ndarray()[:HEIGHT].astype(np.float32)
            empty = make_clip.background(index / FPS, 0) * make_clip.light(index / FPS)
            off = np.abs(luma - (16 + empty.clip(0, 255) @ LUMA_BT709))
            matte = make_clip.true_matte(index)
            assert off[matte == 0].mean() < 2
            if (matte == 1).any():
                assert off[matte == 1].mean() > 20


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_matte_is_one_whole_figure_with_a_soft_edge(figure: make_clip.Figure) -> None:
    matte = make_clip.read_matte(figure.name)
    pieces, _ = cv2.connectedComponents((matte > 0.5).astype(np.uint8))
    holes, _ = cv2.connectedComponents((matte <= 0.5).astype(np.uint8))
    soft = ((matte > 0.02) & (matte < 0.98)).mean()
    assert pieces == 2  # background, figure
    assert holes <= 3  # figure, and what lies to the left and to the right of it
    assert 0.4 < matte.mean() < 0.7
    assert 0.005 < soft < 0.05
    assert matte[:12].max() == 0
    assert matte[-1].max() == 1


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_photo_edges_that_cut_a_figure_stay_out_of_view(figure: make_clip.Figure) -> None:
    matte = make_clip.read_matte(figure.name)
    cut = matte.copy()
    cut[1:-1, 1:-1] = 0
    assert cut.max() == 1
    for index in range(FRAMES):
        assert make_clip.place(cut, figure.transform(index, 0)).max() == 0


def test_people_come_and_go() -> None:
    shares = np.array([make_clip.true_matte(index).mean() for index in range(0, FRAMES, 3)])
    assert (shares == 0).sum() >= 5
    assert (shares > 0.2).sum() > 50
    assert shares.max() < 0.7


def test_background_picture_opens() -> None:
    picture = cv2.imread(str(ASSETS / "background.jpg"))
    assert picture is not None
    assert picture.shape == (720, 960, 3)
    assert picture.std() > 30


def test_readme_names_the_origin_of_every_file() -> None:
    readme = (ASSETS / "README.md").read_text(encoding="utf-8")
    ours = {"README.md", "__init__.py"}
    files = [path.name for path in ASSETS.iterdir() if path.is_file() and path.name not in ours]
    assert len(files) >= 6
    assert [name for name in files if f"`{name}`" not in readme] == []
