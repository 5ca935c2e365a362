"""Rows of boxes: which of those that a network itself has chosen are things."""

import numpy as np

from texelflow.app.models.decoders.box_rows import LEAST_SCORE, chosen_boxes


def test_the_best_come_first_and_are_no_more_than_can_be_drawn() -> None:
    rows = np.tile(np.array([0.9, 0.5, 0.5, 0.1, 0.1], np.float32), (100_000, 1))
    rows[70_000, 0] = 1
    kept = chosen_boxes(rows)
    assert kept[0] == 70_000
    assert len(kept) == 64


def test_what_is_no_box_is_left_out() -> None:
    sound = (0.6, 0.5, 0.5, 0.1, 0.1)
    rows = [
        (LEAST_SCORE - 0.01, *sound[1:]), (np.nan, *sound[1:]), (0.9, np.inf, *sound[2:]), (0.9, 0.5, 0.5, 0, 0.1),
        (0.9, 0.5, 0.5, 0.1, -0.1), (0.9, 0.5, 0.5, 3e38, 0.1), sound,
    ]  # fmt: skip
    assert chosen_boxes(np.array(rows, np.float32)).tolist() == [6]
