"""The pass that makes what operators keep from run to run inputs and outputs, so that all passes behind it see values.

A variable is an input at first. READ_VARIABLE is whatever was assigned to it last; what it is at the end of a run is an
output, which takes the place of the input before the next one (Graph.states). An operator that keeps a tensor itself
(an LSTM's activations) gets that as a further output.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..base.errors import UnsupportedError
from ..model.graph import ABSENT, Graph, KeptState, Node, Opaque, Tensor, VarHandle
from ..model.operators import attributes_of
from ..model.rewrite import Outcome
from ..ops.variables import ASSIGN, CALL_ONCE, READ, VARIABLE_OPS


def keeps_state(graph: Graph, node: Node) -> bool:
    """Whether a node reads or writes what is kept from run to run."""
    return node.op in VARIABLE_OPS or any(index != ABSENT and graph.tensors[index].is_variable for index in node.inputs)


def keeps_states(graph: Graph) -> bool:
    """Whether any of its nodes does, or outputs are fed back."""
    return bool(graph.states) or any(keeps_state(graph, node) for node in graph.nodes)


def state_groups(graph: Graph) -> Mapping[str, frozenset[int]]:
    """The nodes that have to be in one program, by the name of what they keep; by their positions in the graph."""
    handles, found = _names(graph), dict[str, set[int]]()
    for number, node in enumerate(graph.nodes):
        for name in _kept_by(graph, node, handles):
            found.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in found.items()}


def handles_of(graph: Graph) -> Mapping[str, VarHandle]:
    """What is said of each variable, by its name."""
    return {node.attributes.name: node.attributes for node in graph.nodes if isinstance(node.attributes, VarHandle)}


def variable_kinds(graph: Graph) -> Mapping[str, Tensor]:
    """A tensor of the kind that each variable is, by its name."""
    handles, found = _names(graph), dict[str, Tensor]()
    for name, tensor in _accesses(graph, handles):
        found.setdefault(name, replace(tensor, data=None))
    return found


def state_faults(graph: Graph) -> Mapping[str, str]:
    """Why variables cannot be values here, by their names: kinds of values differ, or sizes are not known."""
    handles, found, seen = _names(graph), dict[str, str](), dict[str, tuple[object, ...]]()
    kept = {state_name(tensor) for tensor in graph.tensors.values() if tensor.is_variable}
    found |= {each: f"{each} is a variable, and what an operator keeps" for each in kept.intersection(handles.values())}
    for name, tensor in _accesses(graph, handles):
        if tensor.unusable:
            found[name] = tensor.unusable
        said = (tensor.shape, tensor.dtype, tensor.quantization)
        if seen.setdefault(name, said) != said:
            found[name] = f"{name}, a variable, is {seen[name][1]} {list(tensor.shape)} here, and elsewhere another"
    kinds = variable_kinds(graph)
    for node in graph.nodes:
        if isinstance(node.attributes, VarHandle) and (kind := kinds.get(node.attributes.name)):
            own, initial = node.attributes.name, node.attributes.initial
            if initial and not kind.unusable and len(initial) != math.prod(kind.shape) * np.dtype(kind.dtype).itemsize:
                found[own] = f"{own}, a variable, begins with {len(initial)} bytes for {kind.dtype} {list(kind.shape)}"
    return found


def _accesses(graph: Graph, handles: Mapping[int, str]) -> Iterator[tuple[str, Tensor]]:
    """The name of each variable that is read or assigned, and what it is then; by operators that a rule has read."""
    for node in graph.nodes:
        if node.op in (READ, ASSIGN) and not isinstance(node.attributes, Opaque) and node.inputs[0] in handles:
            yield handles[node.inputs[0]], graph.tensors[(*node.outputs, *node.inputs[1:])[0]]


def express_states(graph: Graph) -> tuple[Graph, Outcome]:
    """Variables, and what operators keep -> inputs, and outputs that take their places before the next run."""
    if not any(keeps_state(graph, node) for node in graph.nodes):
        return graph, Outcome(0)
    if faults := state_faults(graph):
        raise UnsupportedError(f"{graph.name}: {next(iter(faults.values()))}")
    states = _States(graph)
    for node in graph.nodes:
        states.add(node)
    return states.finish()


def _names(graph: Graph) -> dict[int, str]:
    """Of variables, by the tensors of their handles."""
    return {node.outputs[0]: node.attributes.name for node in graph.nodes if isinstance(node.attributes, VarHandle)}


def _kept_by(graph: Graph, node: Node, handles: Mapping[int, str]) -> Iterator[str]:
    for index in (*node.inputs[:1], *node.outputs) if node.op in VARIABLE_OPS else ():
        if index in handles:
            yield handles[index]
    for index in node.inputs:
        if index != ABSENT and graph.tensors[index].is_variable:
            yield state_name(graph.tensors[index])


def state_name(tensor: Tensor) -> str:
    """What a tensor is called that an operator keeps: a file may give one name to several."""
    return f"{tensor.name}:{tensor.index}" if tensor.name else f"tensor {tensor.index}"


class _States:
    """The nodes of a graph in order, with values in the place of variables."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._nodes, self._tensors = graph, list[Node](), dict[int, Tensor]()
        self._next = max(graph.dropped_below, 1 + max(graph.tensors, default=-1))
        self._names, self._initial = _names(graph), dict[str, bytes]()
        self._renamed = dict[int, int]()
        self._now = dict[str, int]()  # the value of each variable
        self._first = dict[str, int]()  # the one that it began with, where that is read
        self._own = dict[str, Tensor]()
        self._applied = 0

    def add(self, node: Node) -> None:
        inputs = tuple(self._renamed.get(index, index) for index in node.inputs)
        if isinstance(node.attributes, VarHandle):
            self._initial[node.attributes.name] = attributes_of(node, VarHandle).initial
        elif node.op == READ:
            self._read(self._names[node.inputs[0]], node)
        elif node.op == ASSIGN:
            name = self._names[node.inputs[0]]
            self._own.setdefault(name, self._graph.tensors[node.inputs[1]])
            self._now[name] = inputs[1]
        elif node.op != CALL_ONCE:
            given = (self._graph.tensors[index] for index in node.inputs if index != ABSENT)
            self._nodes.append(self._with_outputs(node, inputs, [each for each in given if each.is_variable]))
            return
        self._applied += 1

    def finish(self) -> tuple[Graph, Outcome]:
        """The graph with states, behind those that it had."""
        graph, taken = self._graph, {*self._graph.inputs, *self._graph.outputs, *self._first.values()}
        states = list[KeptState]()
        for name in self._now.keys() & {state.name for state in graph.states}:
            raise UnsupportedError(f"{graph.name}: {name} is an input that is fed back, and what is kept by itself")
        for name, now in self._now.items():
            read = self._first.get(name, ABSENT)
            written = ABSENT
            if now != read:
                written = self._copied(name, now) if now in taken or self._tensor(now).is_constant else now
                taken.add(written)
            states.append(KeptState(self._with_initial(name), read, written, not self._own[name].is_variable))
        self._tensors |= {
            read: replace(self._tensor(read), is_variable=False, data=None) for read in self._first.values()
        }
        found = replace(
            graph,
            inputs=(*graph.inputs, *(state.read for state in states if state.read != ABSENT)),
            outputs=(*graph.outputs, *(state.written for state in states if state.written != ABSENT)),
            states=(*graph.states, *states),
        ).with_changes(tuple(self._nodes), self._tensors)
        return found, Outcome(self._applied)

    def _read(self, name: str, node: Node) -> None:
        """The value that it has now; the first of all that are read is an input."""
        (out,) = node.outputs
        if name not in self._now:
            first = out if out not in self._graph.outputs else self._like(self._graph.tensors[out], "before")
            self._now[name] = self._first[name] = first
            self._own[name] = self._graph.tensors[out]
        now = self._now[name]
        if out in self._graph.outputs:
            self._nodes.append(Node("RESHAPE", (now,), (out,), index=node.index))
        elif out != now:
            self._renamed[out] = now

    def _with_outputs(self, node: Node, inputs: tuple[int, ...], kept: list[Tensor]) -> Node:
        """The node with what it keeps as further outputs, in the order of its inputs."""
        outputs = list(node.outputs)
        for tensor in kept:
            name = state_name(tensor)
            self._first.setdefault(name, tensor.index)
            self._own.setdefault(name, tensor)
            self._now[name] = self._like(tensor, "after")
            self._renamed[tensor.index] = self._now[name]
            outputs.append(self._now[name])
            self._applied += 1
        return replace(node, inputs=inputs, outputs=tuple(outputs))

    def _copied(self, name: str, now: int) -> int:
        """The same value in a tensor of its own, since an output takes the place of one state alone."""
        copy = self._like(self._own[name], "after")
        self._nodes.append(Node("RESHAPE", (now,), (copy,)))
        return copy

    def _like(self, tensor: Tensor, when: str) -> int:
        """A new tensor of the same kind."""
        number, self._next = self._next, self._next + 1
        self._tensors[number] = replace(
            tensor, index=number, name=f"{tensor.name}:{when}", data=None, is_variable=False
        )
        return number

    def _tensor(self, number: int) -> Tensor:
        return self._tensors.get(number) or self._graph.tensors[number]

    def _with_initial(self, name: str) -> Tensor:
        """As in the file, with what it holds at first."""
        own, said = replace(self._own[name], name=name), self._initial.get(name, b"")
        if own.is_variable and own.quantization and own.dtype == "int8":  # as TensorFlow Lite resets it
            return replace(own, data=np.full(own.shape, own.quantization.zero_points[0], np.int8), is_variable=False)
        if not said:
            return replace(own, data=None, is_variable=False)
        return replace(own, data=np.frombuffer(said, own.dtype).reshape(own.shape), is_variable=False)
