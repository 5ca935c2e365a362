"""Hybrid ops through delegates: products of floats, or rounded as TensorFlow Lite does where that is asked for."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from tests.model_files.model_builder import Array
from tests.model_files.sketch import Sketch
from tests.quantized.quantizer import hybrid_twin
from tests.quantized.runs import TfliteRun
from texelflow.gpu_delegate.cpu.delegation import DelegateMaker
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.delegate.native_delegate import native_delegate
from texelflow.gpu_delegate.model.graph import Hybrid, Shape
from texelflow.gpu_delegate.reading.reader import read_model

SHAPE, WIDER = (1, 9, 8, 6), (1, 9, 11, 6)


def in_two_parts() -> bytes:
    """Convolutions with an operator between them that TensorFlow Lite alone computes."""
    net = Sketch(0)
    x = net.cpu_op(net.conv(net.image(9, 8, 6), 8, (3, 3), activation="RELU"))
    net.output(net.conv(x, 5, (3, 3)))
    return hybrid_twin(net)


DATA = in_two_parts()


def values(shape: Shape) -> Array:
    return np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)


def resized(run: TfliteRun, shape: Shape) -> TfliteRun:
    run.interpreter.resize_tensor_input(run.inputs[0]["index"], shape)
    run.interpreter.allocate_tensors()
    return run


def check(way: Hybrid, found: Array, shape: Shape) -> None:
    """Against TensorFlow Lite's reference kernels: one way is theirs, the other one is not."""
    (right,) = resized(TfliteRun(DATA), shape)([values(shape)])
    error = np.abs(found - right).max() / np.abs(right).max()
    assert error < 1e-6 if way == "reference" else 1e-3 < error < 0.05


@pytest.mark.gl
@pytest.mark.parametrize("way", get_args(Hybrid))
def test_of_an_interpreter_at_any_size(way: Hybrid) -> None:
    delegate = GpuDelegate(hybrid=way, min_nodes_per_partition=1, quiet=True)
    run = TfliteRun(DATA, delegates=[delegate])
    assert len(delegate.partitions) == 2
    for shape in (SHAPE, WIDER):
        check(way, resized(run, shape)([values(shape)])[0], shape)
    delegate.release()


@pytest.mark.parametrize(
    "maker",
    [
        pytest.param(gpu_delegate({"min_nodes_per_partition": 1}), id="gl", marks=pytest.mark.gl),
        pytest.param(native_delegate(1, every_part=True), id="native"),
    ],
)
def test_of_the_engines_own_interpreter_as_the_graph_says(maker: DelegateMaker) -> None:
    reference = Reference(replace(read_model(DATA), hybrid="reference"), 1, delegate=maker)
    assert reference.delegation
    assert len(reference.delegation.partitions) == 2
    check("reference", reference.run(values(SHAPE))[0], SHAPE)
    reference.close()
