"""Runs the compiler of a GPU in a process of its own, and collects figures of each dispatch."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.model.layout import Precision

from .fake_device import MARK
from .figures import Figures, parse
from .kernels import Dispatch, device_of, dispatches, distinct, graph_of
from .loops import Code, amd_code, executed, intel_code
from .platforms import PLATFORMS, Platform, environment_of

PREFIX = "TEXELFLOW_GPU_COMPILERS"  # the environment's name for where the fake devices are installed
MOST_S = 300.0  # for a platform
Dispatches = Mapping[str, Sequence[Dispatch]]  # by model
Make = Callable[[Platform, Limits], Dispatches]
Known = Callable[[str], Container[str]]  # Mesa's version to the keys of texts that need not be compiled


@dataclass(frozen=True)
class Row:
    """A dispatch and what its compiler says; no figures if it has failed, or was not asked."""

    dispatch: Dispatch
    seconds: float  # of the CPU, to compile it
    figures: Figures | None
    problem: str | None = None


@dataclass(frozen=True)
class Report:
    """What a platform's compiler makes of models."""

    platform: str
    renderer: str
    mesa: str  # the version
    rows: Mapping[str, tuple[Row, ...]]  # by model
    problems: tuple[str, ...] = ()


def prefix_of(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where fake devices are installed, None if nowhere."""
    return Path(environment[PREFIX]).resolve() if environment.get(PREFIX) else None


def kernels_of(models: Sequence[str], precision: Precision = "fp32", family: str | None = None) -> Make:
    """What makes models' kernels for a platform, with the tuning of its family or of another.

    Raises CatalogueError, OSError, UnsupportedError for a model that cannot be had.
    """
    for model in models:
        graph_of(model)  # before threads ask for the same file

    def make(platform: Platform, limits: Limits) -> Dispatches:
        device = device_of(family or platform.family, limits)
        return {model: dispatches(model, device, precision) for model in models}

    return make


def measure(
    name: str, prefix: Path | None, make: Make, known: Known | None = None, most_s: float = MOST_S, gles: bool = False
) -> Report:
    """Have a platform's compiler take the kernels that `make` gives for it, each text once, but for those known.

    With `gles` in OpenGL ES, wherever the platform is usually asked in OpenGL.
    """
    platform = PLATFORMS[name]
    if gles and platform.api == "gl":
        platform = replace(platform, api="gles")
    child = "radv" if platform.api == "vulkan" else "fake_device"
    command = [sys.executable, "-m", f"{__package__}.{child}", platform.api]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **environment_of(platform, prefix, Path(folder))}
        errors = Path(folder, "errors.txt")
        with errors.open("w") as kept:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=kept, text=True
            )
            try:
                return _asked(process, name, make, known, most_s, errors)
            finally:
                process.kill()
                process.wait()


def _asked(
    process: "subprocess.Popen[str]", name: str, make: Make, known: Known | None, most_s: float, errors: Path
) -> Report:
    assert process.stdout is not None
    first = process.stdout.readline()
    if not first:
        return Report(name, "", "", {}, (f"no device: {_end_of(errors)}",))
    driver = json.loads(first)
    version = re.search(r"Mesa (\d[\w.]*)", driver["version"])
    mesa = version[1] if version else ""
    found, spared = make(PLATFORMS[name], _limits(driver["limits"])), known(mesa) if known else ()
    texts = distinct(dispatch for each in found.values() for dispatch in each)
    sources = {key: text for key, text in texts.items() if key not in spared}
    out, late = _talk(process, json.dumps(sources), most_s)
    answers = {answer["name"]: answer for answer in map(json.loads, out.splitlines())}
    missing = next((key for key in sources if key not in answers), None)
    how = f"no end after {most_s:g} s" if late else f"the process ended: {_end_of(errors)}"
    problems = (f"{_named(found, missing)}: {how}",) if missing else ()
    listings = _listings(errors)

    def row(dispatch: Dispatch) -> Row:
        if dispatch.key not in sources:
            return Row(dispatch, 0.0, None)
        return _row(dispatch, answers.get(dispatch.key), listings.get(dispatch.key, ""))

    return Report(
        name, driver["renderer"], mesa, {model: tuple(map(row, own)) for model, own in found.items()}, problems
    )


def _talk(process: "subprocess.Popen[str]", text: str, most_s: float) -> tuple[str, bool]:
    """What the process writes when it has read the text, and whether it was stopped for the time it took."""
    try:
        return process.communicate(text, most_s)[0], False
    except subprocess.TimeoutExpired:
        process.kill()
        out = process.communicate()[0]
        return out[: out.rfind("\n") + 1], True


def _row(dispatch: Dispatch, answer: Mapping[str, Any] | None, listing: str) -> Row:
    if answer is None:
        return Row(dispatch, 0.0, None, "not compiled")
    if answer["log"]:
        return Row(dispatch, answer["seconds"], None, answer["log"].splitlines()[0])
    if "counted" in answer:
        figures: Figures | None = _of_radv(answer["counted"])
        code: Code | None = amd_code(answer["listing"])
    else:
        found = [each for each in map(parse, answer["said"]) if each]
        figures = found[-1] if found else None  # the last variant is the one in use
        code = intel_code(listing, figures.width) if figures and figures.width else None
    if figures and code:
        figures = replace(figures, executed=executed(dispatch.source, code), loops=len(code.loops))
    return Row(dispatch, answer["seconds"], figures, None if figures else "the driver gives no figures")


def _of_radv(counted: Mapping[str, int]) -> Figures:
    return Figures(
        width=64,  # RADV's for compute shaders before RDNA 3's wave32, unless asked for another
        instructions=counted["instructions"],
        registers=counted["vgprs"],
        spills=counted["spilled vgprs"],
        waves=counted["subgroups per simd"],
        code_bytes=counted["code size"],
        branches=counted["branches"],
        latency=counted["latency"],
        inverse_throughput=counted["inverse throughput"],
    )


def _limits(found: Mapping[str, Any]) -> Limits:
    """A driver's limits; for one that has none of OpenGL, those that OpenGL guarantees."""
    sizes: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    return replace(Limits(storage_block_bytes=1 << 27), **sizes)


def _listings(errors: Path) -> dict[str, str]:
    """What the driver has printed of each shader."""
    pieces = re.split(rf"^{MARK}(\w+)\n", errors.read_text(errors="replace"), flags=re.M)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def _named(found: Dispatches, key: str) -> str:
    return next(f"{model} {each.number} {each.name}" for model, own in found.items() for each in own if each.key == key)


def _end_of(errors: Path) -> str:
    lines = errors.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it says nothing"
