"""Arrays that a caller has, of whichever package, as NumPy's; without a copy where their layout allows.

Packages are known by what they speak: DLPack (PyTorch, JAX, CuPy), Python's buffers, NumPy's __array_interface__ and
__array__. Pillow's images speak the last one, but not of colors; none of these packages is imported here.
"""

import contextlib
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UsageError

HostArray = npt.NDArray[Any]

_IN_RAM = (1, 3, 11, 13)  # DLPack's devices whose memory NumPy reads: CPU, CUDA host, ROCm host, CUDA managed
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}
# Pillow's modes whose numbers are no colors, or not those that pictures have here, and what each becomes
_MODES = {"1": "L", "La": "LA", "PA": "RGBA", "RGBa": "RGBA"}
_AS_THEY_ARE = ("L", "LA", "RGB", "RGBA", "I", "F")
_BYTES = ("B", "b", "c")  # formats of buffers that say no type
_NOT_NUMPYS = ("bfloat16", "float8", "float4")
_MOST_TEXT = 160


class ArrayError(UsageError, ValueError):
    """Something is no array, or one of another type or shape than the one that is wanted."""


def as_array(value: object, name: str = "the array") -> HostArray:
    """What a caller gives as a NumPy array of its own shape and type, with numbers in the machine's byte order.

    value: an array of NumPy in any layout; what has __dlpack__, in RAM; a Pillow image: (H, W) or (H, W, C), a
    palette's as RGB, or RGBA if it is transparent in places, one of bits as 0 and 255; a buffer of Python (memoryview,
    bytes, array.array), one of bytes as uint8; what has __array_interface__ or __array__; numbers and nested lists.
    name: what it is called in errors.

    It shares the caller's memory, in strides of any sizes, unless the byte order is another one, numbers do not lie at
    multiples of their size, or the package has to make it: images, lists. It may be read-only. Raises ArrayError.
    """
    if isinstance(value, np.ndarray):
        return _in_plain_memory(value, name)
    if _is_image(value):
        return _of_image(value, name)
    if hasattr(value, "__dlpack__"):
        return _in_plain_memory(_of_dlpack(value, name), name)
    if (buffer := _buffer_of(value)) is not None:
        with _in_one_line(value, name):
            return _in_plain_memory(np.asarray(buffer), name)
    if hasattr(value, "__cuda_array_interface__"):
        raise _on_a_device(value, name, "CUDA")
    if isinstance(value, str | os.PathLike):
        raise ArrayError(
            f"{name} is {_of_kind(value)}, not an array; open the file: numpy.asarray(PIL.Image.open(path))"
        )
    if value is None or isinstance(value, dict | set | frozenset):
        raise ArrayError(f"{name} is {_of_kind(value)}, not an array")
    with _in_one_line(value, name):
        found = np.asarray(value)
    if found.dtype.hasobject:
        raise ArrayError(
            f"{name} is {_of_kind(value)} of which NumPy makes no numbers; numpy.asarray(...) is to make some"
        )
    return _in_plain_memory(found, name)


def as_input(value: object, name: str, dtype: npt.DTypeLike, shape: Sequence[int]) -> HostArray:
    """What a caller gives for a tensor of this type and shape, as as_array() has it; -1 is a size that may be any.

    Axes of size 1 may be missing or too many: a picture need not be a batch of one. A buffer in one axis, such as
    bytes, holds the tensor's values one behind the other. Floats are rounded to the tensor's; integers of 32 and 64
    bits, and Python's own numbers and lists, become what the tensor has, if it has them. Other types, and pictures of
    other sizes, are refused: what a model wants of them, nobody can tell. Raises ArrayError with what to write instead.
    """
    wanted, sizes = np.dtype(dtype), tuple(shape)
    if type(value) is np.ndarray and value.shape == sizes and value.dtype == wanted and value.flags.aligned:
        return value  # nearly always, and in a tenth of the time
    found, buffer = as_array(value, name), _buffer_of(value)
    is_flat = buffer is not None and found.ndim == 1 and -1 not in sizes
    if buffer is not None and is_flat and found.nbytes == math.prod(sizes) * wanted.itemsize:
        if buffer.format in _BYTES:
            found = _in_plain_memory(np.ascontiguousarray(found).view(wanted), name)
        found = found.reshape(sizes) if found.dtype == wanted else found
    if found.dtype != wanted:
        if not (_keeps_meaning(found.dtype, wanted) or (_has_no_type(value) and found.dtype.kind in "biu")):
            raise ArrayError(f"{name} is {wanted}, not {found.dtype}; {_hint_of_type(value, found, wanted)}")
        found = _converted(found, name, wanted)
    if (
        (missing := len(sizes) - found.ndim) > 0
        and _is_of(found.shape, sizes[missing:])
        and set(sizes[:missing]) <= {1, -1}
    ):
        return found[(None,) * missing]
    if _is_of(found.shape, sizes):
        return found
    if _long_axes(found.shape) == _long_axes(sizes):
        return found.reshape(sizes)
    raise ArrayError(f"{name} is {_in_words(sizes)}, not {list(found.shape)}{_hint_of_shape(found.shape, sizes)}")


