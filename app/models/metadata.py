"""Reads the metadata of a .tflite file: what its numbers, classes and pictures mean.

What contradicts the graph is left out, and told; the rest counts.
"""

import io
import logging
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.base.zip_archive import UNREADABLE_ARCHIVE, ArchiveError, Bounds, open_archive, read_start
from texelflow.gpu_delegate.model.graph import Graph, Tensor
from texelflow.gpu_delegate.reading.reader import printable_name

from .class_maps import is_class_map

__all__ = ["ModelMetadata", "read_metadata"]

_LOG = logging.getLogger(__name__)
_MAX_ENTRIES = 1024  # of any list: a hostile file may claim billions
_MAX_TEXT_BYTES = 1 << 16
_MOST_FILES = Bounds(entries=_MAX_ENTRIES, directory_bytes=1 << 18)  # in the archive behind a model
_ACTIVATIONS = ("none", "sigmoid", "softmax")  # by their number in MediaPipe's ImageSegmenterOptions
_NORMALIZATION = 1  # of the union ProcessUnitOptions
_IMAGE, _RGB = 2, 1  # of the union ContentProperties; of ColorSpaceType
_MOST_INPUT = 1e6  # of black and white; networks have 1 or 255
_AXIS_LABELS, _VALUE_LABELS = 2, 4  # of AssociatedFileType: labels of an axis' entries, of values
_COLORS = (3, 4)  # channels of a picture


@dataclass(frozen=True)
class ModelMetadata:
    """The metadata of a model; None or empty where it has none."""

    name: str = ""
    description: str = ""
    input_range: tuple[float, float] | None = None  # what 0 and 255 become
    activation: str | None = None  # what the output still needs: none, sigmoid or softmax
    labels: tuple[str, ...] = ()  # of the output's channels
    is_picture: bool = False  # whether the output is an image of colors
    output_range: tuple[float, float] | None = None  # what black and white are in the output


def read_metadata(
    data: bytes, name: str = "model", graph: Graph | None = None, output: int = 0, tells: bool = True
) -> ModelMetadata:
    """The TFLITE_METADATA of a model's bytes, empty if there is none. Raises ModelError if it is damaged.

    `output` is the number of the one whose labels and meaning are wanted. What contradicts the model's `graph` is left
    out: numbers of inputs and outputs, of means and deviations, of labels, a picture without colors. A line for each is
    logged where it `tells`.
    """
    try:
        found = _metadata_bytes(data)
        if found is None:
            return ModelMetadata()
        metadata, faults = _parse(_Table.root(found), data, graph, output)
        for fault in faults if tells else ():
            _LOG.warning("%s: its metadata contradicts it: %s; that is left out", printable_name(name), fault)
        return metadata
    except _OutOfBoundsError as error:
        raise ModelError(f"{printable_name(name)}: its metadata is damaged ({error}); get the file again") from error


class _OutOfBoundsError(Exception):
    """The flatbuffer points outside of itself, or the archive is larger than any."""


