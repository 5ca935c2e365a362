"""Options that are FlexBuffers: what flatbuffers writes is read, and whatever else is refused in one line."""

from contextlib import suppress
from typing import Any

import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.custom.flexbuffer import flexbuffer_map

NAMES = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=8)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(width=32, allow_nan=False) | st.booleans() | st.none()
VALUES = st.recursive(
    NUMBERS | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_is_written_is_read(values: dict[str, Any]) -> None:
    assert flexbuffer_map(bytes(flexbuffers.Dumps(values))) == values


def test_vectors_of_one_type() -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, numbers in (("bytes", [1, 2, 3, 4, 5]), ("wide", [1, -70000]), ("floats", [0.5, 1.5, 2.5])):
            builder.Key(name)
            builder.TypedVectorFromElements(numbers)
        builder.Key("three")
        builder.FixedTypedVectorFromElements([7, 8, 9])
    found = flexbuffer_map(bytes(builder.Finish()))
    assert found == {
        "bytes": [1, 2, 3, 4, 5], "wide": [1, -70000], "floats": [0.5, 1.5, 2.5], "three": [7, 8, 9]
    }  # fmt: skip


@given(st.binary(max_size=40))
def test_any_bytes(data: bytes) -> None:
    with suppress(ModelError):
        assert isinstance(flexbuffer_map(data), dict)


@given(st.data())
def test_damaged_bytes(data: st.DataObject) -> None:
    whole = bytearray(flexbuffers.Dumps({"a": [1, 2.5, "text"], "b": {"c": 1 << 40, "d": [True, None]}}))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ModelError):
        assert isinstance(flexbuffer_map(bytes(whole)), dict)


def test_vectors_that_contain_each_other_end() -> None:
    """Eight vectors of eight times the one before: 2^24 values in a hundred bytes."""
    data = bytearray(b"\x01\x05")
    places = [1]
    for _ in range(9):
        data.append(8)
        places.append(len(data))
        for _ in range(8):
            data.append(len(data) - places[-2])
        data.extend(b"\x28" * 8)
    data.extend([len(data) - places[-1], 0x28, 1])
    with pytest.raises(ModelError, match="damaged"):
        flexbuffer_map(bytes(data))
