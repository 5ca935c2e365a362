"""Every effect on this machine's real OpenGL, against its definition in NumPy in double precision."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.markers import exhaustive, on_both_apis, one_in
from tests.helpers.pictures import SMALL, Bench, byte_rounding, disc, drawn, noise, picture_of
from tests.helpers.portable import assert_runs_with_opengl_3_3, assert_valid_glsl, needs_validator
from texelflow.app.frame.drawing.mask_edge import edged
from texelflow.app.frame.drawing.render import Compositor
from texelflow.app.frame.looks.effects import EFFECTS, MASK_EFFECTS, Effect
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.picture.picture import rgba_format
from texelflow.app.picture.preprocess import Fit, ImageSize, Preprocessor
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, open_context
from texelflow.gpu_delegate.targets.glsl.shader import load

EVERYTHING = Look(radius=9, light_wrap=0.7, threshold=0.4, gamma=1.7, grow=1.5, feather=4, mirror=True)


# Each effect is what it is defined as


@one_in(4, "radius", [4, 7.5, 20, 64, 500])
@pytest.mark.parametrize("size", [SMALL, (65, 47), (7, 5), (1, 1), (3, 200)])
def test_blur_equals_its_definition(context: Context, size: ImageSize, radius: float) -> None:
    rgba = noise(size)
    mask = np.random.default_rng(3).random((size[1], size[0]), np.float32) * disc(size, size[1] / 3)
    found = drawn(context, Look("blur", radius=radius), rgba, mask)
    assert np.abs(found - picture_of(Look("blur", radius=radius), rgba, mask)).max() <= 1


@pytest.mark.parametrize(("wish", "radius"), [(0.1, 4), (1e9, 500)])
def test_a_radius_is_bounded(context: Context, wish: float, radius: float) -> None:
    rgba, mask = noise(SMALL), disc(SMALL, 15)
    wished, bound = (drawn(context, Look("blur", radius=pixels), rgba, mask) for pixels in (wish, radius))
    assert np.array_equal(wished, bound)


@pytest.mark.parametrize("fit", ["crop", "letterbox"])
@pytest.mark.parametrize("mirror", [False, True])
def test_blur_takes_the_mask_from_where_it_lies(context: Context, fit: Fit, mirror: bool) -> None:
    rgba, look = noise((65, 40)), Look("blur", radius=12, light_wrap=0.5, mirror=mirror)
    mask = np.random.default_rng(3).random((18, 32), np.float32)
    found = drawn(context, look, rgba, mask, fit)
    over_frame = Preprocessor(rgba_format((65, 40)), (32, 18), fit).mask_to_frame(mask)
    assert np.abs(found - picture_of(look, rgba, over_frame)).max() <= 1


@pytest.mark.parametrize("radius", [8, 15, 16, 32, 64])
def test_a_radius_is_two_standard_deviations(context: Context, radius: float) -> None:
    """What a bright bar becomes, whatever the factor: its variance grows by that of the Gaussian."""
    columns, bar = np.arange(640), slice(288, 336)  # whole cells for each factor
    rgba = np.zeros((16, 640, 4), np.uint8)
    rgba[:, bar] = 255
    row = drawn(context, Look("blur", radius=radius), rgba, np.zeros((2, 2), np.float32))[8, :, 0].astype(np.float64)
    variance = (row * (columns - 311.5) ** 2).sum() / row.sum() - (48**2 - 1) / 12
    assert np.sqrt(variance) == pytest.approx(
        radius / 2, rel=0.06
    )  # the rest is what bytes and three deviations cut off
    assert (row * columns).sum() / row.sum() == pytest.approx(311.5, abs=0.002 * radius)


@pytest.mark.parametrize("radius", [8, 24, 100])
def test_the_person_does_not_bleed_into_the_background(context: Context, radius: float) -> None:
    size = (161, 121)
    mask = disc(size, 40)
    rgba = np.full((121, 161, 4), 130, np.uint8)
    rgba[mask > 0] = (255, 0, 0, 255)
    found = drawn(context, Look("blur", radius=radius), rgba, mask)
    assert np.abs(found[mask == 0][:, :3] - 130.0).max() <= 1
    assert (found[mask > 0][:, :3] == (255, 0, 0)).all()


def test_blur_leaves_a_frame_full_of_person_alone(context: Context) -> None:
    rgba = noise(SMALL)
    assert np.array_equal(drawn(context, Look("blur"), rgba, np.ones((4, 4), np.float32)), rgba)


def test_background_that_no_tap_meets_is_shown_as_it_is(context: Context) -> None:
    rgba, mask = noise((160, 120)), np.ones((120, 160), np.float32)
    mask[60, 80] = 0  # alone in a cell of 16 x 16 pixels, of which 4 x 4 are read
    found = drawn(context, Look("blur", radius=64), rgba, mask)
    assert np.array_equal(found, rgba)


def test_faint_background_keeps_its_shades(context: Context) -> None:
    """Its weight is 0.027, of which bytes would leave 7 levels."""
    rgba, mask = np.full((48, 320, 4), 255, np.uint8), np.full((2, 2), 0.7, np.float32)
    rgba[..., :3] = (np.arange(320) * 0.8)[None, :, None]
    found = drawn(context, Look("blur", radius=20), rgba, mask)
    assert np.abs(found - picture_of(Look("blur", radius=20), rgba, np.full((48, 320), 0.7, np.float32))).max() <= 0.6


def test_cutout_keeps_the_colors_and_puts_the_mask_into_alpha(context: Context) -> None:
    rgba, mask = noise(SMALL), disc(SMALL, 15)
    found = drawn(context, Look("cutout"), rgba, mask)
    assert np.array_equal(found[..., :3][mask == 1], rgba[..., :3][mask == 1])
    mask = np.random.default_rng(3).random((48, 64), np.float32)
    off = np.abs(drawn(context, Look("cutout"), rgba, mask)[..., 3] - 255.0 * mask)
    assert off.max() <= byte_rounding(context) + 1e-3


@on_both_apis
def test_a_cutout_that_clears_keeps_no_more_than_premultiplied_alpha_does(context: Context) -> None:
    rgba, mask = noise(SMALL), np.random.default_rng(3).random((48, 64), np.float32) ** 6
    kept, cleared = (drawn(context, Look("cutout", clears=clears), rgba, mask).astype(int) for clears in (False, True))
    alpha = kept[..., 3:]
    assert np.abs(cleared[..., 3:] - alpha).max() <= 1
    assert kept[alpha[..., 0] == 0].any()
    assert not cleared[cleared[..., 3] == 0].any()
    seen = np.abs(kept[..., :3] * alpha - cleared[..., :3] * cleared[..., 3:]) / 255
    assert seen.max() <= 2, "it looks the same over everything"
    faint = cleared[cleared[..., 3] == 2][:, :3]
    assert len(faint) > 50
    assert {*np.unique(faint)} <= {0, 127, 128, 255}


@pytest.mark.parametrize("size", [(640, 480), (321, 243), (243, 640)])
def test_nothing_of_the_old_background_is_left_at_the_edge(context: Context, size: ImageSize) -> None:
    """A person of one color, with a little detail, before a background of another: what is mixed at a soft edge."""
    width, height = size
    mask = np.asarray(cv2.GaussianBlur(disc(size, width / 4), (0, 0), height / 120), np.float32)
    person = np.array([150.0, 60.0, 30.0]) + noise(size)[..., :1] / 16.0
    mixed = person * mask[..., None] + np.array([60.0, 160.0, 230.0]) * (1 - mask[..., None])
    rgba = np.dstack([np.rint(mixed), np.full((height, width), 255)]).astype(np.uint8)
    edge = (mask > 0.1) & (mask < 0.9)
    cut = drawn(context, Look("cutout"), rgba, mask)
    before, after = (np.abs(colors[..., :3] - person)[edge].mean() for colors in (rgba, cut))
    assert after < 0.3 * before


@pytest.mark.parametrize("size", [(65, 47), (7, 5), (1, 1), (161, 40)])
@one_in(4, ("grow", "feather"), [(20, 0), (-0.3, 0), (-20, 9), (1.25, 0.5), (0, 10.6)])
@on_both_apis
def test_edges_equal_their_definition(context: Context, size: ImageSize, grow: float, feather: float) -> None:
    mask = np.random.default_rng(3).random((size[1], size[0]), np.float32) * disc(size, size[1] / 2)
    found = drawn(context, Look("mask", grow=grow, feather=feather), noise(size), mask)[..., 0]
    assert np.abs(found - 255 * edged(mask, grow, feather)).max() <= 1


@pytest.mark.parametrize(
    ("grow", "feather"), [(0.5, 0), (6, 0), (20, 0), (-7.5, 0), (0, 5), (0, 17), (0, 50), (-3, 30)]
)
def test_pixels_are_pixels_of_the_frame(context: Context, grow: float, feather: float) -> None:
    """How far the outline of a person moves, and how wide the edge is, whatever cells it is computed in."""
    size = (321, 243)
    mask = np.asarray(cv2.GaussianBlur(disc(size, 80), (0, 0), 1), np.float32)
    found = drawn(context, Look("mask", grow=grow, feather=feather), noise(size), mask)[..., 0] / 255
    assert np.sqrt(found.sum() / np.pi) == pytest.approx(
        np.sqrt(mask.sum() / np.pi) + grow, abs=0.1 + 0.02 * abs(grow) + 0.1 * bool(feather)
    )
    assert np.abs(found - edged(mask, grow, feather)).max() < 0.02
    row = found[121, 160:]
    assert ((row > 0.02) & (row < 0.98)).sum() == pytest.approx(np.hypot(4.1, feather), abs=1.3 + 0.03 * feather)


@on_both_apis
def test_a_larger_target_gets_the_frame_at_its_top_and_repeats_the_edge(context: Context) -> None:
    rgba = noise((5, 3))
    bench, target = Bench(context, rgba, np.ones((2, 2), np.float32)), OffscreenTarget(context, (6, 4))
    with Compositor(GlPictures(context), bench.frame, bench.layout, look=Look("color")) as compositor:
        compositor.draw(bench.mask, target)
    assert np.array_equal(bench.read(target), np.pad(rgba, ((0, 1), (0, 1), (0, 0)), "edge"))
    target.release()
    bench.release()


@one_in(12, "effect", MASK_EFFECTS)
@pytest.mark.parametrize("wrap", [0.0, 0.8])
@pytest.mark.parametrize("shape", [{}, {"threshold": 0.7, "gamma": 0.6}, {"gamma": 0.6, "grow": -2.5, "feather": 5}])
@pytest.mark.parametrize(("mirror", "size"), [(False, SMALL), (True, (65, 47))])
@on_both_apis
def test_every_look_equals_its_definition(
    context: Context, effect: Effect, wrap: float, shape: dict[str, float], mirror: bool, size: ImageSize
) -> None:
    look = Look(effect, radius=8, light_wrap=wrap, mirror=mirror, **shape)  # type: ignore[arg-type]
    rgba, mask = noise(size), np.random.default_rng(3).random((size[1], size[0]), np.float32)
    mask = np.maximum(mask * disc(size, 22), disc(size, 12))
    assert np.abs(drawn(context, look, rgba, mask) - picture_of(look, rgba, mask)).max() <= 1


@pytest.mark.parametrize("effect", MASK_EFFECTS)
def test_gives_the_same_bytes_every_time(context: Context, effect: Effect) -> None:
    rgba, mask = noise((161, 121)), disc((161, 121), 40)
    assert len({drawn(context, Look(effect), rgba, mask).tobytes() for _ in range(3)}) == 1


def draw_all_effects(context: Context) -> None:
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    for effect, full in product(MASK_EFFECTS, (False, True)):
        look = EVERYTHING if full else Look(radius=9)
        look = replace(look, effect=effect)
        assert np.abs(drawn(context, look, rgba, mask) - picture_of(look, rgba, mask)).max() <= 1


def draw_with_opengl_3_3() -> None:
    """In a process of its own: drivers read the version that they are to have once."""
    with open_context(DRAWING) as context:
        assert not context.can_compute
        draw_all_effects(context)
        context.check_errors("drawing with OpenGL 3.3")


@exhaustive
@pytest.mark.gl
def test_every_effect_is_drawn_by_opengl_3_3() -> None:
    assert_runs_with_opengl_3_3(draw_with_opengl_3_3)


@needs_validator
def test_all_shaders_are_valid_glsl(tmp_path: Path) -> None:
    sources = {
        f"composite{number}{full}": load(
            "composite.frag", {"EFFECT": number, **dict.fromkeys(("WRAPS", "SHAPED", "EDGED", "UNMIXED"), full)}
        )
        for number, full in product(map(EFFECTS.index, MASK_EFFECTS), (0, 1))
    }
    sources |= {f"blur_shrink{behind}": load("blur_shrink.frag", {"BEHIND": behind}) for behind in (0, 1, 2)}
    names = (
        "blur_smooth", "cover", "classes", "edge_mask", "edge_grow", "edge_shrink",
        "foreground_cells", "foreground_apart", "foreground_between",
        "plain", "marks", "hidden_cells", "hidden_smooth", "hidden",
    )  # fmt: skip
    sources |= {name: load(f"{name}.frag") for name in names}
    sources |= {f"picture{number}": load("picture.frag", {"EFFECT": number}) for number in range(len(EFFECTS))}
    sources["legend"] = load("classes.frag", {"LEGEND_W": 9, "LEGEND_H": 9, "UNSEEN": 1})
    assert_valid_glsl(sources, tmp_path)
