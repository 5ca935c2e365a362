"""Shows how far an archive is and what became of inputs: lines for people, or JSON lines for machines.

On a terminal a picture of it is redrawn, at most four times a second; a log file gets a line every half minute.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...console import Console, counted, one_line, printable
from ..cluster.cluster import WorkerLost
from ..results.results import ArchiveCounts, ArchiveResult, DoneResult, FailedResult
from .archive_figures import ArchiveSnapshot, NodeFigures

MOST_LOSSES = 10  # of workers, that have a line each
MOST_NODES = 12  # rows of the table: all of it fits on 24 lines
REDRAWN_EVERY_S = 0.25
TOLD_EVERY_S = 5.0  # to machines
LOGGED_EVERY_S = 30.0

_BAR_COLUMNS = 40


class ArchiveProgress(Protocol):
    """Who is told. `snapshot` is asked only when there is something to be shown."""

    def tick(self, snapshot: Callable[[], ArchiveSnapshot], now: float) -> None:
        """To be called often, at least once a second; `now` is in seconds, from any beginning."""
        ...

    def decided(self, result: ArchiveResult) -> None:
        """An input is done or has failed."""
        ...

    def lost(self, lost: WorkerLost, node: str) -> None:
        """A worker on a machine of that name is gone."""
        ...


def inputs_text(counts: ArchiveCounts) -> str:
    """'17 of at least 200 inputs done, 2 failed, 5 skipped'."""
    skipped = counts.skipped + counts.skipped_failed
    known = f"{'' if counts.all_known else 'at least '}{counts.known:,} input{'s' * (counts.known != 1)}"
    parts = [f"{counts.done:,} of {known} done"]
    parts += [f"{number:,} {what}" for number, what in ((counts.failed, "failed"), (skipped, "skipped")) if number]
    return ", ".join(parts)


def time_text(seconds: float) -> str:
    """'42 s', '12 min', '3 h 05 min', '4 d 2 h': as exact as it can be known."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 90:
        return f"{round(seconds)} s"
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def left_text(snapshot: ArchiveSnapshot) -> str:
    """The time that is left, as far as there is ground for it."""
    if snapshot.left_s is None:
        return "time left not known yet"
    return f"{'' if snapshot.counts.all_known else 'at least '}{time_text(snapshot.left_s)} left"


def readable_size(size_bytes: float) -> str:
    """'512 MB', '6.1 GB'."""
    if size_bytes < 1e9:
        return f"{size_bytes / 1e6:.{0 if size_bytes >= 1e7 else 1}f} MB"
    return f"{size_bytes / 1e9:,.1f} GB" if size_bytes < 1e12 else f"{size_bytes / 1e12:,.1f} TB"


def log_line(snapshot: ArchiveSnapshot) -> str:
    """All of it on one line."""
    counts, nodes = snapshot.counts, snapshot.nodes
    if not nodes:
        return _starting(snapshot)
    workers = sum(node.workers for node in nodes)
    where = f"{counted(workers, 'worker')} on {counted(sum(node.workers > 0 for node in nodes), 'node')}"
    parts = [inputs_text(counts), f"{snapshot.frames_per_second:.1f} frames/s", left_text(snapshot), where]
    return "; ".join([*parts, *([f"{counts.lost} lost at work"] if counts.lost else [])])


def _starting(snapshot: ArchiveSnapshot) -> str:
    return f"workers are starting, {time_text(snapshot.seconds)} so far"


def share_done(counts: ArchiveCounts) -> float | None:
    """Of all inputs, 0 to 1; None as long as they are being listed."""
    return 1 - counts.undecided / counts.known if counts.all_known and counts.known else None


def chosen_nodes(nodes: Sequence[NodeFigures]) -> tuple[tuple[NodeFigures, ...], int]:
    """Those that are shown, and how many are not: where there are too many, those with losses, then the slowest."""
    if len(nodes) <= MOST_NODES:
        return tuple(sorted(nodes, key=lambda node: node.name)), 0
    chosen = sorted(nodes, key=lambda node: (-node.losses, node.frames_per_second, node.name))[:MOST_NODES]
    return tuple(chosen), len(nodes) - MOST_NODES


