"""Messages and arrays through a pipe: they arrive as they were sent, and anything else is refused."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from texelflow.gpu_delegate.cpu.array_pipe import receive, send

KINDS = st.sampled_from(("float32", "float16", "int8", "uint8", "int64", "bool", "complex64", "S5"))
SHAPES = arrays.array_shapes(min_dims=0, min_side=0)


@given(st.lists(KINDS.flatmap(lambda kind: arrays.arrays(kind, SHAPES)), max_size=3))
def test_arrives_as_it_was_sent(sent: list[Any]) -> None:
    pipe = io.BytesIO()
    send(pipe, {"seconds": 3}, sent)
    send(pipe, {"again": True}, [value.T for value in sent])
    pipe.seek(0)
    message, found = receive(pipe)
    assert message == {"seconds": 3}
    assert [(a.dtype, a.shape, a.tobytes()) for a in found] == [(a.dtype, a.shape, a.tobytes()) for a in sent]
    assert receive(pipe)[0] == {"again": True}
    with pytest.raises(EOFError):
        receive(pipe)


def line(*heads: Any) -> bytes:
    return json.dumps({"arrays": heads}).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", EOFError),
        (b'{"arrays": []}', EOFError),
        (line(("<f4", (3,))) + bytes(11), EOFError),
        (b"[]\n", ValueError),
        (b"{}\n", ValueError),
        (line(("none", (1,))), ValueError),
        (line("abc"), ValueError),
        (b"what\n", ValueError),
        (line(("|O", (1,))) + bytes(8), ValueError),
        (line(("<f4", (-1,))), ValueError),
        (line(("<f4", (1 << 20, 1 << 20))), ValueError),
    ],
)
def test_refuses_what_is_no_message(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        receive(io.BytesIO(data))
