"""Finds the file that an interpreter is made of, for what its memory does not tell: the order of subgraphs' inputs."""

import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from ..base.errors import TexelflowError
from ..reading.bundles import model_file_bytes
from ..reading.model_file import MAX_TENSORS, ModelFile

Order = tuple[tuple[int, ...], tuple[int, ...]]  # inputs and outputs
OrderOf = Callable[[int], Order | None]  # of a subgraph, by its number


def unknown_order(_: int) -> None:
    """Of no file."""


def order_in(model: str | os.PathLike[str] | bytes | None) -> OrderOf:
    """What a file says, which is read when it is asked; None of a subgraph that it lacks, or without a file."""

    def order(number: int) -> Order | None:
        try:
            data = model if isinstance(model, bytes) else b"" if model is None else model_file_bytes(model)
            if data[4:8] != b"TFL3":
                return None
            file = ModelFile(data, number)
            sides = file.subgraph.InputsAsNumpy(), file.subgraph.OutputsAsNumpy()
            inputs, outputs = (file.values("tensors", side, MAX_TENSORS) for side in sides)
        except (TexelflowError, struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError):
            return None
        return inputs, outputs

    return order


def model_in_frame(variables: Mapping[str, object] = MappingProxyType({})) -> str | os.PathLike[str] | bytes | None:
    """What the constructor of an interpreter was given, by its local variables."""
    content, path = variables.get("model_content"), variables.get("model_path")
    if isinstance(content, bytes):
        return content
    return Path(path) if isinstance(path, str | os.PathLike) else None
