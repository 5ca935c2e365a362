"""Random histories of several delegates and interpreters at once: each output is right, or a call raises.

Whatever is done to an interpreter with a delegate is done to one without, which tells what is right.
"""

import gc
import importlib
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import texelflow
from tests.helpers.markers import one_in
from tests.helpers.runtimes import RUNTIMES
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.delegate_models import any_size, kept, late_size, three_partitions

pytestmark = pytest.mark.gl

STEPS = 40
MOST_AT_ONCE = 5
HANGS_S = PATIENCE_S
MODELS: dict[str, bytes] = {
    "parts": three_partitions(),
    "any size": any_size(),
    "any size, parts": any_size(unsupported=True),
    "size known late": late_size(),
    "kept on the GPU": kept(),
}
SHAPES = {
    "parts": ((1, 5, 7, 3), (2, 5, 7, 3), (1, 8, 8, 3)),
    "any size": ((1, 6, 8, 3), (1, 9, 5, 3), (2, 9, 5, 3)),
    "any size, parts": ((1, 6, 8, 3), (1, 9, 5, 3), (2, 4, 4, 3)),
}
LATE = ((1, 4, 6, 3), (1, 2, 12, 3), (2, 3, 4, 3), (1, 24, 1, 3))


class Pair:
    """An interpreter with a delegate, and one without."""

    def __init__(self, module: Any, rng: random.Random) -> None:
        self.name, self.rng = rng.choice([*MODELS]), rng
        kinds = module.OpResolverType
        kind = rng.choice([kinds.AUTO, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
        self.delegate: texelflow.GpuDelegate | None = texelflow.GpuDelegate(
            min_nodes_per_partition=rng.choice([1, 2]), strict=True, quiet=True
        )
        self.ours, self.theirs = (
            module.Interpreter(
                model_content=MODELS[self.name], experimental_delegates=delegates, experimental_op_resolver_type=kind
            )
            for delegates in ([self.delegate], [])
        )
        self.is_ready = self.is_released = False
        self.allocate()

    def allocate(self) -> None:
        self.theirs.allocate_tensors()
        self.is_ready = self._is_done(self.ours.allocate_tensors)

    def resize(self) -> None:
        if self.name in SHAPES:
            shape = self.rng.choice(SHAPES[self.name])
            for each in (self.ours, self.theirs):
                each.resize_tensor_input(each.get_input_details()[0]["index"], shape)
            self.allocate()

    def run(self, spoilt: bool = False) -> None:
        """One inference on both; with NaN among the inputs, ours refuses it."""
        if not self.is_ready:
            with pytest.raises((RuntimeError, ValueError)):
                self.ours.invoke()
            return
        for detail in self.theirs.get_input_details():
            values = np.random.default_rng(self.rng.randrange(1 << 30)).normal(0, 1, detail["shape"])
            given = np.array(self.rng.choice(LATE)) if detail["dtype"] == np.int32 else values
            given = given.astype(detail["dtype"])
            if spoilt and given.dtype == np.float32:
                given.flat[0] = np.nan
            for each in (self.ours, self.theirs):
                each.set_tensor(detail["index"], given)
        if spoilt:
            with pytest.raises(RuntimeError, match=r"finite|released"):
                self.ours.invoke()
            return
        self.theirs.invoke()
        if self._is_done(self.ours.invoke):
            self.compare()

    def compare(self) -> None:
        both = zip(self.ours.get_output_details(), self.theirs.get_output_details(), strict=True)
        for ours, theirs in both:
            found, expected = self.ours.get_tensor(ours["index"]), self.theirs.get_tensor(theirs["index"])
            assert found.shape == expected.shape, self.name
            np.testing.assert_allclose(found, expected, atol=1e-3, err_msg=self.name)

    def release(self) -> None:
        if self.delegate is not None:
            self.delegate.release()
            self.is_released = True

    def forget_delegate(self) -> None:
        """The interpreter keeps it."""
        self.delegate = None
        gc.collect()

    def forget_interpreter(self) -> texelflow.GpuDelegate | None:
        self.ours = self.theirs = None
        gc.collect()
        return self.delegate

    def _is_done(self, call: Callable[[], object]) -> bool:
        """Whether the call did it: all calls do until the release, and none that needs the GPU after it."""
        raised = ""
        try:
            call()
        except RuntimeError as error:
            raised = str(error)
        assert not raised or (self.is_released and "has been released" in raised), raised
        return not raised


def in_threads(pairs: list[Pair]) -> None:
    """Inferences of all at once, a thread for each interpreter."""
    errors = list[BaseException]()

    def work(pair: Pair) -> None:
        try:
            for _ in range(3):
                pair.run()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(pair,)) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_S)
    assert not any(thread.is_alive() for thread in threads), "a call hangs"
    if errors:
        raise errors[0]


def forget(pair: Pair, pairs: list[Pair], orphans: list[texelflow.GpuDelegate]) -> None:
    """The interpreter goes before its delegate, if somebody has that."""
    pairs.remove(pair)
    orphans += filter(None, [pair.forget_interpreter()])


ACTIONS: tuple[Callable[[Pair, list[Pair], list[texelflow.GpuDelegate]], object], ...] = (
    *([lambda pair, pairs, orphans: pair.run()] * 3),
    lambda pair, pairs, orphans: in_threads([pair]),
    lambda pair, pairs, orphans: in_threads(pairs),
    *([lambda pair, pairs, orphans: pair.resize()] * 2),
    lambda pair, pairs, orphans: pair.allocate(),
    lambda pair, pairs, orphans: pair.run(spoilt=True),
    lambda pair, pairs, orphans: pair.release(),
    lambda pair, pairs, orphans: pair.forget_delegate(),
    lambda pair, pairs, orphans: pairs.remove(pair),
    forget,
)


@one_in(4, "seed", range(2))
def test_whatever_is_done_outputs_are_right_or_a_call_raises(seed: int) -> None:
    rng, orphans = random.Random(seed), list[texelflow.GpuDelegate]()
    modules = [importlib.import_module(f"{name}.interpreter") for name in RUNTIMES]
    pairs = list[Pair]()
    compared = 0
    for _ in range(STEPS):
        if len(pairs) < 2 or (len(pairs) < MOST_AT_ONCE and rng.random() < 0.1):
            pairs.append(Pair(rng.choice(modules), rng))
        pair = rng.choice(pairs)
        compared += not pair.is_released
        rng.choice(ACTIONS)(pair, pairs, orphans)
        if orphans and rng.random() < 0.3:
            orphans.pop().release()
    assert compared > 3, "the history says something"
    assert all(delegate.summary for delegate in orphans)
