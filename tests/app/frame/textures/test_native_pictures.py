"""Pictures that the CPU's own code draws equal those of OpenGL: every effect, format, orientation, fit and odd size.

Both read the same shaders; OpenGL's are tested against definitions in NumPy.
"""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import cv2
import numpy as np
import pytest

from tests.helpers.markers import exhaustive_if, one_in
from tests.helpers.native import target_of
from tests.helpers.pictures import Floats, Image, disc, noise
from texelflow import assets
from texelflow.app.frame.drawing.backdrop import Backdrop
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.drawing.grid_canvas import DrawnCamera, GridCanvas
from texelflow.app.frame.inference.network_output import ClassScores, PictureLayout, PictureOutput
from texelflow.app.frame.inference.scores import ScoresUpload
from texelflow.app.frame.looks.effects import MASK_EFFECTS, Effect, picture_effects
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.refinement.refine import Refinement, Refiner
from texelflow.app.frame.textures import native_pictures
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.native_pictures import NativePictures, NativeTarget
from texelflow.app.frame.textures.native_yuv import NativeYuv
from texelflow.app.frame.textures.offscreen_target import on_opengl
from texelflow.app.frame.textures.picture_device import PictureDevice
from texelflow.app.frame.textures.readback import ReadbackRing
from texelflow.app.frame.textures.resample import MaskLayout
from texelflow.app.frame.textures.yuv import YuvPicture, gray, i420, nv12, size_bytes
from texelflow.app.media.sources import FileSource, VideoFrame
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.grid import CellPlace, PictureGrid
from texelflow.app.picture.picture import Orientation, Picture, PictureFormat, rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, ImageSize
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.llvm import compiler
from texelflow.gpu_delegate.targets.llvm.shader_images import ImageForm
from texelflow.gpu_delegate.targets.llvm.shader_steps import ReadShader

pytestmark = [
    pytest.mark.gl,
    pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU"),
]

CLIP = Path(assets.__file__).parent / "people.mp4"
SIZE, GRID = (149, 101), (32, 24)
TURNED = Orientation(True, True, False)
FORMATS = [
    rgba_format(SIZE),
    PictureFormat(SIZE, "gray"),
    PictureFormat(SIZE, "yuv", 8, (1, 1), "bt601", False, "left"),
    PictureFormat(SIZE, "yuv", 8, (1, 0), "bt709", True, "center"),
    PictureFormat(SIZE, "yuv", 8, (0, 0), "bt709", False, "left"),
    PictureFormat(SIZE, "yuv", 10, (1, 1), "bt2020", False, "topleft"),
    PictureFormat(SIZE, "nv12", 8, (1, 1), "bt709", False, "left"),
    PictureFormat((150, 101), "yuyv", 8, (1, 0), "bt601", False, "left"),
    PictureFormat((150, 101), "uyvy", 8, (1, 0), "bt601", False, "left"),
]


@pytest.fixture(scope="module")
def native() -> Iterator[NativePictures]:
    device = NativePictures(2)
    yield device
    device.release()


def smooth_planes(format: PictureFormat, seed: int = 0) -> Picture:
    """A picture with slopes, edges and some noise in all planes."""
    random, planes = np.random.default_rng(seed), []
    most = (1 << format.bits) - 1
    for nth, shape in enumerate(format.plane_shapes):
        y, x = np.mgrid[: shape[0], : shape[1]]
        values = 0.5 + 0.3 * np.sin(x / (7.0 + nth) + seed) * np.cos(y / 9.0) + 0.1 * (x > shape[1] / 2)
        if len(shape) == 3:
            values = np.stack([values + 0.05 * channel for channel in range(shape[2])], -1)
        values += random.normal(0, 0.02, values.shape)
        planes.append((np.clip(values, 0, 1) * most).astype(np.uint8 if format.sample_bytes == 1 else np.uint16))
    return Picture(format, tuple(planes))


def soft_disc(shift: float = 0.0) -> Floats:
    """A person's mask on the network's grid, with a soft edge."""
    y, x = np.mgrid[: GRID[1], : GRID[0]]
    apart = np.hypot(x - GRID[0] / 2 - shift, y - GRID[1] / 2) - GRID[1] / 3
    return np.asarray(1 / (1 + np.exp(apart)), np.float32)


