"""Finds the model that an interpreter runs, and compares it with the one that the user gave.

It is taken from the interpreter's memory in any case; a given model is only compared with it.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..base.errors import ModelError
from ..custom.custom_op import NO_CUSTOM_OPS, CustomOp, with_functions
from ..model.graph import Graph, Hybrid, Node, Opaque, Tensor
from ..reading.bundles import model_file_bytes
from ..reading.reader import ReadModel, printable_name, read_model
from .callers_file import OrderOf, unknown_order
from .context_model import model_of
from .live_constants import as_bytes, same_bytes
from .structs import TfLiteContext


@dataclass(frozen=True)
class FoundModel:
    """The model of an interpreter."""

    data: bytes  # as a file would have it
    graph: Graph


def find_model(
    context: TfLiteContext,
    given: str | os.PathLike[str] | bytes | None = None,
    read: ReadModel = read_model,
    subgraph: int = 0,
    hybrid: Hybrid = "expanded",
    order: OrderOf = unknown_order,
    custom_ops: Mapping[str, CustomOp] = NO_CUSTOM_OPS,
) -> FoundModel:
    """The context's model, before nodes are replaced; `given` is the path or the bytes of what it should be.

    Of that the subgraph with this number counts. `hybrid` is the graph's, in which operators are marked that
    `custom_ops` compute. `order` is that of inputs and outputs of subgraphs that its operators run. Raises ModelError
    where the model cannot be read, or where `given` is damaged or another one, UsageError where that lacks the
    subgraph.
    """
    data, name = model_of(context, order), "model"
    if given is None:
        return FoundModel(data, _computed(read(data, name), hybrid, custom_ops))
    if not isinstance(given, bytes):
        name = Path(given).stem
    expected = read_model(given if isinstance(given, bytes) else model_file_bytes(given), name, subgraph)
    graph = read(data, name)
    difference = next(differences(expected, graph), "")
    if difference:
        raise ModelError(f"model={_shown(given)} is not the model of this interpreter: {difference}")
    return FoundModel(data, _computed(graph, hybrid, custom_ops))


def _computed(graph: Graph, hybrid: Hybrid, custom_ops: Mapping[str, CustomOp]) -> Graph:
    return with_functions(graph if graph.hybrid == hybrid else replace(graph, hybrid=hybrid), custom_ops)


def differences(expected: Graph, found: Graph) -> Iterator[str]:
    """What is different in a graph that was found from the one that was expected, as far as kernels read it."""
    if len(expected.nodes) != len(found.nodes):
        yield f"{len(expected.nodes)} operators instead of {len(found.nodes)}"
        return
    if {*expected.tensors} - {*found.tensors} - {*expected.inputs, *expected.outputs}:
        yield f"{len(expected.tensors)} tensors instead of {len(found.tensors)}"
        return
    for index in sorted({*expected.tensors} & {*found.tensors}):
        yield from _tensor_differences(expected.tensors[index], found.tensors[index])
    for one, other in zip(expected.nodes, found.nodes, strict=True):
        yield from _node_differences(one, other)


def _tensor_differences(expected: Tensor, found: Tensor) -> Iterator[str]:
    what = f"tensor {expected.index}"
    if expected.shape != found.shape:
        yield f"{what} has the shape {list(expected.shape)} instead of {list(found.shape)}"
    if expected.dtype != found.dtype:
        yield f"{what} is {expected.dtype} instead of {found.dtype}"
    is_float = expected.dtype.startswith("float")  # floats mean themselves
    if not is_float and expected.quantization != found.quantization:
        yield f"{what} has another scale or zero point"
    if expected.is_constant != found.is_constant or expected.is_variable != found.is_variable:
        yield f"{what} is {_kind(expected)} instead of {_kind(found)}"
    one, other = expected.data, found.data
    if one is not None and other is not None and not same_bytes(as_bytes(one), as_bytes(other)):
        yield f"{what}, a constant, has other values"


def _node_differences(expected: Node, found: Node) -> Iterator[str]:
    what = f"operator {expected.index}"
    if expected.op != found.op:
        yield f"{what} is {expected.op} instead of {found.op}"
    if isinstance(found.attributes, Opaque):  # TensorFlow Lite computes it, whatever the file says of it
        return
    for verb, one, other in (("reads", expected.inputs, found.inputs), ("writes", expected.outputs, found.outputs)):
        if one != other:
            yield f"{what} {verb} tensors {list(one)} instead of {list(other)}"
    if expected.attributes != found.attributes:
        yield f"{what} ({found.op}) has {expected.attributes} instead of {found.attributes}"


def _kind(tensor: Tensor) -> str:
    return "a constant" if tensor.is_constant else "a variable" if tensor.is_variable else "computed"


def _shown(given: str | os.PathLike[str] | bytes) -> str:
    return f"{len(given)} bytes" if isinstance(given, bytes) else printable_name(os.fspath(given))
