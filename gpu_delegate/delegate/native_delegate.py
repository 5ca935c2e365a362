"""Runs parts of a model in the CPU's own code, as operators of a TensorFlow Lite interpreter that runs the rest.

It is for interpreters that the engine makes itself (Reference), and, behind a Delegate, for those of others.
"""

import ctypes
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..base.errors import UsageError
from ..base.wording import counted
from ..cpu.delegation import IN_NATIVE_CODE, DelegateMaker
from ..cpu.interpreter_child import MakeDelegate, serve
from ..custom.custom_op import CustomOp, by_name
from ..custom.known import KNOWN_CUSTOM_OPS
from ..model.graph import Graph, Hybrid
from ..model.state_values import StateValues, check_names
from ..passes.kept_states import handles_of
from ..plan.refusals import find_refusals
from ..programs.model_sharing import ModelSharing
from ..targets.llvm.compiler import native_target
from ..targets.llvm.native_runtime import NativeNetwork
from ..targets.llvm.native_states import NativeStates
from ..targets.llvm.native_tuning import cpu_device
from ..targets.llvm.pool import WorkerPool, default_threads
from ..tuning.way_costs import computes_bytes
from .callbacks import NativeDelegate, Replace
from .callers_file import OrderOf, model_in_frame, order_in, unknown_order
from .context_model import called_subgraphs
from .function_kernel import FunctionKernels
from .model_finder import FoundModel, find_model
from .native_operators import execution_plan
from .native_parts import UNTIMED, PartTimes, TimesOf, kept_times, native_parts
from .native_subgraph import NativePart, NativeSubgraph
from .runtime_check import check_runtimes
from .shared_variables import left_operators, left_variables
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor

_PROGRAM = f"from {__name__} import serve_native; serve_native()"


def native_delegate(
    threads: int | None = None, weights_cache: ModelSharing | None = None, every_part: bool = False
) -> DelegateMaker:
    """A NativePartsDelegate for a Reference, with so many threads of its own; `every_part` is native_parts'."""
    arguments = {"threads": threads, "weights_cache": weights_cache, "every_part": every_part}
    return DelegateMaker(arguments, lambda given: NativePartsDelegate(**given), _PROGRAM, quick=True)


def serve_native() -> None:
    """As serve() of interpreter_child.py, with a NativePartsDelegate."""

    def prepare() -> MakeDelegate:
        native_target()  # LLVM reserves memory
        return lambda given: NativePartsDelegate(**given)

    serve(prepare)


