"""Prints the figures of replay and live, and the catalogue of models, as tables."""

from collections.abc import Mapping
from typing import Any

from ..console import Console, counted
from ..models.catalogue import list_models
from ..models.entries import COMBINED

_PERCENTILES = ("median_ms", "p95_ms", "p99_ms", "max_ms")
_TITLES = ("stage, ms", "p50", "p95", "p99", "max")


def show_replay(summary: Mapping[str, Any], console: Console) -> None:
    """Times of each stage and the bytes it read back per frame, and what the run was."""
    frames = summary["frames"]
    if not frames:
        console.say("nothing was left to do" if "skipped" in summary else "no frame was shown")
        return
    for line in summary["written"]:
        console.say(line)
    if summary["only_measured"]:
        console.say("nothing was written, this only measured: --out FILE records the result, --window shows it")
    read_back = summary["stage_readback_bytes"]
    names, keys = _times(frames)
    rows = [
        (name, *(times[key] for key in keys), read_back.get(name, 0) // frames)
        for name, times in summary["stages"].items()
    ]
    total = summary["readback_bytes"] // frames
    rows[-1] = (*rows[-1][:-1], total)
    size = "x".join(map(str, summary["size"]))
    title = f"{counted(frames, 'frame')} of {size}, {summary['frames_per_second']} frames/s"
    if summary["dropped"] or summary["repeated"]:
        title += f"; {summary['dropped']} dropped, {summary['repeated']} repeated"
    console.table(title, (*names, "bytes read back"), rows)
    count = summary["dispatches"]
    dispatches = f", {counted(count, 'dispatch')} of the network a frame" if count else ""
    console.say(f"{summary['model']} on {summary['renderer']}{dispatches}")
    if gpu_stages := summary.get("gpu_stages"):
        gpu = [(name, *(t[key] for key in keys)) for name, t in gpu_stages.items()]
        console.table("On the GPU, by its time stamps", names, gpu)
        console.say("times above are of handing work over; decoding and encoding run on threads of their own")
    else:
        console.say("times are wall clock of finished work; decoding and encoding run on threads of their own")
        console.say(f"no GPU times: {summary['timer_note'] or 'none had come'}")


def _times(frames: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns of times, and their names in the summary: of one frame there is but one."""
    return (("stage", "ms"), ("median_ms",)) if frames == 1 else (_TITLES, _PERCENTILES)


def show_replays(summary: Mapping[str, Any], console: Console) -> None:
    """A row for each of several inputs, and what all of them came to."""
    rows = [
        (run["file"], run["frames"], run.get("frames_per_second", 0.0), run.get("error") or _outcome(run))
        for run in summary["runs"]
    ]
    rows += [(name, 0, 0.0, "skipped: finished before") for name in summary["skipped"]]
    console.table(f"{summary['inputs']} inputs", ("input", "frames", "frames/s", "result"), rows)
    total = (
        f"{counted(summary['frames'], 'frame')} in {summary['seconds']:.1f} s, {summary['frames_per_second']} frames/s"
    )
    console.say(total + (f"; {len(summary['failed'])} failed" if summary["failed"] else ""))


def _outcome(run: Mapping[str, Any]) -> str:
    written = ", ".join(line.removeprefix("written: ").partition(" (")[0] for line in run["written"])
    return f"{written or 'measured'}{' (cut off)' if run['cut_off'] else ''}"


def show_live(summary: Mapping[str, Any], console: Console) -> None:
    """Times of each stage, how old pictures were when they were shown, and the camera's counts."""
    frames = summary["frames"]
    if not frames:
        console.say("no frame was shown")
        return
    rows = [(name, *(times[key] for key in _PERCENTILES)) for name, times in summary["stages"].items()]
    if age := summary["age_at_swap"]:
        rows.append(("age at swap", *(age[key] for key in _PERCENTILES)))
    title = f"{frames} frames in {summary['seconds']:.0f} s, {summary['frames_per_second']} frames/s"
    title += f"; {summary['dropped']} dropped, {summary['repeated']} repeated"
    console.table(title, _TITLES, rows)
    console.say(f"{summary['frames_in_flight']} frames in flight; {summary['readback_bytes']} bytes read back")


def show_models(console: Console, as_json: bool) -> int:
    """The catalogue, and what of it is here."""
    found = list_models()
    rows = [
        (
            status.entry.name,
            status.entry.task,
            "x".join(map(str, status.entry.input_size)),
            status.entry.bytes,
            status.entry.licence,
            status.entry.shows,
            "yes" if status.present else "no",
        )
        for status in found
    ]
    columns = ("name", "task", "input", "bytes", "licence", "shows", "present")
    console.table("Models", columns, rows)
    for name, (_, finds) in COMBINED.items():
        console.say(f"{name} is a name of several models, which run together: {finds}")
    console.say("texelflow models fetch NAME gets one; verbs that take a name get it by themselves")
    if as_json:
        console.json(
            {
                "models": [
                    {
                        **dict(zip(columns, row, strict=True)),
                        "origin": status.entry.origin,
                        "present": status.present,
                        "path": str(status.path),
                    }
                    for row, status in zip(rows, found, strict=True)
                ]
            }
        )
    return 0
