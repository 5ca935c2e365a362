"""Damages or changes .tflite files: their bytes, their tables, or the graph.

Three kinds: damage to bytes wherever they are; to what the file says in its tables (offsets, vtables, fields, small
vectors), which passes for a model more often; and changes of the graph, written again, which mostly are models.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
import tflite

from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.model.graph import ABSENT, Graph, Node, OptionVector, Padding, Pool2D, Quantization, Tensor
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model

Mutation = Callable[[bytes, bytes, Random], bytes]  # of a file; the second is another one, to splice with

WORDS = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 16, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x3FFFFFFF, 0x40000000),
    *(0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFF0, 0xFFFFFFFC, 0xFFFFFFFE, 0xFFFFFFFF),
)
FLOATS = (0.0, -0.0, 1e-45, 1e-38, 1.0, -1.0, 3e38, -3e38, float("inf"), float("-inf"), float("nan"), 65504.0, 1e6)
SIZES = (1, 2, 3, 5, 8, 16, 64, 255, 1000, 4096, 1 << 15, 1 << 20)
UNARY = (
    *("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LOGISTIC", "TANH"),
    *("ABS", "NEG", "SQRT", "RSQRT", "SQUARE", "EXP", "LOG"),
)
BINARY = (("ADD", "SUB", "MUL", "DIV"), ("MAXIMUM", "MINIMUM"))
# What no file can say, and graphs that are not written.
_UNWRITABLE = (KeyError, IndexError, TypeError, ValueError, OverflowError, struct.error, AttributeError, TexelflowError)
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1", "TANH")


def mutated(data: bytes, other: bytes, random: Random) -> bytes:
    """One to three mutations, one after the other."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        (mutation,) = random.choices([mutation for mutation, _ in MUTATIONS], [weight for _, weight in MUTATIONS])
        data = mutation(data, other, random)
    return data


# Bytes ----------------------------------------------------------------------------------------------------------------


