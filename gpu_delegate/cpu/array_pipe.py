"""Sends messages with arrays through a pipe: a line of JSON, then the arrays' bytes.

Nothing that is read is executed, and sizes are bounded before memory is taken.
"""

import json
import math
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]

MAX_LINE_BYTES = 1 << 24
MAX_ARRAY_BYTES = 1 << 30
KINDS = "biufcS"  # of NumPy's types: numbers and strings of bytes, no objects


def send(pipe: BinaryIO, message: dict[str, Any], arrays: Sequence[AnyArray] = ()) -> None:
    """Write one message. Raises OSError where nobody reads."""
    packed = [np.ascontiguousarray(array) for array in arrays]
    heads = [(array.dtype.str, np.shape(array)) for array in arrays]
    pipe.write(json.dumps({**message, "arrays": heads}).encode() + b"\n")
    for array in packed:
        if array.size:
            pipe.write(array.reshape(-1).view(np.uint8).data)
    pipe.flush()


def receive(pipe: BinaryIO) -> tuple[dict[str, Any], list[AnyArray]]:
    """Read one message. Raises EOFError where it ends before it is whole, ValueError for anything else."""
    line = pipe.readline(MAX_LINE_BYTES)
    if not line.endswith(b"\n"):
        raise EOFError
    try:
        message = json.loads(line)
        heads = [(np.dtype(kind), tuple(map(int, shape))) for kind, shape in message.pop("arrays")]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("not a message") from error
    return message, [_read(pipe, *head) for head in heads]


def _read(pipe: BinaryIO, kind: np.dtype[Any], shape: tuple[int, ...]) -> AnyArray:
    if kind.kind not in KINDS or min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize > MAX_ARRAY_BYTES:
        raise ValueError(f"an array of {kind} and shape {shape}")
    array = np.empty(shape, kind)
    rest = array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")
    while rest:
        count = pipe.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        rest = rest[count:]
    return array
