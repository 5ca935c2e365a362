"""The thread pool: the same bytes with any number of threads, in order, and a clean end."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.waiting import PATIENCE_S
from texelflow.gpu_delegate.targets.llvm import ir
from texelflow.gpu_delegate.targets.llvm.compiler import CompiledCode, compile_module, native_target, object_code
from texelflow.gpu_delegate.targets.llvm.machine import AVX512, NEON, CpuTarget, usable_cores
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool, default_threads
from texelflow.gpu_delegate.targets.llvm.pool_code import pool_text
from texelflow.gpu_delegate.targets.llvm.work import MOST_TASKS, StepAddresses, StepRange, WorkRound, WorkTable

ROWS, WIDTH = 24, 16


@pytest.fixture(scope="module")
def target() -> CpuTarget:
    return native_target()


@pytest.fixture(scope="module")
def kernel(target: CpuTarget) -> CompiledCode:
    """smooth: row y of a map becomes that of the other one, plus a third of what lies a row above and below."""
    module = ir.Module()
    signature = [("ptr", "tensors"), ("ptr", "weights"), *(("i32", name) for name in ("y0", "y1", "z0", "z1"))]
    f = module.function("smooth", signature)
    tensors, weights, y0, y1, *_ = f.parameters
    source, goal = (f.load(ir.POINTER, f.at(tensors, slot, ir.POINTER), 8) for slot in (0, 1))
    kind = ir.vector(ir.FLOAT, WIDTH)
    factor = f.splat(f.load(ir.FLOAT, weights), WIDTH)
    with f.loop(y0, y1) as y:
        rows = [f.load(kind, f.at(source, f.binary("add", y, ir.integer(by)), kind)) for by in (0, 1, 2)]
        beside = f.binary("fmul", f.binary("fadd", rows[0], rows[2]), factor)
        f.store(f.binary("fadd", rows[1], beside), f.at(goal, f.binary("add", y, ir.integer(1)), kind))
    f.give_back()
    return compile_module(module.text, target)


class Network:
    """Two maps with a row of zeros above and below, smoothed from one to the other and back."""

    def __init__(self, kernel: CompiledCode, layers: int, cuts: Sequence[int]) -> None:
        self.maps = np.zeros((2, ROWS + 2, WIDTH), np.float32)
        self.weights = np.full(1, 1 / 3, np.float32)
        self.layers, self.kernel = layers, kernel  # whose code must stay
        pointers = [self.maps[layer].ctypes.data for layer in (0, 1)]
        self.tensors = [np.array(pointers[::way], np.int64) for way in (1, -1)]
        steps = [
            StepAddresses(kernel.address("smooth"), self.tensors[n % 2].ctypes.data, self.weights.ctypes.data)
            for n in range(layers)
        ]
        self.table = WorkTable([cut_rows(n, cuts[n % len(cuts)]) for n in range(layers)], steps)

    def run(self, pool: WorkerPool, data: npt.NDArray[np.float32]) -> bytes:
        """The last map for a first one."""
        self.maps[0, 1:-1] = data
        pool.run(self.table)
        result: bytes = self.maps[self.layers % 2].tobytes()
        return result


def cut_rows(step: int, parts: int) -> WorkRound:
    """All rows of a step in so many tasks."""
    edges = [ROWS * part // parts for part in range(parts + 1)]
    return tuple((StepRange(step, y0, y1, 0, 1),) for y0, y1 in pairwise(edges))


def smoothed(data: npt.NDArray[np.float32], layers: int) -> npt.NDArray[np.float32]:
    third = np.float32(1 / 3)
    for _ in range(layers):
        padded = np.pad(data, ((1, 1), (0, 0)))
        data = data + (padded[:-2] + padded[2:]) * third
    return data


@pytest.fixture(params=[1, 2, 3, 4])
def pool(request: pytest.FixtureRequest, target: CpuTarget) -> Iterator[WorkerPool]:
    made = WorkerPool(target, request.param)
    yield made
    made.close()


def test_any_number_of_threads_gives_the_same_bytes_every_time(pool: WorkerPool, kernel: CompiledCode) -> None:
    network = Network(kernel, 9, (1, 4, 24, 7, 2))
    random = np.random.default_rng(3)
    for _ in range(8):
        data = random.standard_normal((ROWS, WIDTH)).astype(np.float32)
        expected = network.run(pool, data)
        rows = np.frombuffer(expected, np.float32).reshape(ROWS + 2, WIDTH)[1:-1]
        np.testing.assert_allclose(rows, smoothed(data, 9), rtol=1e-4, atol=1e-4)
        assert {network.run(pool, data) for _ in range(500)} == {expected}


def test_networks_of_several_threads_share_a_pool(pool: WorkerPool, kernel: CompiledCode) -> None:
    data = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
    networks = [Network(kernel, layers, (3, 24)) for layers in (2, 5, 8)]
    expected = [network.run(pool, data) for network in networks]
    found: list[set[bytes]] = [set() for _ in networks]

    def work(at: int) -> None:
        found[at].update(networks[at].run(pool, data) for _ in range(200))

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(networks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{each} for each in expected]


def test_a_closed_pool_has_no_threads_and_goes_on_alone(target: CpuTarget, kernel: CompiledCode) -> None:
    before = {*threading.enumerate()}
    network = Network(kernel, 3, (8,))
    data = np.ones((ROWS, WIDTH), np.float32)
    for runs in (0, 1, 50):
        pool = WorkerPool(target, 3)
        assert len({*threading.enumerate()} - before) == 2
        found = [network.run(pool, data) for _ in range(runs)]
        pool.close()
        assert {*threading.enumerate()} <= before
        assert {network.run(pool, data), *found} == {network.run(WorkerPool(target, 1), data)}
        pool.close()
    del pool
    WorkerPool(target, 3).run(WorkTable([()], []))  # nothing to do; and nobody closes it
    assert {*threading.enumerate()} <= before


def test_small_numbers_are_zero_inside_and_kept_outside(pool: WorkerPool, kernel: CompiledCode) -> None:
    network = Network(kernel, 1, (4,))
    small = np.full((ROWS, WIDTH), 2e-38, np.float32)
    network.run(pool, small)
    assert network.maps[1, 1:-1].all()
    network.run(pool, small / 10)  # no normal floats
    assert not network.maps[1].any()
    assert (small / 10).all()  # here they still are numbers


def test_a_child_of_a_process_works_without_its_threads_and_exits_end_them() -> None:
    """In a process of its own, since this one has threads of others, which a fork must not have."""
    program = """
import os, sys
import numpy as np
from tests.gpu_delegate.targets.llvm import test_pool
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool
target = native_target()
pool = WorkerPool(target, 3)
network = test_pool.Network(test_pool.kernel.__wrapped__(target), 4, (8,))
data = np.ones((24, 16), np.float32)
expected = [network.run(pool, data) for _ in range(20)]
child = os.fork()
if not child:
    same = {network.run(pool, data) for _ in range(20)} == {*expected}
    pool.close()
    os._exit(0 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len({*expected}))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=Path(__file__).parents[4],
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 1\n", "")


def test_the_code_is_made_for_every_kind_and_numbers_are_bounded(target: CpuTarget) -> None:
    for kind in (AVX512, NEON):
        assert object_code(pool_text(kind), kind)
    for threads in (0, 65):
        with pytest.raises(ValueError, match="threads"):
            WorkerPool(target, threads)
    with pytest.raises(ValueError, match=f"a plan of {MOST_TASKS + 1} tasks"):
        WorkTable([((),) * (MOST_TASKS + 1)], [])
    assert default_threads() == min(2, usable_cores())
    assert default_threads(spared_cores=99) == 1
