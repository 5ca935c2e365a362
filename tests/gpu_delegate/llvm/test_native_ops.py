"""The original delegate's own test vectors as this CPU's code, and a row of the table of op cases for each other op."""

from functools import cache
from types import MappingProxyType

import pytest

from tests.contraction_cases import contractions
from tests.engine import on_cpu, worst
from tests.integer_cases import integer_cases
from tests.lookup_cases import lookup_cases
from tests.native import native_networks
from tests.op_cases import CASES
from tests.op_vectors import (
    REFUSED_THERE,
    VECTORS,
    Case,
    assert_expected,
    is_not_yet,
    values_of,
    vector_graph,
    vector_model,
)
from texelflow.gpu_delegate.errors import TexelflowError
from texelflow.gpu_delegate.llvm.compiler import native_target
from texelflow.gpu_delegate.llvm.program import compile_native
from texelflow.gpu_delegate.llvm.runtime import CheckedNetwork
from texelflow.gpu_delegate.reading.reader import SUPPORTED_OPS, read_model

RUN = MappingProxyType({case["id"]: case for case in (*VECTORS, *REFUSED_THERE) if not is_not_yet(case)})
OTHERS = (
    "ADD_N", "ARG_MAX", "ARG_MIN", "ATAN2", "BATCH_TO_SPACE_ND", "CEIL", "CUMSUM", "Convolution2DTransposeBias",
    "DEPTH_TO_SPACE", "DEQUANTIZE", "EXPAND_DIMS", "L2_NORMALIZATION", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION",
    "TOPK_V2", "LOGICAL_NOT", "LOGICAL_OR", "LOG_SOFTMAX", "PACK", "REDUCE_ALL", "REDUCE_ANY",
    "RELU_0_TO_1", "REVERSE_V2", "ROUND", "SELECT", "SIGN", "SPACE_TO_BATCH_ND", "SQUEEZE", "UNPACK",
)  # fmt: skip
ROWS = MappingProxyType(
    {op: next(case for case in CASES if case.op == op and not case.refused) for op in OTHERS}
    | {case.name: case for case in contractions() if not case.refused}
    | {case.name: case for case in (*integer_cases(), *lookup_cases())}
)


@cache
def vector_networks() -> dict[str, CheckedNetwork]:
    """Of all vectors, by their names."""
    return native_networks({name: vector_graph(case) for name, case in RUN.items()})


@pytest.mark.parametrize("name", RUN)
def test_the_original_delegates_vectors(name: str) -> None:
    network, case = vector_networks()[name], RUN[name]
    inputs = [values_of(value).reshape(s) for value, s in zip(case["inputs"], network.input_shapes, strict=True)]
    outputs = network.run(inputs)
    if case in REFUSED_THERE:
        assert worst(outputs, on_cpu(vector_model(case), inputs)) <= 1e-6
    else:
        assert_expected(case, outputs)


@cache
def row_networks() -> dict[str, CheckedNetwork]:
    """Of a row of each other op."""
    return native_networks({op: read_model(case.model()) for op, case in ROWS.items()})


@pytest.mark.parametrize("op", ROWS)
def test_other_ops(op: str) -> None:
    network, case = row_networks()[op], ROWS[op]
    given = zip(case.inputs(network.input_shapes), network.input_dtypes, strict=True)
    inputs = [values.astype(dtype) for values, dtype in given]
    assert worst(network.run(inputs), on_cpu(case.model(), inputs)) <= case.tolerance


def test_every_op_is_computed_here() -> None:
    nodes = [
        node
        for networks in (vector_networks(), row_networks())
        for n in networks.values()
        for node in n.compiled.source.nodes
    ]
    assert {node.op for node in nodes} >= set(SUPPORTED_OPS) - {"DENSIFY", "SHAPE"}  # of constants alone


@pytest.mark.parametrize("case", [case for case in VECTORS if is_not_yet(case)], ids=lambda case: case["id"])
def test_what_is_refused_has_one_line(case: Case) -> None:
    with pytest.raises((TexelflowError, RuntimeError), match=r"^[^\n]*$"):
        compile_native(vector_graph(case), native_target())
