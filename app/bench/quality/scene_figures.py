"""The figures of a row of the scenes, besides those of mask_quality.py.

islands, holes  connected parts by their edges of the mask at 0.5 without one pixel of the true person, and of what is
                left of it without one of the true background: how many a frame, and how many pixels, scaled to a frame
                of 640x480. Those count that have LEAST_PIXELS or more and touch nothing that is not judged; one counts
                with MOST_PIXELS at most, since a false person in an empty room is no speck, and would drown them all
outline length  of all the row's outlines against the true ones
far error       sum of |mask - matte| further than scene_frames.FAR pixels from the true outline, by all pixels
color error    mean difference, in levels of 255, of what is drawn before a plain new background and what should be,
                within BAND pixels of the true outline, for a dark and a bright background
thing error     mean |mask - matte| over the pixels of what is held or worn; 0 where nothing is
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from ...picture.preprocess import Floats
from .mask_quality import THRESHOLD, MaskScorer, outline
from .scene_frames import PIXELS, SceneFrame

__all__ = ["LEAST_PIXELS", "LEVELS", "MOST_PIXELS", "SceneFigures", "SceneScorer", "color_error", "stray_parts"]

LEAST_PIXELS, MOST_PIXELS = 6, 300  # at 640x480
LEVELS = (30, 225)  # of the new backgrounds

_Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SceneFigures:
    """The figures of a row, by frame; errors are from 0 to 1, but for colors."""

    f_score: float
    matte_error: float
    edge_error: float
    flicker: float
    lag_frames: float
    islands: float
    island_pixels: float
    holes: float
    hole_pixels: float
    outline_length: float
    far_error: float
    color_error: float
    thing_error: float = 0.0


class SceneScorer:
    """Compares masks and pictures with the truth, frame after frame of one row."""

    def __init__(self) -> None:
        self._masks = MaskScorer()
        self._sums = np.zeros(6)  # islands, their pixels, holes, their pixels, error far away, color error
        self._things = np.zeros(2)  # errors over pixels of things, and those pixels
        self._lengths = np.zeros(2)  # of outlines, and of true ones

    def add(self, mask: Floats, drawn: Mapping[int, npt.NDArray[np.uint8]], frame: SceneFrame) -> None:
        """The mask (h, w) of the next frame, and what is drawn before backgrounds by their levels, RGBA (h, w, 4)."""
        truth = frame.truth
        self._masks.add(mask, truth)
        person, true = mask >= THRESHOLD, truth.matte >= THRESHOLD
        error = np.abs(truth.only_judged(mask - truth.matte))
        self._sums += (
            *stray_parts(person, true, truth.ignored),
            *stray_parts(~person, ~true, truth.ignored),
            float(error[frame.far].sum()) / truth.judged_pixels,
            float(np.mean([color_error(picture, level, frame) for level, picture in drawn.items()])),
        )
        if frame.things is not None:
            things = truth.only_judged(frame.things)
            self._things += float((error * things).sum()), float(things.sum())
        self._lengths += int(truth.only_judged(outline(mask)).sum()), int(truth.outline.sum())

    def figures(self) -> SceneFigures:
        """Of the frames so far. Raises ValueError before there are two."""
        quality = self._masks.quality()
        sums = (self._sums / quality.frames).tolist()
        length = float(self._lengths[0] / max(self._lengths[1], 1))
        islands, island_pixels, holes, hole_pixels, far, color = sums
        return SceneFigures(
            quality.f_score, quality.matte_error, quality.edge_error, quality.flicker, quality.lag_frames,
            islands, island_pixels, holes, hole_pixels, length, far, color,
            float(self._things[0] / max(self._things[1], 1.0)),
        )  # fmt: skip


def stray_parts(found: _Bools, true: _Bools, ignored: _Bools | None) -> tuple[int, float]:
    """How many connected parts of `found` (h, w) have no pixel in `true`, and their pixels at 640x480.

    Parts with fewer pixels than LEAST_PIXELS and those that touch what is ignored do not count.
    """
    _, labels, stats, _ = cv2.connectedComponentsWithStats(found.astype(np.uint8), connectivity=4)
    areas = stats[:, cv2.CC_STAT_AREA] * (PIXELS / found.size)
    stray = areas >= LEAST_PIXELS
    stray[0] = False
    stray[labels[true]] = False
    if ignored is not None:
        stray[labels[ignored]] = False
    return int(stray.sum()), float(np.minimum(areas[stray], MOST_PIXELS).sum())


def color_error(drawn: npt.NDArray[np.uint8], level: int, frame: SceneFrame) -> float:
    """The mean difference in levels within the band of the true outline; 0 where there is none."""
    band, light, matte = frame.at_outline
    if not len(band):
        return 0.0
    wanted = light + level * (1 - matte)
    return float(np.abs(drawn.reshape(-1, 4)[band, :3] - wanted).mean())


def mean_figures(rows: Sequence[SceneFigures]) -> SceneFigures:
    """The means over rows, each of which counts the same."""
    return SceneFigures(*np.mean([list(vars(row).values()) for row in rows], axis=0).tolist())
