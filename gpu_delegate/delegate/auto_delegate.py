"""Delegate: OpenGL, native code or nothing in TensorFlow Lite's interpreter, whichever runs its model the quickest."""

import contextlib
import sys
import weakref
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from ..base.errors import TexelflowError, UsageError
from ..custom.custom_op import CustomOp, by_name
from ..model.graph import Hybrid
from ..model.state_values import StateValues
from ..programs.weights_cache import WeightsCache, checked_cache
from ..tuning.way_costs import WayName
from ..tuning.way_report import InterpreterReport
from .callbacks import NativeDelegate
from .callers_interpreter import callers_interpreter
from .chosen_delegate import ChosenDelegate, DelegateChoice
from .delegate_options import one_of
from .runtime_check import check_runtimes

DelegateBackend = Literal["auto", "gl", "native"]


class Delegate:
    """A delegate for programs that keep their TensorFlow Lite interpreter.

        delegate = texelflow.Delegate()
        interpreter = Interpreter(model_path="model.tflite", experimental_delegates=[delegate])
        interpreter.allocate_tensors()
        interpreter.invoke()
        print(delegate.report(), delegate.way, delegate.is_applied, delegate.error)
        if delegate.is_applied:
            kept = delegate.states()  # of models that keep something from run to run
            delegate.restore_states(kept)
            delegate.reset_states()
        delegate.release()

    The interpreter is used as before, from any thread. What runs its model is chosen when it is made: OpenGL on a GPU,
    code made for this CPU, or TensorFlow Lite as it comes, the quickest on this machine. Nothing changes that later.
    report() says what was taken, and why. A delegate belongs to one interpreter, which keeps it alive; release(), or
    the end of a `with` block, ends what it has, and the interpreter cannot run any more then if anything runs there.
    """

    def __init__(
        self,
        *,
        backend: DelegateBackend = "auto",
        threads: int | None = None,
        exact: bool = True,
        strict: bool = False,
        hybrid: Hybrid = "expanded",
        weights_cache: WeightsCache | None = None,
        quiet: bool = False,
        custom_ops: Iterable[CustomOp] = (),
    ) -> None:
        """Nothing is opened before an interpreter has it.

        backend: "gl" and "native" have no choice made: what these can run is theirs.
        threads: of native code, from 1 on; None: as the interpreter's num_threads, or, without one, as many as pay.
        exact: whether 8-bit models run only where each byte is that of TensorFlow Lite's reference kernels, which
        XNNPACK's are not; False takes the quickest. What native code and OpenGL leave of them is TensorFlow Lite's.
        strict: whether the interpreter's constructor raises where a backend that is asked for cannot be applied; else
        one line on stderr says why, and all runs as without it.
        hybrid: "expanded" or "reference", as in GpuDelegate.
        weights_cache: shares weights with other instances; it is finalized before the interpreter runs.
        quiet: whether lines on stderr are left out.
        custom_ops: what texelflow.custom_op gives.

        Raises UsageError for a wrong option.
        """
        one_of("backend", backend, get_args(DelegateBackend))
        one_of("hybrid", hybrid, get_args(Hybrid))
        for name, given in (("exact", exact), ("strict", strict), ("quiet", quiet)):
            if not isinstance(given, bool):
                raise UsageError(f"{name} is True or False, not {given!r}")
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise UsageError(f"threads is a whole number from 1 on, or None for as many as pay, not {threads!r}")
        checked_cache(weights_cache)
        choice = DelegateChoice(backend, threads, exact, strict, hybrid, quiet, weights_cache, by_name(custom_ops))
        self._chosen = ChosenDelegate(choice)
        self._native = NativeDelegate(self._chosen, type(self).__name__)
        self._is_given = False
        weakref.finalize(self, _end, self._chosen)

    def _get_native_delegate_pointer(self) -> int:
        """What an interpreter's constructor asks for. Raises UsageError if another one has asked.

        Raises UnsupportedError for a runtime that does not work with this.
        """
        if self._is_given:
            raise UsageError("a Delegate belongs to one interpreter; make another one for another interpreter")
        caller = sys._getframe(1)
        check_runtimes(caller.f_globals.get("__name__"))
        self._chosen.interpreter = callers_interpreter(caller)
        self._is_given = True
        return self._native.address

    @property
    def way(self) -> WayName:
        """What runs the model: "gl", "native", or "tflite" where it is left as it was."""
        return cast(WayName, self._chosen.report.backend)

    @property
    def is_applied(self) -> bool:
        """Whether any operator runs on the GPU or in native code."""
        return self._chosen.is_applied

    @property
    def error(self) -> BaseException | None:
        """The last exception for which a call of the interpreter has failed, or for which nothing was applied."""
        return self._chosen.error

    def report(self) -> InterpreterReport:
        """What runs where and why, with times, as an object whose str() is a text of some lines.

        Raises UsageError before an interpreter has the delegate.
        """
        return self._chosen.report

    def states(self) -> StateValues:
        """What operators keep from run to run, where they do not run in TensorFlow Lite: arrays by name."""
        return self._chosen.states()

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have them keep what states() gave; what is not named stays. Raises UsageError for others than they have."""
        self._chosen.restore_states(values)

    def reset_states(self) -> None:
        """Have them keep what they did before the first run."""
        self._chosen.reset_states()

    def release(self) -> None:
        """End its threads and free what is in OpenGL. A second call does nothing."""
        self._chosen.release()

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a Delegate belongs to one interpreter, and cannot be copied or pickled; make another one")

    def __enter__(self) -> "Delegate":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _end(chosen: ChosenDelegate) -> None:
    """Free what nobody will ask for again: at the end of Python its thread may be gone already."""
    with contextlib.suppress(TexelflowError):
        chosen.release()
