"""The model that an interpreter was given: its bytes, its graphs, what its file says, each read when asked for."""

import os
import struct
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base.errors import ModelError, UsageError
from ..base.wording import meant
from ..model.graph import Graph
from ..reading.bundles import model_file_bytes, model_in
from ..reading.reader import printable_name, read_model
from .call_errors import CallTypeError, CallValueError, ModelValueError
from .file_details import SignatureDetails, SubgraphDetails, signatures_of


class ModelSource:
    """A file or bytes. What cannot be read is a ModelValueError, for which callers see a ValueError, too."""

    def __init__(self, path: object, content: object) -> None:
        """One of them. Raises CallValueError, CallTypeError, ModelValueError for what is not a model at all."""
        if content is not None and not isinstance(content, bytes):
            content = _bytes_of(content)
        if not path and not content:
            raise CallValueError("`model_path` or `model_content` must be specified.")
        if path and content:
            raise CallValueError("Can't both provide `model_path` and `model_content`")
        if path and not isinstance(path, str | bytes | os.PathLike):
            raise CallTypeError(f"model_path is a path, not {type(path).__name__}; bytes of a model are model_content")
        self.path = Path(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) and path else None
        self._content = content or b""
        self.name = printable_name(self.path.stem) if self.path else "model"
        self._graphs: dict[int, Graph] = {}
        self._details: dict[int, SubgraphDetails] = {}
        if self.data[4:8] != b"TFL3":
            raise ModelValueError(f"{self.name}: not a TensorFlow Lite model (its identifier is not TFL3)")

    @cached_property
    def data(self) -> bytes:
        """All of the file, or of the only model in the bundle that the bytes are."""
        try:
            return model_in(self._content, self.name) if self.path is None else model_file_bytes(self.path)
        except ModelError as error:
            raise ModelValueError(str(error)) from None

    def graph(self, subgraph: int) -> Graph:
        """Of a subgraph, as the file has it."""
        if subgraph not in self._graphs:
            try:
                self._graphs[subgraph] = read_model(self.data, self.name, subgraph)
            except (ModelError, UsageError) as error:
                raise ModelValueError(str(error)) from None
        return self._graphs[subgraph]

    def details(self, subgraph: int) -> SubgraphDetails:
        """What the file says of a subgraph's tensors and operators."""
        if subgraph not in self._details:
            try:
                self._details[subgraph] = SubgraphDetails(self.data, subgraph)
            except (ModelError, struct.error, IndexError, ValueError, TypeError, AttributeError) as error:
                raise ModelValueError(f"{self.name}: {error}; the file is damaged, get it again") from None
        return self._details[subgraph]

    @cached_property
    def subgraph_count(self) -> int:
        """How many the file has."""
        return self.details(0).subgraph_count

    @cached_property
    def signatures(self) -> Mapping[str, SignatureDetails]:
        """By name, in the file's order."""
        try:
            return signatures_of(self.data)
        except (ModelError, struct.error, IndexError, ValueError, TypeError, AttributeError) as error:
            raise ModelValueError(f"{self.name}: {error}; the file is damaged, get it again") from None

    def subgraph_of(self, signature: str | None) -> int:
        """The number of the subgraph that a signature's name means; the first without a name. Raises CallValueError."""
        if signature is None:
            return 0
        if signature not in self.signatures:
            names = [*self.signatures]
            told = f"there are: {', '.join(names)}{meant(str(signature), names)}" if names else "the file names none"
            raise CallValueError(f'Invalid signature_key provided: "{printable_name(str(signature))}"; {told}')
        return self.signatures[signature].subgraph

    @cached_property
    def entries(self) -> tuple[int, ...]:
        """The subgraphs that are run by themselves: the first, and those of signatures."""
        return tuple(dict.fromkeys([0, *(each.subgraph for each in self.signatures.values())]))


def _bytes_of(content: Any) -> bytes:
    """Of whatever has a buffer: bytearray, memoryview, mmap, arrays of bytes. Raises CallTypeError."""
    try:
        return bytes(memoryview(content))
    except (TypeError, ValueError, BufferError):
        raise CallTypeError(f"model_content is the bytes of a model, not {type(content).__name__}") from None
