"""Archives that lie about themselves, behind models and as packages: one line each, and hardly any memory."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import flatbuffers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.models.test_metadata import WHOLE, metadata_flatbuffer, model
from tests.app.models.test_models import CONTENTS, cached_files, failure, index, write_wheel
from tests.helpers.markers import exhaustive
from tests.model_files.flatbuffer_tables import tables
from tests.model_files.metadata_writer import finished, table
from texelflow.app.models.catalogue import fetch
from texelflow.app.models.metadata import read_metadata
from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.base.zip_archive import ArchiveError, Bounds, open_archive

__all__ = ["index"]  # a fixture

MILLION = 1_000_000
MOST_BYTES = 3 << 20  # of memory; a million entries took 560 MB


def entry(name: bytes = b"a.txt", extra: bytes = b"") -> bytes:
    """An entry of a directory, for a file that is not there."""
    return struct.pack("<4s24xHHH12x", b"PK\1\2", len(name), len(extra), 0) + name + extra


def end(entries: int, directory_bytes: int, offset: int = 0, comment: bytes = b"", here: int | None = None) -> bytes:
    """The record at the end."""
    numbers = (entries if here is None else here, entries, directory_bytes, offset, len(comment))
    return struct.pack("<4s4xHHLLH", b"PK\5\6", *numbers) + comment


def end64(entries: int, directory_bytes: int, at: int) -> bytes:
    """The records of ZIP64 that stand before the other one."""
    record = struct.pack("<4sQHHLLQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, entries, entries, directory_bytes, 0)
    return record + struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)


def lying(says: int, has: int) -> bytes:
    return WHOLE + entry() * has + end(says, len(entry()) * has)


def in_zip64(has: int) -> bytes:
    directory = entry() * has
    return WHOLE + directory + end64(has, len(directory), len(directory)) + end(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


def in_a_comment(has: int) -> bytes:
    """The archive is sound by one record, and by the one in that record's comment it is not."""
    directory = entry() * has
    return WHOLE + directory + end(0, 0, 0, end(1, len(directory)) + b"?")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: lying(1, MILLION), "its list of files has 51,000,000 bytes, more than"),
        (lambda: lying(60_000, MILLION), "it lists 60,000 files, more than 1,024"),
        (lambda: lying(1, 1000), "it lists 1,000 files, and says 1"),
        (lambda: in_zip64(MILLION), "it is a ZIP64 archive"),
        (lambda: in_a_comment(MILLION), "is not where it says|bytes, more than"),
        (lambda: WHOLE + end(1, 70), "its list of files is damaged"),
        (lambda: WHOLE + end(1, 70, len(WHOLE)), "is not where it says"),
        (lambda: WHOLE + entry() + end(1, len(entry()), here=2), "is not where it says"),
        (lambda: WHOLE + entry(extra=bytes(60_000)) + end(1, 60_051), "name of 60,005 bytes"),
        (lambda: WHOLE + entry() + end(1, len(entry()) + 1), "its list of files is damaged"),
        (lambda: model(metadata_flatbuffer([0], [1], 0), bytes(range(256)) * 8192, zipfile.ZIP_STORED), "packed"),
    ],
    ids=[
        *("million", "million and a count", "lying count", "ZIP64", "comment", "no list", "behind the end"),
        *("two counts", "long entry", "shifted", "large file"),
    ],
)
def test_hostile_archives_end_in_one_line(make: Callable[[], bytes], why: str) -> None:
    data = make()
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=rf"^m: its metadata is damaged \(the archive with its labels: .*({why})"):
            read_metadata(data, "m")
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def test_labels_that_unpack_to_a_lot_are_read_in_part() -> None:
    data = model(metadata_flatbuffer([0], [1], 0), b"person\n" * (2 << 20))
    tracemalloc.start()
    labels = read_metadata(data).labels
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(labels) == {"person"}
    assert len(labels) == 1024
    assert peak_bytes < MOST_BYTES


def test_many_entries_that_share_a_large_text_copy_none_of_it() -> None:
    b = flatbuffers.Builder()
    name = b.CreateByteVector(bytes(16 << 20))
    entries = [table(b, {0: name}) for _ in range(1024)]
    data = finished(b, table(b, {6: tables(b, entries)}))
    tracemalloc.start()
    read_metadata(data)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < MOST_BYTES


def test_a_comment_does_no_harm() -> None:
    with zipfile.ZipFile(stream := io.BytesIO(WHOLE), "a") as archive:
        archive.comment = b"of no interest"
    assert read_metadata(stream.getvalue()).labels == ("background", "cat", "person")


@exhaustive
def test_a_package_with_too_many_files(index: Path) -> None:
    wheel = write_wheel(index, CONTENTS)
    with zipfile.ZipFile(wheel) as archive:
        start, count = archive.start_dir, len(archive.filelist)
    data = wheel.read_bytes()
    directory = data[start : data.rindex(b"PK\5\6")] + entry() * 10_001
    wheel.write_bytes(data[:start] + directory + end(count + 10_001, len(directory), start))
    assert f"damaged (it lists {count + 10_001:,} files, more than 10,000)" in failure(lambda: fetch("selfie"))
    assert cached_files(index) == {}


PIECES = st.one_of(
    st.sampled_from([entry(), entry(b"b" * 200), entry() * 9, b"PK\5\6", b"PK\6\7", b"\0\0", bytes(30), WHOLE[-90:]]),
    st.builds(end, st.integers(0, 9), st.integers(0, 600), st.integers(0, 60), st.binary(max_size=30)),
    st.builds(lambda files, comment: end(files, files * len(entry()), 0, comment), st.integers(0, 9), st.binary()),
    st.builds(end64, st.integers(0, 9), st.integers(0, 600), st.integers(0, 600)),
)


@given(st.lists(PIECES, max_size=8).map(b"".join))
def test_the_zip_reader_never_sees_more_than_was_measured(data: bytes) -> None:
    """Whatever is put together from records that contradict each other: it goes by the same one."""
    try:
        with open_archive(io.BytesIO(data), Bounds(entries=3, directory_bytes=400)) as archive:
            assert len(archive.filelist) <= 3
    except (ArchiveError, zipfile.BadZipFile, NotImplementedError):
        return
