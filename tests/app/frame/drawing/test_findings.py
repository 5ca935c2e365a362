"""What was found, drawn over pictures: as defined, by OpenGL and natively alike, nothing where nothing was found."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.helpers.markers import one_in
from tests.helpers.pictures import Floats, Image, noise
from texelflow.app.frame.drawing.findings import FindingsCompositor
from texelflow.app.frame.drawing.letters import letters_for
from texelflow.app.frame.drawing.marks import LETTER, PLATE, MarkSize, marks_of
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.frame.textures.picture_device import PictureDevice, Target
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.preprocess import ImageSize
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.llvm import compiler

SIZES: tuple[ImageSize, ...] = ((149, 101), (320, 240), (640, 480), (33, 70))
needs_native = pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")


def points(count: int, size: ImageSize, seed: int = 0) -> Floats:
    """Places in and around a picture, and a depth."""
    random = np.random.default_rng(seed)
    return (random.uniform(-0.1, 1.1, (count, 3)) * [*size, 1]).astype(np.float32)


def everything(size: ImageSize) -> tuple[Finding, ...]:
    """Something of every kind, with each skeleton, in and past the edges."""
    (width, height), certain = size, np.linspace(0, 1, 33, dtype=np.float32)
    return (
        Finding("person", 0.987, points=points(33, size), certainty=certain, skeleton="body", track=1),
        Finding("face", 0.9, points=points(478, size, 1), skeleton="face-mesh-attention", track=12),
        Finding("hand", 0.5, label="left", points=points(21, size, 2), skeleton="hand", track=2),
        Finding("eye", 0.5, label="left", points=points(76, size, 3), skeleton="iris"),
        Finding("person", 0.5, points=points(17, size, 4), skeleton="coco"),
        Finding("face", 0.7, FrameRegion(0.4 * width, 0.5 * height, 0.5 * width, 0.4 * height, 0.3)),
        Finding(
            "hand", 0.7, FrameRegion(0.6 * width, 0.2 * height, 30, 30, 3), points=points(7, size, 5), skeleton="palm"
        ),
        Finding("object", 0.4, FrameRegion(width, height, width / 2, height / 2), label="a très long label of a class"),
        Finding("object", 0.0, FrameRegion(0, 0, 1e-3, 1e-3, -2), label=""),
        *(Finding("class", 0.9 / nth, label=f"class {nth}") for nth in range(1, 8)),
    )


def painted(device: PictureDevice, target: Target, size: ImageSize) -> None:
    """A picture to be drawn over."""
    format_planes = device.image(noise((size[0], size[1])), "noise")
    drawing = device.drawing("scale.frag", {}, {"picture": 0}, "copy")
    device.bind(0, format_planes.texture)
    drawing.set_floats("pixels_per_pixel", 1.0, 1.0)
    drawing.draw(target, size)


def drawn_over(
    device: PictureDevice, findings: Sequence[Finding], size: ImageSize, mirror: bool = False
) -> tuple[Image, Image]:
    """The picture before and after."""
    target, compositor = device.target(size), FindingsCompositor(device, size)
    painted(device, target, size)
    before = device.read(target)
    compositor.set(findings)
    compositor.draw(target, mirror)
    after = device.read(target)
    compositor.release()
    target.release()
    return before, after


def defined(marks: Floats, size: ImageSize, before: Image) -> Floats:
    """The docstring of marks.py: each mark at each pixel."""
    letters = letters_for(size).picture()[..., 0] / 255.0
    y, x = np.mgrid[: size[1], : size[0]] + 0.5
    laid, dark = np.zeros((size[1], size[0], 4)), np.zeros((size[1], size[0]))
    for a, b, c, d, radius, rim, kind, _, *color, alpha in marks.astype(float):
        if kind == LETTER:
            covered = np.zeros_like(dark)
            left, top, u, v, wide, high = map(int, (a, b, c, d, radius, rim))
            for row in range(max(0, top), min(size[1], top + high)):
                for column in range(max(0, left), min(size[0], left + wide)):
                    covered[row, column] = letters[v + row - top, u + column - left]
        else:
            if kind == PLATE:
                apart = np.abs(x - a) - c, np.abs(y - b) - d
                beyond = np.hypot(*np.maximum(apart, 0)) + np.minimum(np.maximum(*apart), 0) - radius
            else:
                length = (c - a) ** 2 + (d - b) ** 2
                part = np.clip(((x - a) * (c - a) + (y - b) * (d - b)) / length, 0, 1) if length > 1e-6 else 0.0
                beyond = np.hypot(x - a - part * (c - a), y - b - part * (d - b)) - radius
                if rim:
                    dark = np.maximum(dark, 0.5 * alpha * np.clip(rim + 0.5 - beyond, 0, 1))
            covered = np.clip(0.5 - beyond, 0, 1)
        covered = (covered * alpha)[..., None]
        laid = (1 - covered) * laid + covered * [*color, 1.0]
    whole = laid[..., 3] + (1 - laid[..., 3]) * dark
    picture = 255 * laid[..., :3] + (1 - whole)[..., None] * before[..., :3]
    return np.asarray(picture, np.float32)


@needs_native
@one_in(3, "size", SIZES)
def test_marks_are_drawn_as_defined_whatever_tile_they_are_in(size: ImageSize) -> None:
    device = NativePictures(2)
    before, after = drawn_over(device, everything(size), size)
    device.release()
    wanted = defined(marks_of(everything(size), MarkSize(size, letters_for(size))), size, before)
    assert np.abs(after[..., :3] - wanted).max() < 1.5
    assert (before != after).any()


@pytest.mark.gl
@needs_native
@one_in(3, ("size", "mirror"), [(size, mirror) for size in SIZES for mirror in (False, True)])
def test_they_are_the_same_by_opengl_and_natively(context: Context, size: ImageSize, mirror: bool) -> None:
    native = NativePictures(2)
    (_, ours), (_, theirs) = (
        drawn_over(each, everything(size), size, mirror) for each in (native, GlPictures(context))
    )
    native.release()
    assert np.abs(ours.astype(int) - theirs).max() <= 2, "OpenGL mixes bytes"


@needs_native
def test_a_frame_with_nothing_in_it_draws_nothing() -> None:
    device = NativePictures(1)
    compositor = FindingsCompositor(device, (64, 48))
    target = device.target((64, 48))
    outside = Finding("object", 0.5, points=np.full((3, 3), np.nan, np.float32))
    for findings in ((), (outside,)):
        compositor.set(findings)
        compositor.draw(target)
    assert compositor.uploaded_bytes == 0
    assert not device.read(target).any()
    device.release()


@needs_native
def test_a_mirrored_picture_has_its_marks_elsewhere_and_its_letters_as_they_are() -> None:
    size = (320, 240)
    box = Finding("object", 0.8, FrameRegion(80, 120, 60, 40), label="WWW")
    letters = [
        mark[mark[:, 6] == LETTER]
        for mark in (marks_of([box], MarkSize(size, letters_for(size)), m) for m in (False, True))
    ]
    np.testing.assert_array_equal(letters[0][:, 2:], letters[1][:, 2:])
    assert letters[0][0, 0] < 160 < letters[1][0, 0]


def test_letters_that_are_not_there_are_question_marks() -> None:
    letters = letters_for((640, 480))
    np.testing.assert_array_equal(letters.places("é\x00\u202e\n"), letters.places("????"))
    assert len({tuple(place) for place in letters.places("".join(map(chr, range(32, 127))))}) == 95
    assert letters.picture().any()
