"""Files of networks that find things: whatever they see, their outputs are the numbers that they were made with."""

from collections.abc import Sequence
from dataclasses import replace

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
            result = model.op(last, [result], values.shape)
        if number < len(names):
            model.tensors[result] = replace(model.tensors[result], name=names[number])
        model.output(result)
    return model.build()
