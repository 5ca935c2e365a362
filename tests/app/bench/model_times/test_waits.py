"""`texelflow bench waits`: each wait type is measured, for a bounded number of runs."""

import json

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive

pytestmark = pytest.mark.gl


@exhaustive
def test_each_wait_type_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    result = Command(capsys)("bench", "waits", "selfie", "--runs", 3, "--json")
    assert result.code == 0
    figures = json.loads(result.out.splitlines()[-1])
    assert [row["wait_type"] for row in figures["waits"]] == ["passive", "active", "do-not-wait", "aggressive"]
    for row in figures["waits"]:
        assert 0 < row["least_ms"] <= row["latency_ms"]
        assert 0 < row["thread_cpu_ms"] <= row["process_cpu_ms"]


def test_runs_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    assert Command(capsys)("bench", "waits", "selfie", "--runs", 0).code == 2
