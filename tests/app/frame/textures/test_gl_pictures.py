"""OpenGL as what draws pictures: clearing, copying and memory, and who holds it."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from tests.helpers.on_device import Bytes, pixels_of, target_of
from texelflow.app.frame.inference.backends import ComputeBackend
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.frame.textures.picture_device import PixelRectangle
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange


def noise(width: int, height: int) -> Bytes:
    return np.random.default_rng(0).integers(0, 256, (height, width, 4), np.uint8)


def shown(context: Context, target: OffscreenTarget) -> Bytes:
    """The top row first."""
    return pixels_of(context, target.framebuffer, target.size)[::-1]


def test_clears_all_of_a_target(context: Context) -> None:
    target = target_of(context, noise(7, 5))
    GlPictures(context).clear(target)
    assert not shown(context, target).any()
    target.release()


def test_copies_a_picture_of_the_same_size_as_it_is(context: Context) -> None:
    pictures, rgba = GlPictures(context), noise(5, 3)
    source, target = target_of(context, rgba), pictures.target((12, 9))
    pictures.clear(target)
    pictures.copy(source, target, (4, 1, 5, 3))
    expected = np.zeros((9, 12, 4), np.uint8)
    expected[5:8, 4:9] = rgba  # rows 1 to 3 from the bottom
    assert np.array_equal(shown(context, target), expected)
    source.release()
    target.release()


@pytest.mark.parametrize(("place", "columns"), [((2, 1, 8, 4), 8), ((0, 0, 2, 6), 2)])
def test_interpolates_where_the_size_is_another_one(context: Context, place: PixelRectangle, columns: int) -> None:
    """A ramp along the rows stays one: halfway between two pixels is their mean."""
    ramp = np.repeat(np.arange(0, 160, 40, np.uint8)[None, :, None], 4, 2).repeat(2, 0)
    pictures = GlPictures(context)
    source, target = target_of(context, ramp), pictures.target((12, 6))
    pictures.copy(source, target, place)
    left, bottom, width, height = place
    found = pixels_of(context, target.framebuffer, target.size)[bottom : bottom + height, left : left + width, 0]
    places = (np.arange(columns) + 0.5) * 4 / columns - 0.5
    assert np.abs(found - np.clip(places, 0, 3) * 40.0).max() <= 1
    source.release()
    target.release()


def test_writes_at_the_beginning_of_a_range_alone(context: Context) -> None:
    pictures = GlPictures(context)
    span = pictures.memory((4, 2), 32)
    pictures.write(span, np.arange(8, dtype=np.float32))
    pictures.write(BufferRange(span.buffer, 8, 24), np.array([-1, -2], np.float32))
    assert read_buffer(context, span).view(np.float32).tolist() == [0, 1, -1, -2, 4, 5, 6, 7]
    pictures.free(span)


def test_what_draws_is_in_the_context_that_there_is(context: Context) -> None:
    """After a context is lost the next one takes its place."""
    compute, other = ComputeBackend("cpu", context), Mock(renderer="the next one")
    assert isinstance(compute.pictures, GlPictures)
    assert compute.pictures.context is context
    assert compute.pictures is compute.pictures
    renewed = replace(compute, context=other)
    assert isinstance(renewed.pictures, GlPictures)
    assert renewed.pictures.context is other
    assert renewed.drawn_by == "the next one"
    without = replace(compute, context=None)
    assert without.pictures is None
    assert without.drawn_by == "nothing is drawn"
