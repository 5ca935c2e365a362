"""Hard cuts are found in drawn clips; fades, flashes and motion are none, and none is found where there is none."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import one_in
from tests.helpers.picture_formats import PLANAR
from texelflow import assets
from texelflow.app.media.sources import FileSource
from texelflow.app.picture.cuts import FORGOTTEN, CutDetector, are_apart, light_samples, likeness
from texelflow.app.picture.picture import Picture, PictureFormat, rgba_picture

Rgb = npt.NDArray[np.uint8]

ASSETS, SCENES = Path(assets.__file__).parent, Path(__file__).parents[2] / "data" / "scenes"
SIZE = (128, 96)
FILES = [
    *(ASSETS / f"background{name}.jpg" for name in ("", "_lights", "_room", "_studio")),
    *(SCENES / "backgrounds" / f"{name}.jpg" for name in ("chelsea", "china", "coffee", "flower", "rocket")),
    *(SCENES / "photos" / f"{name}.jpg" for name in ("astronaut", "hopper")),
]


def wide(file: Path) -> Rgb:
    """Twice as wide and high as a frame."""
    found = cv2.imread(str(file))
    assert found is not None, file
    return np.asarray(cv2.resize(found, (2 * SIZE[0], 2 * SIZE[1]), interpolation=cv2.INTER_AREA)[..., ::-1], np.uint8)


@pytest.fixture(scope="module")
def scenes() -> list[Rgb]:
    return [wide(file) for file in FILES]


def shot(scene: Rgb, x: int = 0, y: int = 0) -> Rgb:
    """What a camera sees at a place of a scene."""
    return scene[y : y + SIZE[1], x : x + SIZE[0]]


def whole(scene: Rgb) -> Rgb:
    return scene[::2, ::2]


def pictured(rgb: npt.NDArray[np.float64] | Rgb) -> Picture:
    levels = np.clip(rgb, 0, 255).astype(np.uint8)
    return rgba_picture(np.dstack([levels, np.full(levels.shape[:2], 255, np.uint8)]))


def cuts_in(frames: Sequence[npt.NDArray[np.float64] | Rgb]) -> list[int]:
    detector = CutDetector()
    return [number for number, frame in enumerate(frames) if detector.is_cut(pictured(frame))]


def faded(scene: Rgb, levels: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    return (whole(scene) * level for level in levels)


def test_cuts_between_scenes_are_found(scenes: list[Rgb]) -> None:
    """All 55 pairs but one: of a town's lights and a rocket, both at night."""
    samples = [light_samples(pictured(whole(scene))) for scene in scenes]
    missed = [
        pair for pair in combinations(range(len(samples)), 2) if not are_apart(*likeness(*(samples[k] for k in pair)))
    ]
    assert missed == [(1, 8)]


def test_nothing_is_a_cut_within_the_demo_clip() -> None:
    detector = CutDetector()
    with FileSource(ASSETS / "people.mp4") as source:
        assert [frame.index for frame in source if detector.is_cut(frame.picture)] == []


def test_motion_of_the_camera_is_no_cut(scenes: list[Rgb]) -> None:
    """A width in a second, along and across."""
    for scene in scenes:
        assert cuts_in([shot(scene, x=x) for x in range(0, SIZE[0], 4)]) == []
        assert cuts_in([shot(scene, y=y) for y in range(0, SIZE[1], 4)]) == []


@one_in(2, "strength", [2, 0.3, 1, 4, 8])
def test_a_flash_is_no_cut(scenes: list[Rgb], strength: float) -> None:
    for scene in scenes:
        lit = whole(scene) * (1.0 + strength) + 60 * strength
        assert cuts_in([*[whole(scene)] * 3, lit, lit, *[whole(scene)] * 3]) == []


@one_in(2, "frames", [8, 24])
def test_a_fade_through_black_is_a_cut_only_between_scenes(scenes: list[Rgb], frames: int) -> None:
    away = np.linspace(1, 0, frames)
    for scene, other in zip(scenes, [*scenes[1:], scenes[0]], strict=True):
        found = cuts_in([*faded(scene, away), *faded(other, away[::-1])])
        assert len(found) == 1
        assert frames <= found[0] < 2 * frames
        assert cuts_in([*faded(scene, away), *faded(scene, away[::-1])]) == []


def test_a_slow_dissolve_is_no_cut(scenes: list[Rgb]) -> None:
    shares = np.linspace(0, 1, 30)
    for scene, other in pairwise(scenes):
        assert cuts_in([whole(scene) * (1 - share) + whole(other) * share for share in shares]) == []


def test_what_comes_long_after_the_last_picture_is_a_cut(scenes: list[Rgb]) -> None:
    """Whatever was before: a piece of a recording does not know."""
    black = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    for before in (FORGOTTEN - 1, FORGOTTEN):
        found = cuts_in([whole(scenes[0]), *[black] * before, whole(scenes[0])])
        assert found == ([before + 1] if before == FORGOTTEN else [])
        assert cuts_in([*[black] * FORGOTTEN, whole(scenes[0])]) == [FORGOTTEN]


@pytest.mark.parametrize(
    "format", [PictureFormat((98, 50), "yuyv", 8, (1, 0)), PLANAR, PictureFormat((3, 2), "gray", 10)]
)
def test_pictures_of_any_format_and_size_are_looked_at(format: PictureFormat) -> None:
    """The upper half is light, then the lower one."""
    detector, found = CutDetector(), list[bool]()
    for rows in (slice(0, format.size[1] // 2), slice(format.size[1] // 2, None)):
        planes = [np.full(shape, 40 << format.bits - 8, f"u{format.sample_bytes}") for shape in format.plane_shapes]
        planes[0][rows] = 200 << format.bits - 8
        picture = Picture(format, tuple(planes))
        found += [detector.is_cut(picture), detector.is_cut(picture)]
    assert found == [False, False, True, False]


def test_another_size_is_known_as_a_cut_already() -> None:
    detector, rng = CutDetector(), np.random.default_rng(0)
    for size in ((40, 30), (60, 20)):
        assert not detector.is_cut(pictured(rng.integers(0, 256, (*size, 3), np.uint8)))
