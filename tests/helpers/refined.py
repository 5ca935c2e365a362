"""Refines masks in NumPy, by the docstrings of temporal.py, guided.py and refine.py.

Double precision, and as plainly as can be; tests/app/frame/refinement/test_refine.py compares this machine's OpenGL
with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from texelflow.app.frame.refinement.refine import Refinement
from texelflow.app.picture.preprocess import Fit, ImageSize

Doubles = npt.NDArray[np.float64]

CELL = 2
DIAMOND = [(x, y) for y in range(-2, 3) for x in range(-2, 3) if abs(x) + abs(y) <= 2]
CORNERS = [(-1, -1), (1, -1), (-1, 1), (1, 1)]
BT601, BT709 = np.array([0.299, 0.587, 0.114]), np.array([0.2126, 0.7152, 0.0722])
BLOCK = [(3 * x, 3 * y) for y in range(-2, 3) for x in range(-2, 3)]


def sureness(values: Doubles) -> Doubles:
    return np.asarray(np.abs(2 * values - 1))


def smooth(low: float, high: float, values: Doubles) -> Doubles:
    """GLSL's smoothstep."""
    part = np.clip((values - low) / (high - low), 0, 1)
    return np.asarray(part * part * (3 - 2 * part))


def blended(new: Doubles, steady: Doubles, least: float) -> Doubles:
    """The steady mask after a new one."""
    change = np.abs(new - steady)
    clear = neighbors((sureness(new) * smooth(0.3, 0.6, change))[..., None], [(3 * x, 3 * y) for x, y in CORNERS])
    moved = np.maximum(sureness(new) * smooth(0.1, 0.4, change), clear.max(0)[..., 0] * (change > 0.004))
    weight = least + (1 - least) * moved
    return np.asarray(steady + weight * (new - steady))


def in_hindsight(steady: Doubles, later: Doubles, least: float, passed: float) -> Doubles:
    """The steady mask of a frame, with what a later one tells."""
    doubt = 1 - sureness(steady) ** 2
    share = sureness(later) ** 2 / (sureness(later) ** 2 + sureness(steady) ** 2 + 0.001)
    return np.asarray(steady + np.maximum(passed, doubt * share * (1 - least)) * (later - steady))


def scales(frame: ImageSize, grid: ImageSize, fit: Fit) -> tuple[Doubles, Doubles]:
    """How many pixels of the frame a pixel of the grid is wide and high, and where the grid begins."""
    ratio = np.array(frame) / np.array(grid)
    scale = {"stretch": ratio, "crop": np.full(2, ratio.min()), "letterbox": np.full(2, ratio.max())}[fit]
    return scale, (np.array(frame) - np.array(grid) * scale) / 2


def bilinear(image: Doubles, xs: Doubles, ys: Doubles) -> Doubles:
    """An image (H, W, C) at columns xs and rows ys, counted from the center of the first pixel; its edges repeat."""
    height, width = image.shape[:2]
    x, y = np.floor(xs).astype(int), np.floor(ys).astype(int)
    right, below = (xs - x)[None, :, None], (ys - y)[:, None, None]

    def at(rows: npt.NDArray[np.int_], columns: npt.NDArray[np.int_]) -> Doubles:
        return image[np.clip(rows, 0, height - 1)][:, np.clip(columns, 0, width - 1)]

    top = at(y, x) * (1 - right) + at(y, x + 1) * right
    bottom = at(y + 1, x) * (1 - right) + at(y + 1, x + 1) * right
    return np.asarray(top * (1 - below) + bottom * below)


