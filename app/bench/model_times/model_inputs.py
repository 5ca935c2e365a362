"""The values that a measured model is given: random ones, those of a range, or a file's; and the shapes of its inputs.

As benchmark_model has it, inputs are told by names that are the user's own, in the order of the model's inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.model.graph import Graph, Shape
from texelflow.gpu_delegate.reading.bundles import model_file_bytes
from texelflow.gpu_delegate.reading.model_file import printable_name
from texelflow.gpu_delegate.reading.resizing import read_resized

AnyValues = npt.NDArray[Any]

_LOW, _HIGH = -0.5, 0.5  # of inputs, as benchmark_model draws them
_INTEGERS = {"uint8": (0, 255), "int8": (-127, 128)}  # the others may be indices: 0 is one wherever there is any
_MOST_LAYERS, _MOST_DIMENSIONS, _MOST_SIZE = 64, 8, 1 << 24


@dataclass(frozen=True)
class InputLayer:
    """One input, by the name that the user gave it."""

    name: str
    shape: Shape
    value_range: tuple[int, int] | None = None  # of whole numbers, both included
    file: Path | None = None  # its bytes; of strings, with a null byte behind each


@dataclass(frozen=True)
class ModelInputs:
    """What was said of a model's inputs: all of them, or nothing."""

    layers: tuple[InputLayer, ...] = ()

    def resized(self, graph: Graph, path: Path) -> Graph:
        """The graph of the file for inputs of these shapes. Raises UsageError, UnsupportedError."""
        if not self.layers:
            return graph
        if len(self.layers) != len(graph.inputs):
            raise UsageError(
                f"--input_layer names {counted(len(self.layers), 'input')}, and {graph.name} has {len(graph.inputs)}"
            )
        pairs = zip(graph.inputs, self.layers, strict=True)
        others = {index: layer.shape for index, layer in pairs if graph.tensors[index].shape != layer.shape}
        return replace(read_resized(model_file_bytes(path), graph, others), hybrid=graph.hybrid) if others else graph

    def values(self, shapes: Sequence[Shape], dtypes: Sequence[str]) -> list[AnyValues]:
        """The same each time: floats and bytes at random, zeros of other types, where nothing was said of an input.

        Raises UsageError for a file or a range that is not of an input's type and size.
        """
        rng = np.random.default_rng(0)
        found = list[AnyValues]()
        for number, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
            layer = self.layers[number] if self.layers else None
            if layer is not None and layer.file is not None:
                found.append(_of_file(layer.file, layer.name, shape, dtype))
            elif layer is not None and layer.value_range is not None:
                found.append(_of_range(layer.value_range, layer.name, shape, dtype, rng))
            elif dtype.startswith("float"):
                found.append(rng.uniform(_LOW, _HIGH, shape).astype(dtype))
            elif dtype in _INTEGERS:
                found.append(rng.integers(*_INTEGERS[dtype], shape).astype(dtype))
            else:
                found.append(np.zeros(shape, "S1" if dtype == "bytes" else dtype))
        return found


NO_INPUTS = ModelInputs()


def random_values(shapes: Sequence[Shape], dtypes: Sequence[str]) -> list[AnyValues]:
    """Inputs of which nothing was said."""
    return NO_INPUTS.values(shapes, dtypes)


def parse_inputs(given: Mapping[str, str]) -> ModelInputs:
    """What input_layer and its companions say, by their names without that prefix. Raises UsageError."""
    if "" not in given:
        if given:
            raise UsageError(f"--input_layer{next(iter(given))} speaks of inputs by name: add --input_layer=NAME,NAME")
        return NO_INPUTS
    names, shapes = given[""].split(","), given.get("_shape", "").split(":")
    if not all(names) or len({*names}) < len(names) or len(names) > _MOST_LAYERS:
        raise UsageError(_wrong("", given, "names with commas between them are needed, each once"))
    if "_shape" not in given or len(names) != len(shapes):
        raise UsageError(_wrong("_shape", given, f"as many shapes are needed ({len(names)}), as 1,224,224,3:1,20"))
    layers = {name: InputLayer(name, _shape(text, given)) for name, text in zip(names, shapes, strict=True)}
    for name, *bounds in (item.split(",") for item in _items(given, "_value_range", ":")):
        layer = _known(name, layers, "_value_range", given)
        layers[name] = replace(layer, value_range=_range(bounds, given))
    for item in _items(given, "_value_files", ","):
        name, _, file = item.replace("::", "\0").partition(":")
        name, file = name.replace("\0", ":"), file.replace("\0", ":")
        if not file:
            raise UsageError(_wrong("_value_files", given, "NAME:FILE,NAME:FILE is needed"))
        layers[name] = replace(_known(name, layers, "_value_files", given), file=Path(file))
    return ModelInputs(tuple(layers.values()))