class Easel:
    """What a segmenter hands on, on either device, and all that draws it."""

    def __init__(
        self,
        device: PictureDevice,
        format: PictureFormat,
        look: Look,
        fit: Fit = "stretch",
        refinement: Refinement | None = None,
        picture: PictureLayout | None = None,
        scores: Floats | None = None,
    ) -> None:
        self.device, self.frame = device, device.planes(format, 3)
        self.layout = MaskLayout(GRID, stride=1)
        size = picture.size if picture else GRID
        self.mask = device.memory(size, size[0] * size[1] * (16 if picture else 4))
        self.picture = PictureOutput(picture, lambda: self.mask) if picture else None
        self.classes: ClassScores | None = None
        if scores is not None:
            self._upload, labels = ScoresUpload(device, GRID), ("sky", "a person", "")
            self.classes = ClassScores(GRID, scores.shape[2], labels, lambda: self._upload.shown(scores[None]))
        self.refiner = Refiner(device, self, fit, refinement) if refinement else None
        self.target, self.backdrop = device.target(format.upright_size), Backdrop(device, format.upright_size)
        chosen = ChosenLook(look)
        self.canvas = Canvas(device, self, self.target, fit, chosen, backdrop=self.backdrop, refiner=self.refiner)

    def show(self, picture: Picture, output: Floats, index: int = 0) -> None:
        self.frame.upload(picture)
        self.device.write(self.mask, np.ascontiguousarray(output))
        if self.refiner:
            self.refiner.run()
        self.canvas.stage.run(VideoFrame(index, index, 40.0 * index, picture))

    def drawn(self, frames: int = 1) -> Image:
        """The picture of the last of some frames, in which the person moves."""
        for index in range(frames):
            self.show(smooth_planes(self.frame.format, index), soft_disc(index), index)
        return self.device.read(self.canvas.shown())


def difference(one: Image, other: Image) -> int:
    """The largest of any channel."""
    assert one.shape == other.shape
    return int(np.abs(one.astype(int) - other).max())


REFINED = Refinement()
LOOKS = [Look(effect) for effect in MASK_EFFECTS] + [
    Look("replace", light_wrap=0.7, mirror=True),
    Look("color", color=(0.9, 0.2, 0.1), light_wrap=1.0),
    Look("blur", radius=4.0),
    Look("blur", radius=60.0, mirror=True, light_wrap=0.5),
    Look("cutout", clears=True),
    Look("mask", threshold=0.3, gamma=2.0),
    Look("replace", grow=3.0, feather=5.0),
    Look("color", grow=-4.0, feather=30.0),
    Look("tint", side_by_side=True, mirror=True),
]


@pytest.mark.parametrize("refined", [exhaustive_if(True, False), True], ids=["raw", "refined"])
@one_in(3, "look", LOOKS, ids=lambda look: f"{look.effect} {look.light_wrap} {look.radius} {look.grow}")
def test_every_look_is_drawn_as_by_opengl(context: Context, native: NativePictures, look: Look, refined: bool) -> None:
    refinement = REFINED if refined else None
    ours, theirs = (
        Easel(device, FORMATS[2], look, refinement=refinement).drawn(2) for device in (native, GlPictures(context))
    )
    assert difference(ours, theirs) <= (2 if look.effect == "blur" else 1)
    assert ours.std() > 5, "there is something to be seen"


@one_in(
    5,
    ("format", "orientation"),
    [(format, turn) for turn in (Orientation(), TURNED, Orientation(False, True, True)) for format in FORMATS],
    ids=str,
)
def test_every_format_is_read_as_by_opengl(
    context: Context, native: NativePictures, format: PictureFormat, orientation: Orientation
) -> None:
    turned = replace(format, orientation=orientation)
    ours, theirs = (
        Easel(device, turned, Look("replace"), "crop", REFINED).drawn() for device in (native, GlPictures(context))
    )
    assert difference(ours, theirs) <= 1


