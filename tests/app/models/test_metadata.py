"""What a model says about itself, and who is believed: options, metadata, catalogue."""

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import flatbuffers
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model_files.flatbuffer_tables import tables
from tests.model_files.metadata_writer import finished, metadata_of, table, with_labels
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.models.catalogue import CATALOGUE, fetch
from texelflow.app.models.entries import SEGMENTERS
from texelflow.app.models.metadata import ModelMetadata, read_metadata
from texelflow.app.models.spec import ModelSpec, PictureSpec, SpecOptions, decide_spec, input_size, parse_range
from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError, UsageError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model

SELFIE = CATALOGUE["selfie"]
DEEPLAB_OUTPUT = (1, 257, 257, 21)


def metadata_flatbuffer(mean: Sequence[float], std: Sequence[float], activation: int) -> bytes:
    """With one input, one output that has labels.txt, and ImageSegmenterOptions."""
    return metadata_of((mean, std), activation=activation, has_labels=True)


def model(metadata: bytes, labels: bytes | None = None, packed: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A model that consists of its metadata, with a label file behind it."""
    b = flatbuffers.Builder()
    entry = table(b, {0: b.CreateString("TFLITE_METADATA")})
    buffer = table(b, {0: b.CreateByteVector(metadata)})
    data = finished(b, table(b, {4: tables(b, [buffer]), 6: tables(b, [entry])}))
    if labels is None:
        return data
    return with_labels(data, labels, packed)


WHOLE = model(metadata_flatbuffer([127.5], [127.5], 2), b"background\ncat\nperson\n")
PICTURE = model(metadata_of(output=((0.0,), (0.5,)), is_picture=True, extent=(0.0, 1.0)))


def test_everything_that_is_said_is_read() -> None:
    assert read_metadata(WHOLE) == ModelMetadata("a name", "", (-1.0, 1.0), "softmax", ("background", "cat", "person"))


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_agrees_with_the_models_own_metadata(name: str) -> None:
    metadata = read_metadata(fetch(name).read_bytes(), name)
    assert metadata.input_range in (CATALOGUE[name].input_range, None)
    assert metadata.activation == CATALOGUE[name].activation
    if name in SEGMENTERS:
        assert metadata.name == "ImageSegmenter"
        assert metadata.labels == ("selfie",)


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    [
        ([0, 0, 0], [255, 255, 255], (0.0, 1.0)),
        ([0], [1], (0.0, 255.0)),
        ([1, 2, 3], [255], None),
        ([0], [0], None),
        ([float("nan")], [1], None),
        ([0], [1e-38], None),
        ([1e20], [0.5], None),
        ([], [], None),
    ],
)
def test_input_range(mean: list[float], std: list[float], expected: tuple[float, float] | None) -> None:
    assert read_metadata(model(metadata_flatbuffer(mean, std, 0))).input_range == expected


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({"output": ((-1.0,), (0.0078125,))}, (-1.0, 0.9921875)),
        ({"output": ((127.5,), (127.5,))}, (-1.0, 1.0)),
        ({"output": ((0.0,), (1.0,))}, (0.0, 255.0)),
        ({"extent": (-2.0, 3.0)}, (-2.0, 3.0)),
        ({"extent": (3.0, 3.0)}, None),
        ({"extent": (float("-inf"), 0.0)}, None),
        ({}, None),
    ],
)
def test_the_range_of_a_picture(says: dict[str, Any], expected: tuple[float, float] | None) -> None:
    metadata = read_metadata(model(metadata_of(is_picture=True, **says)))
    assert (metadata.is_picture, metadata.output_range) == (True, expected)
    options, shape = SpecOptions(), (1, 7, 5, 4)
    if expected is None:
        with pytest.raises(
            UsageError, match=r"does not say what black and white are in its picture: give --output-range, mostly"
        ):
            decide_spec(None, metadata, options, shape)
    else:
        assert decide_spec(None, metadata, options, shape) == PictureSpec((0.0, 1.0), expected)
    assert isinstance(decide_spec(None, metadata, replace(options, activation="none", channel=2), shape), ModelSpec)


@pytest.mark.parametrize(
    "says", [{"output": ((1e30,), (1e-3,))}, {"output": ((0.0,), (1e-30,))}, {"extent": (-3e38, 3e38)}]
)
def test_a_picture_without_black_and_white(says: dict[str, Any]) -> None:
    metadata = read_metadata(model(metadata_of(is_picture=True, **says)))
    with pytest.raises(UsageError, match=r"^black is .* in the model's picture; give another --output-range LO,HI$"):
        decide_spec(None, metadata, SpecOptions(), (1, 7, 5, 3))


@pytest.mark.parametrize("shape", [(1, 8, 8, 2), (1, 8, 8, 5), (2, 8, 8, 3), (1, 8, 3), (1, 5000, 5000, 3)])
def test_outputs_that_are_no_picture(shape: tuple[int, ...]) -> None:
    options = SpecOptions((0.0, 1.0), task="picture", output_range=(0.0, 1.0))
    with pytest.raises(UnsupportedError, match=r"a picture is \[1, H, W, 3\]|at most 16 million"):
        decide_spec(None, ModelMetadata(), options, shape)


def test_an_unknown_activation_and_missing_labels_say_nothing() -> None:
    metadata = read_metadata(model(metadata_flatbuffer([0], [1], 9)))
    assert metadata.activation is None
    assert metadata.labels == ()


def test_no_metadata() -> None:
    b = flatbuffers.Builder()
    assert read_metadata(finished(b, table(b, {}))) == ModelMetadata()


@pytest.mark.parametrize("data", [b"", b"TFL3", b"\xff" * 64, WHOLE[:200]])
def test_damaged_files_end_in_one_line(data: bytes) -> None:
    with pytest.raises(ModelError, match=r"^m: its metadata is damaged") as caught:
        read_metadata(data, "m")
    assert "\n" not in str(caught.value)


@given(
    st.sampled_from([WHOLE, PICTURE]),
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4)), max_size=4),
    st.data(),
)
def test_hostile_bytes_give_metadata_or_one_line(
    whole: bytes, edits: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    changed = bytearray(whole)
    for position, replacement in edits:
        changed[position : position + len(replacement)] = replacement
    del changed[data.draw(st.integers(0, len(changed))) :]
    try:
        metadata = read_metadata(bytes(changed))
    except ModelError:
        return  # any other error fails the test
    assert all(text.isprintable() for text in (metadata.name, metadata.description, *metadata.labels))


def test_options_come_first_then_metadata_then_the_catalogue() -> None:
    labels = ("a", "b", "c", "person")
    metadata = ModelMetadata(input_range=(-1.0, 1.0), activation="softmax", labels=labels)
    said = SpecOptions((0.0, 255.0), "sigmoid", 2)
    assert decide_spec(SELFIE, metadata, said, DEEPLAB_OUTPUT) == ModelSpec((0.0, 255.0), "sigmoid", 2, labels)
    assert decide_spec(SELFIE, metadata, SpecOptions(), DEEPLAB_OUTPUT) == ModelSpec((-1.0, 1.0), "softmax", 3, labels)
    assert decide_spec(SELFIE, ModelMetadata(), SpecOptions(), (1, 9, 9, 1)) == ModelSpec((0.0, 1.0), "none", 0)


@pytest.mark.parametrize(("channels", "channel"), [(1, 0), (2, 1)])
def test_one_or_two_channels_need_no_option(channels: int, channel: int) -> None:
    options = SpecOptions((0.0, 1.0), "none")
    assert decide_spec(None, ModelMetadata(), options, (1, 8, 8, channels)) == ModelSpec((0.0, 1.0), "none", channel)


def test_what_nobody_says_is_asked_for_by_its_option() -> None:
    with pytest.raises(UsageError, match=r"--input-range, .* --activation .* --channel 0\.\.20"):
        decide_spec(None, ModelMetadata(), SpecOptions(), DEEPLAB_OUTPUT)
    with pytest.raises(UsageError, match=r"give --channel 0\.\.20$"):
        decide_spec(None, ModelMetadata(), SpecOptions((-1.0, 1.0), "softmax"), DEEPLAB_OUTPUT)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1001), (2, 8, 8, 1), (1, 8, 8, 0), (1, 8, 8, 8, 1)])
def test_outputs_that_are_no_segmentation(shape: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedError, match="a segmentation is"):
        decide_spec(SELFIE, ModelMetadata(), SpecOptions(), shape)


@pytest.mark.parametrize(
    "options",
    [
        SpecOptions(input_range=(1.0, 0.0)),
        SpecOptions(input_range=(0.0, float("inf"))),
        SpecOptions(activation="relu"),
        SpecOptions(channel=-1),
        SpecOptions(channel=1),
    ],
)
def test_options_that_make_no_sense(options: SpecOptions) -> None:
    with pytest.raises(UsageError, match=r"^--"):
        decide_spec(SELFIE, ModelMetadata(), options, (1, 8, 8, 1))


def test_parse_range() -> None:
    assert parse_range("-1,1") == (-1.0, 1.0)
    for text in ("", "1", "1,0", "0,1,2", "a,b", "nan,1", "0,inf"):
        with pytest.raises(UsageError, match=r"^--input-range"):
            parse_range(text)


def test_input_size_is_width_and_height() -> None:
    assert input_size((1, 144, 256, 3)) == (256, 144)
    for shape in ((1, 8, 8, 1), (8, 8, 3), (2, 8, 8, 3)):
        with pytest.raises(UnsupportedError, match="picture"):
            input_size(shape)


def described(channels: int, metadata: bytes, labels: bytes | None = None) -> tuple[bytes, Graph]:
    """A model with one picture as input, an output of so many channels, and metadata."""
    m = ModelBuilder(metadata=metadata)
    weights, bias = m.constant(np.ones((channels, 1, 1, 3))), m.constant(np.zeros(channels))
    x = m.input((1, 4, 4, 3))
    m.output(m.op("CONV_2D", [x, weights, bias], (1, 4, 4, channels)))
    data = m.build()
    return data if labels is None else with_labels(data, labels), read_model(data)


@pytest.mark.parametrize(
    ("channels", "says", "labels", "left", "line"),
    [
        (3, {"has_labels": True}, b"a\nb\nc\n\n", {"labels": ("a", "b", "c")}, ""),
        (4, {"has_labels": True}, b"a\nb\nc\n", {"labels": (), "input_range": (0.0, 1.0)},
         "labels.txt has 3 lines, and the output 4 channels"),
        (2, {"has_labels": True}, b"a\nb\nc\n", {"labels": ()}, "labels.txt has 3 lines, and the output 2 channels"),
        (3, {"input": ((1.0, 1.0), (2.0,))}, None, {"input_range": None},
         "2 means and 1 deviation normalize the input, which has 3 channels"),
        (3, {"input": ((1.0,) * 3, (2.0,) * 3)}, None, {"input_range": (-0.5, 127.0)}, ""),
        (3, {"output": ((0.0,) * 4, (0.5,) * 4), "is_picture": True}, None, {"output_range": None, "is_picture": True},
         "4 means and 4 deviations normalize the output, which has 3 channels"),
        (5, {"is_picture": True}, None, {"is_picture": False, "input_range": (0.0, 1.0)},
         "the output is a picture in RGB, and has 5 channels"),
        (3, {"inputs": 2, "activation": 2}, None, {"input_range": None, "activation": "softmax"},
         "it is about 2 inputs, and there is 1"),
        (3, {"outputs": 3, "has_labels": True}, b"a\nb\nc\n", {"labels": (), "input_range": (0.0, 1.0)},
         "it is about 3 outputs, and there is 1"),
    ],
)  # fmt: skip
def test_what_contradicts_the_graph_is_left_out_and_told(
    channels: int,
    says: dict[str, Any],
    labels: bytes | None,
    left: dict[str, Any],
    line: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    data, graph = described(channels, metadata_of(**says), labels)
    found = read_metadata(data, "odd", graph)
    assert {name: getattr(found, name) for name in left} == left
    told = [record.getMessage() for record in caplog.records]
    assert told == ([f"odd: its metadata contradicts it: {line}; that is left out"] if line else [])
    assert read_metadata(data, "odd").name == "a name"  # without a graph nothing is compared


def test_labels_of_the_classes_in_a_map_are_not_counted_by_its_channels() -> None:
    m = ModelBuilder(metadata=metadata_of(has_labels=True))
    m.output(m.op("CAST", [m.input((1, 4, 4, 1))], (1, 4, 4, 1), "int64"))
    data = m.build()
    assert read_metadata(with_labels(data, b"a\nb\nc\n"), "map", read_model(data)).labels == ("a", "b", "c")
