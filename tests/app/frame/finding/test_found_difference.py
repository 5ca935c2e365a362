"""What two ways find is compared: numbers of things, boxes, points, and outputs that are no numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from texelflow.app.frame.finding.found_difference import FoundDifference, compare_found, found_limits_of, worst_of
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion

LIMITS = found_limits_of("fp32", None, False)
POINTS = np.array([[10, 10, 0], [30, 40, 0]], np.float32)
FACE = Finding("face", 0.9, FrameRegion(50, 40, 100, 80), points=POINTS)
HAND = Finding("hand", 0.8, FrameRegion(200, 40, 40, 40), "left")


def moved(found: Finding, x: float) -> Finding:
    assert found.region
    return replace(found, region=replace(found.region, center_x=found.region.center_x + x))


def test_the_same_things_in_another_order_are_no_difference() -> None:
    assert compare_found([HAND, FACE], [FACE, HAND]) == FoundDifference(0.0, 2, 2, 1.0, 0.0)
    assert compare_found([], []).agrees(LIMITS)


def test_figures_are_of_the_nearest_of_its_kind() -> None:
    difference = compare_found([moved(FACE, 50), moved(FACE, 1)], [FACE, moved(FACE, 50)])
    assert difference.iou == pytest.approx(99 / 101)
    apart = replace(FACE, points=POINTS + np.array([3, 4, 100], np.float32))
    assert compare_found([apart], [FACE]).distance == pytest.approx(5 / 90), "of the mean side; z is not compared"


@pytest.mark.parametrize(
    "found",
    [
        [],
        [FACE, FACE],
        [moved(FACE, 3)],
        [replace(FACE, kind="object")],
        [replace(FACE, label="left")],
        [replace(FACE, points=POINTS[:1])],
        [replace(FACE, points=POINTS + np.float32(2))],
        [replace(FACE, points=POINTS * np.float32(np.nan))],
    ],
    ids=["none", "twice", "moved", "kind", "label", "fewer points", "points", "no numbers"],
)
def test_what_is_no_agreement(found: list[Finding]) -> None:
    assert compare_found([FACE], [FACE]).agrees(LIMITS)
    assert not compare_found(found, [FACE]).agrees(LIMITS)


def test_the_worst_of_several_has_the_worst_of_each_figure() -> None:
    several = [FoundDifference(0.1, 1, 1, 0.9, 0.0), FoundDifference(math.nan, 2, 1, 1.0, 0.5)]
    worst = worst_of(several)
    assert math.isnan(worst.error)
    assert (worst.found, worst.expected, worst.iou, worst.distance) == (3, 2, 0.9, 0.5)
    assert not several[1].agrees(found_limits_of("fp16", 1.0, False))
    assert worst_of([]) == FoundDifference(0.0, 0, 0, 1.0, 0.0)
