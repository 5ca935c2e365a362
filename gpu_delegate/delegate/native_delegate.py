"""Runs parts of a model in the CPU's own code, as operators of a TensorFlow Lite interpreter that runs the rest.

It is for interpreters that the engine makes itself (Reference): their models keep their shapes and constants.
"""

import ctypes
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from ..base.errors import TexelflowError, UnsupportedError, UsageError
from ..base.wording import counted
from ..cpu.delegation import IN_NATIVE_CODE, DelegateMaker
from ..cpu.interpreter_child import MakeDelegate, serve
from ..custom.custom_op import CustomOp, by_name
from ..custom.known import KNOWN_CUSTOM_OPS
from ..model.graph import Graph, Hybrid
from ..model.partition import Partition
from ..programs.weights_cache import WeightsCache
from ..targets.llvm.compiler import native_target
from ..targets.llvm.native_runtime import NativeNetwork
from ..targets.llvm.pool import WorkerPool, default_threads
from .callbacks import NativeDelegate, Replace
from .function_kernel import FunctionKernels
from .model_finder import find_model
from .native_operators import groups_of
from .native_parts import NativeParts, native_parts
from .native_tensors import array_at, memory_of, reshape, shape_at, tensor_at
from .runtime_check import check_runtimes
from .selection import kept_by_partitions
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor, integers_at
from .variable_marks import variables_reset

_PROGRAM = f"from {__name__} import serve_native; serve_native()"
_CONSTANTS = 1  # the number of each operator whose values readers compute; those of partitions follow
_FUNCTIONS = 1 << 32  # the first number of kernels of functions, of which each has another one