@one_in(
    23,
    ("look", "format", "fit"),
    [
        (look, format, fit)
        for look in (LOOKS[1], LOOKS[2], LOOKS[7], Look("cutout"), Look("mask", feather=4.0))
        for format, fit in zip(FORMATS, [*get_args(Fit)] * 3, strict=True)
    ],
    ids=str,
)
def test_parts_of_frames_are_drawn_as_by_opengl(
    context: Context, native: NativePictures, look: Look, format: PictureFormat, fit: Fit
) -> None:
    found = []
    for device in (native, GlPictures(context)):
        easel = Easel(device, format, look, fit, REFINED)
        easel.canvas.show_parts([FrameRegion(70.5, 40.25, SIZE[0] / 2.3, SIZE[1] / 2.3)])
        found.append(easel.drawn(2))
    assert difference(*found) <= 2
    assert found[0].std() > 5, "there is something to be seen"


@one_in(
    16,
    ("look", "fit", "size"),
    [
        (look, fit, size)
        for size in [(17, 9), (5, 70), (33, 31), (640, 16), (16, 16)]
        for fit in get_args(Fit)
        for look in (Look("blur"), Look("color", feather=2.0), Look("cutout"))
    ],
    ids=lambda value: value.effect if isinstance(value, Look) else str(value),
)
def test_odd_and_small_sizes_are_drawn_as_by_opengl(
    context: Context, native: NativePictures, size: ImageSize, fit: Fit, look: Look
) -> None:
    format = PictureFormat(size, "yuv", 8, (1, 1), "bt601", False, "left")
    ours, theirs = (Easel(device, format, look, fit, REFINED).drawn() for device in (native, GlPictures(context)))
    assert difference(ours, theirs) <= (2 if look.effect == "blur" else 1)


@one_in(
    2,
    "refinement",
    [Refinement(edges=False), Refinement(smooth=0.0), Refinement(delay=1), Refinement(smooth=1.0)],
    ids=["smooth", "edges", "delayed", "steady"],
)
def test_every_refinement_is_that_of_opengl(context: Context, native: NativePictures, refinement: Refinement) -> None:
    ours, theirs = (
        Easel(device, FORMATS[2], Look("mask"), "stretch", refinement).drawn(5)
        for device in (native, GlPictures(context))
    )
    assert difference(ours, theirs) <= 1


def test_refined_masks_of_one_frame_are_those_of_opengl(context: Context, native: NativePictures) -> None:
    found = []
    for device in (native, GlPictures(context)):
        easel = Easel(device, FORMATS[2], Look("mask"), "stretch", REFINED)
        target, name = device.target(SIZE, "floats"), "edge_mask.frag"
        easel.show(smooth_planes(FORMATS[2]), soft_disc())
        compositor = easel.canvas.drawing._whole.masks  # type: ignore[attr-defined]
        compositor._prepared(name, easel.canvas.look).draw(target, SIZE)
        if isinstance(target, NativeTarget):
            found.append(np.array(target.finished()[0]))
        else:
            found.append(
                np.frombuffer(on_opengl(target)._texture.read(), np.float32).reshape(SIZE[1], SIZE[0], 4)[..., 0]
            )
    # Software interpolates coefficients exactly, hardware in 256 steps: an NVIDIA H200 is off by 0.0019.
    assert np.abs(found[0] - found[1]).max() <= (1e-4 if context.is_software else 1 / 256)
    assert 0.1 < found[0].mean() < 0.9


@one_in(5, ("channels", "fit"), [(channels, fit) for channels in (4, 3) for fit in ("letterbox", "stretch", "crop")])
def test_networks_pictures_are_drawn_as_by_opengl(
    context: Context, native: NativePictures, channels: int, fit: Fit
) -> None:
    layout = PictureLayout((13, 10), 4 if channels == 4 else 3, (-1.0, 1.0))
    output = np.random.default_rng(1).uniform(-1.1, 1.1, (10, 13, 4)).astype(np.float32)
    for effect in picture_effects(channels == 4):
        found = []
        for device in (native, GlPictures(context)):
            easel = Easel(device, FORMATS[2], Look(effect, strength=0.8, mirror=True), fit, picture=layout)
            easel.show(smooth_planes(FORMATS[2]), output)
            found.append(device.read(easel.target))
        assert difference(*found) <= 1, effect


