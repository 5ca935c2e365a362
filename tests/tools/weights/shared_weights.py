"""Measures what several instances of a model take without, with a soft and with a hard WeightsCache.

Each configuration is measured in a process of its own (weights_part.py): one that fails is a line that says why.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from texelflow.app.bench.measuring.measuring_process import MeasuringProcess
from texelflow.app.console import Console
from texelflow.app.files import Files, Write, settle
from texelflow.app.models.catalogue import CATALOGUE, resolve
from texelflow.app.models.networks import NETWORKS, write_network
from texelflow.app.plots import check_matplotlib
from texelflow.app.signals import exit_code, stop_flag
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import counted, meant

from .weights_part import BACKENDS, CACHES

SharingRow = dict[str, Any]

MEASURED = ("selfie", "deeplab-v3")
MOST_INSTANCES = 256
_PART = Path(__file__).with_name("weights_part.py")
_PATIENCE_S = 300.0


@dataclass(frozen=True)
class WeightsBench:
    """What the tool is asked to do."""

    names: tuple[str, ...]
    instances: tuple[int, ...]
    backends: tuple[str, ...]
    runs: int  # of each instance
    plot: Path | None = None
    force: bool = False
    caches: tuple[str, ...] = CACHES


def parse_instances(text: str) -> tuple[int, ...]:
    """Numbers: 1..16 doubles from 1 to 16; 1,3,8 are just those. Raises UsageError."""
    parts = text.split("..") if ".." in text else text.split(",")
    good = all(part.isdecimal() and len(part) <= 3 and 1 <= int(part) <= MOST_INSTANCES for part in parts)
    numbers = [int(part) for part in parts] if good else []
    if ".." in text and len(numbers) == 2 and numbers[0] <= numbers[1]:
        first, last = numbers
        return tuple(dict.fromkeys([*_doubled(first, last), last]))
    if ".." in text or not numbers:
        raise UsageError(
            f"--instances {text}: 1..16 (1, 2, 4, 8, 16) or numbers from 1 to {MOST_INSTANCES} with commas are needed"
        )
    return tuple(sorted(set(numbers)))


def _doubled(first: int, last: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= 2


def parse_backends(text: str | None) -> tuple[str, ...]:
    """gl,native; all of them by default. Raises UsageError."""
    names = tuple(dict.fromkeys((text or ",".join(BACKENDS)).split(",")))
    for name in names:
        if name not in BACKENDS:
            raise UsageError(f"--backend {name}: one of {', '.join(BACKENDS)} is needed{meant(name, BACKENDS)}")
    return names


def bench_weights(options: WeightsBench, console: Console) -> tuple[list[SharingRow], int]:
    """A row for each configuration, and the exit code: a signal's, or 0. Raises TexelflowError."""
    if options.runs < 1:
        raise UsageError(f"--runs {options.runs}: at least 1 is needed")
    if options.plot is not None:
        check_matplotlib()
        settle(Files((), (Write("--plot", options.plot, "drawing"),)), options.force)
    rows: list[SharingRow] = []
    child = MeasuringProcess()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="texelflow-")))
        files = {name: _file(name, folder, console) for name in options.names}
        child.stop = stack.enter_context(stop_flag(child.end))
        report = stack.enter_context(console.steps("measuring"))
        plan = list(_planned(files, options))
        for number, (counts, configuration) in enumerate(plan):
            name, backend, count, cache = configuration
            report(number, len(plan), f"{name}, {backend}: {counted(count, 'instance')}, cache {cache}")
            arguments = str(files[name]), backend, cache, str(count), str(options.runs)
            found = child.run([sys.executable, str(_PART), *arguments], _PATIENCE_S)
            if child.stop:
                break
            if counts:
                row: SharingRow = {"model": name, "backend": backend, "instances": count, "cache": cache}
                rows.append({**row, **(found.figures or {}), "reason": found.why})
    if rows and not child.stop and all(row["reason"] for row in rows):
        raise UsageError(rows[0]["reason"])
    return rows, exit_code(child.stop.number)


def _planned(names: Iterable[str], options: WeightsBench) -> Iterator[tuple[bool, tuple[str, str, int, str]]]:
    """Which configurations are measured, and whether they count: model, backend, instances, cache.

    The first of each model and backend comes twice: what a first start leaves on disk is there for all that count.
    """
    for pair in product(names, options.backends):
        each = [(*pair, count, cache) for count, cache in product(options.instances, options.caches)]
        yield False, each[0]
        yield from ((True, configuration) for configuration in each)


def _file(name: str, folder: Path, console: Console) -> Path:
    """The file of a model of the catalogue or of a path, or of a published network, written for the time being."""
    if name in NETWORKS and name not in CATALOGUE:
        return write_network(name, folder)
    with console.download() as progress:
        return resolve(name, progress).path
