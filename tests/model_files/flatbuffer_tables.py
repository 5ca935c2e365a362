"""Builds flatbuffer tables of a model for the models that tests are made of."""

from collections.abc import Sequence
from typing import Any

import tflite


def tables(builder: Any, offsets: Sequence[int]) -> int:
    """A vector of tables."""
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def signature_table(builder: Any, name: str, number: int, sides: Sequence[Sequence[int]]) -> int:
    """A name of a subgraph, whose inputs and outputs it calls in0, in1, ... and out0, ..."""
    named = [
        [_named_tensor(builder, f"{side}{k}", tensor) for k, tensor in enumerate(tensors)]
        for side, tensors in zip(("in", "out"), sides, strict=True)
    ]
    inputs, outputs = (tables(builder, each) for each in named)
    key = builder.CreateString(name)
    tflite.SignatureDefStart(builder)
    tflite.SignatureDefAddInputs(builder, inputs)
    tflite.SignatureDefAddOutputs(builder, outputs)
    tflite.SignatureDefAddSignatureKey(builder, key)
    tflite.SignatureDefAddSubgraphIndex(builder, number)
    return int(tflite.SignatureDefEnd(builder))


def _named_tensor(builder: Any, name: str, tensor: int) -> int:
    stored = builder.CreateString(name)
    tflite.TensorMapStart(builder)
    tflite.TensorMapAddName(builder, stored)
    tflite.TensorMapAddTensorIndex(builder, tensor)
    return int(tflite.TensorMapEnd(builder))
