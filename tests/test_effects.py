"""Every effect on this machine's real OpenGL, against its definition in NumPy in double precision."""

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from app.frame.canvas import Canvas
from app.frame.looks import Choice, choose_look, default_background, next_effect
from app.frame.outputs import PngOutput
from app.frame.picture import rgba_format, rgba_picture
from app.frame.preprocess import Fit, ImageSize, Preprocessor
from app.frame.readback import ReadbackRing
from app.frame.render import EFFECTS, Compositor, Effect, Look
from app.frame.resample import MaskLayout
from app.frame.targets import OffscreenTarget
from app.frame.upload import FrameTextures
from app.media.background import cover
from app.media.sources import VideoFrame
from gpu_delegate.context import DRAWING, Context, open_context
from gpu_delegate.errors import MediaError
from gpu_delegate.opengl import BufferRange
from gpu_delegate.shader import load

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

ROOT = Path(__file__).parents[1]
SMALL = (64, 48)
BACKGROUND = np.random.default_rng(7).integers(0, 256, (47, 65, 4), np.uint8)


def noise(size: ImageSize, seed: int = 0) -> Image:
    rgba = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 4), np.uint8)
    rgba[..., 3] = 255
    return rgba


def disc(size: ImageSize, radius: float) -> Floats:
    """A mask whose person is a disc in the middle, with a sharp edge."""
    y, x = np.mgrid[: size[1], : size[0]]
    return np.asarray(np.hypot(x - size[0] / 2, y - size[1] / 2) < radius, np.float32)


# The definitions, from the docstring of app/frame/blur.py


def gaussian(radius: float) -> tuple[int, Doubles]:
    """The factor, and the weights of cells as far away as three standard deviations, in either direction."""
    factor = max(3, int(radius / 4))
    variance = (radius / 2 / factor) ** 2 - 0.25
    reach = int(np.ceil(3 * np.sqrt(variance)))
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return factor, weights / weights.sum()


def smooth_rows(cells: Doubles, weights: Doubles) -> Doubles:
    reach = len(weights) // 2
    padded = np.pad(cells, ((reach, reach), (0, 0), (0, 0)), "edge")
    return sum((weight * padded[i : i + len(cells)] for i, weight in enumerate(weights)), np.zeros_like(cells))


def interpolate_rows(cells: Doubles, factor: int, count: int) -> Doubles:
    at = (np.arange(count) + 0.5) / factor - 0.5
    first = np.floor(at).astype(int)
    part = (at - first)[:, None, None]
    above, below = (cells[np.clip(first + i, 0, len(cells) - 1)] for i in (0, 1))
    return np.asarray(above + (below - above) * part)


