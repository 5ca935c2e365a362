"""What each test takes, as measured: tests/data/test_durations.json has those that take longest, by file and function.

`pytest --write-durations`, with whatever tests, writes anew what it measured. `make check` leaves out those that it
has; other runs begin with the files that take longest.
"""

import json
from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests.helpers.running import ROOT

DURATIONS = ROOT / "tests" / "data" / "test_durations.json"
LEAST_S = 0.03  # of a function, in the mean over its parameters: what takes less is not in the file
_OPTION = "--write-durations"


def known_durations() -> dict[str, float]:
    """Seconds of a test, in the mean over its parameters, by `path::function`; others take less than LEAST_S."""
    files: dict[str, dict[str, float]] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return {f"{file}::{name}": seconds for file, found in files.items() for name, seconds in found.items()}


def function_of(test: str) -> str:
    """`path::function` of a test's id, without its parameters."""
    return test.partition("[")[0]


class DurationWriter:
    """Adds up what tests take, also those of other processes, and writes it at the end."""

    def __init__(self) -> None:
        self._seconds = defaultdict[str, float](float)
        self._tests = defaultdict[str, set[str]](set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set up, called or ended: fixtures count for the test that needs them first."""
        self._seconds[function_of(report.nodeid)] += report.duration
        self._tests[function_of(report.nodeid)].add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Of functions that were not run what was known stays."""
        means = {name: seconds / len(self._tests[name]) for name, seconds in self._seconds.items()}
        write_durations({**known_durations(), **means})


def write_durations(durations: Mapping[str, float]) -> None:
    """Those of LEAST_S and more, of files that are there: two digits of each, and a line for a file."""
    files = defaultdict[str, dict[str, float]](dict)
    for test, seconds in sorted(durations.items()):
        file, _, name = test.partition("::")
        if seconds >= LEAST_S and (ROOT / file).exists():
            files[file][name] = float(f"{seconds:.2g}")
    lines = ",\n".join(f"{json.dumps(file)}: {json.dumps(found)}" for file, found in files.items())
    DURATIONS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, action="store_true", help="write what tests take to tests/data/test_durations.json")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption(_OPTION) and not hasattr(config, "workerinput"):  # one process hears of all
        config.pluginmanager.register(DurationWriter())
