"""Sums up the figures of all rows: means, the rows that are worse than raw, and the targets that are reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...console import Console
from .scene_data import SceneRow
from .scene_figures import SceneFigures, mean_figures

__all__ = ["Judged", "row_figures", "scene_summary", "show_scenes"]

RAW = "raw"
_TOLERATED = 0.005  # of raw's figure: a row is worse from there on
_WORSE_F = 0.02
_MOST_WORSE_F = 0.05  # of all rows
_FLICKER = {"still": 0.4, "noise 5": 0.6, "noise 10": 0.6, "motion": 0.7}  # of raw's, at most
_WORSE_BY = ("f_score", "matte_error", "flicker", "island_pixels", "hole_pixels", "color_error")
_COLUMNS = (
    ("F, %", "f_score", 100.0),
    ("matte", "matte_error", 1e3),
    ("flicker", "flicker", 1e3),
    ("islands", "islands", 1.0),
    ("px", "island_pixels", 1.0),
    ("holes", "holes", 1.0),
    ("px", "hole_pixels", 1.0),
    ("length", "outline_length", 1.0),
    ("far", "far_error", 1e3),
    ("color", "color_error", 1.0),
)
_THINGS = ("things", "thing_error", 1e3)  # where there are some
_MOST_ROWS = 30  # that are shown one by one


@dataclass(frozen=True)
class Judged:
    """A row, and by each way its figures and the milliseconds that refining and compositing took."""

    row: SceneRow
    figures: Mapping[str, SceneFigures]
    refine_ms: Mapping[str, float]
    composite_ms: Mapping[str, float]


def row_figures(judged: Judged) -> dict[str, Any]:
    """One row as JSON."""
    row = judged.row
    ways = {
        name: {
            **_rounded(figures),
            "refine_ms": round(judged.refine_ms[name], 3),
            "composite_ms": round(judged.composite_ms[name], 3),
        }
        for name, figures in judged.figures.items()
    }
    named = {"scene": row.scene, "group": row.group, "condition": row.condition.name, "part": row.part}
    return {**named, "size": list(row.size), "ways": ways}


def scene_summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Means of all rows, of each condition and group, counts of rows worse than raw, and targets, for JSON."""
    ways = list(judged[0].figures)
    conditions = list(dict.fromkeys(each.row.condition.name for each in judged))
    others = [way for way in ways if way != RAW] if RAW in ways else []
    return {
        "means": {way: _rounded(_mean(judged, way)) for way in ways},
        "conditions": {name: {way: _rounded(_mean(_under(judged, name), way)) for way in ways} for name in conditions},
        "groups": {name: {way: _rounded(_mean(rows, way)) for way in ways} for name, rows in _groups(judged).items()},
        "worse_than_raw": {way: {key: _worse(judged, way, key) for key in _WORSE_BY} for way in others},
        "targets": {way: [vars(target) for target in _targets(judged, way)] for way in others},
    }


@dataclass(frozen=True)
class _Target:
    name: str
    wanted: str
    found: str
    reached: bool


def _targets(judged: Sequence[Judged], way: str) -> list[_Target]:
    """What refinement is to reach against raw, all rows together."""
    raw, ours = _mean(judged, RAW), _mean(judged, way)
    gain = 100 * (ours.f_score - raw.f_score)
    worse_f = sum(each.figures[way].f_score < each.figures[RAW].f_score - _WORSE_F for each in judged)
    flickers = {name: limit for name, limit in _FLICKER.items() if _under(judged, name)}
    targets = [
        _Target("F-score of outlines", "+6 points or more", f"{gain:+.1f}", gain >= 6),
        _limited("matte error", 0.75, ours.matte_error, raw.matte_error),
        _limited("flicker", 0.6, ours.flicker, raw.flicker),
        *(
            _limited(f"flicker, {name}", limit, *(_mean(_under(judged, name), each).flicker for each in (way, RAW)))
            for name, limit in flickers.items()
        ),
        _limited("pixels of islands", 1.0, ours.island_pixels, raw.island_pixels),
        _limited("pixels of holes", 0.5, ours.hole_pixels, raw.hole_pixels),
        _Target("outline length", "1.10 or less", f"{ours.outline_length:.3f}", ours.outline_length <= 1.1),
        _limited("color error", 0.8, ours.color_error, raw.color_error),
    ]
    for key in ("matte_error", "flicker", "color_error"):
        worse = _worse(judged, way, key)
        targets.append(_Target(f"rows worse in {key.replace('_', ' ')}", "none", str(worse), worse == 0))
    most = int(_MOST_WORSE_F * len(judged))
    return [*targets, _Target("rows worse in F by over 2 points", f"{most} or fewer", str(worse_f), worse_f <= most)]


