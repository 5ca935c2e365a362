"""Writes a Graph, as it was read, as a .tflite file for TensorFlow Lite.

It never gets an untrusted file. Only what the graph holds is written, so the file has nothing that the reader did not
validate. Tensors are renumbered, see written_indices(); constants of sizes, axes and paddings follow them.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

from ..base.errors import UnsupportedError
from ..model.graph import (
    ABSENT,
    Graph,
    Node,
    Opaque,
    OptionValue,
    OptionVector,
    Quantization,
    Shape,
    Tensor,
    WeightBlocks,
    constant_location,
)
from ..model.operators import EncodedOperator
from ..ops.registry import OPS
from ..ops.variables import RESOURCE, VAR_HANDLE
from ..passes.inlining import inline_bodies
from .initial_values import with_initial_subgraph
from .packed import BLOCKWISE, LATER_TYPES, written_blocks

ALIGNMENT = 16  # of constants, which TensorFlow Lite reads in place
SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"
NO_SIGNATURES: Mapping[int, Shape] = MappingProxyType({})
NO_SUBGRAPHS: Mapping[int, Graph] = MappingProxyType({})


def write_model(
    graph: Graph,
    every_output: bool = False,
    signatures: Mapping[int, Shape] = NO_SIGNATURES,
    called: Mapping[int, Graph] = NO_SUBGRAPHS,
) -> bytes:
    """The .tflite file of a graph, the same bytes for the same graph.

    The graph is as the reader created it, or after rewriting.py's passes. With every_output, what any operator
    writes becomes an output, after the model's own: TensorFlow Lite 2.14 computes in place even if it is asked to
    preserve all tensors, but it does not overwrite outputs. MediaPipe's Convolution2DTransposeBias becomes the
    builtin TRANSPOSE_CONV, what DENSIFY makes of a constant that constant. Opaque operators are written as they
    were read, and what sets variables at first is a subgraph. Each tensor has a name of its own, by which other readers
    of such files know it; `signatures` are shapes with -1 for each unknown size, by tensors; `called` are the subgraphs
    that opaque operators run, by their numbers. A node that has a body is written as what that computes. Raises
    UnsupportedError for a graph that does not hold all that its file says.
    """
    if graph.original:
        raise UnsupportedError(f"{graph.name}: its file has more than its graph holds")
    graph = inline_bodies(graph)[0]
    if any(node.op == VAR_HANDLE and not isinstance(node.attributes, Opaque) for node in graph.nodes):
        number = 1 + max(called, default=0)
        graph, initial = with_initial_subgraph(graph, number)
        called = {**called, number: initial}
    return _Writer(graph, signatures, called).file(every_output)


def written_indices(graph: Graph) -> dict[int, int]:
    """Maps each tensor's index in the graph to its index in the written file."""
    graph, _ = inline_bodies(graph)
    return _positions(graph)


def _positions(graph: Graph) -> dict[int, int]:
    indices = {index: position for position, index in enumerate(graph.tensors)}
    return indices | {node.outputs[0]: indices[node.inputs[0]] for node in graph.nodes if _is_dense(graph, node)}


def _is_dense(graph: Graph, node: Node) -> bool:
    """Whether a node makes a sparse constant dense, which the reader has done."""
    is_read = node.op == "DENSIFY" and not isinstance(node.attributes, Opaque)
    return is_read and graph.tensors[node.inputs[0]].is_constant


_EMPTY = Graph("", MappingProxyType({}), (), (), ())


