"""Reads the tensors of a model's file: type, shape, values and quantization, all of them checked.

What no kernel can use, but TensorFlow Lite can (sizes that are known only when it runs, texts, variables), is no error:
the tensor says so in `unusable`.
"""

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from ..base.errors import ModelError, ModelSizeError, UnsupportedError
from ..model.graph import Quantization, Shape, Tensor, WeightBlocks, constant_location
from ..ops.variables import RESOURCE
from .model_file import ModelFile, names_of, printable_name
from .packed import LATER_TYPES, MAX_UNPACKED_BYTES, PACKED_BITS, blocks_of, real_blocks, unpacked
from .sparsity import Integers, SparseLayout, SparseLevel, dense_constant

MAX_TENSOR_BYTES = 1 << 28  # that kernels may have
MOST_TENSOR_BYTES = 1 << 40  # that TensorFlow Lite might have; no file with more is read
MAX_CONSTANT_BYTES = 1 << 30  # of all tensors together: in a malicious file they may share one buffer
MAX_DENSE_BYTES = 1 << 28  # of all constants that are sparse in the file
MAX_SCALES = 1 << 20  # of all tensors together
MAX_RANK = 8  # of what kernels may have
MOST_DIMENSIONS = 1 << 10  # that are read


@dataclass
class Taken:
    """How much has been read, which is bounded."""

    constant_bytes: int = 0
    dense_bytes: int = 0
    scales: int = 0
    unpacked_bytes: int = 0


