"""`python -m tests.archive_scale`: what an archive of a million recordings on a thousand nodes comes to, as tables.

--part chooses some of costs, ray, stragglers, losses, ailing and million; --nodes, --lectures and --clips their sizes.
"""

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from texelflow.app.archive.scheduling.scheduler import SchedulerLimits

from .measure import line_bytes, measure_manifest, measure_ray, measure_scheduler, message_bytes, sync_seconds
from .recordings import ArchiveKind
from .simulation import ClusterKind, SimulatedRun, over_ideal, simulate

SECONDS_PER_FRAME = 0.016  # selfie at 640x360, CPU's own code, encoded with libx264: docs/scale.md says how measured
MONTHLY = 1 / (30 * 24)  # losses an hour of each node
SPOT = 0.05
NO_COPIES = math.inf


@dataclass(frozen=True)
class ScaleSizes:
    """How large the simulated archives and clusters are."""

    nodes: int = 1000
    lectures: int = 3000
    clips: int = 1_000_000
    lines: int = 1_000_000


def costs(sizes: ScaleSizes) -> Iterator[str]:
    """What the driver's own parts take on this machine."""
    yield "| messages through Ray | bytes |\n|---|---|"
    yield from (f"| {name} | {size} |" for name, size in message_bytes().items())
    yield "\n| lines of the manifest | bytes |\n|---|---|"
    yield from (f"| {kind} | {size} |" for kind, size in line_bytes().items())
    yield "\n| the scheduler's jobs | workers | jobs | CPU us a job | MB at most |\n|---|---|---|---|---|"
    for kind, count in (("lectures", sizes.nodes), ("clips", 20 * sizes.nodes)):
        for workers in (max(sizes.nodes // 100, 2), sizes.nodes):
            cost = measure_scheduler(ArchiveKind(kind, count), workers)
            yield f"| {kind} | {workers} | {cost.jobs} | {cost.us:.1f} | {cost.peak_bytes / 1e6:.1f} |"
    with tempfile.TemporaryDirectory() as folder:
        synced = sync_seconds(Path(folder))
        yield f"\nA line and fsync: {synced * 1e3:.2f} ms in the median, on the file system of {tempfile.gettempdir()}"
        cost_of_lines = measure_manifest(ArchiveKind("clips", sizes.lines), Path(folder))
    yield (
        "\n| lines | MB | us to write each | us to read each | MB of index | MB of process | us to ask of each |"
        "\n|---|---|---|---|---|---|---|"
    )
    yield (
        f"| {cost_of_lines.lines} | {cost_of_lines.file_bytes / 1e6:.0f} | {cost_of_lines.write_us:.0f} "
        f"| {cost_of_lines.read_us:.0f} | {cost_of_lines.index_bytes / 1e6:.1f} "
        f"| {cost_of_lines.peak_rss_bytes / 1e6:.0f} | {cost_of_lines.lookup_us:.0f} |"
    )


COLUMNS = (
    "\n| run | hours | over ideal | jobs | jobs a second | pieces of at once | wasted | nodes lost at work | listed |"
    "\n|---|---|---|---|---|---|---|---|---|"
)


def row_of(name: str, run: SimulatedRun) -> str:
    """A run as a row under COLUMNS."""
    done = run.work_s + run.wasted_s
    return (
        f"| {name} | {run.makespan_s / 3600:.2f} | {over_ideal(run):.3f} | {run.counts.jobs} "
        f"| {run.counts.jobs / run.makespan_s:.1f} | {run.most_cut} | {run.wasted_s / done:.2%} "
        f"| {run.counts.lost} | {run.listed} |"
    )


def stragglers(sizes: ScaleSizes) -> Iterator[str]:
    """Cutting, the order of inputs, copies: what each is worth on nodes of different speed."""
    archive, cluster = ArchiveKind("lectures", sizes.lectures), ClusterKind(sizes.nodes, SECONDS_PER_FRAME)
    alone = SchedulerLimits(copy_after_s=NO_COPIES)
    yield f"\n{sizes.lectures} lectures on {sizes.nodes} nodes, 5 % at half speed and 1 % at a fifth{COLUMNS}"
    for name, limits, piece_frames, sized in (
        ("whole, as they are named", alone, None, False),
        ("whole, largest first, two jobs held", replace(alone, short_s=math.inf), None, True),
        ("whole, largest of 100 first", replace(alone, read_ahead=100), None, True),
        ("whole, largest of 10,000 first", alone, None, True),
        ("whole, largest first, copies", SchedulerLimits(), None, True),
        ("cut, as they are named", alone, 3000, False),
        ("cut, largest first", alone, 3000, True),
        ("cut, largest first, two jobs held", replace(alone, short_s=math.inf), 3000, True),
        ("cut, largest first, copies", SchedulerLimits(), 3000, True),
    ):
        yield row_of(name, simulate(archive, cluster, limits, piece_frames, sized))


def losses(sizes: ScaleSizes) -> Iterator[str]:
    """Nodes that are lost: one a month each, and 5 % of them an hour."""
    archive, steady = ArchiveKind("lectures", sizes.lectures), ClusterKind(sizes.nodes, SECONDS_PER_FRAME)
    yield f"\n{sizes.lectures} lectures on {sizes.nodes} nodes that are lost{COLUMNS}"
    for name, rate, piece_frames in (
        ("cut, none lost", 0.0, 3000),
        ("cut, each node once a month", MONTHLY, 3000),
        ("cut, 5 % of nodes an hour", SPOT, 3000),
        ("whole, 5 % of nodes an hour", SPOT, None),
    ):
        yield row_of(name, simulate(archive, replace(steady, losses_per_hour=rate), SchedulerLimits(), piece_frames))


def ailing(sizes: ScaleSizes) -> Iterator[str]:
    """Nodes that become slow in the middle, with and without backup copies."""
    archive = ArchiveKind("lectures", sizes.lectures)
    cluster = ClusterKind(sizes.nodes, SECONDS_PER_FRAME, ailing_per_hour=0.01)
    yield f"\n{sizes.lectures} lectures on {sizes.nodes} nodes, 1 % of which an hour begin to ail{COLUMNS}"
    for name, limits, piece_frames in (
        ("cut, no copies", SchedulerLimits(copy_after_s=NO_COPIES), 3000),
        ("cut, copies", SchedulerLimits(), 3000),
        ("whole, no copies", SchedulerLimits(copy_after_s=NO_COPIES), None),
        ("whole, copies", SchedulerLimits(), None),
    ):
        yield row_of(name, simulate(archive, cluster, limits, piece_frames))


def million(sizes: ScaleSizes) -> Iterator[str]:
    """The whole archive, with the losses of a data center."""
    archive = ArchiveKind("clips", sizes.clips)
    cluster = ClusterKind(sizes.nodes, SECONDS_PER_FRAME, losses_per_hour=MONTHLY)
    yield f"\n{sizes.clips} clips on {sizes.nodes} nodes, each of which is lost once a month{COLUMNS}"
    yield row_of("cut, largest of 10,000 first, copies", simulate(archive, cluster, SchedulerLimits()))


def ray_costs(_sizes: ScaleSizes) -> Iterator[str]:
    """A local Ray, one actor."""
    cost = measure_ray()
    yield (
        f"\nRay: a job that does nothing takes {cost.round_trip_ms:.2f} ms there and back, {cost.in_line_ms:.2f} ms "
        f"where another one waits at the worker, {cost.driver_cpu_ms:.2f} ms of them CPU of the driver"
    )


PARTS: Mapping[str, Callable[[ScaleSizes], Iterator[str]]] = {
    "costs": costs,
    "ray": ray_costs,
    "stragglers": stragglers,
    "losses": losses,
    "ailing": ailing,
    "million": million,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.archive_scale", description=__doc__)
    parser.add_argument("--part", action="append", choices=list(PARTS))
    for name, value in vars(ScaleSizes()).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = vars(parser.parse_args(arguments))
    chosen = given.pop("part") or list(PARTS)
    for part in chosen:
        for line in PARTS[part](ScaleSizes(**given)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
