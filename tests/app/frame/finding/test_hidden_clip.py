"""On drawn clips whose faces are known by construction no frame shows one: real networks, in native code.

People come in from each edge, are hidden for some frames, and cross. What is looked at is the picture itself: once the
network has seen a frame, its faces, ellipses, are filled with a fine pattern, of which nothing may be left.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import one_in
from tests.helpers.pictures import Image
from texelflow import assets
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.drawing.found_picture import FoundFrames
from texelflow.app.frame.finding.finding_stage import FindingStage
from texelflow.app.frame.finding.native_regions import NativeRegions
from texelflow.app.frame.looks.effects import HIDING_FACES
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.tracking.face_guard import GUARD_MODEL, FaceGuard, guarding
from texelflow.gpu_delegate.targets.llvm import compiler

pytestmark = pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")

ASSETS, PHOTOS = Path(assets.__file__).parent, Path(__file__).parents[3] / "data" / "scenes" / "photos"
SIZE = (640, 480)
FACES = {"astronaut": (172, 62, 108, 128), "hopper": (175, 130, 165, 215)}  # left, top, width, height in the photograph
Floats = npt.NDArray[np.float32]
PATTERN = np.zeros((SIZE[1], SIZE[0], 4), np.uint8)
PATTERN[..., 0], PATTERN[..., 2:] = 255 * np.random.default_rng(0).integers(0, 2, SIZE[::-1]), 255


class Figure(NamedTuple):
    """A person of a photograph, scaled, whose face's box has its upper left corner there."""

    name: str
    scale: float
    x: float
    y: float


@lru_cache(maxsize=8)
def cutout(name: str, scale: float) -> tuple[Floats, Floats]:
    """A person's colors and matte."""
    photo = cv2.imread(str(PHOTOS / f"{name}.jpg"))[..., ::-1]
    matte = cv2.resize(cv2.imread(str(ASSETS / f"{name}_matte.png"), 0), photo.shape[1::-1])
    to = (round(photo.shape[1] * scale), round(photo.shape[0] * scale))
    small = [cv2.resize(each, to, interpolation=cv2.INTER_AREA).astype(np.float32) for each in (photo, matte)]
    return small[0], small[1] / 255


@lru_cache(maxsize=1)
def room() -> Floats:
    return cv2.resize(cv2.imread(str(ASSETS / "background_room.jpg"))[..., ::-1], SIZE).astype(np.float32)


def drawn(figures: Sequence[Figure], wall: tuple[int, int] | None, number: int) -> tuple[Image, npt.NDArray[np.bool_]]:
    """A frame with a camera's noise, and where it shows faces: of the last figure all, of others what is not hidden."""
    picture, faces = room().copy(), np.zeros((SIZE[1], SIZE[0]), bool)
    y, x = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
    for name, scale, left, top in figures:
        colors, matte = cutout(name, scale)
        face = [scale * each for each in FACES[name]]
        shift = np.array([[1, 0, left - face[0]], [0, 1, top - face[1]]], np.float32)
        alpha = cv2.warpAffine(matte, shift, SIZE)
        picture += alpha[..., None] * (cv2.warpAffine(colors, shift, SIZE) - picture)
        own = ((x - left) / face[2] * 2 - 1) ** 2 + ((y - top) / face[3] * 2 - 1) ** 2 <= 1
        faces = (faces & (alpha < 0.5)) | own
    if wall:
        picture[:, wall[0] : wall[1]] = (90, 80, 70)
        faces[:, wall[0] : wall[1]] = False
    noise = np.random.default_rng(number).normal(0, 3, picture.shape)
    rgba = np.full((SIZE[1], SIZE[0], 4), 255, np.uint8)
    rgba[..., :3] = np.clip(picture + noise, 0, 255)
    return rgba, faces


def entering(name: str, scale: float, side: str, step: float) -> Iterator[tuple[list[Figure], None]]:
    """From outside the frame to well inside."""
    _, _, width, height = (scale * each for each in FACES[name])
    for number in range(3 + int(1.6 * max(width, height) / step)):
        far = step * (number - 2)
        x, y = {
            "left": (far - width, 150), "right": (SIZE[0] - far, 150), "top": (280, far - height),
            "bottom": (280, SIZE[1] - far),
        }[side]  # fmt: skip
        yield [Figure(name, scale, x, y)], None


def behind_a_wall(step: float) -> Iterator[tuple[list[Figure], tuple[int, int]]]:
    """Somebody walks behind something that hides the face for some frames."""
    for number in range(int(420 / step)):
        yield [Figure("hopper", 0.5, 60 + step * number, 120)], (250, 380)


def crossing(step: float) -> Iterator[tuple[list[Figure], None]]:
    """Two walk past each other."""
    for number in range(int(420 / step)):
        yield [Figure("hopper", 0.5, 480 - step * number, 130), Figure("astronaut", 0.6, 60 + step * number, 140)], None


Clip = Iterator[tuple[list[Figure], tuple[int, int] | None]]
CLIPS: Mapping[str, Callable[[], Clip]] = {
    **{
        f"{name} {scale} from the {side} by {step}": partial(entering, name, scale, side, step)
        for name, scale, side, step in (
            ("astronaut", 0.6, "top", 16), ("hopper", 0.6, "left", 16), ("astronaut", 0.6, "right", 6),
            ("hopper", 0.6, "bottom", 6), ("astronaut", 1.0, "left", 16), ("hopper", 0.35, "top", 6),
            ("astronaut", 0.6, "bottom", 6), ("hopper", 1.0, "right", 16),
        )
    },
    "behind a wall": lambda: behind_a_wall(10),
    "crossing": lambda: crossing(12),
}  # fmt: skip


@one_in(12, "clip", CLIPS)
def test_no_frame_shows_a_face(clip: str) -> None:
    device, format = NativePictures(2), rgba_format(SIZE)
    network = NativeRegions(guarding(load_finding_model(GUARD_MODEL)), format, pool=device.pool)
    stage = FindingStage(None, free=network.release, guard=FaceGuard(network))
    frame, target = device.planes(format), device.target(SIZE)
    effect = HIDING_FACES[list(CLIPS).index(clip) % 2]
    canvas = Canvas(device, FoundFrames(frame), target, "stretch", ChosenLook(Look(effect)), things=stage)
    seen = 0
    for number, (figures, wall) in enumerate(CLIPS[clip]()):
        rgba, faces = drawn(figures, wall, number)
        stage.run(VideoFrame(number, number, 1000 * number / 30, rgba_picture(rgba)))
        marked = np.where(faces[..., None], PATTERN, rgba)
        frame.upload(rgba_picture(marked))
        canvas.stage.run(VideoFrame(number, number, 1000 * number / 30, rgba_picture(marked)))
        picture = device.read(canvas.shown())
        shown = faces & (picture == marked).all(-1)
        whole = sum(np.pi / 4 * (f.scale * FACES[f.name][2]) * (f.scale * FACES[f.name][3]) for f in figures)
        assert shown.sum() <= 0.01 * whole, f"frame {number}"
        seen += int(faces.any())
    canvas.release()
    stage.release()
    device.release()
    assert seen > 5