@one_in(2, "classes", [21, 3])
def test_classes_and_their_legend_are_drawn_as_by_opengl(
    context: Context, native: NativePictures, classes: int
) -> None:
    scores = np.random.default_rng(1).normal(0, 5, (GRID[1], GRID[0], classes)).astype(np.float32)
    effect: Effect = "classes"
    ours, theirs = (
        Easel(device, FORMATS[2], Look(effect), "crop", scores=scores).drawn()
        for device in (native, GlPictures(context))
    )
    apart = np.abs(ours.astype(int) - theirs).max(-1)
    assert (apart <= 1).mean() > 0.9999, "where two scores are equal but for rounding either class is right"


@one_in(3, "size", [(149, 101), (640, 480), (18, 6), (33, 33)], ids=str)
@pytest.mark.parametrize("make", [i420, nv12, gray])
def test_codes_are_those_of_opengl(context: Context, native: NativePictures, size: ImageSize, make: object) -> None:
    format: PictureFormat = make(size)  # type: ignore[operator]
    rgba = noise(size)
    rgba[..., 3] = np.random.default_rng(3).integers(0, 256, size[::-1])
    ours = native.target(size)
    ours.pixels[...] = rgba[::-1]
    found = NativeYuv(native, format).converted(ours)
    theirs, pictures = YuvPicture(context, format), GlPictures(context)
    target = pictures.target(size)
    target._texture.write(np.ascontiguousarray(rgba[::-1]).tobytes())
    theirs.draw(target)
    ring = ReadbackRing[int](context, size_bytes(format))
    ring.request_codes(0, theirs.framebuffer, theirs.size)
    ((_, data),) = ring.drain()
    assert np.abs(found.astype(int) - data).max() <= 1
    assert (found != data).mean() < 0.001
    for part in (ring, theirs, target):
        part.release()


@one_in(3, ("lanes", "effect"), [(lanes, effect) for lanes in (4, 8) for effect in ("replace", "blur")])
def test_narrower_vectors_draw_the_same(native: NativePictures, lanes: int, effect: Effect) -> None:
    narrow, look = NativePictures(1, target=target_of(lanes)), Look(effect, light_wrap=0.5)
    ours, theirs = (Easel(each, FORMATS[2], look, refinement=REFINED).drawn(2) for each in (narrow, native))
    assert difference(ours, theirs) <= 1
    narrow.release()


def test_over_a_clip_refined_masks_stay_those_of_opengl(context: Context, native: NativePictures) -> None:
    frames, apart = 24, list[float]()
    with FileSource(CLIP, 60, 60 + frames - 1) as source:
        size = source.format.upright_size
        easels = [
            Easel(device, source.format, Look("mask"), "stretch", REFINED) for device in (native, GlPictures(context))
        ]
        for frame in source:
            cells = cv2.resize(frame.rgba[..., 1], GRID, interpolation=cv2.INTER_AREA)
            output = np.asarray(cells < 110, np.float32)  # flickers, as thresholds feed back
            for easel in easels:
                easel.show(frame.picture, output, frame.index)
            masks = [easel.device.read(easel.target)[..., 0].astype(int) for easel in easels]
            apart.append(float((np.abs(masks[0] - masks[1]) <= 1).mean()))
    assert len(apart) == frames
    assert size == (640, 480)
    assert min(apart) >= 0.999


def test_a_grid_of_cameras_is_drawn_as_by_opengl(context: Context, native: NativePictures) -> None:
    grid = PictureGrid((120, 90), (CellPlace(0, 0, 100, 67), CellPlace(103, 5, 12, 9), CellPlace(20, 70, 40, 20)))
    found = []
    for device in (native, GlPictures(context)):
        easels = [Easel(device, FORMATS[2], Look("color")) for _ in grid.places]
        for number, easel in enumerate(easels):
            easel.show(smooth_planes(FORMATS[2], number), soft_disc(number))
        cameras = [DrawnCamera(each.canvas.drawing, easels[0].target, each.backdrop, lambda: 1) for each in easels]
        target = device.target(grid.size)
        GridCanvas(device, cameras, target, grid).stage.run(VideoFrame(0, 0, 0.0, smooth_planes(FORMATS[2])))
        found.append(device.read(target))
    assert difference(*found) <= 1
    assert found[0][:, 101:102].max() == 0, "nothing is drawn beside a place"