def mean_masks(mask: Doubles) -> Doubles:
    """The means (h, w) of cells of a mask (H, W) whose last pixels fill the last cells."""
    rows, columns = (-(-side // CELL) for side in mask.shape)
    full = np.pad(mask, ((0, rows * CELL - mask.shape[0]), (0, columns * CELL - mask.shape[1])), "edge")
    return np.asarray(full.reshape(rows, CELL, columns, CELL).mean((1, 3)))


def colors_at_cells(rgb: Doubles, grid: ImageSize, fit: Fit) -> Doubles:
    """The colors (h, w, 3) of a frame (H, W, 3) at the centers of cells of a grid."""
    scale, offset = scales((rgb.shape[1], rgb.shape[0]), grid, fit)
    counts = [-(-side // CELL) for side in grid]
    xs, ys = ((np.arange(n) + 0.5) * CELL * s + o - 0.5 for n, s, o in zip(counts, scale, offset, strict=True))
    return bilinear(rgb, xs, ys)


def calmed(colors: Doubles, before: Doubles, least: float) -> Doubles:
    """Colors (h, w, 3) with less noise than they came with."""
    weight = least + (1 - least) * smooth(0.06, 0.18, np.linalg.norm(colors - before, axis=-1))
    return np.asarray(before + weight[..., None] * (colors - before))


def neighbors(cells: Doubles, steps: Sequence[tuple[int, int]]) -> Doubles:
    """The cells (n, h, w, C) so many columns and rows away from each of (h, w, C)."""
    rows, columns, _ = cells.shape
    y, x = np.arange(rows), np.arange(columns)
    places = [(np.clip(y + dy, 0, rows - 1), np.clip(x + dx, 0, columns - 1)) for dx, dy in steps]
    return np.stack([cells[there_y][:, there_x] for there_y, there_x in places])


def known(colors: Doubles, masks: Doubles) -> tuple[Doubles, Doubles]:
    """What is known (h', w', 3) and (h', w') in steps of two cells: their mean colors, the mean masks around them."""
    steps = [(x, y) for y in range(-2, 4) for x in range(-2, 4)]
    near = [(x, y) for y in range(2) for x in range(2)]
    around = neighbors(masks[..., None], steps).mean(0)[::2, ::2, 0]
    return np.asarray(neighbors(colors, near).mean(0)[::2, ::2]), np.asarray(around)


def weights(means: Doubles, colors: Doubles) -> tuple[Doubles, Doubles]:
    """How much means (..., 4) are known, and how much by those who look for these colors (..., 3)."""
    sure = (2 * means[..., 3] - 1) ** 4
    return sure, np.asarray(sure * np.exp(-np.square(means[..., :3] - colors).sum(-1) / (2 * 0.04**2)))


def rarity(mean_colors: Doubles, mean_masks: Doubles) -> Doubles:
    """How rare the colors of known background are (h', w'), which themselves do not count."""
    windows = neighbors(np.dstack([mean_colors, mean_masks]), [step for step in BLOCK if any(step)])
    _, alike = weights(windows, mean_colors)
    rare = 0.035 / (0.035 + (alike * (1 - windows[..., 3])).sum(0))
    return np.asarray(np.where(mean_masks < 0.2, np.floor(1023 * rare) / 1023, 0))


def voted(colors: Doubles, masks: Doubles) -> Doubles:
    """The masks (h, w) on which what is known of like colors has voted."""
    rows, columns = masks.shape
    mean_colors, mean_masks = known(colors, masks)
    windows = neighbors(np.dstack([mean_colors, mean_masks, rarity(mean_colors, mean_masks)]), BLOCK)
    windows = windows.repeat(2, 1).repeat(2, 2)[:, :rows, :columns]
    around = mean_masks.repeat(2, 0).repeat(2, 1)[:rows, :columns]
    masks_there = windows[..., 3]
    sure, alike = weights(windows[..., :4], colors)
    rare = (sure * windows[..., 4]).sum(0) / ((sure * (masks_there < 0.5)).sum(0) + 0.02)
    trust = 1 - smooth(0.005, 0.02, rare)
    novel = 0.015 * trust * (sure * np.maximum(2 * masks_there - 1, 0)).sum(0)
    own = 0.3 + trust * (0.001 - 0.3)
    votes = ((alike * masks_there).sum(0) + novel + own * masks) / (alike.sum(0) + novel + own)
    doubt = 1 - smooth(0.7, 0.95, sureness(around))
    return np.asarray(masks + doubt * sureness(votes) ** 2 * (votes - masks))


def fitted(colors: Doubles, masks: Doubles) -> Doubles:
    """The coefficients (h, w, 4) of cells with these colors (h, w, 3) and masks (h, w)."""
    first = guided(colors, voted(colors, masks))
    around = neighbors(first, [(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1)]).mean(0)
    return guided(colors, np.clip((around[..., :3] * colors).sum(-1) + around[..., 3], 0, 1))


def guided(colors: Doubles, masks: Doubles) -> Doubles:
    """The coefficients of one fit."""
    rows, columns = masks.shape
    windows = neighbors(np.dstack([colors, masks]), DIAMOND)
    return np.array([[regression(windows[:, y, x]) for x in range(columns)] for y in range(rows)])


def regression(window: Doubles) -> Doubles:
    """(a', b') of cells (13, 4): red, green, blue, mask."""
    colors, masks = window[:, :3], window[:, 3]
    weights = (2 * masks - 1) ** 2 + 0.3
    weights /= weights.sum()
    color, mask = weights @ colors, weights @ masks
    apart = colors - color
    covariance = (weights[:, None] * apart).T @ apart + 0.001 * np.eye(3) + 0.0025
    slope = np.linalg.solve(covariance, (weights * (masks - mask)) @ apart)
    return np.append(2 * slope, 2 * (mask - slope @ color) - 0.5)


def over_frame(
    coefficients: Doubles, cell: int, rgb: Doubles, grid: ImageSize, fit: Fit, luma: Doubles = BT601
) -> Doubles:
    """The mask (h, w) of a frame from coefficients for cells of so many pixels of the grid."""
    frame = (rgb.shape[1], rgb.shape[0])
    scale, offset = scales(frame, grid, fit)
    places = [(np.arange(n) + 0.5 - o) / s for n, s, o in zip(frame, scale, offset, strict=True)]
    here = bilinear(coefficients, *(place / cell - 0.5 for place in places))
    told, bright = (here[..., :3] * rgb).sum(-1) + here[..., 3], rgb @ luma
    brighter = neighbors(bright[..., None], CORNERS)[..., 0] - bright
    mask = np.clip([told, *(told + here[..., :3].sum(-1) * brighter)], 0, 1).mean(0)
    seen = [(place > -1e-9) & (place < side + 1e-9) for place, side in zip(places, grid, strict=True)]
    return np.asarray(mask * (seen[1][:, None] & seen[0]))


@dataclass(frozen=True)
class Shown:
    """What is shown: which frame, and its mask (h, w)."""

    frame: int
    mask: Doubles


class Defined:
    """A refiner, by its definition."""

    def __init__(self, fit: Fit, refinement: Refinement) -> None:
        self.fit, self.refinement = fit, refinement
        self.frames: list[Doubles] = []
        self.steady: Doubles | None = None
        self.steady_frame = 0
        self.coefficients: Doubles = np.zeros(0)
        self.colors: Doubles | None = None

    def run(self, rgb: Doubles, mask: Doubles, fresh: bool = True) -> Shown:
        """The next frame (h, w, 3) from 0 to 1 with its mask (H, W), which counts if it is fresh."""
        self.frames.append(rgb)
        now = len(self.frames) - 1
        shown = max(now - self.refinement.delay, 0)
        result = self._mask_of(shown, now, mask, fresh or self.steady is None)
        if result is not None:
            self.coefficients = self._coefficients(result, self.frames[shown])
        cell, grid = (CELL if self.refinement.edges else 1), (mask.shape[1], mask.shape[0])
        return Shown(shown, over_frame(self.coefficients, cell, self.frames[shown], grid, self.fit))

    def _mask_of(self, shown: int, now: int, mask: Doubles, fresh: bool) -> Doubles | None:
        before, frame, least = self.steady, self.steady_frame, self.refinement.least
        if fresh:
            self.steady = mask if before is None else blended(mask, before, least)
            self.steady_frame = now
        if shown == now:
            return self.steady if fresh else None
        if not fresh:
            return before if frame == shown else None
        assert before is not None
        return in_hindsight(before, mask, least, (shown - frame) / (now - frame))

    def _coefficients(self, mask: Doubles, rgb: Doubles) -> Doubles:
        if not self.refinement.edges:
            return np.dstack([np.zeros((*mask.shape, 3)), mask])
        colors = colors_at_cells(rgb, (mask.shape[1], mask.shape[0]), self.fit)
        self.colors = colors if self.colors is None else calmed(colors, self.colors, self.refinement.least)
        return fitted(self.colors, mean_masks(mask))
