"""Prints the figures of layers in three tables, plain or in Markdown: layers, chains, rates."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from texelflow.app.bench.measuring.markdown_table import markdown_lines
from texelflow.app.console import Console, counted

from .layer_times import FROM_BYTES, FROM_PLANES, OURS

_Figures = Mapping[str, Any]
_Rows = list[tuple[str, ...]]

TITLES = {OURS: "texelflow", "xnnpack": "XNNPACK", "ncnn": "ncnn", "mnn": "MNN"}
_NONE = "-"
_SHOWN = ("min_us", "median_us")
_OF_CPU = ("cpu_min_us", "cpu_median_us")


def show_layers(figures: _Figures, markdown: bool, console: Console) -> None:
    """The tables of each size, and what they were measured on."""
    show = _markdown(console) if markdown else _plain(console)
    console.say(machine_line(figures))
    measured = {size: found for size, found in figures["sizes"].items() if found["layers"]}
    for size, found in measured.items():
        names = present(found)
        show(f"Layers at {size}, us, least/median", layer_rows(found["layers"], names))
    chains = {size: found["chain"] for size, found in figures["sizes"].items() if found["chain"]["times"]}
    if chains:
        show("The chain, ms, least/median", chain_rows(chains))
    for size, found in measured.items():
        if figures["roofs"]:
            names = present(found)
            title = f"Rates at {size}, {TITLES[names[0]]}'s by the least times, and each one's share of the roof"
            show(title, rate_rows(found["layers"], names))
    for line in summary_lines(figures):
        console.say(line)


def machine_line(figures: _Figures) -> str:
    """The CPU, the threads, the rivals, and the roofs."""
    parts = [f"{figures['cpu']}, {counted(figures['threads'], 'thread')}, {', '.join(figures['versions'].values())}"]
    if roofs := figures["roofs"]:
        widths = ", ".join(f"{rate:.0f} with {lanes} lanes" for lanes, rate in roofs["gflops"].items())
        levels = ", ".join(f"{level} {rate:.0f}" for level, rate in roofs["gbytes"].items())
        parts.append(f"peaks measured: {widths} (GFLOP/s); reading {levels} (GB/s)")
    return "; ".join(parts)


def present(found: _Figures) -> list[str]:
    """Who ran a layer from its own layout, ours first."""
    layers = [row["times"] for row in found["layers"]] or [found["chain"]["times"]]
    return [name for name in TITLES if any(name in times for times in layers)]


def layer_rows(layers: Sequence[_Figures], names: Sequence[str]) -> _Rows:
    """What each takes of each layer, and how many times as long as ours that is; the first also from a picture."""
    rivals = [name for name in names if name != OURS] if OURS in names else []
    rows: _Rows = [("", "layer", *(TITLES[name] for name in names), *(f"x {TITLES[name]}" for name in rivals))]
    for number, row in _merged(layers):
        rows.append((str(number), row["name"], *_compared(row["times"], names, rivals)))
        planes = {name: row["times"].get(name + FROM_PLANES) for name in names if name != OURS}
        if any(planes.values()):
            times = {OURS: row["times"].get(OURS), **planes}
            rows.append(("", "- from planes", *_compared(_known(times), names, rivals)))
        if bytes_of := row["times"].get(OURS + FROM_BYTES):
            rows.append(("", "- from RGBA", *_compared({OURS: bytes_of}, names, rivals)))
    return rows


def _merged(layers: Sequence[_Figures]) -> Iterator[tuple[int, _Figures]]:
    """Layers by the number of the first of their kind; equal ones as one, with medians of their times."""
    equal: dict[str, list[tuple[int, _Figures]]] = {}
    for number, row in enumerate(layers, 1):
        equal.setdefault(row["name"], []).append((number, row))
    for (number, row), *others in equal.values():
        every = [row["times"], *(other["times"] for _, other in others)]
        times = {
            who: {name: median(each[who][name] for each in every if who in each) for name in found}
            for who, found in row["times"].items()
        }
        yield number, {**row, "times": times, "name": f"{row['name']} ({len(every)})" if others else row["name"]}


def _compared(times: _Figures, names: Sequence[str], rivals: Sequence[str]) -> tuple[str, ...]:
    return (*(_pair(times.get(name), 1.0) for name in names), *(_ratio(times, name) for name in rivals))


def _known(times: _Figures) -> _Figures:
    return {name: found for name, found in times.items() if found}


def chain_rows(chains: Mapping[str, _Figures]) -> _Rows:
    """A row for each size and way in; times of the CPU are those of the calling thread."""
    rows: _Rows = [("size", "who", "ms", "CPU ms", "GFLOP/s", "x ours", "CPU x ours", "largest error")]
    for size, chain in chains.items():
        for name, times in chain["times"].items():
            ratios = ("", "")
            if not name.startswith(OURS):
                ratios = _ratio(chain["times"], name), _ratio(chain["times"], name, _OF_CPU)
            rate = f"{chain['mflop'] / times['min_us'] * 1e3:.1f}"
            cells = _pair(times, 1e-3), _pair(times, 1e-3, _OF_CPU), rate, *ratios, f"{chain['errors'][name]:.1e}"
            rows.append((size, _who(name), *cells))
    return rows


def _who(name: str) -> str:
    """A contender, and how it gets the picture."""
    base = name.split(" ")[0]
    way = {FROM_PLANES: "from planes", FROM_BYTES: "from RGBA"}.get(name[len(base) :])
    return f"{TITLES[base]}, {way or ('from planes' if base == OURS else 'packed beforehand')}"


def rate_rows(layers: Sequence[_Figures], names: Sequence[str]) -> _Rows:
    """Operations and bytes a second of the first, the intensity counted in both ways, and shares of a layer's roof."""
    who, head = names[0], ("", "layer", "MFLOP", "MB", "FLOP/B", "paper", "GFLOP/s", "GB/s", "from", "roof")
    rows: _Rows = [(*head, *(f"{'ours' if name == OURS else TITLES[name]} %" for name in names))]
    for number, row in _merged(layers):
        times = row["times"]
        least_us = times[who]["min_us"]
        counts = row["mflop"], row["mbytes"], row["intensity"], row["paper_intensity"]
        reached = 1e3 * row["mflop"] / least_us, 1e3 * row["mbytes"] / least_us
        shares = (f"{100 * row['roof_us'] / times[name]['min_us']:.0f}" for name in names)
        cells = (*(f"{count:.2f}" for count in counts), *(f"{rate:.1f}" for rate in reached))
        rows.append(
            (str(number), row["name"], *cells, row["level"], f"{1e3 * row['mflop'] / row['roof_us']:.0f}", *shares)
        )
    return rows


