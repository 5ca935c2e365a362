"""Measures the seconds of the CPU of a first and a second start, with Mesa's own cache off, emptied and kept.

    python -m tests.start_times selfie --rounds 3
    TEXELFLOW_GPU_COMPILERS=DIR python -m tests.start_times selfie --platform adl   # on a driver of tests/gpu_compilers

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

from tests.gpu_compilers.compilers import prefix_of
from tests.gpu_compilers.platforms import PLATFORMS, environment_of
from texelflow.app.models.model_loading import load_graph
from texelflow.gpu_delegate.saving.kept_graph import kept_graph
from texelflow.gpu_delegate.targets.gl import gl_store
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute, open_context
from texelflow.gpu_delegate.targets.gl.program_cache import VARIABLE
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.tuning.store import tuned_device

STEPS = ("context", "reading", "planning", "programs", "first run")
MESA = ("off", "emptied before each start", "kept")

StepSeconds = dict[str, float]  # of the CPU, by step


def one_start(model: str, is_es: bool) -> StepSeconds:
    """Of this process."""
    times_s, programs_s = [process_time()], 0.0

    def timed(context: Context, source: str, label: str) -> int:
        nonlocal programs_s
        start_s = process_time()
        program = compile_compute(context, source, label)
        programs_s += process_time() - start_s
        return program

    setattr(gl_store, "compile_compute", timed)  # noqa: B010  # this process does nothing else
    with open_context(api="gles" if is_es else "gl") as context:
        times_s.append(process_time())
        graph = load_graph(model)
        times_s.append(process_time())
        compiled = kept_graph(context.programs, graph, tuned_device(context))
        times_s.append(process_time())
        with Program(context, compiled):
            times_s.append(process_time())
    opened, read, planned, ran = (after - before for before, after in itertools.pairwise(times_s))
    return dict(zip(STEPS, (opened, read, planned, programs_s, ran - programs_s), strict=True))


def two_starts(model: str, mesa: str, platform: str, folder: Path) -> list[StepSeconds]:
    """With nothing kept, and with all that the first one has kept."""
    known = PLATFORMS.get(platform)
    environment = environment_of(known, prefix_of(), folder) if known else dict[str, str]()
    environment |= {VARIABLE: "1", "TEXELFLOW_CACHE": str(folder / "ours"), "INTEL_DEBUG": "", "FD_MESA_DEBUG": ""}
    environment["MESA_SHADER_CACHE_DIR"] = str(folder / "mesa")
    environment["MESA_SHADER_CACHE_DISABLE"] = "true" if mesa == "off" else "false"
    is_es = known is not None and known.api == "gles"
    starts = []
    for _ in range(2):
        starts.append(started(model, is_es, environment))
        if mesa == "emptied before each start":
            shutil.rmtree(folder / "mesa", ignore_errors=True)
    return starts


def started(model: str, is_es: bool, environment: Mapping[str, str]) -> StepSeconds:
    """Of a process with that environment."""
    command = [sys.executable, "-m", "tests.start_times", model, "--child", *(["--es"] if is_es else [])]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True)
    found: StepSeconds = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--platform", default="")
    parser.add_argument("--mesa", choices=MESA, action="append")
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--es", action="store_true")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(one_start(given.models[0], given.es)))
        return
    print("| model | Mesa's own cache | start |", " | ".join((*STEPS, "all")), "|")
    print("|---|---|---|" + "---|" * (len(STEPS) + 1))
    for model in given.models:
        found: dict[str, list[list[StepSeconds]]] = {mesa: [] for mesa in given.mesa or MESA}
        for mesa, rounds in list(found.items()) * given.rounds:
            with tempfile.TemporaryDirectory() as folder:
                rounds.append(two_starts(model, mesa, given.platform, Path(folder)))
        for mesa, rounds in found.items():
            for number, name in enumerate(("first", "second")):
                columns = [median(starts[number][step] for starts in rounds) for step in STEPS]
                whole = median(sum(starts[number].values()) for starts in rounds)
                cells = " | ".join(f"{seconds:.2f}" for seconds in (*columns, whole))
                print(f"| {Path(model).stem} | {mesa} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
