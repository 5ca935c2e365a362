"""Runs a model by code of our own, whichever: tensors in RAM for callers, a network for each subgraph and size."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..base.arrays import as_array
from ..base.errors import TexelflowError, UnsupportedError
from ..delegate.bound_tensors import TensorBinding
from ..model.graph import Graph, Shape, Tensor
from ..reading.resizing import read_resized
from .call_errors import AllocationError, CallOrderError, CallTypeError, CallValueError
from .file_details import Details
from .input_sizes import InputSizes
from .model_source import ModelSource
from .run_way import AnyTensor, InterpreterReport

_KEPT_SIZES = 4  # networks of one subgraph that are kept for sizes that come again
_KEEPS_ALL = "Interpreter(..., experimental_preserve_all_tensors=True) keeps all"


class OwnNetwork(Protocol):
    """One graph, compiled. Tensors are inputs and outputs, of exactly their type and shape."""

    def write(self, index: int, values: AnyTensor) -> None: ...
    def read(self, index: int, out: AnyTensor | None = None) -> AnyTensor:
        """A copy, or `out`, which has it then."""

    def view(self, index: int) -> AnyTensor | None:
        """The tensor's own memory, if it is in the order of the array; None where it lies otherwise."""

    def bind(self, binding: TensorBinding) -> None:
        """Have runs read or write a tensor in OpenGL. Raises UsageError."""

    def unbind(self, index: int | None) -> None:
        """Have a tensor in RAM again, or all."""

    def run(self) -> None:
        """Raises InferenceError."""

    def reset(self) -> None:
        """What operators keep is what it was before the first run."""

    def close(self) -> None: ...


class NetworkMaker(Protocol):
    """What makes networks of one model."""

    survives_fork: bool  # whether these work in a process that was forked from this one

    def make(self, graph: Graph) -> OwnNetwork:
        """Raises UnsupportedError, DeviceError."""

    def report(self, operators: int) -> InterpreterReport: ...
    def close(self) -> None:
        """Free what networks share, behind them."""


@dataclass
class _Ready:
    """A subgraph for inputs of one size."""

    graph: Graph
    network: OwnNetwork
    run: Callable[[], None]
    inputs: Mapping[int, tuple[np.dtype[Any], Shape]]
    outputs: frozenset[int]
    kept: dict[int, AnyTensor] = field(default_factory=dict)  # arrays that callers have, alike with tensors at each run


