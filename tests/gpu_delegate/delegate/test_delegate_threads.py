"""Delegates on several threads, in several contexts and after a fork: right numbers, or a clear exception."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import moderngl
import numpy as np
import pytest

from tests.helpers.markers import one_in
from tests.model_files.delegate_models import any_size, interleaved, interpreter, kept, run, three_partitions
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate

pytestmark = pytest.mark.gl

EGL: Any = {"backend": "egl"}
MODELS = (any_size(), any_size(12, 10), three_partitions(), kept())
ROUNDS = 6


def delegate(context: moderngl.Context | None = None) -> GpuDelegate:
    return GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True, context=context)


def values_for(made: Any, seed: int) -> Any:
    shape = made.get_input_details()[0]["shape"]
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


class Checked:
    """An interpreter with a delegate, whose every run is compared with one without."""

    def __init__(self, runtime: Any, model: bytes, context: moderngl.Context | None = None) -> None:
        self.made = interpreter(runtime, model, delegate(context))
        plain = interpreter(runtime, model)
        self.inputs = [values_for(plain, seed) for seed in range(3)]
        self.expected = [run(plain, values) for values in self.inputs]

    def check(self, rounds: int = ROUNDS) -> None:
        for number in range(rounds):
            found = run(self.made, self.inputs[number % 3])
            for each, wanted in zip(found, self.expected[number % 3], strict=True):
                np.testing.assert_allclose(each, wanted, atol=1e-4)


@pytest.fixture
def contexts() -> Iterator[list[moderngl.Context]]:
    made = [moderngl.create_context(standalone=True, require=430, **EGL) for _ in range(2)]
    yield made
    for each in made:
        each.release()


def test_different_models_at_once_on_threads(runtime: Any) -> None:
    """More interpreters than threads; each one moves from thread to thread."""
    checked = [Checked(runtime, model) for model in MODELS * 2]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            list(pool.map(Checked.check, checked))


def test_interpreters_are_made_at_once_on_threads(runtime: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda model: Checked(runtime, model).check(), MODELS))


def test_models_in_turn_in_contexts_of_one_thread(runtime: Any, contexts: list[moderngl.Context]) -> None:
    """Two of the caller's and one of its own; whichever is current before."""
    checked = [
        Checked(runtime, model, context) for model, context in zip(MODELS, [*contexts, None, contexts[0]], strict=True)
    ]
    for _ in range(3):
        for each in checked:
            each.check(2)


def test_two_models_in_one_context(runtime: Any, contexts: list[moderngl.Context]) -> None:
    checked = [Checked(runtime, model, contexts[0]) for model in MODELS]
    for _ in range(2):
        for each in checked:
            each.check(2)


def test_a_context_of_the_caller_on_another_thread(runtime: Any, contexts: list[moderngl.Context]) -> None:
    """Refused there, also where a context of its own is current there; right on its own thread afterwards."""
    checked = Checked(runtime, interleaved(), contexts[0])

    def elsewhere() -> None:
        own = moderngl.create_context(standalone=True, require=430, **EGL)
        try:
            with pytest.raises(RuntimeError, match="belongs to the thread that made it"):
                checked.made.invoke()
        finally:
            own.release()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(elsewhere).result()
    checked.check(3)


def test_a_context_that_is_gone(runtime: Any) -> None:
    context = moderngl.create_context(standalone=True, require=430, **EGL)
    checked = Checked(runtime, any_size(), context)
    checked.check(1)
    context.release()
    with pytest.raises(RuntimeError, match="the context that was given has been released"):
        checked.made.invoke()


@one_in(4, "is_of_caller", [False, True])
def test_a_forked_process(runtime: Any, is_of_caller: bool, contexts: list[moderngl.Context]) -> None:
    """There it raises, at once, and ends without a word; here it goes on."""
    checked = Checked(runtime, interleaved(), contexts[0] if is_of_caller else None)
    child = os.fork()
    if not child:
        try:
            checked.made.invoke()
        except RuntimeError as error:
            checked.made = None
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(9)
    timer = threading.Timer(60, os.kill, (child, 9))
    timer.start()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    timer.cancel()
    checked.check(3)
