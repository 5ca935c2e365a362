"""Boxes by anchors and their suppression, against MediaPipe's calculators and by what must hold of any numbers."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app.models.decoders.anchors import grid_anchors, strides_of
from texelflow.app.models.decoders.decoding import AnchorForm
from texelflow.app.models.decoders.suppression import (
    detections_by_anchors,
    joined_detections,
    overlap_with,
    spread_detections,
)

Floats = npt.NDArray[np.float32]
CASES = {  # input size, strides, columns, seed
    "faces": (64, (8, 16, 16, 16), 16, 1),
    "palms": (96, (8, 16, 16, 16), 18, 2),
    "bodies": (96, (8, 16, 32, 32, 32), 12, 3),
    "far": (40, (4,), 16, 4),
    "odd": (50, (16, 32, 32, 32), 16, 5),
}
# What MediaPipe 0.10.21's TensorsToDetections and NonMaxSuppression calculators (Apache-2.0) made of these numbers, in
# a graph with SsdAnchors and a network of constants: rows of score, box and points, the best 12.
MEDIAPIPE = json.loads((Path(__file__).parents[3] / "data" / "mediapipe_detections.json").read_text())


def raw_numbers(size: int, strides: tuple[int, ...], columns: int, seed: int) -> tuple[Floats, Floats]:
    """Raw boxes (N, C) and scores (N,) such as a network puts out: some of them near one another."""
    rng, count = np.random.default_rng(seed), len(grid_anchors((size, size), strides))
    boxes = rng.normal(0, size / 4, (count, columns)).astype(np.float32)
    boxes[:, 2:4] = rng.uniform(-size / 8, size, (count, 2))
    return boxes, rng.normal(-1, 1.5, count).astype(np.float32)


def form_of(size: int, strides: tuple[int, ...], columns: int, most: int = 100) -> AnchorForm:
    return AnchorForm(grid_anchors((size, size), strides), (0,), (1,), (float(size),) * 2, columns, most=most)


@pytest.mark.parametrize("name", CASES)
def test_detections_are_those_of_mediapipe(name: str) -> None:
    size, strides, columns, seed = CASES[name]
    boxes, scores = raw_numbers(size, strides, columns, seed)
    found = detections_by_anchors(form_of(size, strides, columns), [boxes[None], scores[None, :, None]])
    expected = np.array(MEDIAPIPE[name], np.float32)
    assert len(expected) > 8
    np.testing.assert_allclose(found[: len(expected)], expected, atol=2e-6, rtol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(12)), st.integers(0, 3))
def test_the_order_of_rows_does_not_matter(order: list[int], seed: int) -> None:
    rows = some_rows(12, seed)
    np.testing.assert_allclose(joined_detections(rows[order], 0.3, 8), joined_detections(rows, 0.3, 8), atol=1e-5)
    np.testing.assert_array_equal(
        rows[order][spread_detections(rows[order], 0.3, 8)], rows[spread_detections(rows, 0.3, 8)]
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 32), st.floats(0.05, 0.9), st.integers(1, 20))
def test_what_is_left_is_apart_and_best_first(seed: int, least: float, most: int) -> None:
    rows = some_rows(40, seed)
    kept = rows[spread_detections(rows, least, most)]
    assert 1 <= len(kept) <= most
    assert (np.diff(kept[:, 0]) <= 0).all()
    for number, row in enumerate(kept):
        assert (overlap_with(row[1:5], kept[number + 1 :, 1:5]) <= np.float32(least)).all()
    joined = joined_detections(rows, least, most)
    assert joined[0, 0] == rows[:, 0].max()
    assert (np.diff(joined[:, 0]) <= 0).all()
    assert {*joined[:, 0].tolist()} <= {*rows[:, 0].tolist()}
    assert (joined[:, 1:].min(0) >= rows[:, 1:].min(0) - 1e-5).all()
    assert (joined[:, 1:].max(0) <= rows[:, 1:].max(0) + 1e-5).all()


def test_classes_do_not_suppress_one_another() -> None:
    rows = np.array([[0.9, 0.5, 0.5, 0.2, 0.2], [0.8, 0.5, 0.5, 0.2, 0.2], [0.7, 0.5, 0.5, 0.2, 0.2]], np.float32)
    assert spread_detections(rows, 0.5, 9).tolist() == [0]
    assert spread_detections(rows, 0.5, 9, np.array([1, 2, 1])).tolist() == [0, 1]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 3e38])
def test_numbers_that_are_none_are_no_detections(wrong: float) -> None:
    size, strides, columns, seed = CASES["faces"]
    boxes, scores = raw_numbers(size, strides, columns, seed)
    form, best = form_of(size, strides, columns), int(scores.argmax())
    damaged = scores.copy()
    damaged[best] = -100
    expected = detections_by_anchors(form, [boxes, damaged])
    boxes[best, 3] = boxes[best, 7] = wrong
    if np.isfinite(wrong):
        boxes[best, 3] = -wrong
    np.testing.assert_array_equal(detections_by_anchors(form, [boxes, scores]), expected)
    assert not len(detections_by_anchors(form, [boxes, np.full_like(scores, np.nan)]))
    assert detections_by_anchors(form, [np.full_like(boxes, wrong), scores]).shape == (0, 1 + columns)


def test_strides_are_those_that_give_so_many_anchors() -> None:
    known = {(128, 896): 4, (192, 2304): 1, (256, 896): 4, (192, 2016): 4, (224, 2254): 5, (256, 2944): 5}
    for (size, count), entries in known.items():
        strides = strides_of((size, size), count)
        assert strides is not None
        assert len(strides) == entries
        anchors = grid_anchors((size, size), strides)
        assert anchors.shape == (count, 4)
        assert ((anchors[:, :2] > 0) & (anchors[:, :2] < 1)).all()
    assert strides_of((128, 128), 897) is None


def some_rows(count: int, seed: int) -> Floats:
    """Detections with scores of their own, many of which overlap."""
    rng = np.random.default_rng(seed)
    scores = rng.permutation(np.linspace(0.1, 0.99, count))
    values = np.concatenate([rng.uniform(0.2, 0.8, (count, 2)), rng.uniform(0.1, 0.5, (count, 2))], axis=1)
    return np.asarray(np.concatenate([scores[:, None], values, rng.uniform(0, 1, (count, 4))], axis=1), np.float32)