def test_a_picture_goes_up_once_where_opengl_shows_it(context: Context) -> None:
    device = NativePictures(1, context)
    easel = Easel(device, FORMATS[0], Look("replace"))
    for index in range(2):
        easel.show(smooth_planes(FORMATS[0], index), soft_disc(index))
        shown = on_opengl(easel.target)
        assert difference(GlPictures(context).read(shown), device.read(easel.target)) == 0
    assert on_opengl(easel.target) is shown
    easel.target.release()
    device.release()


def test_narrow_places_of_a_grid_go_up_where_opengl_shows_them(context: Context) -> None:
    device = NativePictures(1, context)
    source, grid = device.target((8, 40)), device.target((60, 40))
    for level in (90, 200):
        source.pixels[...] = level
        device.copy(source, grid, (25, 0, 8, 40))
        assert difference(GlPictures(context).read(on_opengl(grid)), device.read(grid)) == 0
    device.clear(grid)
    assert GlPictures(context).read(on_opengl(grid)).max() == 0
    grid.release()
    device.release()


def test_steps_that_were_recorded_read_what_is_there_now(native: NativePictures) -> None:
    easel = Easel(native, FORMATS[0], Look("color"))
    rgba = [np.full((SIZE[1], SIZE[0], 4), level, np.uint8) for level in (40, 200, 90, 10, 77)]
    for index, level in enumerate(rgba):
        easel.show(rgba_picture(level), np.ones(GRID[::-1], np.float32), index)
        assert native.read(easel.target)[..., :3].max() == level.max()


def test_nothing_keeps_the_memory_of_what_was_released(native: NativePictures) -> None:
    held = []
    for effect in ("blur", "replace"):
        easel = Easel(native, FORMATS[2], Look(effect, feather=3.0), refinement=REFINED)
        for index in range(4):
            easel.show(smooth_planes(FORMATS[2], index), soft_disc(), index)
            native.finish()
        held.append(weakref.ref(native.found(easel.target.texture).array))
        for part in (easel.canvas, easel.refiner, easel.backdrop, easel.target, easel.frame):
            if part:
                part.release()
        del easel, part
    gc.collect()
    assert not any(each() is not None for each in held)


def test_code_of_sizes_that_are_gone_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_pictures, "_MOST_KERNELS", 3)
    shader, form = ReadShader("out vec4 o; uniform float x; void main() { o = vec4(x); }"), ImageForm("u8", 4)
    device = NativePictures(1)
    kept = device.kernel(shader, {}, form)
    made = []
    for number in range(5):
        other = ReadShader(f"out vec4 o; void main() {{ o = vec4({number}.0); }}")
        made.append(weakref.ref(device.kernel(other, {}, form)))
        assert device.kernel(shader, {}, form) is kept
    assert [each() is None for each in made] == [True, True, True, False, False]
    device.release()


def test_a_hard_mask_stays_hard(native: NativePictures) -> None:
    easel = Easel(native, rgba_format(GRID), Look("mask"))
    mask = disc(GRID, 8)
    easel.show(rgba_picture(noise(GRID)), mask)
    assert np.array_equal(native.read(easel.target)[..., 0], (255 * mask).astype(np.uint8))


def test_what_is_too_large_or_of_another_shape_is_refused(native: NativePictures) -> None:
    with pytest.raises(DeviceError, match="40000x10 pixels are too many"):
        native.target((40000, 10))
    planes = native.planes(rgba_format(SIZE))
    with pytest.raises(ValueError, match="a frame of 149x101 rgba pixels is expected"):
        planes.upload(rgba_picture(noise((20, 10))))
    with pytest.raises(ValueError, match="is not kept"):
        planes.textures_of(1)


def test_what_is_drawn_to_be_ready_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    device, made = NativePictures(1), list[weakref.ref[object]]()
    easel, target = Easel(device, FORMATS[0], Look("tint")), device.target

    def noted(size: ImageSize) -> NativeTarget:
        new = target(size)
        made.append(weakref.ref(device.found(new.texture).array))
        return new

    monkeypatch.setattr(device, "target", noted)
    easel.canvas.prepare()
    gc.collect()
    assert len(made) == 1
    assert made[0]() is None
    device.release()
