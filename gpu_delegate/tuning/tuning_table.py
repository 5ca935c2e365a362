"""Writes tuning choices as JSON, and reads them back; malformed entries are dropped."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any, TypeGuard, get_args, get_type_hints

from ..device.choices import UNMEASURED, Choice, Choices, FusionChoice
from ..device.tile import Tile

FUSION_SETTINGS = ("held_slices", "min_fused_threads", "window_repeats", "prologue_loads")  # of Tuning

_MOST_SIDE = 1024  # of a work-group
_MOST_OTHERS = 64  # of any other number in a tile


def as_json(choices: Choices) -> bytes:
    """Bytes that parse_choices reads."""
    kernels = {name: asdict(choice) for name, choice in sorted(choices.kernels.items())}
    graphs = {
        name: {"ms": choice.ms, "default_ms": choice.default_ms, "settings": dict(choice.settings)}
        for name, choice in sorted(choices.graphs.items())
    }
    return json.dumps({"kernels": kernels, "graphs": graphs}).encode()


def parse_choices(data: bytes) -> Choices:
    """All that is well-formed in it; nothing is raised."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return UNMEASURED
    kernels = {name: kernel for name, raw in _entries(found, "kernels") if (kernel := _kernel(raw))}
    graphs = {name: graph for name, raw in _entries(found, "graphs") if (graph := _graph(raw))}
    return Choices(MappingProxyType(kernels), MappingProxyType(graphs))


def _entries(found: object, part: str) -> list[tuple[str, Mapping[str, Any]]]:
    part_of = found.get(part) if isinstance(found, dict) else None
    return [(name, raw) for name, raw in part_of.items() if isinstance(raw, dict)] if isinstance(part_of, dict) else []


def _kernel(raw: Mapping[str, Any]) -> Choice | None:
    tile, times, same, searched = _tile(raw.get("tile")), _times(raw), raw.get("same_bits"), raw.get("searched")
    if not tile or not times or not isinstance(same, bool) or not _is_count(searched, _MOST_OTHERS):
        return None
    return Choice(*times, tile, same, searched)


def _graph(raw: Mapping[str, Any]) -> FusionChoice | None:
    times, settings = _times(raw), raw.get("settings")
    if not times or not isinstance(settings, dict) or settings.keys() != set(FUSION_SETTINGS):
        return None
    if not all(_is_count(value, 1 << 62) for value in settings.values()):
        return None
    return FusionChoice(*times, MappingProxyType(settings))


def _times(raw: Mapping[str, Any]) -> tuple[float, float] | None:
    found = raw.get("ms"), raw.get("default_ms")
    good = all(isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms < math.inf for ms in found)
    return found if good else None  # type: ignore[return-value]


def _tile(raw: object) -> Tile | None:
    """A tile with a value of the right type and size for each of its fields."""
    if not isinstance(raw, dict) or raw.keys() != {field.name for field in fields(Tile)}:
        return None
    kinds = get_type_hints(Tile)
    values = {name: _value(kinds[name], value) for name, value in raw.items()}
    return None if None in values.values() else Tile(**values)


def _value(kind: Any, value: object) -> Any:
    """The value as that type, None if it is not of it."""
    if kind is bool:
        return value if isinstance(value, bool) else None
    if kind is int:
        return value if _is_count(value, _MOST_OTHERS) else None
    if kind is str or (get_args(kind) and all(isinstance(word, str) for word in get_args(kind))):
        return value if value in get_args(kind) else None
    sides = isinstance(value, list) and len(value) == 3 and all(_is_count(side, _MOST_SIDE) and side for side in value)
    return tuple(value) if sides else None  # type: ignore[arg-type]


def _is_count(value: object, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
