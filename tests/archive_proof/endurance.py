"""Measures the memory that one worker takes from round to round of the same clips.

Copies of all clips have the same size, so that they are done as they are named: round after round.
"""

import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tests.archive_proof.archive_process import ArchiveProcess
from tests.archive_proof.memory_samples import MemorySampler, memory_of_nodes
from tests.archive_proof.proof_step import ProofPlace, ProofReport
from tests.archive_proof.ray_nodes import RayNodes
from tests.archive_proof.recipes import PlannedClip
from tests.archive_proof.survival import add_nodes

_CLIPS, _ROUNDS = 12, 10
_MOST_S = 1500.0
_MOST_GROWTH_MIB = 16  # from one half to the other: recordings of other sizes come and go
_MIB = 1 << 20


def memory_step(place: ProofPlace) -> ProofReport:
    """One worker on one node does recordings of several codecs and sizes, ten rounds of them."""
    report, work = ProofReport(), place.fresh("memory")
    names = copy_rounds(place.clips, chosen_clips(place.made()), work / "in", _ROUNDS)
    listed = work / "in" / "list.txt"
    listed.write_text("".join(f"{name}\n" for name in names))
    with RayNodes() as nodes:
        add_nodes(nodes, "one")
        arguments = (f"@{listed}", "--cluster", nodes.address, "--workers", 1)
        with (
            ArchiveProcess(work / "out", work / "log", nodes.environment, *arguments) as archive,
            MemorySampler(nodes) as memory,
        ):
            code = archive.end(_MOST_S)
    records = archive.records()
    report.add("recordings", len(records.of_kind("done")), recordings=len(names))
    if code or len(records.of_kind("done")) != len(names):
        report.complaints.append(f"exit code {code}: {archive.complaints[-500:]}")
    values = [each.resident_bytes // _MIB for each in memory.samples if each.is_actor]
    rounds = most_of_parts(values, _ROUNDS)
    report.add("the worker in each tenth of its time, MiB at most", ", ".join(map(str, rounds)), worker_mib=rounds)
    half = len(rounds) // 2
    if len(rounds) < _ROUNDS or max(rounds[half:]) - max(rounds[1:half]) > _MOST_GROWTH_MIB:
        report.complaints.append(f"a worker grows: {rounds} MiB")
    report.add_memory(memory_of_nodes(memory.samples))
    return report


def chosen_clips(clips: Sequence[PlannedClip]) -> list[PlannedClip]:
    """Whole recordings that can be made longer by some bytes that mean nothing."""
    return [
        clip for clip in clips if clip.kind.suffix in (".mp4", ".mov") and not (clip.fault or clip.is_long)
    ][:_CLIPS]  # fmt: skip


def copy_rounds(folder: Path, clips: Sequence[PlannedClip], out: Path, rounds: int) -> list[str]:
    """Copies of clips to `out`, all of the same size: their names in the order of rounds."""
    out.mkdir(parents=True)
    contents = [(folder / clip.name).read_bytes() for clip in clips]
    size = max(map(len, contents)) + 8
    names = list[str]()
    for number in range(rounds):
        for place, (clip, content) in enumerate(zip(clips, contents, strict=True)):
            names.append(f"{number:02d}-{place:02d}{clip.kind.suffix}")
            (out / names[-1]).write_bytes(content + free_box(size - len(content)))
    return names


def free_box(size: int) -> bytes:
    """Of ISO/IEC 14496-12, section 8.1.2: bytes that players pass over, at least 8 of them."""
    return struct.pack(">I4s", size, b"free") + bytes(size - 8)


def most_of_parts(values: Sequence[int], parts: int) -> list[int]:
    """The largest of each of so many parts of a series."""
    ends = [len(values) * part // parts for part in range(parts + 1)]
    return [max(values[first:last]) for first, last in pairwise(ends) if last > first]
