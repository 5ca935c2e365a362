"""What TensorFlow Lite's interpreter tells of the tensors, operators and signatures of a file, read from the file."""

import contextlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from ..model.graph import Shape
from ..reading.model_file import MAX_TENSORS, ModelFile, names_of
from ..reading.packed import blocks_of
from ..reading.reader import BUILTINS, CUSTOM
from ..reading.signatures import MAX_SIGNATURES
from .call_errors import ModelValueError

Details = dict[str, Any]  # of a tensor or an operator, with the keys of TensorFlow Lite's interpreter
MOST_ENTRIES = 1 << 24  # of a vector in a file
_NONE = ("resource", "variant")  # types of tensors that have no details


@dataclass(frozen=True)
class _TensorFacts:
    name: str
    dtype: type[np.generic] | None
    shape: Shape
    signature: Shape | None


class SubgraphDetails:
    """One subgraph of a file. What flatbuffers cannot read is a ModelError."""

    def __init__(self, data: bytes, number: int) -> None:
        """Raises ModelError for a subgraph that is not there."""
        self._file = ModelFile(data, number)
        self._facts: dict[int, _TensorFacts] = {}
        self.inputs = self._indices(self._file.subgraph.InputsAsNumpy())
        self.outputs = self._indices(self._file.subgraph.OutputsAsNumpy())
        self.subgraph_count: int = self._file.subgraph_count
        self.tensor_count, self.operator_count = self._file.tensor_count, self._file.operator_count

    def name(self, index: int) -> str:
        """Of a tensor."""
        return self._tensor(index).name

    def dtype(self, index: int) -> type[np.generic] | None:
        """NumPy's type of a tensor; None where it holds nothing that NumPy has."""
        return self._tensor(index).dtype

    def shape(self, index: int) -> Shape:
        """As the file has it."""
        return self._tensor(index).shape

    def shape_signature(self, index: int) -> Shape | None:
        """The shape with -1 for sizes that are not known; None where the file says none."""
        return self._tensor(index).signature

    def _tensor(self, index: int) -> "_TensorFacts":
        """What is asked again and again."""
        if index not in self._facts:
            if not 0 <= index < self.tensor_count:
                raise ModelValueError(f"there is no tensor {index}; there are {self.tensor_count}, from 0 on")
            with _damage_told(f"tensor {index}"):
                table = self._file.subgraph.Tensors(index)
                name = (table.Name() or b"").decode("utf-8", "replace")
                shape, signature = (
                    tuple(self._vector(vector).tolist())
                    for vector in (table.ShapeAsNumpy(), table.ShapeSignatureAsNumpy())
                )
                self._facts[index] = _TensorFacts(name, _dtype_of(table.Type()), shape, signature or None)
        return self._facts[index]

    def tensor(self, index: int, shape: Sequence[int]) -> Details:
        """Details of a tensor that has this shape by now. Raises ModelValueError for one that has none."""
        if (dtype := self.dtype(index)) is None:
            raise ModelValueError(f"tensor {index} holds no values that NumPy has")
        signature = self.shape_signature(index)
        with _damage_told(f"tensor {index}"):
            table = self._file.subgraph.Tensors(index)
            scales, zero_points, dimension, block_size = self._quantization(table.Quantization())
            sparsity = self._sparsity(table.Sparsity())
        single = (float(scales[0]), int(zero_points[0])) if scales.size == 1 else (0.0, 0)
        return {
            "name": self.name(index),
            "index": index,
            "shape": np.array(shape, np.int32),
            "shape_signature": np.array(shape if signature is None else signature, np.int32),
            "dtype": dtype,
            "quantization": single,
            "quantization_parameters": {
                "scales": scales,
                "zero_points": zero_points,
                "quantized_dimension": dimension,
                "block_size": block_size,
            },
            "sparsity_parameters": sparsity,
        }

    def operator(self, number: int) -> Details:
        """Details of an operator: its name, the numbers of its tensors and their types."""
        with _damage_told(f"operator {number}"):
            table = self._file.subgraph.Operators(number)
            code = self._file.model.OperatorCodes(table.OpcodeIndex())
            builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            custom = (code.CustomCode() or b"").decode("utf-8", "replace") if builtin == CUSTOM else ""
            inputs, outputs = self._vector(table.InputsAsNumpy()), self._vector(table.OutputsAsNumpy())
        return {
            "index": number,
            "op_name": custom if builtin == CUSTOM else BUILTINS.get(builtin, str(builtin)),
            "inputs": inputs.astype(np.int32),
            "outputs": outputs.astype(np.int32),
            "operand_types": [self.dtype(int(index)) for index in inputs if index >= 0],
            "result_types": [self.dtype(int(index)) for index in outputs if index >= 0],
        }

    def _indices(self, vector: npt.NDArray[Any] | int) -> tuple[int, ...]:
        return tuple(self._file.values("tensors", vector, MAX_TENSORS))

    def _vector(self, vector: npt.NDArray[Any] | int) -> npt.NDArray[Any]:
        """A vector as flatbuffers gives it, 0 where there is none."""
        if isinstance(vector, int):
            return np.empty(0, np.int32)
        self._file.bounded("entries", len(vector), MOST_ENTRIES, vector.itemsize)
        return vector

    def _quantization(self, table: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], int, int]:
        """Scales, zero points, the dimension that they go along, and how many neighbors share one."""
        blocks = blocks_of(table)
        scales = self._vector(0 if table is None else table.ScaleAsNumpy())
        if not scales.size:
            size = (blocks.dimension, blocks.size) if blocks else (0, 0)
            return np.empty(0, np.float32), np.empty(0, np.int32), *size
        points = self._vector(table.ZeroPointAsNumpy())
        if points.size not in (1, scales.size):
            points = np.zeros(1, np.int64)
        zero_points = np.broadcast_to(points, scales.shape).astype(np.int32)
        return scales.astype(np.float32), zero_points, int(table.QuantizedDimension()), 0

    def _sparsity(self, table: Any) -> Details:
        """How a sparse constant lies in the file; nothing of a dense one."""
        if table is None:
            return {}
        levels: list[Details] = []
        for number in range(self._file.bounded("levels", table.DimMetadataLength(), MAX_TENSORS)):
            level = table.DimMetadata(number)
            if level.Format() == tflite.DimensionType.DENSE:
                levels.append({"format": 0, "dense_size": int(level.DenseSize())})
                continue
            segments = self._integers(level.ArraySegmentsType(), level.ArraySegments())
            indices = self._integers(level.ArrayIndicesType(), level.ArrayIndices())
            levels.append({"format": 1, "array_segments": segments, "array_indices": indices})
        order, blocks = self._vector(table.TraversalOrderAsNumpy()), self._vector(table.BlockMapAsNumpy())
        found = {"traversal_order": order.astype(np.int32), "block_map": blocks.astype(np.int32)}
        return {**found, "dim_metadata": levels}

    def _integers(self, kind: int, union: Any) -> npt.NDArray[np.int32]:
        if kind not in _INDEX_VECTORS or union is None:
            return np.empty(0, np.int32)
        vector = _INDEX_VECTORS[kind]()
        vector.Init(union.Bytes, union.Pos)
        return self._vector(vector.ValuesAsNumpy()).astype(np.int32)


