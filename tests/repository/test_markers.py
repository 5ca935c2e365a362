"""The project's hooks of pytest: a test that opens OpenGL or a window without its marker is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import durations
from tests.helpers.running import ROOT
from tests.helpers.waiting import PATIENCE_S

PLUGINS = ["-p", "tests.helpers.markers", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
TESTS = """
import pytest
from texelflow.app.window.window_opening import open_window
from texelflow.gpu_delegate.targets.gl.context import open_context
@pytest.fixture
def _opened_context(): return None
@pytest.fixture
def context(_opened_context): return None
@pytest.fixture(scope="session")
def screen(): return None
def test_nothing(): pass
def test_by_fixture(context): pass
def test_on_screen(screen): pass
@pytest.mark.gl
def test_by_hand(): pass
def test_unmarked(): open_context()
def test_unmarked_window(): open_window((8, 8), "", "auto")
"""


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    path = tmp_path / "test_made_up.py"
    path.write_text(TESTS)
    return path


def run(path: Path, *options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.helpers.markers",
        "-c",
        "pyproject.toml",
        "-rA",
        *options,
        str(path),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout


def test_fixtures_mark_tests_and_unmarked_ones_are_refused(made_up: Path) -> None:
    out = run(made_up, "-m", "not gl and not window", "--without-gl")
    assert "2 failed, 1 passed, 3 deselected" in out
    assert "Failed: the test opens OpenGL, but is not marked gl: " in out
    assert "Failed: the test opens a window, but is not marked window: " in out


def test_durations_are_means_and_those_of_tests_that_did_not_run_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "DURATIONS", tmp_path / "durations.json")
    here, gone = "tests/repository/test_markers.py", "tests/repository/test_gone.py"
    before = {here: {"test_old": 0.5, "test_new": 9}, gone: {"test_it": 1}}
    (tmp_path / "durations.json").write_text(json.dumps(before))
    writer = durations.DurationWriter()
    for name, seconds in (("new[1]", 0.1), ("new[2]", 0.3), ("new[2]", 0.0345), ("short", 0.001)):
        report = pytest.TestReport(f"{here}::test_{name}", ("", 0, ""), {}, "passed", None, "call", duration=seconds)
        writer.pytest_runtest_logreport(report)
    writer.pytest_sessionfinish()
    assert durations.known_durations() == {f"{here}::test_new": 0.22, f"{here}::test_old": 0.5}
