"""Measures the seconds of the CPU that compiling models cold takes, beside the estimates, for some budgets.

    python -m tests.compile_budgets                                     # the catalogue, at the default budget
    python -m tests.compile_budgets ../models/*.tflite --budget 2 --budget 5 --budget 10 --budget 20

A process of its own for each, on the machine's OpenGL, with Mesa's own cache and ours off. All partitions of a model
are compiled. *kernels* of which some have one *program*; *share* is what was taken of what was asked for. Exit code 1
where a model took more than a quarter more than asked for, and no estimate says so.
"""

import argparse
import json
import os
import subprocess
import sys
from time import process_time
from typing import Any

from texelflow.app.models.catalogue import CATALOGUE
from texelflow.app.models.model_loading import load_graph
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.device.device import COMPILE_BUDGET_S
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.program_cache import VARIABLE
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import compile_s

COLUMNS = ("model", "budget s", "planning s", "compiling s", "estimated s", "share", "kernels", "programs")
TOLERANCE = 1.25


def compiled_cold(model: str, budget_s: float) -> dict[str, Any]:
    """In this process."""
    with open_context() as context:
        graph, device = load_graph(model), device_of(context)
        start_s = process_time()
        found = compile_partitions(graph, device, CompileOptions(compile_budget_s=budget_s)).compiled
        planned_s = process_time()
        for compiled in found:
            with Program(context, compiled):
                pass
        end_s = process_time()
    kernels = [kernel for compiled in found for kernel in compiled.kernels]
    return {
        "planning s": planned_s - start_s,
        "compiling s": end_s - planned_s,
        "estimated s": sum(compile_s(each.kernels, device.tuning.operation_compile_us) for each in found),
        "kernels": len(kernels),
        "programs": len({kernel.source for kernel in kernels}),
    }


def in_process(model: str, budget_s: float) -> dict[str, Any]:
    """In another process with empty caches. Raises RuntimeError with its last line where it fails."""
    command = [sys.executable, "-m", "tests.compile_budgets", model, "--budget", str(budget_s), "--child"]
    environment = {**os.environ, VARIABLE: "0", "MESA_SHADER_CACHE_DISABLE": "true"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it failed"])[-1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"model": os.path.basename(model), "budget s": budget_s, "share": found["compiling s"] / budget_s, **found}


def is_missed(row: dict[str, Any]) -> bool:
    """Whether more was taken than was asked for, and nothing said so."""
    return bool(row["compiling s"] > TOLERANCE * max(row["budget s"], row["estimated s"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(CATALOGUE))
    parser.add_argument("--budget", type=float, action="append")
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    budgets_s = given.budget or [COMPILE_BUDGET_S]
    if given.child:
        try:
            print(json.dumps(compiled_cold(given.models[0], budgets_s[0])))
        except TexelflowError as error:
            raise SystemExit(str(error)) from None
        return
    print("|", " | ".join(COLUMNS), "|")
    print("|---" * len(COLUMNS) + "|")
    missed = 0
    for model in given.models:
        for budget_s in budgets_s:
            try:
                row = in_process(model, budget_s)
            except RuntimeError as error:
                print(f"| {os.path.basename(model)} | {error} |", flush=True)
                break
            missed += is_missed(row)
            cells = (f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in map(row.get, COLUMNS))
            print("|", " | ".join(cells), "|", flush=True)
    raise SystemExit(missed > 0)


if __name__ == "__main__":
    main()
