"""Reads true boxes from a JSON file of COCO's form: images, annotations and categories."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.reading.model_file import printable_name

from .average_precision import TrueBoxes

_MOST_BYTES = 1 << 30  # COCO's own train2017 has 470 MB
_MOST_SIDE = 1e6
_MOST_NUMBER = 1 << 53


@dataclass(frozen=True)
class CocoBoxes:
    """By the names of picture files; classes are the numbers of categories."""

    pictures: Mapping[str, TrueBoxes]
    categories: Mapping[int, str]


class _WrongFormError(Exception):
    """What is missing, or of another kind."""


def read_coco(path: Path) -> CocoBoxes:
    """Raises UsageError for a file that is no such JSON."""
    shown = printable_name(str(path))
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{shown}: larger than {_MOST_BYTES >> 30} GiB")
        found = json.loads(path.read_bytes())
        names = {_number(each, "id"): _text(each, "file_name") for each in _dicts(found, "images")}
        categories = {_number(each, "id"): _text(each, "name") for each in _dicts(found, "categories")}
        boxes: dict[int, list[tuple[list[float], int, bool]]] = {number: [] for number in names}
        for each in _dicts(found, "annotations"):
            image = _number(each, "image_id")
            if image not in boxes:
                raise _WrongFormError(f"an annotation is of image {image}, which is not there")
            crowd = each.get("iscrowd", 0) in (1, True)
            boxes[image].append((_box(each), _number(each, "category_id"), crowd))
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{shown}: not JSON; COCO's instances_*.json has the form that is needed") from error
    except _WrongFormError as error:
        raise UsageError(f"{shown}: not of COCO's form: {error}") from error
    return CocoBoxes(
        MappingProxyType({name: _true_boxes(boxes[number]) for number, name in names.items()}),
        MappingProxyType(categories),
    )


def _true_boxes(found: list[tuple[list[float], int, bool]]) -> TrueBoxes:
    return TrueBoxes(
        np.array([box for box, _, _ in found], np.float64).reshape(-1, 4),
        np.array([category for _, category, _ in found], np.int64),
        np.array([crowd for _, _, crowd in found], bool),
    )


def _dicts(found: Any, name: str) -> Iterator[dict[str, Any]]:
    listed = found.get(name) if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise _WrongFormError(f"'{name}' is no list of objects")
    yield from listed


def _number(each: dict[str, Any], name: str) -> int:
    value = each.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_NUMBER:
        raise _WrongFormError(f"'{name}' is no whole number from 0 on")
    return value


def _text(each: dict[str, Any], name: str) -> str:
    value = each.get(name)
    if not isinstance(value, str) or not value:
        raise _WrongFormError(f"'{name}' is no text")
    return value


def _box(each: dict[str, Any]) -> list[float]:
    """left, top, right, bottom, of left, top, width and height."""
    box = each.get("bbox")
    if not isinstance(box, list) or len(box) != 4 or not all(isinstance(x, int | float) for x in box):
        raise _WrongFormError("'bbox' is no list of four numbers")
    left, top, width, height = (float(x) if abs(x) < _MOST_SIDE else math.nan for x in box)
    if not (math.isfinite(left + top + width + height) and width >= 0 and height >= 0):
        raise _WrongFormError(f"'bbox' has a number out of {-_MOST_SIDE:g} to {_MOST_SIDE:g}, or a size below 0")
    return [left, top, left + width, top + height]
