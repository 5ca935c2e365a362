"""A delegate in one interpreter: handles TensorFlow Lite's calls for all graphs of it, with one engine."""

import contextlib
import ctypes
import sys
import warnings
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..base.errors import SoftwareRendererWarning, TexelflowError, UsageError
from ..cpu.runtime_trial import RUNTIMES
from ..custom.custom_op import NO_CUSTOM_OPS, CustomOp
from ..custom.known import KNOWN_CUSTOM_OPS
from ..model.graph import Graph
from ..model.state_values import StateValues
from ..passes.kept_states import handles_of
from ..plan.refusals import find_refusals
from ..programs.model_sharing import ModelSharing, facts_of_device
from ..reading.reader import read_model
from .bound_tensors import TensorBinding
from .callbacks import Replace
from .callers_file import order_in
from .census import OtherOperators
from .context_model import called_subgraphs, run_by
from .delegate_options import GpuDelegateOptions
from .delegated_subgraph import DelegatedSubgraph
from .engine import DelegateEngine
from .function_kernel import FunctionKernels
from .model_finder import FoundModel, find_model
from .native_operators import execution_plan
from .planning import DelegatedModel, plan_model
from .report import report_lines, summary_line
from .selection import rates_of
from .serialization import serialization_of
from .shared_variables import left_operators, left_variables
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor
from .worker import RELEASED, GlWorker, open_worker

_ENGINE = __name__.rpartition(".delegate.")[0]