def blurred(frame: Doubles, person: Doubles, radius: float) -> Doubles:
    """The background behind a frame (H, W, 3) with a person (H, W, 1), which the person does not spread into."""
    factor, weights = gaussian(radius)
    height, width, _ = frame.shape
    weighted = np.concatenate([frame, np.ones_like(person)], -1) * (1 - person) ** 3
    taps = min(4, factor)
    within = [(2 * i + 1) * factor // (2 * taps) for i in range(taps)]
    rows, columns = (
        np.minimum(np.arange(-(-side // factor))[:, None] * factor + within, side - 1) for side in (height, width)
    )
    cells = weighted[rows][:, :, columns].mean((1, 3))
    for _ in range(2):
        cells = smooth_rows(cells, weights).swapaxes(0, 1)
    spread = interpolate_rows(cells, factor, height).swapaxes(0, 1)
    spread = interpolate_rows(spread, factor, width).swapaxes(0, 1)
    tiny = 1 / 4096
    return np.asarray((spread[..., :3] + tiny * frame) / (spread[..., 3:] + tiny))


def picture_of(look: Look, rgba: Image, mask: Floats) -> Doubles:
    """What a look makes of a frame (H, W, 4) with a mask of its size: (H, W, 4) from 0 to 255."""
    frame: Doubles = rgba[..., :3].astype(np.float64)
    person: Doubles = mask[..., None].astype(np.float64)
    color: Doubles = np.array(look.color, np.float64) * 255
    radius = look.radius or max(4, 0.05 * rgba.shape[0])
    behind = {
        "replace": cover(BACKGROUND, (rgba.shape[1], rgba.shape[0]))[..., :3].astype(np.float64),
        "color": np.broadcast_to(color, frame.shape),
    }
    if look.effect == "blur":
        behind["blur"] = blurred(frame, person, radius)
    colours = {
        "tint": frame + person * 0.5 * (color - frame),
        "cutout": frame,
        "mask": 255 * np.repeat(person, 3, -1),
    }
    shown = colours[look.effect] if look.effect in colours else frame * person + behind[look.effect] * (1 - person)
    alpha = 255 * person if look.effect == "cutout" else np.full_like(person, 255)
    return np.concatenate([shown, alpha], -1)


# A frame and its mask on the device


class Bench:
    """What a segmenter hands on: a frame's textures, and its mask as a plain tensor in a buffer."""

    def __init__(self, context: Context, rgba: Image, mask: Floats) -> None:
        self.context, self.size = context, (rgba.shape[1], rgba.shape[0])
        self.frame = FrameTextures(context, rgba_format(self.size))
        self.frame.upload(rgba_picture(rgba))
        self.layout = MaskLayout((mask.shape[1], mask.shape[0]), stride=1)
        self._buffer = context.mgl.buffer(mask.tobytes())
        self.mask = BufferRange(self._buffer.glo, 0, mask.nbytes)

    def read(self, target: OffscreenTarget) -> Image:
        """The picture in a target, (H, W, 4), its top row first."""
        ring = ReadbackRing[int](self.context, target.size[0] * target.size[1] * 4)
        ring.request_picture(0, target.framebuffer, target.size)
        ((_, data),) = ring.drain()
        ring.release()
        return data.reshape(target.size[1], target.size[0], 4)

    def draw(self, look: Look, fit: Fit = "stretch") -> Image:
        """One picture, by a compositor of its own."""
        target = OffscreenTarget(self.context, self.size)
        with Compositor(self.context, self.frame, self.layout, fit, look) as compositor:
            if look.effect == "replace":
                compositor.set_background(BACKGROUND)
            compositor.draw(self.mask, target)
            picture = self.read(target)
        target.release()
        return picture

    def release(self) -> None:
        self.frame.release()
        self._buffer.release()


def drawn(context: Context, look: Look, rgba: Image, mask: Floats, fit: Fit = "stretch") -> Image:
    bench = Bench(context, rgba, mask)
    picture = bench.draw(look, fit)
    bench.release()
    return picture


# Each effect is what it is defined as


@pytest.mark.parametrize("radius", [4, 7.5, 20, 64, 500])
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
def test_blur_takes_the_mask_from_where_it_lies(context: Context, fit: Fit) -> None:
    rgba, look = noise((65, 40)), Look("blur", radius=12)
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


def test_cutout_keeps_the_colours_and_puts_the_mask_into_alpha(context: Context) -> None:
    rgba, mask = noise(SMALL), np.random.default_rng(3).random((48, 64), np.float32)
    found = drawn(context, Look("cutout"), rgba, mask)
    assert np.array_equal(found[..., :3], rgba[..., :3])
    assert np.abs(found[..., 3] - 255.0 * mask).max() <= 0.5 + 1e-3


def test_a_larger_target_gets_the_frame_at_its_top_and_repeats_the_edge(context: Context) -> None:
    rgba = noise((5, 3))
    bench, target = Bench(context, rgba, np.ones((2, 2), np.float32)), OffscreenTarget(context, (6, 4))
    with Compositor(context, bench.frame, bench.layout, look=Look("color")) as compositor:
        compositor.draw(bench.mask, target)
    assert np.array_equal(bench.read(target), np.pad(rgba, ((0, 1), (0, 1), (0, 0)), "edge"))
    target.release()
    bench.release()


@pytest.mark.parametrize("effect", EFFECTS)
def test_gives_the_same_bytes_every_time(context: Context, effect: Effect) -> None:
    rgba, mask = noise((161, 121)), disc((161, 121), 40)
    assert len({drawn(context, Look(effect), rgba, mask).tobytes() for _ in range(3)}) == 1


def draw_with_opengl_3_3() -> None:
    """In a process of its own: drivers read the version that they are to have once."""
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    with open_context(DRAWING) as context:
        assert not context.can_compute
        for effect in EFFECTS:
            look = Look(effect, radius=9)
            assert np.abs(drawn(context, look, rgba, mask) - picture_of(look, rgba, mask)).max() <= 1
        context.check_errors("drawing with OpenGL 3.3")


def test_every_effect_is_drawn_by_opengl_3_3() -> None:
    command = (sys.executable, "-c", "from tests import test_effects; test_effects.draw_with_opengl_3_3()")
    old = {**os.environ, "MESA_GL_VERSION_OVERRIDE": "3.3"}
    done = subprocess.run(command, env=old, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("glslangValidator") is None, reason="glslangValidator is not installed")
def test_all_shaders_are_valid_glsl(tmp_path: Path) -> None:
    sources = {f"composite{number}": load("composite.frag", {"EFFECT": number}) for number in range(len(EFFECTS) + 1)}
    for name in ("blur_shrink", "blur_smooth"):
        sources[name] = load(f"{name}.frag")
    for name, source in sources.items():
        (tmp_path / f"{name}.frag").write_text(source)
    done = subprocess.run(
        ["glslangValidator", *map(str, tmp_path.iterdir())], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout


# Effects switch while frames run


def live_objects(context: Context) -> set[tuple[str, int]]:
    """Kind and name of everything that lives in the context."""
    context.gl.glUseProgram(0)  # one in use lives on after its end
    kinds = ("Program", "Texture", "Buffer", "Framebuffer", "VertexArray", "Shader")
    prototype = ctypes.CFUNCTYPE(ctypes.c_ubyte, ctypes.c_uint)
    tests = {kind: prototype(context._loader.load_opengl_function(f"glIs{kind}")) for kind in kinds}
    return {(kind, name) for kind, is_one in tests.items() for name in range(1, 4096) if is_one(name)}


class Segmented(Bench):
    """A bench with a canvas, as a pipeline has it."""

    def __init__(self, context: Context, rgba: Image, mask: Floats, choice: Choice) -> None:
        super().__init__(context, rgba, mask)
        self.target = OffscreenTarget(context, self.size)
        self.canvas = Canvas(context, self, self.target, "stretch", choice)
        self.frame_in_ram = VideoFrame(0, 0, 0.0, rgba_picture(rgba))

    def show(self) -> None:
        self.canvas.stage.run(self.frame_in_ram)

    def release(self) -> None:
        self.canvas.release()
        self.target.release()
        super().release()


def test_effects_switch_between_any_two_frames(context: Context) -> None:
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    before = live_objects(context)
    bench = Segmented(context, rgba, mask, Choice(Look(), BACKGROUND))
    compiled = set[tuple[str, int]]()
    for radius, colour in ((6, (0.9, 0.2, 0.4)), (40, (0.0, 0.5, 1.0)), (11, (1.0, 1.0, 0.0))):
        bench.canvas.look = replace(bench.canvas.look, color=colour, radius=radius)
        for _ in EFFECTS:
            look = bench.canvas.look = next_effect(bench.canvas.look)
            read_back = replace(context.readback)
            bench.show()
            bench.canvas.shown()
            context.gl.glFinish()
            assert context.readback == read_back
            context.check_errors(f"switching to {look}")
            assert np.abs(bench.read(bench.target) - picture_of(look, rgba, mask)).max() <= 1
        assert look.effect == "tint"
        compiled = compiled or live_objects(context)
        assert live_objects(context) == compiled, "later rounds make nothing new"
    bench.release()
    assert live_objects(context) == before < compiled


def test_replace_finds_a_background_when_it_is_first_seen(context: Context) -> None:
    bench = Segmented(context, noise((160, 120)), np.zeros((2, 2), np.float32), choose_look("tint", None))
    bench.canvas.look = next_effect(bench.canvas.look)
    bench.show()
    picture = bench.read(bench.target)
    bench.release()
    assert np.array_equal(picture, cover(default_background(), (160, 120)))


def test_a_screen_shows_cutout_over_a_checkerboard(context: Context) -> None:
    rgba, mask = noise((65, 47)), disc((65, 47), 15)
    bench = Segmented(context, rgba, mask, Choice(Look("cutout")))
    bench.show()
    shown = bench.read(bench.canvas.shown())
    squares = np.add.outer(np.arange(47) // 16, np.arange(65) // 16) % 2
    grey = np.where(squares, 153, 204)[..., None]
    assert np.array_equal(shown[..., :3], np.where(mask[..., None] > 0, rgba[..., :3], grey))
    assert np.array_equal(bench.read(bench.target)[..., 3], 255 * mask)
    bench.canvas.look = Look("tint")
    assert bench.canvas.shown() is bench.target
    bench.release()


# Pictures in files


@pytest.mark.parametrize("effect", ["cutout", "blur"])
def test_pictures_become_png_files_named_by_their_frames(context: Context, effect: Effect, tmp_path: Path) -> None:
    alpha = effect == "cutout"
    bench = Segmented(context, noise((65, 47)), disc((65, 47), 15), Choice(Look(effect)))
    output = PngOutput(context, bench.target, tmp_path, alpha)
    expected = {}
    for index in (7, 8, 9, 1000000):
        bench.frame.upload(rgba_picture(noise((65, 47), index)))
        bench.show()
        output.stage.run(replace(bench.frame_in_ram, index=index))
        expected[f"{index:06d}.png"] = bench.read(bench.target)[..., : 4 if alpha else 3]
    output.finish()
    output.release()
    bench.release()
    assert {path.name for path in tmp_path.iterdir()} == set(expected)
    for name, picture in expected.items():
        stored = np.asarray(cv2.imread(str(tmp_path / name), cv2.IMREAD_UNCHANGED))
        assert np.array_equal(cv2.cvtColor(stored, cv2.COLOR_BGRA2RGBA if alpha else cv2.COLOR_BGR2RGB), picture)


def test_a_folder_that_goes_away_is_told(context: Context, tmp_path: Path) -> None:
    bench = Segmented(context, noise(SMALL), disc(SMALL, 15), Choice(Look("cutout")))
    output = PngOutput(context, bench.target, tmp_path / "gone", alpha=True)
    bench.show()
    output.stage.run(bench.frame_in_ram)
    with pytest.raises(MediaError, match="gone"):
        output.finish()
    output.release()
    bench.release()
