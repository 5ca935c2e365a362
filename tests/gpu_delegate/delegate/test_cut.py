"""Partitions of graphs that random networks do not have: TensorFlow Lite makes those that were planned."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.delegated import Cut, check_delegated
from tests.model_files.sketch import Sketch

pytestmark = pytest.mark.gl


def test_operators_with_side_effects_keep_their_order() -> None:
    """What is read of a variable is known as soon as there is the variable, but it must have been assigned before."""
    model = Sketch(0)
    variable = model.op("VAR_HANDLE", [], (), "resource")
    value = model.conv(model.image(3, 4, 5), 5)
    model.op_of("ASSIGN_VARIABLE", [variable, value], [])
    model.output(model.unary("NEG", model.op("READ_VARIABLE", [variable], model.shape(value))))
    assert check_delegated(model.build(), 1) == Cut(nodes=5, partitions=1, kernels=1)


def test_a_variable_is_where_all_that_use_it_can_be() -> None:
    model = Sketch(0)
    variable = model.op("VAR_HANDLE", [], (), "resource")
    value = model.conv(model.image(3, 4, 5), 5)
    model.op_of("ASSIGN_VARIABLE", [variable, model.cpu_op(value)], [])
    read = model.op("READ_VARIABLE", [variable], model.shape(value))
    model.output(model.cpu_op(model.binary("MUL", read, value)))
    assert check_delegated(model.build(), 1) == Cut(nodes=2, partitions=2, kernels=2)


def test_a_constant_of_the_gpu_may_be_a_group_of_its_own() -> None:
    """It comes before all others, whose first one waits for the CPU."""
    model = Sketch(0)
    weights = model.half(np.ones((5, 1, 1, 5)))
    x = model.image(3, 4, 5)
    x = model.cpu_op(x)
    options: dict[str, Any] = {"stride": (1, 1), "padding": "SAME"}
    model.output(model.op("CONV_2D", [x, weights, model.random(5)], (1, 3, 4, 5), **options))
    assert check_delegated(model.build(), 1) == Cut(nodes=2, partitions=1, kernels=2)


def test_a_constant_of_the_cpu_cuts_in_two_what_reads_it() -> None:
    """It comes behind an operator of the GPU, and before another one that reads it as the CPU does."""
    model = Sketch(0)
    x = model.unary("TANH", model.image(3, 4, 5))
    weights = model.half(np.ones((1, 1, 1, 5)))
    model.output(model.binary("MUL", x, weights), model.cpu_op(weights))
    assert check_delegated(model.build(), 1) == Cut(nodes=2, partitions=2, kernels=2)


def test_what_nothing_reads_is_a_group_without_outputs() -> None:
    model = Sketch(0)
    x = model.image(3, 4, 5)
    y = model.cpu_op(x)
    model.binary("MUL", y, model.random(5))
    model.output(y)
    assert check_delegated(model.build(), 1) == Cut(nodes=1, partitions=1, kernels=1)