class OwnWay:
    """See RunWay."""

    def __init__(self, source: ModelSource, sizes: InputSizes, maker: NetworkMaker) -> None:
        """Raises UnsupportedError where a subgraph does not run wholly so, DeviceError."""
        self._source, self._sizes, self._maker = source, sizes, maker
        self._ready: dict[int, _Ready] = {}
        self._graphs: dict[int, Graph] = {}  # of the last allocations, whose shapes are told until the next ones
        self._made: dict[tuple[object, ...], _Ready] = {}
        try:
            for subgraph in source.entries:
                self._ready[subgraph] = self._at_size(subgraph)
                self._graphs[subgraph] = self._ready[subgraph].graph
        except BaseException:
            self.close()
            raise

    @property
    def survives_fork(self) -> bool:
        """See RunWay."""
        return self._maker.survives_fork

    @property
    def report(self) -> InterpreterReport:
        """See RunWay."""
        return self._maker.report(len(self._source.graph(0).nodes))

    def resize(self, subgraph: int, index: int, size: Sequence[int], strict: bool) -> None:
        """See RunWay."""
        if self._sizes.resize(subgraph, index, size, strict):
            before = self._ready.pop(subgraph, None)
            if before is not None:
                before.network.unbind(None)

    def allocate(self, subgraph: int) -> None:
        """See RunWay."""
        before = self._ready.get(subgraph)
        try:
            now = self._at_size(subgraph)
        except UnsupportedError as error:
            raise AllocationError(str(error)) from None
        if now is not before:
            now.kept.clear()
            now.network.reset()
            self._ready[subgraph], self._graphs[subgraph] = now, now.graph

    def set(self, subgraph: int, index: int, value: Any) -> None:
        """See RunWay."""
        ready = self._ready_at(subgraph)
        wanted = ready.inputs.get(index)
        if wanted is None:
            raise self._no_input(ready, subgraph, index)
        if not isinstance(value, np.ndarray):
            value = as_array(value, ready.graph.tensors[index].name)
        if value.dtype != wanted[0] or value.shape != wanted[1]:
            value = self._fitting(ready, index, value)
        if ready.kept and index in ready.kept:
            ready.kept[index][...] = value
        else:
            ready.network.write(index, value)

    def get(self, subgraph: int, index: int, out: AnyTensor | None = None) -> AnyTensor:
        """See RunWay."""
        ready = self._ready_at(subgraph)
        if ready.kept and index in ready.kept:
            return copied(ready.kept[index], out)
        if index in ready.outputs or index in ready.inputs:
            return ready.network.read(index, out)
        return copied(self._constant(ready, subgraph, index), out)

    def view(self, subgraph: int, index: int) -> AnyTensor:
        """See RunWay."""
        ready = self._ready_at(subgraph)
        if index in ready.kept:
            return ready.kept[index]
        if index not in ready.outputs and index not in ready.inputs:
            return self._constant(ready, subgraph, index)
        own = ready.network.view(index)
        if own is not None:
            return own
        ready.kept[index] = ready.network.read(index)
        return ready.kept[index]

    def bind(self, subgraph: int, binding: TensorBinding) -> None:
        """See RunWay."""
        self._ready_at(subgraph).network.bind(binding)

    def unbind(self, subgraph: int, index: int) -> None:
        """See RunWay."""
        if subgraph in self._ready:
            self._ready[subgraph].network.unbind(index)

    def invoke(self, subgraph: int) -> None:
        """See RunWay."""
        ready = self._ready.get(subgraph)
        if ready is None:
            raise CallOrderError("Invoke called on model that is not ready: call allocate_tensors() first")
        if not ready.kept:
            ready.run()
            return
        for index in ready.kept.keys() & ready.inputs.keys():
            ready.network.write(index, ready.kept[index])
        ready.run()
        for index in ready.kept.keys() - ready.inputs.keys():
            ready.kept[index][...] = ready.network.read(index)

    def reset_variables(self) -> None:
        """See RunWay."""
        for ready in self._ready.values():
            ready.network.reset()

    def shape(self, subgraph: int, index: int) -> Shape:
        """See RunWay."""
        graph = self._graphs.get(subgraph)
        if graph is None or index in graph.inputs or index not in graph.tensors:
            return self._sizes.shape(subgraph, index)
        return graph.tensors[index].shape

    def tensor_details(self, subgraph: int, index: int) -> Details | None:
        """See RunWay."""
        return None

    def operators(self, subgraph: int) -> Sequence[Details] | None:
        """See RunWay."""
        return None

    def close(self) -> None:
        """See RunWay."""
        for ready in self._made.values():
            ready.network.close()
        self._made.clear()
        self._ready.clear()
        self._maker.close()

    def _at_size(self, subgraph: int) -> _Ready:
        """What is there for the sizes of now, or is made for them."""
        resized = self._sizes.resized(subgraph)
        key = subgraph, *sorted(resized.items())
        if key in self._made:
            return self._made[key]
        graph = self._source.graph(subgraph)
        if resized:
            graph = read_resized(self._source.data, graph, resized)
        network = self._maker.make(graph)
        tensors = {index: graph.tensors[index] for index in graph.inputs}
        inputs = {index: (np.dtype(tensor.dtype), tensor.shape) for index, tensor in tensors.items()}
        while len(same := [each for each in self._made if each[0] == subgraph]) >= _KEPT_SIZES:
            self._made.pop(same[0]).network.close()
        ready = self._made[key] = _Ready(graph, network, network.run, inputs, frozenset(graph.outputs))
        return ready

    def _ready_at(self, subgraph: int) -> _Ready:
        ready = self._ready.get(subgraph)
        if ready is None:
            raise CallValueError("Tensor is unallocated: call allocate_tensors() first")
        return ready

    def _constant(self, ready: _Ready, subgraph: int, index: object) -> AnyTensor:
        """A copy of what the file has. Raises CallValueError for all else."""
        tensor = self._known(ready, subgraph, index)
        if tensor is None or tensor.data is None:
            name = self._source.details(subgraph).name(index) if isinstance(index, int) else ""
            raise CallValueError(f"tensor {index} ({name}) is neither input, output nor constant; {_KEEPS_ALL}")
        return tensor.data.copy()

    def _no_input(self, ready: _Ready, subgraph: int, index: object) -> TexelflowError:
        tensor = self._known(ready, subgraph, index)
        what = "a constant" if tensor is not None and tensor.is_constant else "no input"
        named = ", ".join(f"{each} ({ready.graph.tensors[each].name})" for each in ready.inputs)
        return CallValueError(f"Cannot set tensor: tensor {index} is {what}; inputs are {named}")

    def _known(self, ready: _Ready, subgraph: int, index: object) -> Tensor | None:
        """A tensor of the graph; None for one that no operator has. Raises CallTypeError, CallValueError."""
        check_index(index, self._source.details(subgraph).tensor_count)
        return ready.graph.tensors.get(index)  # type: ignore[call-overload, no-any-return]

    def _fitting(self, ready: _Ready, index: int, value: AnyTensor) -> AnyTensor:
        """The value, if it is of the type in another order of bytes. Raises CallValueError for others."""
        dtype, shape = ready.inputs[index]
        name = ready.graph.tensors[index].name
        if value.dtype.newbyteorder("=") != dtype:
            raise CallValueError(
                f"Cannot set tensor: Got value of type {value.dtype.name.upper()} but expected type "
                f"{dtype.name.upper()} for input {index}, name: {name}; convert it with .astype(numpy.{dtype.name})"
            )
        if value.shape != shape:
            raise CallValueError(
                f"Cannot set tensor: Dimension mismatch. Got {list(value.shape)} but expected {list(shape)} for input "
                f"{index}, name: {name}; resize_tensor_input({index}, {list(value.shape)}) and allocate_tensors() "
                "change it"
            )
        return value.astype(dtype)


def check_index(index: object, count: int) -> None:
    """Raise CallTypeError or CallValueError for what is no number of a tensor."""
    if not isinstance(index, int | np.integer):
        raise CallTypeError(f"a tensor's index is a whole number, not {type(index).__name__}; see get_input_details()")
    if not 0 <= index < count:
        raise CallValueError(f"Invalid tensor index {index} exceeds max tensor index {count - 1}")


def copied(values: AnyTensor, out: AnyTensor | None) -> AnyTensor:
    """The same values in `out`, or in an array of its own."""
    if out is None:
        return np.array(values, order="C")
    np.copyto(out, values)
    return out
