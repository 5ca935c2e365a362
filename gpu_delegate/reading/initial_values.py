"""What variables hold before the first run: the constants that the subgraph of a CALL_ONCE assigns to them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import tflite

from ..base.errors import ModelError
from ..model.graph import Graph, Node, Opaque, Tensor
from ..model.operators import EMPTY_TABLE
from ..ops.variables import ASSIGN, CALL_ONCE, RESOURCE, VAR_HANDLE, variable_name
from ..passes.kept_states import handles_of, variable_kinds
from .file_tensors import FileTensors
from .model_file import MAX_OPERATORS, ModelFile

ALREADY_READ = -1  # a subgraph of which each VAR_HANDLE says what it gives to its variable
MOST_INITIAL_BYTES = 1 << 20  # of one variable that does not begin with zeros
_CALL_ONCE: int = tflite.BuiltinOperator.CALL_ONCE
_VAR_HANDLE: int = tflite.BuiltinOperator.VAR_HANDLE
_READ: int = tflite.BuiltinOperator.READ_VARIABLE
_ASSIGN: int = tflite.BuiltinOperator.ASSIGN_VARIABLE


@dataclass(frozen=True)
class InitialValues:
    """The bytes of variables by their names, zeros where nothing is said; or why they are not known."""

    values: Mapping[str, bytes] = field(default_factory=dict)
    why_not: str = ""
    is_told: bool = False  # whether each VAR_HANDLE says them itself


@dataclass(frozen=True)
class SettingOperator:
    """An operator of a subgraph that sets variables, of a file or in memory; the variable is that of a VAR_HANDLE."""

    builtin: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    variable: str | None


ConstantOf = Callable[[int], npt.NDArray[np.generic] | None]  # by a tensor's number


def initial_values(file: ModelFile) -> InitialValues:
    """Of the variables of a file's subgraph. Raises ModelError."""
    found, (called_numbers, is_first) = dict[str, bytes](), _called(file)
    if called_numbers and not is_first:
        return InitialValues(why_not="variables are set once behind operators that use them")
    for number in called_numbers:
        if number == ALREADY_READ:
            continue
        if not 0 <= number < file.subgraph_count:
            raise ModelError(f"CALL_ONCE runs subgraph {number} of {file.subgraph_count}")
        inner = ModelFile(file.data, number)
        called = assigned_values(_operators(inner), partial(_constant, FileTensors(inner)))
        if called.why_not:
            return called
        found |= called.values
    return InitialValues(MappingProxyType(found), is_told=ALREADY_READ in called_numbers)


def assigned_values(operators: Iterable[SettingOperator], constant: ConstantOf) -> InitialValues:
    """What the operators of a subgraph give to variables, if they do nothing else."""
    names, found = dict[int, str](), list[InitialValues]()
    for each in operators:
        if each.builtin == _VAR_HANDLE and each.variable is not None and len(each.outputs) == 1:
            names[each.outputs[0]] = each.variable
        elif each.builtin == _ASSIGN and len(each.inputs) == 2 and each.inputs[0] in names:
            data = constant(each.inputs[1])
            if data is None:
                return InitialValues(why_not="what a variable holds at first is computed")
            found.append(_kept_bytes(names[each.inputs[0]], data.tobytes()))
        else:
            return InitialValues(why_not="what is run once does more than to assign constants to variables")
    return joined_values(found)


def _kept_bytes(name: str, values: bytes) -> InitialValues:
    """What one variable holds, as far as it is to be kept."""
    if not values.strip(b"\0"):
        return InitialValues({name: b""})
    if len(values) > MOST_INITIAL_BYTES:
        return InitialValues(why_not=f"{name}, a variable, begins with {len(values)} bytes that are not zeros")
    return InitialValues({name: values})


def joined_values(found: Iterable[InitialValues]) -> InitialValues:
    """Those of several variables."""
    values = dict[str, bytes]()
    for each in found:
        if each.why_not:
            return each
        values |= each.values
    return InitialValues(MappingProxyType(values))


def with_initial_subgraph(graph: Graph, number: int) -> tuple[Graph, Graph]:
    """The graph, in which an operator runs the subgraph of that number once, and what that is: it sets variables."""
    kinds, names = variable_kinds(graph), handles_of(graph)
    nodes, tensors = list[Node](), dict[int, Tensor]()
    for place, (name, handle) in enumerate((name, names[name]) for name in kinds if name in names):
        own, (given, values) = kinds[name], (2 * place, 2 * place + 1)
        data = np.frombuffer(handle.initial, own.dtype) if handle.initial else np.zeros(own.shape, own.dtype)
        tensors[given] = Tensor(given, f"{name}:handle", (), RESOURCE)
        tensors[values] = replace(own, index=values, data=data.reshape(own.shape))
        nodes += [Node(VAR_HANDLE, (), (given,), handle), Node(ASSIGN, (given, values), ())]
    said = Opaque(code=_CALL_ONCE, table="CallOnceOptions", options=(("InitSubgraphIndex", number),))
    found = [replace(node, attributes=said) if node.op == CALL_ONCE else node for node in graph.nodes]
    if not any(node.op == CALL_ONCE for node in graph.nodes):
        found.insert(0, Node(CALL_ONCE, (), (), said))
    return replace(graph, nodes=tuple(found)), Graph("", MappingProxyType(tensors), tuple(nodes), (), ())


def _called(file: ModelFile) -> tuple[list[int], bool]:
    """The subgraphs that it runs once, and whether it does so before it uses variables."""
    numbers, is_used, is_first = list[int](), False, True
    for index in range(file.operator_count):
        table = file.subgraph.Operators(index)
        builtin = _builtin(file, table.OpcodeIndex())
        is_used |= builtin in (_READ, _ASSIGN)
        if builtin == _CALL_ONCE:
            is_first &= not is_used
            said, options = tflite.CallOnceOptions(), table.BuiltinOptions()
            said.Init(*((options.Bytes, options.Pos) if options is not None else EMPTY_TABLE))
            numbers.append(said.InitSubgraphIndex())
    return numbers, is_first


def _operators(file: ModelFile) -> Iterator[SettingOperator]:
    """Those of a subgraph, in order."""
    for index in range(file.operator_count):
        table = file.subgraph.Operators(index)
        inputs = file.values("inputs", table.InputsAsNumpy(), MAX_OPERATORS)
        outputs = file.values("outputs", table.OutputsAsNumpy(), MAX_OPERATORS)
        if not all(0 <= each < file.tensor_count for each in (*inputs, *outputs)):
            raise ModelError(f"tensors {[*inputs, *outputs]} of {file.tensor_count}")
        builtin, variable, options = _builtin(file, table.OpcodeIndex()), None, table.BuiltinOptions()
        if builtin == _VAR_HANDLE and options is not None:
            said = tflite.VarHandleOptions()
            said.Init(options.Bytes, options.Pos)
            variable = variable_name(said.Container(), said.SharedName())
        yield SettingOperator(builtin, inputs, outputs, variable)


def _constant(tensors: FileTensors, index: int) -> npt.NDArray[np.generic] | None:
    return tensors[index].data


def _builtin(file: ModelFile, code_index: int) -> int:
    if not 0 <= code_index < file.model.OperatorCodesLength():
        raise ModelError(f"operator code {code_index} of {file.model.OperatorCodesLength()}")
    code = file.model.OperatorCodes(code_index)
    return int(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()))
