"""Decides which inputs still need work, by what the manifest says of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Literal

from ..jobs.jobs import ArchiveInput, InputDone
from ..results.results import DoneResult, FailedResult, SkippedInput
from .manifest_index import ManifestIndex
from .manifest_lines import RecordedResult, RunMark

Standing = Literal["done", "failed", "new"]


def standing_of(
    archived: ArchiveInput,
    recorded: RecordedResult | None,
    mark: RunMark,
    holds: Callable[[InputDone], bool],
    sha256_of: Callable[[ArchiveInput], str | None],
) -> Standing:
    """Whether an input is done or has failed by the last line about it, or has to be done (anew).

    `holds` says whether results are in the folder as they were made; `sha256_of` reads an input, and is asked only
    where its time differs or nobody knows it; None if that cannot be read.
    """
    if recorded is None or not recorded.mark.same_results(mark):
        return "new"
    result = recorded.result
    if isinstance(result, FailedResult):
        return "new" if _changed(archived, result.input) else "failed"
    if not isinstance(result, DoneResult):
        return "new"
    if not holds(result.done) or not _same_contents(archived, result, sha256_of):
        return "new"
    return "done"


def _is_cut_off(recorded: RecordedResult | None) -> bool:
    result = recorded.result if recorded else None
    return isinstance(result, DoneResult) and result.done.cut_off is not None


def _changed(archived: ArchiveInput, recorded: ArchiveInput) -> bool:
    """Whether size or time differ, as far as both are known."""
    stamps = (archived.size_bytes, recorded.size_bytes), (archived.modified_ns, recorded.modified_ns)
    return any(None not in pair and pair[0] != pair[1] for pair in stamps)


def _same_contents(
    archived: ArchiveInput, recorded: DoneResult, sha256_of: Callable[[ArchiveInput], str | None]
) -> bool:
    """By size and time; where the time does not say it, by what is in it."""
    if None not in (archived.size_bytes, archived.modified_ns) and archived.modified_ns == recorded.input.modified_ns:
        return archived.size_bytes == recorded.input.size_bytes
    known = archived.size_bytes is None or archived.size_bytes == recorded.done.input_bytes
    return known and sha256_of(archived) == recorded.done.sha256


def to_be_done(
    inputs: Iterable[ArchiveInput],
    index: ManifestIndex,
    mark: RunMark,
    holds: Callable[[InputDone], bool],
    sha256_of: Callable[[ArchiveInput], str | None],
    retry_failed: bool = False,
) -> Iterator[ArchiveInput | SkippedInput]:
    """All inputs in their order, those that need no work marked as such. Lazily, one lookup for each.

    Those that need some know which files of the folder are their own.
    """
    for archived in inputs:
        recorded = index.result_of(archived.address)
        standing = standing_of(archived, recorded, mark, holds, sha256_of)
        if standing == "done":
            yield SkippedInput(archived, cut_off=_is_cut_off(recorded))
        elif standing == "failed" and not retry_failed:
            yield SkippedInput(archived, "failed")
        else:
            yield replace(archived, own=index.own_files(archived.address)) if recorded else archived
