"""Covers over faces: nothing shows through, nothing fine is left, by OpenGL and natively alike, on canvases too."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from tests.helpers.markers import one_in
from tests.helpers.pictures import Image, noise
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.drawing.found_picture import FoundFrames
from texelflow.app.frame.drawing.hidden_faces import HiddenFaces
from texelflow.app.frame.looks.effects import HIDING_FACES, Effect, found_effects
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.frame.textures.picture_device import PictureDevice
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import ImageSize
from texelflow.app.tracking.face_covers import FaceCover
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.llvm import compiler

pytestmark = pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")

SIZE = (161, 121)
COVERS = (
    FaceCover(60, 50, 30, 38), FaceCover(80, 60, 25, 25), FaceCover(0, 121, 20, 30), FaceCover(161, -3, 9, 14),
    FaceCover(140.5, 90.25, 6, 6), FaceCover(-300, 20, 6, 6),
)  # fmt: skip


@pytest.fixture(scope="module")
def native() -> Iterator[NativePictures]:
    device = NativePictures(2)
    yield device
    device.release()


def hidden(
    device: PictureDevice, rgba: Image, covers: Sequence[FaceCover], blurred: bool, mirror: bool = False
) -> Image:
    """Covers alone, over nothing."""
    size = (rgba.shape[1], rgba.shape[0])
    frame, target = device.planes(rgba_format(size)), device.target(size)
    frame.upload(rgba_picture(rgba))
    device.clear(target)
    faces = HiddenFaces(device, frame)
    faces.draw(covers, blurred, target, size[1], mirror)
    picture = device.read(target)
    for part in (faces, target, frame):
        part.release()
    return picture


@pytest.mark.gl
@one_in(2, ("blurred", "mirror"), [(True, False), (False, True), (True, True), (False, False)])
def test_they_are_the_same_by_opengl_and_natively(
    context: Context, native: NativePictures, blurred: bool, mirror: bool
) -> None:
    rgba = noise(SIZE)
    ours, theirs = (hidden(each, rgba, COVERS, blurred, mirror) for each in (native, GlPictures(context)))
    assert np.abs(ours.astype(int) - theirs).max() <= 2, "OpenGL mixes bytes, and its halves are halves"
    assert ours.any()


@pytest.mark.parametrize("blurred", [True, False])
def test_all_of_a_cover_is_covered_and_a_little_around_it_softly(native: NativePictures, blurred: bool) -> None:
    alpha = hidden(native, noise(SIZE), COVERS, blurred)[..., 3]
    y, x = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
    reach = np.min(
        [(abs(x - c.center_x) / c.half_width) ** 3 + (abs(y - c.center_y) / c.half_height) ** 3 for c in COVERS], axis=0
    )
    assert (alpha[reach <= 1] == 255).all()
    assert (alpha[reach >= 1.12**3] == 0).all()
    assert ((alpha > 0) & (alpha < 255)).any()


@pytest.mark.parametrize("blurred", [True, False])
@pytest.mark.parametrize("waves", [4.5, 6, 11, 20])
def test_nothing_finer_than_cells_is_left(native: NativePictures, blurred: bool, waves: float) -> None:
    """Of a face 100 pixels wide: so many waves across it, black and white, are as a gray face, or as false waves."""
    cover, x = FaceCover(160, 120, 75, 87.5), np.arange(320) / 100
    wave = np.rint(127.5 + 127 * np.sin(2 * np.pi * waves * x)).astype(np.uint8)
    rgba = np.repeat(np.repeat(wave[None, :, None], 240, 0), 4, 2)
    row = hidden(native, rgba, [cover], blurred)[120, 110:210, 0].astype(float)
    if blurred:
        assert np.ptp(row) <= 2
    else:
        assert len({tuple(row[place : place + 2]) for place in range(99) if row[place] != row[place + 1]}) <= 10


@dataclass
class Things:
    """What was found, as a finder's stage has it."""

    note = ""
    guards = True

    age: int = 0
    findings: tuple[Finding, ...] = ()
    hides: tuple[FaceCover, ...] = ()

    def found(self, age: int = 0) -> tuple[Finding, ...]:
        return self.findings

    def faces(self, age: int = 0) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.kind == "face")

    def covers(self, age: int = 0, open_faces: Collection[int] = ()) -> tuple[FaceCover, ...]:
        return tuple(each for each in self.hides if each.track not in open_faces)


class Others(Things):
    """Things that were found by who does not look for faces."""

    guards = False


def of_canvas(
    device: PictureDevice, rgba: Image, things: Things | None, effect: Effect, size: ImageSize,
    crop: FrameRegion | None = None, look: Look | None = None,
) -> Image:  # fmt: skip
    frame, target = device.planes(rgba_format(size)), device.target(size)
    frame.upload(rgba_picture(rgba))
    choice = ChosenLook(look or Look(effect))
    canvas = Canvas(device, FoundFrames(frame), target, "stretch", choice, things=things)
    assert canvas.effects == found_effects()
    canvas.prepare()
    canvas.show_parts([crop])
    canvas.stage.run(VideoFrame(0, 0, 0.0, rgba_picture(rgba)))
    picture = device.read(canvas.shown())
    canvas.release()
    return picture


