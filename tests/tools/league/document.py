"""Writes the tables of a league into docs/models.md, between its marks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from texelflow.app.models.catalogue import CATALOGUE

from .league import League
from .origins import Origin, origins
from .standings import LEAST_BYTES, MOST_COLD_S, STANDINGS, apart, changes, standing, summary
from .trials import Figures

DOCUMENT = Path("docs", "models.md")
BEGIN, END = "<!-- league: make league, then python -m tests.tools.league --show --write -->", "<!-- end of league -->"
_WORDS = {"whole": "all", "part": "in part", "none": "none", "refused": "refused"}
_MOST_REASONS = 3
_WAYS = {"gl": "OpenGL", "native": "native code", "either": "the better one"}


def write_document(league: League, path: Path = DOCUMENT) -> None:
    """Replace what stands between the two marks. Raises OSError, ValueError where they are missing."""
    head, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise ValueError(f"{path} does not have the marks {BEGIN} and {END}")
    path.write_text(f"{head}{BEGIN}\n\n" + "\n".join(document_lines(league)) + f"\n\n{END}{tail}", encoding="utf-8")


def document_lines(league: League) -> Iterator[str]:
    """The summary, and a table for each question."""
    rows = [*league.rows.values()]
    yield from summary_lines(rows)
    for title, head, cells in (
        ("What runs", "| model | first input -> output | nodes | OpenGL | native | why not |", share_cells),
        ("How near", "| model | OpenGL | native | XNNPACK | OpenGL to XNNPACK | native to XNNPACK |", error_cells),
        (
            "What it takes",
            "| model | cold, warm: OpenGL | native | first run | ms: OpenGL | native | XNNPACK | auto |",
            time_cells,
        ),
    ):
        lines = [f"| {' | '.join(map(_cell, cells(row)))} |" for row in rows]
        yield from ("", f"### {title}", "", head, _rule(head), *lines)
    yield from ("", "### Where they are from", "", *origin_lines(rows, origins()))
    changed = [(row["name"], said) for row in rows if (said := changes(row, league.before.get(row["name"])))]
    gone = [(name, "not in this run") for name in league.before if name not in league.rows]
    if league.before:
        yield from ("", "### Since the last run", "")
        yield from [f"* {name}: {_cell(said)}" for name, said in (*changed, *gone)] or ["Nothing but times."]


def summary_lines(rows: Sequence[Figures]) -> Iterator[str]:
    """In a table and some lines."""
    found = summary(rows)
    some = f"{found.models} files of {LEAST_BYTES // 1000} kB and more"
    yield f"| of {some} | {' | '.join(_WORDS[each] for each in STANDINGS)} | nodes of {found.nodes:,} |"
    yield "|---|---|---|---|---|---|"
    for way, said in _WAYS.items():
        counts = [str(found.standings[way].get(each, 0)) for each in STANDINGS]
        share = found.taken[way] / found.nodes if found.nodes else 0.0
        yield f"| {said} | {' | '.join(counts)} | {share:.1%} |"
    seconds, model, way = found.cold
    late = f"; above {MOST_COLD_S:.0f} s: {', '.join(found.late)}" if found.late else ""
    same = ", ".join(f"{_name(way)} {count}" for way, count in found.same.items())
    yield from (
        "",
        f"* Apart, since they have custom ops that are unknown or TensorFlow's own: {found.apart}.",
        f"* The longest cold start: {seconds:.1f} CPU s ({model}, {_name(way)}){late}.",
        f"* Of {found.bytes_of} 8-bit outputs equal to the reference kernels' in all bytes: {same}.",
    )
    if found.failures:
        yield from ("* Failed:", *(f"  * {_cell(line)}" for line in found.failures))


def share_cells(row: Figures) -> tuple[str, ...]:
    """What a model is, and how much of it runs where."""
    held = row["file"]
    if "failed" in held:
        return (row["name"], "-", "-", "-", "-", held["failed"])
    more = [
        *(["streams"] if held["has_states"] else []),
        *([f"{len(held['signatures'])} signatures"] if held["signatures"] else []),
    ]
    what = " -> ".join(held["types"]) + "".join(f", {each}" for each in more)
    return (row["name"], what, str(held["nodes"]), _share(row, "gl"), _share(row, "native"), _reasons(row))


def error_cells(row: Figures) -> tuple[str, ...]:
    found = row.get("compared", {})
    if "failed" in found:
        return (row["name"], *("-",) * 5)
    pairs = ("gl reference", "native reference", "xnnpack reference", "gl xnnpack", "native xnnpack")
    return (row["name"], *(apart(found.get(pair)) for pair in pairs))


def time_cells(row: Figures) -> tuple[str, ...]:
    """The last one is what Interpreter takes, which chooses by itself."""
    starts = []
    for way in ("gl", "native"):
        seconds = [row.get(way, {}).get("ready_s"), row.get(way, {}).get("warm", {}).get("ready_s")]
        starts.append(", ".join("-" if each is None else f"{each:.2f}" for each in seconds))
    first = [row.get(way, {}).get("first_run_s") for way in ("gl", "native")]
    runs = [row.get("ms", {}).get(way) for way in ("gl", "native", "xnnpack", "auto")]
    return (
        row["name"], *starts, ", ".join("-" if each is None else f"{each:.2f}" for each in first),
        *("-" if each is None else f"{each:.3f}" for each in runs),
    )  # fmt: skip


def origin_lines(rows: Sequence[Figures], known: Mapping[str, Origin]) -> Iterator[str]:
    """A table."""
    yield from ("| model | bytes | origin | licence | sha256 (first 16) |", "|---|---|---|---|---|")
    for row in rows:
        origin, licence = "-", "-"
        if row["catalogue"] and row["name"] in CATALOGUE:
            entry = CATALOGUE[row["name"]]
            origin, licence = f"{entry.package}: {entry.member}", entry.licence
        elif row["sha256"] in known:
            origin, licence = known[row["sha256"]].origin, known[row["sha256"]].licence
        yield f"| {_cell(row['name'])} | {row['size']:,} | {_cell(origin)} | {_cell(licence)} | {row['sha256']} |"


def _share(row: Figures, way: str) -> str:
    found, how = row.get(way, {}), standing(row, way)
    if how == "whole":
        return "all" if not found.get("by_function") else f"all but {found['by_function']} in Python"
    if how == "refused":
        return "refused"
    parts = f" in {found['partitions']}" if found["partitions"] > 1 else ""
    return f"{found['taken']}{parts}"


def _reasons(row: Figures) -> str:
    """Those of both ways, then those that one way alone has."""
    by_way = {way: _left(row.get(way, {})) for way in ("gl", "native")}
    both = {why: count for why, count in by_way["gl"].items() if by_way["native"].get(why) == count}
    alone = {way: {why: count for why, count in left.items() if why not in both} for way, left in by_way.items()}
    said = [_said(both), *(f"{_WAYS[way]}: {_said(left)}" if left else "" for way, left in alone.items())]
    skipped = row.get("gl", {}).get("skipped") or row.get("native", {}).get("skipped", "")
    return ". ".join(filter(None, [*said, skipped]))


def _left(found: Figures) -> dict[str, int]:
    """How many operators a way leaves, by reason; 0 for a reason that is not of operators."""
    if failed := found.get("failed") or found.get("refused"):
        return {failed: 0}
    left: dict[str, int] = found.get("left", {})
    return left


def _said(left: Mapping[str, int]) -> str:
    lines = [f"{why} ({count})" if count else why for why, count in left.items()]
    more = len(lines) - _MOST_REASONS
    return "; ".join([*lines[:_MOST_REASONS], *([f"and {more} more"] if more > 0 else [])])


def _name(way: str) -> str:
    return "XNNPACK" if way == "xnnpack" else _WAYS.get(way, way)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _rule(head: str) -> str:
    return "|" + "---|" * (head.count("|") - 1)
