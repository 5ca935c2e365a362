"""The original delegate's own test vectors, and rows of the table of op cases, as this CPU's code."""

from functools import cache
from types import MappingProxyType

import numpy as np
import pytest

from tests.native import native_networks
from tests.op_vectors import VECTORS, values_of, vector_graph
from texelflow.gpu_delegate.llvm.runtime import CheckedNetwork

REFUSED = ("cl/reduce.ReduceSumChannelsIntTest", "cl/reduce.ReduceProductChannelsUIntTest")  # as on the GPU
RUN = MappingProxyType({case["id"]: case for case in VECTORS if case["id"] not in REFUSED})


@cache
def vector_networks() -> dict[str, CheckedNetwork]:
    """Of all vectors, by their names."""
    return native_networks({name: vector_graph(case) for name, case in RUN.items()})


@pytest.mark.parametrize("name", RUN)
def test_the_original_delegates_vectors(name: str) -> None:
    network, case = vector_networks()[name], RUN[name]
    inputs = [values_of(value).reshape(s) for value, s in zip(case["inputs"], network.input_shapes, strict=True)]
    for found, value in zip(network.run(inputs), case["expected"], strict=True):
        wanted = values_of(value).astype(np.float64)
        finite = np.isfinite(wanted)
        assert found.shape == wanted.shape
        assert np.array_equal(found[~finite], wanted[~finite])
        slack = 2e-6 * np.maximum(1, np.abs(wanted[finite]))  # the expected numbers are rounded, too
        assert (np.abs(found[finite] - wanted[finite]) <= value["tolerance"] + slack).all()
