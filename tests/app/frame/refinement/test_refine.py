"""Refined masks on this machine's real OpenGL, against their definition in NumPy; and what they are good for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.living import living
from tests.helpers.markers import exhaustive, on_both_apis, one_in
from tests.helpers.portable import assert_runs_with_opengl_3_3, assert_valid_glsl, needs_validator
from tests.helpers.refined import BT709, CELL, Defined, Doubles, fitted, mean_masks, over_frame
from texelflow.app.bench.quality.mask_quality import MaskScorer, Truth
from texelflow.app.frame.drawing.render import Compositor
from texelflow.app.frame.looks.effects import Effect
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.refinement.refine import Refinement, Refiner
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget, on_opengl
from texelflow.app.frame.textures.readback import ReadbackRing
from texelflow.app.frame.textures.resample import MaskLayout
from texelflow.app.frame.textures.upload import FrameTextures
from texelflow.app.picture.picture import Orientation, Picture, PictureFormat, rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, ImageSize, Preprocessor
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, open_context
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.glsl.shader import load

Floats = npt.NDArray[np.float32]
Image = npt.NDArray[np.uint8]

FRAME, GRID = (57, 41), (23, 17)
FITS: tuple[Fit, ...] = ("stretch", "crop", "letterbox")
BOTH = Refinement()
LEVEL = 1 / 255  # of what is drawn
PLANAR = PictureFormat((57, 41), "yuv", chroma_shift=(1, 1), matrix="bt709", full_range=False, siting="left")


def noise(size: ImageSize, seed: int) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 4), np.uint8)


def noise_mask(size: ImageSize, seed: int) -> Floats:
    """Much that is clear, and something of everything between."""
    return np.clip(np.random.default_rng(seed).normal(0.5, 0.5, size[::-1]), 0, 1).astype(np.float32)


def filmed(number: int) -> Image:
    """Frames of which some are much like those before, but for noise."""
    grain = np.random.default_rng(number).integers(0, 25, (FRAME[1], FRAME[0], 4), np.uint8)
    return np.asarray(noise(FRAME, number // 3) // 2 + grain, np.uint8)


def rgb_of(rgba: Image) -> Doubles:
    return np.asarray(rgba[..., :3] / 255)


class Bench:
    """What a segmenter hands on, a refiner, and what is drawn with it."""

    def __init__(
        self,
        context: Context,
        format: PictureFormat,
        layout: MaskLayout,
        fit: Fit = "stretch",
        refinement: Refinement = BOTH,
    ) -> None:
        self.context, self.layout = context, layout
        self.frame = FrameTextures(context, format, kept=2)
        size_bytes = layout.size[0] * layout.size[1] * 4 * (layout.stride * -(-layout.channels // layout.stride))
        self._buffer = context.mgl.buffer(reserve=size_bytes)
        self.mask = BufferRange(self._buffer.glo, 0, size_bytes)
        pictures = GlPictures(context)
        self.refiner = Refiner(pictures, self, fit, refinement)
        self._compositor = Compositor(pictures, self.frame, layout, fit, refiner=self.refiner)
        self._target = OffscreenTarget(context, format.upright_size)

    def put(self, picture: Picture, tensor: Floats) -> None:
        """A frame, and what the network makes of it (H, W) or (H, W, C)."""
        self.frame.upload(picture)
        values = tensor.reshape(*tensor.shape[:2], -1)
        channels, stride = values.shape[2], self.layout.stride
        padded = np.pad(values, ((0, 0), (0, 0), (0, -channels % stride)))
        slices = padded.reshape(*values.shape[:2], -1, stride).transpose(2, 0, 1, 3)
        self._buffer.write(np.ascontiguousarray(slices, np.float32).tobytes())

    def drawn(self, effect: Effect = "mask") -> Image:
        self._compositor.look = Look(effect)
        self._compositor.draw(self.mask, self._target)
        width, height = self._target.size
        ring = ReadbackRing[int](self.context, width * height * 4)
        ring.request_picture(0, self._target.framebuffer, self._target.size)
        ((_, data),) = ring.drain()
        ring.release()
        return data.reshape(height, width, 4)

    def run(self, rgba: Image, mask: Floats, fresh: bool = True) -> Doubles:
        """The mask of the frame that is shown."""
        self.put(rgba_picture(rgba), mask)
        self.refiner.run(fresh)
        return np.asarray(self.drawn()[..., 0] / 255)

    def release(self) -> None:
        self.refiner.release()
        self._compositor.release()
        self._target.release()
        self.frame.release()
        self._buffer.release()


def assert_close(context: Context, found: Doubles, expected: Doubles) -> None:
    """Software interpolates coefficients exactly, hardware in 256 steps: noise has much between two cells."""
    atol = 0.6 * LEVEL + (2e-4 if context.is_software else 0.03)
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


# The definition


@one_in(8, "fit", FITS)
@pytest.mark.parametrize("grid", [GRID, (16, 16), (1, 1), (5, 30)])
@pytest.mark.parametrize("size", [FRAME, (64, 48), (1, 1), (3, 90)])
def test_edges_equal_their_definition(context: Context, size: ImageSize, grid: ImageSize, fit: Fit) -> None:
    rgba, mask = noise(size, 1), noise_mask(grid, 2)
    bench = Bench(context, rgba_format(size), MaskLayout(grid, stride=1), fit)
    expected = Defined(fit, BOTH).run(rgb_of(rgba), mask.astype(np.float64)).mask
    assert_close(context, bench.run(rgba, mask), expected)
    bench.release()


FRESH = [True, True, False, True, False, False, True, False, True, True, True]


@pytest.mark.parametrize("fresh", [[True] * 6, FRESH], ids=["all", "some"])
@one_in(4, "refinement", [Refinement(e, s, d) for e in (True, False) for s in (0, 0.5, 1) for d in (0, 1)])
@on_both_apis
def test_every_frame_equals_its_definition(context: Context, refinement: Refinement, fresh: list[bool]) -> None:
    bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1), refinement=refinement)
    defined = Defined("stretch", refinement)
    for number, seen in enumerate(fresh):
        rgba, mask = filmed(number), noise_mask(GRID, 100 + number)
        found = bench.run(rgba, mask, seen)
        shown = defined.run(rgb_of(rgba), mask.astype(np.float64), seen)
        assert_close(context, found, shown.mask)
        assert bench.refiner.age == number - shown.frame
        assert np.array_equal(bench.drawn("none")[..., :3], filmed(shown.frame)[..., :3])
    bench.release()


@pytest.mark.parametrize("channel", [0, 5])
@one_in(3, "activation", ["none", "sigmoid", "softmax"])
@on_both_apis
def test_takes_the_mask_from_any_tensor(context: Context, activation: Any, channel: int) -> None:
    logits = np.random.default_rng(5).normal(0, 2, (GRID[1], GRID[0], 6)).astype(np.float32)
    powers = np.exp(logits.astype(np.float64))
    masks = {
        "none": np.clip(logits, 0, 1),
        "sigmoid": powers / (1 + powers),
        "softmax": powers / powers.sum(-1)[..., None],
    }
    layout = MaskLayout(GRID, channels=6, channel=channel, activation=activation)
    bench, rgba = Bench(context, rgba_format(FRAME), layout), noise(FRAME, 1)
    expected = Defined("stretch", BOTH).run(rgb_of(rgba), masks[activation][..., channel].astype(np.float64))
    assert_close(context, bench.run(rgba, logits), expected.mask)
    bench.release()


@pytest.mark.parametrize(
    "format",
    [
        PLANAR,
        replace(PLANAR, layout="nv12", siting="center"),
        replace(PLANAR, layout="yuyv", size=(56, 41), chroma_shift=(1, 0)),
        replace(PLANAR, layout="gray", chroma_shift=(0, 0)),
        replace(PLANAR, orientation=Orientation(True, False, True)),
    ],
    ids=lambda format: f"{format.layout} {format.orientation}",
)
def test_is_guided_by_frames_of_any_format(context: Context, format: PictureFormat) -> None:
    """Chroma in the middle of its range varies little, so that no color is clamped, and all are linear in samples."""
    rng = np.random.default_rng(3)
    planes = [rng.integers(90, 165, shape, np.uint8) for shape in format.plane_shapes]
    picture, mask = Picture(format, tuple(planes)), noise_mask((16, 12), 4)
    bench = Bench(context, format, MaskLayout((16, 12), stride=1))
    bench.put(picture, mask)
    bench.refiner.run()
    size = format.upright_size
    rgb, colors = (Preprocessor(format, s).image_to_tensor(picture)[0].astype(np.float64) for s in (size, (8, 6)))
    coefficients = fitted(colors, mean_masks(mask.astype(np.float64)))
    expected = over_frame(coefficients, CELL, rgb, (16, 12), "stretch", BT709)
    assert_close(context, bench.drawn()[..., 0] / 255, expected)
    bench.release()


def test_settings_take_effect_at_once(context: Context) -> None:
    """Also on frames that the network does not see, for which the last mask is fitted to the picture there is."""
    rgba, mask = noise(FRAME, 1), noise_mask(GRID, 2)
    bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1))
    both = bench.run(rgba, mask)
    bench.refiner.refinement = Refinement(edges=False)
    bare = bench.run(rgba, mask, fresh=False)
    expected = Preprocessor(rgba_format(FRAME), GRID).mask_to_frame(mask)
    assert_close(context, bare, expected.astype(np.float64))
    bench.refiner.refinement = BOTH
    assert np.array_equal(bench.run(rgba, mask, fresh=False), both)
    bench.release()


# What must not happen


def test_a_reset_forgets_everything(context: Context) -> None:
    for delay in (0, 1):
        bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1), refinement=Refinement(delay=delay))
        rgba, mask = noise(FRAME, 1), noise_mask(GRID, 1)
        first = bench.run(rgba, mask)
        for seed in (2, 3):
            bench.run(noise(FRAME, seed), noise_mask(GRID, seed))
        bench.refiner.reset()
        assert np.array_equal(bench.run(rgba, mask), first)
        assert bench.refiner.age == 0
        bench.release()


def test_what_is_no_number_does_not_stay(context: Context) -> None:
    bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1), refinement=Refinement(edges=False))
    rgba, mask = noise(FRAME, 1), np.ones(GRID[::-1], np.float32)
    bench.run(rgba, np.full(GRID[::-1], np.nan, np.float32))
    for _ in range(40):
        found = bench.run(rgba, mask)
    assert found.min() == 1
    bench.release()


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_what_lay_in_memory_before_does_not_count(context: Context, garbage: float) -> None:
    bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1), refinement=Refinement(edges=False))
    blend, guided, mask = bench.refiner._blend, bench.refiner._guided, np.full(GRID[::-1], 0.4, np.float32)
    for target in (blend.steady, blend._before, guided._cells, guided._before):
        on_opengl(target)._texture.write(np.full((target.size[1], target.size[0], 4), garbage, np.float32).tobytes())
    for edges in (False, False, True, True):
        bench.refiner.refinement = Refinement(edges)
        found = bench.run(noise(FRAME, 1), mask)
        np.testing.assert_allclose(found, 0.1 if edges else 0.4, rtol=0, atol=LEVEL)
    bench.release()


def test_a_delay_takes_frames_that_are_kept(context: Context) -> None:
    bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1), refinement=Refinement(delay=2))
    with pytest.raises(ValueError, match="delay of 2"):
        bench.run(noise(FRAME, 1), noise_mask(GRID, 1))
    with pytest.raises(ValueError, match="not kept"):
        bench.frame.bind(age=2)
    bench.release()


def test_nothing_is_read_back_and_nothing_is_left(context: Context) -> None:
    before = living(context)
    bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1))
    bench.put(rgba_picture(noise(FRAME, 1)), noise_mask(GRID, 1))
    read_back = replace(context.readback)
    for refinement in (BOTH, Refinement(edges=False), Refinement(delay=1)):
        bench.refiner.refinement = refinement
        for fresh in (True, False, True):
            bench.refiner.run(fresh)
    context.gl.glFinish()
    assert context.readback == read_back
    bench.release()
    assert living(context) == before


# What it is good for


def flat_frame(person: npt.NDArray[np.bool_], seed: int) -> Image:
    """An orange person before something blue, with a camera's noise."""
    rgb = np.where(person[..., None], (200, 110, 60), (60, 90, 140))
    noisy = np.clip(rgb + np.random.default_rng(seed).normal(0, 4, rgb.shape), 0, 255).astype(np.uint8)
    return np.dstack([noisy, np.full(person.shape, 255, np.uint8)])