def _limited(name: str, most: float, ours: float, raw: float) -> _Target:
    found = f"{ours / raw:.3f}" if raw else ("1" if not ours else "more")
    return _Target(name, f"{most:g} of raw's or less", found, ours <= most * raw)


def _worse(judged: Sequence[Judged], way: str, key: str) -> int:
    """How many rows have a figure that is worse than raw's by more than what is tolerated."""
    sign = 1 if key == "f_score" else -1
    pairs = [(getattr(each.figures[way], key), getattr(each.figures[RAW], key)) for each in judged]
    return sum(sign * (ours - raw) < -_TOLERATED * raw - 1e-9 for ours, raw in pairs)


def _mean(judged: Sequence[Judged], way: str) -> SceneFigures:
    return mean_figures([each.figures[way] for each in judged])


def _under(judged: Sequence[Judged], condition: str) -> list[Judged]:
    return [each for each in judged if each.row.condition.name == condition]


def _groups(judged: Sequence[Judged]) -> Mapping[str, Sequence[Judged]]:
    names = dict.fromkeys(each.row.group for each in judged)
    return {name: [each for each in judged if each.row.group == name] for name in names}


def _rounded(figures: SceneFigures) -> dict[str, float]:
    return {key: round(value, 5) for key, value in vars(figures).items()}


def show_scenes(judged: Sequence[Judged], title: str, console: Console) -> None:
    """Tables: each row, or of many rows each scene; each condition, and all; costs, rows worse than raw, targets."""
    few = len(judged) <= _MOST_ROWS
    by_scene = {
        name: [each for each in judged if name == (each.row.name if few else each.row.scene)]
        for name in dict.fromkeys(each.row.name if few else each.row.scene for each in judged)
    }
    _show_means(f"{title}: {'rows' if few else 'scenes, over their conditions'}", by_scene, console)
    conditions = dict.fromkeys(each.row.condition.name for each in judged)
    by_condition = {f"{name} ({len(rows)})": rows for name in conditions if (rows := _under(judged, name))}
    _show_means(f"{title}: conditions", {**by_condition, f"all rows ({len(judged)})": judged}, console)
    groups = _groups(judged)
    if len(groups) > 1:
        by_group = {f"{name} ({len(rows)})": rows for name, rows in groups.items()}
        _show_means(f"{title}: groups", by_group, console)
    ways = list(judged[0].figures)
    _show_costs(judged, ways, console)
    if RAW in ways:
        _show_targets(judged, [way for way in ways if way != RAW], console)


def _show_means(title: str, groups: Mapping[str, Sequence[Judged]], console: Console) -> None:
    has_things = any(each.row.things for rows in groups.values() for each in rows)
    columns = (*_COLUMNS, _THINGS) if has_things else _COLUMNS
    rows = [
        (name if number == 0 else "", way, *_cells(_mean(rows, way), columns))
        for name, rows in groups.items()
        for number, way in enumerate(rows[0].figures)
    ]
    console.table(title, ("", "masks", *(name for name, _, _ in columns)), rows, dense=True)


def _cells(figures: SceneFigures, columns: Sequence[tuple[str, str, float]]) -> list[float | int]:
    """Of one line; whole pixels."""
    values = [factor * getattr(figures, key) for _, key, factor in columns]
    return [round(value) if name == "px" else value for (name, _, _), value in zip(columns, values, strict=True)]


def _show_costs(judged: Sequence[Judged], ways: Sequence[str], console: Console) -> None:
    for size in sorted({each.row.size for each in judged}):
        rows = [each for each in judged if each.row.size == size]
        costs = (
            f"{way} {sum(each.refine_ms[way] for each in rows) / len(rows):.2f} + "
            f"{sum(each.composite_ms[way] for each in rows) / len(rows):.2f}"
            for way in ways
        )
        console.say(f"refine + composite at {size[0]}x{size[1]}, ms: {'; '.join(costs)}")


def _show_targets(judged: Sequence[Judged], ways: Sequence[str], console: Console) -> None:
    for way in ways:
        worse = ", ".join(f"{key.replace('_', ' ')} {_worse(judged, way, key)}" for key in _WORSE_BY)
        console.say(f"rows of {len(judged)} in which {way} is worse than raw: {worse}")
        rows = [
            (target.name, target.wanted, target.found, "reached" if target.reached else "not reached")
            for target in _targets(judged, way)
        ]
        console.table(f"Targets for {way} against raw", ("target", "wanted", "found", ""), rows)
