"""Rewrites a graph by those passes that make TensorFlow Lite on the CPU faster.

It is what those of the engine's passes make of it whose results a .tflite file can say; the others are left out. Its
results differ from the file's own by float32's rounding, so what judges others runs the graph as it was read.
"""

from dataclasses import replace

from ..model.graph import Activated, Graph, Node
from ..model.rewrite import Outcome, Pass, Rewriter
from ..passes.algebra import distribute_mean, hoist_convolution, mean_before_resize
from ..passes.convolutions import (
    elementwise_before_depth_to_space,
    pool_to_mean,
    split_activations,
    transpose_convolution_to_depth,
)
from ..passes.folding import fold_constants
from ..passes.landmark_ops import express_landmark_ops, gather_by_integers
from ..passes.merging import merge_following_arithmetic, merge_preceding_arithmetic
from ..passes.pipeline import run_passes
from ..passes.simplify import drop_unused, join_moves, remove_identities

_JOINED = ("RELU", "RELU6", "RELU_N1_TO_1")  # that all kernels of TensorFlow Lite apply to their results


def join_activations(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV, RELU -> CONV(activation=RELU), the reverse of split_activations."""
    edit = Rewriter(graph)
    consumers = graph.consumers()
    for node in graph.nodes:
        attributes, out = node.attributes, node.outputs[0]
        readers = consumers.get(out, [])
        if not isinstance(attributes, Activated) or attributes.activation != "NONE" or out in graph.outputs:
            continue
        if len(readers) == 1 and readers[0].op in _JOINED:
            activated = replace(attributes, activation=readers[0].op)
            edit.replace(node, replace(node, outputs=readers[0].outputs, attributes=activated))
            edit.remove(readers[0])
    return edit.finish()


_SAYING: tuple[Pass, ...] = (express_landmark_ops, gather_by_integers)
FASTER_PASSES: tuple[Pass, ...] = (
    *_SAYING,
    fold_constants,
    join_moves,
    merge_following_arithmetic,
    merge_preceding_arithmetic,
    split_activations,
    remove_identities,
    pool_to_mean,
    transpose_convolution_to_depth,
    elementwise_before_depth_to_space,
    hoist_convolution,
    distribute_mean,
    mean_before_resize,
    drop_unused,
    join_activations,
)


def rewritten(graph: Graph) -> Graph:
    """The graph for TensorFlow Lite alone; the same one where it has more than floats, or ops that are not read."""
    if graph.original or graph.opaque or not all(_is_plain(graph, node) for node in graph.nodes):
        return graph
    return run_passes(graph, FASTER_PASSES)[0]


def without_custom_landmarks(graph: Graph) -> Graph:
    """The graph with MediaPipe's ops on landmarks, which TensorFlow Lite has none of, said by its own ops.

    The same one where it has none of them.
    """
    return run_passes(graph, _SAYING)[0]


def _is_plain(graph: Graph, node: Node) -> bool:
    """Whether what a node computes are floats that mean themselves."""
    return all(graph.tensors[i].dtype == "float32" or graph.tensors[i].is_constant for i in node.outputs)
