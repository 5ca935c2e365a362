"""Runs a list of replays, each alone and one after the other, and writes their exit codes.

    python -m tests.archive_proof.single_runs replays.json codes.json

All of them run in one process, to save the start of as many; each opens and closes whatever it needs.
"""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from tests.helpers.running import ROOT


@dataclass(frozen=True)
class SingleRun:
    """How one ended."""

    code: int
    seconds: float
    said: str  # on stderr


def run_singles(replays: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str]) -> list[int]:
    """The exit code of each; `folder` takes the list and what is said."""
    folder.mkdir(parents=True, exist_ok=True)
    listed, codes = folder / "replays.json", folder / "codes.json"
    listed.write_text(json.dumps(replays))
    command = [sys.executable, "-m", "tests.archive_proof.single_runs", str(listed), str(codes)]
    subprocess.run(command, cwd=ROOT, env=dict(environment), check=True)
    return [row["code"] for row in json.loads(codes.read_text())]


def run_each(replays: Sequence[Sequence[str]]) -> list[SingleRun]:
    """The same in this process."""
    from texelflow.app.cli import main as texelflow

    runs = list[SingleRun]()
    for arguments in replays:
        start, said = perf_counter(), io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = texelflow(["replay", *arguments])
        runs.append(SingleRun(code, round(perf_counter() - start, 2), said.getvalue()))
    return runs


def main() -> int:
    """Run the list of the first argument; the second takes the codes, seconds and complaints."""
    listed, codes = map(Path, sys.argv[1:])
    runs = run_each(json.loads(listed.read_text()))
    codes.write_text(json.dumps([asdict(run) for run in runs], indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
