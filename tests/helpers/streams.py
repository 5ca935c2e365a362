"""Runs a model that keeps states many times: by TensorFlow Lite, and as a function whose states are fed back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.helpers.delegated import AnyValues, inferred, interpreter_of
from texelflow.gpu_delegate.model.graph import ABSENT, Graph
from texelflow.gpu_delegate.passes.kept_states import express_states
from texelflow.gpu_delegate.reading.reader import read_model

Function = Callable[[list[AnyValues]], Sequence[AnyValues]]  # of a graph's inputs, to its outputs


def as_function(model: bytes) -> Graph:
    """Its graph with states that are inputs and outputs like others, in the order of `states_of`."""
    return replace(express_states(read_model(model))[0], states=())


def worst_of_stream(model: bytes, function: Function, runs: int, low: float = -1.0, high: float = 1.0) -> float:
    """The greatest difference to TensorFlow Lite in any of several runs."""
    return max(
        float(np.abs(np.subtract(one, other, dtype=np.float64)).max())
        for found, wanted in pairs_of_stream(model, function, runs, low, high)
        for one, other in zip(found, wanted, strict=True)
    )


def pairs_of_stream(
    model: bytes, function: Function, runs: int, low: float = -1.0, high: float = 1.0
) -> list[tuple[list[AnyValues], list[AnyValues]]]:
    """The outputs of each run, and those of TensorFlow Lite."""
    graph, rng = read_model(model), np.random.default_rng(0)
    states, alone = express_states(graph)[0].states, interpreter_of(model, xnnpack=False)
    assert all(state.read != ABSENT != state.written for state in states)
    kept = [np.zeros(state.own.shape, state.own.dtype) for state in states]
    found = list[tuple[list[AnyValues], list[AnyValues]]]()
    for _ in range(runs):
        inputs = [_drawn(rng, detail, low, high) for detail in alone.get_input_details()]
        outputs = [np.array(each) for each in function([*inputs, *kept])]
        ends = len(graph.outputs)
        found.append((outputs[:ends], inferred(alone, inputs)))
        kept = outputs[ends:]
    return found


def _drawn(rng: np.random.Generator, detail: Mapping[str, Any], low: float, high: float) -> AnyValues:
    """Values of an input: floats within limits, or all integers of its type."""
    if np.issubdtype(detail["dtype"], np.floating):
        return np.asarray(rng.uniform(low, high, detail["shape"]), detail["dtype"])
    limits = np.iinfo(detail["dtype"])
    return np.asarray(rng.integers(limits.min, limits.max + 1, detail["shape"]), detail["dtype"])
