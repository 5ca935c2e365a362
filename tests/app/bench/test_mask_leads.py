"""How masks differ that begin in mid-scene: what is counted, how scenes last longer, and the verb on a row of them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.bench.test_scenes import row
from tests.helpers.commands import Command
from texelflow.app.bench.mask_leads import largest_by_lead, prolonged


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@given(st.lists(st.integers(0, 255), max_size=40))
def test_a_lead_leaves_the_largest_difference_after_it(apart: list[int]) -> None:
    found = largest_by_lead(apart)
    assert list(found) == [max(apart[lead:]) for lead in range(len(apart))]


def test_scenes_go_there_and_back() -> None:
    scene = row("hopper own", "motion")
    path, frames = scene.condition.path, 3 * len(scene.condition.path)
    longer = prolonged(scene, frames).condition
    assert longer.frames == len(longer.path) == frames
    assert longer.path[: len(path)] == path
    assert longer.path[len(path) : 2 * len(path) - 1] == path[-2::-1]
    neighbors = {pair for one, other in pairwise(path) for pair in ((one, other), (other, one))}
    assert {*pairwise(longer.path)} <= neighbors


@pytest.mark.slow
def test_differences_get_less_with_a_lead(texelflow: Command) -> None:
    of_one_row = ("--part", "all", "--only", "hopper own", "--conditions", "still")
    found = texelflow("bench", "quality", "--scenes", "--leads", 0.2, *of_one_row, "--frames", 12, "--json")
    figures = json.loads(found.out)
    largest = figures["largest"]
    assert (figures["lead"], figures["beginnings"], len(largest)) == (16, 2, 12)
    assert largest[0] > 4 > largest[9]
    assert figures["least_lead"] <= 9
    assert figures["rows"][0]["largest"] == largest


def test_what_does_not_go_together_is_refused(texelflow: Command) -> None:
    for flags in (("--leads", 0.5), ("--scenes", "--leads", 2), ("--scenes", "--leads", 0.5, "--steps", "raw")):
        assert texelflow("bench", "quality", *flags).code == 2
