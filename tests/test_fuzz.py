"""A few cases of each attack, and that what attacks an attempt is found out: `make fuzz` runs many."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gpu_delegate.errors import MediaError
from tests.fuzz.__main__ import case_maker
from tests.fuzz.attacks import ATTACKS
from tests.fuzz.children import FINDINGS, OUTCOMES, Result, run_cases

CASES = 40
QUICK = [name for name in ATTACKS if name != "commands"]
ROOT = Path(__file__).parents[1]


def test_attacks_find_nothing() -> None:
    command = [sys.executable, "-m", "tests.fuzz", *QUICK, "--cases", str(CASES), "--seed", "11", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    counted = json.loads(done.stdout.splitlines()[-1])
    assert list(counted) == QUICK
    for name, counts in counted.items():
        assert counts["ran"] + counts["refused"] == CASES, name
        assert min(counts["ran"], counts["refused"]) > 0, name


def test_cases_are_the_same_each_time() -> None:
    first, again = (case_maker("images", ATTACKS["images"], 5) for _ in range(2))
    assert [first(number) for number in range(20)] == [again(number) for number in range(20)]
    assert len({first(number) for number in range(20)}) > 10


def attempt(data: bytes) -> None:
    """Does what the case says."""
    match data:
        case b"refuse":
            raise MediaError("one line")
        case b"two lines":
            raise MediaError("one line\nand another")
        case b"defect":
            raise KeyError("a defect")
        case b"crash":
            os.abort()
        case b"end":
            os._exit(3)
        case b"hang":
            time.sleep(60)


def test_what_happens_to_cases_is_told() -> None:
    cases = [b"", b"refuse", b"two lines", b"defect", b"crash", b"end", b"hang", b""]
    assert list(run_cases(attempt, cases.__getitem__, len(cases), hang_s=1)) == [
        Result(0, "ran"),
        Result(1, "refused", "one line"),
        Result(2, "defect", r"not one line: 'one line\nand another'"),
        Result(3, "defect", "KeyError: 'a defect'"),
        Result(4, "crashed", "SIGABRT"),
        Result(5, "crashed", "exit code 3"),
        Result(6, "hung", "longer than 1 s"),
        Result(7, "ran"),
    ]


def test_memory_without_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    monkeypatch.setattr("tests.fuzz.children.MOST_BYTES", now_bytes + (1 << 27))
    results = list(run_cases(lambda data: np.ones(int(data)), lambda number: (b"1", b"40000000")[number % 2], 3))
    assert [result.outcome for result in results] == ["ran", "too large", "ran"]
    assert set(FINDINGS) < set(OUTCOMES)