def test_a_canvas_draws_frames_with_what_was_found_and_nothing_else_where_nothing_was(native: NativePictures) -> None:
    rgba = noise(SIZE)
    rgba[..., 3] = 255
    things = Things(findings=(Finding("face", 1, FrameRegion(80, 60, 40, 40)),), hides=(FaceCover(80, 60, 30, 30),))
    pictures = {effect: of_canvas(native, rgba, things, effect, SIZE) for effect in found_effects()}
    assert len({picture.tobytes() for picture in pictures.values()}) == 4
    np.testing.assert_array_equal(pictures["none"], rgba)
    for effect in found_effects():
        np.testing.assert_array_equal(of_canvas(native, rgba, Things(), effect, SIZE), rgba)


@pytest.mark.parametrize("things", [None, Others(findings=(Finding("hand", 1, FrameRegion(80, 60, 40, 40)),))])
@pytest.mark.parametrize("effect", HIDING_FACES)
def test_where_nobody_looks_for_faces_all_of_the_frame_is_hidden(
    native: NativePictures, things: Things | None, effect: Effect
) -> None:
    rgba = noise(SIZE)
    rgba[..., 3] = 255
    assert (of_canvas(native, rgba, things, effect, SIZE)[..., :3] != rgba[..., :3]).any(-1).mean() > 0.95


@pytest.mark.parametrize("effect", HIDING_FACES)
def test_faces_are_hidden_in_the_frame_beside_the_picture_too(native: NativePictures, effect: Effect) -> None:
    rgba = noise(SIZE)
    rgba[..., 3] = 255
    things = Things(hides=(FaceCover(80, 60, 30, 30),))
    beside = of_canvas(native, rgba, things, effect, SIZE, look=Look(effect, side_by_side=True, mirror=True))
    left, right = beside[:, : SIZE[0]], beside[:, SIZE[0] :]
    np.testing.assert_array_equal(left, right)
    assert (left[50:70, SIZE[0] - 90 : SIZE[0] - 70, :3] != rgba[50:70, 70:90, :3][:, ::-1]).any(-1).mean() > 0.9


def test_chosen_faces_are_open_and_numbers_are_drawn_where_they_are_asked_for(native: NativePictures) -> None:
    rgba = np.full((SIZE[1], SIZE[0], 4), 255, np.uint8)
    rgba[::2, :, :3] = 0
    face = Finding("face", 0.9, FrameRegion(80, 60, 40, 40), track=3)
    things = Things(findings=(face,), hides=(FaceCover(80, 60, 30, 30, track=3),))
    hidden_frame = of_canvas(native, rgba, things, "blur-faces", SIZE)
    shown = of_canvas(native, rgba, things, "blur-faces", SIZE, look=Look("blur-faces", open_faces=frozenset({3})))
    named = of_canvas(native, rgba, things, "blur-faces", SIZE, look=Look("blur-faces", face_numbers=True))
    np.testing.assert_array_equal(shown, rgba)
    assert (hidden_frame != rgba).any()
    assert (named != hidden_frame).any()
    assert (named[..., 0] == named[..., 2]).mean() < (hidden_frame[..., 0] == hidden_frame[..., 2]).mean()


def test_a_senseless_cover_hides_the_whole_frame(native: NativePictures) -> None:
    rgba = noise(SIZE)
    rgba[..., 3] = 255
    things = Things(hides=(FaceCover(1e10, 50, 1.1e10, 1e10),))
    for effect in HIDING_FACES:
        hidden_frame = of_canvas(native, rgba, things, effect, SIZE)
        assert np.ptp(hidden_frame[..., 0].astype(int)) < 0.7 * np.ptp(rgba[..., 0].astype(int))
        assert (hidden_frame != rgba)[..., 0].mean() > 0.9


def test_a_part_of_the_frame_has_its_covers_where_its_faces_are(native: NativePictures) -> None:
    rgba = np.full((120, 160, 4), 255, np.uint8)
    rgba[50:70, 90:110, :3] = 0
    things = Things(hides=(FaceCover(100, 60, 18, 18),))
    crop = FrameRegion(100, 60, 80, 60)
    assert of_canvas(native, rgba, Things(), "none", (160, 120), crop)[60, 80, 0] == 0
    picture = of_canvas(native, rgba, things, "pixelate-faces", (160, 120), crop)
    blurred = of_canvas(native, rgba, things, "blur-faces", (160, 120), crop)
    assert blurred[60, 80, 0] > 0
    assert (picture[0, 0] == 255).all()
    dark = np.argwhere(picture[..., 0] < 255)
    assert (dark.min(0) >= 18).all(), "it is twice as large"
    assert (np.abs(dark.mean(0) - [60, 80]) < 4).all()