def failure_line(failed: FailedResult) -> str:
    """What failed, and why."""
    fault = {"input": "", "machine": "machines failed: ", "lost": "workers were lost: "}[failed.cause]
    tries = f" ({failed.tries} tries)" if failed.tries > 1 else ""
    reason = failed.reason if failed.input.address in failed.reason else f"{failed.input.address}: {failed.reason}"
    return one_line(f"failed: {fault}{reason}{tries}")


def progress_event(snapshot: ArchiveSnapshot) -> dict[str, Any]:
    """For JSON."""
    counts = snapshot.counts
    return {
        "event": "progress",
        "seconds": round(snapshot.seconds, 1),
        "known": counts.known,
        "all_known": counts.all_known,
        "done": counts.done,
        "failed": counts.failed,
        "skipped": counts.skipped + counts.skipped_failed,
        "frames": counts.frames,
        "frames_per_second": round(snapshot.frames_per_second, 2),
        "seconds_left": None if snapshot.left_s is None else round(snapshot.left_s, 1),
        "lost": counts.lost,
        "nodes": [
            {
                "name": node.name,
                "workers": node.workers,
                "frames_per_second": round(node.frames_per_second, 2),
                "memory_bytes": node.memory_bytes,
                "losses": node.losses,
            }
            for node in snapshot.nodes
        ],
        "dashboard": snapshot.dashboard,
    }


def result_event(result: ArchiveResult) -> dict[str, Any] | None:
    """For JSON; None for a piece."""
    named = {"input": result.input.address, "name": result.input.name}
    if isinstance(result, FailedResult):
        return {"event": "failed", **named, "cause": result.cause, "reason": result.reason, "tries": result.tries}
    if isinstance(result, DoneResult):
        done = result.done
        figures = {"frames": done.frames, "seconds": round(done.seconds, 3), "cut_off": done.cut_off}
        return {"event": "done", **named, **figures, "outputs": dict(done.files)}
    return None


def loss_line(lost: WorkerLost, node: str) -> str:
    """Which worker, where, and why."""
    return one_line(f"{lost.worker} on {printable(node)} was lost: {lost.reason}; others do its work")


def loss_event(lost: WorkerLost, node: str) -> dict[str, Any]:
    """For JSON."""
    return {"event": "lost", "worker": lost.worker, "node": node, "reason": lost.reason, "node_lost": lost.node_lost}


def archive_summary_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """What a run came to, for people."""
    to_do = summary["inputs"] - summary["skipped"] - summary["skipped_failed"]
    made = counted(summary["frames"], "frame")
    speed = f"{made} in {time_text(summary['seconds'])}, {summary['frames_per_second']} frames/s"
    yield f"{summary['done']:,} of {counted(to_do, 'input')} done, {speed}" if to_do else "nothing to do"
    if summary["skipped"]:
        yield f"{summary['skipped']:,} done before"
    if cut_off := summary["cut_off"] + summary["skipped_cut_off"]:
        yield f"{cut_off:,} cut off: what there was has been done"
    if summary["workers_lost"]:
        times = "once" if summary["workers_lost"] == 1 else f"{summary['workers_lost']:,} times"
        yield f"a worker was lost at work {times}; others went on"
    if summary["failed"]:
        yield f"{summary['failed']:,} failed"
    if summary["skipped_failed"]:
        yield f"{summary['skipped_failed']:,} failed before: --retry-failed tries them again"
    if summary["undecided"]:
        yield f"{summary['undecided']:,} left, as far as inputs were listed: --resume goes on"
    yield f"manifest: {summary['manifest']}"


