"""Which inputs need no work once more: by the manifest alone."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.archive.manifest.test_manifest import DONE, LECTURE, MARK, PIECE, written
from texelflow.app.archive.jobs.jobs import ArchiveInput, InputDone
from texelflow.app.archive.manifest.manifest import MANIFEST_NAME
from texelflow.app.archive.manifest.manifest_index import ManifestIndex
from texelflow.app.archive.manifest.manifest_lines import RecordedResult, RunMark
from texelflow.app.archive.manifest.resume import Standing, standing_of, to_be_done
from texelflow.app.archive.results.results import DoneResult, FailedResult, PieceResult, SkippedInput

SIZES = {"lecture.mp4": 5000, "lecture.masks.mp4": 700}
NOW = replace(LECTURE, number=3)
TOUCHED = replace(NOW, modified_ns=1)
OTHER = replace(NOW, address="/in/other.mp4", name="other")
RECORDED = RecordedResult(MARK, DoneResult(LECTURE, DONE))
FAILED = RecordedResult(MARK, FailedResult(LECTURE, "input", "no frames", 2))


def unread(archived: ArchiveInput) -> str:
    raise AssertionError(f"{archived.address} is read in vain")


def held(sizes: Mapping[str, int]) -> Callable[[InputDone], bool]:
    """Whether results have the sizes that their line tells of."""
    return lambda done: all(sizes.get(file) == done.file_bytes[kind] for kind, file in done.files.items())


def standing(archived: ArchiveInput, recorded: RecordedResult | None, mark: RunMark = MARK) -> Standing:
    return standing_of(archived, recorded, mark, held(SIZES), unread)


def test_what_the_manifest_does_not_name_is_new() -> None:
    assert standing(NOW, None) == "new"
    assert standing(NOW, RecordedResult(MARK, PieceResult(LECTURE, "c0ffee", PIECE))) == "new"


def test_the_same_size_and_time_are_enough() -> None:
    assert standing(NOW, RECORDED) == "done"
    assert standing(NOW, FAILED) == "failed"


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (replace(MARK, settings_digest="other"), "new"),
        (replace(MARK, model_sha256="other"), "new"),
        (replace(MARK, versions={**MARK.versions, "texelflow": "0.2"}), "new"),
        (replace(MARK, versions={**MARK.versions, "ray": "3", "python": "3.13"}), "done"),
    ],
)
def test_what_was_made_otherwise_is_made_anew(mark: RunMark, expected: Standing) -> None:
    assert standing(NOW, RECORDED, mark) == expected


@pytest.mark.parametrize("sizes", [{}, {"lecture.mp4": 5000}, {**SIZES, "lecture.mp4": 4999}])
def test_results_that_are_gone_or_have_other_bytes_are_made_anew(sizes: dict[str, int]) -> None:
    assert standing_of(NOW, RECORDED, MARK, held(sizes), unread) == "new"


def test_another_size_is_another_input_and_nobody_reads_it() -> None:
    assert standing(replace(TOUCHED, size_bytes=5), RECORDED) == "new"
    assert standing(replace(NOW, size_bytes=5), RECORDED) == "new"
    assert standing(replace(NOW, size_bytes=5), FAILED) == "new"


@pytest.mark.parametrize("archived", [TOUCHED, replace(NOW, modified_ns=None), replace(TOUCHED, size_bytes=None)])
@pytest.mark.parametrize(("sha256", "expected"), [("c0ffee", "done"), ("other", "new"), (None, "new")])
def test_where_the_time_does_not_say_it_contents_do(
    archived: ArchiveInput, sha256: str | None, expected: Standing
) -> None:
    assert standing_of(archived, RECORDED, MARK, held(SIZES), lambda _input: sha256) == expected


def test_an_input_that_failed_and_was_changed_since_is_tried_again() -> None:
    assert standing(TOUCHED, FAILED) == "new"
    assert standing(replace(NOW, modified_ns=None), FAILED) == "failed"


def test_a_recording_that_was_cut_off_stays_so(tmp_path: Path) -> None:
    written(tmp_path, DoneResult(LECTURE, replace(DONE, cut_off="100 bytes")), FailedResult(OTHER, "input", "no", 2))
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        found = list(to_be_done([NOW, OTHER], index, MARK, held(SIZES), unread))
    assert found == [SkippedInput(NOW, cut_off=True), SkippedInput(OTHER, "failed")]


def test_an_input_that_is_done_anew_knows_its_own_files(tmp_path: Path) -> None:
    written(tmp_path, DoneResult(LECTURE, DONE), FailedResult(OTHER, "input", "no", 2))
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        given = [NOW, OTHER, replace(OTHER, address="/in/new.mp4", name="new")]
        found = list(to_be_done(given, index, MARK, held({}), unread, retry_failed=True))
    own = (("lecture.mp4", "0" * 64), ("lecture.masks.mp4", "12" * 32))
    assert found == [replace(NOW, own=own), *given[1:]]