class _Table:
    """A flatbuffer table. Fields go by their number in the schema; no access leaves the buffer."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        self.fields = position - self.number("<i", position)
        self.fields_bytes = self.number("<H", self.fields)

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        """The table that a whole flatbuffer is."""
        if len(data) < 8:
            raise _OutOfBoundsError(f"{len(data)} bytes")
        return cls(data, struct.unpack_from("<I", data)[0])

    def number(self, form: str, at: int) -> int:
        """One integer at an absolute position."""
        if not 0 <= at <= len(self.data) - struct.calcsize(form):
            raise _OutOfBoundsError(f"position {at} of {len(self.data)}")
        return int(struct.unpack_from(form, self.data, at)[0])

    def at(self, field: int) -> int | None:
        """Where the field stands, None if the table lacks it."""
        slot = 4 + 2 * field
        offset = self.number("<H", self.fields + slot) if slot + 2 <= self.fields_bytes else 0
        return self.position + offset if offset else None

    def small(self, field: int) -> int:
        """An unsigned byte, 0 by default."""
        at = self.at(field)
        return 0 if at is None else self.number("<B", at)

    def integer(self, field: int) -> int:
        """An unsigned 32-bit integer, 0 by default."""
        at = self.at(field)
        return 0 if at is None else self.number("<I", at)

    def target(self, field: int) -> int | None:
        """Where the offset in this field points."""
        at = self.at(field)
        return None if at is None else at + self.number("<I", at)

    def table(self, field: int) -> "_Table | None":
        """The table that the field points to."""
        at = self.target(field)
        return None if at is None else _Table(self.data, at)

    def items(self, field: int, item_bytes: int) -> tuple[int, int]:
        """(where the first item stands, how many there are) of the vector in this field."""
        at = self.target(field)
        if at is None:
            return 0, 0
        count = self.number("<I", at)
        if at + 4 + count * item_bytes > len(self.data):
            raise _OutOfBoundsError(f"{count} items at {at} of {len(self.data)}")
        return at + 4, count

    def tables(self, field: int) -> Iterator["_Table"]:
        """The tables of a vector, the first 1024 at most."""
        start, count = self.items(field, 4)
        for at in range(start, start + 4 * min(count, _MAX_ENTRIES), 4):
            yield _Table(self.data, at + self.number("<I", at))

    def floats(self, field: int) -> tuple[float, ...]:
        """The numbers of a vector of float32, the first 1024 at most."""
        start, count = self.items(field, 4)
        return struct.unpack_from(f"<{min(count, _MAX_ENTRIES)}f", self.data, start)

    def content(self, field: int, most: int = _MAX_TEXT_BYTES) -> bytes:
        """The bytes of a vector of bytes, the first 65,536 at most: many entries may share one that is large."""
        start, count = self.items(field, 1)
        return self.data[start : start + min(count, most)]

    def text(self, field: int) -> str:
        """A string, fit for a terminal."""
        return printable_name(self.content(field))


def _metadata_bytes(data: bytes) -> bytes | None:
    """The flatbuffer that is stored in one of the model's buffers (schema.fbs: Model, Metadata, Buffer)."""
    model = _Table.root(data)
    for entry in model.tables(6):
        if entry.content(0) == b"TFLITE_METADATA":
            start, count = model.items(4, 4)
            index = entry.integer(1)
            if index >= count:
                raise _OutOfBoundsError(f"buffer {index} of {count}")
            at = start + 4 * index
            return _Table(data, at + model.number("<I", at)).content(0, len(data))
    return None


def _parse(metadata: _Table, data: bytes, graph: Graph | None, output: int) -> tuple[ModelMetadata, list[str]]:
    """What is of use (metadata_schema.fbs: ModelMetadata, SubGraphMetadata, TensorMetadata); what contradicts."""
    name, description = metadata.text(0), metadata.text(1)
    subgraph = next(metadata.tables(3), None)
    if subgraph is None:
        return ModelMetadata(name, description), []
    faults = list[str]()
    inputs = [graph.tensors[index] for index in graph.inputs] if graph else None
    outputs = [graph.tensors[index] for index in graph.outputs] if graph else None
    source, takes = _described("input", subgraph.tables(2), inputs, 0, faults)
    result, gives = _described("output", subgraph.tables(3), outputs, output, faults)
    read = ModelMetadata(
        name,
        description,
        _input_range(source) if source and _fits("input", source, takes, faults) else None,
        _activation(subgraph),
        _labels(result, data, gives, faults) if result else (),
        result is not None and _is_picture(result, gives, faults),
        _output_range(result) if result and _fits("output", result, gives, faults) else None,
    )
    return read, faults


def _described(
    what: str, tables: Iterator["_Table"], tensors: Sequence[Tensor] | None, place: int, faults: list[str]
) -> tuple["_Table | None", Tensor | None]:
    """What is said of an input or output, and that itself; nothing where another number of them is described."""
    said = list(tables)
    if tensors is not None and said and len(said) != len(tensors):
        faults.append(f"it is about {counted(len(said), what)}, and there {_are(len(tensors))}")
        return None, None
    return said[place] if place < len(said) else None, tensors[place] if tensors else None


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"


def _channels(tensor: Tensor | None) -> int | None:
    """None of one that has none, or that is not known."""
    return tensor.shape[-1] if tensor and tensor.shape and tensor.shape[-1] > 0 else None


def _fits(what: str, said: _Table, tensor: Tensor | None, faults: list[str]) -> bool:
    """Whether a normalization has one mean and one deviation, or as many as there are channels."""
    channels = _channels(tensor)
    for unit in said.tables(4):
        options = unit.table(1)
        if unit.small(0) == _NORMALIZATION and options is not None:
            means, stds = (options.items(field, 4)[1] for field in (0, 1))
            allowed = (1, channels) if channels else (means,)
            if means and stds and (means not in allowed or stds not in allowed):
                faults.append(
                    f"{counted(means, 'mean')} and {counted(stds, 'deviation')} normalize the {what}, which has "
                    f"{counted(channels or 0, 'channel')}"
                )
                return False
    return True