def judged(context: Context, refinement: Refinement, lefts: list[float], jitter: float) -> MaskScorer:
    """A bar that stands at these columns, by masks whose edges are soft and jitter by so many pixels."""
    size, grid = (192, 144), (48, 36)
    bench = Bench(context, rgba_format(size), MaskLayout(grid, stride=1), refinement=refinement)
    rng, judge, truths = np.random.default_rng(9), MaskScorer(), list[Truth]()
    columns, cells = np.arange(size[0]), (np.arange(grid[0]) + 0.5) * 4
    for number, left in enumerate(lefts):
        person = np.tile((columns >= left) & (columns < left + 60), (size[1], 1))
        truths.append(Truth(person.astype(np.float32)))
        off = rng.normal(0, jitter, (2, grid[1], 1))
        soft = np.clip(0.5 + (cells - left - off[0]) / 12, 0, 1) * np.clip(
            0.5 - (cells - left - 60 - off[1]) / 12, 0, 1
        )
        found = bench.run(flat_frame(person, number), soft.astype(np.float32))
        if number >= refinement.delay:
            judge.add(found.astype(np.float32), truths[number - bench.refiner.age])
    bench.release()
    return judge


RAW = Refinement(edges=False, smooth=0)


@pytest.mark.parametrize("refinement", [Refinement(edges=False), BOTH, Refinement(delay=1)])
def test_still_edges_keep_still(context: Context, refinement: Refinement) -> None:
    raw, refined = (judged(context, r, [70.0] * 24, jitter=2).quality() for r in (RAW, refinement))
    assert refined.flicker < raw.flicker / 2


