"""Files of networks that find things: whatever they see, their outputs are the numbers that they were made with."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.model_builder import ModelBuilder


def network_of(
    outputs: Sequence[npt.NDArray[np.float32]],
    size: tuple[int, int],
    names: Sequence[str] = (),
    metadata: bytes | None = None,
    last: str = "",
) -> bytes:
    """From a picture of this size (width, height), float32, to these outputs; `last` is an op that each ends in."""
    model = ModelBuilder(metadata=metadata)
    picture = model.input((1, size[1], size[0], 3))
    axes, zero = model.constant([0, 1, 2, 3], "int32"), model.constant([0.0])
    nothing = model.op("MUL", [model.op("MEAN", [picture, axes], (1,)), zero], (1,))
    for number, values in enumerate(outputs):
        result = model.op("ADD", [model.constant(values), nothing], values.shape)
        if last:
            options: dict[str, Any] = {"beta": 1.0} if last == "SOFTMAX" else {}
            result = model.op(last, [result], values.shape, **options)
        if number < len(names):
            model.tensors[result] = replace(model.tensors[result], name=names[number])
        model.output(result)
    return model.build()


def seeing_network(outputs: Sequence[npt.NDArray[np.float32]], size: tuple[int, int], seen: float = 1.0) -> bytes:
    """The same with outputs that depend on the picture's mean color, each number in its own way, by up to `seen`."""
    model, rng = ModelBuilder(), np.random.default_rng(1)
    picture = model.input((1, size[1], size[0], 3))
    color = model.op("MEAN", [picture, model.constant([1, 2], "int32")], (1, 3))
    for values in outputs:
        ways = model.constant(rng.uniform(-seen, seen, (values.size, 3)).astype(np.float32))
        flat = model.op("FULLY_CONNECTED", [color, ways, model.constant(values.ravel())], (1, values.size))
        model.output(model.op("RESHAPE", [flat, model.constant(list(values.shape), "int32")], values.shape))
    return model.build()
