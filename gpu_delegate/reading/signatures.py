"""The signatures of a model: finds the subgraph that a name or a number means.

A signature is an entry of the model that has a name: one of its subgraphs, with names for inputs and outputs.
"""

import contextlib
import struct
from dataclasses import dataclass
from typing import Any

from ..base.errors import UsageError
from ..base.wording import meant
from .model_file import ModelFile, printable_name

MAX_SIGNATURES = 1 << 10
_OFFSET_BYTES = 4


@dataclass(frozen=True)
class Entry:
    """A signature's name, and the number of its subgraph."""

    signature: str
    subgraph: int


def entries_of(file: ModelFile) -> tuple[Entry, ...]:
    """The signatures that lead to a subgraph, in the file's order; others have no meaning, whatever is in them.

    Raises ModelError for more than MAX_SIGNATURES.
    """
    count = file.bounded("signatures", file.model.SignatureDefsLength(), MAX_SIGNATURES)
    entries = []
    for i in range(count):
        with contextlib.suppress(struct.error, IndexError, ValueError, TypeError):  # flatbuffers', of a name outside
            table = file.model.SignatureDefs(i)
            entries.append(Entry(printable_name(table.SignatureKey()), table.SubgraphIndex()))
    return tuple(entry for entry in entries if 0 <= entry.subgraph < file.subgraph_count)


def subgraph_of(file: ModelFile, wanted: str | int) -> int:
    """The number of the subgraph behind a signature's name; a number is its own. Raises UsageError, ModelError."""
    if isinstance(wanted, int):
        if not 0 <= wanted < file.subgraph_count:
            raise UsageError(f"there is no subgraph {wanted}; there are {file.subgraph_count}, from 0 on")
        return wanted
    entries = entries_of(file)
    found = [entry.subgraph for entry in entries if entry.signature == wanted]
    if found:
        return found[0]
    shown = printable_name(wanted)
    if not entries:
        raise UsageError(f"there is no signature {shown!r}: the file names none; leave it out")
    names = [entry.signature for entry in entries]
    raise UsageError(f"there is no signature {shown!r}; there are: {', '.join(names)}{meant(wanted, names)}")


def with_first_subgraph(file: ModelFile) -> bytes:
    """The file with the subgraph that it is read for in the place of the first, which is what an interpreter runs.

    No other bytes change than the offset in that place: what leads to subgraphs by their numbers finds the same ones,
    but for the first, to which nothing in a model leads.
    """
    if file.number == 0:
        return file.data
    start = _places_of_subgraphs(file.model)
    target = start + file.number * _OFFSET_BYTES
    offset = target + int.from_bytes(file.data[target : target + _OFFSET_BYTES], "little") - start
    return file.data[:start] + offset.to_bytes(_OFFSET_BYTES, "little") + file.data[start + _OFFSET_BYTES :]


def _places_of_subgraphs(model: Any) -> int:
    """Where the vector of their offsets starts."""
    table = model._tab  # the generated classes give what is in vectors, not where it is
    return int(table.Vector(table.Offset(_SUBGRAPHS_SLOT)))


_SUBGRAPHS_SLOT = 8  # of Model's fields in its vtable: version, operator_codes, subgraphs
