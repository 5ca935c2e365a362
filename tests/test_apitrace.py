"""What apitrace sees of a run at OpenGL's own door: our counter of what is read back is not believed, but checked."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import assets
from tests.running import ROOT

CLIP = Path(assets.__file__).parent / "people.mp4"
# Whatever brings pixels or buffers to the CPU, in all forms (n, Named, Sub, Texture, ARB); mapping, too, if it reads
READING = re.compile(r"gl(ReadPixels|Readn|Get\w*(Image|SubData)|Map\w*Buffer)\w*\(")
WRITES_ONLY = re.compile(r"\b(GL_WRITE_ONLY|access = GL_MAP_WRITE_BIT(?!.*GL_MAP_READ_BIT))")

pytestmark = pytest.mark.skipif(shutil.which("apitrace") is None, reason="needs apitrace")


def traced(folder: Path, *arguments: object) -> tuple[dict[str, object], list[str]]:
    """What a replay tells of itself, and its calls of OpenGL, a line each."""
    trace = folder / "calls.trace"
    command = ["apitrace", "trace", "-a", "egl", "-o", trace, sys.executable, "-m", "app", "replay", CLIP, *arguments]
    done = subprocess.run(
        [*map(str, command), "--backend", "gl", "--json"], cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    dump = ("apitrace", "dump", "--call-nos=no", "--color=never", "--multiline=no", str(trace))
    calls = subprocess.run(dump, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    assert sum(call.startswith("glDispatchCompute(") for call in calls) > 50
    return json.loads(done.stdout.splitlines()[-1]), calls


def reading(calls: list[str]) -> list[str]:
    return [call for call in calls if READING.match(call) and not WRITES_ONLY.search(call)]


def test_a_replay_that_records_nothing_reads_nothing(tmp_path: Path) -> None:
    told, calls = traced(tmp_path, "--effect", "blur", "--to", "2")
    assert reading(calls) == []
    assert (told["frames"], told["readback_bytes"]) == (3, 0)


def test_one_that_records_is_seen_to_read(tmp_path: Path) -> None:
    _, calls = traced(tmp_path, "--masks", tmp_path / "masks", "--to", "0")
    assert reading(calls)
