"""A part of the frame in place of the frame: as defined, of every layout, with every effect, by OpenGL and in code."""

import numpy as np
import pytest

from tests.helpers.markers import on_both_apis
from tests.helpers.pictures import Doubles, Floats, Image, Segmented, disc, noise, picture_of
from texelflow.app.frame.drawing.cropped_frame import crop_parts, crop_places
from texelflow.app.frame.drawing.grid_canvas import DrawnCamera, GridCanvas
from texelflow.app.frame.looks.looks import Look
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.grid import CellPlace, PictureGrid
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE = (160, 120)
CROP = FrameRegion(70.3, 63.9, 160 / 1.7, 120 / 1.7)
LOOKS = [
    Look("tint"),
    Look("replace", light_wrap=0.5),
    Look("blur", radius=9, mirror=True),
    Look("cutout", threshold=0.4, gamma=2),
    Look("mask", grow=3, feather=4),
    Look("none"),
]


def cropped(values: Doubles, crop: FrameRegion, cubic: bool) -> Doubles:
    """The docstring of cropped_frame.py: (H, W, C) at the places of the picture's pixels, bilinear or cubic."""
    height, width = values.shape[:2]
    (x_step, y_step), (x_begin, y_begin) = crop_places(crop, (width, height))
    for axis, step, begin in ((1, x_step, x_begin), (0, y_step, y_begin)):
        count, parts = values.shape[axis], crop_parts((width, height))
        whole, rest = np.divmod(np.arange(count) * step + begin, parts)
        part = rest / parts
        weights = {0: 1 - part, 1: part}
        if cubic:
            apart = {n: np.abs(n - part) for n in (-1, 0, 1, 2)}
            weights = {
                n: np.where(d < 1, 1 - d**2 * (2.5 - 1.5 * d), 2 - d * (4 - d * (2.5 - 0.5 * d)))
                for n, d in apart.items()
            }
        taps = [
            np.take(values, np.clip(whole + n, 0, count - 1), axis)
            * weight.reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
            for n, weight in weights.items()
        ]
        values = np.clip(np.rint(sum(taps)), 0, 255) if cubic else np.asarray(sum(taps))
    return values


def expected(look: Look, rgba: Image, mask: Floats, crop: FrameRegion) -> Doubles:
    part = cropped(rgba.astype(np.float64), crop, cubic=True).astype(np.uint8)
    shown = cropped(mask.astype(np.float64)[..., None], crop, cubic=False)[..., 0]
    return picture_of(look, part, shown.astype(np.float32))


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.effect)
@on_both_apis
def test_part_of_the_frame_is_drawn_as_a_frame(context: Context, look: Look) -> None:
    rgba, mask = noise(SIZE, seed=3), disc(SIZE, 40)
    bench = Segmented(context, rgba, mask, look)
    bench.canvas.show_parts([CROP])
    bench.show()
    found = bench.read(bench.target)
    assert np.abs(found - expected(look, rgba, mask, CROP)).max() <= 2.5
    bench.canvas.show_parts([None])
    bench.show()
    assert np.abs(bench.read(bench.target) - picture_of(look, rgba, mask)).max() <= 2.5
    bench.release()


@on_both_apis
def test_side_by_side_the_frame_is_whole(context: Context) -> None:
    rgba, mask = noise(SIZE, seed=3), disc(SIZE, 40)
    bench = Segmented(context, rgba, mask, Look("tint", side_by_side=True))
    bench.canvas.show_parts([CROP])
    bench.show()
    left, right = np.hsplit(bench.read(bench.canvas.shown()), 2)
    assert np.abs(left[..., :3].astype(int) - rgba[..., :3]).max() <= 1
    assert np.abs(right - expected(Look("tint"), rgba, mask, CROP)).max() <= 2.5
    bench.release()


def test_each_camera_of_a_grid_shows_its_own_part(context: Context) -> None:
    benches = [Segmented(context, noise(SIZE, seed), disc(SIZE, 40), Look("none")) for seed in (3, 4)]
    cameras = [DrawnCamera(each.canvas.drawing, benches[0].target, each._backdrop, lambda: 1) for each in benches]
    grid = PictureGrid((2 * SIZE[0], SIZE[1]), (CellPlace(0, 0, *SIZE), CellPlace(SIZE[0], 0, *SIZE)))
    target = benches[0].pictures.target(grid.size)
    canvas = GridCanvas(benches[0].pictures, cameras, target, grid)
    assert canvas.frame_sizes == (SIZE, SIZE)
    for crops in ([None, CROP], [CROP, None], [CROP, CROP]):
        canvas.show_parts(crops)
        canvas.stage.run(benches[0].frame_in_ram)
        shown = np.hsplit(benches[0].read(target), 2)
        for part, crop, seed in zip(shown, crops, (3, 4), strict=True):
            whole = FrameRegion(SIZE[0] / 2, SIZE[1] / 2, *SIZE)
            wanted = expected(Look("none"), noise(SIZE, seed), disc(SIZE, 40), crop or whole)
            assert np.abs(part - wanted).max() <= 2
    canvas.release()
    target.release()
    for each in benches:
        each.release()
