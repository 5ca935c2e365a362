"""Tuning choices survive JSON; malformed entries are dropped without an error."""

import json

import hypothesis.strategies as st
from hypothesis import given, settings

from texelflow.gpu_delegate.device.choices import UNMEASURED, Choice, Choices, FusionChoice
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.tuning.tuning_table import FUSION_SETTINGS, as_json, parse_choices

MS = st.floats(0, 1e6)
TILES = st.builds(Tile, st.integers(1, 8), st.integers(0, 8), st.tuples(*[st.integers(1, 64)] * 3), st.booleans())
KERNELS = st.dictionaries(st.text(), st.builds(Choice, MS, MS, TILES, st.booleans(), st.integers(0, 3)))
SETTINGS = {name: getattr(SOFTWARE.tuning, name) for name in FUSION_SETTINGS}
GRAPHS = st.dictionaries(st.text(), st.builds(FusionChoice, MS, MS, st.just(SETTINGS)))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.builds(Choices, KERNELS, GRAPHS))
def test_choices_come_back(choices: Choices) -> None:
    assert parse_choices(as_json(choices)) == choices


@given(st.binary() | JSON.map(lambda value: json.dumps({"kernels": {"a": value}, "graphs": value}).encode()))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert parse_choices(data) == UNMEASURED


@given(st.sampled_from(["tile", "ms", "default_ms", "same_bits", "searched"]), JSON)
def test_one_wrong_value_leaves_its_entry_out(name: str, value: object) -> None:
    choice = Choice(1.0, 2.0, Tile(), True, 1)
    whole = json.loads(as_json(Choices({"a": choice, "b": choice})))
    right = type(whole["kernels"]["a"][name]), whole["kernels"]["a"][name]
    whole["kernels"]["a"][name] = value
    found = parse_choices(json.dumps(whole).encode())
    assert "b" in found.kernels
    if not isinstance(value, right[0] | int | float):
        assert "a" not in found.kernels


def test_a_tile_with_other_fields_is_none() -> None:
    data = json.loads(as_json(Choices({"a": Choice(1.0, 2.0, Tile(), True, 1)})))
    changes = (
        {"rows": 10**9},
        {"rows": True},
        {"local": [8, 0, 1]},
        {"local": [8, 8]},
        {"more": 1},
        {"weights_fetch": "x"},
    )
    for change in changes:
        tile = data["kernels"]["a"]["tile"]
        changed = {**data, "kernels": {"a": {**data["kernels"]["a"], "tile": {**tile, **change}}}}
        assert not parse_choices(json.dumps(changed).encode()).kernels, change
