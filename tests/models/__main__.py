"""Prints a table of whether and how fast models run on the GPU.

    python -m tests.models                                 # the catalogue and the published networks
    python -m tests.models selfie mobilenet-v1             # these alone
    python -m tests.models --folder DIR --json models.json # files of another folder, too; all figures
    python -m tests.models --delegate                      # through TensorFlow Lite's interpreter with the delegate
    python -m tests.models --memory                        # under every plan of memory: the same bytes, or which differ
    python -m tests.models --unfused --networks 200        # whether fusing costs nothing; random networks, too

Every model runs in a process of its own, which may take 4 GiB and 15 minutes. Exit code 1 if one does not run right.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fuzz.children import in_child
from tests.generators.profiles import random_graph
from tests.models.delegated import DELEGATE_COLUMNS, MOST_ERROR, delegate_row, is_delegated_right, measure_delegated
from tests.models.measure import ROUND_S, Target, measure
from tests.models.planned import PLANNED_COLUMNS, is_planned_right, measure_planned, planned_rows
from tests.models.unfused import UNFUSED_COLUMNS, is_without_cliff, measure_unfused, unfused_rows
from texelflow.app.bench.measuring.markdown_table import markdown_lines
from texelflow.app.models.catalogue import CATALOGUE, fetch
from texelflow.app.models.networks import NETWORKS, write_network

MOST_BYTES, MOST_S = 4 << 30, 900.0
NETWORK_FOLDER = Path("build", "networks")
# Ops that no runtime but MediaPipe's has: those models run in part.
CUSTOM = ("Landmarks2TransformMatrix", "TransformTensorBilinear", "TransformLandmarks")
LEFT: Mapping[str, tuple[str, ...]] = MappingProxyType({"face-landmark-attention": CUSTOM})
Measure = Callable[[Target, float], dict[str, Any]]  # the figures, with so many seconds for a round of timing
COLUMNS = (
    *(
        "model",
        "nodes",
        "partitions",
        "left",
        "error",
        "to own kernels",
        "CPU's own",
        "dispatches",
        "compile CPU s",
        "largest KiB",
    ),
    *("ms", "GMAC/s", "of the roof", "moves", "XNNPACK ms"),
)


def targets(names: Sequence[str], folder: Path | None) -> Iterator[Target]:
    """The models of these names, or all of them; models of the catalogue are fetched, networks written."""
    for name, entry in CATALOGUE.items():
        if not names or name in names:
            yield Target(name, fetch(name), entry.input_range, LEFT.get(name, ()))
    for name in NETWORKS:
        if not names or name in names:
            yield Target(name, write_network(name, NETWORK_FOLDER), (-1.0, 1.0))
    for path in sorted(folder.glob("*.tflite")) if folder else ():
        if not names or path.stem in names:
            yield Target(path.stem, path)


def drawn_targets(count: int) -> Iterator[Target]:
    """Random networks of small maps, long vectors and long windows."""
    NETWORK_FOLDER.mkdir(parents=True, exist_ok=True)
    for seed in range(count):
        path = NETWORK_FOLDER / f"cliff-{seed}.tflite"
        path.write_bytes(random_graph(seed, "repeated").build())
        yield Target(path.stem, path)


def measured(target: Target, measure_one: Measure = measure) -> dict[str, Any]:
    """The figures of one model, from a process of its own; `reason` says how it failed."""
    ending = in_child(lambda: _without_cache(target, measure_one), MOST_S, MOST_BYTES)
    if ending.how == "text":
        figures: dict[str, Any] = json.loads(ending.text)
    else:
        figures = {"name": target.name, "reason": f"{ending.how}: {ending.text}"}
    return figures | {"seconds": round(ending.seconds), "most_mib": ending.most_bytes >> 20}


def _without_cache(target: Target, measure_one: Measure) -> str:
    os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"  # Mesa reads it when a context is opened
    return json.dumps(measure_one(target, ROUND_S))


def is_right(target: Target, figures: Mapping[str, Any]) -> bool:
    """Whether the model runs as a whole, or but for what no runtime has, and gives the outputs of XNNPACK or of
    TensorFlow Lite's own kernels: where these two are further apart, a model amplifies what rounding leaves."""
    if figures["reason"]:
        return bool(target.left) and set(figures.get("left", ())) == set(target.left)
    return bool(min(figures["error"], figures["own_error"]) <= MOST_ERROR)


