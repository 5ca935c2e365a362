"""Saved compiled models: read back as they were, or, from any other bytes, refused or harmless."""

import contextlib
import itertools
from dataclasses import make_dataclass, replace
from types import GenericAlias
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.saved_starts import small_network
from tests.model_files.state_models import STATE_MODELS
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.model.graph import ABSENT, Activated, Attributes, Graph, Node, OptionVector
from texelflow.gpu_delegate.ops.registry import OPS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_plan import in_one_arena
from texelflow.gpu_delegate.programs.support import example_graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.saving.saved_graph import restore_graph, save_graph
from texelflow.gpu_delegate.saving.typed_values import from_bytes, to_bytes
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

NETWORK = small_network()
COMPILED = compile_graph(NETWORK, SOFTWARE)
SAVED = save_graph(COMPILED)


def test_every_op_comes_back() -> None:
    """Whatever a kernel, its nodes' attributes, views and plans hold."""
    seen = 0
    for record, device in zip(OPS.values(), itertools.cycle((SOFTWARE, HARDWARE)), strict=False):
        source = example_graph(record)
        with contextlib.suppress(UnsupportedError):
            compiled = compile_graph(source, device, CompileOptions(precision="fp16"))
            again = restore_graph(save_graph(compiled), source)
            assert again is not None
            assert again.source is source
            for name in (
                "passes",
                "declined",
                "barriers",
                "records",
                "plan",
                "storages",
                "views",
                "precision",
                "memory",
            ):
                assert getattr(again, name) == getattr(compiled, name)
            for old, new in zip(compiled.kernels, again.kernels, strict=True):
                assert replace(old, weights=new.weights) == new
                np.testing.assert_array_equal(old.weights, new.weights, strict=True)
            assert again.constants.keys() == compiled.constants.keys()
            assert save_graph(again) == save_graph(compiled)
            seen += 1
    assert seen > 60


def test_constants_stay_out_but_for_what_kernels_read() -> None:
    again = restore_graph(SAVED, NETWORK)
    assert again is not None
    assert all(tensor.data is None for tensor in again.graph.tensors.values())
    for number, texels in COMPILED.constants.items():
        np.testing.assert_array_equal(again.constants[number], texels)
    assert again.constants


@settings(max_examples=200)
@given(st.integers(0, len(SAVED)), st.binary(min_size=1, max_size=12), st.integers(0, 12))
@example(0, b"\xff" * 8, 8)
def test_bytes_of_anything_else_are_none(at: int, new: bytes, dropped: int) -> None:
    """Or a program that stays within its buffers."""
    found = restore_graph(SAVED[:at] + new + SAVED[at + dropped :], NETWORK)
    if found is not None:
        ends = [place.offset_bytes for place in found.plan.places.values()]
        assert all(0 <= end <= found.plan.total_bytes for end in ends)
        assert all({*kernel.inputs} <= {*found.plan.places, *found.constants} for kernel in found.kernels)


def without_a_place(compiled: CompiledGraph) -> CompiledGraph:
    places = dict(compiled.plan.places)
    del places[compiled.kernels[0].outputs[0]]
    return replace(compiled, plan=replace(compiled.plan, places=places))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: replace(c, barriers=c.barriers[1:]),
        lambda c: replace(c, plan=replace(c.plan, buffer_bytes=(16,))),
        lambda c: replace(c, plan=replace(c.plan, buffer_bytes=(1 << 40,))),
        lambda c: replace(c, plan=in_one_arena(dict.fromkeys(c.plan.places, -256), c.plan.total_bytes)),
        lambda c: replace(c, constants={}),
        lambda c: replace(c, storages={}),
        lambda c: replace(c, kernels=(replace(c.kernels[0], grid=(0, 1, 1)), *c.kernels[1:])),
        lambda c: replace(c, kernels=(replace(c.kernels[0], weights=np.zeros((3, 5), np.float32)), *c.kernels[1:])),
        lambda c: replace(c, graph=replace(c.graph, inputs=c.graph.outputs)),
        without_a_place,
    ],
)  # fmt: skip
def test_a_plan_beyond_what_there_is_is_none(wrong: object) -> None:
    assert callable(wrong)
    assert restore_graph(save_graph(wrong(COMPILED)), NETWORK) is None


def test_states_have_their_own_buffers_and_values_or_are_refused() -> None:
    source = read_model(STATE_MODELS["variables"]())
    compiled = compile_graph(source, SOFTWARE)
    graph, plan = compiled.graph, compiled.plan
    (state,) = graph.states
    assert restore_graph(save_graph(compiled), source) is not None
    assert state.own.data is not None
    shorter = replace(state, own=replace(state.own, data=state.own.data[:1]))
    larger = tuple(size + 256 for size in plan.buffer_bytes)
    moved = {**plan.places, state.read: replace(plan.places[state.read], offset_bytes=16)}
    for wrong in (
        replace(compiled, plan=replace(plan, buffer_bytes=larger)),
        replace(compiled, plan=replace(plan, buffer_bytes=larger, places=moved)),
        replace(compiled, graph=replace(graph, states=(replace(state, read=ABSENT, written=ABSENT),))),
        replace(compiled, graph=replace(graph, states=(shorter,))),
    ):
        assert restore_graph(save_graph(wrong), source) is None


def test_a_class_that_is_none_of_an_annotations_is_refused() -> None:
    node = Node("NEG", (0,), (1,), Activated("RELU"))
    data = to_bytes(node)
    assert from_bytes(Node, data) == node
    assert data.count(b"Activated") == 1
    for name in (b"Quantized", b"Node     ", b"object   "):
        with pytest.raises(ValueError, match="is no Attributes"):
            from_bytes(Node, data.replace(b"Activated", name))
    with pytest.raises(ValueError, match="is no Graph"):
        from_bytes(Graph, data)
    with pytest.raises(ValueError, match="another length"):
        from_bytes(Node, data + b"\0")
    assert from_bytes(OptionVector, to_bytes(OptionVector("int8", b"\0\xff"))) == OptionVector("int8", b"\0\xff")
    assert from_bytes(Attributes, to_bytes(Attributes())) == Attributes()


class NewerNDArray:
    """As NumPy from 2.5 on says NDArray: a type alias, which tells what it stands for in `__value__`."""

    __value__ = np.ndarray[Any, Any]

    def __getitem__(self, arguments: tuple[Any, ...]) -> GenericAlias:
        return GenericAlias(self, arguments)  # type: ignore[arg-type]


def test_arrays_are_annotated_as_any_numpy_does() -> None:
    kind: Any = make_dataclass("Kept", [("values", NewerNDArray()[(np.float32,)])], frozen=True)
    assert from_bytes(kind, to_bytes(kind(np.arange(3.0)))).values.tolist() == [0, 1, 2]
