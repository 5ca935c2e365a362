"""Layers that keep what they gave, with int8 weights: floats with real numbers in the place of integers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..model.graph import ABSENT, Node
from ..model.quantization import is_quantized, quantization_of
from .quantized_node import Form, QuantizedNode


def _with_real_weights(node: QuantizedNode) -> Sequence[Node]:
    """What TensorFlow Lite computes with rounded inputs. All else has to be of floats."""
    computed = [node.graph.tensors[i] for i in (*node.node.inputs, *node.node.outputs) if i != ABSENT]
    for tensor in computed:
        if not tensor.is_constant and (is_quantized(tensor) or tensor.dtype != "float32"):
            node.refuse(f"{tensor.name} is {tensor.dtype}; only weights may be int8")
    inputs = tuple(_real(node, i) if i != ABSENT else ABSENT for i in node.node.inputs)
    return [replace(node.node, inputs=inputs)]


def _real(node: QuantizedNode, index: int) -> int:
    tensor = node.graph.tensors[index]
    if tensor.data is None or not is_quantized(tensor):
        return index
    if tensor.dtype != "int8" or any(quantization_of(tensor).zero_points):
        node.refuse(f"{tensor.name} has weights of {tensor.dtype} that are not int8 around 0")
    return node.constant("weights", tensor.data.astype(np.float32) * np.float32(node.scale(tensor)))


RECURRENT_FORMS: Mapping[str, Form] = MappingProxyType(
    dict.fromkeys(
        ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF"), _with_real_weights
    )
)
