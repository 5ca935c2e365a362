"""Writes what `bench model` was asked for besides its figures: the dispatches, the outputs, and what runs where."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.model.graph import ABSENT, Graph, Tensor

from ...files import Write
from .model_inputs import AnyValues
from .model_options import ModelBench

_PROFILE = ("number", "dispatch", "least ms", "median ms", "MMAC", "repeats")


def export_writes(options: ModelBench) -> tuple[Write, ...]:
    """The files that are asked for."""
    wanted = (
        Write("--plot", options.plot, "picture") if options.plot else None,
        Write("--profiling_output_csv_file", options.profile_csv, "table") if options.profile_csv else None,
        Write("--output_filepath", options.outputs, "bytes") if options.outputs else None,
        Write("--model_runtime_info_output_file", options.runtime_info, "facts") if options.runtime_info else None,
    )
    return tuple(write for write in wanted if write is not None)


def write_profile(path: Path, per_op: Mapping[str, Any]) -> None:
    """A line for each dispatch. Raises MediaError."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_PROFILE)
    for number, row in enumerate(per_op["rows"]):
        lines.writerow((number, row["name"], row["ms"], row["median_ms"], row["mmac"], row["repeats"]))
    _write(path, text.getvalue().encode())


def write_outputs(path: Path, outputs: Sequence[AnyValues]) -> None:
    """Their bytes, one output behind the other, as in memory. Raises MediaError."""
    _write(path, b"".join(values.tobytes() for values in outputs))


def write_runtime_info(path: Path, graph: Graph, backend: str, delegation: Delegation | None) -> None:
    """Operators in their order, with where each runs, and the tensors that they read and write. Raises MediaError."""
    facts = {
        "model": graph.name,
        "backend": backend,
        "operators": [
            {
                "number": node.index,
                "op": node.op,
                "runs": _place(node.index, backend, delegation),
                "inputs": [tensor for tensor in node.inputs if tensor != ABSENT],
                "outputs": list(node.outputs),
            }
            for node in graph.nodes
        ],
        "tensors": [
            dict(zip(("number", "name", "type", "shape", "kind"), row, strict=True)) for row in _tensor_facts(graph)
        ],
    }
    _write(path, json.dumps(facts, indent=1).encode())


def _place(operator: int, backend: str, delegation: Delegation | None) -> str:
    if delegation is None:
        return {"gl": "on the GPU", "native": "in the CPU's own code"}.get(backend, "in TensorFlow Lite")
    here, elsewhere = delegation.places
    part = next((n for n, nodes in enumerate(delegation.partitions) if operator in nodes), None)
    return elsewhere if part is None else f"{here}, partition {part}"


def state_rows(
    graph: Graph, places: Mapping[int, str], shapes: Mapping[int, tuple[int, ...]]
) -> Iterator[tuple[object, ...]]:
    """A row for each tensor of the model: number, name, type, shape, kind, bytes, where it lies.

    `shapes` are those that are known better than the file knows them.
    """
    for number, name, dtype, shape, kind in _tensor_facts(graph):
        known = shapes.get(number, tuple(shape))
        size_bytes = _size_bytes(graph.tensors[number], known)
        yield number, name, dtype, "x".join(map(str, known)) or "-", kind, size_bytes, places.get(number, "")


def _tensor_facts(graph: Graph) -> Iterator[tuple[int, str, str, list[int], str]]:
    for number, tensor in graph.tensors.items():
        yield number, tensor.name, tensor.dtype, list(tensor.shape), _kind(graph, number, tensor)


def _kind(graph: Graph, number: int, tensor: Tensor) -> str:
    if number in graph.inputs:
        return "input"
    if number in graph.outputs:
        return "output"
    return "constant" if tensor.is_constant else "variable" if tensor.is_variable else "inner"


def _size_bytes(tensor: Tensor, shape: Sequence[int]) -> object:
    """As TensorFlow Lite has it; nothing of what has no size before it is computed."""
    if tensor.data is not None:
        return tensor.data.nbytes
    try:
        return prod(shape) * np.dtype(tensor.dtype).itemsize
    except TypeError:  # a type that NumPy has not
        return ""


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise MediaError(f"'{path}' cannot be written: {error.strerror}; choose another place") from error
