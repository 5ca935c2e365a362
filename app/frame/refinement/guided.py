"""Fits a mask to the edges of the picture, with a fast guided filter: the mask as a function of color, by cells.

It is the fast guided filter (He and Sun, "Fast Guided Filter", arXiv 1505.00996) with a color guide, whose pixels
count by how sure the network is of them (as in Liba and others, "Sky Optimization", CVPR workshops 2020): an edge of
the mask that is a little off is then drawn to the edge of the colors, since what is around it decides. The definition,
which tests/app/frame/refinement/test_refine.py has in NumPy:

    cells   of 2 x 2 pixels of the network's grid: the mean mask p, and the frame's color c at the center, bilinear
    steady  with b the c of the frame before: c = b + w (c - b), w = least + (1 - least) smoothstep(0.06, 0.18, |c - b|)
            and least as in temporal.py, so that a camera's noise does not make edges flicker
    mean    for each 2 x 2 cells: their mean color g, and the neighborhood mean k of the p of the 6 x 6 cells around
            them, which is certain only at some distance from the mask's edges, where networks err
    rare    of means that are certainly background, k < 0.2: r = 0.035 / (0.035 + sum(w (1 - k))) over the others of
            5 x 5 means in steps of 6 cells, w = (2 k - 1)^4 exp(-|g - g'|^2 / (2 * 0.04^2)): near 1 where no other one
            has its color
    vote    bilateral: of the same 5 x 5 means, w = (2 k - 1)^4, u = w exp(-|g - c|^2 / (2 * 0.04^2)), with the trust
            t = 1 - smoothstep(0.005, 0.02, sum(w r) / (sum(w where k < 0.5) + 0.02)), o = 0.3 + t (0.001 - 0.3) and
            n = 0.015 t sum(w max(2 k - 1, 0)): v = (sum(u k) + n + o p) / (sum(u) + n + o), and with the k that
            the cell is in d = 1 - smoothstep(0.7, 0.95, |2 k - 1|): p += d (2 v - 1)^2 (v - p). A cell near an
            edge takes the mask of similar colors, or keeps its own where those disagree. Where the background repeats
            itself, little evidence is enough, and a cell whose color is similar to none becomes person, by n, where a
            person is near: collars, hats, objects in the hand. Elsewhere the background has rare colors too
    guided  fit over the 13 cells at most two steps away, with means weighted by (2 p - 1)^2 + 0.3:
            a = (cov(c, c) + 0.001 I + 0.0025 J)^-1 cov(c, p), b = mean(p) - a . mean(c), all of J being 1: brightness
            differs by folds and shadows too, and has to differ more
    steep   by 2 around 0.5, for linear fits come out flat: a' = 2 a, b' = 2 b - 0.5
    again   with p = a' . c + b', clamped to 0..1, for a' and b' the means of the 3 x 3 cells around: what one fit could
            not decide the next one does, with neighbors that it has decided

Beyond its edges the grid repeats: the mask its last pixels to fill the last cells, then all the outermost cells.

Each pixel of the frame takes a' and b' interpolated between cells, which is one small texture instead of a second
picture of the frame's size. Its mask is a' . color + b', clamped to 0..1, and then softened, so that noise shows less
and edges are as soft as in pictures (mask_over.glsl):

    soft    the mean of five: for the pixel's color, and for what that would be if it were as bright as each of the
            four pixels across its corners. Only luma differs: most formats have one chroma for several pixels

Coefficients are interpolated by the device's own filter, since nothing on the CPU has to agree; hardware does that in
256 steps between two cells, software exactly. Where all masks of a window agree a is 0, so that no texture of the
picture shows.
"""

from ...picture.preprocess import Fit, ImageSize, SampledAxis, Sampling, sampling
from ..textures.picture_device import FRAME_SAMPLERS, FramePlanes, PictureDevice, ShaderDrawing, Target
from ..textures.resample import axis_defines
from .temporal import CELL

_UNIT, _BEFORE_UNIT = 3, 4  # what is read in turn, beside the frame's planes
_KNOWN_UNIT = _FITS_UNIT = _BEFORE_UNIT


class GuidedFilter:
    """Fits masks of one size to frames of one format."""

    def __init__(self, pictures: PictureDevice, frame: FramePlanes, grid: ImageSize, fit: Fit) -> None:
        """`grid` is the network's. Raises DeviceError if the shaders do not compile."""
        self._pictures, self._frame = pictures, frame
        self._calls = pictures.calls()
        pixels = sampling(frame.format.upright_size, grid, fit)
        cells = Sampling(_centers(pixels.x), _centers(pixels.y))
        size = cells.x.count, cells.y.count
        defines = {**axis_defines(cells), **frame.defines(), "CELL": CELL}
        self._shrink = pictures.drawing(
            "refine_shrink.frag",
            defines,
            {**FRAME_SAMPLERS, "steady": _UNIT, "before": _BEFORE_UNIT},
            "refine shrink",
        )
        samplers = {"cells": _UNIT, "means": _UNIT, "known": _KNOWN_UNIT, "fits": _FITS_UNIT}
        self._mean, self._rare, self._bilateral, self._guided, self._apply = (
            pictures.drawing(f"refine_{step}.frag", {}, samplers, f"refine {step}")
            for step in ("mean", "rare", "bilateral", "guided", "apply")
        )
        self._cells, self._before, self._voted, self._applied = (pictures.target(size, "floats") for _ in range(4))
        half = -(-size[0] // 2), -(-size[1] // 2)
        self._means, self._known = (pictures.target(half, "floats") for _ in range(2))

    def run(self, mask: Target, age: int, least: float) -> Target:
        """The coefficients (a', b') of a mask in alpha for the frame of that age, their top row first.

        With least 1 the colors of the frame before are forgotten.
        """
        self._cells, self._before = self._before, self._cells
        depends_on = self._cells.texture, mask.texture, self._frame.textures_of(age), least
        self._calls.run(depends_on, lambda: self._steps(mask, age, least))
        return self._before

    def _steps(self, mask: Target, age: int, least: float) -> None:
        self._frame.bind(age=age)
        self._bind(_BEFORE_UNIT, self._before)
        self._shrink.use()
        self._shrink.set_floats("least", least)
        self._step(self._shrink, mask, self._cells)
        self._step(self._mean, self._cells, self._means)
        self._step(self._rare, self._means, self._known)
        self._bind(_KNOWN_UNIT, self._known)
        self._step(self._bilateral, self._cells, self._voted)
        self._step(self._guided, self._voted, self._before)
        self._bind(_FITS_UNIT, self._before)
        self._step(self._apply, self._voted, self._applied)
        self._step(self._guided, self._applied, self._before)

    def _step(self, drawing: ShaderDrawing, source: Target, target: Target) -> None:
        self._bind(_UNIT, source)
        drawing.use()
        drawing.draw(target, target.size)

    def _bind(self, unit: int, source: Target) -> None:
        self._pictures.bind(unit, source.texture)

    def release(self) -> None:
        """Delete shaders and cells; frames and masks stay."""
        for drawing in (self._shrink, self._mean, self._rare, self._bilateral, self._guided, self._apply):
            drawing.release()
        for target in (self._cells, self._before, self._voted, self._applied, self._means, self._known):
            target.release()


def _centers(pixels: SampledAxis) -> SampledAxis:
    """Where the centers of cells lie in the frame, from where the network's pixels lie in it."""
    count, step = -(-pixels.count // CELL), 2 * CELL * pixels.step
    return SampledAxis(count, pixels.extent, step, (CELL - 1) * pixels.step + 2 * pixels.start, 2 * pixels.den)
