"""Mean average precision: small cases by hand, and a second implementation that goes by the definition's own words."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app.verbs.evaluation.average_precision import OVERLAPS, AveragePrecision, Detections, TrueBoxes, overlaps

Box = tuple[float, float, float, float]
UNIT: Box = (0, 0, 10, 10)
FAR: Box = (50, 50, 60, 60)
Found = Sequence[tuple[Box, float, int]]  # box, score, class
True_ = Sequence[tuple[Box, int, bool]]  # box, class, crowd


def averages(*pictures: tuple[Found, True_]) -> npt.NDArray[np.float64]:
    """(classes, overlaps)."""
    collected = AveragePrecision()
    for found, true in pictures:
        boxes, scores, classes = zip(*found, strict=True) if found else ((), (), ())
        true_boxes, true_classes, crowds = zip(*true, strict=True) if true else ((), (), ())
        collected.add(
            Detections(np.reshape(boxes, (-1, 4)).astype(float), np.array(scores, float), np.array(classes, np.int64)),
            TrueBoxes(
                np.reshape(true_boxes, (-1, 4)).astype(float), np.array(true_classes, np.int64), np.array(crowds, bool)
            ),
        )
    return collected.averages()


@pytest.mark.parametrize(
    ("found", "true", "expected"),
    [
        ([(UNIT, 0.9, 1)], [(UNIT, 1, False)], 1.0),
        ([], [(UNIT, 1, False)], 0.0),
        ([(FAR, 0.9, 1)], [(UNIT, 1, False)], 0.0),
        ([(UNIT, 0.9, 2)], [(UNIT, 1, False)], 0.0),
        # one of two boxes: precision 1 at the recalls 0, 0.01, ... 0.5, of 101
        ([(UNIT, 0.9, 1)], [(UNIT, 1, False), (FAR, 1, False)], 51 / 101),
        # a wrong one first: precision 1/2 at every recall
        ([(FAR, 0.9, 1), (UNIT, 0.8, 1)], [(UNIT, 1, False)], 0.5),
        # a wrong one last changes nothing
        ([(FAR, 0.7, 1), (UNIT, 0.8, 1)], [(UNIT, 1, False)], 1.0),
        # a box found twice: the second is wrong; then another box: precision 1 up to 0.5, 2/3 beyond
        ([(UNIT, 0.9, 1), (UNIT, 0.8, 1), (FAR, 0.7, 1)], [(UNIT, 1, False), (FAR, 1, False)], (51 + 50 * 2 / 3) / 101),
        # in a crowd any number counts neither way
        ([(UNIT, 0.9, 1), (UNIT, 0.8, 1), (FAR, 0.7, 1)], [(UNIT, 1, True), (FAR, 1, False)], 1.0),
        # the single box is taken before the crowd that lies over it
        ([(UNIT, 0.9, 1)], [(UNIT, 1, True), ((0, 0, 10, 8.7), 1, False)], 0.8),
    ],
)
def test_cases_by_hand(found: Found, true: True_, expected: float) -> None:
    assert averages((found, true)).mean() == pytest.approx(expected)


def test_an_overlap_counts_for_the_thresholds_that_it_reaches() -> None:
    """Of 10 x 10 and 10 x 7 the overlap is 0.7: right at 0.5, 0.55, ... 0.7."""
    (row,) = averages(([((0, 0, 10, 7), 0.9, 1)], [(UNIT, 1, False)]))
    assert row.tolist() == [1.0] * 5 + [0.0] * 5


def test_classes_without_boxes_are_left_out_and_pictures_are_ordered_together() -> None:
    pictures = (
        ([(UNIT, 0.3, 1), (UNIT, 0.9, 7)], [(UNIT, 1, False)]),
        ([(FAR, 0.6, 1)], [(UNIT, 1, True), (UNIT, 3, False)]),
    )
    found = averages(*pictures)
    assert found.shape == (2, 10)
    assert found.mean(axis=1) == pytest.approx([0.5, 0.0])
    assert averages(([(UNIT, 1.0, 1)], [])).shape == (0, 10)


def test_a_hundred_detections_of_a_class_count_in_a_picture() -> None:
    wrong = [(FAR, 0.9, 1)] * 100
    assert averages(([*wrong[:99], (UNIT, 0.5, 1)], [(UNIT, 1, False)])).mean() == pytest.approx(0.01)
    assert averages(([*wrong, (UNIT, 0.5, 1)], [(UNIT, 1, False)])).mean() == 0.0


def test_overlaps_of_crowds_are_those_of_the_detection_alone() -> None:
    boxes, others = np.array([UNIT, (0, 0, 0, 5)], float), np.array([(0, 0, 20, 20), (5, 0, 15, 10)], float)
    assert overlaps(boxes, others, np.array([False, False])) == pytest.approx(np.array([[0.25, 1 / 3], [0, 0]]))
    assert overlaps(boxes, others, np.array([True, False])) == pytest.approx(np.array([[1.0, 1 / 3], [0, 0]]))


def by_definition(pictures: Sequence[tuple[Found, True_]], label: int, least: float) -> float | None:
    """Average precision of one class: one detection after the other, precision at each recall from all that follow."""
    entries = sorted(
        (-score, number, place)
        for number, (found, _) in enumerate(pictures)
        for place, (_, score, each) in enumerate(found)
        if each == label
    )
    single = sum(c == label and not crowd for _, true in pictures for _, c, crowd in true)
    if not single:
        return None
    used, points, hits, misses = set[tuple[int, int]](), [], 0, 0
    for _, number, place in entries:
        box, true = pictures[number][0][place][0], pictures[number][1]
        shared = [_shared(box, other, crowd) if c == label else -1.0 for other, c, crowd in true]
        best = max(
            (k for k, (_, _, crowd) in enumerate(true) if not crowd and (number, k) not in used and shared[k] >= least),
            key=lambda k: (shared[k], k),
            default=None,
        )
        if best is not None:
            used.add((number, best))
            hits += 1
        elif any(crowd and shared[k] >= least for k, (_, _, crowd) in enumerate(true)):
            continue
        else:
            misses += 1
        points.append((hits / single, hits / (hits + misses)))
    recalls = [step / 100 for step in range(101)]
    return sum(max((p for r, p in points if r >= wanted - 1e-12), default=0.0) for wanted in recalls) / len(recalls)


def _shared(box: Box, other: Box, crowd: bool) -> float:
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    common = max(width, 0) * max(height, 0)
    area = (box[2] - box[0]) * (box[3] - box[1])
    union = area if crowd else area + (other[2] - other[0]) * (other[3] - other[1]) - common
    return common / union if union > 0 else 0.0


CORNER = st.integers(0, 6)
BOXES = st.tuples(CORNER, CORNER, st.integers(1, 6), st.integers(1, 6)).map(
    lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3])
)
FOUND = st.lists(st.tuples(BOXES, st.integers(0, 9_999), st.integers(1, 2)), max_size=8)
TRUE = st.lists(st.tuples(BOXES, st.integers(1, 2), st.sampled_from([False, False, True])), max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(FOUND, TRUE), min_size=1, max_size=4))
def test_the_second_implementation_agrees(pictures: list[tuple[Found, True_]]) -> None:
    expected = [[by_definition(pictures, label, least) for least in OVERLAPS.round(2)] for label in (1, 2)]
    wanted = [row for row in expected if row[0] is not None]
    assert averages(*pictures) == pytest.approx(np.array(wanted, float).reshape(-1, 10), abs=1e-9)