def native_delegate(
    threads: int | None = None, weights_cache: WeightsCache | None = None, every_part: bool = False
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


@dataclass(frozen=True)
class _Part:
    """A partition with its network, and which of its tensors are not in TensorFlow Lite's memory."""

    partition: Partition
    network: NativeNetwork
    reads: tuple[int, ...]  # inputs whose values are read, from that memory
    writes: tuple[int, ...]  # outputs, likewise
    gives: Mapping[int, Sequence[NativeNetwork]]  # outputs that other partitions alone read, and theirs
    dispatches: int = 0  # on the GPU

    @property
    def nodes(self) -> tuple[int, ...]:
        """Its operators, by their numbers in the file."""
        return self.partition.nodes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one run."""
        return self.network.work.macs


class NativePartsDelegate:
    """A delegate of one interpreter: see DelegateHandler and AppliedDelegate."""

    def __init__(
        self,
        threads: int | None = None,
        weights_cache: WeightsCache | None = None,
        every_part: bool = False,
        hybrid: Hybrid = "expanded",
        custom_ops: Iterable[CustomOp] = (),
    ) -> None:
        """Raises DeviceError without LLVM, UsageError for TEXELFLOW_CPU."""
        self._target = native_target()
        self._pool = WorkerPool(self._target, threads or default_threads())
        self._threads, self._cache, self._every_part, self._hybrid = threads, weights_cache, every_part, hybrid
        self._struct = NativeDelegate(self)
        self._place = 0  # of the first graph's context: others are left alone
        self._custom_ops = by_name(custom_ops)
        self._found: NativeParts | None = None
        self._functions: FunctionKernels | None = None
        self._last_number = 0  # of a kernel of functions, from the first
        self._parts: tuple[_Part, ...] = ()
        self._arrays: dict[int, tuple[int, npt.NDArray[Any]]] = {}  # by tensor: an address, and the array there
        self.error: BaseException | None = None

    # What an interpreter asks for ---------------------------------------------------------------------------------

    def _get_native_delegate_pointer(self) -> int:
        check_runtimes(sys._getframe(1).f_globals.get("__name__"))
        return self._struct.address

    @property
    def places(self) -> tuple[str, str]:
        return IN_NATIVE_CODE

    @property
    def partitions(self) -> tuple[_Part, ...]:
        return self._parts

    @property
    def reasons(self) -> Mapping[int, str]:
        return self._found.reasons if self._found else MappingProxyType({})

    @property
    def renderer(self) -> str:
        return f"{self._target.name} code on the CPU, {counted(self._pool.threads, 'thread')}"

    @property
    def buffer_bytes(self) -> int:
        return 0

    def release(self) -> None:
        """End its threads."""
        self._pool.close()

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Leaves the graph as it is if anything fails before operators are replaced."""
        self._place = self._place or ctypes.addressof(context)
        if self._place != ctypes.addressof(context):
            return
        if self._found is None:
            try:
                self._plan(context)
            except TexelflowError as error:
                self.error = error
                return
        if nodes := _nodes_of(self._parts):
            replace(nodes)
        if self._functions and self._functions.nodes:
            replace(self._functions.nodes)

    def make_kernel(self, context: TfLiteContext, params: TfLiteDelegateParams) -> int:
        """For one of the groups that TensorFlow Lite has formed of the operators."""
        if self._functions and self._functions.make(params, self._last_number + _FUNCTIONS):
            self._last_number += 1
            return self._last_number - 1 + _FUNCTIONS
        return self._number_of(integers_at(params.nodes_to_replace))

    def free_kernel(self, number: int) -> None:
        """Networks go with the delegate."""
        if self._functions:
            self._functions.free(number)

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        """Raises UnsupportedError for other shapes than the file's."""
        if number == _CONSTANTS:
            return
        if self._functions and number >= _FUNCTIONS:
            self._functions.kernel(number).prepare(context)
            return
        part = self._part(number)
        tensors = part.network.image.tensors
        for index in part.partition.inputs:
            if (found := shape_at(context, index)) != self._graph.tensors[index].shape:
                said = list(self._graph.tensors[index].shape)
                raise UnsupportedError(f"tensor {index} has the shape {list(found)} when it runs, not {said}")
        for index in part.partition.outputs:
            reshape(context, index, tensors[index].own.shape)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        if number == _CONSTANTS:
            return
        if self._functions and number >= _FUNCTIONS:
            self._functions.kernel(number).run(context)
            return
        part = self._part(number)
        network = part.network
        if reset := variables_reset(context, network.image.states):
            network.reset_states(reset)
        for index in part.reads:
            network.write(index, self._array(context, index), may_round=True)
        with network.turn():
            network.compute()
            for index in part.writes:
                network.read_into(index, self._array(context, index))
            for index, readers in part.gives.items():
                for reader in readers:
                    reader.take(index, network)

    def fetch(self, context: TfLiteContext, handle: int, tensor: TfLiteTensor) -> None:
        raise UsageError("it has no buffer handles")

    def failed(self, error: BaseException) -> None:
        self.error = error

    # ---------------------------------------------------------------------------------------------------------------

    @property
    def _graph(self) -> Graph:
        assert self._found is not None, "it has been planned"
        return self._found.graph

    def _plan(self, context: TfLiteContext) -> None:
        """Decide and load everything. Raises TexelflowError."""
        graph = find_model(context, hybrid=self._hybrid, custom_ops=self._custom_ops).graph
        self._functions = FunctionKernels(graph, {**KNOWN_CUSTOM_OPS, **self._custom_ops})
        found = native_parts(graph, self._pool, self._threads, self._cache, self._every_part)
        kept = kept_by_partitions(found.graph, found.partitions)
        pairs = [*zip(found.partitions, found.compiled, strict=True)]
        uploads = [_uploads(found.graph, partition) for partition in found.partitions]
        parts = [
            _Part(
                partition,
                network,
                tuple(index for index in own if index not in kept),
                tuple(index for index in partition.outputs if index not in kept),
                {
                    index: [other for (_, other), theirs in zip(pairs, uploads, strict=True) if index in theirs]
                    for index in partition.outputs
                    if index in kept
                },
            )
            for (partition, network), own in zip(pairs, uploads, strict=True)
        ]
        self._found, self._parts = found, tuple(parts)
        nodes = _nodes_of(self._parts)
        for group in groups_of(context, nodes) if nodes else ():
            self._number_of(group)

    def _number_of(self, nodes: tuple[int, ...]) -> int:
        """That of the operator for a group. Raises UnsupportedError for one that has not been planned."""
        constants = {number for part in self._parts for number in part.partition.constants}
        computed = {*nodes} - constants
        if not computed:
            return _CONSTANTS
        for number, part in enumerate(self._parts, _CONSTANTS + 1):
            if computed == {*part.partition.computed}:
                return number
        raise UnsupportedError(f"TensorFlow Lite groups operators in another way: {sorted(nodes)[:8]}")

    def _part(self, number: int) -> _Part:
        return self._parts[number - _CONSTANTS - 1]

    def _array(self, context: TfLiteContext, index: int) -> npt.NDArray[Any]:
        """TensorFlow Lite's memory of a tensor, as an array that shares it, made once for each place."""
        address, size_bytes = memory_of(tensor_at(context, index), self._graph.tensors[index])
        known = self._arrays.get(index)
        if known is None or known[0] != address:
            known = self._arrays[index] = address, array_at(address, size_bytes, self._graph.tensors[index])
        return known[1]


def _uploads(graph: Graph, partition: Partition) -> tuple[int, ...]:
    """The inputs that a partition's network reads."""
    read = {index for number in partition.computed for index in graph.nodes[number].inputs}
    return tuple(index for index in partition.inputs if index in read)


def _nodes_of(parts: Sequence[_Part]) -> tuple[int, ...]:
    """All operators of some partitions, ascending."""
    return tuple(sorted(number for part in parts for number in part.nodes))
