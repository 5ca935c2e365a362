"""Figures of classifiers and of masks, by hand."""

import numpy as np
import pytest

from texelflow.app.verbs.evaluation.accuracy import VOID, Confusion, TopK


@pytest.mark.parametrize(
    ("scores", "label", "first", "first_five"),
    [
        ([0.1, 0.7, 0.2], 1, 1, 1),
        ([0.1, 0.7, 0.2], 0, 0, 1),
        ([6, 5, 4, 3, 2, 1], 4, 0, 1),
        ([6, 5, 4, 3, 2, 1], 5, 0, 0),
        ([1, 1, 1], 0, 1, 1),
        ([1, 1, 1], 1, 0, 1),
        ([2, float("nan"), 1], 1, 0, 0),
    ],
)
def test_a_class_is_among_the_first(scores: list[float], label: int, first: int, first_five: int) -> None:
    top = TopK()
    top.add(np.array(scores, float), label)
    assert (top.first, top.first_five, top.pictures) == (first, first_five, 1)


def test_mean_iou_is_over_all_pictures_and_the_classes_that_are_there() -> None:
    confusion = Confusion(4)
    confusion.add(np.array([[0, 0, 1]]), np.array([[0, 1, 1]]))
    confusion.add(np.array([[1, 2]]), np.array([[1, VOID]]))
    assert confusion.mean_iou() == pytest.approx((1 / 2 + 2 / 3) / 2)
    confusion.add(np.array([[3]]), np.array([[0]]))
    assert confusion.mean_iou() == pytest.approx((1 / 3 + 2 / 3 + 0) / 3)
    assert Confusion(2).mean_iou() is None