def progress_picture(snapshot: ArchiveSnapshot) -> RenderableType:
    """For a terminal: a bar once it is known how many inputs there are, two lines, the nodes, Ray's dashboard."""
    speed = f"{snapshot.frames_per_second:.1f} frames/s"
    so_far = f"{speed}, {left_text(snapshot)}, {time_text(snapshot.seconds)} so far"
    lines = (inputs_text(snapshot.counts), so_far) if snapshot.nodes else (_starting(snapshot),)
    parts: list[RenderableType] = [*map(Text, lines)]
    share = share_done(snapshot.counts)
    if share is not None:
        bar = Table.grid()  # a bar alone has no end of its line
        bar.add_row(ProgressBar(1.0, share, _BAR_COLUMNS))
        parts.insert(0, bar)
    if snapshot.nodes:
        parts.append(_node_table(snapshot.nodes))
    if snapshot.dashboard:
        parts.append(Text(f"dashboard: {snapshot.dashboard}", style="dim"))
    return Group(*parts)


def _node_table(nodes: Sequence[NodeFigures]) -> Table:
    chosen, others = chosen_nodes(nodes)
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("node", overflow="ellipsis", no_wrap=True)
    for name in ("workers", "frames/s", "memory", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for node in chosen:
        memory = readable_size(node.memory_bytes) if node.memory_bytes else "-"
        table.add_row(
            Text(printable(node.name)), f"{node.workers}", f"{node.frames_per_second:.1f}", memory, f"{node.losses}",
            style="" if node.workers else "dim",
        )  # fmt: skip
    if others:
        table.add_row(Text(f"and {others} more", style="dim"))
    return table


class _Shown:
    """Tells of failures; every so often, of how far it is."""

    def __init__(self, console: Console, every_s: float, show: Callable[[ArchiveSnapshot], None]) -> None:
        self._console, self._every_s, self._show = console, every_s, show
        self._next, self._losses = 0.0, 0

    def tick(self, snapshot: Callable[[], ArchiveSnapshot], now: float) -> None:
        """Shows it if it is time."""
        if now >= self._next:
            self._next = now + self._every_s
            self._show(snapshot())

    def decided(self, result: ArchiveResult) -> None:
        """A line for each failure, for each recording that is cut off, and for each name that was taken."""
        if isinstance(result, FailedResult):
            self._console.warn(failure_line(result))
        elif isinstance(result, DoneResult) and result.done.cut_off:
            self._console.warn(one_line(f"cut off: {result.input.address}: {result.done.cut_off}"))
        if isinstance(result, DoneResult) and result.done.name:
            self._console.warn(one_line(f"name taken: {result.input.address} became {result.done.name}"))

    def lost(self, lost: WorkerLost, node: str) -> None:
        """A line for each, but for those of a machine that is lost as a whole; later ones are in the figures alone."""
        if lost.node_lost or self._losses > MOST_LOSSES:
            return
        self._losses += 1
        more = self._losses > MOST_LOSSES
        self._console.warn("more workers are lost: they are counted from now on" if more else loss_line(lost, node))


class _AsJson(_Shown):
    def decided(self, result: ArchiveResult) -> None:
        """A line for each input."""
        super().decided(result)
        if event := result_event(result):
            self._console.json(event)

    def lost(self, lost: WorkerLost, node: str) -> None:
        """A line for each."""
        super().lost(lost, node)
        self._console.json(loss_event(lost, node))


@contextlib.contextmanager
def archive_progress(console: Console, as_json: bool) -> Iterator[ArchiveProgress]:
    """For people or machines, as long as the archive runs. stderr has lines for people in either case."""
    if as_json:
        yield _AsJson(console, TOLD_EVERY_S, lambda snapshot: console.json(progress_event(snapshot)))
    elif console.is_watched:
        with console.redrawn() as show:
            yield _Shown(console, REDRAWN_EVERY_S, lambda snapshot: show(progress_picture(snapshot)))
    else:
        yield _Shown(console, LOGGED_EVERY_S, lambda snapshot: console.note(log_line(snapshot)))
