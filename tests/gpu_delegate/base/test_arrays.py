"""Arrays of every layout and of other packages, as NumPy has them: values are right, and memory is shared."""

import array
import ctypes
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.exporters import OnlyDlpack
from texelflow.gpu_delegate.base.arrays import ArrayError, as_array, as_input, as_target

DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool", "complex64")
IMAGE = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
_MA: Any = np.ma  # has no types
MASKED = _MA.masked_less(IMAGE, 9)


class ByInterface:
    """Gives its memory by __array_interface__."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values
        self.__array_interface__ = values.__array_interface__


class ByMethod:
    """Gives its memory by __array__."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self._values


class OnGpu:
    """Says that it lies in CUDA's memory, without DLPack."""

    __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (0, False), "version": 3}  # noqa: RUF012


@st.composite
def laid_out(draw: st.DrawFn) -> npt.NDArray[Any]:
    """An array of any type and byte order, in any order of axes and of rows, at any address."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES))).newbyteorder(draw(st.sampled_from("<>")))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    steps = [draw(st.sampled_from((1, 2, 3, -1, -2))) for _ in shape]
    axes = draw(st.permutations(range(len(shape))))
    stored = [size * abs(step) for size, step in zip(shape, steps, strict=True)]
    offset = draw(st.integers(0, 3))
    numbers = np.arange(int(np.prod(stored)) * dtype.itemsize + offset, dtype=np.uint8) % 64
    whole: npt.NDArray[Any] = np.ndarray([stored[axis] for axis in axes], dtype, numbers, offset)
    turned = whole.transpose(np.argsort(axes))
    return turned[tuple(slice(None, None, step) for step in steps)] if shape else turned


@given(laid_out(), st.booleans())
def test_every_layout_has_its_values_and_its_memory(values: npt.NDArray[Any], is_read_only: bool) -> None:
    values.flags.writeable = not is_read_only
    for given_as in (values, ByInterface(values), ByMethod(values)):
        found = as_array(given_as)
        assert found.dtype.isnative
        assert found.flags.aligned
        assert found.shape == values.shape
        assert found.dtype == values.dtype.newbyteorder("=")
        assert found.tolist() == values.tolist()
        if values.size and values.dtype.isnative and values.flags.aligned:
            assert np.shares_memory(found, values)


@given(laid_out())
def test_dlpack_is_taken_as_it_lies(values: npt.NDArray[Any]) -> None:
    values = as_array(values)
    try:
        values.__dlpack__()
    except BufferError:  # what NumPy does not give: a stride that is no multiple of the size
        return
    found = as_array(OnlyDlpack(values))
    assert found.tolist() == values.tolist()
    assert not values.size or np.shares_memory(found, values)


@pytest.mark.parametrize("code", list("bBhHiIlLqQfd"))
def test_buffers_have_their_types(code: str) -> None:
    own = array.array(code, [1, 2, 3])
    for given_as in (own, memoryview(own), memoryview(own)[::-1]):
        found = as_array(given_as)
        assert found.tolist() == list(given_as)
        assert found.dtype == np.dtype(code)
        assert np.shares_memory(found, np.asarray(own))
    text = bytes(range(10))
    assert as_array(bytearray(text)).dtype == as_array(text).dtype == np.uint8
    assert as_array(IMAGE.data).shape == IMAGE.shape
    assert as_array((ctypes.c_float * 2)(1, 2)).tolist() == [1, 2]


def test_bytes_hold_the_values_of_a_tensor() -> None:
    values = np.random.default_rng(1).random((2, 3)).astype(np.float32)
    for given_as in (
        values.tobytes(),
        bytearray(values),
        memoryview(values.tobytes()),
        array.array("f", values.ravel().tolist()),
    ):
        np.testing.assert_array_equal(as_input(given_as, "x", np.float32, (1, 2, 3)), values[None])
    shifted = memoryview(b"." + values.tobytes())[1:]
    np.testing.assert_array_equal(as_input(shifted, "x", "float32", (2, 3)), values)
    spread = bytearray(2 * values.nbytes)
    spread[::2] = values.tobytes()
    np.testing.assert_array_equal(as_input(memoryview(spread)[::2], "x", "float32", (2, 3)), values)
    with mmap.mmap(-1, values.nbytes) as mapped:
        mapped.write(values.tobytes())
        np.testing.assert_array_equal(as_input(mapped, "x", "float32", (2, 3)).copy(), values)


@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 5, 7, 3), (1, 5, 1, 7, 3)])
def test_axes_of_one_may_be_missing(shape: tuple[int, ...]) -> None:
    for own in (IMAGE, IMAGE[None], np.asfortranarray(IMAGE)):
        found = as_input(own, "x", np.uint8, shape)
        assert found.shape == shape
        assert np.shares_memory(found, own)
        np.testing.assert_array_equal(found.reshape(IMAGE.shape), IMAGE)


def test_numbers_and_lists_take_the_tensors_type() -> None:
    assert as_input([[1, 2.5]], "x", "float32", (1, 2)).dtype == np.float32
    assert as_input([1, 2], "x", "int8", (2,)).tolist() == [1, 2]
    assert as_input(3, "x", "float32", (1,)).tolist() == [3]
    assert as_input((True, False), "x", "bool", (2,)).tolist() == [True, False]
    assert as_input(np.arange(3), "x", "float32", (3,)).dtype == np.float32
    assert as_input(np.arange(3) / 2, "x", "float16", (3,)).tolist() == [0, 0.5, 1]


def test_open_sizes_may_be_any() -> None:
    for own, shape in ((IMAGE, (1, 5, 7, 3)), (IMAGE[None], (1, 5, 7, 3)), (np.stack([IMAGE] * 2), (2, 5, 7, 3))):
        assert as_input(own, "x", np.uint8, (-1, 5, -1, 3)).shape == shape
    with pytest.raises(ArrayError, match=r"x is \[1, any, any, 3\], not \[2, 5, 7, 3\]"):
        as_input(np.stack([IMAGE] * 2), "x", np.uint8, (1, -1, -1, 3))


@pytest.mark.parametrize(
    ("value", "dtype", "shape", "line"),
    [
        (IMAGE, "float32", (1, 5, 7, 3), "image.astype('float32') / 255"),
        (IMAGE > 9, "float32", (1, 5, 7, 3), "x is float32, not bool; write array.astype('float32')"),
        (IMAGE, "int8", (1, 5, 7, 3), "x is int8, not uint8; where 0 to 255 are meant as -128 to 127"),
        (IMAGE, "int16", (1, 5, 7, 3), "x is int16, not uint8; write array.astype('int16')"),
        ([IMAGE, IMAGE], "float32", (2, 5, 7, 3), "x is float32, not uint8"),
        (IMAGE.astype("float32"), "int8", (1, 5, 7, 3), "scale + zero_point).astype('int8')"),
        (IMAGE, "uint8", (1, 10, 14, 3), "x is [1, 10, 14, 3], not [5, 7, 3]; resize the picture to 14x10"),
        (np.moveaxis(IMAGE, -1, 0), "uint8", (1, 5, 7, 3), "channels come last"),
        (np.zeros((5, 7, 4), np.uint8), "uint8", (1, 5, 7, 3), "array[..., :3]"),
        (IMAGE[..., 0], "uint8", (1, 5, 7, 3), "colors of gray"),
        (np.zeros(4, np.uint8), "uint8", (2, 2), "x is [2, 2], not [4]"),
        ([300], "uint8", (1,), "0 to 255, not 300 to 300"),
        ([1.5], "int32", (1,), "x is int32, not float64"),
        ([[1], [2, 3]], "float32", (2, 2), "NumPy makes no array"),
        ([None], "float32", (1,), "NumPy makes no numbers"),
        (None, "float32", (1,), "x is NoneType, not an array"),
        ("cat.jpg", "float32", (1,), "x is str, not an array; open the file"),
        (Path("cat.jpg"), "float32", (1,), "Path, not an array; open the file"),
        ({"x": 1}, "float32", (1,), "x is dict, not an array"),
        (object(), "float32", (1,), "NumPy makes no numbers"),
        (MASKED, "uint8", IMAGE.shape, "write array.filled(0)"),
        (OnlyDlpack(IMAGE, 2), "uint8", IMAGE.shape, "on a device of CUDA; bring it to RAM: tensor.cpu()"),
        (OnlyDlpack(IMAGE, 99), "uint8", IMAGE.shape, "on a device of DLPack's 99"),
        (OnGpu(), "float32", (1,), "on a device of CUDA"),
        (b"1234567", "float32", (2,), "x is float32, not uint8"),
    ],
)
def test_what_does_not_fit_ends_in_one_line(value: object, dtype: str, shape: tuple[int, ...], line: str) -> None:
    with pytest.raises(ArrayError) as caught:
        as_input(value, "x", dtype, shape)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_released_buffer_and_an_exporter_that_fails_end_in_one_line() -> None:
    gone = memoryview(b"1234")
    gone.release()

    class Fails(OnlyDlpack):
        def __dlpack__(self, **options: Any) -> Any:
            raise RuntimeError("two\nlines")

    for value in (gone, Fails(IMAGE)):
        with pytest.raises(ArrayError, match="x is ") as caught:
            as_array(value, "x")
        assert "\n" not in str(caught.value)


def test_targets_share_the_callers_memory() -> None:
    values = np.zeros((2, 3), np.float32)
    strided = np.zeros((2, 6), np.float32)[:, ::2]
    for target in (values, strided, np.asfortranarray(values), values.data):
        as_target(target, "out", np.float32, (2, 3))[...] = 7
        assert (np.asarray(target) == 7).all()
    flat = bytearray(24), array.array("f", [0] * 6)
    as_target(flat[1], "out", np.float32, (2, 3))[...] = 7
    assert list(flat[1]) == [7] * 6
    for wrong, line in (
        (flat[0], "takes float32 [2, 3], not uint8 [24]"),
        (bytes(24), "cannot be written"),
        (np.broadcast_to(np.float32(0), (2, 3)), "cannot be written; give numpy.empty([2, 3], 'float32')"),
        (np.zeros((3, 2), np.float32), "takes float32 [2, 3], not float32 [3, 2]"),
        (np.zeros((2, 3), ">f4"), "takes float32"),
        (OnlyDlpack(values), "cannot be written" if np.lib.NumpyVersion(np.__version__) < "2.1.0" else ""),
        ([[0.0] * 3] * 2, "list, whose memory cannot be written"),
    ):
        if line:
            with pytest.raises(ArrayError) as caught:
                as_target(wrong, "out", np.float32, (2, 3))
            assert line in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "dtype", "shape"),
    [
        ("1", "uint8", (5, 7)), ("L", "uint8", (5, 7)), ("LA", "uint8", (5, 7, 2)), ("P", "uint8", (5, 7, 3)),
        ("RGB", "uint8", (5, 7, 3)), ("RGBA", "uint8", (5, 7, 4)), ("CMYK", "uint8", (5, 7, 3)),
        ("YCbCr", "uint8", (5, 7, 3)), ("HSV", "uint8", (5, 7, 3)), ("I", "int32", (5, 7)), ("F", "float32", (5, 7)),
        ("I;16", "uint16", (5, 7)), ("I;16B", "uint16", (5, 7)),
    ],
)  # fmt: skip
def test_images_of_pillow_are_what_they_look_like(mode: str, dtype: str, shape: tuple[int, ...]) -> None:
    pillow = pytest.importorskip("PIL.Image")
    gray = pillow.fromarray(IMAGE[..., 0])
    image = gray.convert("I").convert(mode) if mode.startswith("I;16") else pillow.fromarray(IMAGE).convert(mode)
    found = as_array(image)
    assert (found.dtype, found.shape) == (np.dtype(dtype), shape)
    if mode == "RGB":
        np.testing.assert_array_equal(found, IMAGE)
    elif mode == "1":
        np.testing.assert_array_equal(found, np.asarray(image) * 255)
    elif mode.startswith("I;16"):
        np.testing.assert_array_equal(found, IMAGE[..., 0])
    elif shape[-1] == 3:
        np.testing.assert_array_equal(found, np.asarray(image.convert("RGB")))
    with pytest.raises(ArrayError, match="memory cannot be written"):
        as_target(image, "out", dtype, shape)
