"""Makes copies of a model that each differ in one option, value or scale."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.model.graph import Graph, Node, Opaque, OptionValue, OptionVector, Quantization, Tensor
from texelflow.gpu_delegate.reading.reader import GraphReader, read_model
from texelflow.gpu_delegate.reading.writer import write_model


@dataclass(frozen=True)
class AlteredModel:
    """A model, and what is different in it."""

    what: str
    data: bytes


def altered_models(model: bytes) -> Iterator[AlteredModel]:
    """Those of a model that has nothing sparse."""
    graph = _as_said(model)
    for place, node in enumerate(graph.nodes):
        for what, other in _other_operators(node):
            nodes = (*graph.nodes[:place], other, *graph.nodes[place + 1 :])
            yield AlteredModel(f"operator {place}: {what}", write_model(replace(graph, nodes=nodes)))
    for index, tensor in graph.tensors.items():
        for what, other_tensor in _other_tensors(tensor):
            tensors = MappingProxyType({**graph.tensors, index: other_tensor})
            yield AlteredModel(f"tensor {index}: {what}", write_model(replace(graph, tensors=tensors)))


def is_sound(model: bytes, altered: bytes) -> bool:
    """Whether the reader takes the same operators of both: on what it refuses TensorFlow Lite may crash."""
    try:
        kinds = [[isinstance(node.attributes, Opaque) for node in read_model(each).nodes] for each in (model, altered)]
    except ModelError:
        return False
    return kinds[0] == kinds[1]


def _as_said(model: bytes) -> Graph:
    """All operators with everything that the file says of them, all tensors with their numbers."""
    reader = GraphReader(model)
    graph = reader.graph("model")
    operators = (reader.file.subgraph.Operators(number) for number in range(len(graph.nodes)))
    nodes = tuple(
        reader.opaque(
            number, reader.code(number, table.OpcodeIndex()), table, reader.indices(table, "Inputs"),
            reader.indices(table, "Outputs"), "",
        )
        for number, table in enumerate(operators)
    )  # fmt: skip
    tensors = {index: reader.tensors[index] for index in range(reader.file.tensor_count)}
    return replace(graph, nodes=nodes, tensors=MappingProxyType(tensors), original=b"")


def _other_operators(node: Node) -> Iterator[tuple[str, Node]]:
    said = node.attributes
    assert isinstance(said, Opaque)
    for place, (name, value) in enumerate(said.options):
        options = (*said.options[:place], (name, _other(value)), *said.options[place + 1 :])
        yield name, replace(node, attributes=replace(said, options=options))
    if said.custom_options:
        data = bytes((said.custom_options[0] ^ 3, *said.custom_options[1:]))
        yield "custom options", replace(node, attributes=replace(said, custom_options=data))


def _other(value: OptionValue) -> OptionValue:
    if isinstance(value, bool):
        return not value
    if isinstance(value, OptionVector):
        numbers = np.frombuffer(value.data, value.dtype).copy()
        return replace(value, data=numbers[::-1].tobytes() if len({*numbers.tolist()}) > 1 else (numbers + 1).tobytes())
    if isinstance(value, bytes):
        return value + b"x"
    return value + 0.5 if isinstance(value, float) else value ^ 1


def _other_tensors(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    if tensor.data is not None and tensor.data.size:
        raw = bytearray(tensor.data.tobytes())
        item = tensor.data.dtype.itemsize
        raw[-1 if item == 1 else -2 if tensor.data.dtype.kind == "f" else -item] ^= 1
        data = np.frombuffer(bytes(raw), tensor.data.dtype).reshape(tensor.data.shape)
        yield "the last value", replace(tensor, data=data)
    found = tensor.quantization
    if found is not None and not tensor.dtype.startswith("float"):
        for name, other in _other_scales(found):
            yield name, replace(tensor, quantization=other)


def _other_scales(found: Quantization) -> Iterator[tuple[str, Quantization]]:
    yield "the last scale", replace(found, scales=(*found.scales[:-1], found.scales[-1] * 1.5))
    yield "the last zero point", replace(found, zero_points=(*found.zero_points[:-1], found.zero_points[-1] ^ 1))
