"""The tool `decoder`: every way gives the same scores, and sizes that make no decoder are one line."""

import json

import pytest

from tests.helpers.commands import Command
from tests.tools.decoder.__main__ import main

SIZES = {"layers": 1, "width": 16, "heads": 2, "groups": 1, "hidden": 20, "vocabulary": 50, "positions": 9, "prompt": 4}
SMALL = [text for name, size in SIZES.items() for text in (f"--{name}", str(size))]


@pytest.mark.gl
def test_every_way_gives_the_same_scores(capsys: pytest.CaptureFixture[str]) -> None:
    result = Command(capsys, main)(*SMALL, "--tokens", "3", "--rounds", "1", "--threads", "1", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert [row["way"] for row in found["ways"]] == ["OpenGL", "native code, 1 thread", "XNNPACK, 1 thread"]
    assert all(row["difference"] < 1e-5 and row["decode_tokens_a_second"] > 0 for row in found["ways"])
    assert [row["signature"] for row in found["work"]] == ["prefill", "decode"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--heads 3", "heads have an even depth"),
        ("--tokens 6", "need a cache of as many positions"),
        ("--layers 0", "a number from 1 on is needed"),
        ("--threads 0", "--threads 0"),
    ],
)
def test_other_sizes_are_refused(arguments: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = Command(capsys, main)(*SMALL, "--tokens", "3", *arguments.split())
    assert result.code == 2
    assert reason in result.err