class FileTensors:
    """The tensors of a model's subgraph, each read once."""

    def __init__(self, file: ModelFile, taken: "Taken | None" = None) -> None:
        """`taken` counts what several subgraphs have together."""
        self.unwritable: set[str] = set()  # what a Tensor does not hold, but TensorFlow Lite needs
        self.unpacked: set[int] = set()  # constants that a Tensor holds in another type than the file
        self._file = file
        self._read: dict[int, Tensor] = {}
        self._given: set[int] = set()
        self._open: set[int] = set()  # whose shape the file leaves to whoever computes them
        self._taken = taken or Taken()

    def __getitem__(self, index: int) -> Tensor:
        """Raises ModelError for a tensor that TensorFlow Lite would not take either."""
        if index not in self._read:
            self._read[index] = self._tensor(index, self._file.subgraph.Tensors(index))
        return self._read[index]

    def reshape(self, index: int, shape: Shape) -> None:
        """Have a tensor read with another shape than the file's: the one that its operator or its user gives it.

        Raises UnsupportedError for a constant, and for a shape that no tensor here may have.
        """
        tensor = self[index]
        reason = _unusable_shape(index, shape, tensor.dtype)
        if tensor.is_constant or reason:
            raise UnsupportedError(reason or f"tensor {index} is a constant and would have the shape {list(shape)}")
        self._read[index] = replace(tensor, shape=shape, unusable="" if index in self._open else tensor.unusable)
        self._open.discard(index)

    def add(self, tensor: Tensor) -> int:
        """Have a tensor that the file does not have, or has without its value; returns its number."""
        self._read[tensor.index] = tensor
        self._open.discard(tensor.index)
        return tensor.index

    def is_open(self, index: int) -> bool:
        """Whether the file does not know its shape, which is no more than a guess then."""
        self[index]
        return index in self._open

    def has_value(self, index: int) -> bool:
        """Whether it has a value before any operator runs, its inputs aside: a constant, a variable, one of no size."""
        tensor = self[index]
        return tensor.is_constant or tensor.is_variable or index in self._given or 0 in tensor.shape

    def _tensor(self, index: int, table: Any) -> Tensor:
        dtype = _TENSOR_TYPES.get(table.Type(), f"type {table.Type()}").lower()
        shape, is_variable = self._shape(index, table), bool(table.IsVariable())
        values = self._file.buffer(table.Buffer())
        if is_variable and values.size:
            raise ModelError(f"tensor {index} is a variable and a constant")
        size_bytes = math.prod(max(size, 0) for size in shape) * _ITEM_BYTES.get(dtype, 1)
        if size_bytes > MOST_TENSOR_BYTES:
            raise ModelSizeError(f"tensor {index} of {size_bytes} bytes, at most {MAX_TENSOR_BYTES} are possible")
        packed = self._packed(index, table, values, shape, dtype)
        if packed is not None:
            return packed
        quantization, unclear = self._quantization(index, table, shape)
        unknown = "" if values.size else self._open_shape(index, table, shape)
        data, foreign = self._data(index, table, values, shape, dtype)
        if foreign and (values.size or dtype.startswith("type ")):  # neither verified nor written: the file has it
            self.unwritable.add(foreign)
        if foreign and values.size:
            self._given.add(index)
        unusable = foreign or unknown or unclear
        return Tensor(index, printable_name(table.Name()), shape, dtype, data, quantization, is_variable, unusable)

    def _packed(self, index: int, table: Any, values: npt.NDArray[np.uint8], shape: Shape, dtype: str) -> Tensor | None:
        """A constant of less than a byte each as int8, or, if it is quantized block by block, as floats; else None."""
        if dtype not in PACKED_BITS or not values.size or table.Sparsity() is not None:
            return None
        blocks, name = blocks_of(table.Quantization()), printable_name(table.Name())
        kind = "float32" if blocks else "int8"
        size_bytes = math.prod(shape) * _ITEM_BYTES[kind]
        if _unusable_shape(index, shape, kind) or self._taken.unpacked_bytes + size_bytes > MAX_UNPACKED_BYTES:
            return None
        integers = unpacked(index, values, shape, dtype)
        self._taken.unpacked_bytes += size_bytes
        self._count(size_bytes, values)
        if blocks is None:
            quantization, unclear = self._quantization(index, table, shape)
            self.unpacked.add(index)
            return Tensor(index, name, shape, kind, integers, quantization, unusable=unclear)
        scales = self._scales(blocks)
        real = None if scales is None else real_blocks(integers, scales, blocks.size)
        if real is None:
            return None
        self.unpacked.add(index)
        return Tensor(index, name, shape, kind, real)

    def _scales(self, blocks: WeightBlocks) -> npt.NDArray[np.generic] | None:
        """Those of a constant's blocks, if it has them in a tensor of floats, and no zero points."""
        if blocks.zero_point_tensor >= 0 or not 0 <= blocks.scale_tensor < self._file.tensor_count:
            return None
        table = self._file.subgraph.Tensors(blocks.scale_tensor)
        if table.Type() not in (tflite.TensorType.FLOAT16, tflite.TensorType.FLOAT32):
            return None
        return self[blocks.scale_tensor].data

    def _data(
        self, index: int, table: Any, values: npt.NDArray[np.uint8], shape: Shape, dtype: str
    ) -> tuple[npt.NDArray[np.generic] | None, str]:
        """A constant's values; or why neither it nor any other value of this type and shape is one for kernels."""
        if dtype == RESOURCE:
            return None, ""
        if dtype not in _ITEM_BYTES:
            return None, f"tensor {index} holds {dtype}, which is not supported"
        reason = _unusable_shape(index, shape, dtype)
        if reason or not values.size:
            return None, "" if index in self._open and len(shape) <= MAX_RANK else reason
        self._count(math.prod(shape) * _ITEM_BYTES[dtype], values)
        kind = np.dtype(dtype).newbyteorder("<")
        if table.Sparsity() is None:
            return self._dense(index, values, shape, kind), ""
        try:
            return self._sparse(values, shape, kind, table.Sparsity()), ""
        except ModelSizeError:
            raise
        except ModelError as error:
            return None, f"tensor {index}: {error}"

    def _shape(self, index: int, table: Any) -> Shape:
        shape = self._file.values("dimensions", table.ShapeAsNumpy(), MOST_DIMENSIONS)
        if any(size < -1 for size in shape):
            raise ModelError(f"tensor {index} has the shape {list(shape)}")
        return shape

    def _open_shape(self, index: int, table: Any, shape: Shape) -> str:
        """Why a tensor is unusable if any size but the batch's is unknown."""
        signature = self._file.values("dimensions", table.ShapeSignatureAsNumpy(), MOST_DIMENSIONS) or shape
        # TensorFlow Lite, too, runs a batch of unknown size with the size in the shape, 1 in nearly every model.
        unknown_batch = len(signature) == len(shape) and -1 not in signature[1:]
        if any(size in (-1, 0) for size in shape) or (-1 in signature and not unknown_batch):
            self._open.add(index)
            return f"tensor {index}: dynamic shapes ({list(signature)}) are not supported"
        return ""

    # Values -------------------------------------------------------------------------------------------------------

    def _count(self, size_bytes: int, values: npt.NDArray[np.uint8]) -> None:
        self._taken.constant_bytes += size_bytes
        if self._taken.constant_bytes > MAX_CONSTANT_BYTES:
            raise ModelSizeError(f"constants of more than {MAX_CONSTANT_BYTES} bytes")
        self._file.store(constant_location(values))

    def _dense(
        self, index: int, values: npt.NDArray[np.uint8], shape: Shape, kind: np.dtype[Any]
    ) -> npt.NDArray[np.generic]:
        """The first values: TensorFlow Lite, too, takes a constant that is longer than its tensor."""
        size_bytes = math.prod(shape) * kind.itemsize
        if values.size < size_bytes:
            raise ModelError(f"tensor {index} of {size_bytes} bytes has a constant of {values.size} bytes")
        return values[:size_bytes].view(kind).reshape(shape)

    def _sparse(
        self, values: npt.NDArray[np.uint8], shape: Shape, kind: np.dtype[Any], table: Any
    ) -> npt.NDArray[np.generic]:
        """Made dense. Raises ModelError for tables that contradict themselves."""
        if values.size % kind.itemsize:
            raise ModelError(f"a sparse constant of shape {list(shape)} has {values.size} bytes of values")
        self._taken.dense_bytes += math.prod(shape) * kind.itemsize
        if self._taken.dense_bytes > MAX_DENSE_BYTES:
            raise ModelSizeError(f"sparse constants that take more than {MAX_DENSE_BYTES} bytes")
        return dense_constant(values.view(kind), shape, self._layout(table))

    def _layout(self, table: Any) -> SparseLayout:
        count = self._file.bounded("levels", table.DimMetadataLength(), 2 * MAX_RANK)
        order = self._file.values("levels", table.TraversalOrderAsNumpy(), 2 * MAX_RANK)
        block_map = self._file.values("blocks", table.BlockMapAsNumpy(), MAX_RANK)
        return SparseLayout(order, block_map, tuple(self._level(table.DimMetadata(i)) for i in range(count)))

    def _level(self, table: Any) -> SparseLevel:
        if table.Format() == tflite.DimensionType.DENSE:
            return SparseLevel(table.DenseSize())
        segments = self._integers(table.ArraySegmentsType(), table.ArraySegments())
        return SparseLevel(0, segments, self._integers(table.ArrayIndicesType(), table.ArrayIndices()))

    def _integers(self, kind: int, union: Any) -> Integers:
        """One of the schema's three vectors of indices."""
        if kind not in _INDEX_VECTORS or union is None:
            raise ModelError(f"indices of a sparse constant of type {kind}")
        vector = _INDEX_VECTORS[kind]()
        vector.Init(union.Bytes, union.Pos)
        count = self._file.bounded("indices", vector.ValuesLength(), MAX_TENSOR_BYTES, item_bytes=1)
        return np.asarray(vector.ValuesAsNumpy() if count else (), np.int64)

    # Quantization -------------------------------------------------------------------------------------------------

    def _quantization(self, index: int, tensor: Any, shape: Shape) -> tuple[Quantization | None, str]:
        """What the file says of integers, None where it says nothing; and why it is unusable. Raises ModelError."""
        table = tensor.Quantization()
        if table is None:
            return None, ""
        if table.DetailsType() and tensor.Type() != tflite.TensorType.FLOAT32:  # floats mean themselves
            self.unwritable.add(f"tensor {index} is quantized in a way of its own")
        count = self._file.bounded("scales", table.ScaleLength(), MAX_SCALES)
        if not count or not self._file.bounded("zero points", table.ZeroPointLength(), MAX_SCALES, item_bytes=8):
            return None, ""
        self._taken.scales += count
        if self._taken.scales > MAX_SCALES:
            raise ModelSizeError(f"more than {MAX_SCALES} scales")
        scales, zero_points = table.ScaleAsNumpy(), table.ZeroPointAsNumpy()
        dimension = table.QuantizedDimension() if count > 1 else 0
        where = f"in dimension {dimension}"
        if zero_points.size not in (1, count):
            raise ModelError(f"tensor {index} has {count} scales and {zero_points.size} zero points that make no sense")
        if count > 1 and not 0 <= dimension < max(len(shape), 1):
            raise ModelError(f"tensor {index} of shape {list(shape)} has {count} scales {where}")
        wrong = ""
        if not (np.isfinite(scales).all() and (scales >= 0).all()):
            wrong = f"tensor {index} has {count} scales and {zero_points.size} zero points that make no sense"
        elif count > 1 and (not shape or shape[dimension] != count):
            wrong = f"tensor {index} of shape {list(shape)} has {count} scales {where}"
        if wrong and tensor.Type() == tflite.TensorType.FLOAT32:
            return None, ""
        if wrong:
            self.unwritable.add(wrong)
            return None, wrong
        points = np.broadcast_to(zero_points, (count,))
        return Quantization(tuple(scales.tolist()), tuple(points.tolist()), dimension), ""


def _unusable_shape(index: int, shape: Shape, dtype: str) -> str:
    """Why no kernel here may have a tensor of this shape, all of whose sizes are known; "" if one may."""
    if len(shape) > MAX_RANK:
        return f"tensor {index} has {len(shape)} dimensions, at most {MAX_RANK} are supported"
    if any(size < 1 for size in shape):
        return f"tensor {index} would have the shape {list(shape)}"
    size_bytes = math.prod(shape) * _ITEM_BYTES.get(dtype, 1)
    if size_bytes > MAX_TENSOR_BYTES:
        return f"tensor {index} of {size_bytes} bytes, at most {MAX_TENSOR_BYTES} are possible"
    return ""


_TENSOR_TYPES = MappingProxyType({**names_of(tflite.TensorType), **{code: name for name, code in LATER_TYPES.items()}})
_ITEM_BYTES = MappingProxyType(
    {"float32": 4, "float16": 2, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2}
    | {"int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "bool": 1, "complex64": 8}
)
_INDEX_VECTORS = MappingProxyType(
    {
        tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
        tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
        tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
    }
)
