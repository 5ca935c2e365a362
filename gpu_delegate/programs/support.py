"""Whether an op runs on the GPU and in the CPU's own code, and with which types.

The example of the op's record is compiled to find out.
"""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..base.errors import TexelflowError, UnsupportedError
from ..device.device import SOFTWARE
from ..model.graph import Graph, Node, Quantization, Shape, Tensor
from ..model.quantization import BYTE_DTYPES
from ..ops.cast import Cast
from ..ops.record import OpRecord
from ..ops.registry import OPS
from ..ops.spectrum import COMPLEX, Transform
from ..ops.variables import ASSIGN, READ, RESOURCE, VAR_HANDLE
from ..passes.steps import FORMS
from ..plan.refusals import find_refusals
from ..reading.reader import read_model
from ..reading.writer import write_model
from ..targets.glsl.compiled_graph import compile_graph
from ..targets.llvm.machine import AVX2
from ..targets.llvm.native_program import compile_native

TYPES = ("float32", "int8", "int32", "bool")
_SCALE = Quantization((0.0625,), (0,))  # of bytes


def unsupported_reason(op: str) -> str | None:
    """None if the op runs on the GPU, else the reason."""
    try:
        compile_graph(example_graph(OPS[op]), SOFTWARE)
    except UnsupportedError as error:
        return str(error).rpartition(" does not run on the GPU: ")[2]
    return None


def native_reason(op: str) -> str | None:
    """None if the CPU's own code computes it, else the reason."""
    try:
        compile_native(example_graph(OPS[op]), AVX2)
    except UnsupportedError as error:
        return str(error).rpartition(" does not run on the CPU's own code: ")[2]
    return None


def types_taken(op: str) -> tuple[str, ...]:
    """Those of TYPES with which an op runs on the GPU: a file that says it is written, read and planned."""
    return tuple(dtype for dtype in TYPES if _takes(op, dtype))


def _takes(op: str, dtype: str) -> bool:
    form = OPS[op].file
    named = {*form.dtypes, *form.first_dtypes, *form.out_dtypes} if form else set()
    if named and dtype not in named and not (dtype == "int8" and op in FORMS):
        return False  # as the reader would say
    try:
        graph = read_model(write_model(_typed_example(OPS[op], dtype)))
        return not graph.opaque and not find_refusals(graph, SOFTWARE).reasons
    except TexelflowError:
        return False


def _typed_example(record: OpRecord, dtype: str) -> Graph:
    """The record's example with another type for the one that it computes with; int32 that comes from truth values.

    Of bytes, a convolution's weights are bytes as well, and its bias is int32.
    """
    graph = example_graph(record)
    (node, *_), dtypes = graph.nodes, {tensor.dtype for tensor in graph.tensors.values()}
    swapped = "float32" if "float32" in dtypes and record.name != "CAST" else record.example.dtype
    tensors = {number: _typed(tensor, swapped, dtype) for number, tensor in graph.tensors.items()}
    if dtype == "int8" and record.byte_rules.weights is not None:
        bias = node.inputs[2]
        tensors[bias] = replace(
            tensors[bias], dtype="int32", data=np.zeros(tensors[bias].shape, np.int32),
            quantization=Quantization((_SCALE.scales[0] ** 2,), (0,)),
        )  # fmt: skip
    if dtype == "int8" and (own := record.byte_rules.output):  # the scale that TensorFlow Lite wants
        quantization = Quantization((own[0],), (own[1],))
        tensors[node.outputs[0]] = replace(tensors[node.outputs[0]], quantization=quantization)
    typed = replace(graph, tensors=MappingProxyType(tensors))
    return _behind_casts(typed) if dtype == "int32" else typed


def _typed(tensor: Tensor, swapped: str, dtype: str) -> Tensor:
    if tensor.dtype != swapped:
        return tensor
    data = None if tensor.data is None else np.ones(tensor.shape, dtype)
    return replace(tensor, dtype=dtype, data=data, quantization=_SCALE if dtype in BYTE_DTYPES else None)


def _behind_casts(graph: Graph) -> Graph:
    """The same of truth values that CAST makes integers, which so are known to be small."""
    tensors, casts, inputs = dict(graph.tensors), list[Node](), list[int]()
    for number in graph.inputs:
        tensor = graph.tensors[number]
        if tensor.dtype != "int32":
            inputs.append(number)
            continue
        inputs.append(len(tensors))
        tensors[len(tensors)] = Tensor(len(tensors), f"t{len(tensors)}", tensor.shape, "bool")
        casts.append(Node("CAST", (inputs[-1],), (number,), Cast("bool", "int32")))
    nodes = tuple(replace(node, index=k) for k, node in enumerate((*casts, *graph.nodes)))
    return replace(graph, tensors=MappingProxyType(tensors), nodes=nodes, inputs=tuple(inputs))