@pytest.mark.parametrize("delay", [0, 1])
def test_moving_edges_do_not_lag_and_lie_where_colors_change(context: Context, delay: int) -> None:
    lefts = [20 + 2.5 * n for n in range(40)]
    raw, refined = (judged(context, r, lefts, jitter=2).quality() for r in (RAW, Refinement(delay=delay)))
    assert abs(refined.lag_frames) < 0.5
    assert refined.f_score > raw.f_score
    assert refined.matte_error < raw.matte_error / 2
    assert refined.flicker < raw.flicker / 2


@pytest.mark.parametrize(("strip", "belongs"), [((78, 90), True), ((30, 42), False)])
def test_what_is_like_nothing_around_belongs_to_the_person_it_touches(
    context: Context, strip: tuple[int, int], belongs: bool
) -> None:
    """Such as a collar, which the network has left out; not what stands in the background elsewhere."""
    size, grid = (192, 144), (48, 36)
    columns, cells = np.arange(size[0]), (np.arange(grid[0]) + 0.5) * 4
    bench = Bench(context, rgba_format(size), MaskLayout(grid, stride=1))
    rgba = flat_frame(np.tile(columns >= 90, (size[1], 1)), 1)
    rgba[:, slice(*strip), :3] = 30, 160, 40
    mask = np.tile(np.clip(0.5 + (cells - 90) / 12, 0, 1), (grid[1], 1)).astype(np.float32)
    found = bench.run(rgba, mask)
    person = columns >= (strip[0] if belongs else 90)
    raw = Preprocessor(rgba_format(size), grid).mask_to_frame(mask)
    assert np.abs(found - person).mean() < np.abs(raw - person).mean() / 4
    bench.release()


