"""Reads the model of a running interpreter from its memory, as a .tflite file.

Only the interpreter's own memory is read: constants, quantization, options and connections are those that it computes
with, wherever they came from. The file has them all, and the reader refuses in it what it refuses in any file.
"""

import ctypes
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import tflite

from ..base.errors import ModelError
from ..model.graph import Graph, Node, Opaque, Quantization, Tensor, WeightBlocks
from ..ops.called import CALLED
from ..ops.variables import CALL_ONCE, RESOURCE, VAR_HANDLE, variable_name
from ..reading.file_tensors import MAX_DENSE_BYTES
from ..reading.initial_values import ALREADY_READ, InitialValues, SettingOperator, assigned_values, joined_values
from ..reading.model_file import MAX_TENSORS, printable_name
from ..reading.reader import BUILTINS, CUSTOM
from ..reading.sparsity import Integers, SparseLayout, SparseLevel, dense_constant
from ..reading.writer import write_model
from .builtin_structs import CALLS, STRUCTS
from .callers_file import Order, OrderOf, unknown_order
from .native_operators import execution_plan, operator_at, outputs_of, subgraph_context
from .structs import (
    AFFINE_QUANTIZATION,
    BLOCK_QUANTIZATION,
    IN_FILE,
    OTHER_TYPES,
    SPARSE_DIMENSION,
    TYPES,
    TfLiteAffineQuantization,
    TfLiteBlockwiseQuantization,
    TfLiteContext,
    TfLiteDimensionMetadata,
    TfLiteSparsity,
    TfLiteTensor,
    floats_at,
    integers_at,
)

_DELEGATE: int = tflite.BuiltinOperator.DELEGATE
_CALL_ONCE: int = tflite.BuiltinOperator.CALL_ONCE
_VAR_HANDLE: int = tflite.BuiltinOperator.VAR_HANDLE
_NEWER = "STABLEHLO_"  # ops of which some run subgraphs, and have structs that differ from version to version
_UNKNOWN = "variant"  # what a type is called that the schema here does not have


def model_of(context: TfLiteContext, order: OrderOf = unknown_order) -> bytes:
    """The model of a context whose operators no delegate has replaced. Its constants are copied once.

    Operators and tensors have their numbers, and so have the subgraphs that composites run, as far as the order of
    their inputs and outputs is known. Raises ModelError.
    """
    graph = _graph_of(context)
    called = dict[int, Graph]()
    _add_called(context, graph, order, called)
    signatures = ((index, integers_at(context.tensors[index].dims_signature)) for index in graph.tensors)
    return write_model(graph, signatures={index: shape for index, shape in signatures if shape}, called=called)


def _graph_of(context: TfLiteContext, order: Order | None = None) -> Graph:
    plan = execution_plan(context)
    if any(operator_at(context, index)[1].builtin_code == _DELEGATE for index in plan):
        raise ModelError("another delegate has replaced operators before; put GpuDelegate in front of it")
    if plan != tuple(range(len(plan))):
        raise ModelError(f"TensorFlow Lite runs operators in an order of its own: {list(plan[:8])} ...")
    tensors = {index: _tensor(context.tensors[index], index) for index in range(context.tensors_size)}
    initial = initial_in(context)
    nodes = tuple(_operator(context, index, initial) for index in plan)
    if any(tensor.dtype == RESOURCE for tensor in tensors.values()):
        _check_order(nodes)
    inputs, outputs = order or (_inputs(tensors, nodes), outputs_of(context))
    if not tensors.keys() >= {*inputs, *outputs}:
        raise ModelError("a subgraph's inputs and outputs are other ones than in its file")
    return Graph("model", MappingProxyType(tensors), nodes, inputs, outputs)


def _check_order(nodes: Sequence[Node]) -> None:
    """Raise ModelError for one in which TensorFlow Lite cannot group what also keeps the order of variables."""
    written = {index: place for place, node in enumerate(nodes) for index in node.outputs}
    for place, node in enumerate(nodes):
        for index in node.inputs:
            if written.get(index, -1) >= place:
                raise ModelError(f"operator {place} reads tensor {index} before anything has written it")


def _add_called(context: TfLiteContext, graph: Graph, order: OrderOf, called: dict[int, Graph]) -> None:
    """The subgraphs that composites and loops of a graph run, and those that these run, once each."""
    tables = {CALLS[op].table for op in CALLED if op in CALLS}
    said = [node.attributes for node in graph.nodes if isinstance(node.attributes, Opaque)]
    numbers = {value for each in said if each.table in tables for _, value in each.options if isinstance(value, int)}
    for number in sorted(numbers - called.keys()):
        found = order(number)
        if found is None or not 0 < number < MAX_TENSORS:
            continue
        with subgraph_context(context, number) as inner:
            try:
                called[number] = _graph_of(inner, found)
            except ModelError:  # the operator stays where it is
                continue
        _add_called(context, called[number], order, called)