def summary_lines(figures: _Figures) -> Iterator[str]:
    """The layers in which we are behind, and the largest error."""
    for size, found in figures["sizes"].items():
        for rival in present(found):
            if rival == OURS or OURS not in present(found):
                continue
            ratios = [(_least_ratio(row["times"], rival), row["name"]) for row in found["layers"]]
            if ratios:
                least, where = min(ratios)
                behind = sum(ratio < 0.95 for ratio, _ in ratios)
                yield f"{size} against {TITLES[rival]}: least ratio {least:.2f} ({where}), {behind} below 0.95"
    errors = [
        error for found in figures["sizes"].values() for row in (found["chain"], *found["layers"])
        for error in row["errors"].values()
    ]  # fmt: skip
    if errors:
        yield f"largest error of all outputs against TensorFlow Lite's: {max(errors):.1e}"
    if figures["interrupted"]:
        yield "interrupted: the figures are of what was measured until then"


def _least_ratio(times: _Figures, rival: str) -> float:
    return float(times[rival]["min_us"] / times[OURS]["min_us"])


def _ratio(times: _Figures, rival: str, names: Sequence[str] = _SHOWN) -> str:
    if OURS not in times or rival not in times:
        return _NONE
    return "/".join(f"{times[rival][name] / times[OURS][name]:.2f}" for name in names)


def _pair(times: _Figures | None, factor: float, names: Sequence[str] = _SHOWN) -> str:
    if times is None:
        return _NONE
    return "/".join(_digits(times[name] * factor) for name in names)


def _digits(value: float) -> str:
    """Three of them, or all in front of the point."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(max(value, 1e-3))))}f}"


def _markdown(console: Console) -> Callable[[str, _Rows], None]:
    def show(title: str, rows: _Rows) -> None:
        for line in ("", f"{title}:", "", *markdown_lines(rows)):
            console.say(line)

    return show


def _plain(console: Console) -> Callable[[str, _Rows], None]:
    return lambda title, rows: console.table(title, rows[0], rows[1:], dense=True)
