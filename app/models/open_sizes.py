"""Gives a network's inputs the sizes that its file leaves open: the picture's, a ratio's value, those of its states.

Robust Video Matting, converted as it is, has a picture of any size, states of [1, 1, 1, 1], which stand for zeros of
any size, and a downsample ratio, by which it computes sizes. A picture without a size gets OPEN_SIZE. A state has the
shape of the output that takes its place: the one of its name, else the first in turn with which the graph can be read
and that keeps its shape then.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.interpreter.file_details import SubgraphDetails
from texelflow.gpu_delegate.model.graph import Graph, Shape, Tensor
from texelflow.gpu_delegate.reading.resizing import read_resized

from .mattes import ALPHA_NAME, CONVERT_FIXED, are_named_alike, downsample_ratio, may_be_picture, picture_of_inputs

OPEN_SIZE = (288, 512)  # (height, width)
_RATIO_NAME = "ratio"
_MOST_TRIED = 16  # states, and outputs for one of them: each trial reads the file


def with_known_sizes(data: bytes, graph: Graph) -> Graph:
    """The graph of a file's bytes with all sizes; the same one where the file leaves none open that is known here.

    A ratio by which sizes are computed has its value, and is an input still. Raises UnsupportedError where operators
    do not take the picture's size, or where what they make of it is unknown.
    """
    if graph.original or not any(may_be_picture(graph.tensors[index].shape) for index in graph.inputs):
        return graph
    picture, ratio, details = picture_of_inputs(graph), _ratio(graph), SubgraphDetails(data, graph.subgraph)
    is_open = _leaves_open(details, graph, picture)
    ones = [index for index in graph.inputs if index != picture and _is_any_size(details, graph.tensors[index])]
    states = [index for index in ones if is_open or not _has_place(graph, index)]
    counts = ratio is not None and bool(graph.opaque)
    if not (is_open or states or counts):
        return graph
    size = OPEN_SIZE if is_open else graph.tensors[picture].shape[1:3]
    shapes: dict[int, Shape] = {picture: (1, *size, 3), **{index: graph.tensors[index].shape for index in states}}
    values = {} if ratio is None else {ratio: downsample_ratio(size, graph.tensors[ratio])}
    try:
        found = read_resized(data, graph, shapes, values)
    except UnsupportedError as error:
        helps = CONVERT_FIXED if len(graph.inputs) > 1 else "convert it with a fixed size, such as [1, 256, 256, 3]"
        raise UnsupportedError(f"{error}; {helps}") from None
    for state in states[:_MOST_TRIED]:
        if not _has_place(found, state):
            found = _with_state(data, found, shapes, values, state)
    return found


def _is_any_size(details: SubgraphDetails, tensor: Tensor) -> bool:
    """Whether it has one value that stands for as many as there may be: the file says so, and it is no single number.

    A gain of [1, 1, 1, 1], which is to stay as it is, has no sizes that are left open.
    """
    return len(tensor.shape) > 1 and set(tensor.shape) == {1} and _has_open(details, tensor) and not tensor.unusable


def _has_open(details: SubgraphDetails, tensor: Tensor) -> bool:
    said = details.shape_signature(tensor.index)
    return said is not None and -1 in said


def _has_place(graph: Graph, state: int) -> bool:
    """Whether an output has the shape of a state as it is."""
    own = graph.tensors[state]
    return any(
        graph.tensors[index].shape == own.shape and _may_be(graph.tensors[index], own) for index in graph.outputs
    )


def _leaves_open(details: SubgraphDetails, graph: Graph, picture: int) -> bool:
    """Whether a file says of a picture's height and width that they may be any, and has no more than 1 for them."""
    said = details.shape_signature(picture)
    return said is not None and said[1:3] == (-1, -1) and max(graph.tensors[picture].shape[1:3]) <= 1


def _ratio(graph: Graph) -> int | None:
    """The input of one number that is a downsample ratio: the only one, or the only one that is called a ratio."""
    scalars = [index for index in graph.inputs if graph.tensors[index].shape in ((), (1,))]
    named = [index for index in scalars if _RATIO_NAME in graph.tensors[index].name.lower()]
    found = named or scalars
    return found[0] if len(found) == 1 and graph.tensors[found[0]].dtype == "float32" else None


def _with_state(
    data: bytes, graph: Graph, shapes: dict[int, Shape], values: Mapping[int, npt.NDArray[np.generic]], state: int
) -> Graph:
    """The graph with a state of the shape of an output, which `shapes` gets, too; the same one if none fits."""
    for output in _in_turn(graph, state):
        tried = {**shapes, state: graph.tensors[output].shape}
        try:
            found = read_resized(data, graph, tried, values)
        except UnsupportedError:
            continue
        if found.tensors[output].shape == tried[state]:
            shapes.update(tried)
            return found
    return graph


def _in_turn(graph: Graph, state: int) -> Iterator[int]:
    """Outputs that may take a state's place: of its name first, alphas and what other states have last."""
    own = graph.tensors[state]
    taken = {graph.tensors[index].shape for index in graph.inputs}

    def rank(output: int) -> tuple[bool, bool, bool]:
        tensor = graph.tensors[output]
        return not are_named_alike(tensor, own), tensor.shape in taken, ALPHA_NAME.search(tensor.name) is not None

    fitting = [index for index in graph.outputs if _may_be(graph.tensors[index], own)]
    yield from sorted(fitting, key=rank)[:_MOST_TRIED]


def _may_be(output: Tensor, state: Tensor) -> bool:
    kinds = [(len(tensor.shape), tensor.dtype, tensor.quantization) for tensor in (output, state)]
    return kinds[0] == kinds[1]