def example_graph(record: OpRecord, seed: int = 0) -> Graph:
    """A graph of the record's example alone, with random constants.

    An op of constants alone gets a reader; complex numbers come from RFFT2D, and their absolute values go on; the graph
    of an op of a state is that of a variable.
    """
    if record.role == "state":
        return _variable_graph(record)
    example, rng = record.example, np.random.default_rng(seed)
    tensors: list[Tensor] = []
    _append(tensors, example.out, example.out_dtype)
    first = record.file.first_dtypes[:1] if record.file else ()
    dtypes = [*first, *[example.dtype] * len(example.shapes)]
    inputs = [_append(tensors, shape, dtype) for shape, dtype in zip(example.shapes, dtypes, strict=False)]
    for shape in example.constants:
        values = rng.permutation(shape[0]) if example.constant_dtype else rng.uniform(-1, 1, shape)
        dtype = example.constant_dtype or example.dtype
        inputs.append(_append(tensors, shape, dtype, values.astype(dtype)))
    for shape in example.kept:
        inputs.append(_append(tensors, shape, example.dtype))
        tensors[-1] = replace(tensors[-1], is_variable=True)
    outputs = (0, *(_append(tensors, shape, example.others_dtype or example.out_dtype) for shape in example.others))
    nodes = [Node(record.name, tuple(inputs), outputs, example.attributes, index=0)]
    runtime = tuple(i for i in inputs if not (tensors[i].is_constant or tensors[i].is_variable))
    if not runtime:
        x, total = (_append(tensors, example.out, "float32") for _ in range(2))
        runtime = (x,)
        nodes.append(Node("ADD", (x, 0), (total,), OPS["ADD"].example.attributes, index=1))
    graph = Graph(record.name, MappingProxyType(dict(enumerate(tensors))), tuple(nodes), runtime, nodes[-1].outputs)
    return _between_floats(graph) if COMPLEX in (example.dtype, example.out_dtype) else graph


def _between_floats(graph: Graph) -> Graph:
    """The same on complex numbers that RFFT2D makes, and to their absolute values."""
    tensors, before, behind = dict(graph.tensors), list[Node](), list[Node]()
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    for side, indices in ((before, inputs), (behind, outputs)):
        for place, index in enumerate(indices):
            *around, rows, columns = shape = tensors[index].shape
            if tensors[index].dtype != COMPLEX:
                continue
            added = indices[place] = len(tensors)
            if side is before:
                shape = (*around, rows, 2 * columns - 2)
                side.append(Node("RFFT2D", (added,), (index,), Transform((rows, 2 * columns - 2))))
            else:
                side.append(Node("COMPLEX_ABS", (index,), (added,)))
            tensors[added] = Tensor(added, f"t{added}", tuple(shape))
    nodes = tuple(replace(node, index=k) for k, node in enumerate((*before, *graph.nodes, *behind)))
    return replace(graph, tensors=MappingProxyType(tensors), nodes=nodes, inputs=tuple(inputs), outputs=tuple(outputs))


def _variable_graph(record: OpRecord) -> Graph:
    """A variable is assigned, and read again. What would call another subgraph before is left out."""
    shape = record.example.out or (1, 5)
    tensors = [Tensor(0, "x", shape), Tensor(1, "v", (), RESOURCE), Tensor(2, "read", shape), Tensor(3, "y", shape)]
    nodes = (
        Node(VAR_HANDLE, (), (1,), OPS[VAR_HANDLE].example.attributes, 0),
        Node(ASSIGN, (1, 0), (), index=1),
        Node(READ, (1,), (2,), index=2),
        Node("ADD", (2, 0), (3,), OPS["ADD"].example.attributes, 3),
    )
    return Graph(record.name, MappingProxyType(dict(enumerate(tensors))), nodes, (0,), (3,))


def _append(tensors: list[Tensor], shape: Shape, dtype: str, data: npt.NDArray[np.generic] | None = None) -> int:
    quantization = _SCALE if dtype in BYTE_DTYPES else None
    tensors.append(Tensor(len(tensors), f"t{len(tensors)}", shape, dtype, data, quantization))
    return len(tensors) - 1
