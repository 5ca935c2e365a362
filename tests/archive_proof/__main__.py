"""The command: runs the steps of the proof that are named, or all, and prints tables and JSON.

    python -m tests.archive_proof                        # all of them
    python -m tests.archive_proof chaos --seed 3         # one of them
    python -m tests.archive_proof clips                  # only makes the clips: build/archive-clips

Three nodes run on this machine, each of several processes. Exit code 1 if a promise was broken. The measures of speed
are no promises: other programs at work change them.
"""

import argparse
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from tests.archive_proof.endurance import memory_step
from tests.archive_proof.proof_step import ProofPlace, ProofReport
from tests.archive_proof.survival import chaos_step, exact_step, resume_step
from tests.archive_proof.throughput import throughput_step
from tests.helpers.running import ROOT
from texelflow.app.console import Console


def _clips(place: ProofPlace) -> ProofReport:
    """Nothing but the clips."""
    report, clips = ProofReport(), place.made()
    frames, minutes = sum(clip.frames for clip in clips), sum(clip.frames / clip.rate for clip in clips) / 60
    report.add("recordings", sum(not clip.is_picture for clip in clips))
    report.add("pictures", sum(clip.is_picture for clip in clips))
    report.add("frames", f"{frames}, {minutes:.0f} minutes")
    report.add("broken", sum(clip.fails for clip in clips))
    return report


STEPS: dict[str, Callable[[ProofPlace], ProofReport]] = {
    "clips": _clips,
    "chaos": chaos_step,
    "resume": resume_step,
    "exact": exact_step,
    "memory": memory_step,
    "throughput": throughput_step,
}


def main() -> int:
    """Run the steps that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.archive_proof", description="Prove an archive on Ray.")
    parser.add_argument("names", nargs="*", metavar="STEP", choices=[[], *STEPS], help=f"of {', '.join(STEPS)}")
    parser.add_argument("--seed", type=int, default=0, help="of who is killed")
    parser.add_argument("--fewer", type=int, default=1, help="only every so many of the plain clips, for a look")
    parser.add_argument("--rounds", type=int, default=3, help="of what is timed")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="takes clips and results")
    parser.add_argument("--json", type=Path, help="takes all figures")
    options = parser.parse_args()
    build = options.build.absolute()
    fewer = f"-{options.fewer}" if options.fewer > 1 else ""
    clips, work = build / f"archive-clips{fewer}", build / f"archive-proof{fewer}"
    place = ProofPlace(clips, work, options.seed, options.fewer, options.rounds)
    for number in (signal.SIGINT, signal.SIGTERM):  # shells have what runs in the background ignore one of them
        signal.signal(number, signal.default_int_handler)
    console, reports = Console(), dict[str, ProofReport]()
    for name in options.names or list(STEPS):
        start = perf_counter()
        report = reports[name] = STEPS[name](place)
        report.add("seconds in all", round(perf_counter() - start))
        console.table(name, ("what", "found"), report.rows)
        for complaint in report.complaints:
            console.warn(f"{name}: {complaint}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        found = {
            name: {**report.figures, "rows": report.rows, "complaints": report.complaints}
            for name, report in reports.items()
        }
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    return 1 if any(report.complaints for report in reports.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
