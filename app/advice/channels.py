"""Finds layers with a few channels more than whole slices of four, and pictures of three channels."""

import math
from collections.abc import Iterator
from dataclasses import replace

from texelflow.gpu_delegate.model.graph import Graph, Tensor
from texelflow.gpu_delegate.model.layout import RANK, aligned_channels

from .cost import RunCost, copy_cost
from .coupled_channels import Coupling, channels, find_couplings, with_sizes
from .fault import Analysis, Fault, is_of_constants, operators_of

_FEW = 2  # of four lanes: with three in use there is little to gain
_MOST_SIZES = 12  # that are tried, the largest first


def padded_channels(analysis: Analysis) -> Iterator[Fault]:
    """5 channels cost as much as 8."""
    sizes: dict[int, list[Coupling]] = {}
    for coupling in find_couplings(analysis.graph):
        if coupling.size > 4 and 1 <= coupling.size % 4 <= _FEW:
            sizes.setdefault(coupling.size, []).append(coupling)
    for size in sorted(sizes, key=lambda size: -_values(analysis, sizes[size]))[:_MOST_SIZES]:
        narrowed = with_sizes(analysis.graph, dict.fromkeys(sizes[size], size // 4 * 4))
        if narrowed is not None:
            yield _padded(analysis.graph, size, sizes[size], narrowed)


def _padded(graph: Graph, size: int, couplings: list[Coupling], narrowed: Graph) -> Fault:
    used, whole = size % 4, aligned_channels(size)
    tensors = {
        tensor for coupling in couplings for tensor, _ in coupling.sides if not graph.tensors[tensor].is_constant
    }
    layers = [node for node in graph.nodes if tensors.intersection(node.outputs) and not is_of_constants(graph, node)]
    return Fault(
        kind="channels",
        what=f"{size} channels cost as much as {whole}",
        operators=operators_of(layers),
        tensors=tuple(sorted(out for node in layers for out in node.outputs if out in tensors)),
        why=f"channels lie and are computed in slices of four; of the last one {used} of 4 lanes "
        f"{'is' if used == 1 else 'are'} used",
        change=f"give these layers {whole - 4} channels, which saves this, or {whole}, which cost no more than {size}",
        remedy=narrowed,
    )


def _values(analysis: Analysis, couplings: list[Coupling]) -> int:
    """How much lies in tensors of these couplings, in pixels."""
    tensors = {tensor for coupling in couplings for tensor, _ in coupling.sides}
    return sum(_pixels(analysis.graph.tensors[tensor]) for tensor in tensors)


def _pixels(tensor: Tensor) -> int:
    return 0 if tensor.is_constant else math.prod(tensor.shape[:-1])


def rgb_inputs(analysis: Analysis) -> Iterator[Fault]:
    """RGB inputs that could be RGBA."""
    for tensor in analysis.graph.inputs:
        readers = [node for node in analysis.graph.nodes if tensor in node.inputs]
        saved = _as_four(analysis, tensor, any(tensor in part.inputs for part in analysis.found.partitions))
        if saved is None:
            continue
        yield Fault(
            kind="rgb input",
            what=f"the input {_shown(analysis.graph.tensors[tensor])} has three channels",
            operators=operators_of(readers),
            tensors=(tensor,),
            why="three floats a pixel in memory become four lanes on the GPU, by a kernel; four are there as they lie. "
            "It costs nothing where a texture is the input, as in live and replay",
            change="take RGBA: a fourth input channel, with weights of zero, in the layers that read it",
            remedy=saved,
        )


def rgb_outputs(analysis: Analysis) -> Iterator[Fault]:
    """Pictures of three channels that could have four."""
    for tensor in analysis.graph.outputs:
        writers = [node for node in analysis.graph.nodes if tensor in node.outputs]
        saved = _as_four(analysis, tensor, any(tensor in part.outputs for part in analysis.found.partitions))
        if saved is None:
            continue
        yield Fault(
            kind="rgb output",
            what=f"the output {_shown(analysis.graph.tensors[tensor])} has three channels",
            operators=operators_of(writers),
            tensors=(tensor,),
            why="four lanes on the GPU become three floats a pixel in memory, by a kernel; "
            "textures that are shown have four, too",
            change="if it is shown as a picture, give it a fourth channel, such as alpha",
            remedy=saved,
        )


def _as_four(analysis: Analysis, tensor: int, crosses: bool) -> RunCost | None:
    """What is saved if a picture of three channels has four; None if it is no such picture, or not the GPU's."""
    graph, (_, last) = analysis.graph, channels(analysis.graph.tensors[tensor])
    found = graph.tensors[tensor]
    if not crosses or last != RANK - 1 or found.shape[last] != 3 or min(found.shape[1:3]) == 1:
        return None
    four = replace(found, shape=(*found.shape[:-1], 4))
    return copy_cost(found, analysis.rates) - copy_cost(four, analysis.rates)


def _shown(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))
