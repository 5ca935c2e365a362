"""Writes the metadata of a model, alone or into its file."""

import io
import zipfile
from collections.abc import Sequence

import flatbuffers

from tests.model_files.flatbuffer_tables import tables


def table(builder: flatbuffers.Builder, offsets: dict[int, int], small: dict[int, int] | None = None) -> int:
    """A flatbuffer table with offsets and unsigned bytes in the given fields."""
    builder.StartObject(max([*offsets, *(small or {})], default=0) + 1)
    for field, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(field, offset, 0)
    for field, value in (small or {}).items():
        builder.PrependUint8Slot(field, value, 0)
    return int(builder.EndObject())


def floats(builder: flatbuffers.Builder, values: Sequence[float]) -> int:
    """A vector of float32."""
    builder.StartVector(4, len(values), 4)
    for value in reversed(values):
        builder.PrependFloat32(value)
    return int(builder.EndVector())


def finished(builder: flatbuffers.Builder, root: int) -> bytes:
    """The bytes of the whole buffer."""
    builder.Finish(root)
    return bytes(builder.Output())


def metadata_of(
    input: tuple[Sequence[float], Sequence[float]] = ((0.0,), (255.0,)),
    output: tuple[Sequence[float], Sequence[float]] | None = None,
    activation: int | None = None,
    has_labels: bool = False,
    is_picture: bool = False,
    extent: tuple[float, float] | None = None,
    inputs: int = 1,
    outputs: int = 1,
) -> bytes:
    """ModelMetadata of inputs and outputs: means and standard deviations; ImageSegmenterOptions; labels.txt.

    `is_picture`: the output's content is an image in RGB, `extent` its least and greatest value.
    """
    b = flatbuffers.Builder()
    image = table(b, {4: tables(b, [_normalization(b, input)])})
    fields = {}
    if output:
        fields[4] = tables(b, [_normalization(b, output)])
    if has_labels:
        fields[6] = tables(b, [table(b, {0: b.CreateString("labels.txt")}, {2: 2})])
    if is_picture:
        fields[3] = table(b, {1: table(b, {}, {0: 1})}, {0: 2})
    if extent:
        low, high = (floats(b, [bound]) for bound in extent)
        fields[5] = table(b, {0: high, 1: low})
    result = table(b, fields)
    custom = {} if activation is None else {9: tables(b, [_segmenter_options(b, activation)])}
    subgraph = table(b, {2: tables(b, [image] * inputs), 3: tables(b, [result] * outputs), **custom})
    return finished(b, table(b, {0: b.CreateString("a name"), 3: tables(b, [subgraph])}))


def with_labels(model: bytes, labels: bytes, packed: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A model with a label file behind it."""
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a", packed) as archive:
        archive.writestr("labels.txt", labels)
    return stream.getvalue()


def _normalization(b: flatbuffers.Builder, numbers: tuple[Sequence[float], Sequence[float]]) -> int:
    """A ProcessUnit."""
    mean, std = (floats(b, each) for each in numbers)
    return table(b, {1: table(b, {0: mean, 1: std})}, {0: 1})


def _segmenter_options(b: flatbuffers.Builder, activation: int) -> int:
    own = flatbuffers.Builder()
    options = finished(own, table(own, {}, {0: activation}))
    return table(b, {0: b.CreateString("SEGMENTER_METADATA"), 1: b.CreateByteVector(options)})
