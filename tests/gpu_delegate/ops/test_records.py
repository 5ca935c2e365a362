"""Every op's record has what its role needs; tests/gpu_delegate/cases/test_op_table.py runs its example."""

import pytest

from texelflow.gpu_delegate.ops.nodes import has_kernel
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.ops.variables import CALL_ONCE
from texelflow.gpu_delegate.programs.support import example_graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model


@pytest.mark.parametrize("op", OPS)
def test_a_record_has_what_its_role_needs(op: str) -> None:
    record = OPS[op]
    assert record.name == op
    assert (record.arithmetic is not None) == (record.role == "elementwise")
    emission = record.emission
    assert (emission.store is not None) <= (record.role == "scatter")
    assert (emission.accumulate is None) == (emission.start is None)
    graph = example_graph(record)
    emits = any([emission.stream, emission.accumulate, emission.store]) and record.fits(graph, graph.nodes[0])
    assert has_kernel(graph, graph.nodes[0]) == ((record.arithmetic is not None) or emits)


@pytest.mark.parametrize("op", [op for op in SUPPORTED_OPS if op != "DENSIFY"])  # which is written as its result
def test_an_example_is_read_as_it_was_written(op: str) -> None:
    graph = example_graph(OPS[op])
    again = read_model(write_model(graph))
    builtin = OPS[op].file.builtin  # type: ignore[union-attr]
    written = [node for node in again.nodes if node.op != CALL_ONCE]  # which the writer adds where there are variables
    for old, new in zip(graph.nodes, written, strict=True):
        assert (new.op, new.attributes, len(new.inputs)) == (builtin or old.op, old.attributes, len(old.inputs))