def bits(data: bytes, other: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8)) if changed else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def words(data: bytes, other: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        put(changed, 4 * random.randrange(max(1, len(changed) // 4)), random.choice(WORDS))
    return bytes(changed)


def cut(data: bytes, other: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def splice(data: bytes, other: bytes, random: Random) -> bytes:
    """A run of words of the other file, or of this one, over a place in this one."""
    source = random.choice((data, other))
    length = 4 * random.choice((1, 2, 4, 16, 256, 4096))
    start, target = (4 * random.randrange(max(1, len(file) // 4)) for file in (source, data))
    return (data[:target] + source[start : start + length] + data[target + length :])[: len(data)]


# Tables ---------------------------------------------------------------------------------------------------------------


def told(data: bytes, other: bytes, random: Random) -> bytes:
    """A field, an entry of a vtable or a value of a small vector becomes something else."""
    places = list(places_of(data))
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 3)) if places else 0):
        position, size = random.choice(places)
        old = int.from_bytes(changed[position : position + size], "little")
        new = random.choice((old + 1, old - 1, old ^ (1 << random.randrange(8 * size)), old * 2, random.choice(WORDS)))
        if size == 4 and random.random() < 0.3:  # what another place says
            elsewhere, _ = random.choice(places)
            new = int.from_bytes(changed[elsewhere : elsewhere + 4], "little")
        put(changed, position, new, size)
    return bytes(changed)


def put(data: bytearray, position: int, value: int, size: int = 4) -> None:
    """Writes as much of a little-endian number as there is room for."""
    room = data[position : position + size]
    data[position : position + len(room)] = (value % (1 << 8 * size)).to_bytes(size, "little")[: len(room)]


def places_of(data: bytes) -> Iterator[tuple[int, int]]:
    """Position and size in bytes of what the tables of a model say, as far as they can be read."""
    try:
        for table in tables_of(data):
            tab = table._tab
            vtable = tab.Pos - struct.unpack_from("<i", data, tab.Pos)[0]
            entries = struct.unpack_from("<H", data, vtable)[0] // 2
            yield tab.Pos, 4  # where its vtable is
            for slot in range(-2, min(entries - 2, 32)):
                yield vtable + 4 + 2 * slot, 2
            for slot in range(min(entries - 2, 32)):
                field = tab.Offset(4 + 2 * slot)
                if field:
                    yield tab.Pos + field, 1
                    yield tab.Pos + field, 4
                if field and slot in VECTORS.get(type(table), ()):
                    start, count = tab.Vector(field), tab.VectorLen(field)
                    yield from ((start + 4 * i, 4) for i in range(-1, min(count, 16)))
    except (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError):
        return


def tables_of(data: bytes) -> Iterator[Any]:
    """The model, its first subgraph and what is in them; also what no graph has a place for."""
    model = tflite.Model.GetRootAs(data, 0)
    subgraph = model.Subgraphs(0)
    yield from (model, subgraph)
    for i in range(min(subgraph.OperatorsLength(), 1000)):
        yield (operator := subgraph.Operators(i))
        if options := operator.BuiltinOptions():
            yield Options(options)
    for i in range(min(subgraph.TensorsLength(), 1000)):
        yield (tensor := subgraph.Tensors(i))
        yield from filter(None, (tensor.Quantization(), sparsity := tensor.Sparsity()))
        levels = range(min(sparsity.DimMetadataLength(), 16)) if sparsity else ()
        yield from (sparsity.DimMetadata(i) for i in levels)
    yield from (model.Metadata(i) for i in range(min(model.MetadataLength(), 100)))
    yield from (model.SignatureDefs(i) for i in range(min(model.SignatureDefsLength(), 100)))
    yield from (model.OperatorCodes(i) for i in range(min(model.OperatorCodesLength(), 100)))
    yield from (model.Buffers(i) for i in range(min(model.BuffersLength(), 1000)))


@dataclass(frozen=True)
class Options:
    """Options of an operator, of whatever kind."""

    _tab: Any


# Slots of vectors whose items have 4 bytes: numbers and offsets.
VECTORS = MappingProxyType(
    {tflite.Tensor: (0, 7), tflite.Operator: (1, 2), tflite.SubGraph: (0, 1, 2, 3), tflite.Model: (1, 2, 4, 6, 7)}
    | {tflite.QuantizationParameters: (0, 1, 2, 3), tflite.SignatureDef: (0, 1), tflite.SparsityParameters: (0, 1, 2)}
)


# Graphs ---------------------------------------------------------------------------------------------------------------


def rebuilt(data: bytes, other: bytes, random: Random) -> bytes:
    """The graph changed once to five times, and written again; the same bytes where they are no model."""
    try:
        graph = read_model(data)
    except TexelflowError:
        return data
    try:
        for _ in range(random.randrange(1, 6)):
            graph = random.choice(CHANGES)(graph, random)
        return write_model(graph)
    except _UNWRITABLE:
        return data


def other_node(graph: Graph, old: Node, *new: Node) -> Graph:
    nodes = [each for node in graph.nodes for each in (new if node is old else (node,))]
    return replace(graph, nodes=tuple(nodes))


def other_op(graph: Graph, random: Random) -> Graph:
    node = random.choice(graph.nodes)
    family = next((ops for ops in (UNARY, *BINARY) if node.op in ops), (node.op,))
    return other_node(graph, node, replace(node, op=random.choice(family)))


def other_attribute(graph: Graph, random: Random) -> Graph:
    node = random.choice(graph.nodes)
    names = [field.name for field in fields(node.attributes)]
    if not names:
        return graph
    name = random.choice(names)
    value = changed_value(getattr(node.attributes, name), random)
    return other_node(graph, node, replace(node, attributes=replace(node.attributes, **{name: value})))


def changed_value(value: Any, random: Random) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice((value + 1, value - 1, *SIZES))
    if isinstance(value, float):
        return random.choice(FLOATS)
    if isinstance(value, str):
        return random.choice(ACTIVATIONS)
    if isinstance(value, bytes):
        return mutated_bytes(value, random)
    if isinstance(value, OptionVector):
        return replace(value, data=mutated_bytes(value.data, random))
    if isinstance(value, Padding):
        return random.choice((Padding(), Padding(0, 1, 0, 1), value))
    return tuple(changed_value(item, random) if random.random() < 0.5 else item for item in value)


def mutated_bytes(value: bytes, random: Random) -> bytes:
    """A bit or the length becomes another."""
    return random.choice((bits, cut))(value, b"", random)


def other_wire(graph: Graph, random: Random) -> Graph:
    """A node reads another tensor, mostly one of the same shape."""
    node = random.choice(graph.nodes)
    place = random.randrange(len(node.inputs))
    old = graph.tensors.get(node.inputs[place])
    alike = [i for i, t in graph.tensors.items() if old is None or (t.shape, t.dtype) == (old.shape, old.dtype)]
    index = random.choice((random.choice(alike), random.choice(alike), random.choice(list(graph.tensors)), ABSENT))
    inputs = (*node.inputs[:place], index, *node.inputs[place + 1 :])
    return other_node(graph, node, replace(node, inputs=inputs))


def other_constant(graph: Graph, random: Random) -> Graph:
    """Values of a constant become extreme ones."""
    constants = [tensor for tensor in graph.tensors.values() if tensor.data is not None]
    if not constants:
        return graph
    tensor = random.choice(constants)
    data = np.array(tensor.data)
    kind = random.choice(FLOATS) if data.dtype.kind == "f" else random.choice(SIZES)
    with np.errstate(all="ignore"):
        value = np.array(kind).astype(data.dtype)
    flat = data.reshape(-1)
    flat[random.randrange(flat.size) : random.choice((flat.size, 1, 2))] = value
    return with_tensors(graph, [replace(tensor, data=data)])


def other_batch(graph: Graph, random: Random) -> Graph:
    """All maps get a larger first dimension."""
    factor = random.choice(SIZES)
    return with_tensors(graph, [replace(t, shape=(t.shape[0] * factor, *t.shape[1:])) for t in maps_of(graph)])


def other_size(graph: Graph, random: Random) -> Graph:
    """All maps become so many times as high or wide, pools over whole maps with them; one pixel stays one."""
    factor, axis = random.choice((2, 3, 4, 16, 64, 1000)), random.choice((0, 1))

    by = (factor, 1) if axis == 0 else (1, factor)
    grown = []
    for t in maps_of(graph):
        batch, height, width, channels = t.shape
        if t.shape[axis + 1] > 1:
            grown.append(replace(t, shape=(batch, height * by[0], width * by[1], channels)))
    for node in graph.nodes:
        pool = node.attributes
        if isinstance(pool, Pool2D) and pool.kernel[axis] == graph.tensors[node.inputs[0]].shape[axis + 1]:
            kernel = (pool.kernel[0] * by[0], pool.kernel[1] * by[1])
            pool = replace(pool, kernel=kernel, stride=(pool.stride[0] * by[0], pool.stride[1] * by[1]))
            graph = other_node(graph, node, replace(node, attributes=pool))
    return with_tensors(graph, grown)


def maps_of(graph: Graph) -> list[Tensor]:
    """What is BHWC and no constant, nor a constant's copy."""
    copies = {i for node in graph.nodes if node.op == "DEQUANTIZE" for i in node.outputs}
    return [t for t in graph.tensors.values() if t.data is None and len(t.shape) == 4 and t.index not in copies]


def other_quantization(graph: Graph, random: Random) -> Graph:
    """The scales or zero points of a tensor become extreme ones."""
    tensor = random.choice(list(graph.tensors.values()))
    if tensor.quantization is None:
        return graph
    changed = changed_value(tensor.quantization.scales, random), changed_value(tensor.quantization.zero_points, random)
    return with_tensors(graph, [replace(tensor, quantization=Quantization(*changed, random.choice((0, 1, 3))))])


def other_shape(graph: Graph, random: Random) -> Graph:
    """A size, or the order of two sizes, of one tensor, and of those that its node makes of it."""
    tensor = random.choice(list(graph.tensors.values()))
    if not tensor.shape:
        return graph
    place = random.randrange(len(tensor.shape))
    shape = (*tensor.shape[:place], random.choice(SIZES), *tensor.shape[place + 1 :])
    alike = [t for t in graph.tensors.values() if t.shape == tensor.shape and t.data is None]
    return with_tensors(graph, [replace(t, shape=shape) for t in random.choice(([tensor], alike)) if t.data is None])


def more_dimensions(graph: Graph, random: Random) -> Graph:
    """Everything gets ones in front."""
    ones = (1,) * random.randrange(1, 5)
    return with_tensors(
        graph,
        [
            replace(t, shape=(*ones, *t.shape), data=None if t.data is None else t.data.reshape(*ones, *t.shape))
            for t in graph.tensors.values()
        ],
    )


def other_order(graph: Graph, random: Random) -> Graph:
    first, second = random.choice(graph.nodes), random.choice(graph.nodes)
    swapped = {id(first): second, id(second): first}
    return replace(graph, nodes=tuple(swapped.get(id(node), node) for node in graph.nodes))


def fewer_nodes(graph: Graph, random: Random) -> Graph:
    """What a node wrote comes from another tensor of its shape."""
    node = random.choice(graph.nodes)
    out = graph.tensors[node.outputs[0]]
    alike = [i for i, t in graph.tensors.items() if t.shape == out.shape and i != out.index]
    instead = random.choice(alike) if alike else out.index

    def without(indices: Sequence[int]) -> tuple[int, ...]:
        return tuple(instead if i == out.index else i for i in indices)

    nodes = tuple(replace(n, inputs=without(n.inputs)) for n in graph.nodes if n is not node)
    return replace(graph, nodes=nodes, outputs=without(graph.outputs))


def more_nodes(graph: Graph, random: Random) -> Graph:
    """A node over and over, each time on its own result where that has the same shape."""
    node = random.choice(graph.nodes)
    out = graph.tensors[node.outputs[0]]
    free = max(graph.tensors) + 1
    copies = [node]
    for index in range(free, free + random.choice((1, 3, 30, 1000))):
        same = graph.tensors[node.inputs[0]].shape == out.shape
        inputs = (copies[-1].outputs[0], *node.inputs[1:]) if same else node.inputs
        copies.append(replace(node, inputs=inputs, outputs=(index,)))
    new = [replace(out, index=copy.outputs[0]) for copy in copies[1:]]
    outputs = random.choice((graph.outputs, (*graph.outputs, copies[-1].outputs[0])))
    return replace(with_tensors(other_node(graph, node, *copies), new), outputs=outputs)


def other_outputs(graph: Graph, random: Random) -> Graph:
    written = [node.outputs[0] for node in graph.nodes] + list(graph.inputs)
    outputs = [random.choice(written) for _ in range(random.choice((1, 2, 5, 100)))]
    return replace(graph, outputs=(*graph.outputs, *outputs) if random.random() < 0.5 else tuple(outputs))


def with_tensors(graph: Graph, tensors: Sequence[Tensor]) -> Graph:
    changed: Mapping[int, Tensor] = {**graph.tensors, **{tensor.index: tensor for tensor in tensors}}
    return replace(graph, tensors=MappingProxyType(changed))


CHANGES = (
    other_op,
    other_attribute,
    other_wire,
    other_constant,
    other_constant,
    other_batch,
    other_size,
    other_quantization,
    other_shape,
    more_dimensions,
    other_order,
    fewer_nodes,
    more_nodes,
    other_outputs,
)
MUTATIONS: tuple[tuple[Mutation, int], ...] = ((bits, 2), (words, 2), (cut, 1), (splice, 2), (told, 6), (rebuilt, 8))
