"""A few cases of each attack, and that attacks find planted errors: `make fuzz` runs many."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from random import Random

from tests.fuzz.__main__ import FOUND, case_maker
from tests.fuzz.attacks import ATTACKS
from tests.fuzz.model_mutations import MUTATIONS, Mutation, mutated, places_of
from tests.fuzz.models import small_models
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.running import ROOT
from texelflow.gpu_delegate.reading.reader import read_model

CASES = 12
BYTE_MODELS = 24
QUICK = [name for name in ATTACKS if name != "commands"]


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A program of its own, because it forks: this one has threads."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


@exhaustive
def test_attacks_find_nothing() -> None:
    done = run("-m", "tests.fuzz", *QUICK, "--cases", CASES, "--seed", 11, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    counted = json.loads(done.stdout.splitlines()[-1])
    assert list(counted) == QUICK
    for name, counts in counted.items():
        assert sum(counts["outcomes"].values()) == CASES, name
        assert set(counts["outcomes"]).isdisjoint(FOUND)
        assert min(counts["outcomes"][outcome] for outcome in ("ran", "refused")) > 0, name


@exhaustive
def test_mutated_models_of_bytes_compute_as_the_reference_kernels() -> None:
    """`make fuzz-bytes` has 20,000."""
    done = run("-m", "tests.fuzz.quantized", "--count", BYTE_MODELS, "--seed", 100)
    assert done.returncode == 0, done.stderr[-2000:]
    counted = ast.literal_eval(done.stdout.partition(": ")[2])
    assert sum(counted.values()) == BYTE_MODELS
    assert counted["equal"] > BYTE_MODELS / 4


@exhaustive
def test_native_code_stays_in_its_memory() -> None:
    """`make fuzz-memory` has every case."""
    script = "from tests.fuzz.guards import main; main(['cases', 'TRANSPOSE_CONV']); "
    done = run("-c", script + "main(['graphs', '--count', '5', '--quantized', 'int8'])")
    outcomes = [ast.literal_eval(line.partition(": ")[2]) for line in done.stdout.splitlines()]
    assert len(outcomes) == 2, done.stderr[-2000:]
    assert all(set(counted) == {"untouched"} for counted in outcomes), done.stderr


BESIDE = """
import ctypes
from dataclasses import replace
import numpy as np
from tests.fuzz import guards
from tests.fuzz.children import in_child
from tests.helpers.case_group import CaseGroup
from texelflow.gpu_delegate.cases.table import cases_of
class Narrow(guards.Guards):  # of whose memory the second half is no part
    def reserve(self, count):
        found = super().reserve(count)
        part, end = self.parts[-1], self.parts[-1].end - count // 2
        part.words[end : part.end] = part.pattern
        self.parts[-1] = replace(part, end=end)
        return found
def far():
    made = guards.Guards(0, True).reserve(5)
    return str(ctypes.c_float.from_address(made.ctypes.data + 4 * (5 + 256 + 16)).value)
print(in_child(far).text)
guards.Guards = Narrow
group = CaseGroup(cases_of("ABS")[:1])
print(in_child(lambda: guards.fault_of(group.graph, group.inputs(0))).text)
"""


@exhaustive
def test_memory_that_is_left_is_found_out() -> None:
    beyond, beside = run("-c", BESIDE).stdout.splitlines()
    assert beyond == "SIGSEGV"
    assert "of a margin behind are written" in beside


FINDING = """
import json, os
from dataclasses import asdict
from tests.fuzz import __main__ as fuzz
from texelflow.gpu_delegate.base.errors import UsageError
def attempt(data):
    if data == b"end": os._exit(3)
    if data == b"crash": os.abort()
    if data == b"defect": return 1 // 0
    if data: raise UsageError(data.decode())
cases = [b"", b"one line", b"two\\nlines", b"crash", b"end", b"defect", b""]
fuzz.ATTACKS["own"] = fuzz.Attack(lambda: cases, attempt, lambda _, seeds, random: seeds[numbers[random.random()]])
numbers = {fuzz.Random(f"own 0 {number}").random(): number for number in range(len(cases))}
print(json.dumps(asdict(fuzz.count("own", len(cases), 0))))
"""


@exhaustive
def test_findings_are_counted_and_kept(tmp_path: Path) -> None:
    counts = json.loads(run("-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})" + FINDING, cwd=tmp_path).stdout)
    assert counts["outcomes"] == {"ran": 2, "refused": 1, "raised": 3, "crashed": 1}
    assert [found["number"] for found in counts["found"]] == [2, 3, 4, 5]
    assert (tmp_path / "build" / "fuzz" / "own-0-3.bin").read_bytes() == b"crash"


ENDINGS = """
import json, os, time
from tests.fuzz.children import in_child
def grow():
    kept = []
    while True: kept.append(bytearray(os.urandom(1 << 12) * 4096))
works = (lambda: "fine", os.abort, lambda: 1 // 0, lambda: time.sleep(60), grow)
limits_s = (60, 60, 60, 0.5, 60)
found = [in_child(work, limit_s, memory_bytes=1 << 28) for work, limit_s in zip(works, limits_s, strict=True)]
print(json.dumps([(ending.how, ending.text) for ending in found]))
"""


def test_endings_are_told_apart() -> None:
    found = json.loads(run("-c", ENDINGS).stdout)
    assert [how for how, _ in found] == ["text", "crashed", "raised", "hung", "too large"]
    assert [text for _, text in found[:2]] == ["fine", "SIGABRT"]
    assert found[2][1].startswith("ZeroDivisionError: ")


def test_cases_are_the_same_each_time() -> None:
    first, again = (case_maker("images", ATTACKS["images"], 5) for _ in range(2))
    assert [first(number) for number in range(20)] == [again(number) for number in range(20)]
    assert len({first(number) for number in range(20)}) > 10


@one_in(3, "mutation", [mutation for mutation, _ in MUTATIONS], ids=lambda mutation: mutation.__name__)
def test_mutations_of_models_repeat_and_differ(mutation: Mutation) -> None:
    first, other, *_ = small_models()
    found = [mutation(first, other, Random(seed)) for seed in range(4)]
    assert found == [mutation(first, other, Random(seed)) for seed in range(4)]
    assert len({first, *found}) > 2
    assert mutated(first, other, Random(1)) == mutated(first, other, Random(1))


def test_finds_what_the_tables_say() -> None:
    data = small_models()[0]
    places = set(places_of(data))
    assert all(0 <= position <= len(data) - size for position, size in places)
    assert len(places) > 20 * len(read_model(data).nodes)
    assert list(places_of(b"\xff" * 64)) == []
