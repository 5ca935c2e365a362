"""How masks differ that begin in mid-scene: what is counted, how scenes last longer, and the tool on a row of them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.bench.quality.test_scenes import row
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.tools.mask_leads import largest_by_lead, main, prolonged


@pytest.fixture
def tool(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys, main)


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


@exhaustive
def test_differences_get_less_with_a_lead(tool: Command) -> None:
    of_one_row = ("--part", "all", "--only", "hopper own", "--conditions", "still")
    found = tool("--smooth", 0.2, *of_one_row, "--frames", 12, "--json")
    figures = json.loads(found.out)
    largest = figures["largest"]
    assert (figures["lead"], figures["beginnings"], len(largest)) == (16, 2, 12)
    assert largest[0] > 4 > largest[9]
    assert figures["least_lead"] <= 9
    assert figures["rows"][0]["largest"] == largest


def test_what_is_not_there_is_refused(tool: Command) -> None:
    for flags in (("--smooth", 2), ("--smooth", 0.5, "--steps", "raw"), ("--part", "some")):
        assert tool(*flags).code == 2
