"""A delegate that chooses in its interpreter what it is: GpuDelegate, native code, or nothing."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError, UsageError
from ..cpu.delegation import delegation_of
from ..custom.custom_op import CustomOp
from ..model.graph import Hybrid
from ..model.state_values import StateValues
from ..programs.weights_cache import WeightsCache, checked_cache
from ..targets.llvm.pool import default_threads
from ..tuning.way_costs import RunChoice, WayName
from ..tuning.way_decision import OpenWay, WayDecision, decide_way
from ..tuning.way_report import InterpreterReport, places_left
from ..tuning.way_times import WayRuns, gpu_signs
from .callbacks import DelegateHandler, Replace
from .callers_interpreter import CallersInterpreter
from .delegate import GpuDelegate
from .model_finder import FoundModel, find_model
from .native_delegate import NativePartsDelegate
from .native_operators import execution_plan
from .report import REASONS_MOST, summed_reasons
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor

_RELEASED = "this Delegate has been released; make another one"
AnyDelegate = GpuDelegate | NativePartsDelegate


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
        self._inner: AnyDelegate | None = None
        self._decision: WayDecision | None = None
        self._operators = 0  # of the first graph
        self._error: BaseException | None = None
        self._is_released = False

    @property
    def report(self) -> InterpreterReport:
        """Raises UsageError before an interpreter has it."""
        if self._decision is None:
            raise UsageError("nothing is chosen yet; make an interpreter with this Delegate first")
        package, operators, reasons = self.interpreter.runtime, self._operators, self._decision.reasons
        way: WayName = "tflite"
        renderer, places, threads = package, {"in TensorFlow Lite": operators}, self.interpreter.threads or 1
        if self._error is not None:
            reasons = (f"an error: {self._error}", *reasons)
        if self._inner is not None and self.is_applied:
            found = delegation_of(self._inner, operators)
            taken = sum(map(len, found.partitions)) + found.by_functions
            places = {found.places[0]: taken, **places_left(operators - taken)}
            way, renderer = self._decision.taken.way, f"{found.renderer}, and {package}"
            threads = self._threads or default_threads() if way == "native" else 1
            reasons = (*reasons, *summed_reasons(self._inner.reasons)[:REASONS_MOST])
        times = self._decision.times_ms
        return InterpreterReport(
            way, renderer, operators, places, threads, exact=self._choice.exact, reasons=reasons, times_ms=times
        )

    @property
    def is_applied(self) -> bool:
        """Whether anything does not run in TensorFlow Lite."""
        return self._inner is not None and bool(self._inner.partitions)

    @property
    def error(self) -> BaseException | None:
        return self._error or (self._inner.error if self._inner is not None else None)

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Chooses for the first graph, and for all."""
        if self._is_released:
            self._refused(UsageError(_RELEASED))
            return
        if self._decision is None:
            self._operators = len(execution_plan(context))
            try:
                self._decision = self._decided(context)
                self._inner = self._made(self._decision.taken.way)
            except Exception as error:
                self._decision = self._decision or WayDecision(RunChoice("tflite"), "nothing else could be applied")
                self._refused(error)
            is_first = True
        else:
            is_first = False
        if self._inner is None:
            return
        self._handler().apply(context, replace)
        if is_first and not self.is_applied and self._choice.backend != "auto":
            self._refused(self._inner.error or UnsupportedError("it can run no operator of this model"))

    def make_kernel(self, context: TfLiteContext, params: TfLiteDelegateParams) -> int:
        return self._handler().make_kernel(context, params)

    def free_kernel(self, number: int) -> None:
        if self._inner is not None:
            _handler_of(self._inner).free_kernel(number)

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

    def _with_states(self) -> AnyDelegate:
        if self._is_released or self._inner is None:
            raise UsageError(_RELEASED if self._is_released else "this Delegate keeps no states; nothing runs there")
        return self._inner

    def _handler(self) -> DelegateHandler:
        if self._is_released:
            raise UsageError(_RELEASED)
        assert self._inner is not None, "it has operators"
        return _handler_of(self._inner)

    def _decided(self, context: TfLiteContext) -> WayDecision:
        choice = self._choice
        if choice.backend != "auto":
            return WayDecision(RunChoice("gl" if choice.backend == "gl" else "native"), "it was asked for")
        found = find_model(context, hybrid=choice.hybrid, order=self.interpreter.order, custom_ops=choice.custom_ops)
        facts = {"by": "delegate", "runtime": self.interpreter.runtime, "asked": repr(self.interpreter.options)}
        with contextlib.ExitStack() as trials:
            return decide_way(
                found.graph,
                self._openers(found, trials),
                "hardware" if gpu_signs() else "software",
                self.interpreter.threads or 1,
                self._threads or default_threads(),
                choice.exact,
                facts,
            )

    @property
    def _threads(self) -> int | None:
        """Of native code, as far as anybody asks for a number."""
        return self._choice.threads or self.interpreter.threads

    def _openers(self, found: FoundModel, trials: contextlib.ExitStack) -> dict[WayName, OpenWay]:
        """Trials of each way in an interpreter like the caller's; delegates end with the stack."""

        def alone(numbers: Sequence[int]) -> WayRuns:
            return {RunChoice("tflite", numbers[0]): self.interpreter.trial(found.data)}

        def with_delegate(way: WayName) -> WayRuns:
            delegate = self._made(way, is_trial=True)
            assert delegate is not None, "TensorFlow Lite alone has none"
            trials.callback(delegate.release)
            run = self.interpreter.trial(found.data, [delegate])
            if not delegate.partitions and not delegation_of(delegate, 0).by_functions:
                raise UnsupportedError(f"it takes no operator: {delegate.error or 'none would pay'}")
            return {RunChoice(way): run}

        return {"tflite": alone, "native": lambda _: with_delegate("native"), "gl": lambda _: with_delegate("gl")}

    def _made(self, way: WayName, is_trial: bool = False) -> AnyDelegate | None:
        choice = self._choice
        cache = None if is_trial else choice.weights_cache
        functions = choice.custom_ops.values()
        if way == "tflite":
            return None
        if way == "gl":
            made = GpuDelegate(
                quiet=choice.quiet or is_trial,
                strict=choice.strict or is_trial,
                hybrid=choice.hybrid,
                weights_cache=cache,
                custom_ops=functions,
            )
            made._application.order = self.interpreter.order
            return made
        return NativePartsDelegate(
            self._threads,
            checked_cache(cache),
            every_part=choice.backend == "native",
            hybrid=choice.hybrid,
            custom_ops=functions,
            adapts=True,
            order=self.interpreter.order,
            judges_whole=False,
            exact=choice.exact,
        )

    def _refused(self, error: BaseException) -> None:
        """All stays as it was, and one line says why. Raises it with `strict`."""
        self._error = error
        if self._choice.strict:
            raise error
        if not self._choice.quiet and sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):
                print(f"texelflow: TensorFlow Lite runs the whole model without Delegate: {error}", file=sys.stderr)


def _handler_of(delegate: AnyDelegate) -> DelegateHandler:
    return delegate._application if isinstance(delegate, GpuDelegate) else delegate
