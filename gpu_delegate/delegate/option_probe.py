"""Checks that a runtime lays out ops' options and scales in memory as builtin_structs.py says.

A part of runtime_probe.py, in the same child process: the runtime reads models whose operators have a different value
in every option, and a delegate that takes over nothing reads these options from memory.
"""

import ctypes
from types import MappingProxyType
from typing import Any

import numpy as np
import tflite

from ..model.graph import Graph, Node, Opaque, OptionValue, OptionVector, Quantization, Tensor
from ..ops.called import COMPOSITE
from ..reading.writer import write_model
from .builtin_structs import CALLS, MOST_INTEGERS, STRUCTS, StructOptions
from .context_model import scales_of
from .native_operators import execution_plan, operator_at, subgraph_context
from .structs import ALLOWS_DYNAMIC_TENSORS, ERROR, OK, PrepareFunction, TfLiteContext, TfLiteDelegate, context_at

_VARIANTS = 2  # every truth value and every enumeration is tried both ways
_SCALES = Quantization((0.5, 0.25, 3.0), (0, 0, 0), 1)
_SCALED, _ZERO_POINT = 2, 3  # tensors: one with those scales, and one with a single scale
_SINGLE = Quantization((0.75,), (-7,))
_ALL = MappingProxyType({op: known for op, known in {**STRUCTS, **CALLS}.items() if op != COMPOSITE})
_ENUMERATIONS = frozenset({"FusedActivationFunction", "WeightsFormat", "KernelType"})  # their values are checked


def option_differences(module: Any) -> list[str]:
    """A line for each field that is not where it should be."""
    found = list[str]()
    for variant in range(_VARIANTS):
        visitor = _Visitor(variant)
        module.Interpreter(model_content=write_model(_graph(variant)), experimental_delegates=[visitor])
        found += visitor.found
    visitor = _Visitor(None)
    try:
        module.Interpreter(model_content=_composite_model(), experimental_delegates=[visitor])
    except ValueError:  # it does not know that op
        return found
    return found + visitor.found


def _differences(context: TfLiteContext, variant: int) -> list[str]:
    lines = list[str]()
    for index, (op, known) in enumerate(_ALL.items()):
        node, _ = operator_at(context, index)
        options = known.options_at(node.builtin_data) if node.builtin_data else None
        if options != _options(op, variant):
            lines.append(f"options of {op}: {options} instead of {_options(op, variant)}")
    for index, wanted in ((_SCALED, _SCALES), (_ZERO_POINT, _SINGLE)):
        if scales_of(context.tensors[index]) != wanted:
            lines.append(f"scales of tensor {index}: {scales_of(context.tensors[index])} instead of {wanted}")
    return lines


def _composite_differences(context: TfLiteContext) -> list[str]:
    node, _ = operator_at(context, 0)
    options = CALLS[COMPOSITE].options_at(node.builtin_data) if node.builtin_data else None
    if options != (wanted := (("DecompositionSubgraphIndex", 2),)):
        return [f"options of {COMPOSITE}: {options} instead of {wanted}"]
    with subgraph_context(context, 2) as inner:
        found = execution_plan(inner), operator_at(inner, 0)[1].builtin_code
    return [] if found == ((0,), tflite.BuiltinOperator.NEG) else [f"subgraph 2: {found}"]


def _composite_model() -> bytes:
    """A composite of one operator."""
    tensors = MappingProxyType({index: Tensor(index, f"t{index}", (1,)) for index in range(2)})
    named = (("Name", b"probe"), ("CompositeAttributes", OptionVector("uint8", b"\0\1\1")), ("Version", 1))
    options = (*named, ("DecompositionSubgraphIndex", 2))
    code, table = getattr(tflite.BuiltinOperator, COMPOSITE), CALLS[COMPOSITE].table
    composite, negation = Opaque(code=code, table=table, options=options), Opaque(code=tflite.BuiltinOperator.NEG)
    graphs = (Graph("", tensors, (Node("", (0,), (1,), each, 0),), (0,), (1,)) for each in (composite, negation))
    return write_model(next(graphs), called={2: next(graphs)})


def _graph(variant: int) -> Graph:
    """An operator of each kind, all from one tensor to another one: nothing ever runs."""
    values = np.zeros((2, 3), np.int8)
    tensors = (
        Tensor(0, "", (1,)),
        Tensor(1, "", (1,)),
        Tensor(_SCALED, "", (2, 3), "int8", values, _SCALES),
        Tensor(_ZERO_POINT, "", (2, 3), "int8", values, _SINGLE),
    )
    said = (
        Opaque(code=getattr(tflite.BuiltinOperator, op), table=known.table, options=_options(op, variant))
        for op, known in _ALL.items()
    )
    nodes = tuple(Node("", (0,), (1,), each, index) for index, each in enumerate(said))
    return Graph("probe", MappingProxyType({tensor.index: tensor for tensor in tensors}), nodes, (0,), (1,))


def _options(op: str, variant: int) -> StructOptions:
    """A value for each field: truth values and enumerations by turns, all else different from each other."""
    return tuple((name, _value(name, kind, 1 + place, variant)) for place, (name, kind) in enumerate(_ALL[op].fields))


def _value(name: str, kind: str, place: int, variant: int) -> OptionValue:
    bit = (place + variant) % 2
    if kind == "b":
        return bool(bit)
    if kind == "e" or name in _ENUMERATIONS:
        return bit
    if kind == "t":
        return int((tflite.TensorType.INT32, tflite.TensorType.INT64)[bit])
    if kind == "f":
        return place + variant / 2
    if kind == "s":
        return b"a text" if bit else b"another"
    if kind == "l":
        return OptionVector("int32", np.arange(2, 2 + (MOST_INTEGERS if bit else 3), dtype=np.int32).tobytes())
    return 10 * place + variant


class _Visitor:
    """A delegate that takes nothing."""

    def __init__(self, variant: int | None) -> None:
        """Without one, of the model of a composite."""
        self.found = ["the options of operators cannot be read"]
        self._variant, self._is_done = variant, False
        self._struct = TfLiteDelegate(Prepare=PrepareFunction(self._prepare), flags=ALLOWS_DYNAMIC_TENSORS)

    def _get_native_delegate_pointer(self) -> int:
        return ctypes.addressof(self._struct)

    def _prepare(self, address: int, _: int) -> int:
        if self._is_done:  # of another subgraph
            return OK
        self._is_done = True
        try:
            context, variant = context_at(address), self._variant
            self.found = _composite_differences(context) if variant is None else _differences(context, variant)
        except Exception as error:
            self.found.append(f"{type(error).__name__}: {error}")
            return ERROR
        return OK