def _is_picture(said: _Table, tensor: Tensor | None, faults: list[str]) -> bool:
    """Whether the content is an image in RGB; masks call themselves gray ones (Content, ImageProperties)."""
    content, channels = said.table(3), _channels(tensor)
    image = content.table(1) if content is not None and content.small(0) == _IMAGE else None
    if image is None or image.small(0) != _RGB:
        return False
    if channels is not None and channels not in _COLORS:
        faults.append(f"the output is a picture in RGB, and has {counted(channels, 'channel')}")
        return False
    return True


def _input_range(tensor: _Table) -> tuple[float, float] | None:
    """What 0 and 255 become by (value - mean) / std; None if that is not said, or is nothing to feed networks with."""
    found = _normalization(tensor)
    if found is None:
        return None
    low, high = (0 - found[0]) / found[1], (255 - found[0]) / found[1]
    return (low, high) if max(abs(low), abs(high)) <= _MOST_INPUT else None


def _output_range(tensor: _Table) -> tuple[float, float] | None:
    """What becomes 0 and 255; None if neither a normalization nor the least and the most value say it.

    By the schema (value - mean) / std is a byte, so that std is below 1. With a larger one it is what an input's is.
    """
    found, stats = _normalization(tensor), tensor.table(5)
    if found is not None and found[1] < 1:
        return found[0], found[0] + 255 * found[1]
    if found is not None:
        return _input_range(tensor)
    highest, lowest = (set(stats.floats(field)) for field in (0, 1)) if stats is not None else (set(), set())
    if len(highest) != 1 or len(lowest) != 1:
        return None
    low, high = lowest.pop(), highest.pop()
    return (low, high) if math.isfinite(low) and math.isfinite(high) and low < high else None


def _normalization(tensor: _Table) -> tuple[float, float] | None:
    """(mean, std) of a tensor; None if there is none, or it differs from channel to channel."""
    for unit in tensor.tables(4):
        options = unit.table(1)
        if unit.small(0) == _NORMALIZATION and options is not None:
            means, stds = set(options.floats(0)), set(options.floats(1))
            if len(means) != 1 or len(stds) != 1:
                return None
            mean, std = means.pop(), stds.pop()
            if math.isfinite(mean) and math.isfinite(std) and std > 0:
                return mean, std
    return None


def _activation(subgraph: _Table) -> str | None:
    """What MediaPipe's ImageSegmenterOptions, a flatbuffer of its own among the custom metadata, ask for."""
    for custom in subgraph.tables(9):
        if custom.content(0) == b"SEGMENTER_METADATA":
            number = _Table.root(custom.content(1)).small(0)
            return _ACTIVATIONS[number] if number < len(_ACTIVATIONS) else None
    return None


def _labels(said: _Table, data: bytes, tensor: Tensor | None, faults: list[str]) -> tuple[str, ...]:
    """The lines of the output's label file, which stands in a zip archive behind the model; none if unreadable."""
    channels = None if tensor and is_class_map(tensor) else _channels(tensor)
    for file in said.tables(6):
        if file.small(2) not in (_AXIS_LABELS, _VALUE_LABELS):
            continue
        try:
            with open_archive(io.BytesIO(data), _MOST_FILES) as archive:
                text = read_start(archive, file.text(0), _MAX_TEXT_BYTES).decode("utf-8", "replace")
        except ArchiveError as error:
            raise _OutOfBoundsError(f"the archive with its labels: {error}") from error
        except UNREADABLE_ARCHIVE:
            return ()
        lines = text.rstrip().splitlines()
        is_whole = len(lines) <= _MAX_ENTRIES and len(text) < _MAX_TEXT_BYTES
        if file.small(2) == _AXIS_LABELS and is_whole and channels is not None and len(lines) != channels:
            faults.append(
                f"{file.text(0)} has {counted(len(lines), 'line')}, and the output {counted(channels, 'channel')}"
            )
            return ()
        return tuple(printable_name(line.strip()) for line in lines[:_MAX_ENTRIES])
    return ()
