"""Bundles of models, and files that are none: the right bytes, or one line, in little memory; nothing on the disk."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.reading.bundles import model_file_bytes, model_in, on_disk
from texelflow.gpu_delegate.reading.reader import load_model, read_model


def relu_of(width: int) -> bytes:
    """A model that its input's width tells from others."""
    m = ModelBuilder()
    m.output(m.op("RELU", [m.input((1, 1, width, 1))], (1, 1, width, 1)))
    return m.build()


def zipped(files: Mapping[str, bytes], packed: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packed) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


DETECTOR, LANDMARKS = relu_of(5), relu_of(7)
HAND = zipped({"hand_detector.tflite": DETECTOR, "hand_landmarks_detector.tflite": LANDMARKS})
ALIGNED = bytes(2) + HAND  # as MediaPipe writes bundles, whose first file begins at a multiple of four
GESTURE = zipped({"hand_landmarker.task": HAND, "gesture/embedder.tflite": LANDMARKS, "labels.txt": b"fist\n"})
WORDS = zipped({"PREFILL_DECODE": DETECTOR, "TOKENIZER_MODEL": b"tokens"}, zipfile.ZIP_DEFLATED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in (
        ("hand.task", HAND),
        ("aligned.task", ALIGNED),
        ("gesture.task", GESTURE),
        ("words.task", WORDS),
    ):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "plain.tflite").write_bytes(DETECTOR)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("plain.tflite", DETECTOR),
        ("words.task", DETECTOR),
        ("words.task/PREFILL_DECODE", DETECTOR),
        ("hand.task/hand_detector.tflite", DETECTOR),
        ("aligned.task/hand_detector.tflite", DETECTOR),
        ("hand.task/hand_landmarks_detector", LANDMARKS),
        ("gesture.task/gesture/embedder.tflite", LANDMARKS),
        ("gesture.task/hand_landmarker.task/hand_detector.tflite", DETECTOR),
    ],
)
def test_a_path_leads_into_a_bundle(path: str, expected: bytes, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert model_file_bytes(folder / path) == expected
    assert load_model(folder / path).tensors[0].shape == read_model(expected).tensors[0].shape
    assert sorted(folder.iterdir()) == before


def test_what_lies_on_the_disk_is_told_from_what_lies_in_it(folder: Path) -> None:
    assert on_disk(folder / "hand.task" / "a" / "b") == (folder / "hand.task", "a/b")
    for whole in (folder / "hand.task", folder / "nothing" / "x.tflite", Path("a\0b"), Path("x" * 5000)):
        assert on_disk(whole) == (whole, "")


def test_bytes_are_those_of_the_only_model() -> None:
    assert (model_in(WORDS), model_in(DETECTOR)) == (DETECTOR, DETECTOR)
    assert read_model(WORDS).tensors[0].shape == (1, 1, 5, 1)
    with pytest.raises(ModelError, match=r"^model: a bundle of 2 models; take one of them: model/hand_detector"):
        read_model(HAND)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("hand.task", "a bundle of 2 models; take one of them: hand.task/hand_detector.tflite, hand.task/hand_landma"),
        ("hand.task/hand", "no one model in it is called hand; there are: hand.task/hand_detector.tflite, hand.ta"),
        ("gesture.task/hand_landmarker.task", "no one model in it is called hand_landmarker.task; there are: "),
        ("hand.task/../plain.tflite", None),
        ("plain.tflite/inner.tflite", "plain.tflite is no bundle of models"),
        ("nothing.task/inner.tflite", "no such file"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_one_line(path: str, line: str | None, folder: Path) -> None:
    with pytest.raises(ModelError) as caught:
        model_file_bytes(folder / path)
    text = str(caught.value)
    assert "\n" not in text
    if line is not None:
        assert line in text


def directory_changed(data: bytes, change: str, at: int, value: int) -> bytes:
    """With another number in the first entry of the list of files, whose place is in the record at the end."""
    changed = bytearray(data)
    (start,) = struct.unpack_from("<L", data, len(data) - 6)
    struct.pack_into(change, changed, start + at, value)
    return bytes(changed)


BOMB = zipped({"bomb.tflite": DETECTOR[:8] + bytes(16 << 20)}, zipfile.ZIP_DEFLATED)


def nested(depth: int) -> bytes:
    data = zipped({"a.tflite": DETECTOR})
    for _ in range(depth):
        data = zipped({"a.task": data})
    return data


def doubled() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.tflite", DETECTOR)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.tflite", LANDMARKS)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (BOMB, r"bomb\.tflite: 16,777,224 bytes unpacked, more than"),
        (zipped({"bomb.task": BOMB}), "bytes unpacked, more than"),
        (zipped({"a.task": zipped({"a.tflite": DETECTOR + bytes(90_000)}, zipfile.ZIP_DEFLATED)}), "more than"),
        (nested(6), "archives in archives, 4 deep"),
        (directory_changed(HAND, "<H", 8, 1), r"hand_detector\.tflite is encrypted"),
        (directory_changed(HAND, "<H", 10, 14), "damaged or cut off"),  # packed by LZMA
        (directory_changed(HAND, "<L", 24, 1 << 31), "unpacked, more than|damaged or cut off|a bundle of 2"),
        (directory_changed(zipped({"a.tflite": DETECTOR}), "<L", 16, 7), "damaged or cut off"),  # its checksum
        (directory_changed(HAND, "<L", 42, 1 << 30), "damaged or cut off"),  # where the file stands
        (HAND[:-30], "damaged or cut off"),
        (HAND[:200], "damaged or cut off"),
        (b"PK\3\4", "damaged or cut off"),
        (doubled(), r"it has two files a\.tflite"),
        (zipped({f"{number}.tflite": b"" for number in range(1025)}), "it lists 1,025 files, more than 1,024"),
        (zipped({"../../a\x1b\n.tflite": DETECTOR, "/etc/b": LANDMARKS}), r"\.\./\.\./a\?\?\.tflite, .*//etc/b$"),
        (zipped({"readme.txt": b"hello"}), "a zip archive without a TensorFlow Lite model in it$"),
        (zipped({}), "a zip archive without a TensorFlow Lite model in it$"),
    ],
)  # fmt: skip
def test_hostile_bundles_end_in_one_line_and_take_little_memory(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "odd.task").write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=why) as caught:
            model_file_bytes(tmp_path / "odd.task")
        assert tracemalloc.get_traced_memory()[1] < (4 << 20) + 33 * len(data)
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["odd.task"]


@given(
    st.sampled_from([HAND, GESTURE, WORDS]),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=4)), max_size=4),
    st.floats(0, 1),
    st.booleans(),
)
def test_damaged_bundles_give_a_model_or_one_line(
    whole: bytes, edits: list[tuple[float, bytes]], end: float, is_cut: bool
) -> None:
    changed = bytearray(whole)
    for place, replacement in edits:
        at = int(place * len(whole))
        changed[at : at + len(replacement)] = replacement
    if is_cut:
        del changed[int(end * len(changed)) :]
    try:
        found = model_in(bytes(changed))
    except ModelError:
        return  # any other error fails the test
    assert found[4:8] == b"TFL3"
