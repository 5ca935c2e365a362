"""Makes a network that remembers, or that puts out a person's own colors, one with a picture as input and one output.

Robust Video Matting has this form: a picture and r1 to r4 go in, perhaps a downsample ratio; a foreground, an alpha and
the next r1 to r4 come out. Each further input takes what came out in its shape the run before (with_feedback), zeros at
first, and the ratio becomes a constant. A foreground F and an alpha become one output of four channels: how much F is
lighter than the picture, in red, green and blue where black is 0 and white 1, then the alpha. So a person's own color
is the frame's, with all its detail, plus that.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.model.feedback import with_feedback
from texelflow.gpu_delegate.model.graph import ABSENT, Concatenation, Graph, Shape, Tensor

from .added_nodes import AddedNodes

ALPHA = 3  # the channel of it behind the colors
MATTE_CHANNELS = 4
WIDE = 512  # pixels of the longer side that a downsample ratio leaves, as Robust Video Matting advises
CONVERT_FIXED = (
    "convert it with fixed sizes, as Robust Video Matting with: onnx2tf -i rvm_mobilenetv3_fp32.onnx -ois "
    "src:1,3,288,512 r1i:1,16,144,256 r2i:1,20,72,128 r3i:1,40,36,64 r4i:1,64,18,32"
)

_BOUNDED = ("LOGISTIC", "SOFTMAX", "RELU_0_TO_1", "MINIMUM", "MAXIMUM")  # what ends in them needs no activation
_SCORED = ("LOGISTIC", "SOFTMAX")  # the same of any network
_MOST_STATES = 64  # each is held against all outputs
_UNCHANGED = ("RESHAPE", "QUANTIZE", "DEQUANTIZE")
ALPHA_NAME = re.compile(r"pha\b|alpha|matte", re.IGNORECASE)


@dataclass(frozen=True)
class OwnColors:
    """Outputs of a network, by their tensors: what the person itself looks like, and where it is."""

    foreground: int
    alpha: int


def with_memory(graph: Graph) -> Graph:
    """The graph with its picture as the first input; others are what the run before has left, and a ratio is baked.

    What is left for the next run lies behind the other outputs. Graphs of one input stay as they are.
    Raises UnsupportedError, which says what of the inputs has no meaning here.
    """
    if len(graph.inputs) < 2:
        return graph
    picture = picture_of_inputs(graph)
    others = [index for index in graph.inputs if index != picture]
    ratios = [index for index in others if is_scalar(graph.tensors[index])]
    states = [index for index in others if index not in ratios]
    pairs = _pairs(graph, states) if len(states) <= _MOST_STATES else {}
    if len(ratios) > 1 or not pairs:
        raise _unknown(graph, picture)
    if graph.original:
        reason = f": {graph.opaque[0].op} has no kernel here" if graph.opaque else ""
        raise UnsupportedError(f"TensorFlow Lite alone computes it, which keeps no states for it{reason}")
    for ratio in ratios:
        graph = _with_ratio(graph, ratio, picture)
    kept = set(pairs.values())
    shown = [index for index in graph.outputs if index not in kept]
    graph = replace(graph, inputs=(picture, *pairs), outputs=(*shown, *pairs.values()))
    return with_feedback(graph, pairs)


def shown_outputs(graph: Graph) -> tuple[int, ...]:
    """The outputs that are not for the next run."""
    kept = {state.written for state in graph.states}
    return tuple(index for index in graph.outputs if index not in kept)


def own_colors_of(graph: Graph) -> OwnColors | None:
    """Those of a network whose outputs are a foreground and an alpha of its picture's size; None for others."""
    shown = shown_outputs(graph)
    if len(shown) != 2 or len(graph.inputs) != 1 + len(graph.states) or graph.original:
        return None
    if graph.tensors[graph.inputs[0]].dtype != "float32":
        return None
    _, height, width, *_ = (*graph.tensors[graph.inputs[0]].shape, 0, 0, 0)
    by_depth = {graph.tensors[index].shape[-1:]: index for index in shown if _is_map(graph, index, (height, width))}
    foreground, alpha = by_depth.get((3,)), by_depth.get((1,))
    return None if foreground is None or alpha is None else OwnColors(foreground, alpha)


def needs_no_activation(graph: Graph, output: int) -> bool:
    """Whether an output's values are from 0 to 1 already, as far as the graph or, of an alpha, its name tells."""
    tensor = graph.tensors[output]
    is_matte = bool(graph.states) or own_colors_of(graph) is not None
    last = _last_op(graph, output)
    if is_matte and tensor.shape[-1:] == (1,):
        return last in _BOUNDED or ALPHA_NAME.search(tensor.name) is not None
    return last == "SOFTMAX" or (last in _SCORED and tensor.shape[-1:] == (1,))


def adds_to_one(graph: Graph, output: int) -> bool:
    """Whether the values of each pixel do, as SOFTMAX leaves them."""
    return _last_op(graph, output) == "SOFTMAX"


