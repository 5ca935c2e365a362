"""Reads the table of the scenes: people, backgrounds, paths, conditions, and the rows to judge.

A row is one scene under one condition. Whoever and whatever is in the rows of one part is in none of the other: filters
are tuned on "tuned" alone, and judged on "judged". tests/data/scenes/README.md tells where all of it comes from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ...picture.preprocess import ImageSize

__all__ = [
    "GROUPS",
    "PARTS",
    "PLAIN",
    "Attached",
    "Background",
    "Condition",
    "Pose",
    "SceneRow",
    "SceneTable",
    "choose_rows",
    "read_scenes",
    "scenes_folder",
]

PARTS = ("tuned", "judged")
PLAIN = "plain"
GROUPS = (PLAIN, "gap", "hats", "hands", "held", "worn")  # of scenes: people alone, or what they are about

Levels = tuple[float, float, float]  # of red, green and blue


@dataclass(frozen=True)
class Person:
    """One photograph: which part of it is used, (x, y, width, height) of its pixels, and by how much that is scaled."""

    name: str
    part: str
    stored: bool  # in the folder; else it is fetched
    crop: tuple[int, int, int, int]
    scale: float


@dataclass(frozen=True)
class Background:
    """A picture, and which part of it covers the frame, (x, y, width, height); None is all of it."""

    file: str
    part: str
    crop: tuple[int, int, int, int] | None


@dataclass(frozen=True)
class Pose:
    """Where the scene is in one frame, against where it was placed.

    Shifts are in pixels of a frame 640 wide; zoom and perspective (change of the scale from one side of the frame to
    the other) are about the middle of the frame's lower edge.
    """

    x: float
    y: float
    zoom: float
    lean_x: float
    lean_y: float


@dataclass(frozen=True)
class Condition:
    """What is done to a scene: how it moves, what light there is, and the noise of the sensor (sigma, of 255)."""

    name: str
    path: tuple[Pose, ...]
    gain: float
    noise: float
    frames: int


@dataclass(frozen=True)
class Placed:
    """A person in a scene, the first ones behind the others: scale and left upper corner in the frame."""

    person: Person
    scale: float
    x: int
    y: int


@dataclass(frozen=True)
class Attached:
    """A drawn thing (scene_things.py) that a person of a scene wears or holds, in front of the person.

    Its middle is at (x, y) of the person's portrait, of whose pixels one of its own takes `scale`; it is turned by
    degrees clockwise, and swings by so many pixels of a frame 640 wide to either side, once in SWING_FRAMES.
    """

    thing: str
    person: int
    scale: float
    x: float
    y: float
    degrees: float
    swing: float


@dataclass(frozen=True)
class SceneRow:
    """One scene under one condition. Without a background the people are in their own surroundings."""

    scene: str
    group: str
    part: str
    size: ImageSize
    background: Background | None
    people: tuple[Placed, ...]
    things: tuple[Attached, ...]
    condition: Condition
    shade: tuple[Levels, Levels] | None  # of a low contrast: gain and offset of the background

    @property
    def name(self) -> str:
        return f"{self.scene}, {self.condition.name}"

    def shortened(self, frames: int | None) -> "SceneRow":
        """The same with so many frames at most."""
        condition = self.condition
        return replace(self, condition=replace(condition, frames=min(condition.frames, frames or condition.frames)))


@dataclass(frozen=True)
class SceneTable:
    """All of it."""

    folder: Path
    rows: tuple[SceneRow, ...]


def scenes_folder() -> Path:
    """The folder in the repository. Raises UsageError where the program is installed without it."""
    folder = Path(__file__).resolve().parents[3] / "tests" / "data" / "scenes"
    if not folder.is_dir():
        raise UsageError(
            "--scenes: the scenes are in the repository, not in the installed package; run it in a checkout"
        )
    return folder


def read_scenes(folder: Path) -> SceneTable:
    """The table of a folder, scenes.json. Raises MediaError if it is not as it should be."""
    path = folder / "scenes.json"
    try:
        return SceneTable(folder, tuple(_rows(json.loads(path.read_text("utf-8")))))
    except OSError as error:
        raise MediaError(f"cannot read '{path}': {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise MediaError(f"'{path}' is not a table of scenes ({error!r}); take it from the repository") from error


def _rows(table: Mapping[str, Any]) -> Sequence[SceneRow]:
    people = {
        name: Person(name, each["part"], each["stored"], tuple(each["crop"]), each["scale"])
        for name, each in table["people"].items()
    }
    paths = {name: tuple(Pose(*pose) for pose in poses) for name, poses in table["paths"].items()}
    backgrounds = {
        name: Background(each["file"], each["part"], tuple(each["crop"]) if "crop" in each else None)
        for name, each in table["backgrounds"].items()
    }
    conditions = {
        name: Condition(name, paths[each["path"]], each["gain"], each["noise"], each["frames"])
        for name, each in table["conditions"].items()
    }
    return [
        _row(scene, people, conditions[condition], backgrounds)
        for scene in table["scenes"]
        for condition in scene["conditions"]
    ]


def _row(
    scene: Mapping[str, Any],
    people: Mapping[str, Person],
    condition: Condition,
    backgrounds: Mapping[str, Background],
) -> SceneRow:
    placed = tuple(Placed(people[name], scale, x, y) for name, scale, x, y in scene["people"])
    behind, shade = backgrounds[scene["background"]] if scene["background"] else None, None
    if condition.name == "low contrast":
        shade = tuple(scene["low"]["gain"]), tuple(scene["low"]["offset"])
    parts = {each.person.part for each in placed} | ({behind.part} if behind else set())
    if parts != {scene["part"]}:
        raise ValueError(f"{scene['name']} mixes the parts")
    if condition.frames > len(condition.path):
        raise ValueError(f"{condition.name} has more frames than its path")
    things = tuple(Attached(*thing) for thing in scene.get("things", ()))
    group = scene.get("group", PLAIN)
    if group not in GROUPS or any(not 0 <= thing.person < len(placed) for thing in things):
        raise ValueError(f"{scene['name']} is of no group, or of a person who is not there")
    names = scene["name"], group, scene["part"]
    return SceneRow(*names, tuple(scene["size"]), behind, placed, things, condition, shade)


def choose_rows(
    rows: Sequence[SceneRow],
    part: str,
    conditions: Sequence[str],
    only: Sequence[str],
    groups: Sequence[str] = (PLAIN,),
) -> tuple[SceneRow, ...]:
    """The rows of a part ("all" for both), of some conditions and groups, and of scenes whose names hold a word.

    Nothing named means all. Raises UsageError for words that choose nothing.
    """
    if part not in (*PARTS, "all"):
        raise UsageError(f"--part {part}: {', '.join(PARTS)} or all is needed")
    known = list(dict.fromkeys(row.condition.name for row in rows))
    for name in conditions:
        if name not in known:
            raise UsageError(f"--conditions {name}: one of {', '.join(known)} is needed")
    for name in groups:
        if name not in GROUPS:
            raise UsageError(f"--groups {name}: {', '.join(GROUPS)} or all is needed")
    chosen = tuple(
        row
        for row in rows
        if part in (row.part, "all")
        and (not conditions or row.condition.name in conditions)
        and (not groups or row.group in groups)
        and (not only or any(word in row.scene for word in only))
    )
    if not chosen:
        raise UsageError("no scene is left; --part all without --conditions and --only has all of them")
    return chosen
