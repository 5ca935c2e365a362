"""Kills recordings at random moments, and counts what their files still hold.

    python -m tests.fuzz.kills --cases 100 --seed 0     # exit code 1 if a promise was broken

The promise: what was handed to the encoder half a second or more before the kill is in the file, and plays.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import monotonic_ns, sleep

import av
import rich.console
from rich.progress import track

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.display import screen_server
from tests.helpers.running import ROOT, times_of
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.console import Console
from texelflow.gpu_delegate.base.errors import MediaError

GRACE_S = 0.5  # frames that are younger may be lost
_LIVE_FPS = (1, 5, 30, 60)
_REPLAY_PAUSES_S = (0.0, 0.04, 0.2, 1.0)
_LONG, _SHORT = 1000, 40  # frames
_SIZE = (160, 120)


@dataclass(frozen=True)
class Kill:
    """One recording, and the moment to kill it: seconds after its first frame, or after it began to be finished."""

    live: bool
    suffix: str
    sound: bool = False
    fps: int = 30
    pause_s: float = 0.0
    closing: bool = False
    after_s: float = 0.0


@dataclass(frozen=True)
class Counts:
    """What came of all kills."""

    kills: int = 0
    unborn: int = 0  # no frame was old enough, and nothing plays
    handed: int = 0  # frames, to the encoder
    kept: int = 0
    owed: int = 0  # that were old enough
    most_lost: int = 0  # frames of one recording, of any age
    broken: tuple[str, ...] = ()  # promises, one line each


@dataclass(frozen=True)
class Handed:
    """A frame that the recorder got: when, and its time stamp in seconds."""

    at_ns: int
    time_s: float


def plan(cases: int, seed: int) -> Iterator[Kill]:
    """Replays and live in turn; a fifth each are killed in the first 0.2 s, and while they are finished."""
    choose = random.Random(seed)
    for case in range(cases):
        moment = choose.choice(["early", "closing", "later", "later", "later"])
        kill = Kill(
            live=case % 2 == 1,
            suffix=choose.choice([".mp4", ".mkv"]),
            sound=choose.random() < 0.5,
            fps=choose.choice(_LIVE_FPS),
            pause_s=choose.choice(_REPLAY_PAUSES_S),
            after_s=choose.uniform(0, 0.2 if moment == "early" else 3.0),
        )
        if moment == "closing" and not kill.live:
            kill = replace(kill, closing=True, pause_s=0.0, after_s=choose.uniform(0, 0.01))
        yield kill


def run_kills(cases: int, seed: int, folder: Path) -> Counts:
    """Start and kill so many processes, which write into the folder."""
    counts = Counts()
    with screen_server(folder) as screen:
        errors = rich.console.Console(stderr=True)
        kills = track(plan(cases, seed), "kills", cases, console=errors, disable=not errors.is_terminal)
        for case, kill in enumerate(kills):
            out, log = folder / f"{case}{kill.suffix}", folder / f"{case}.log"
            clip = _clip(folder, _SHORT if kill.closing else _LONG, kill.sound)
            killed_ns = _execute(kill, _arguments(kill, clip, out), log, {"DISPLAY": screen.name})
            counts = judge(counts, kill, _handed(log), killed_ns, out)
    return counts


def judge(counts: Counts, kill: Kill, handed: Sequence[Handed], killed_ns: int, out: Path) -> Counts:
    """The counts with one more kill."""
    owed = sum(frame.at_ns <= killed_ns - GRACE_S * 1e9 for frame in handed)
    try:
        kept = times_of(out)
    except MediaError as error:
        kept, complaint = [], f"{kill}: {error}"
    else:
        complaint = _complaint(kill, [float(time) for time in kept], handed, out)
    if len(kept) < owed:
        complaint = f"{kill}: {len(kept)} of {owed} frames {complaint}"
    return Counts(
        counts.kills + 1,
        counts.unborn + (not owed and not kept),
        counts.handed + len(handed),
        counts.kept + len(kept),
        counts.owed + owed,
        max(counts.most_lost, len(handed) - len(kept)),
        counts.broken + ((complaint,) if complaint and (owed or kept) else ()),
    )


def _complaint(kill: Kill, kept: Sequence[float], handed: Sequence[Handed], out: Path) -> str:
    """What is wrong with what is there; '' if nothing is."""
    wanted = [frame.time_s - handed[0].time_s for frame in handed]
    shown = [time - kept[0] for time in kept]
    if len(kept) > len(handed):
        return f"{kill}: {len(kept)} frames of {len(handed)}"
    if any(abs(a - b) > 0.0011 for a, b in zip(shown, wanted, strict=False)):  # Matroska counts milliseconds
        return f"{kill}: other times"
    with av.open(str(out)) as container:
        stream = container.streams.video[0]
        assert stream.time_base
        container.seek(int(kept[len(kept) // 2] / stream.time_base), stream=stream)
        if not any(frame.pts is not None for frame in container.decode(stream)):
            return f"{kill}: nothing plays from the middle on"
    return ""


def _clip(folder: Path, frames: int, sound: bool) -> Path:
    """A recording of so many frames, made once."""
    path = folder / f"clip-{frames}-{sound}.mp4"
    if not path.exists():
        write_clip(path, moving(frames, *_SIZE), Recipe(sound="aac" if sound else None))
    return path


def _arguments(kill: Kill, clip: Path, out: Path) -> list[object]:
    if not kill.live:
        return ["replay", clip, "--out", out, "--backend", "cpu"]
    size = "{}x{}".format(*_SIZE)
    options = ["--camera", "pattern", "--size", size, "--fps", kill.fps, "--effect", "none", "--backend", "cpu"]
    return ["live", *options, "--record", out]


def _execute(kill: Kill, arguments: Sequence[object], log: Path, environment: dict[str, str]) -> int:
    """Run the program until the moment; when that was, on the monotonic clock."""
    pause_s = 0.0 if kill.live else kill.pause_s
    command = [sys.executable, "-m", "tests.fuzz.watched", str(log), str(pause_s), *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with process:
        try:
            end = monotonic_ns() + PATIENCE_S * 1e9
            while not _begun(log, kill.closing):
                assert process.poll() is None, process.communicate()[1]
                assert monotonic_ns() < end, "no frame came"
                sleep(0.001)
            sleep(kill.after_s)
        finally:
            killed_ns = monotonic_ns()
            process.kill()
    return killed_ns


def _begun(log: Path, closing: bool) -> bool:
    text = log.read_bytes() if log.exists() else b""
    return b"closing" in text if closing else b"\n" in text


def _handed(log: Path) -> list[Handed]:
    rows = [line.split() for line in log.read_text().splitlines() if line != "closing"]
    return [Handed(int(moment), float(time)) for moment, time in rows]


def main() -> int:
    """Kill as many recordings as the command line says, and show what was counted."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description="Kill recordings and count frames.")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = run_kills(options.cases, options.seed, Path(folder))
    rows = [(field.name, str(getattr(counts, field.name))) for field in fields(counts) if field.name != "broken"]
    Console().table(f"Kills, seed {options.seed}", ("counted", "number"), rows)
    print(*counts.broken, sep="\n", end="\n" if counts.broken else "", file=sys.stderr)
    return 1 if counts.broken else 0


if __name__ == "__main__":
    sys.exit(main())
