"""What `make archive-test` judges by: that it tells of each promise that an archive broke."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.archive_proof.clip_files import made_clips
from tests.archive_proof.judge import compare_videos, judge_archive, same_sound
from tests.archive_proof.manifest_records import Line, read_records
from tests.archive_proof.memory_samples import MemorySample, memory_of_nodes, slope_a_minute
from tests.archive_proof.recipes import ClipKind, PlannedClip, planned_clips
from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.markers import exhaustive

GOOD = PlannedClip("a/good one.mp4", ClipKind(".mp4"), (64, 48), 10, 12, 1)
CUT_OFF = PlannedClip("b/short.mp4", ClipKind(".mp4"), (64, 48), 10, 30, 2, "cut off")
BROKEN = PlannedClip("b/text.mp4", ClipKind(".mp4"), (64, 48), 10, 12, 3, "text")
CLIPS = [GOOD, CUT_OFF, BROKEN]

Spoil = Callable[[Path, list[Line]], Any]


def archive(folder: Path) -> list[Line]:
    """A folder as it should be; its manifest's lines."""
    lines = list[Line]()
    for clip in (GOOD, CUT_OFF):
        name = f"{Path(clip.name).stem}.mp4"
        (folder / name).write_bytes(b"12345")
        cut_off = "the end" if clip.fault else None
        line = {"kind": "done", "input": f"/clips/{clip.name}", "frames": clip.frames, "pieces": 1, "cut_off": cut_off}
        lines.append({**line, "seconds": 2.0, "outputs": {"out": name}, "output_bytes": {"out": 5}})
    failed = {"kind": "failed", "input": f"/clips/{BROKEN.name}", "cause": "input", "reason": "no video", "tries": 2}
    return [*lines, failed]


def complaints(folder: Path, lines: list[Line]) -> tuple[str, ...]:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "manifest.jsonl").write_text(text + '{"kind": "do')  # a line that is being written
    return judge_archive(CLIPS, Path("/clips"), folder).complaints


def test_an_archive_as_promised_is_praised(tmp_path: Path) -> None:
    assert complaints(tmp_path, archive(tmp_path)) == ()
    records = read_records(tmp_path)
    assert (records.job_seconds(), records.frames()) == (2.0, 42)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda folder, lines: lines.pop(0), "not listed either"),
        (lambda folder, lines: lines.pop(2), "broken, and not listed"),
        (lambda folder, lines: lines.append(lines[0]), "several lines say done"),
        (lambda folder, lines: lines.append({**lines[2], "input": lines[0]["input"]}), "done and failed"),
        (lambda folder, lines: lines[0].update(frames=11), "11 frames of 12"),
        (lambda folder, lines: lines[1].update(cut_off=None), "cut_off is None"),
        (lambda folder, lines: lines[2].update(tries=3), "after 3 tries"),
        (lambda folder, lines: lines[2].update(cause="lost"), "failed by lost"),
        (lambda folder, lines: lines[2].update(reason=""), "failed by input"),
        (lambda folder, lines: lines[0].update(outputs=lines[1]["outputs"]), "several inputs have this result"),
        (lambda folder, lines: (folder / "good one.mp4").unlink(), "5 bytes by the manifest, -1 are there"),
        (lambda folder, lines: (folder / "short.mp4").write_bytes(b"1234"), "5 bytes by the manifest, 4 are there"),
        (lambda folder, lines: (folder / "more.mp4").write_bytes(b""), "no line of the manifest names it"),
        (
            lambda folder, lines: ((folder / ".archive").mkdir(), (folder / ".archive/x").write_bytes(b"")),
            "left in the staging folder",
        ),
    ],
)
def test_each_broken_promise_is_told(tmp_path: Path, spoil: Spoil, complaint: str) -> None:
    lines = archive(tmp_path)
    spoil(tmp_path, lines)
    assert any(complaint in told for told in complaints(tmp_path, lines))


def test_videos_and_their_sound_are_compared(tmp_path: Path) -> None:
    frames, recipe = moving(40), Recipe(sound="aac", codec_options={"crf": "0", "preset": "ultrafast", "g": "10"})
    one, same = (write_clip(tmp_path / name, frames, recipe) for name in ("one.mp4", "same.mp4"))
    assert compare_videos(one, same, 10).blocks_same_bytes == 4
    assert same_sound(one, same)
    frames[35] = np.subtract(255, frames[35], dtype=np.uint8)
    other = write_clip(tmp_path / "other.mp4", frames, recipe)
    found = compare_videos(one, other, 10)
    assert (found.frames, found.blocks, found.blocks_same_bytes, found.differing_frames) == (40, 4, 3, 1)
    assert found.same_times
    assert found.largest > 200
    shorter = write_clip(tmp_path / "shorter.mp4", frames[:30], recipe)
    assert not compare_videos(one, shorter, 10).same_times
    assert not same_sound(one, shorter)


@exhaustive
def test_clips_are_planned_and_made_the_same_every_time(tmp_path: Path) -> None:
    planned = planned_clips()
    assert planned == planned_clips()
    assert sum(not clip.is_picture for clip in planned) == len({clip.name for clip in planned}) - 4 == 60
    few = [*(clip for clip in planned if clip.fault == "damaged"), *(clip for clip in planned if clip.is_picture)]
    one, other = ([path.read_bytes() for path in made_clips(tmp_path / name, few)] for name in ("a", "b"))
    assert one == other
    kept = made_clips(tmp_path / "a", few[1:])
    assert [path.read_bytes() for path in kept] == one[1:]
    assert not (tmp_path / "a" / few[0].name).exists()


def test_memory_that_grows_is_seen() -> None:
    times = [2.0 * number for number in range(60)]
    ray = [MemorySample(at_s, "one", 1, False, 100 << 20) for at_s in times]
    worker = [MemorySample(at_s, "one", 2, True, (200 << 20) + int(at_s * (1 << 20))) for at_s in times]
    found = memory_of_nodes([*ray, *worker])["one"]
    assert found.ray_slope_mib_a_minute == 0
    assert found.worker_slope_mib_a_minute == 60
    assert (found.least_mib, found.most_mib, found.most_of_worker_mib) == (300, 418, 318)
    assert slope_a_minute([(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]) is None
