"""A canvas while frames run: looks switch, screens and outputs get what is theirs, and nothing is left behind."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.living import living
from tests.helpers.markers import on_both_apis
from tests.helpers.pictures import SMALL, Segmented, checkered, disc, noise, picture_of
from texelflow.app.frame.looks.effects import MASK_EFFECTS, Effect
from texelflow.app.frame.looks.looks import Look
from texelflow.app.outputs.file_sinks import Timing
from texelflow.app.outputs.frame_outputs import Outputs
from texelflow.app.picture.picture import rgba_picture
from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.targets.gl.context import Context

CLOCK = Timing(Fraction(1, 1000))


def test_looks_switch_between_any_two_frames(context: Context) -> None:
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    before = living(context)
    bench = Segmented(context, rgba, mask, Look())
    compiled: dict[str, set[int]] = {}
    full = Look(light_wrap=0.6, threshold=0.4, grow=1.5, feather=4, gamma=1.5, mirror=True, side_by_side=True)
    for radius, color in ((6, (0.9, 0.2, 0.4)), (40, (0.0, 0.5, 1.0)), (11, (1.0, 1.0, 0.0))):
        for effect, base in product(MASK_EFFECTS, (full, Look())):
            look = bench.canvas.look = replace(base, effect=effect, color=color, radius=radius)
            read_back = replace(context.readback)
            bench.show()
            bench.canvas.shown()
            context.gl.glFinish()
            assert context.readback == read_back
            context.check_errors(f"switching to {look}")
            assert np.abs(bench.read(bench.target) - picture_of(look, rgba, mask)).max() <= 1
        compiled = compiled or living(context)
        assert living(context) == compiled, "later rounds make nothing new"
    bench.release()
    left = living(context)
    assert all(left[kind] <= before[kind] for kind in left), "what tests before left may have gone meanwhile"
    assert len(compiled["Program"]) > len(before["Program"])


def test_a_screen_shows_cutout_over_a_checkerboard(context: Context) -> None:
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    bench = Segmented(context, rgba, mask, Look("cutout"))
    bench.show()
    shown = bench.read(bench.canvas.shown())
    assert np.array_equal(shown[..., :3], np.where(mask[..., None] > 0, rgba[..., :3], checkered((65, 47))))
    assert np.array_equal(bench.read(bench.target)[..., 3], 255 * mask)
    bench.canvas.look = Look("tint")
    assert bench.canvas.shown() is bench.target
    bench.release()


@on_both_apis
def test_side_by_side_is_the_frame_and_what_a_screen_shows_of_it(context: Context) -> None:
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    bench = Segmented(context, rgba, mask, Look("blur", radius=9, mirror=True, side_by_side=True))
    for effect in MASK_EFFECTS:
        bench.canvas.look = replace(bench.canvas.look, effect=effect)
        bench.show()
        both = bench.read(bench.canvas.shown())
        assert both.shape == (47, 130, 4)
        assert np.array_equal(both[:, :65], rgba[:, ::-1])
        seen = picture_of(replace(bench.canvas.look, effect="checker" if effect == "cutout" else effect), rgba, mask)
        assert np.abs(both[:, 65:] - seen).max() <= 1
        assert bench.target.size == (65, 47), "what is recorded is the result alone"
    bench.release()


def test_another_effect_of_the_same_frame_has_a_target_of_its_own(context: Context) -> None:
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    look = Look("tint", light_wrap=0.5, threshold=0.6, grow=-2, gamma=2.0, mirror=True)
    bench = Segmented(context, rgba, mask, look)
    bench.show()
    targets = {effect: bench.canvas.drawn(effect) for effect in MASK_EFFECTS}
    assert len({bench.target, *targets.values()}) == 1 + len(MASK_EFFECTS)
    for effect, target in targets.items():
        assert np.abs(bench.read(target) - picture_of(replace(look, effect=effect), rgba, mask)).max() <= 1
        assert bench.canvas.drawn(effect) is target
    assert np.abs(bench.read(bench.target) - picture_of(look, rgba, mask)).max() <= 1
    assert bench.canvas.look is look
    bench.release()


# Pictures in files


@pytest.mark.parametrize("effect", ["cutout", "blur"])
def test_pictures_become_png_files_named_by_their_frames(context: Context, effect: Effect, tmp_path: Path) -> None:
    alpha = effect == "cutout"
    bench = Segmented(context, noise((65, 47)), disc((65, 47), 15), Look(effect))
    outputs = Outputs(context, bench.canvas, CLOCK, keeps_all=True)
    outputs.begin_recording(tmp_path, replaces=True, alpha=alpha)
    expected = {}
    for index in (7, 8, 9, 1000000):
        bench.frame.upload(rgba_picture(noise((65, 47), index)))
        bench.show()
        outputs.stage.run(replace(bench.frame_in_ram, index=index))
        expected[f"{index:06d}.png"] = bench.read(bench.target)[..., : 4 if alpha else 3]
    outputs.finish()
    outputs.release()
    bench.release()
    assert {path.name for path in tmp_path.iterdir()} == set(expected)
    for name, picture in expected.items():
        stored = np.asarray(cv2.imread(str(tmp_path / name), cv2.IMREAD_UNCHANGED))
        assert np.array_equal(cv2.cvtColor(stored, cv2.COLOR_BGRA2RGBA if alpha else cv2.COLOR_BGR2RGB), picture)


def test_a_folder_that_goes_away_is_told(context: Context, tmp_path: Path) -> None:
    bench = Segmented(context, noise(SMALL), disc(SMALL, 15), Look("cutout"))
    outputs = Outputs(context, bench.canvas, CLOCK, keeps_all=True)
    outputs.begin_recording(tmp_path / "gone", alpha=True)
    (tmp_path / "gone").rmdir()
    bench.show()
    outputs.stage.run(bench.frame_in_ram)
    with pytest.raises(MediaError, match="gone"):
        outputs.finish()
    outputs.release()
    bench.release()
