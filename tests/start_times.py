"""Models go in; seconds of the CPU of a first and a second start come out, with Mesa's own cache off, emptied and kept.

    python -m tests.start_times selfie --rounds 3

Each start is a process of its own, with a folder of its own for what is kept. CPU seconds, since other work on a
machine changes them little; rounds are taken in turn, and medians shown.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import process_time

from texelflow.app.models.loading import load_graph
from texelflow.gpu_delegate import gl_store
from texelflow.gpu_delegate.context import Context, compile_compute, open_context
from texelflow.gpu_delegate.runtime import Program
from texelflow.gpu_delegate.saving.kept_graph import kept_graph
from texelflow.gpu_delegate.saving.program_cache import VARIABLE
from texelflow.gpu_delegate.tuning.store import tuned_device

STEPS = ("context", "reading", "planning", "programs", "first run")
MESA = ("off", "emptied before each start", "kept")


def one_start(model: str) -> dict[str, float]:
    """CPU seconds of each step, in this process."""
    times_s, programs_s = [process_time()], 0.0

    def timed(context: Context, source: str, label: str) -> int:
        nonlocal programs_s
        start_s = process_time()
        program = compile_compute(context, source, label)
        programs_s += process_time() - start_s
        return program

    with open_context() as context:
        times_s.append(process_time())
        graph = load_graph(model)
        times_s.append(process_time())
        compiled = kept_graph(context.programs, graph, tuned_device(context))
        times_s.append(process_time())
        setattr(gl_store, "compile_compute", timed)  # noqa: B010  # the child ends here
        with Program(context, compiled):
            times_s.append(process_time())
    opened, read, planned, ran = (after - before for before, after in itertools.pairwise(times_s))
    return dict(zip(STEPS, (opened, read, planned, programs_s, ran - programs_s), strict=True))


def started(model: str, environment: Mapping[str, str]) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.start_times", model, "--child"]
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def two_starts(model: str, mesa: str, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """With nothing kept, and with all that the first one has kept."""
    environment = {
        VARIABLE: "1",
        "TEXELFLOW_CACHE": str(folder / "ours"),
        "MESA_SHADER_CACHE_DIR": str(folder / "mesa"),
    }
    environment["MESA_SHADER_CACHE_DISABLE"] = "true" if mesa == "off" else "false"
    first = started(model, environment)
    if mesa == "emptied before each start":
        shutil.rmtree(folder / "mesa", ignore_errors=True)
    return first, started(model, environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(one_start(given.models[0])))
        return
    print("| model | Mesa's own cache | start |", " | ".join((*STEPS, "all")), "|")
    print("|---|---|---|" + "---|" * (len(STEPS) + 1))
    for model in given.models:
        found = {mesa: list[tuple[dict[str, float], dict[str, float]]]() for mesa in MESA}
        for _ in range(given.rounds):
            for mesa, rounds in found.items():
                with tempfile.TemporaryDirectory() as folder:
                    rounds.append(two_starts(model, mesa, Path(folder)))
        for mesa, rounds in found.items():
            for number, start in enumerate(("first", "second")):
                columns = [median(pair[number][step] for pair in rounds) for step in STEPS]
                whole = median(sum(pair[number].values()) for pair in rounds)
                cells = " | ".join(f"{seconds:.2f}" for seconds in (*columns, whole))
                print(f"| {Path(model).stem} | {mesa} | {start} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