def initial_in(context: TfLiteContext) -> InitialValues:
    """What the subgraphs that operators run once give to variables."""
    found = list[InitialValues]()
    for number in sorted(called_once(context)):
        with subgraph_context(context, number) as called:
            found.append(assigned_values(_setting_operators(called), partial(_constant_in, called)))
    return joined_values(found)


def _setting_operators(context: TfLiteContext) -> Iterator[SettingOperator]:
    """Those of a subgraph, in order."""
    for index in execution_plan(context):
        node, registration = operator_at(context, index)
        is_handle = registration.builtin_code == _VAR_HANDLE and node.builtin_data
        yield SettingOperator(
            registration.builtin_code,
            integers_at(node.inputs),
            integers_at(node.outputs),
            _variable_at(node.builtin_data) if is_handle else None,
        )


def variables_in(context: TfLiteContext) -> frozenset[str]:
    """The names of all variables that its operators have handles of, whatever else there is to say of these."""
    operators = (operator_at(context, index) for index in execution_plan(context))
    found = (node.builtin_data for node, registration in operators if registration.builtin_code == _VAR_HANDLE)
    return frozenset(_variable_at(data) for data in found if data)


def _variable_at(builtin_data: int) -> str:
    said = dict(STRUCTS[VAR_HANDLE].options_at(builtin_data) or ())
    return variable_name(said.get("Container"), said.get("SharedName"))


def constant_of(tensor: TfLiteTensor) -> npt.NDArray[np.generic] | None:
    """The values of a constant as they lie in memory, bytes, or of a sparse one dense; None for other tensors.

    Raises ModelError for a sparse one that contradicts itself.
    """
    if tensor.allocation_type != IN_FILE or not tensor.data or not tensor.bytes:
        return None
    values = np.frombuffer((ctypes.c_uint8 * tensor.bytes).from_address(tensor.data), np.uint8)
    return _dense(tensor, values) if tensor.sparsity and tensor.type in TYPES else values


def _constant_in(context: TfLiteContext, index: int) -> npt.NDArray[np.generic] | None:
    return constant_of(context.tensors[index])


