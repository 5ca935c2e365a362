"""Finds the models of a run, and tells what each file holds, without the engine's reader."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import tflite

from texelflow.app.models.catalogue import CATALOGUE, fetch
from texelflow.app.models.metadata import read_metadata
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS

_OP_NAMES = MappingProxyType({n: op for op, n in vars(tflite.BuiltinOperator).items() if isinstance(n, int)})
_TYPE_NAMES = MappingProxyType({n: name.lower() for name, n in vars(tflite.TensorType).items() if isinstance(n, int)})
_CUSTOM = tflite.BuiltinOperator.CUSTOM
_FLEX = "Flex"  # begins the names of TensorFlow's own ops
_RESOURCES = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE"})


@dataclass(frozen=True)
class Entrant:
    """A model of a run."""

    name: str
    path: Path
    sha256: str  # its first 16 digits
    size_bytes: int
    is_catalogued: bool
    input_range: tuple[float, float] | None = None  # of float inputs; None: as its metadata says, else -1 to 1


@dataclass(frozen=True)
class Contents:
    """What a file holds, of the subgraphs that are run by themselves."""

    ops: dict[int, list[str]]  # by subgraph
    signatures: tuple[str, ...]  # if they lead to several subgraphs
    custom: tuple[str, ...]  # names of custom ops that the engine does not know
    flex: tuple[str, ...]
    has_states: bool
    has_open_sizes: bool  # of inputs
    types: tuple[str, ...]  # of the first subgraph's first input and output, with shapes
    quantized: dict[int, tuple[float, float]]  # what float inputs of it that become bytes at once reach from and to

    @property
    def nodes(self) -> int:
        return sum(map(len, self.ops.values()))


def entrants(folders: Sequence[Path], names: Sequence[str], with_catalogue: bool = True) -> Iterator[Entrant]:
    """The catalogue's models, then those of folders and of all below them, by name; `names` are parts of names."""
    for name, entry in CATALOGUE.items() if with_catalogue else ():
        if _is_asked(name, names):
            yield _entrant(name, fetch(name), entry.input_range, True)
    for folder in folders:
        for path in sorted(folder.rglob("*.tflite")):
            if _is_asked(name := path.relative_to(folder).with_suffix("").as_posix(), names):
                yield _entrant(name, path)


def _is_asked(name: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in name for part in parts)


def _entrant(name: str, path: Path, bounds: tuple[float, float] | None = None, catalogued: bool = False) -> Entrant:
    data = path.read_bytes()
    return Entrant(name, path, hashlib.sha256(data).hexdigest()[:16], len(data), catalogued, bounds)


def contents_of(path: Path) -> Contents:
    """Of one file; what is raised for a damaged one may be anything."""
    model: Any = tflite.Model.GetRootAs(path.read_bytes(), 0)
    names = [_op_name(model.OperatorCodes(i)) for i in range(model.OperatorCodesLength())]
    customs = {
        names[i]
        for i in range(model.OperatorCodesLength())
        if _builtin(model.OperatorCodes(i)) == _CUSTOM and names[i] not in SUPPORTED_OPS
    }
    signatures = {
        _text(model.SignatureDefs(i).SignatureKey()): model.SignatureDefs(i).SubgraphIndex()
        for i in range(model.SignatureDefsLength())
    }
    graphs = sorted({0, *signatures.values()})
    ops = {number: _ops(model.Subgraphs(number), names) for number in graphs}
    used = {op for of_one in ops.values() for op in of_one}
    flex = {op for op in customs if op.startswith(_FLEX)}
    return Contents(
        ops,
        tuple(signatures) if len({*signatures.values()}) > 1 else (),
        tuple(sorted((customs - flex) & used)),
        tuple(sorted(flex & used)),
        bool(_RESOURCES & used) or any(_has_variables(model.Subgraphs(number)) for number in graphs),
        _has_open_sizes(model.Subgraphs(0)),
        _types(model.Subgraphs(0)),
        _quantized(model.Subgraphs(0), names),
    )


def input_range_of(entrant: Entrant) -> tuple[float, float]:
    """Between which numbers its float inputs are drawn."""
    if entrant.input_range:
        return entrant.input_range
    try:
        return read_metadata(entrant.path.read_bytes(), entrant.name).input_range or (-1.0, 1.0)
    except TexelflowError:
        return -1.0, 1.0


def _builtin(code: Any) -> int:
    return int(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()))


def _op_name(code: Any) -> str:
    number = _builtin(code)
    if number == _CUSTOM:
        return _text(code.CustomCode())[:64]
    return str(_OP_NAMES.get(number, number))


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _ops(graph: Any, names: Sequence[str]) -> list[str]:
    return [names[graph.Operators(i).OpcodeIndex()] for i in range(graph.OperatorsLength())]


def _has_variables(graph: Any) -> bool:
    return any(graph.Tensors(i).IsVariable() for i in range(graph.TensorsLength()))


def _quantized(graph: Any, names: Sequence[str]) -> dict[int, tuple[float, float]]:
    inputs, found = {graph.Inputs(i) for i in range(graph.InputsLength())}, dict[int, tuple[float, float]]()
    for operator in map(graph.Operators, range(graph.OperatorsLength())):
        if names[operator.OpcodeIndex()] == "QUANTIZE" and operator.Inputs(0) in inputs:
            made = graph.Tensors(operator.Outputs(0))
            limits = np.iinfo(_TYPE_NAMES[made.Type()])
            scale, zero_point = made.Quantization().Scale(0), made.Quantization().ZeroPoint(0)
            low, high = (float(scale * (limit - zero_point)) for limit in (limits.min, limits.max))
            found[operator.Inputs(0)] = low, high
    return found


def _has_open_sizes(graph: Any) -> bool:
    tensors = [graph.Tensors(graph.Inputs(i)) for i in range(graph.InputsLength())]
    return any(tensor.ShapeSignature(k) < 0 for tensor in tensors for k in range(tensor.ShapeSignatureLength()))


def _types(graph: Any) -> tuple[str, ...]:
    def said(index: int) -> str:
        tensor = graph.Tensors(index)
        shape = "x".join(str(tensor.Shape(i)) for i in range(tensor.ShapeLength()))
        return f"{shape} {_TYPE_NAMES.get(tensor.Type(), '?')}".strip()

    sides = ((graph.InputsLength(), graph.Inputs), (graph.OutputsLength(), graph.Outputs))
    return tuple(said(of(0)) if count else "none" for count, of in sides)
