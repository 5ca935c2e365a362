"""The table of costs of kernels as JSON, and what has become worse than it.

A table has costs by Mesa's version, platform and model, a line of the file for each dispatch.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from .compilers import Report, Row
from .platforms import PLATFORMS

TABLE = Path("tests", "data", "gpu_compilers.json")
# The platforms in that table: a GPU of each kind of compiler.
KEPT = (
    "skl", "tgl", "dg2", "raven", "vangogh-aco", "navi31-aco", "a618", "a740", "g52", "g57", "v3d42", "radv-navi22"
)  # fmt: skip
MOST_GROWTH = 1.10


@dataclass(frozen=True)
class Cost:
    """What a dispatch costs. Costs of different platforms are in different units, and are never compared."""

    name: str
    key: str  # of its text
    cost: float  # of one SIMD thread, in the best unit that the driver gives
    issued: float  # the same for all SIMD threads
    spills: int
    width: int
    registers: int


Costs = Mapping[str, Mapping[str, Sequence[Cost]]]  # by platform and model
Table = Mapping[str, Costs]  # by Mesa's version


@dataclass(frozen=True)
class Total:
    """The costs of a model's dispatches together."""

    dispatches: int
    cost: float
    issued: float
    spilling: int  # dispatches that spill
    narrow: int  # dispatches at less than the SIMD width that the GPU could give


def table_of(reports: Iterable[Report]) -> Table:
    """Costs of all kernels that have been compiled."""
    table: dict[str, dict[str, Mapping[str, Sequence[Cost]]]] = {}
    for report in reports:
        models = {model: [cost_of(row) for row in rows] for model, rows in report.rows.items()}
        table.setdefault(report.mesa, {})[report.platform] = models
    return table


def costs_of(rows: Sequence[Row], known: Mapping[str, Cost]) -> list[Cost]:
    """Of a model, where some texts are known and have not been compiled."""
    return [
        replace(found, name=row.dispatch.name, issued=found.cost * row.dispatch.simd_threads(found.width))
        if (found := known.get(row.dispatch.key))
        else cost_of(row)
        for row in rows
    ]


def by_key(costs: Mapping[str, Sequence[Cost]]) -> dict[str, Cost]:
    """A platform's costs by text; `issued` is that of one of the dispatches that have the text."""
    return {each.key: each for model in costs.values() for each in model}


def cost_of(row: Row) -> Cost:
    """RADV's estimate in cycles, else instructions with the turns of loops, else instructions, else bytes of code."""
    found, dispatch = row.figures, row.dispatch
    if found is None:
        return Cost(dispatch.name, dispatch.key, 0.0, 0.0, 0, 0, 0)
    cost = next((n for n in (found.latency, found.executed, found.instructions, found.code_bytes) if n is not None), 0)
    return Cost(
        dispatch.name, dispatch.key, cost, cost * dispatch.simd_threads(found.width), found.spills, found.width or 0,
        found.registers or 0,
    )  # fmt: skip


def total(costs: Sequence[Cost], full_width: int) -> Total:
    """Over a model's dispatches on a GPU whose SIMD threads may have so many threads."""
    return Total(
        len(costs),
        sum(each.cost for each in costs),
        sum(each.issued for each in costs),
        sum(each.spills > 0 for each in costs),
        sum(0 < each.width < full_width for each in costs),
    )


def losses(platform: str, model: str, before: Sequence[Cost], now: Sequence[Cost]) -> list[str]:
    """What is worse than before, a line for each: spills, narrow SIMD, over a tenth more cost, a thread's and all's."""
    full_width = PLATFORMS[platform].full_width
    old, new, what = total(before, full_width), total(now, full_width), f"{platform}: {model}"
    found = []
    if new.spilling > old.spilling:
        names = ", ".join(each.name for each in now if each.spills)
        found.append(f"{what}: {new.spilling} kernels spill, {old.spilling} did: {names}")
    if new.narrow > old.narrow:
        found.append(f"{what}: {new.narrow} kernels have not the full SIMD width, {old.narrow} had not")
    if _is_dearer(old, new):
        found.append(f"{what}: cost {new.cost:.0f}, was {old.cost:.0f}")
    if [each.name for each in before] == [each.name for each in now]:
        found += [
            f"{what}: dispatch {number} {b.name}: cost {b.cost:.0f}, was {a.cost:.0f}"
            for number, (a, b) in enumerate(zip(before, now, strict=True))
            if _is_dearer(a, b)
        ]
    return found


def _is_dearer(before: Cost | Total, now: Cost | Total) -> bool:
    """Not where fewer threads do more each, nor where more do less."""
    return now.cost > MOST_GROWTH * before.cost and now.issued > MOST_GROWTH * before.issued


def read_table(path: Path) -> dict[str, dict[str, dict[str, list[Cost]]]]:
    """A table from its file. Raises OSError, ValueError, TypeError."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {
        mesa: {
            platform: {model: [Cost(*each) for each in costs] for model, costs in models.items()}
            for platform, models in platforms.items()
        }
        for mesa, platforms in stored.items()
    }


def write_table(table: Table, path: Path) -> None:
    """Write a table, a line for each dispatch. Raises OSError."""

    def block(items: Mapping[str, str], depth: int) -> str:
        lines = ",\n".join(f"{' ' * depth}{json.dumps(name)}: {text}" for name, text in items.items())
        return f"{{\n{lines}\n{' ' * (depth - 1)}}}"

    def rows(costs: Sequence[Cost]) -> str:
        return "[\n" + ",\n".join(json.dumps(astuple(each), separators=(",", ":")) for each in costs) + "\n   ]"

    text = block(
        {
            mesa: block(
                {
                    platform: block({model: rows(costs) for model, costs in models.items()}, 3)
                    for platform, models in platforms.items()
                },
                2,
            )
            for mesa, platforms in table.items()
        },
        1,
    )
    path.write_text(text + "\n", encoding="utf-8")


def merged(old: Table, new: Table) -> Table:
    """The old table with the platforms of the new one instead of its own."""
    return {mesa: {**old.get(mesa, {}), **new.get(mesa, {})} for mesa in sorted({*old, *new})}
