"""Planes of CPU kernels: what goes in comes out, padding channels are zeros, and planes spread over a cache's sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.model.layout import LINE_FLOATS, PLAIN, MapShape, plane_floats
from texelflow.gpu_delegate.targets.llvm.planes import from_planes, planes_of, reserve_floats, tensor_floats, to_planes

SIZES = st.integers(1, 9)


@given(batch=st.integers(1, 3), height=SIZES, width=SIZES, channels=SIZES)
def test_planes_and_back(batch: int, height: int, width: int, channels: int) -> None:
    shape = MapShape(batch, height, width, channels)
    values = np.arange(1, 1 + batch * height * width * channels, dtype=np.float32)
    values = values.reshape(batch, height, width, channels)
    data = to_planes(values, shape)
    assert data.size == tensor_floats(shape)
    assert data.ctypes.data % 64 == 0
    assert np.array_equal(from_planes(data, shape), values)
    assert not planes_of(data, shape)[channels:].any()
    if shape.is_vector:
        assert np.array_equal(data[:channels], values.ravel())


@pytest.mark.parametrize("pixels", [2, 15, 16, 256, 1024, 4096, 65536])
def test_planes_begin_lines_and_differ_in_sets(pixels: int) -> None:
    stride = plane_floats(MapShape(1, 1, pixels, 8))
    assert stride >= pixels
    assert stride % LINE_FLOATS == 0
    assert len({plane * stride // LINE_FLOATS % 64 for plane in range(64)}) == 64


def test_a_plain_output_is_one_plane() -> None:
    shape = MapShape(1, 3, 5, 1)
    data = reserve_floats(tensor_floats(shape, PLAIN))
    planes_of(data, shape, PLAIN)[0] = np.arange(15).reshape(3, 5)
    assert data.size < tensor_floats(shape)
    assert np.array_equal(from_planes(data, shape, PLAIN)[0, :, :, 0], np.arange(15).reshape(3, 5))