class _Writer:
    """Tables are built by flatbuffers; the constants follow them, so that each is copied once.

    Offsets in a flatbuffer point forward, and the builder counts positions backwards from the end of what it makes,
    where the constants begin: position p among them is -p to it.
    """

    def __init__(self, graph: Graph, signatures: Mapping[int, Shape], called: Mapping[int, Graph]) -> None:
        self.graph = graph
        self.signatures = signatures
        self.called = called
        self.names: set[str] = set()  # of tensors that are written
        self.builder = flatbuffers.Builder(1 << 16)
        self.indices = {ABSENT: ABSENT, **_positions(graph)}
        self.tables: dict[str, int] = {}  # by content
        self.tensors: list[int] = []
        self.buffers = [self.table("Buffer")]  # the first is that of tensors without a constant
        self.constants: list[Any] = []  # bytes and arrays, in the order of the file
        self.constants_bytes = 0
        self.stored: dict[tuple[int, int], int] = {}  # (address, size in bytes) of a constant to its buffer
        self.vectors: dict[tuple[str, bytes], int] = {}  # (type, bytes) to its offset
        self.codes: dict[tuple[int, int, bytes], int] = {}  # (builtin, version, name of a custom op) to its place

    def file(self, every_output: bool) -> bytes:
        """All of it: the graph's subgraph, and those that are called at their numbers, with empty ones between."""
        subgraphs = [self.written_subgraph(every_output)]
        self.signatures = NO_SIGNATURES
        for number in range(1, 1 + max(self.called, default=0)):
            self.graph = self.called.get(number, _EMPTY)
            self.indices, self.names = {ABSENT: ABSENT, **_positions(self.graph)}, set()
            subgraphs.append(self.written_subgraph())
        self.builder.minalign = ALIGNMENT  # of the whole, so of the constants behind it, too
        self.builder.Finish(self.model(subgraphs), IDENTIFIER)
        return b"".join((self.builder.Output(), *self.constants))

    def written_subgraph(self, every_output: bool = False) -> int:
        """The graph that is at hand as a subgraph."""
        graph = self.graph
        nodes = [node for node in graph.nodes if not _is_dense(graph, node)]
        self.tensors = [self.tensor(tensor) for tensor in graph.tensors.values()]
        operators = [self.operator(node) for node in nodes]
        values = (i for node in nodes for i in node.outputs if graph.tensors[i].dtype != RESOURCE)
        written = dict.fromkeys(values) if every_output else {}
        own = frozenset(graph.outputs)
        return self.subgraph(operators, (*graph.outputs, *(i for i in written if i not in own)))

    # Tables -------------------------------------------------------------------------------------------------------

    def table(self, name: str, **fields: Any) -> int:
        """A table of the schema's class `name`; equal ones are written once."""
        key = f"{name}{fields}"
        if key not in self.tables:
            getattr(tflite, f"{name}Start")(self.builder)
            for field, value in fields.items():
                getattr(tflite, f"{name}Add{field}")(self.builder, value)
            self.tables[key] = int(getattr(tflite, f"{name}End")(self.builder))
        return self.tables[key]

    def tensor(self, tensor: Tensor) -> int:
        """A tensor, with its name or, where it has none or another has the same, one that tells it from all others."""
        fields = {
            "Shape": self.integers(tensor.shape),
            "Type": LATER_TYPES.get(tensor.dtype) or getattr(tflite.TensorType, tensor.dtype.upper()),
            "Buffer": self.constant(tensor.data),
            "IsVariable": tensor.is_variable,
        }
        if tensor.quantization and not tensor.dtype.startswith("float"):  # floats mean themselves
            fields["Quantization"] = self.quantization(tensor.quantization)
        if tensor.index in self.signatures:
            fields["ShapeSignature"] = self.integers(self.signatures[tensor.index])
        fields["Name"] = self.builder.CreateString(self.unique(tensor.name or "tensor"))
        return self.table("Tensor", **fields)

    def unique(self, name: str) -> str:
        """The name, with a number behind it where it is taken."""
        number = len(self.names)
        found = name
        while found in self.names:
            found, number = f"{name}:{number}", number + 1
        self.names.add(found)
        return found

    def quantization(self, quantization: Quantization) -> int:
        if isinstance(quantization, WeightBlocks):
            given = (quantization.scale_tensor, quantization.zero_point_tensor)
            scales, points = (self.indices.get(tensor, ABSENT) for tensor in given)
            details = written_blocks(self.builder, scales, points, quantization)
            return self.table("QuantizationParameters", DetailsType=BLOCKWISE, Details=details)
        return self.table(
            "QuantizationParameters",
            Scale=self.numbers(np.array(quantization.scales, np.float32)),
            ZeroPoint=self.numbers(np.array(quantization.zero_points, np.int64)),
            QuantizedDimension=quantization.dimension,
        )

    def parameter(self, values: npt.NDArray[Any]) -> int:
        """Index of a new constant tensor: a size, axes, paddings."""
        self.tensors.append(self.tensor(Tensor(-1, "", values.shape, values.dtype.name, values)))
        return len(self.tensors) - 1

    def operator(self, node: Node) -> int:
        if isinstance(node.attributes, Opaque):
            return self.opaque(node, node.attributes)
        rule = OPS[node.op].file
        assert rule is not None, f"{node.op} is made by passes alone"
        form = rule.write(self.graph, node)
        name = rule.builtin or node.op
        code = getattr(tflite.BuiltinOperator, name, tflite.BuiltinOperator.CUSTOM)
        fields = {
            "OpcodeIndex": self.code(code, rule.version, name.encode() if rule.is_custom else b""),
            "Inputs": self.integers(self.operands(form)),
            "Outputs": self.integers(self.indices[i] for i in node.outputs),
        }
        if form.table:
            fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, form.table)
            fields["BuiltinOptions"] = self.options(form)
        if form.custom_options:
            fields["CustomOptions"] = self.numbers(np.frombuffer(form.custom_options, np.uint8))
        return self.table("Operator", **fields)

    def opaque(self, node: Node, attributes: Opaque) -> int:
        """An operator as it was read."""
        fields = {
            "OpcodeIndex": self.code(attributes.code, attributes.version, attributes.custom_code),
            "Inputs": self.integers(self.indices[i] for i in node.inputs),
            "Outputs": self.integers(self.indices[i] for i in node.outputs),
        }
        if attributes.table:
            options = {name: self.option(value) for name, value in attributes.options}
            newer = "" if hasattr(tflite.BuiltinOptions, attributes.table) else "2"
            kinds = tflite.BuiltinOptions2 if newer else tflite.BuiltinOptions
            fields[f"BuiltinOptions{newer}Type"] = getattr(kinds, attributes.table)
            fields[f"BuiltinOptions{newer}"] = self.table(attributes.table, **options)
        if attributes.custom_options:
            fields["CustomOptions"] = self.numbers(np.frombuffer(attributes.custom_options, np.uint8))
        return self.table("Operator", **fields)

    def option(self, value: OptionValue) -> float:
        """A number itself, the offset of anything else."""
        if isinstance(value, OptionVector):
            return self.numbers(np.frombuffer(value.data, value.dtype))
        if isinstance(value, bytes):
            return int(self.builder.CreateSharedString(value.decode("latin-1"), "latin-1"))
        return value

    def operands(self, form: EncodedOperator) -> tuple[int, ...]:
        """Indices in the file; an input that is left out at the end is not written."""
        found = [self.indices[i] if isinstance(i, int) else self.parameter(i) for i in form.inputs]
        while found and found[-1] == ABSENT:
            found.pop()
        return tuple(found)

    def options(self, form: EncodedOperator) -> int:
        vectors = {name: self.integers(value) for name, value in form.options.items() if isinstance(value, tuple)}
        texts = {name: self.option(value) for name, value in form.options.items() if isinstance(value, bytes)}
        return self.table(form.table, **{**form.options, **vectors, **texts})

    def subgraph(self, operators: Sequence[int], outputs: Iterable[int]) -> int:
        return self.table(
            "SubGraph",
            Tensors=self.vector(self.tensors),
            Inputs=self.integers(self.indices[i] for i in self.graph.inputs),
            Outputs=self.integers(self.indices[i] for i in outputs),
            Operators=self.vector(operators),
        )

    def model(self, subgraphs: Sequence[int]) -> int:
        return self.table(
            "Model",
            Version=SCHEMA_VERSION,
            OperatorCodes=self.vector([self.operator_code(*code) for code in self.codes]),
            Subgraphs=self.vector(subgraphs),
            Buffers=self.vector(self.buffers),
        )

    def code(self, builtin: int, version: int, custom: bytes = b"") -> int:
        """The place of an operator code."""
        return self.codes.setdefault((builtin, version, custom), len(self.codes))

    def operator_code(self, builtin: int, version: int, custom: bytes) -> int:
        old = min(builtin, 127)  # as far as fits in its one byte
        fields = {"DeprecatedBuiltinCode": old, "BuiltinCode": builtin, "Version": version}
        if builtin == tflite.BuiltinOperator.CUSTOM:
            fields["CustomCode"] = int(self.option(custom))
        return self.table("OperatorCode", **fields)

    # Vectors ------------------------------------------------------------------------------------------------------

    def integers(self, values: Iterable[int]) -> int:
        """A vector of int32."""
        return self.numbers(np.array(tuple(values), np.int32))

    def numbers(self, values: npt.NDArray[Any]) -> int:
        """A vector of numbers; equal ones are written once."""
        key = values.dtype.name, values.tobytes()
        if key not in self.vectors:
            self.vectors[key] = int(self.builder.CreateNumpyVector(values))
        return self.vectors[key]

    def vector(self, offsets: Sequence[int]) -> int:
        """A vector of offsets to tables."""
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    # Constants ----------------------------------------------------------------------------------------------------

    def constant(self, values: npt.NDArray[Any] | None) -> int:
        """The buffer of a constant; constants that share their memory share a buffer."""
        if values is None:
            return 0
        place = constant_location(values)
        if place not in self.stored:
            self.stored[place] = len(self.buffers)
            self.buffers.append(self.table("Buffer", Data=self.store(values)))
        return self.stored[place]

    def store(self, values: npt.NDArray[Any]) -> int:
        """Put a byte vector after the tables; returns its offset, for the builder."""
        length = struct.pack("<I", values.nbytes)
        self.constants += [
            length.rjust(ALIGNMENT, b"\0"),
            values.reshape(-1).view(np.uint8),
            bytes(-values.nbytes % ALIGNMENT),
        ]
        position = self.constants_bytes + ALIGNMENT - len(length)
        self.constants_bytes += ALIGNMENT + values.nbytes + -values.nbytes % ALIGNMENT
        return -position
