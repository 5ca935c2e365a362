"""The steps in which workers, a node or the driver are killed, and what of the promises held."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep

from tests.archive_proof.archive_process import ArchiveProcess
from tests.archive_proof.chaos import Chaos
from tests.archive_proof.comparison import compare_pictures, compare_with_singles, single_replays, single_result
from tests.archive_proof.judge import ArchiveVerdict, judge_archive, same_sound
from tests.archive_proof.manifest_records import ArchiveRecords
from tests.archive_proof.memory_samples import MemorySampler, memory_of_nodes
from tests.archive_proof.proof_step import ProofPlace, ProofReport
from tests.archive_proof.ray_nodes import RayNodes
from tests.archive_proof.recipes import PlannedClip
from tests.archive_proof.single_runs import run_singles
from tests.helpers.clips import beginning_of

CPUS = 2  # of each node that works
_MOST_S = 1500.0
_FAILURES = 2  # exit code: some input was bad
_SHORT_PIECES = ("--piece-frames", "600")  # that take about as long as a clip, and survive between two kills
_EXACT_FRAMES = 2400


def chaos_step(place: ProofPlace) -> ProofReport:
    """Every clip, with refinement, while workers are killed all the time, and a node in the middle."""
    report, clips, work = ProofReport(), place.made(), place.fresh("chaos")
    with RayNodes() as nodes:
        start = monotonic()
        add_nodes(nodes, "one", "two")
        arguments = (place.clips, "--with-masks", "--cluster", nodes.address, *_SHORT_PIECES)
        with (
            ArchiveProcess(work / "out", work / "log", nodes.environment, *arguments) as archive,
            MemorySampler(nodes) as memory,
            Chaos(
                nodes, archive.records, progress_of(clips), place.seed, victim="one", heir="three", cpus=CPUS
            ) as chaos,
        ):
            code = archive.end(_MOST_S)
        report.add("object store", store := nodes.store_line(), object_store=store)
        report.add("seconds, the nodes' start too", round(monotonic() - start))
        told = f"{sum(each.pid is not None for each in chaos.killed)} workers, and a node at half"
        told += f"; a kill every {_mean(chaos.intervals_s):.1f} s"
        report.add("killed", told, killed=[asdict(each) for each in chaos.killed], intervals_s=chaos.intervals_s)
        _add_verdict(report, judge_archive(clips, place.clips, work / "out"), code, archive)
        report.add_memory(memory_of_nodes(memory.samples))
    _add_comparison(report, place, clips, work, ())
    return report


def resume_step(place: ProofPlace) -> ProofReport:
    """Every clip, without refinement: the driver is killed in the middle, and a second one resumes."""
    report, clips, work = ProofReport(), place.made(), place.fresh("resume")
    flags = ("--no-refine",)
    with RayNodes() as nodes:
        add_nodes(nodes, "one", "two")
        arguments = (place.clips, "--with-masks", "--cluster", nodes.address, *flags)
        progress = progress_of(clips)
        with ArchiveProcess(work / "out", work / "first", nodes.environment, *arguments) as first:
            while first.is_running and progress(first.records()) < 0.4:
                sleep(0.1)
        before = first.records()
        with (
            ArchiveProcess(work / "out", work / "second", nodes.environment, *arguments, "--resume") as second,
            MemorySampler(nodes) as memory,
        ):
            code = second.end(_MOST_S)
        done, frames = len(before.of_kind("done")), before.frames()
        report.add(
            "done when the driver was killed", f"{done} inputs, {len(before.of_kind('piece'))} pieces, {frames} frames"
        )
        kept = [line for line in before.lines if line not in second.records().lines]
        report.complaints += [f"{line['input']}: its line is gone from the manifest" for line in kept]
        _add_verdict(report, judge_archive(clips, place.clips, work / "out"), code, second)
        report.add_memory(memory_of_nodes(memory.samples))
        report.add("object store", store := nodes.store_line(), object_store=store)
    _add_comparison(report, place, clips, work, flags)
    return report


def exact_step(place: ProofPlace) -> ProofReport:
    """Four minutes of the long recording, refined and cut in four: each picture before encoding, as PNG files."""
    report, clips, work = ProofReport(), place.made(), place.fresh("exact")
    long = next(clip for clip in clips if clip.is_long)
    frames = min(_EXACT_FRAMES, long.frames)
    beginning = beginning_of(place.clips / long.name, work / "beginning.mp4", frames)
    with RayNodes() as nodes:
        add_nodes(nodes, "one", "two")
        arguments = (beginning, "--format", "png", "--with-masks", "--cluster", nodes.address, *_SHORT_PIECES)
        with ArchiveProcess(work / "out", work / "log", nodes.environment, *arguments) as archive:
            code = archive.end(_MOST_S)
    lines = archive.records().of_kind("done")
    if code or len(lines) != 1:
        report.complaints.append(f"exit code {code}, {len(lines)} recordings done: {archive.complaints[-500:]}")
        return report
    report.add("pieces, and frames before each that the network sees", f"{lines[0]['pieces']}, {lines[0]['lead']}")
    done, alone = {beginning.name: lines[0]}, work / "alone"
    codes = run_singles(single_replays(done, alone, ()), alone, os.environ)
    compared = compare_with_singles(done, work / "out", alone, codes)
    report.complaints += compared.differing
    for kind, name in lines[0]["outputs"].items():
        one, other = single_result(alone, name), work / "out" / name
        if not one.is_dir():
            report.add(f"{kind}, encoded", compared.cut[name].text if name in compared.cut else "the same bytes")
            continue
        found = compare_pictures(one, other)
        report.add(
            f"{kind}, before encoding",
            f"{found.differing} of {found.pictures} pictures differ, by {found.largest} of 255 at most",
            **{kind: vars(found)},
        )
        if found.largest > 1 or not found.same_names or found.pictures != frames:
            report.complaints.append(f"{kind}: {found}")
    return report


def add_nodes(nodes: RayNodes, *names: str) -> None:
    """Nodes that work, one after the other."""
    for name in names:
        nodes.add(name, CPUS)


def progress_of(clips: Sequence[PlannedClip]) -> Callable[[ArchiveRecords], float]:
    """Which part of all frames is done."""
    expected = sum(clip.frames for clip in clips if not clip.fails)
    return lambda records: records.frames() / expected


def _add_verdict(report: ProofReport, verdict: ArchiveVerdict, code: int, archive: ArchiveProcess) -> None:
    told = f"{len(verdict.done)} of {verdict.inputs}, {len(verdict.failed)} broken ones listed, {verdict.files} files"
    report.add("done", told, done=len(verdict.done), failed=len(verdict.failed))
    report.complaints += verdict.complaints
    if code != _FAILURES:
        report.complaints.append(f"exit code {code}, not {_FAILURES}: {archive.complaints[-500:]}")


def _add_comparison(
    report: ProofReport, place: ProofPlace, clips: Sequence[PlannedClip], work: Path, flags: Sequence[str]
) -> None:
    """Against single runs; only refined recordings that were cut may differ, and they not in time."""
    verdict = judge_archive(clips, place.clips, work / "out")
    codes = run_singles(single_replays(verdict.done, work / "alone", flags), work / "alone", os.environ)
    compared = compare_with_singles(verdict.done, work / "out", work / "alone", codes)
    report.add("same bytes as single runs", f"{compared.same} of {compared.files} files", same=compared.same)
    report.complaints += compared.differing
    for name, found in compared.cut.items():
        report.add(f"{name}, cut and refined, encoded", found.text, **{name: vars(found)})
        if flags or not found.same_times:
            report.complaints.append(f"{name}: {found}")
    with_sound = [clip for clip in clips if clip.kind.sound and clip.name in verdict.done]
    kept = [clip.name for clip in with_sound if _keeps_sound(place, clip, work / "out", verdict)]
    report.add("sound of the original, packet by packet", f"{len(kept)} of {len(with_sound)}", sound=len(kept))
    report.complaints += [f"{clip.name}: other sound" for clip in with_sound if clip.name not in kept]


def _keeps_sound(place: ProofPlace, clip: PlannedClip, out: Path, verdict: ArchiveVerdict) -> bool:
    return same_sound(place.clips / clip.name, out / verdict.done[clip.name]["outputs"]["out"])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