def as_target(value: object, name: str, dtype: npt.DTypeLike, shape: Sequence[int]) -> HostArray:
    """Memory of a caller's that results of this type and shape are written to, as an array that shares it.

    value: as as_array() takes it, but what can be written: an array of NumPy, a buffer, a tensor of PyTorch's. Raises
    ArrayError for what cannot, and for another type or shape.
    """
    wanted, sizes = np.dtype(dtype), tuple(shape)
    found = value if isinstance(value, np.ndarray) else _shared(value, name)
    if not found.flags.writeable:
        raise ArrayError(f"{name} cannot be written; give numpy.empty({list(sizes)}, '{wanted}')")
    if found.dtype == wanted and found.ndim == 1 and _buffer_of(value) is not None and found.size == math.prod(sizes):
        return found.reshape(sizes)
    if found.dtype != wanted or found.shape != sizes:
        raise ArrayError(f"{name} takes {wanted} {list(sizes)}, not {found.dtype} {list(found.shape)}")
    return found


# What a value is --------------------------------------------------------------------------------------------------


def _is_image(value: object) -> bool:
    """Whether it is an image of Pillow, which is loaded where there is one."""
    module = sys.modules.get("PIL.Image")
    kind = getattr(module, "Image", None)
    return isinstance(kind, type) and isinstance(value, kind)


def _buffer_of(value: Any) -> memoryview | None:
    """What is memory in Python's sense, rather than an array with a meaning of its own."""
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__dlpack__"):
        return None
    try:
        return memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None


def _has_no_type(value: object) -> bool:
    """Whether it is one of Python's own numbers, or a list of such, as far as the first one tells."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, bool | int | float | complex | list | tuple) and not isinstance(value, np.generic)


def _of_kind(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.split('.')[0]}'s {kind.__name__}"


def _is_of_torch(value: object) -> bool:
    return type(value).__module__.split(".")[0] == "torch"


# How it becomes an array ------------------------------------------------------------------------------------------


def _in_plain_memory(array: HostArray, name: str) -> HostArray:
    """The same values where code for this machine can read them."""
    if isinstance(array, np.ma.MaskedArray):
        raise ArrayError(f"{name} is a masked array; write array.filled(0), or another value for what is masked")
    array = np.asarray(array)
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array if array.flags.aligned else array.copy()


def _of_image(image: Any, name: str) -> HostArray:
    mode = str(image.mode)
    if mode == "P":
        wanted = "RGBA" if "transparency" in image.info else "RGB"
    elif mode in _AS_THEY_ARE or mode.startswith("I;16"):
        wanted = mode
    else:
        wanted = _MODES.get(mode, "RGB")
    with _in_one_line(image, name):
        return _in_plain_memory(np.asarray(image if wanted == mode else image.convert(wanted)), name)


def _of_dlpack(value: Any, name: str) -> HostArray:
    with _in_one_line(value, name):
        device = int(value.__dlpack_device__()[0])
        if device not in _IN_RAM:
            raise _on_a_device(value, name, _DEVICES.get(device, f"DLPack's {device}"))
        found: HostArray = np.from_dlpack(value)
    return found


def _shared(value: Any, name: str) -> HostArray:
    """An array that surely lies where the value does. NumPy below 2.1 takes all that DLPack gives it as read-only."""
    if (buffer := _buffer_of(value)) is not None:
        return np.asarray(buffer)
    if not hasattr(value, "__dlpack__"):
        raise ArrayError(f"{name} is {_of_kind(value)}, whose memory cannot be written; give a NumPy array")
    found = _of_dlpack(value, name)
    if found.flags.writeable or not hasattr(value, "__array__"):
        return found
    with _in_one_line(value, name):
        again = np.asarray(value)
    is_same = again.__array_interface__["data"][0] == found.__array_interface__["data"][0]
    return again if is_same and (again.shape, again.strides) == (found.shape, found.strides) else found


def _keeps_meaning(own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether numbers of a type are meant in another one, too: small integers may be pixels of another range."""
    if own.kind == "f":
        return wanted.kind == "f"
    return own.kind in "iu" and own.itemsize >= 4 and wanted.kind in "iuf"


