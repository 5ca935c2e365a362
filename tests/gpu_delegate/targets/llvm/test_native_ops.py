"""The original delegate's own test vectors as this CPU's code."""

from functools import cache
from types import MappingProxyType

from tests.helpers.engine import on_cpu, worst
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.tables.op_vectors import REFUSED_THERE, VECTORS, assert_expected, values_of, vector_graph, vector_model
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork

RUN = MappingProxyType({case["id"]: case for case in (*VECTORS, *REFUSED_THERE)})


@cache
def vector_networks() -> dict[str, CheckedNetwork]:
    """Of all vectors, by their names."""
    return native_networks({name: vector_graph(case) for name, case in RUN.items()})


@one_in(4, "name", RUN)
def test_the_original_delegates_vectors(name: str) -> None:
    network, case = vector_networks()[name], RUN[name]
    inputs = [values_of(value).reshape(s) for value, s in zip(case["inputs"], network.input_shapes, strict=True)]
    outputs = network.run(inputs)
    if case in REFUSED_THERE:
        assert worst(outputs, on_cpu(vector_model(case), inputs)) <= 1e-6
    else:
        assert_expected(case, outputs)