class Application:
    """A delegate in one interpreter: see DelegateHandler."""

    def __init__(
        self,
        options: GpuDelegateOptions,
        worker: GlWorker | None,
        weights_cache: ModelSharing | None = None,
        custom_ops: Mapping[str, CustomOp] = NO_CUSTOM_OPS,
    ) -> None:
        """`worker` is one that is open already, for a context of the caller's."""
        self._custom_ops = custom_ops
        self._options, self._worker, self._cache = options, worker, weights_cache
        self._engine: DelegateEngine | None = None
        self._by_place: dict[int, DelegatedSubgraph] = {}  # by the context's address, in the file's order
        self._called: frozenset[int] | None = frozenset()  # subgraphs that control flow runs; None: perhaps all
        self._left_variables: frozenset[str] | None = None  # once a graph with variables is there
        self._run_on_cpu = frozenset[int]()  # those of these that operators run which are left to TensorFlow Lite
        self._last_number = 0  # of a kernel, in whichever subgraph
        self._is_of_caller = worker is not None
        self._is_without_device = False
        self._is_released = False
        self.order = order_in(options.model)  # of subgraphs' inputs and outputs
        self.renderer = ""
        self.error: BaseException | None = None

    @property
    def subgraphs(self) -> tuple[DelegatedSubgraph, ...]:
        """Those that could be read and planned: of each signature, or the only one."""
        return tuple(each for each in self._by_place.values() if each.model is not None)

    @property
    def summary(self) -> str:
        """Who runs how many operators, in one line; of those that are left to TensorFlow Lite once it has run."""
        found = [each.model.found for each in self.subgraphs if each.model is not None]
        if not found:
            return "no operator on the GPU" + (f": {self.error}" if self.error else "")
        others = [each.others or OtherOperators(0, 0) for each in self.subgraphs]
        return summary_line(found, sum(each.xnnpack for each in others), sum(each.builtin for each in others))

    @property
    def buffer_bytes(self) -> int:
        """Of GL buffers: tensors, weights, and what copies need once a partition has run."""
        return self._engine.buffer_bytes if self._engine else 0

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Leaves the graph as it is if anything fails before operators are replaced; raises that if it is strict.

        It is called for each subgraph, and again where TensorFlow Lite has undone all delegates to allow for other
        shapes. Branches and bodies of control flow are left alone.
        """
        place = ctypes.addressof(context)
        if place not in self._by_place:
            self._by_place[place] = DelegatedSubgraph(len(self._by_place), self._opened)
            try:
                self._plan_subgraph(context, self._by_place[place])
            except Exception as error:
                if self._options.strict:
                    raise
                self._leave(self._by_place[place], error)
        model = self._by_place[place].model
        functions = self._by_place[place].functions
        for nodes in (model.nodes if model else (), functions.nodes if functions else ()):
            if nodes:
                replace(nodes)

    def make_kernel(self, context: TfLiteContext, params: TfLiteDelegateParams) -> int:
        """For one of the groups that TensorFlow Lite has formed of the operators."""
        self._last_number += 1
        self._by_place[ctypes.addressof(context)].make_kernel(params, self._last_number)
        return self._last_number

    def free_kernel(self, number: int) -> None:
        for subgraph in self._by_place.values():
            subgraph.free_kernel(number)

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        self._owner(number).prepare_kernel(context, number)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        """What is kept on the GPU is marked as stale in TensorFlow Lite's memory."""
        self._owner(number).run_kernel(context, number)

    def fetch(self, context: TfLiteContext, handle: int, tensor: TfLiteTensor) -> None:
        """Raises UsageError for the handle of a kernel that has been freed, or that does not compute the tensor."""
        self._by_place[ctypes.addressof(context)].fetch(context, handle, tensor)

    def failed(self, error: BaseException) -> None:
        self.error = error

    # What the caller asks for -------------------------------------------------------------------------------------

    def bind(self, binding: TensorBinding) -> None:
        """Have a tensor of the first graph come from an object of OpenGL, or go there. Raises UsageError."""
        if self._is_released:
            raise UsageError(RELEASED)
        first = next(iter(self._by_place.values()), None)
        if first is None or not first.is_applied:
            why = f"nothing runs on the GPU: {self.error}" if self.error else "make an interpreter with it first"
            raise UsageError(f"this GpuDelegate has no tensors to bind; {why}")
        if not self._is_of_caller:
            raise UsageError("this GpuDelegate has a context of its own; give it that of what is bound, as context=...")
        first.bind(binding)

    def unbind(self, index: int) -> None:
        """Have it in RAM again."""
        if self._is_released:
            raise UsageError(RELEASED)
        for subgraph in self.subgraphs[:1]:
            subgraph.unbind(index)

    def states(self) -> StateValues:
        """What it keeps from run to run, by name."""
        return self._with_states().states() if self._engine else {}

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have it keep what states() gave. Raises UsageError for others than it has."""
        self._with_states().restore_states(values)

    def reset_states(self) -> None:
        """Have it keep what it did before the first run."""
        self._with_states().reset_states()

    def _with_states(self) -> DelegateEngine:
        if self._is_released or self._engine is None:
            raise UsageError(RELEASED if self._is_released else "this GpuDelegate keeps no states; nothing runs there")
        for place, subgraph in self._by_place.items():
            subgraph.notice_resets(TfLiteContext.from_address(place))
        return self._engine

    def release(self) -> None:
        """Free all that is in OpenGL: kernels raise from now on. A second call does nothing.

        Raises UsageError on a thread where the worker does not work, and can be called again on another one.
        """
        self._is_released = True
        self._close()

    def _close(self) -> None:
        for subgraph in self._by_place.values():
            subgraph.clear()
        if self._engine is not None:
            self._engine.release()
        elif self._worker is not None:
            self._worker.release()
        self._engine = self._worker = None

    def _plan_subgraph(self, context: TfLiteContext, subgraph: DelegatedSubgraph) -> None:
        """Decide and load everything of one that is run by itself. Raises what fails."""
        more = called_subgraphs(context)
        self._called = None if self._called is None or more is None else self._called | more
        is_called = subgraph.number > 0 and (self._called is None or subgraph.number in self._called - self._run_on_cpu)
        if is_called or not execution_plan(context):
            return
        read, given = self._cache.read_model if self._cache else read_model, self._options.model
        found = find_model(context, given, read, subgraph.number, self._options.hybrid, self.order, self._custom_ops)
        if subgraph.number in self._run_on_cpu and handles_of(found.graph):
            return
        subgraph.functions = FunctionKernels(found.graph, {**KNOWN_CUSTOM_OPS, **self._custom_ops})
        if self._is_without_device:
            return
        try:
            engine = self._engine = self._opened()
        except Exception:
            self._is_without_device = True
            raise
        self.renderer = engine.renderer
        if engine.is_software and not self._options.quiet:
            _warn_once(engine.renderer)
        if self._left_variables is None and handles_of(found.graph):
            self._left_variables = self._left_in(context, engine)
        subgraph.load(context, self._plan(found, engine, subgraph.number in self._run_on_cpu))
        assert subgraph.model is not None
        self._run_on_cpu |= run_by(context, subgraph.model.found.reasons)
        for line in report_lines(subgraph.model.found):
            self._tell(f"subgraph {subgraph.number}: {line}" if subgraph.number else line)
        if not subgraph.number:
            self._tell_of_serialization(engine.serialization_failure)

    def _plan(self, found: FoundModel, engine: DelegateEngine, is_called: bool) -> DelegatedModel:
        """What runs where, by a plan that others with the same cache have, if there is one."""
        options = self._options

        left = left_operators(found.graph, self._left_variables or ())

        def make() -> DelegatedModel:
            return plan_model(found, options, engine.device, rates_of(engine.is_software), engine.plan, left, is_called)

        if self._cache is None:
            return make()
        names = ("max_delegated_partitions", "min_nodes_per_partition")
        facts = {
            "use": "in a delegate",
            "left": sorted(left),
            "called": is_called,
            **vars(options.compiling),
            **{name: getattr(options, name) for name in names},
        }
        return self._cache.shared(found.graph, {**facts, **facts_of_device(engine.device)}, make)

    def _left_in(self, context: TfLiteContext, engine: DelegateEngine) -> frozenset[str]:
        """The variables that it does not keep since other graphs have them, too."""

        def graph_in(inner: TfLiteContext) -> Graph:
            return find_model(inner, order=self.order, custom_ops=self._custom_ops).graph

        return left_variables(context, graph_in, lambda graph: not find_refusals(graph, engine.device).reasons)

    def _leave(self, subgraph: DelegatedSubgraph, error: Exception) -> None:
        """Leave a graph to the CPU, and say why."""
        self.failed(error)
        what = f"subgraph {subgraph.number}" if subgraph.number else "the whole model"
        self._tell(f"texelflow: TensorFlow Lite runs {what} on the CPU: {error}")
        if not self.subgraphs:
            with contextlib.suppress(TexelflowError):
                self._close()

    def _tell_of_serialization(self, failure: str) -> None:
        if self._options.is_serializing_in_part:
            failure = 'of serialization_dir, model_token and the flag "enable_serialization" some are missing'
        if failure:
            self._tell(f"texelflow: programs are not serialized: {failure}")

    def _owner(self, number: int) -> DelegatedSubgraph:
        """The graph that has a kernel. Raises UsageError for one that does not exist."""
        if self._is_released:
            raise UsageError(RELEASED)
        for subgraph in self._by_place.values():
            if subgraph.has_kernel(number):
                return subgraph
        raise UsageError(f"this operator could not be made: {self.error}")

    def _opened(self) -> DelegateEngine:
        if self._is_released:
            raise UsageError(RELEASED)
        if self._engine is not None:
            return self._engine
        options = self._options
        self._worker = self._worker or open_worker(None, self._cache)
        return DelegateEngine(
            self._worker, options.compiling, options.wait_type, self._cache, serialization_of(options)
        )

    def _tell(self, line: str) -> None:
        if not self._options.quiet and sys.stderr is not None:  # a program without a console has none
            with contextlib.suppress(OSError, ValueError):  # or has closed it
                print(line, file=sys.stderr)


@lru_cache(maxsize=1)
def _warn_once(renderer: str) -> None:
    """Of the first renderer alone, at the line that has made the interpreter."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith((_ENGINE, *RUNTIMES)):
        frame, level = frame.f_back, level + 1
    text = (
        f"GpuDelegate computes with a software renderer here ({renderer}), which takes several times as long as the "
        "CPU alone; write texelflow.Delegate(), which takes whichever is quickest (quiet=True leaves this out)"
    )
    warnings.warn(text, SoftwareRendererWarning, stacklevel=level)
