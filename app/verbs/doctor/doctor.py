"""`texelflow doctor`: shows what this machine has and lacks for the program, line by line, each with what to do.

Whatever is broken is a diagnosis: nothing here raises. doctor_probe.py queries drivers, diagnoses.py evaluates,
this file shows.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from texelflow.gpu_delegate.base.isolated_python import OURS, python_command

from ...console import Console, one_line
from . import diagnoses
from .diagnoses import Diagnosis

_PROBE = "from texelflow.app.verbs.doctor.doctor_probe import main; main(sys.argv[1])"
_PROBE_SECONDS = 30
_MESA_SAYS = "libEGL warning: "
_LONGEST_SAID = 150
_WIDTH = 100
_STYLES = {"ok": "green", "warn": "yellow", "missing": "bold red"}


def doctor(console: Console, as_json: bool, developer: bool = False) -> int:
    """Look at everything, show it, and return the exit code: 0 if recordings can be segmented here, 2 if not.

    What only the program's own tests need is looked for with `developer` alone.
    """
    found = all_diagnoses(developer)
    reasons = [diagnosis for diagnosis in found if diagnosis.state == "missing" and diagnosis.stops]
    show(found, reasons, console)
    if as_json:
        rows = [asdict(diagnosis) for diagnosis in found]
        console.json(
            {"ok": not reasons, "reasons": [f"{reason.name}: {reason.found}" for reason in reasons], "findings": rows}
        )
    return 2 if reasons else 0


def all_diagnoses(developer: bool) -> list[Diagnosis]:
    """All of them, in the order in which things build on each other."""
    gl = probe("opengl")
    sections: tuple[tuple[str, Callable[[], Sequence[Diagnosis]]], ...] = (
        ("Python", diagnoses.python),
        ("OpenGL", lambda: diagnoses.opengl(gl)),
        ("EGL", lambda: diagnoses.egl(egl_devices(gl), os.environ)),
        ("Display", lambda: diagnoses.display(probe("window"), os.environ)),
        ("CPU", lambda: diagnoses.cpu(probe("cpu"), bool(gl.get("can_compute")))),
        *((("Backend", lambda: diagnoses.backend(probe("auto"))),) if gl.get("can_compute") else ()),
        ("Video", diagnoses.video_codecs),
        ("Cameras", diagnoses.cameras),
        ("Virtual camera", diagnoses.virtual_camera),
        ("Models", diagnoses.models),
        *((("Tests", diagnoses.tools),) if developer else ()),
    )
    return [diagnosis for topic, look in sections for diagnosis in _look(topic, look)]


def egl_devices(gl: Mapping[str, Any]) -> dict[str, Any]:
    """EGL's devices and what came of each; those that OpenGL was opened without are tried now, one by one."""
    listed = probe("egl")
    tried = {each["number"]: {**each, "said": gl["said"]} for each in gl.get("tried", ())}
    rows = [
        {**(tried.get(number) or _tried_alone(number)), "text": text, "taken": number == gl.get("taken")}
        for number, text in enumerate(listed.get("devices") or ())
    ]
    return {**listed, "devices": rows if listed.get("devices") is not None else None}


def _tried_alone(number: int) -> dict[str, Any]:
    """What comes of one device, in a process that it may crash."""
    found = probe(str(number))
    row: dict[str, Any] = found["tried"][0] if "tried" in found else {"renderer": "", "advice": ""}
    return {**row, "why": found.get("error") or row["why"], "said": found.get("said", "")}


def probe(name: str) -> dict[str, Any]:
    """What a probe finds; `error` says it where that is nothing, even if the probe's process crashed or hung."""
    command = python_command(_PROBE, name, trusted=OURS)
    try:
        environment = {**os.environ, "EGL_LOG_LEVEL": "warning"}  # Mesa says more than its error codes do
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False, env=environment
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found | {"said": _said(done.stderr)}
    except subprocess.TimeoutExpired:
        return {"error": f"the driver hangs: no answer in {_PROBE_SECONDS} s"}
    except (OSError, ValueError):
        return {"error": "the probe does not start"}
    except IndexError:
        how = f"signal {-done.returncode}" if done.returncode < 0 else (done.stderr.splitlines() or ["no reason"])[-1]
        return {"error": f"the driver ends the process that asks it ({how})"}


def _said(errors: str) -> str:
    """What a driver that does not start says first, without where it has looked."""
    said = next((line for line in errors.splitlines() if line.startswith(_MESA_SAYS)), "")
    return said.removeprefix(_MESA_SAYS).partition(" (")[0][:_LONGEST_SAID]


def show(found: Sequence[Diagnosis], reasons: Sequence[Diagnosis], console: Console) -> None:
    """A table by topics, and the verdict."""
    table = Table(box=None, pad_edge=False, width=min(_WIDTH, console.columns), header_style="bold")
    table.add_column("")
    table.add_column("", no_wrap=True)
    table.add_column("found", ratio=5, overflow="fold")
    table.add_column("what to do", ratio=4, overflow="fold")
    topic = ""
    for diagnosis in found:
        if diagnosis.topic != topic:
            topic = diagnosis.topic
            table.add_row(Text(topic, style="bold"), end_section=False)
        table.add_row(*_cells(diagnosis))
    console.show(table, "")
    console.show(_verdict(found, reasons))


def _cells(diagnosis: Diagnosis) -> tuple[Text, ...]:
    style = _STYLES[diagnosis.state]
    name, what, advice = map(one_line, (diagnosis.name, diagnosis.found, diagnosis.advice))
    return Text(f"  {diagnosis.state}", style=style), Text(name), Text(what), Text(advice, style="dim")


def _verdict(found: Sequence[Diagnosis], reasons: Sequence[Diagnosis]) -> Text:
    if reasons:
        why = ", ".join(f"{reason.name} ({one_line(reason.found)})" for reason in reasons)
        return Text(f"Recordings cannot be segmented here, because of {why}", style=_STYLES["missing"])
    better = sum(diagnosis.state != "ok" for diagnosis in found)
    more = f"; what could be better: {better} of {len(found)} lines" if better else ""
    return Text(f"Recordings can be segmented here{more}", style=_STYLES["ok"])


def _look(topic: str, look: Callable[[], Sequence[Diagnosis]]) -> Sequence[Diagnosis]:
    try:
        return look()
    except Exception as error:  # a failing check is one, too
        return [Diagnosis(topic, "this check", "missing", one_line(str(error)) or type(error).__name__, "report this")]
