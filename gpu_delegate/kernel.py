"""One kernel as a value: a planned body or vector nodes go in, complete GLSL, grid, bindings and weights come out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_delegate.bindings import Source, Target, declare
from gpu_delegate.body import Body
from gpu_delegate.cost import macs_of
from gpu_delegate.device import Device
from gpu_delegate.emit import Emitter, Tile
from gpu_delegate.graph import Graph, Node
from gpu_delegate.layout import Storages, ceil_div, shape_of
from gpu_delegate.ops.depth_to_space import plain_lanes
from gpu_delegate.ops.registry import OPS
from gpu_delegate.packing import Blob, Float32Array
from gpu_delegate.shader import fill, load
from gpu_delegate.vector import VectorEmitter

VECTOR_THREADS = 256  # of the one work-group of a vector kernel


@dataclass(frozen=True)
class Kernel:
    """A dispatch before memory is planned. Tensors are numbers of the graph; weights are texels (N, 4)."""

    name: str
    nodes: tuple[Node, ...]
    source: str
    grid: tuple[int, int, int]
    local: tuple[int, int, int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    through_storage: tuple[bool, ...]  # of each input: read as SSBO since it is too large for a buffer texture
    weights: Float32Array
    macs: int


def pixel_kernel(body: Body, prologue: Sequence[Node], tile: Tile, device: Device, storages: Storages) -> Kernel:
    """GLSL for a body under a tile, with vector nodes computed first by every work-group."""
    graph = body.graph
    inputs = input_names(graph, body.inputs, prologue)
    blob = Blob()
    threads = int(np.prod(tile.local))
    vectors = VectorEmitter(graph, prologue, threads, inputs, blob)
    emitter = Emitter(OPS, body, tile, inputs, vectors.arrays, blob, storages)
    emitter.emit()
    domain, slices = body.domain, shape_of(graph.tensors[body.outputs[0]]).slices
    defines = {
        **_local(tile.local),
        "WIDTH": domain.width,
        "HEIGHT": domain.height,
        "ROWS": tile.rows,
        "SLICES": max(tile.z_slices, 1),
        "ALL_SLICES": slices if tile.z_slices else 1,
    }
    targets = [_target(body, tensor, storages) for tensor in body.outputs]
    bindings = declare(_sources(graph, tuple(inputs), device, storages), targets)
    lines = vectors.lines + emitter.preamble + emitter.lines
    text = fill(load("kernel.comp", defines), {"bindings": bindings + vectors.shared, "body": lines})
    grid = (
        ceil_div(domain.width, tile.local[0]),
        ceil_div(domain.height, tile.local[1] * tile.rows),
        ceil_div(slices, tile.z_slices * tile.local[2]) if tile.z_slices else 1,
    )
    return _finish(graph, (*prologue, *body.nodes), text, grid, tile.local, tuple(inputs), body.outputs, blob, device)


def vector_kernel(
    graph: Graph, nodes: Sequence[Node], outputs: Sequence[int], device: Device, storages: Storages
) -> Kernel:
    """GLSL for vector nodes alone: one work-group, whose results are stored."""
    threads = VECTOR_THREADS
    inputs = input_names(graph, (), nodes)
    blob = Blob()
    vectors = VectorEmitter(graph, nodes, threads, inputs, blob)
    stores = []
    for k, tensor in enumerate(outputs):
        shape = shape_of(graph.tensors[tensor])
        stores += [
            f"    for (int o = thread; o < {shape.slices}; o += {threads})",
            f"        WRITE(out{k}, o, keep({vectors.arrays[tensor]}[o], {shape.channels} - 4 * o));",
        ]
    local = (threads, 1, 1)
    bindings = declare(_sources(graph, tuple(inputs), device, storages), [Target(storages[t]) for t in outputs])
    text = fill(
        load("kernel.comp", {**_local(local), "WIDTH": threads, "HEIGHT": 1}),
        {"bindings": bindings + vectors.shared, "body": vectors.lines + stores},
    )
    return _finish(graph, tuple(nodes), text, (1, 1, 1), local, tuple(inputs), tuple(outputs), blob, device)


def _finish(
    graph: Graph, nodes: tuple[Node, ...], source: str, grid: tuple[int, int, int], local: tuple[int, int, int],
    inputs: tuple[int, ...], outputs: tuple[int, ...], blob: Blob, device: Device,
) -> Kernel:  # fmt: skip
    return Kernel(
        name="+".join(short_name(node) for node in nodes),
        nodes=nodes, source=source, grid=grid, local=local, inputs=inputs, outputs=outputs,
        through_storage=tuple(_too_large(graph, tensor, device) for tensor in inputs),
        weights=blob.data(), macs=sum(macs_of(graph, node) for node in nodes),
    )  # fmt: skip


def input_names(graph: Graph, body_inputs: Sequence[int], prologue: Sequence[Node]) -> dict[int, str]:
    """Tensors that a kernel reads, in order of use, as in0, in1, ..."""
    made = {out for node in prologue for out in node.outputs}
    read = [tensor for tensor in body_inputs if tensor not in made]
    for node in prologue:
        operands = node.inputs[:1] if node.op == "CONV_2D" else node.inputs
        read += [t for t in operands if t not in made and not _is_weights(graph, t)]
    return {tensor: f"in{k}" for k, tensor in enumerate(dict.fromkeys(read))}


def _is_weights(graph: Graph, tensor: int) -> bool:
    """A constant vector, which stands among a kernel's weights; constant maps are read like tensors."""
    return graph.tensors[tensor].is_constant and shape_of(graph.tensors[tensor]).is_vector


def short_name(node: Node) -> str:
    short = {
        "CONV_2D": "conv",
        "DEPTHWISE_CONV_2D": "dw",
        "RESIZE_BILINEAR": "up",
        "HARD_SWISH": "hswish",
        "LOGISTIC": "sigmoid",
    }
    return short.get(node.op, node.op.lower())


def _local(local: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(("LOCAL_X", "LOCAL_Y", "LOCAL_Z"), local, strict=True))


def _too_large(graph: Graph, tensor: int, device: Device) -> bool:
    return shape_of(graph.tensors[tensor]).texels > device.max_texture_texels


def _sources(graph: Graph, inputs: Sequence[int], device: Device, storages: Storages) -> list[Source]:
    return [Source(storages[tensor], _too_large(graph, tensor, device)) for tensor in inputs]


def _target(body: Body, tensor: int, storages: Storages) -> Target:
    storage = storages[tensor]
    if storage.lanes == 4:
        return Target(storage)
    return Target(storage, plain_lanes(shape_of(body.graph.tensors[tensor]).width // body.domain.width))
