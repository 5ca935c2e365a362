"""Random clips with faces that are known by construction: they come in at edges, fade in, pass walls, cross.

Each frame tells where the middle of each face is, from its brows to its mouth, as far as it can be seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from texelflow import assets
from texelflow.app.picture.convert import Rgba

__all__ = ["FaceClip", "face_clip"]

ASSETS, SCENES = Path(assets.__file__).parent, Path(__file__).parents[1] / "data" / "scenes"
SIZE = (640, 480)
BACKGROUNDS = (
    *(SCENES / "backgrounds" / f"{name}.jpg" for name in ("chelsea", "china", "coffee", "flower", "rocket")),
    *(ASSETS / f"background{name}.jpg" for name in ("", "_lights", "_room", "_studio")),
)
FACES = {"astronaut": (172, 62, 108, 128), "hopper": (175, 130, 165, 215)}  # left, top, width, height in the photograph
SEEN = 0.35  # of a face that fades in: what shows less of it is no face yet

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Entry = Literal["left", "right", "top", "bottom", "fade", "wall", "there"]


@dataclass(frozen=True)
class _Actor:
    name: str
    mirrored: bool
    scale: float
    light: float
    entry: Entry
    start: int  # the frame in which it begins to come
    at: tuple[float, float]  # the middle of its face then
    step: tuple[float, float]  # pixels a frame
    fade: int  # frames
    stays: int  # frames after which it stands still for some, 0: never
    wall: tuple[int, int] | None

    def place(self, number: int) -> tuple[float, float]:
        """The middle of its face in a frame."""
        passed = number - self.start
        moved = passed if not self.stays or passed < self.stays else self.stays + max(0, passed - self.stays - 12)
        return self.at[0] + self.step[0] * moved, self.at[1] + self.step[1] * moved

    def shown(self, number: int) -> float:
        if self.entry == "fade":
            return max(0.0, min(1.0, (number - self.start) / self.fade))
        return 1.0


@dataclass(frozen=True)
class FaceClip:
    """What is drawn of a seed; `words` say it."""

    seed: int
    frames: int
    background: int
    noise: float
    shake: float
    actors: tuple[_Actor, ...]

    @property
    def words(self) -> str:
        return ", ".join(
            f"{a.name} {a.entry} {a.scale * FACES[a.name][2]:.0f}px by {_length(a.step):.0f}" for a in self.actors
        )

    def drawn(self) -> Iterator[tuple[Rgba, list[Mask]]]:
        """Each frame (480, 640, 4), and for each actor what can be seen of the middle of its face."""
        rng = np.random.default_rng(self.seed)
        bank = rng.normal(0, self.noise, (2 * SIZE[1], 2 * SIZE[0], 3)).astype(np.float32)
        back = _background(self.background)
        shift = np.zeros(2)
        for number in range(self.frames):
            shift = 0.8 * shift + rng.normal(0, self.shake, 2)
            yield self._frame(number, back, bank, rng, shift)

    def _frame(
        self, number: int, back: Floats, bank: Floats, rng: np.random.Generator, shift: npt.NDArray[np.float64]
    ) -> tuple[Rgba, list[Mask]]:
        move = np.array([[1, 0, shift[0]], [0, 1, shift[1]]], np.float32)
        picture: Floats = np.asarray(cv2.warpAffine(back, move, SIZE, borderMode=cv2.BORDER_REFLECT), np.float32)
        y, x = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
        seen: list[Mask] = []
        for actor in self.actors:
            colors, matte = _cutout(actor.name, round(actor.scale, 3), actor.mirrored)
            face = _face(actor.name, actor.scale, actor.mirrored)
            center = np.array(actor.place(number)) + shift
            to = np.array([[1, 0, center[0] - face[0]], [0, 1, center[1] - face[1]]], np.float32)
            alpha = cv2.warpAffine(matte, to, SIZE) * np.float32(actor.shown(number))
            drawn = cv2.warpAffine(colors, to, SIZE) * np.float32(actor.light)
            if actor.wall:
                alpha[:, actor.wall[0] : actor.wall[1]] = 0
            picture = picture + alpha[..., None] * (drawn - picture)
            inside = ((x - center[0]) / (0.36 * face[2])) ** 2 + ((y - center[1]) / (0.34 * face[3])) ** 2 <= 1
            seen = [each & (alpha < 0.5) for each in seen]
            seen.append(inside & (alpha > SEEN))
        top, left = rng.integers(0, SIZE[1]), rng.integers(0, SIZE[0])
        picture = picture + bank[top : top + SIZE[1], left : left + SIZE[0]]
        rgba = np.full((SIZE[1], SIZE[0], 4), 255, np.uint8)
        rgba[..., :3] = np.clip(picture, 0, 255)
        return rgba, seen

    def face_size(self, place: int) -> float:
        """Pixels of the middle of an actor's face, all of it."""
        actor = self.actors[place]
        _, _, width, height = _face(actor.name, actor.scale, actor.mirrored)
        return float(np.pi * 0.36 * width * 0.34 * height)


