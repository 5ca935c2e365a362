"""Vector kernels, prologues and sums at a kernel's end as NumPy reads them, against TensorFlow Lite; their barriers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.engine import Floats, on_cpu, worst
from tests.helpers.markers import one_in
from tests.helpers.numpy_kernels import RaceError
from tests.helpers.numpy_program import NumpyKernel, all_statements, numpy_program, run_in_numpy, without
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.code.vocabulary import ForRange, GridIndex, StoreShared, Synchronize, When, values_in
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.device.families import TUNINGS, device_like
from texelflow.gpu_delegate.plan.dispatch import LoweredGraph
from texelflow.gpu_delegate.reading.reader import read_model

DEVICES = {
    **{family: device_like(family) for family in TUNINGS},
    "leaving sums": SOFTWARE.with_tuning(leaves_sums=True, rows=3),
    "slices": HARDWARE.with_tuning(least_threads=1, thread_slices=3, split_k=1),
    "parts": HARDWARE.with_tuning(split_k=5, wave_threads=64),
    "small groups": HARDWARE.with_limits(work_group_invocations=32),
    "repeating": HARDWARE.with_tuning(prologue_loads=1 << 40),
}


def gates() -> bytes:
    """A squeeze-and-excite block: sums at a kernel's end, vectors, and a prologue that needs some of their slices."""
    m = Sketch(0)
    x = m.unary("HARD_SWISH", m.conv(m.image(19, 22, 5), 41, (3, 3)))
    gate = m.unary("LOGISTIC", m.conv(m.conv(m.mean(x), 7, activation="RELU"), 41))
    m.output(m.conv(m.binary("MUL", x, gate), 10), m.reduce("REDUCE_MAX", x, (1, 2)))
    return m.build()


def classifier() -> bytes:
    """Channels that are folded, and one channel that is repeated."""
    m = Sketch(1)
    scores = m.conv(m.mean(m.image(3, 5, 70)), 37)
    shares = m.unary("EXP", m.binary("SUB", scores, m.reduce("REDUCE_MAX", scores, (3,))))
    m.output(m.binary("DIV", shares, m.reduce("SUM", shares, (3,))))
    return m.build()


def long_vectors() -> bytes:
    """More slices than a work-group has threads."""
    m = Sketch(2)
    mean = m.mean(m.image(3, 7, 1100))
    m.output(m.conv(mean, 9), m.unary("TANH", mean))
    return m.build()


def parted() -> bytes:
    """Threads that share the sums of a convolution."""
    m = Sketch(3)
    m.output(m.unary("RELU", m.conv(m.image(5, 5, 70), 9, (3, 3))))
    return m.build()


@one_in(4, "device", DEVICES)
@pytest.mark.parametrize("make", [gates, classifier, long_vectors, parted])
def test_numpy_reads_vector_kernels_as_tensorflow_lite_computes(make: Callable[[], bytes], device: str) -> None:
    model = make()
    graph = read_model(model)
    values = np.random.default_rng(3).uniform(-1, 1, graph.tensors[graph.inputs[0]].shape).astype(np.float32)
    program = numpy_program(model, DEVICES[device])
    assert worst(run_in_numpy(program, [values]), on_cpu(model, [values])) < 1e-5


def test_these_kernels_say_all_that_vector_kernels_can() -> None:
    programs = [numpy_program(make(), device) for make in (gates, parted) for device in DEVICES.values()]
    found = [each for program in programs for kernel in program.kernels for each in all_statements(kernel.statements)]
    assert {ForRange, StoreShared, Synchronize, When} <= set(map(type, found))
    assert any(isinstance(each, When) and each.otherwise for each in found)
    places = {value.of for each in found for value in values_in(each) if isinstance(value, GridIndex)}
    assert places == {"thread", "group", "thread in group"}


@one_in(4, "device", ["hardware", "software"])
@pytest.mark.parametrize("make", [gates, classifier])
def test_barriers_are_needed(make: Callable[[], bytes], device: str) -> None:
    """Without one a thread would touch what another one may still have to read or write; the last one of vector nodes
    stands there whatever follows."""
    model = make()
    graph = read_model(model)
    values = np.zeros(graph.tensors[graph.inputs[0]].shape, np.float32)
    program = numpy_program(model, DEVICES[device])
    needed = 0
    for k, kernel in enumerate(program.kernels):
        barriers = [n for n, each in enumerate(kernel.code.statements) if isinstance(each, Synchronize)]
        kernels = ((*program.kernels[:k], without(kernel, n), *program.kernels[k + 1 :]) for n in barriers)
        found = [has_race(replace(program, kernels=each), values) for each in kernels]
        assert found.count(False) <= 1
        needed += found.count(True)
    assert needed >= 2


def has_race(program: LoweredGraph[NumpyKernel], values: Floats) -> bool:
    try:
        run_in_numpy(program, [values])
    except RaceError:
        return True
    return False