def _dense(tensor: TfLiteTensor, values: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
    kind, shape = np.dtype(TYPES[tensor.type]), integers_at(tensor.dims)
    if values.size % kind.itemsize or not 0 < math.prod(shape) * kind.itemsize <= MAX_DENSE_BYTES:
        raise ModelError(f"a sparse constant of shape {list(shape)} with {values.size} bytes of values")
    return dense_constant(values.view(kind), shape, _layout(tensor.sparsity))


def _tensor(tensor: TfLiteTensor, index: int) -> Tensor:
    dtype = TYPES.get(tensor.type) or OTHER_TYPES.get(tensor.type, _UNKNOWN)
    data, name = constant_of(tensor), printable_name(tensor.name)
    return Tensor(index, name, integers_at(tensor.dims), dtype, data, scales_of(tensor), bool(tensor.is_variable))


def _inputs(tensors: Mapping[int, Tensor], nodes: Iterable[Node]) -> tuple[int, ...]:
    """The tensors that something outside gives a value: those that are read, else one of the others."""
    written = {index for node in nodes for index in node.outputs}
    given = [
        index
        for index, tensor in tensors.items()
        if index not in written and not tensor.is_constant and not tensor.is_variable
    ]
    read = {index for node in nodes for index in node.inputs}
    return tuple(index for index in given if index in read) or tuple(given[:1])


def called_subgraphs(context: TfLiteContext) -> frozenset[int] | None:
    """The numbers of the subgraphs that its operators run, and that these run; None if it may be any."""
    called, own = set[int](), _called_by(context)
    if own is None:
        return None
    waiting = [*own]
    while waiting:
        number = waiting.pop()
        if number in called:
            continue
        called.add(number)
        with subgraph_context(context, number) as inner:
            more = _called_by(inner)
        if more is None:
            return None
        waiting += more
    return frozenset(called)


def run_by(context: TfLiteContext, numbers: Iterable[int]) -> frozenset[int]:
    """The subgraphs that some of its operators run, branches and loops, while none is replaced yet."""
    found = set[int]()
    for index in numbers:
        node, registration = operator_at(context, index)
        op = BUILTINS.get(registration.builtin_code, "")
        if op in CALLS and op != CALL_ONCE and node.builtin_data:
            found |= {number for _, number in CALLS[op].options_at(node.builtin_data) or () if isinstance(number, int)}
    return frozenset(found)


def called_once(context: TfLiteContext) -> frozenset[int]:
    """The subgraphs that set its variables."""
    found = set[int]()
    for index in execution_plan(context):
        node, registration = operator_at(context, index)
        if registration.builtin_code == _CALL_ONCE and node.builtin_data:
            said = CALLS[CALL_ONCE].options_at(node.builtin_data) or ()
            found |= {number for _, number in said if isinstance(number, int)}
    return frozenset(found)


def _called_by(context: TfLiteContext) -> set[int] | None:
    """Those that its own operators run."""
    called = set[int]()
    for index in execution_plan(context):
        node, registration = operator_at(context, index)
        op = BUILTINS.get(registration.builtin_code, _NEWER)
        if op in CALLS and node.builtin_data:
            called |= {number for _, number in CALLS[op].options_at(node.builtin_data) or () if isinstance(number, int)}
        elif op in CALLS or op.startswith(_NEWER):
            return None
    return called


def scales_of(tensor: TfLiteTensor) -> Quantization | None:
    """What the integers mean; None where nothing is said, or in a way that no kernel here takes."""
    if tensor.quantization_type == BLOCK_QUANTIZATION and tensor.quantization_params:
        blocks = TfLiteBlockwiseQuantization.from_address(tensor.quantization_params)
        return WeightBlocks((), (), blocks.quantized_dimension, blocks.scale, blocks.zero_point, blocks.blocksize)
    if tensor.quantization_type != AFFINE_QUANTIZATION or not tensor.quantization_params:
        return None
    found = TfLiteAffineQuantization.from_address(tensor.quantization_params)
    scales, zero_points = floats_at(found.scale), integers_at(found.zero_point)
    if len(zero_points) == 1:  # some runtimes keep equal ones once
        zero_points *= len(scales)
    return Quantization(scales, zero_points, found.quantized_dimension) if scales and zero_points else None


def _layout(address: int) -> SparseLayout:
    found = TfLiteSparsity.from_address(address)
    levels = (TfLiteDimensionMetadata * found.dim_metadata_size).from_address(found.dim_metadata)
    return SparseLayout(
        integers_at(found.traversal_order), integers_at(found.block_map), tuple(_level(each) for each in levels)
    )


def _level(level: TfLiteDimensionMetadata) -> SparseLevel:
    if level.format != SPARSE_DIMENSION:
        return SparseLevel(level.dense_size)
    return SparseLevel(0, _indices(level.array_segments), _indices(level.array_indices))


def _indices(address: int | None) -> Integers:
    """A TfLiteIntArray that may be long."""
    count = ctypes.c_int.from_address(address).value if address else 0
    if not address or count < 1:
        return np.zeros(0, np.int64)
    return np.array((ctypes.c_int * count).from_address(address + ctypes.sizeof(ctypes.c_int)), np.int64)


def _operator(context: TfLiteContext, index: int, initial: InitialValues) -> Node:
    """An operator with its options; one that has some which no file can say becomes one that no kernel here takes.

    A variable has what it holds at first among its options, as ops/variables.py writes it.
    """
    node, registration = operator_at(context, index)
    code, op = registration.builtin_code, BUILTINS.get(registration.builtin_code, "")
    known = CALLS[op] if op in CALLED and op in CALLS else STRUCTS.get(op)
    size_bytes = node.custom_initial_data_size if node.custom_initial_data else 0
    said = Opaque(
        code=code,
        version=registration.version,
        custom_code=(registration.custom_name or b"") if code == CUSTOM else b"",
        custom_options=ctypes.string_at(node.custom_initial_data, size_bytes) if size_bytes > 0 else b"",
    )
    if known is not None:
        options = known.options_at(node.builtin_data) if node.builtin_data else None
        if options is None:
            said = replace(said, code=CUSTOM, custom_code=BUILTINS[code].encode())
        else:
            said = replace(said, table=known.table, options=options)
    if code in (_VAR_HANDLE, _CALL_ONCE) and initial.why_not:
        said = replace(said, code=CUSTOM, custom_code=BUILTINS[code].encode())
    elif code == _CALL_ONCE:
        said = replace(said, table=CALLS[CALL_ONCE].table, options=(("InitSubgraphIndex", ALREADY_READ),))
    elif code == _VAR_HANDLE:
        name = variable_name(*(dict(said.options).get(part) for part in ("Container", "SharedName")))
        said = replace(said, custom_options=initial.values.get(name, b""))
    return Node("", integers_at(node.inputs), integers_at(node.outputs), said, index)
