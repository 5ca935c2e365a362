"""A rival's first run of a model, in a process of its own: converters and runtimes crash, which becomes a line of text.

    python -m tests.contenders.rival_trial NAME FOLDER THREADS

FOLDER has the model and INPUTS; converted models and outputs come beside them, for who asked.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from .rival_runs import RIVALS, Arrays, how_it_ended

INPUTS = "inputs.npz"
_TRIAL_S = 600
_LONGEST = 160
_TELLING = re.compile(r"Error: |\b(cannot|no|not|unresolved)\b|support|invalid|missing", re.IGNORECASE)


def tried(name: str, folder: Path, threads: int) -> Arrays | str:
    """What a rival makes of INPUTS, with its converted model in the folder from now on; or one line why it does not."""
    command = [sys.executable, "-m", "tests.contenders.rival_trial", name, str(folder), str(threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TRIAL_S)
    except subprocess.TimeoutExpired:
        return f"not done after {_TRIAL_S} s"
    if done.returncode:
        ending = f"its process {how_it_ended(done.returncode)}" if done.returncode < 0 else ""
        return ending or telling_line(done.stderr, folder)
    return read_arrays(_outputs(folder, name))


def telling_line(text: str, folder: Path) -> str:
    """Of what a program wrote the last line that seems to say what is lacking, else the last one; no folder in it."""
    lines = [line.strip() for line in text.replace(f"{folder}/", "").splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or lines or ["it says nothing"])[-1][:_LONGEST]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """In their order."""
    np.savez(path, *arrays)


def read_arrays(path: Path) -> Arrays:
    """What write_arrays wrote."""
    with np.load(path) as found:
        return [found[name] for name in found.files]


def _outputs(folder: Path, name: str) -> Path:
    return folder / f"{name}.npz"


def _try(name: str, folder: Path, threads: int) -> int:
    rival = RIVALS[name]
    try:
        rival.convert(folder)
        write_arrays(_outputs(folder, name), rival.start(folder, threads)(read_arrays(folder / INPUTS)))
    except Exception as error:  # whatever packages raise, of which the last line tells
        print(f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_try(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