def with_own_colors(
    graph: Graph, colors: OwnColors, input_range: tuple[float, float], activation: str
) -> tuple[Graph, int]:
    """The graph with one output in place of both, as the head of this file says it, and its tensor.

    The foreground's black and white are the picture's, unless it ends in what leaves 0 to 1.
    """
    own_range = (0.0, 1.0) if _last_op(graph, colors.foreground) in ("LOGISTIC", "RELU_0_TO_1") else input_range
    made = AddedNodes(graph)
    alpha = made.op("LOGISTIC", [colors.alpha]) if activation == "sigmoid" else colors.alpha
    seen, own = (
        made.scaled(index, 1 / (high - low), low / (low - high))
        for index, (low, high) in ((graph.inputs[0], input_range), (colors.foreground, own_range))
    )
    difference = made.op("SUB", [own, seen])
    shape = (*graph.tensors[colors.alpha].shape[:3], MATTE_CHANNELS)
    joined = made.op("CONCATENATION", [difference, alpha], shape, Concatenation("NONE", 3))
    kept = [state.written for state in graph.states]
    return made.graph((joined, *kept)), joined


def may_be_picture(shape: Shape) -> bool:
    """Whether an input of this shape can be a picture in color."""
    return len(shape) == 4 and (shape[0], shape[3]) == (1, 3)


def picture_of_inputs(graph: Graph) -> int:
    """The largest input that can be a picture. Raises UnsupportedError."""
    found = [index for index in graph.inputs if may_be_picture(graph.tensors[index].shape)]
    if not found:
        raise _unknown(graph, ABSENT)
    return max(found, key=lambda index: _pixels(graph.tensors[index].shape))


def _pixels(shape: Shape) -> int:
    return shape[1] * shape[2]


def is_scalar(tensor: Tensor) -> bool:
    """Whether it is one number, as a ratio is."""
    return tensor.shape in ((), (1,)) and tensor.dtype == "float32" and not tensor.unusable


def _is_map(graph: Graph, index: int, size: Shape) -> bool:
    tensor = graph.tensors[index]
    return len(tensor.shape) == 4 and (tensor.shape[0], *tensor.shape[1:3], tensor.dtype) == (1, *size, "float32")


def _pairs(graph: Graph, states: Sequence[int]) -> dict[int, int]:
    """By input the output that takes its place: of its shape and type, of several the one in its turn.

    Empty where one has none. What is called an alpha comes last.
    """
    found = dict[int, int]()
    left = sorted(graph.outputs, key=lambda index: ALPHA_NAME.search(graph.tensors[index].name) is not None)
    for state in states:
        wanted = graph.tensors[state]
        fitting = [index for index in left if _kind(graph.tensors[index]) == _kind(wanted)]
        named = [index for index in fitting if are_named_alike(graph.tensors[index], wanted)]
        if not fitting or wanted.unusable:
            return {}
        found[state] = (named or fitting)[0]
        left.remove(found[state])
    return found


def are_named_alike(output: Tensor, state: Tensor) -> bool:
    """Whether names say that an output takes a state's place."""
    return _number(output.name) == _number(state.name) is not None


def _number(name: str) -> str | None:
    """Of a state that is called r1i or r1o, and the like."""
    said = re.search(r"(?:^|[^a-z0-9])([a-z]+_?\d+)[_.]?(?:i|o|in|out|input|output)?(?::\d+)?$", name.lower())
    return said[1] if said else None


def _kind(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.quantization


def downsample_ratio(size: Sequence[int], own: Tensor) -> npt.NDArray[np.generic]:
    """For pictures of (height, width): as much as leaves WIDE pixels, 1 for smaller ones; in its tensor's shape."""
    return np.full(own.shape, min(1.0, WIDE / max(*size, 1)), own.dtype)


def _with_ratio(graph: Graph, ratio: int, picture: int) -> Graph:
    """The graph with its downsample ratio as a constant."""
    own = graph.tensors[ratio]
    value = downsample_ratio(graph.tensors[picture].shape[1:3], own)
    tensors = {**graph.tensors, ratio: replace(own, data=value)}
    return replace(graph, tensors=tensors, inputs=tuple(index for index in graph.inputs if index != ratio))


def _last_op(graph: Graph, output: int) -> str:
    """What makes an output, but for ops that leave its values as they are."""
    producers = graph.producers()
    while (node := producers.get(output)) and node.op in _UNCHANGED:
        output = node.inputs[0]
    return node.op if node else ""


def _unknown(graph: Graph, picture: int) -> UnsupportedError:
    listed = ", ".join(
        f"{graph.tensors[index].name[:40]} {list(graph.tensors[index].shape)}"
        for index in graph.inputs[:6]
        if index != picture
    )
    others = [graph.tensors[index].shape for index in graph.inputs if index != picture]
    is_open = any(len(shape) > 1 and set(shape) == {1} for shape in others)
    return UnsupportedError(
        f"{counted(len(graph.inputs), 'input')} and {counted(len(graph.outputs), 'output')}; a network for frames has "
        f"one picture as input, and of each other input ({listed}) an output of the same shape, for the next frame"
        f"{'; ' + CONVERT_FIXED if is_open else ''}"
    )
