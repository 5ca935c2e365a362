"""Mutations of models, in short: a seed always gives the same cases, all end well, and bad endings are told apart."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from gpu_delegate.reader import read_model
from tests.fuzz.mutations import MUTATIONS, Mutation, mutated, places_of
from tests.model_builder import selfie_like
from tests.random_networks import random_network
from tests.running import ROOT

CASES = 70
SMALL = {"selfie_like": selfie_like(1, size=(32, 16)), **{f"network{n}": random_network(n).build() for n in (3, 9, 14)}}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A program of its own, because it forks: this one has threads."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def test_mutants_end_well(tmp_path: Path) -> None:
    files = [tmp_path / name for name in SMALL]
    for file in files:
        file.write_bytes(SMALL[file.name])
    done = run("-m", "tests.fuzz.models", "--cases", CASES, "--seed", 5, "--save", tmp_path / "failures", *files)
    assert (done.returncode, list((tmp_path / "failures").glob("*"))) == (0, []), done.stdout + done.stderr
    counts = {how: int(count) for count, how in (part.split(" ", 1) for part in told(done.stdout).split(", "))}
    assert sum(counts.values()) == CASES
    assert counts["refused"] > CASES // 10
    assert counts["ran"] > CASES // 10, "mutants that the reader takes are what this is about"


def told(line: str) -> str:
    """The counts of a line such as 9 cases: 2 ran, 7 refused; slowest…"""
    return line.partition(": ")[2].partition(";")[0]


ENDINGS = """
import json, os, time
from tests.fuzz.children import in_child
def grow():
    kept = []
    while True: kept.append(bytearray(os.urandom(1 << 12) * 4096))
works = (lambda: "fine", os.abort, lambda: 1 // 0, lambda: time.sleep(60), grow)
found = [in_child(work, timeout_s=0.5, memory_bytes=1 << 28) for work in works]
print(json.dumps([(ending.how, ending.text) for ending in found]))
"""


def test_endings_are_told_apart() -> None:
    found = json.loads(run("-c", ENDINGS).stdout)
    assert [how for how, _ in found] == ["text", "crashed", "raised", "hung", "too large"]
    assert [text for _, text in found[:2]] == ["fine", "SIGABRT"]
    assert found[2][1].startswith("ZeroDivisionError: ")


@pytest.mark.parametrize("mutation", [mutation for mutation, _ in MUTATIONS], ids=lambda mutation: mutation.__name__)
def test_mutations_repeat_and_differ(mutation: Mutation) -> None:
    first, other = SMALL["selfie_like"], SMALL["network3"]
    found = [mutation(first, other, Random(seed)) for seed in range(4)]
    assert found == [mutation(first, other, Random(seed)) for seed in range(4)]
    assert len({first, *found}) > 2
    assert mutated(first, other, Random(1)) == mutated(first, other, Random(1))


def test_finds_what_the_tables_say() -> None:
    data = SMALL["selfie_like"]
    places = set(places_of(data))
    assert all(0 <= position <= len(data) - size for position, size in places)
    assert len(places) > 20 * len(read_model(data).nodes)
    assert list(places_of(b"\xff" * 64)) == []
