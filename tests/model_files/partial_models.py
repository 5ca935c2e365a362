"""Makes variants of a model with operators that the GPU cannot run.

`segments` is such a model of few operators, each of them worth a GPU.
"""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import tflite
from flatbuffers import flexbuffers

from tests.model_files.model_builder import CPU_OP, ModelBuilder
from tests.quantized.networks import Net
from texelflow.gpu_delegate.model.graph import Graph, Node, Opaque, Tensor
from texelflow.gpu_delegate.reading.writer import write_model

BITCAST = Opaque(code=tflite.BuiltinOperator.BITCAST)  # bits as they are, called another type


def segments(size: int = 48, channels: int = 16, in_parts: bool = False) -> bytes:
    """A mask (1, size, size, 1) of a picture (1, size, size, 3), by convolutions with random weights.

    In parts there is an operator behind the second that the reader knows and the GPU cannot run.
    """
    model, rng = ModelBuilder(), np.random.default_rng(0)
    x, depth = model.input((1, size, size, 3)), 3
    for number, out in enumerate((channels, channels, channels, 1)):
        weights = rng.normal(0, (2 / (9 * depth)) ** 0.5, (out, 3, 3, depth))
        inputs = [x, model.constant(weights), model.constant(rng.normal(0, 0.1, out))]
        options: dict[str, Any] = {"padding": "SAME", "stride": (1, 1), "activation": "RELU" if out > 1 else "NONE"}
        x, depth = model.op("CONV_2D", inputs, (1, size, size, out), **options), out
        if in_parts and number == 1:
            x = model.cpu_op(x, (16385, 1))  # few taps of it lie in the map
    model.output(model.op("LOGISTIC", [x], (1, size, size, 1)))
    return model.build()


def quick_with_an_end(op: str = CPU_OP) -> bytes:
    """A mask (1, 12, 12, 1) of a picture (1, 96, 96, 3), by layers that native code is several times as fast with, and
    behind them an op that has none."""
    net = Net(0)
    x = net.conv(net.image(96, 96, 3), 8, (3, 3), activation="RELU6")
    for _ in range(6):
        x = net.depthwise(x, activation="RELU6")
    x = net.pool("AVERAGE_POOL_2D", net.conv(x, 1), (8, 8), stride=(8, 8))
    net.output(net.cpu_op(x) if op == CPU_OP else net.unary(op, x))
    return net.build()


def cast_and_back(graph: Graph, *places: float) -> bytes:
    """What the operators at these places, from 0 to 1, give is taken for integers, bit by bit, and for floats again.

    So the model computes what it did, but each place lies between two partitions.
    """
    for place in sorted(places, reverse=True):
        graph = _cast_behind(graph, round(place * (len(graph.nodes) - 1)))
    return write_model(graph)


def _cast_behind(graph: Graph, number: int) -> Graph:
    number = next(n for n in range(number, len(graph.nodes)) if _is_picture(graph, graph.nodes[n].outputs[0]))
    old = graph.tensors[graph.nodes[number].outputs[0]]
    first = 1 + max(graph.tensors)
    there = replace(old, index=first, name="bits", dtype="int32")
    back = replace(old, index=first + 1, name="floats again")
    casts = (
        Node("BITCAST", (old.index,), (there.index,), BITCAST),
        Node("BITCAST", (there.index,), (back.index,), BITCAST),
    )
    behind = (
        replace(node, inputs=tuple(back.index if i == old.index else i for i in node.inputs))
        for node in graph.nodes[number + 1 :]
    )
    nodes = (*graph.nodes[: number + 1], *casts, *behind)
    tensors = {**graph.tensors, **{tensor.index: tensor for tensor in (there, back)}}
    return replace(
        graph,
        nodes=tuple(replace(node, index=place) for place, node in enumerate(nodes)),
        tensors=MappingProxyType(tensors),
    )


def _is_picture(graph: Graph, tensor: int) -> bool:
    """Whether a tensor is a map of values that a run computes, wide enough to be reversed."""
    found = graph.tensors[tensor]
    made = {index for node in graph.nodes if node.op == "DEQUANTIZE" for index in node.outputs}
    return len(found.shape) == 4 and found.shape[2] > 1 and tensor not in made and tensor not in graph.outputs


def with_detections(graph: Graph) -> bytes:
    """Behind its outputs, floats of boxes (1, N, 4 or more) and of scores (1, N, classes), a custom op of TensorFlow
    Lite's that gives out the ten best."""
    boxes, scores = (graph.tensors[output] for output in graph.outputs)
    count, classes, first = boxes.shape[1], scores.shape[2], 1 + max(graph.tensors)
    said: dict[str, float] = {"max_detections": 10, "max_classes_per_detection": 1, "num_classes": classes}
    said |= {"nms_score_threshold": 0.0, "nms_iou_threshold": 0.5}
    said |= dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 10.0)
    name = "TFLite_Detection_PostProcess"
    op = Opaque(
        code=tflite.BuiltinOperator.CUSTOM, custom_code=name.encode(), custom_options=bytes(flexbuffers.Dumps(said))
    )
    rng = np.random.default_rng(0)
    anchors = Tensor(first, "anchors", (count, 4), data=rng.uniform(0.2, 0.8, (count, 4)).astype(np.float32))
    shapes = ((1, 10, 4), (1, 10), (1, 10), (1,))
    found = [Tensor(first + 1 + k, f"detections {k}", shape) for k, shape in enumerate(shapes)]
    node = Node(name, (boxes.index, scores.index, first), tuple(t.index for t in found), op, len(graph.nodes))
    tensors = {**graph.tensors, **{tensor.index: tensor for tensor in (anchors, *found)}}
    nodes, outputs = (*graph.nodes, node), tuple(tensor.index for tensor in found)
    return write_model(replace(graph, nodes=nodes, tensors=MappingProxyType(tensors), outputs=outputs))
