"""Reductions of channels share a kernel with what they reduce and what reads them, such as a whole softmax."""

import numpy as np
import pytest

from tests.helpers.engine import DEVICES, kernel_names, on_cpu, on_gpu, worst
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

SOFTMAX = "reduce_max+sub+exp+sum+div"


def softmax(*shape: int) -> bytes:
    m = Sketch(0)
    m.output(m.softmax(m.input((1, *shape))))
    return m.build()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(33, 33, 21), (1, 896, 2), (1, 1, 1001), (1, 1, 2), (3, 4, 300)])
def test_a_softmax_is_one_kernel(shape: tuple[int, ...], device: str) -> None:
    assert kernel_names(compile_graph(read_model(softmax(*shape)), DEVICES[device])) == [SOFTMAX]


def test_a_vector_that_is_too_long_for_shared_memory_has_a_kernel_all_the_same(context: Context) -> None:
    model, rng = softmax(1, 1, 6000), np.random.default_rng(0)
    compiled = compile_graph(read_model(model), SOFTWARE)
    assert kernel_names(compiled) == [SOFTMAX]
    inputs = [rng.uniform(-9, 9, (1, 1, 1, 6000)).astype(np.float32)]
    assert worst(on_gpu(context, compiled, inputs), on_cpu(model, inputs)) <= 1e-6


def test_what_is_reduced_is_computed_on_the_way() -> None:
    m = Sketch(0)
    total = m.reduce("SUM", m.unary("SQUARE", m.depthwise(m.image(20, 20, 70))))
    m.output(m.unary("RSQRT", total))
    assert kernel_names(compile_graph(read_model(m.build()), SOFTWARE)) == ["dw+square+sum+rsqrt"]


def test_a_window_is_not_computed_twice() -> None:
    m = Sketch(0)
    m.output(m.softmax(m.depthwise(m.image(20, 20, 70))))
    compiled = compile_graph(read_model(m.build()), SOFTWARE)
    assert len(compiled.kernels) == 2
    assert sum(name.count("dw") for name in kernel_names(compiled)) == 1


def test_large_values_overflow_nowhere(context: Context) -> None:
    model = softmax(20, 20, 6)
    values = np.random.default_rng(0).choice([-1e30, -1e4, 0.0, 1e4, 1e30], (1, 20, 20, 6)).astype(np.float32)
    for device in DEVICES.values():
        (found,) = on_gpu(context, compile_graph(read_model(model), device), [values])
        assert np.abs(found.sum(axis=3) - 1).max() < 1e-5
        most = values == values.max(axis=3, keepdims=True)
        np.testing.assert_allclose(found, most / most.sum(axis=3, keepdims=True), atol=1e-6)


def test_bits_of_a_sum_do_not_depend_on_padding_lanes(context: Context) -> None:
    """Lanes past the last channel hold 1 here, which must not be counted."""
    m = Sketch(0)
    m.output(m.reduce("SUM", m.unary("EXP", m.binary("SUB", m.image(9, 9, 5), m.constant(0.0)))))
    m.output(m.reduce("REDUCE_PROD", m.unary("COS", m.image(9, 9, 5))))
    inputs = [np.zeros((1, 9, 9, 5), np.float32)] * 2
    total, product = on_gpu(context, compile_graph(read_model(m.build()), SOFTWARE), inputs)
    assert np.unique(total).tolist() == [5.0]
    assert np.unique(product).tolist() == [1.0]