def test_a_person_who_looks_like_the_background_keeps_the_mask(context: Context) -> None:
    """No color tells anything, so that edges are no better than the network's, and nothing else may change."""
    size, grid = (192, 144), (48, 36)
    bench = Bench(context, rgba_format(size), MaskLayout(grid, stride=1))
    columns = (np.arange(grid[0]) + 0.5) * 4
    mask = np.tile(np.clip(0.5 + (columns - 90) / 12, 0, 1), (grid[1], 1)).astype(np.float32)
    found = bench.run(flat_frame(np.ones(size[::-1], np.bool_), 1), mask)
    person = np.arange(size[0]) >= 90
    assert found[:, 100:].min() > 0.5 > found[:, :80].max()
    assert found[:, 140:].min() > 0.95
    assert found[:, :40].max() < 0.05
    raw = Preprocessor(rgba_format(size), grid).mask_to_frame(mask)
    assert np.abs(found - person).mean() < 1.2 * np.abs(raw - person).mean()
    bench.release()


# Other machines


def refine_a_mask(context: Context) -> None:
    rgba, mask = noise(FRAME, 1), noise_mask(GRID, 2)
    bench = Bench(context, rgba_format(FRAME), MaskLayout(GRID, stride=1))
    expected = Defined("stretch", BOTH).run(rgb_of(rgba), mask.astype(np.float64)).mask
    assert_close(context, bench.run(rgba, mask), expected)
    bench.release()


def draw_with_opengl_3_3() -> None:
    with open_context(DRAWING) as context:
        assert not context.can_compute
        refine_a_mask(context)
        context.check_errors("refining with OpenGL 3.3")


@exhaustive
@pytest.mark.gl
def test_opengl_3_3_is_enough() -> None:
    assert_runs_with_opengl_3_3(draw_with_opengl_3_3)


@needs_validator
def test_all_shaders_are_valid_glsl(tmp_path: Path) -> None:
    sources = {
        name: load(f"refine_{name}.frag")
        for name in ("blend", "shrink", "mean", "rare", "bilateral", "guided", "apply")
    }
    sources["hindsight"] = load("refine_blend.frag", {"HINDSIGHT": 1})
    sources["composite"] = load("composite.frag", {"REFINED": 1})
    assert_valid_glsl(sources, tmp_path)
