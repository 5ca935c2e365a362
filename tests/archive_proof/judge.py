"""Judges an archive's folder: lists every promise that was broken, one line each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from tests.archive_proof.manifest_records import LOCK, MANIFEST, STAGING, Line, files_below, read_records, twice
from tests.archive_proof.recipes import PlannedClip
from tests.helpers.clips import packets

MOST_TRIES = 2  # of an input that cannot be read


@dataclass(frozen=True)
class ArchiveVerdict:
    """What became of an archive; `done` are the manifest's lines by the clip's name."""

    inputs: int
    done: Mapping[str, Line]
    failed: Mapping[str, Line]
    files: int
    complaints: tuple[str, ...]


def judge_archive(clips: Sequence[PlannedClip], folder: Path, out: Path) -> ArchiveVerdict:
    """Whether each good clip is done once, each broken one listed, and nothing else lies in the output folder."""
    records = read_records(out)
    wanted = {str(folder / clip.name): clip for clip in clips}
    complaints = list[str]()
    by_kind = dict[str, dict[str, Line]]()
    for kind in ("done", "failed"):
        lines = records.of_kind(kind)
        complaints += [f"{name}: several lines say {kind}" for name in twice([line["input"] for line in lines])]
        complaints += [f"{line['input']}: nobody asked for it" for line in lines if line["input"] not in wanted]
        by_kind[kind] = {wanted[line["input"]].name: line for line in lines if line["input"] in wanted}
    done, failed = by_kind["done"], by_kind["failed"]
    for clip in clips:
        complaints += [f"{clip.name}: {complaint}" for complaint in _complaints_of(clip, done, failed)]
    complaints += _misplaced_files(out, list(done.values()))
    return ArchiveVerdict(len(clips), done, failed, len(list(files_below(out))), tuple(complaints))


def _complaints_of(clip: PlannedClip, done: Mapping[str, Line], failed: Mapping[str, Line]) -> list[str]:
    if clip.name in done and clip.name in failed:
        return ["done and failed"]
    if not clip.fails:
        if clip.name not in done:
            return [f"not done: {failed[clip.name]['reason'] if clip.name in failed else 'not listed either'}"]
        line, found = done[clip.name], []
        if clip.fault is None and line["frames"] != clip.frames:
            found.append(f"{line['frames']} frames of {clip.frames}")
        if (clip.fault == "cut off") != (line["cut_off"] is not None):
            found.append(f"cut_off is {line['cut_off']}")
        return found
    if clip.name not in failed:
        return ["broken, and not listed as failed"]
    line = failed[clip.name]
    if line["cause"] != "input" or not line["reason"] or not 1 <= line["tries"] <= MOST_TRIES:
        return [f"failed by {line['cause']} after {line['tries']} tries: {line['reason']}"]
    return []


def _misplaced_files(out: Path, done: Sequence[Line]) -> list[str]:
    """Files that no line names, lines that name no file, or one of another size, and what is left of the work."""
    named = [(name, line["output_bytes"][kind]) for line in done for kind, name in line["outputs"].items()]
    complaints = [f"{name}: several inputs have this result" for name in twice([name for name, _ in named])]
    there = set(files_below(out))
    for name, size in named:
        path = out / name
        if path.is_dir():  # numbered pictures
            inside = {f"{name}/{below}" for below in files_below(path)}
            found, there = sum((out / below).stat().st_size for below in inside), there - inside
        else:
            found = path.stat().st_size if path.exists() else -1
        if found != size:
            complaints.append(f"{name}: {size} bytes by the manifest, {found} are there")
    rest = there - {name for name, _ in named} - {MANIFEST, LOCK}
    staged = {name for name in rest if name.startswith(f"{STAGING}/")}
    complaints += [f"{name}: left in the staging folder" for name in sorted(staged)]
    return complaints + [f"{name}: no line of the manifest names it" for name in sorted(rest - staged)]


@dataclass(frozen=True)
class VideoDifference:
    """Two videos of the same picture; blocks are those after which the encoder begins anew."""

    frames: int
    same_times: bool
    blocks: int
    blocks_same_bytes: int
    largest: int  # difference of decoded samples, of 255
    differing_frames: int  # of which some sample differs

    @property
    def text(self) -> str:
        """In a few words."""
        blocks = f"{self.blocks_same_bytes} of {self.blocks} blocks have the same bytes"
        return (
            f"{self.frames} frames, {blocks}, {self.differing_frames} frames differ, by {self.largest} of 255 at most"
        )


def compare_videos(one: Path, other: Path, block: int = 300) -> VideoDifference:
    """What differs, of packets and of decoded pictures."""
    first, second = (packets(path, "video") for path in (one, other))
    starts = range(0, max(len(first), len(second)), block)
    same = sum([p[1] for p in first[at : at + block]] == [p[1] for p in second[at : at + block]] for at in starts)
    same_times = sorted(p[0] for p in first) == sorted(p[0] for p in second)
    largest = differing = frames = 0
    if first != second:
        with av.open(str(one)) as a, av.open(str(other)) as b:
            for x, y in zip(a.decode(video=0), b.decode(video=0), strict=False):
                difference = int(np.abs(_samples(x) - _samples(y)).max())
                largest, differing = max(largest, difference), differing + (difference > 0)
                frames += 1
    return VideoDifference(frames or len(first), same_times, len(starts), same, largest, differing)


def _samples(frame: av.VideoFrame) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    return frame.to_ndarray(format="yuv444p").astype(np.int16)


def same_sound(original: Path, result: Path) -> bool:
    """Whether the packets of sound are the original's, and their times from the first on."""
    first, second = packets(original, "audio"), packets(result, "audio")
    apart = {round(float(b[0] - a[0]), 3) for a, b in zip(first, second, strict=False)}
    return [p[1] for p in first] == [p[1] for p in second] and len(apart) <= 1
