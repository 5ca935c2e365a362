"""Weights and maps in the order in which kernels read them, against loops that follow the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import Floats
from texelflow.gpu_delegate.model.packing import (
    Blob,
    convolution_blocks,
    depthwise_taps,
    from_phwc4,
    pad_lanes,
    phwc4,
    vector_texels,
)

SIZES = st.integers(1, 5)
CHANNELS = st.integers(1, 13)


def numbered(*shape: int) -> Floats:
    """Values that are all different and none of them zero, so that padding cannot pass for one."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


@given(SIZES, SIZES, CHANNELS)
def test_phwc4_puts_each_channel_in_its_lane(height: int, width: int, channels: int) -> None:
    image = numbered(height, width, channels)
    texels = phwc4(image)
    assert texels.shape == (-(-channels // 4), height, width, 4)
    assert texels.flags.c_contiguous
    for index in np.ndindex(image.shape):
        y, x, c = index
        assert texels[c // 4, y, x, c % 4] == image[index]
    assert np.count_nonzero(texels) == image.size
    assert np.array_equal(from_phwc4(texels, channels), image)


@given(CHANNELS, SIZES, SIZES, CHANNELS)
def test_convolution_blocks(outputs: int, height: int, width: int, inputs: int) -> None:
    weights = numbered(outputs, height, width, inputs)
    blocks = convolution_blocks(weights)
    assert blocks.shape == (-(-inputs // 4), height * width, -(-outputs // 4), 4, 4)
    for o, y, x, i in np.ndindex(weights.shape):
        assert blocks[i // 4, y * width + x, o // 4, i % 4, o % 4] == weights[o, y, x, i]
    assert np.count_nonzero(blocks) == weights.size


@given(SIZES, SIZES, CHANNELS)
def test_depthwise_taps(height: int, width: int, channels: int) -> None:
    weights = numbered(1, height, width, channels)
    taps = depthwise_taps(weights)
    assert taps.shape == (-(-channels // 4), height * width, 4)
    for _, y, x, c in np.ndindex(weights.shape):
        assert taps[c // 4, y * width + x, c % 4] == weights[0, y, x, c]
    assert np.count_nonzero(taps) == weights.size


@given(CHANNELS)
def test_vectors_are_filled_up_with_zeros(channels: int) -> None:
    texels = vector_texels(numbered(channels))
    assert texels.shape == (-(-channels // 4), 4)
    assert texels.reshape(-1)[:channels].tolist() == list(range(1, channels + 1))
    assert not texels.reshape(-1)[channels:].any()


@pytest.mark.parametrize("axis", [0, 1])
def test_pad_lanes_leaves_multiples_of_four_alone(axis: int) -> None:
    data = numbered(4, 8)
    assert np.array_equal(pad_lanes(data, axis), data)


def test_blob_remembers_where_its_pieces_are() -> None:
    blob = Blob()
    positions = [blob.add(numbered(2, 3, 4)), blob.vector(numbered(5)), blob.add(numbered(1, 4))]
    assert positions == [0, 6, 8]
    assert blob.data().shape == (9, 4)
    assert np.array_equal(blob.data()[6], [1, 2, 3, 4])
    assert np.array_equal(blob.data()[7], [5, 0, 0, 0])


def test_an_empty_blob_has_no_texels() -> None:
    assert Blob().data().shape == (0, 4)