def _converted(array: HostArray, name: str, wanted: np.dtype[Any]) -> HostArray:
    """Numbers in a tensor's type. Raises ArrayError for integers that it has not."""
    if wanted.kind in "iu" and array.size:
        limits = np.iinfo(wanted)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise ArrayError(f"{name} is {wanted}: {limits.min} to {limits.max}, not {array.min()} to {array.max()}")
    return array.astype(wanted)


# Refusals ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _in_one_line(value: object, name: str) -> Iterator[None]:
    """Whatever a package raises as an ArrayError."""
    try:
        yield
    except ArrayError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:_MOST_TEXT] or type(error).__name__
        hint = ""
        if str(getattr(value, "dtype", "")).removeprefix("torch.").startswith(_NOT_NUMPYS):
            hint = "; write tensor.float()" if _is_of_torch(value) else "; write array.astype('float32')"
        raise ArrayError(f"{name} is {_of_kind(value)} of which NumPy makes no array: {text}{hint}") from None


def _on_a_device(value: object, name: str, device: str) -> ArrayError:
    if _is_of_torch(value):
        return ArrayError(f"{name} lies on a device of {device}; write tensor.cpu()")
    return ArrayError(
        f"{name} is {_of_kind(value)} on a device of {device}; bring it to RAM: "
        "tensor.cpu() in PyTorch, jax.device_get(array) in JAX, array.get() in CuPy"
    )


def _hint_of_type(value: object, found: HostArray, wanted: np.dtype[Any]) -> str:
    """What to write for another type."""
    if wanted.kind == "f" and found.dtype == np.uint8:
        return (
            f"what range the model takes, its author knows: image.astype('{wanted}') / 255 is 0 to 1, / 127.5 - 1 "
            "is -1 to 1"
        )
    if found.dtype == np.uint8 and wanted == np.int8:
        return "where 0 to 255 are meant as -128 to 127, write (image.astype('int16') - 128).astype('int8')"
    if wanted.kind in "iu" and found.dtype.kind == "f":
        return f"of a quantized tensor write numpy.round(array / scale + zero_point).astype('{wanted}')"
    return f"write tensor.to(torch.{wanted})" if _is_of_torch(value) else f"write array.astype('{wanted}')"


def _hint_of_shape(found: Sequence[int], wanted: Sequence[int]) -> str:
    """What to write for another shape, where that can be told."""
    own, sizes = _long_axes(found), _long_axes(wanted)
    if len(own) == len(sizes) == 3:
        if own[1:] + own[:1] == sizes:
            return "; channels come last: write numpy.moveaxis(array, -3, -1), or tensor.movedim(-3, -1)"
        if own[:2] == sizes[:2] and (own[2], sizes[2]) == (4, 3):
            return "; write array[..., :3], which leaves alpha out"
        if own[2] == sizes[2]:
            return f"; resize the picture to {sizes[1]}x{sizes[0]}, or resize_tensor_input() the model"
    if len(own) == 2 and sizes == (*own, 3):
        return "; write numpy.repeat(array[..., None], 3, -1), which makes colors of gray"
    return ""


def _is_of(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a shape is one of those that -1 leaves open."""
    return len(shape) == len(sizes) and all(size in (-1, own) for own, size in zip(shape, sizes, strict=True))


def _in_words(sizes: Sequence[int]) -> str:
    return f"[{', '.join('any' if size == -1 else str(size) for size in sizes)}]"


def _long_axes(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
