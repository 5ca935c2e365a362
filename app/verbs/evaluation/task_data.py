"""Finds the pictures of a folder and what is true of them: their class, a mask beside each, or boxes in a JSON file."""

import csv
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.reading.model_file import printable_name

from ...media.image_file import IMAGE_ENDINGS
from .average_precision import TrueBoxes
from .coco_boxes import read_coco

_Found = TypeVar("_Found")

MASK = "_mask.png"
LABELS, NAMES = "labels.csv", "labels.txt"
_MOST_PICTURES = 1_000_000
_MOST_NAME_BYTES = 1 << 24
_NUMBERED = re.compile(r"(\d{1,6})[-_]")


@dataclass(frozen=True)
class ClassPicture:
    """A picture, and the number of its class among the network's outputs."""

    path: Path
    label: int


@dataclass(frozen=True)
class MaskPicture:
    """A picture, and a PNG of the number of each pixel's class."""

    path: Path
    mask: Path


@dataclass(frozen=True)
class BoxPicture:
    """A picture, and the boxes in it."""

    path: Path
    true: TrueBoxes


def class_names(folder: Path, listed: Sequence[str]) -> tuple[str, ...]:
    """The lines of labels.txt, where the folder has one; else those of the model's metadata. Raises UsageError."""
    path = folder / NAMES
    if not path.is_file():
        return tuple(listed)
    return tuple(line.strip() for line in _text(path).splitlines())


def class_pictures(folder: Path, names: Sequence[str]) -> list[ClassPicture]:
    """By labels.csv (file,class), by folders that are named by classes, or by names that begin with a class' number
    and - or _, as 285-cat.png; a class is a number or one of the names. Raises UsageError."""
    if (folder / LABELS).is_file():
        found = list(_by_table(folder, names))
    else:
        deeper = [each for each in _entries(folder) if each.is_dir()]
        found = [ClassPicture(path, _class(each.name, names, each.name)) for each in deeper for path in _pictures(each)]
        if not found:
            found = [ClassPicture(path, _class_of_name(path)) for path in _pictures(folder)]
    return _some(found, folder, "pictures with classes")


def mask_pictures(folder: Path) -> list[MaskPicture]:
    """Each picture that has a mask: of cat.jpg cat_mask.png, or cat.png. Raises UsageError."""
    found = []
    for path in _pictures(folder):
        beside = path.with_name(path.stem + MASK), path.with_suffix(".png")
        if path.name.endswith(MASK):
            continue
        mask = next((each for each in beside if each != path and each.is_file()), None)
        if mask is not None:
            found.append(MaskPicture(path, mask))
    return _some(found, folder, f"pictures with masks beside them (NAME{MASK})")


def box_pictures(folder: Path, names: Sequence[str]) -> tuple[list[BoxPicture], dict[int, int]]:
    """The pictures that the folder's one JSON file of COCO's form names, and by the network's class its category.

    By their names, where classes have some; else category is class + 1, as in networks that were trained on COCO.
    Raises UsageError.
    """
    files = [each for each in _entries(folder) if each.suffix.lower() == ".json"]
    if len(files) != 1:
        raise UsageError(f"{_shown(folder)}: one .json file of COCO's form is needed, and there are {len(files)}")
    coco = read_coco(files[0])
    found = [BoxPicture(_inside(folder, name), true) for name, true in coco.pictures.items()]
    if not names:
        return _some(found, folder, "pictures with boxes"), {each - 1: each for each in coco.categories}
    numbers = {name: number for number, name in coco.categories.items()}
    plain = names[1:] if names[0] in ("???", "background") else names
    known = {place: numbers[name] for place, name in enumerate(plain) if name in numbers}
    if not known:
        raise UsageError(f"{_shown(folder)}: no class of the model has the name of a category in {files[0].name}")
    return _some(found, folder, "pictures with boxes"), known


def _by_table(folder: Path, names: Sequence[str]) -> Iterator[ClassPicture]:
    rows = [row for row in csv.reader(_text(folder / LABELS).splitlines()) if row]
    for number, row in enumerate(rows):
        if len(row) != 2:
            raise UsageError(f"{_shown(folder / LABELS)}: line {number + 1} is not FILE,CLASS")
        file, label = (each.strip() for each in row)
        if number or Path(file).suffix.lower() in IMAGE_ENDINGS:  # else the line of titles
            yield ClassPicture(_inside(folder, file), _class(label, names, file))


def _class(text: str, names: Sequence[str], where: str) -> int:
    if text.isdecimal() and len(text) <= 6:
        return int(text)
    if text in names:
        return names.index(text)
    raise UsageError(f"{printable_name(where)}: no class has the name {printable_name(text)!r}; {NAMES} names them")


def _class_of_name(path: Path) -> int:
    found = _NUMBERED.match(path.name)
    if found is None:
        raise UsageError(
            f"{printable_name(path.name)}: its class is not known; begin its name with the number, as 285-cat.png, "
            f"put it into a folder of that name, or write {LABELS}"
        )
    return int(found[1])


def _inside(folder: Path, name: str) -> Path:
    """A file that another file names; nothing out of the folder. Raises UsageError."""
    path = Path(os.path.normpath(folder / name))
    if "\0" in name or not path.is_relative_to(Path(os.path.normpath(folder))):
        raise UsageError(f"{printable_name(name)}: not in {_shown(folder)}")
    return path


def _pictures(folder: Path) -> Iterator[Path]:
    return (each for each in _entries(folder) if each.suffix.lower() in IMAGE_ENDINGS and not each.is_dir())


def _entries(folder: Path) -> list[Path]:
    """By name. Raises UsageError."""
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / each.name for each in islice(entries, _MOST_PICTURES))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"--data {_shown(folder)}: no folder that can be read ({why})") from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_NAME_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{_shown(path)}: cannot be read ({error.strerror or error})") from error


def _some(found: list[_Found], folder: Path, what: str) -> list[_Found]:
    if not found:
        raise UsageError(f"--data {_shown(folder)}: there are no {what}")
    return found


def _shown(path: Path) -> str:
    return printable_name(str(path))