def _wrong(which: str, given: Mapping[str, str], wanted: str) -> str:
    shown = printable_name(given[which]) if which in given else ""
    return f"--input_layer{which}={shown}: {wanted}"


def _items(given: Mapping[str, str], which: str, between: str) -> list[str]:
    return given[which].split(between) if which in given else []


def _known(name: str, layers: Mapping[str, InputLayer], which: str, given: Mapping[str, str]) -> InputLayer:
    if name not in layers:
        raise UsageError(
            _wrong(which, given, f"names of --input_layer are needed ({', '.join(map(printable_name, layers))})")
        )
    return layers[name]


def _shape(text: str, given: Mapping[str, str]) -> Shape:
    sizes = text.split(",") if text else []
    is_short = len(sizes) <= _MOST_DIMENSIONS and all(size.isdecimal() and len(size) < 10 for size in sizes)
    shape = tuple(map(int, sizes)) if is_short else (0,)
    if not all(0 < size <= _MOST_SIZE for size in shape):
        raise UsageError(_wrong("_shape", given, f"whole numbers from 1 to {_MOST_SIZE} are needed, with commas"))
    return shape


def _range(bounds: Sequence[str], given: Mapping[str, str]) -> tuple[int, int]:
    is_short = len(bounds) == 2 and all(len(each) < 20 and each.removeprefix("-").isdecimal() for each in bounds)
    low, high = map(int, bounds) if is_short else (1, 0)
    if low > high:
        raise UsageError(_wrong("_value_range", given, "NAME,LOW,HIGH:NAME,LOW,HIGH is needed, in whole numbers"))
    return low, high


def _of_range(value_range: tuple[int, int], name: str, shape: Shape, dtype: str, rng: np.random.Generator) -> AnyValues:
    """As benchmark_model does it: whole numbers, of other types alike."""
    low, high = value_range
    if dtype in ("bytes", "bool") or dtype.startswith("complex"):
        raise UsageError(f"--input_layer_value_range: input {name} is of the type {dtype}, not of numbers")
    if not dtype.startswith("float"):
        limits = np.iinfo(dtype)
        if low < limits.min or high > limits.max:
            raise UsageError(f"--input_layer_value_range: {low} to {high} is more than input {name} ({dtype}) holds")
    return rng.integers(low, high, shape, endpoint=True).astype(dtype)


def _of_file(path: Path, name: str, shape: Shape, dtype: str) -> AnyValues:
    shown, size = printable_name(str(path)), prod(shape)
    needed = size * (2 if dtype == "bytes" else np.dtype(dtype).itemsize)
    try:
        with path.open("rb") as file:
            content = file.read((1 << 24) if dtype == "bytes" else needed + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if dtype == "bytes":
        texts = content.removesuffix(b"\0").split(b"\0")
        if len(texts) != size:
            raise UsageError(f"{shown}: {len(texts)} texts; input {name} takes {size}, with a null byte behind each")
        return np.array(texts).reshape(shape)
    if len(content) != needed:
        more = "more than " if len(content) > needed else ""
        found = counted(min(len(content), needed), "byte")
        raise UsageError(f"{shown}: {more}{found}; input {name} takes {needed} ({dtype}, {list(shape)})")
    return np.frombuffer(content, dtype).reshape(shape).copy()
