"""Measures how fast one worker, two workers and plain loops of replay do some short clips, in turn.

What Ray's start takes is measured by itself: nodes are up before a run joins them, and a run of one picture tells what
joining, starting workers and ending take.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.archive_proof.archive_process import ArchiveProcess
from tests.archive_proof.proof_step import ProofPlace, ProofReport
from tests.archive_proof.ray_nodes import RayNodes
from tests.archive_proof.recipes import PlannedClip
from tests.archive_proof.survival import add_nodes
from tests.helpers.running import ROOT

_CLIPS = 12
_ONE_THREAD = ("--threads", "1")  # of the network, as a worker has it by default
_ONE_OF_OPENGL = {"LP_NUM_THREADS": "1"}  # in software, as a worker has it, too
_LEAST_FRAMES, _MOST_PIXELS = 60, 200 * 150
_MOST_S = 600.0


def throughput_step(place: ProofPlace) -> ProofReport:
    """The median of some rounds, in each of which every contender does the same clips once."""
    report, clips, work = ProofReport(), place.made(), place.fresh("throughput")
    chosen = _chosen(clips)
    files = [place.clips / clip.name for clip in chosen]
    frames = sum(clip.frames for clip in chosen)
    picture = place.clips / next(clip.name for clip in clips if clip.is_picture)
    times = dict[str, list[float]]()
    with RayNodes() as nodes:
        start = perf_counter()
        add_nodes(nodes, "one")
        report.add("a node's start, s", f"{perf_counter() - start:.1f}", node_start_s=round(perf_counter() - start, 1))
        add_nodes(nodes, "two")
        for number in range(place.rounds):
            runs: Mapping[str, float] = {
                "replay, all in one process": _replay_s(files, work / f"loop{number}", os.environ),
                "replay, a process for each": sum(
                    _replay_s([file], work / f"each{number}" / str(index), os.environ)
                    for index, file in enumerate(files)
                ),
                "archive of one picture": _archive_s([picture], work / f"picture{number}", nodes, 1),
                "archive, 1 worker": _archive_s(files, work / f"one{number}", nodes, 1),
                "archive, 2 workers": _archive_s(files, work / f"two{number}", nodes, 2),
                "replay of one picture": _replay_s([picture], work / f"alone{number}", os.environ),
            }
            for name, seconds in runs.items():
                times.setdefault(name, []).append(round(seconds, 2))
    medians = {name: median(values) for name, values in times.items()}
    for name, seconds in medians.items():
        told = f"{seconds:.1f} s" + ("" if "picture" in name else f", {frames / seconds:.1f} frames/s")
        report.add(f"{name} ({', '.join(f'{value:.1f}' for value in times[name])})", told)
    _add_ratios(report, times)
    report.figures.update(frames=frames, clips=len(files), seconds=times, median_s=medians)
    return report


def _add_ratios(report: ProofReport, times: Mapping[str, Sequence[float]]) -> None:
    """Each round's, and the median. A run of one picture has what starts and ends take."""
    loop, each = times["replay, all in one process"], times["replay, a process for each"]
    one, two = times["archive, 1 worker"], times["archive, 2 workers"]
    start, alone = times["archive of one picture"], times["replay of one picture"]
    ratios = {
        "1 worker against the loop in one process, without starts": [
            (a - b) / (c - d) for a, b, c, d in zip(one, start, loop, alone, strict=True)
        ],
        "1 worker against a process for each, all of it": [a / c for a, c in zip(one, each, strict=True)],
        "2 workers against 1, without starts": [
            (a - b) / (c - b) for a, b, c in zip(one, start, two, strict=True)
        ],
    }  # fmt: skip
    for name, values in ratios.items():
        told = ", ".join(f"{value:.2f}" for value in values)
        kind = "times as fast" if name.startswith("2") else "times as long"
        report.add(f"{name} ({told})", f"{median(values):.2f} {kind}")
    report.figures["ratios"] = {name: median(values) for name, values in ratios.items()}


def _chosen(clips: Sequence[PlannedClip]) -> list[PlannedClip]:
    """Whole recordings that are neither tiny nor large."""
    fit = [clip for clip in clips if not (clip.fault or clip.is_long or clip.is_picture)]
    fit = [clip for clip in fit if clip.frames >= _LEAST_FRAMES and clip.size[0] * clip.size[1] <= _MOST_PIXELS]
    return fit[:_CLIPS]


def _archive_s(files: Sequence[Path], folder: Path, nodes: RayNodes, workers: int) -> float:
    arguments = (*files, "--cluster", nodes.address, "--workers", workers, *_ONE_THREAD)
    with ArchiveProcess(folder / "out", folder / "log", nodes.environment, *arguments) as archive:
        start = perf_counter()
        code = archive.end(_MOST_S)
        seconds = perf_counter() - start
    if code:
        raise RuntimeError(f"archive ended with exit code {code}: {archive.complaints[-1000:]}")
    return seconds


def _replay_s(files: Sequence[Path], folder: Path, environment: Mapping[str, str]) -> float:
    """A plain loop: `texelflow replay` of several inputs, or of one."""
    folder.mkdir(parents=True)
    name = "out" if len(files) > 1 else "out.png" if files[0].suffix in (".png", ".jpg", ".webp") else "out.mp4"
    command = [
        sys.executable,
        "-m",
        "texelflow.app",
        "replay",
        *map(str, files),
        "--out",
        str(folder / name),
        *_ONE_THREAD,
        "--json",
    ]
    start = perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env={**environment, **_ONE_OF_OPENGL}, capture_output=True, text=True, check=False
    )
    seconds = perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"replay ended with exit code {done.returncode}: {done.stderr[-1000:]}")
    json.loads(done.stdout)
    return seconds