class NativePartsDelegate:
    """A delegate of one interpreter: see DelegateHandler and AppliedDelegate."""

    def __init__(
        self,
        threads: int | None = None,
        weights_cache: ModelSharing | None = None,
        every_part: bool = False,
        hybrid: Hybrid = "expanded",
        custom_ops: Iterable[CustomOp] = (),
        adapts: bool = False,
        order: OrderOf = unknown_order,
        judges_whole: bool = True,
        exact: bool = False,
    ) -> None:
        """`adapts`: the number of threads is the most, and one thread does what takes less time so.

        Without `judges_whole`, a model that runs here as a whole is not timed against TensorFlow Lite; with `exact` no
        part of 8-bit values is. Raises DeviceError without LLVM, UsageError for TEXELFLOW_CPU.
        """
        self._target = native_target()
        self._pool = WorkerPool(self._target, threads or default_threads(), adapts=adapts)
        self._threads, self._cache, self._every_part, self._hybrid = threads, weights_cache, every_part, hybrid
        self._judges_whole, self._exact = judges_whole, exact
        self._struct = NativeDelegate(self)
        self._custom_ops = by_name(custom_ops)
        self._order = order  # of subgraphs' inputs and outputs
        self._by_place: dict[int, NativeSubgraph | None] = {}  # by the context's address, in the file's order
        self._called: frozenset[int] | None = frozenset()  # subgraphs that control flow runs; None: perhaps all
        self._left_variables: frozenset[str] | None = None  # once a graph with variables is there
        self._states = NativeStates()  # variables, which all graphs share
        self._last_number = 0  # of a kernel, in whichever graph
        self.error: BaseException | None = None

    # What an interpreter asks for ---------------------------------------------------------------------------------

    def _get_native_delegate_pointer(self) -> int:
        caller = sys._getframe(1)
        check_runtimes(caller.f_globals.get("__name__"))
        self._order = order_in(model_in_frame(caller.f_locals))
        return self._struct.address

    @property
    def places(self) -> tuple[str, str]:
        return IN_NATIVE_CODE

    @property
    def subgraphs(self) -> tuple[NativeSubgraph, ...]:
        """Those that could be read and planned: of each signature, or the only one."""
        return tuple(each for each in self._by_place.values() if each is not None)

    @property
    def partitions(self) -> tuple[NativePart, ...]:
        return tuple(part for each in self.subgraphs for part in each.parts)

    @property
    def reasons(self) -> Mapping[int, str]:
        """Of the first graph."""
        first = next(iter(self._by_place.values()), None)
        return first.found.reasons if first else MappingProxyType({})

    @property
    def renderer(self) -> str:
        return f"{self._target.name} code on the CPU, {counted(self._pool.threads, 'thread')}"

    @property
    def buffer_bytes(self) -> int:
        return 0

    def states(self) -> StateValues:
        """What it keeps from run to run, by name; of further graphs what operators keep begins with "subgraph 1: "."""
        self._notice_resets()
        found = self._states.read()
        for prefix, states in self._own_states():
            found |= {prefix + name: values for name, values in states.read().items()}
        return found

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have it keep what states() gave. Raises UsageError for others than it has."""
        check_names(values, self.states())
        self._states.write(values)
        for prefix, states in self._own_states():
            own = {name[len(prefix) :]: each for name, each in values.items() if name.startswith(prefix)}
            states.write(own)

    def reset_states(self) -> None:
        """Have it keep what it did before the first run."""
        self._notice_resets()
        for states in (self._states, *(own for _, own in self._own_states())):
            states.reset()

    def _own_states(self) -> Iterator[tuple[str, NativeStates]]:
        """Of operators, with what stands in front of their names."""
        for each in self.subgraphs:
            for network in each.networks:
                yield f"subgraph {each.number}: " if each.number else "", network.own_states

    def _notice_resets(self) -> None:
        for place, subgraph in self._by_place.items():
            if subgraph is not None:
                subgraph.notice_resets(TfLiteContext.from_address(place))

    def release(self) -> None:
        """End its threads."""
        self._pool.close()

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Leaves a graph as it is if anything fails before operators are replaced, and those that operators run."""
        place = ctypes.addressof(context)
        if place not in self._by_place:
            self._by_place[place] = None
            try:
                self._by_place[place] = self._planned(context, len(self._by_place) - 1)
            except Exception as error:
                self.error = error
        subgraph = self._by_place[place]
        for nodes in (subgraph.nodes, subgraph.functions.nodes) if subgraph else ():
            if nodes:
                replace(nodes)

    def make_kernel(self, context: TfLiteContext, params: TfLiteDelegateParams) -> int:
        """For one of the groups that TensorFlow Lite has formed of the operators."""
        subgraph = self._by_place[ctypes.addressof(context)]
        if subgraph is None:
            raise UsageError(f"no operator of this graph is its own: {self.error}")
        self._last_number += 1
        subgraph.make_kernel(params, self._last_number)
        return self._last_number

    def free_kernel(self, number: int) -> None:
        for subgraph in self.subgraphs:
            subgraph.free_kernel(number)

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        self._owner(number).prepare_kernel(context, number)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        self._owner(number).run_kernel(context, number)

    def fetch(self, context: TfLiteContext, handle: int, tensor: TfLiteTensor) -> None:
        raise UsageError("it has no buffer handles")

    def failed(self, error: BaseException) -> None:
        self.error = error

    # ---------------------------------------------------------------------------------------------------------------

    def _owner(self, number: int) -> NativeSubgraph:
        """The graph that has a kernel. Raises UsageError for one that does not exist."""
        for subgraph in self.subgraphs:
            if subgraph.has_kernel(number):
                return subgraph
        raise UsageError(f"this operator could not be made: {self.error}")

    def _planned(self, context: TfLiteContext, number: int) -> NativeSubgraph | None:
        """One that is run by itself, loaded; None for others. Raises TexelflowError."""
        more = called_subgraphs(context)
        self._called = None if self._called is None or more is None else self._called | more
        if (number and (self._called is None or number in self._called)) or not execution_plan(context):
            return None
        model = self._model_in(context)
        graph = model.graph
        if self._left_variables is None and handles_of(graph):
            device = cpu_device(self._target)
            self._left_variables = left_variables(
                context,
                lambda inner: self._model_in(inner).graph,
                lambda each: not find_refusals(each, device).reasons,
            )
        left = left_operators(graph, self._left_variables or ())
        every_part = self._every_part or (self._exact and computes_bytes(graph))
        functions = FunctionKernels(graph, {**KNOWN_CUSTOM_OPS, **self._custom_ops})
        found = native_parts(
            graph, self._pool, self._threads, self._cache, every_part, self._times_of(graph), left, self._states
        )

        def load(part: Graph) -> NativeNetwork:
            return NativeNetwork.load(part, pool=self._pool, weights_cache=self._cache, states=self._states)

        subgraph = NativeSubgraph(number, model.data, found, functions, load)
        subgraph.check_groups(context)
        return subgraph

    def _times_of(self, graph: Graph) -> TimesOf:
        def times(part: Graph, network: NativeNetwork, threads: int | None, kept: Collection[int]) -> PartTimes:
            is_whole = len(part.nodes) == len(graph.nodes)
            return UNTIMED if is_whole and not self._judges_whole else kept_times(part, network, threads, kept)

        return times

    def _model_in(self, context: TfLiteContext) -> FoundModel:
        return find_model(context, hybrid=self._hybrid, order=self._order, custom_ops=self._custom_ops)