def face_clip(seed: int, frames: int = 50) -> FaceClip:
    """The clip of a seed."""
    random = Random(f"face clip {seed}")
    actors = tuple(_actor(random, frames) for _ in range(random.choice((1, 1, 2, 2, 3))))
    background, noise = random.randrange(len(BACKGROUNDS)), random.uniform(1, 5)
    shake = random.choice((0.0, 0.0, 0.5, 1.2))
    return FaceClip(seed, frames, background, noise, shake, actors)


def _actor(random: Random, frames: int) -> _Actor:
    name, mirrored = random.choice(sorted(FACES)), random.random() < 0.5
    size = 40 * (220 / 40) ** random.random()
    scale = size / FACES[name][2]
    high = size * FACES[name][3] / FACES[name][2]
    entry: Entry = random.choice(("left", "right", "top", "bottom", "fade", "wall", "there"))
    speed, start = 2 * 8 ** random.random(), random.randrange(0, frames // 2)
    width, height = SIZE
    x, y = random.uniform(0.15 * width, 0.85 * width), random.uniform(0.3 * height, 0.7 * height)
    drift, wall, outside = random.uniform(-0.2, 0.2) * speed, None, 0.5
    at, step = (x, y), (drift, drift)
    if entry == "left":
        at, step = (-outside * size, y), (speed, drift)
    elif entry == "right":
        at, step = (width + outside * size, y), (-speed, drift)
    elif entry == "top":
        at, step = (x, -outside * high), (drift, speed)
    elif entry == "bottom":
        at, step = (x, height + outside * high), (drift, -speed)
    elif entry == "wall":
        wide, side = 1.2 * size, random.choice((-1, 1))
        middle = random.uniform(0.3, 0.7) * width
        wall = (max(0, int(middle - wide / 2)), int(middle + wide / 2))
        at, step = (middle, y), (side * speed, 0.0)
    elif entry == "there":
        start, step = 0, (random.choice((-1, 1)) * speed / 2, drift / 2)
    stays = random.choice((0, 0, int(1.0 * size / speed) + 3))
    fade = random.randrange(4, 16)
    return _Actor(name, mirrored, scale, random.uniform(0.6, 1.15), entry, start, at, step, fade, stays, wall)


def _length(step: tuple[float, float]) -> float:
    return float(np.hypot(*step))


def _face(name: str, scale: float, mirrored: bool) -> tuple[float, float, float, float]:
    """Its middle in its picture, and its size."""
    left, top, width, height = (scale * each for each in FACES[name])
    center = left + width / 2
    if mirrored:
        center = _cutout(name, round(scale, 3), True)[0].shape[1] - center
    return center, top + 0.52 * height, width, height


@lru_cache(maxsize=12)
def _cutout(name: str, scale: float, mirrored: bool) -> tuple[Floats, Floats]:
    """A person's colors and matte."""
    photo = cv2.imread(str(SCENES / "photos" / f"{name}.jpg"))[..., ::-1]
    matte = cv2.resize(cv2.imread(str(ASSETS / f"{name}_matte.png"), 0), photo.shape[1::-1])
    to = (round(photo.shape[1] * scale), round(photo.shape[0] * scale))
    kind = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    made = [cv2.resize(each, to, interpolation=kind).astype(np.float32) for each in (photo, matte)]
    if mirrored:
        made = [np.ascontiguousarray(each[:, ::-1]) for each in made]
    return made[0], made[1] / 255


@lru_cache(maxsize=16)
def _background(place: int) -> Floats:
    return cv2.resize(cv2.imread(str(BACKGROUNDS[place]))[..., ::-1], SIZE, interpolation=cv2.INTER_AREA).astype(
        np.float32
    )
