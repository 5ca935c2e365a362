"""Reads the subgraphs that operators run, for the shapes and constants that they are given there.

Bounded: how deep they lie in each other, and how many nodes there are if each is put where it is run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import tflite

from ..base.errors import ModelError, ModelSizeError, UnsupportedError
from ..model.graph import ABSENT, CalledBody, Node, Opaque, Tensor, constant_location
from ..ops.called import COMPOSITE, LOOP
from ..ops.left_to_cpu import RUNS_SUBGRAPHS
from .file_tensors import FileTensors, Taken
from .model_file import MAX_OPERATORS, MAX_TENSORS, ModelFile

CONSTANTS_FROM = MAX_TENSORS  # numbers of bodies' constants in the graph that runs these
MAX_DEPTH = 16
MOST_TRIED = 4 * MAX_OPERATORS
MOST_TURNS, MOST_LOOP_NODES = 64, 1 << 10  # of a loop that is written out
_OPTIONS = MappingProxyType(
    {
        COMPOSITE: ("StableHLOCompositeOptions", ("DecompositionSubgraphIndex",)),
        "CALL": ("CallOptions", ("Subgraph",)),
        LOOP: ("WhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
    }
)


class SubgraphReader(Protocol):
    """GraphReader."""

    file: ModelFile
    tensors: FileTensors

    def indices(self, table: Any, field: str) -> tuple[int, ...]: ...

    def node(self, index: int) -> Node: ...

    def disorder(self, inputs: tuple[int, ...], outputs: tuple[int, ...], nodes: tuple[Node, ...]) -> str: ...

    def known(self, index: int) -> Tensor: ...


@dataclass(frozen=True)
class ReadBody:
    """What a subgraph computes, and the constants that it reads besides its inputs."""

    body: CalledBody
    constants: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    count: int  # of nodes, those of bodies within included


class _Unrolled:
    """The turns of a loop, each a node that runs the loop's body on what the one before gives."""

    def __init__(self, given: tuple[Tensor, ...]) -> None:
        self.turns, self.count, self._next = 0, 0, 0
        self._nodes, self._tensors, self._constants = list[Node](), list[Tensor](), list[Tensor]()
        self.state = given
        self._inputs = self._numbers = self._new(given)

    def add(self, turn: ReadBody) -> None:
        """Another turn. Raises ModelError for one that gives something else than it takes."""
        if len(turn.outputs) != len(self.state):
            raise ModelError(f"a loop of {len(self.state)} values gives {len(turn.outputs)}")
        for before, after in zip(self.state, turn.outputs, strict=True):
            check_alike(before, after)
        constants, outputs = self._new(turn.constants), self._new(turn.outputs)
        self._constants += (replace(t, index=i) for t, i in zip(turn.constants, constants, strict=True))
        self._nodes.append(Node("CALL", (*self._numbers, *constants), outputs, turn.body, self.turns))
        self._numbers, self.state = outputs, turn.outputs
        self.turns, self.count = self.turns + 1, self.count + turn.count

    def found(self) -> ReadBody:
        """All turns as one body."""
        inputs = (*self._inputs, *(tensor.index for tensor in self._constants))
        body = CalledBody(tuple(self._nodes), tuple(self._tensors), inputs, self._numbers)
        return ReadBody(body, tuple(self._constants), self.state, self.count)

    def _new(self, tensors: tuple[Tensor, ...]) -> tuple[int, ...]:
        """Numbers for some tensors."""
        numbers = tuple(range(self._next, self._next + len(tensors)))
        self._next += len(tensors)
        self._tensors += (replace(t, index=i, data=None) for t, i in zip(tensors, numbers, strict=True))
        return numbers


class Bodies:
    """Those of one file, for all readers of its subgraphs."""

    def __init__(self) -> None:
        self.taken = Taken()
        self._read: dict[object, ReadBody | ModelError | UnsupportedError] = {}
        self._tried = 0  # operators that have been read
        self._running: dict[int, int] = {}  # subgraphs, each run by the one before, and the nodes found within
        self._count = 0  # of nodes, of bodies that are in no other

    def read(self, number: int, given: tuple[Tensor, ...], reader_of: Callable[[int], SubgraphReader]) -> ReadBody:
        """A subgraph on some inputs. Raises UnsupportedError, ModelError."""
        if number in self._running:
            raise ModelError(f"subgraph {number} runs itself")
        if len(self._running) == MAX_DEPTH:
            raise UnsupportedError(f"more than {MAX_DEPTH} subgraphs that run each other")
        key = number, tuple(map(_seen, given))
        if key not in self._read:
            self._read[key] = self._tried_body(number, given, reader_of)
        found = self._read[key]
        if not isinstance(found, ReadBody):
            raise found
        if self._running:
            self._running[next(reversed(self._running))] += found.count
        else:
            self._count += found.count
        if max(self._count, found.count, *self._running.values()) > MAX_OPERATORS:
            raise UnsupportedError(f"more than {MAX_OPERATORS} operators in the place of those that run subgraphs")
        return found

    def unroll(
        self, condition: int, body: int, given: tuple[Tensor, ...], reader_of: Callable[[int], SubgraphReader]
    ) -> ReadBody:
        """A loop that ends after as many turns whatever is computed, as one turn after the other.

        Raises UnsupportedError for any other, and for a long one, ModelError.
        """
        unrolled = _Unrolled(given)
        while self._goes_on(condition, unrolled.state, reader_of):
            turn = self.read(body, unrolled.state, reader_of)
            unrolled.add(turn)
            if unrolled.turns > MOST_TURNS or unrolled.count > MOST_LOOP_NODES:
                raise UnsupportedError(f"{RUNS_SUBGRAPHS}, more than {MOST_TURNS} times or {MOST_LOOP_NODES} operators")
        return unrolled.found()

    def _goes_on(self, condition: int, state: tuple[Tensor, ...], reader_of: Callable[[int], SubgraphReader]) -> bool:
        outputs = self.read(condition, state, reader_of).outputs
        if len(outputs) != 1 or outputs[0].data is None or outputs[0].data.size != 1:
            raise UnsupportedError(f"{RUNS_SUBGRAPHS}, as often as values say that it computes")
        return bool(outputs[0].data.reshape(())[()])

    def _tried_body(
        self, number: int, given: tuple[Tensor, ...], reader_of: Callable[[int], SubgraphReader]
    ) -> ReadBody | ModelError | UnsupportedError:
        """A body, or why it is none."""
        self._running[number] = 0
        try:
            reader = reader_of(number)
            self._tried += reader.file.operator_count
            if self._tried > MOST_TRIED:
                raise UnsupportedError(f"more than {MOST_TRIED} operators in subgraphs that operators run")
            read = _read_body(reader, given)
        except ModelSizeError:
            raise
        except (ModelError, UnsupportedError) as error:
            return error
        finally:
            within = self._running.pop(number)
        return replace(read, count=read.count + within)


