"""A delegate that chooses in its interpreter what it is: GpuDelegate, native code, or nothing."""

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError, UsageError
from ..custom.custom_op import CustomOp
from ..model.graph import Hybrid
from ..model.state_values import StateValues
from ..programs.weights_cache import WeightsCache
from ..targets.llvm.pool import default_threads
from ..tuning.way_costs import Renderer, RunChoice, WayName
from ..tuning.way_decision import RunReport, decide_way
from ..tuning.way_times import WayRuns, gpu_signs
from .application import Application
from .callbacks import DelegateHandler, Replace
from .callers_interpreter import CallersInterpreter
from .delegate import GpuDelegate
from .delegate_options import GpuDelegateOptions
from .model_finder import FoundModel, find_model
from .native_delegate import NativePartsDelegate
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor


@dataclass(frozen=True)
class DelegateChoice:
    """What a Delegate was asked for."""

    backend: str
    threads: int | None
    exact: bool
    strict: bool
    hybrid: Hybrid
    quiet: bool
    weights_cache: WeightsCache | None
    custom_ops: Mapping[str, CustomOp]


class ChosenDelegate:
    """A Delegate in one interpreter: see DelegateHandler. All calls go to what was chosen in the first one."""

    def __init__(self, choice: DelegateChoice) -> None:
        self.interpreter = CallersInterpreter()
        self._choice = choice
        self._inner: Application | NativePartsDelegate | None = None
        self._report: RunReport | None = None
        self._error: BaseException | None = None
        self._is_released = False

    @property
    def report(self) -> RunReport:
        """Raises UsageError before an interpreter has it."""
        if self._report is None:
            raise UsageError("nothing is chosen yet; make an interpreter with this Delegate first")
        return self._report

    @property
    def partitions(self) -> Sequence[object]:
        """What does not run in TensorFlow Lite."""
        inner = self._inner
        if isinstance(inner, Application):
            return [each for found in inner.subgraphs if found.model is not None for each in found.model.partitions]
        return inner.partitions if inner is not None else ()

    @property
    def error(self) -> BaseException | None:
        return self._error or (self._inner.error if self._inner is not None else None)

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Chooses for the first graph, and for all."""
        if self._is_released:
            self._refused(UsageError(_RELEASED))
            return
        if self._report is None:
            try:
                self._report = self._decided(context)
                self._inner = self._made(self._report.taken.way)
            except Exception as error:
                self._report = self._report or RunReport(RunChoice("tflite"), "Delegate could not be applied")
                self._refused(error)
        if self._inner is None:
            return
        self._inner.apply(context, replace)
        if not self.partitions and self._choice.backend != "auto":
            self._refused(self._inner.error or UnsupportedError("it can run no operator of this model"))

    def make_kernel(self, context: TfLiteContext, params: TfLiteDelegateParams) -> int:
        return self._handler().make_kernel(context, params)

    def free_kernel(self, number: int) -> None:
        if self._inner is not None:
            self._inner.free_kernel(number)

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        self._handler().prepare_kernel(context, number)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        self._handler().run_kernel(context, number)

    def fetch(self, context: TfLiteContext, handle: int, tensor: TfLiteTensor) -> None:
        self._handler().fetch(context, handle, tensor)

    def failed(self, error: BaseException) -> None:
        self._error = error

    # What the caller asks for -------------------------------------------------------------------------------------

    def states(self) -> StateValues:
        return self._inner.states() if self._inner is not None else {}

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Raises UsageError."""
        self._with_states().restore_states(values)

    def reset_states(self) -> None:
        """Raises UsageError where nothing runs in it."""
        self._with_states().reset_states()

    def release(self) -> None:
        self._is_released = True
        if self._inner is not None:
            self._inner.release()

    # ---------------------------------------------------------------------------------------------------------------

    def _with_states(self) -> Application | NativePartsDelegate:
        if self._inner is None:
            raise UsageError("this Delegate keeps no states: TensorFlow Lite runs the model")
        return self._inner

    def _handler(self) -> DelegateHandler:
        if self._is_released:
            raise UsageError(_RELEASED)
        assert self._inner is not None, "it has operators"
        return self._inner

    def _decided(self, context: TfLiteContext) -> RunReport:
        choice = self._choice
        if choice.backend != "auto":
            way: WayName = "gl" if choice.backend == "gl" else "native"
            return RunReport(RunChoice(way), "it was asked for")
        found = find_model(context, hybrid=choice.hybrid, order=self.interpreter.order, custom_ops=choice.custom_ops)
        renderer: Renderer = "hardware" if gpu_signs() else "software"
        with contextlib.ExitStack() as trials:
            return decide_way(
                found.graph,
                self._openers(found, trials),
                renderer,
                self.interpreter.threads or 1,
                self._threads or default_threads(),
                choice.exact,
                {"by": "delegate", "runtime": self.interpreter.runtime, "asked": repr(self.interpreter.options)},
            )

    @property
    def _threads(self) -> int | None:
        return self._choice.threads or self.interpreter.threads

    def _openers(
        self, found: FoundModel, trials: contextlib.ExitStack
    ) -> dict[WayName, Callable[[tuple[int, ...]], WayRuns]]:
        """Trials of each way in an interpreter like the caller's; delegates end with the stack."""

        def alone(numbers: tuple[int, ...]) -> WayRuns:
            return {RunChoice("tflite", numbers[0]): self.interpreter.trial(found.data)}

        def with_delegate(way: WayName) -> WayRuns:
            delegate: Any = (
                GpuDelegate(quiet=True, strict=True, hybrid=self._choice.hybrid) if way == "gl" else self._native()
            )
            trials.callback(delegate.release)
            run = self.interpreter.trial(found.data, [delegate])
            if not delegate.partitions:
                raise UnsupportedError(f"it takes no operator: {delegate.error or 'none would pay'}")
            return {RunChoice(way): run}

        return {
            "tflite": alone,
            "native": lambda _: with_delegate("native"),
            "gl": lambda _: with_delegate("gl"),
        }

    def _made(self, way: WayName) -> Application | NativePartsDelegate | None:
        if way == "tflite":
            return None
        if way == "native":
            return self._native(self._choice.weights_cache)
        options = GpuDelegateOptions(hybrid=self._choice.hybrid, strict=self._choice.strict, quiet=self._choice.quiet)
        made = Application(options, None, self._choice.weights_cache, self._choice.custom_ops)
        made.order = self.interpreter.order
        return made

    def _native(self, weights_cache: WeightsCache | None = None) -> NativePartsDelegate:
        return NativePartsDelegate(
            self._threads,
            weights_cache,
            every_part=self._choice.backend == "native",
            hybrid=self._choice.hybrid,
            custom_ops=self._choice.custom_ops.values(),
            adapts=True,
            order=self.interpreter.order,
            judges_whole=False,
            exact=self._choice.exact,
        )

    def _refused(self, error: BaseException) -> None:
        """All stays as it was, and one line says why. Raises it with `strict`."""
        self._error = error
        if self._choice.strict:
            raise error
        if not self._choice.quiet and sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):
                print(f"texelflow: TensorFlow Lite runs the whole model without Delegate: {error}", file=sys.stderr)


_RELEASED = "this Delegate has been released"
