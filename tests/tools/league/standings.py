"""What the rows of a league come to: how each model runs, and sums of all."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .trials import Figures

Standing = Literal["whole", "part", "none", "refused"]
STANDINGS: Sequence[Standing] = ("whole", "part", "none", "refused")
LEAST_BYTES = 7000  # of files that count: smaller ones are tests of one op


def standing(row: Figures, way: str) -> Standing:
    """How a model runs in a way of ours; what cannot be read, started or run is refused.

    Custom ops that a Python function of ours computes are no part that is missing.
    """
    found, nodes = row.get(way, {}), row["file"].get("nodes", 0)
    if "failed" in found or "taken" not in found:
        return "refused"
    if found["taken"] and found["taken"] + found.get("by_function", 0) >= nodes:
        return "whole"
    if found["taken"]:
        return "part"
    return "refused" if found["refused"] else "none"


def best(row: Figures) -> Standing:
    """The better one of OpenGL and native code."""
    return min((standing(row, way) for way in ("gl", "native")), key=STANDINGS.index)


def is_apart(row: Figures) -> bool:
    """Whether it has custom ops that the engine does not know, or TensorFlow's own."""
    return bool(row["file"].get("custom") or row["file"].get("flex"))


@dataclass(frozen=True)
class Summary:
    """Of the models whose files are large enough."""

    models: int  # without those apart
    apart: int
    standings: Mapping[str, Mapping[Standing, int]]  # by way, and of the better one of both
    nodes: int
    taken: Mapping[str, int]
    cold: tuple[float, str, str]  # seconds, the model and the way
    late: Sequence[str]  # models whose cold start takes longer than MOST_COLD_S
    bytes_of: int  # 8-bit outputs
    same: Mapping[str, int]  # of these, equal to the reference's
    failures: Sequence[str]


MOST_COLD_S = 10.0


def summary(rows: Iterable[Figures]) -> Summary:
    """Of all rows; failures of smaller files are told, too."""
    every = [*rows]
    large = [row for row in every if row["size"] >= LEAST_BYTES]
    judged = [row for row in large if not is_apart(row)]
    standings = {way: Counter(standing(row, way) for row in judged) for way in ("gl", "native")}
    starts = [
        (row[way]["ready_s"], row["name"], way)
        for row in every for way in ("gl", "native")
        if "ready_s" in row.get(way, {})
    ]  # fmt: skip
    return Summary(
        len(judged),
        len(large) - len(judged),
        {**standings, "either": Counter(map(best, judged))},
        sum(row["file"].get("nodes", 0) for row in judged),
        {**{way: sum(_taken(row, way) for row in judged) for way in ("gl", "native")},
         "either": sum(max(_taken(row, way) for way in ("gl", "native")) for row in judged)},
        max(starts, default=(0.0, "-", "-")),
        sorted({name for seconds, name, _ in starts if seconds > MOST_COLD_S}),
        sum(_outputs(row, "gl", "bytes") or _outputs(row, "native", "bytes") for row in every),
        {way: sum(_outputs(row, way, "same") for row in every) for way in ("gl", "native", "xnnpack")},
        [line for row in every for line in failures(row)],
    )  # fmt: skip


def failures(row: Figures) -> list[str]:
    """The steps of a model that have failed, in which our part has to do with it."""
    steps = {"file": row["file"], **{way: row.get(way, {}) for way in ("reference", "gl", "native", "compared", "ms")}}
    said = [f"{row['name']}: {name}: {found['failed']}" for name, found in steps.items() if "failed" in found]
    return said + [
        f"{row['name']}: {pair}: {found['apart']}"
        for pair, found in row.get("compared", {}).items()
        if isinstance(found, dict) and "apart" in found
    ]


def changes(row: Figures, before: Figures | None) -> str:
    """What is other than in the last run, in words; times are no change."""
    if before is None:
        return "new"
    said = []
    for way, name in (("gl", "OpenGL"), ("native", "native")):
        now, then = ((standing(each, way), _taken(each, way)) for each in (row, before))
        if now != then:
            said.append(f"{name}: {then[0]} ({then[1]}) -> {now[0]} ({now[1]})")
        errors = [_known(each, f"{way} reference") for each in (row, before)]
        if errors[0] != errors[1] and all(errors):
            said.append(f"{name}: {apart(errors[1])} -> {apart(errors[0])}")
    return "; ".join(said)


def apart(found: Mapping[str, Any] | None) -> str:
    """How far two ways are apart, for a cell."""
    if not found:
        return "-"
    if "apart" in found:
        return "other shapes"
    said = []
    if found["error"] is not None:
        said.append("0" if not found["error"] else f"{found['error']:.1e}")
    if found["equal"] is not None:
        off = f", {found['step']}" if found["step"] else ""
        said.append("equal" if not off else f"{min(found['equal'], 0.9999):.2%}{off}")
    return "; ".join(said) + " (of one value)" * bool(found.get("flat")) or "-"


def _known(row: Figures, pair: str) -> Mapping[str, Any] | None:
    found: Any = row.get("compared", {}).get(pair)
    if not isinstance(found, dict):
        return None
    return found if "apart" in found else {**found, "error": found["error"] and float(f"{found['error']:.0e}")}


def _taken(row: Figures, way: str) -> int:
    return int(row.get(way, {}).get("taken", 0))


def _outputs(row: Figures, way: str, key: str) -> int:
    found: Any = row.get("compared", {}).get(f"{way} reference")
    return int(found.get(key, 0)) if isinstance(found, dict) else 0