def row(figures: Mapping[str, Any]) -> tuple[object, ...]:
    """Of the table."""

    def shown(key: str, form: str = "{}") -> str:
        return form.format(figures[key]) if figures.get(key) is not None else "-"

    of_roof = f"{figures['roof_ms'] / figures['ms']:.0%}" if "ms" in figures else "-"
    return (
        figures["name"],
        *(shown(key) for key in ("nodes", "partitions", "nodes_left")),
        shown("error", "{:.1e}"),
        shown("own_error", "{:.1e}"),
        shown("cpu_error", "{:.1e}"),
        *(shown(key) for key in ("dispatches", "compile_s", "largest_kib", "ms", "gmacs")),
        of_roof,
        shown("moves_share", "{:.1%}"),
        shown("xnnpack_ms"),
    )


@dataclass(frozen=True)
class Way:
    """How a model is run, and what is shown of it."""

    measure: Measure
    is_right: Callable[[Target, Mapping[str, Any]], bool]
    columns: Sequence[str]
    rows: Callable[[Mapping[str, Any]], Sequence[tuple[object, ...]]]


AS_A_PROGRAM = Way(measure, is_right, COLUMNS, lambda figures: [row(figures)])
THROUGH_THE_DELEGATE = Way(
    measure_delegated, is_delegated_right, DELEGATE_COLUMNS, lambda figures: [delegate_row(figures)]
)
UNDER_ALL_PLANS = Way(measure_planned, is_planned_right, PLANNED_COLUMNS, planned_rows)
AGAINST_UNFUSED = Way(measure_unfused, is_without_cliff, UNFUSED_COLUMNS, unfused_rows)


def main() -> int:
    """Measure the models that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.models", description="Check and time real models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*CATALOGUE, *NETWORKS])}")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="further .tflite files")
    parser.add_argument("--delegate", action="store_true", help="through the interpreter with the delegate")
    parser.add_argument("--memory", action="store_true", help="whether every plan of memory gives the same bytes")
    parser.add_argument("--unfused", action="store_true", help="whether fusing costs nothing, counted and by the clock")
    parser.add_argument("--networks", type=int, default=0, metavar="N", help="random networks besides")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    options = parser.parse_args()
    ways = {options.delegate: THROUGH_THE_DELEGATE, options.memory: UNDER_ALL_PLANS, options.unfused: AGAINST_UNFUSED}
    way = ways.get(True, AS_A_PROGRAM)
    chosen, found, wrong = [*targets(options.names, options.folder), *drawn_targets(options.networks)], [], 0
    for number, target in enumerate(chosen, 1):
        print(f"{number}/{len(chosen)} {target.name}", file=sys.stderr, flush=True)
        found.append(measured(target, way.measure))
        wrong += not way.is_right(target, found[-1])
    print(
        "\n".join(markdown_lines([way.columns, *(tuple(map(str, cells)) for one in found for cells in way.rows(one))]))
    )
    for figures in found:
        if figures["reason"]:
            left = ", ".join(f"{op} {count}" for op, count in figures.get("left", {}).items())
            print(f"{figures['name']}: {figures['reason']}" + (f"; left in all: {left}" if left else ""))
    if options.json:
        options.json.write_text(json.dumps({"models": found}, indent=1) + "\n")
    load = max((figures.get("load", 0.0) for figures in found), default=0.0)
    print(f"{len(found) - wrong} of {len(found)} are right; load average before a model at most {load:.1f}")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
