"""Ops whose option names the output's type: where the tensor's type differs, TensorFlow Lite uses the option's."""

import numpy as np
import pytest
import tflite

import texelflow
from tests.helpers.delegated import inferred, interpreter_of
from tests.helpers.markers import one_in
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.reading.reader import read_model

OPS = {"ARG_MAX": "ArgMaxOptions", "ARG_MIN": "ArgMinOptions", "SHAPE": "ShapeOptions"}


def model_of(op: str, said: str, held: str) -> bytes:
    """Exponentials, and an op whose option says a type and whose output's tensor holds one."""
    m = ModelBuilder()
    x = m.op("EXP", [m.input((1, 3, 5, 7))], (1, 3, 5, 7))
    field = "out_type" if op == "SHAPE" else "output_type"
    inputs, shape = ([x], (4,)) if op == "SHAPE" else ([x, m.constant(3, "int32")], (1, 3, 5))
    options = {"table": OPS[op], field: getattr(tflite.TensorType, said.upper())}
    m.output(x, m.op(op, inputs, shape, held, **options))
    return m.build()


@pytest.mark.gl
@pytest.mark.parametrize(
    ("said", "held"), [("int32", "int32"), ("int64", "int64"), ("int64", "int32"), ("int32", "int64")]
)
@one_in(3, "op", OPS)
def test_the_options_type_is_given(op: str, said: str, held: str) -> None:
    model = model_of(op, said, held)
    assert set(find_refusals(read_model(model), SOFTWARE).reasons) == ({1} if said != held else set())
    inputs = [np.random.default_rng(0).normal(size=(1, 3, 5, 7)).astype(np.float32)]
    with texelflow.GpuDelegate(min_nodes_per_partition=1, quiet=True) as delegate:
        found, wanted = inferred(interpreter_of(model, delegate), inputs), inferred(interpreter_of(model), inputs)
        assert delegate.error is None
    assert found[1].dtype == wanted[1].dtype == said
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
    assert np.array_equal(found[1], wanted[1])
