"""`texelflow bench gpu`: reports what the program does on a machine with a GPU that nobody has seen.

Every measurement is a process of its own. What fails or crashes is a line of the report, which is written anew after
each one: an end at any time leaves what was measured. Nothing is fetched.
"""

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, strftime
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.isolated_python import OURS, python_command

from ...console import Console
from ...files import Files, Write, settle
from ...models.catalogue import list_models, model_path
from ...outputs.png_files import make_folder
from ...signals import exit_code, stop_flag
from ..measuring.measuring_process import MeasuringProcess, ProcessFigures
from .gpu_page import renderer_of
from .gpu_plan import LONGEST_S, SHORTEST_S, Measurement, Section, allowance_s, chosen_sections, planned
from .report_files import ARCHIVE_NAME, FORMAT, PAGE_NAME, GpuReport, finish_report, save_report

_PEER = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
_PART = (
    "import sys; from texelflow.app.bench.gpu_report.gpu_parts import main; sys.exit(main(sys.argv[1], sys.argv[2:]))"
)
_PEERS: Mapping[str, str] = MappingProxyType({"litert": "peer_litert.py", "mediapipe": "peer_mediapipe.py"})
_NETWORKS = ("mobilenet-v1", "deeplab-v3")
_OFFLINE = MappingProxyType({"PIP_NO_INDEX": "1"})  # what fetches models does it by pip
_TOLD_TOPICS = ("Python", "OpenGL", "EGL", "Display", "CPU")  # of doctor: the others are about this person's things


@dataclass(frozen=True)
class GpuBench:
    """What `bench gpu` is asked to do."""

    report: Path
    budget_s: float
    only: str | None = None  # sections, by commas
    peers: Path | None = None  # a Python interpreter that has them
    force: bool = False


def bench_gpu(options: GpuBench, console: Console) -> tuple[GpuReport, int]:
    """Measure and write: the report, and the exit code, which is a signal's if one ended it. Raises UsageError."""
    if not SHORTEST_S <= options.budget_s <= LONGEST_S:
        raise UsageError(f"--budget {options.budget_s:g}s: {SHORTEST_S:g} to {LONGEST_S:g} s are needed")
    sections = chosen_sections(options.only)
    if options.peers and not shutil.which(str(options.peers)):
        raise UsageError(f"--peers {options.peers}: no such program; the path of a Python interpreter is needed")
    settle(Files((), (Write("--report", options.report, "report"),)), options.force)
    make_folder(options.report)
    models = [status.entry.name for status in list_models() if status.present]
    if not models:
        console.warn("no model of the catalogue is on the disk; texelflow models fetch selfie gets one")
    plan = planned(sections, models, _NETWORKS, options.budget_s)
    report, process = _new_report(options, models, sections), MeasuringProcess(_OFFLINE)
    with stop_flag(process.end) as process.stop:
        _measure_all(plan, options, report, process, console)
        report["interrupted"] = bool(process.stop)
        finish_report(options.report, report)
    return report, exit_code(process.stop.number)


def _measure_all(
    plan: Sequence[Measurement], options: GpuBench, report: GpuReport, process: MeasuringProcess, console: Console
) -> None:
    """As many measurements as the budget has time for; the report is written after each."""
    start = perf_counter()
    for measurement in plan:
        section, begin = report["sections"][measurement.section], perf_counter()
        most_s = 0.0 if process.stop else allowance_s(options.budget_s - (begin - start))
        if not most_s:
            section["left_out"].append(measurement.name)
            continue
        what = ": ".join(dict.fromkeys((measurement.section, measurement.name)))
        console.note(f"{begin - start:4.0f} of {options.budget_s:.0f} s: {what}")
        measured = _run(measurement, options, report, process, most_s)
        end = perf_counter()
        if process.stop and measured.why:  # it did not fail: it was ended
            section["left_out"].append(measurement.name)
            continue
        section["measurements"].append(
            {
                "name": measurement.name,
                "seconds": round(end - begin, 2),
                "reason": measured.why,
                "figures": _told(measurement, measured.figures),
            }
        )
        report["spent_s"] = round(end - start, 1)
        save_report(options.report, report)


def _run(
    measurement: Measurement, options: GpuBench, report: GpuReport, process: MeasuringProcess, most_s: float
) -> ProcessFigures:
    if measurement.kind == "verb":
        return process.verb(measurement.arguments, most_s)
    if measurement.kind == "part":
        return process.run(python_command(_PART, *measurement.arguments, trusted=OURS), most_s)
    version_line = _driver(report)
    if measurement.kind == "litert" and (why := litert_refusal(version_line)):
        return ProcessFigures(None, why)
    model, *rest = measurement.arguments
    words = str(Path(__file__).with_name(_PEERS[measurement.kind])), str(model_path(model)), *rest
    command = [str(options.peers), "-I", *words] if options.peers else python_command(_PEER, *words)
    return process.run(command, most_s)


def show_gpu_bench(report: GpuReport, folder: Path, console: Console) -> None:
    """What was measured of each section, and where the report is."""
    rows = []
    for name, section in report["sections"].items():
        done, left_out = section["measurements"], section["left_out"]
        failed = [f"{each['name']}: {each['reason']}" for each in done if each["reason"]]
        rows.append((name, len(done) - len(failed), len(failed), len(left_out), failed[0] if failed else ""))
    columns = ("section", "measured", "failed", "left out", "the first reason")
    console.table(f"{renderer_of(report)}: {report['spent_s']:.0f} s", columns, rows)
    console.say(f"to read: {folder / PAGE_NAME}; to attach to an issue: {folder / ARCHIVE_NAME}")


def litert_refusal(driver: str) -> str:
    """Why LiteRT's accelerator is not tried, by OpenGL's version; "" if it is: Vulkan comes from the same driver."""
    _, _, mesa = driver.partition("Mesa ")
    major = mesa.partition(".")[0]
    if major.isdigit() and int(major) < 25:
        return f"LiteRT finds no adapter in the Vulkan of Mesa before 25; here is {mesa.split()[0]}"
    return ""


def _driver(report: GpuReport) -> str:
    """OpenGL's version, if the section on the device has it."""
    measurements = report["sections"].get("device", {}).get("measurements", [])
    return next((str(each["figures"].get("gl_version", "")) for each in measurements if each["figures"]), "")


def _told(measurement: Measurement, figures: dict[str, Any] | None) -> dict[str, Any] | None:
    """What of the figures belongs into a report that strangers read: nothing of this person's cameras and files."""
    if figures is None:
        return None
    if measurement.section == "doctor":
        return {"findings": [each for each in figures.get("findings", []) if each["topic"] in _TOLD_TOPICS]}
    if measurement.section == "fidelity" and "tensors" in figures:
        worst = max((each["max_error"] / each["limit"] for each in figures["tensors"] if each["limit"]), default=0.0)
        return {**figures, "tensors": len(figures["tensors"]), "worst_part_of_limit": worst}
    return figures


def _new_report(options: GpuBench, models: Sequence[str], sections: Sequence[Section]) -> GpuReport:
    return {
        "format": FORMAT,
        "texelflow": version("texelflow"),
        "day": strftime("%Y-%m-%d"),
        "budget_s": options.budget_s,
        "spent_s": 0.0,
        "interrupted": False,
        "system": {
            "platform": platform.platform(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
        },
        "models": list(models),
        "sections": {
            section.name: {"title": section.title, "measurements": [], "left_out": []} for section in sections
        },
    }