class SignatureDetails:
    """A signature of a file: its subgraph, and the numbers of the tensors that its names mean."""

    def __init__(self, subgraph: int, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> None:
        """Names are in alphabetical order, as in TensorFlow Lite's interpreter."""
        self.subgraph = subgraph
        self.inputs: Mapping[str, int] = MappingProxyType(dict(sorted(inputs.items())))
        self.outputs: Mapping[str, int] = MappingProxyType(dict(sorted(outputs.items())))


def signatures_of(data: bytes) -> Mapping[str, SignatureDetails]:
    """Of a model's bytes, by name, in the file's order; those that lead nowhere are left out. Raises ModelError."""
    file, found = ModelFile(data), {}
    for number in range(file.bounded("signatures", file.model.SignatureDefsLength(), MAX_SIGNATURES)):
        with contextlib.suppress(struct.error, IndexError, ValueError, TypeError, AttributeError):
            table = file.model.SignatureDefs(number)
            inputs = [table.Inputs(k) for k in range(file.bounded("inputs", table.InputsLength(), MAX_TENSORS))]
            outputs = [table.Outputs(k) for k in range(file.bounded("outputs", table.OutputsLength(), MAX_TENSORS))]
            sides = ({str(each.Name(), "utf-8"): each.TensorIndex() for each in side} for side in (inputs, outputs))
            if 0 <= table.SubgraphIndex() < file.subgraph_count:
                found[str(table.SignatureKey(), "utf-8")] = SignatureDetails(table.SubgraphIndex(), *sides)
    return MappingProxyType(found)


@contextlib.contextmanager
def _damage_told(what: str) -> Iterator[None]:
    """What flatbuffers raises, as a ModelValueError."""
    try:
        yield
    except (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ModelValueError(f"{what} cannot be read; the file is damaged, get it again") from error


def _dtype_of(code: int) -> type[np.generic] | None:
    name = _TYPE_NAMES.get(code, "").lower()
    if name in _NONE or not name:
        return None
    if name == "string":
        return np.bytes_
    if name in ("int4", "int2"):
        return np.int8
    return np.dtype(name).type


_TYPE_NAMES = names_of(tflite.TensorType)
_INDEX_VECTORS = MappingProxyType(
    {
        tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
        tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
        tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
    }
)