def called_subgraphs_of(op: str, table: Any) -> tuple[int, ...]:
    """The numbers of the subgraphs that an operator of CALLED runs; a loop's condition first. Raises ModelError."""
    name, fields = _OPTIONS[op]
    newer = hasattr(tflite.BuiltinOptions2, name)
    kind = getattr(tflite.BuiltinOptions2 if newer else tflite.BuiltinOptions, name)
    found = table.BuiltinOptions2Type() if newer else table.BuiltinOptionsType()
    union = table.BuiltinOptions2() if newer else table.BuiltinOptions()
    if union is None or kind != found:
        raise ModelError("it does not say which subgraph it runs")
    options = getattr(tflite, name)()
    options.Init(union.Bytes, union.Pos)
    return tuple(int(getattr(options, field)()) for field in fields)


def check_alike(outer: Tensor, inner: Tensor) -> None:
    """UnsupportedError unless values of one tensor mean the same in another, whatever their shapes."""
    said = [(each.dtype, None if each.dtype.startswith("float") else each.quantization) for each in (outer, inner)]
    if said[0] != said[1]:
        raise UnsupportedError(f"tensor {outer.index} is another type in the subgraph that it is handed to or from")


def _seen(tensor: Tensor) -> object:
    """What counts of a tensor that is handed to a body."""
    place = None if tensor.data is None else constant_location(tensor.data)
    return tensor.shape, tensor.dtype, tensor.quantization, place


def _read_body(reader: SubgraphReader, given: tuple[Tensor, ...]) -> ReadBody:
    file, tensors = reader.file, reader.tensors
    inputs, outputs = reader.indices(file.subgraph, "Inputs"), reader.indices(file.subgraph, "Outputs")
    where = f"of subgraph {file.number}"
    if len(inputs) != len(given) or len({*inputs}) != len(inputs) or ABSENT in (*inputs, *outputs):
        raise ModelError(f"{len(given)} inputs for {len(inputs)} {where}")
    for index, tensor in zip(inputs, given, strict=True):
        own = tensors[index]
        if own.is_constant or own.is_variable or tensor.unusable:
            raise UnsupportedError(tensor.unusable or f"input {index} {where} is no input")
        check_alike(tensor, own)
        tensors.add(replace(own, shape=tensor.shape, data=tensor.data, unusable=""))
    nodes = tuple(map(partial(_known, reader), range(file.operator_count)))
    disorder = reader.disorder(tuple(i for i in inputs if not tensors[i].is_constant), outputs, nodes)
    if disorder:
        raise ModelError(f"{disorder}, {where}")
    used = {i for node in nodes for i in (*node.inputs, *node.outputs)} | {*inputs, *outputs}
    found = {i: tensors[i] for i in sorted(used - {ABSENT})}
    unusable = next((tensor.unusable for tensor in found.values() if tensor.unusable), "")
    unusable = unusable or min(tensors.unwritable, default="")
    if unusable:
        raise UnsupportedError(f"{unusable}, {where}")
    constants = tuple(tensor for i, tensor in found.items() if tensor.is_constant and i not in inputs)
    body = CalledBody(
        nodes,
        tuple(replace(tensor, data=None) for tensor in found.values()),
        (*inputs, *(tensor.index for tensor in constants)),
        outputs,
    )
    return ReadBody(body, constants, tuple(map(reader.known, outputs)), len(nodes))


def _known(reader: SubgraphReader, index: int) -> Node:
    """A node of the subgraph. Raises UnsupportedError for one that is for TensorFlow Lite alone."""
    node = reader.node(index)
    if isinstance(node.attributes, Opaque):
        where = f"operator {index} of subgraph {reader.file.number} ({node.op})"
        raise UnsupportedError(f"{where}: {node.attributes.reason}")
    return node
