"""Inputs that are listed on a thread of their own: what is there is given at once, and nobody waits for the rest."""

import itertools
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.archive_jobs import WHOLE, an_input
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.archive.archive_inputs import ArchiveInputs
from texelflow.app.archive.inputs.folder_search import FoundFile
from texelflow.app.archive.inputs.input_listing import InputListing
from texelflow.app.archive.inputs.listing_thread import ListingThread
from texelflow.app.archive.inputs.measuring import measured
from texelflow.app.archive.inputs.stores import FolderStore, LocalStore, StoreEntry
from texelflow.app.archive.jobs.archive_options import ArchiveOptions
from texelflow.app.archive.jobs.failures import StoppedError
from texelflow.app.archive.jobs.jobs import ArchiveInput
from texelflow.app.archive.progress.archive_figures import ArchiveFigures
from texelflow.app.archive.scheduling.scheduler import Scheduler
from texelflow.gpu_delegate.base.errors import UsageError


class Reading:
    """Inputs of which the last ones come when they are let."""

    def __init__(self, before: int, after: int = 0) -> None:
        self.before, self.after, self.let, self.ended = before, after, threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[ArchiveInput]:
        try:
            yield from (an_input(number) for number in range(self.before))
            assert self.let.wait(PATIENCE_S)
            yield from (an_input(number) for number in range(self.before, self.before + self.after))
        finally:
            self.ended.set()


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end to write to of a pipe that is standard input, and stays open."""
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as buffer, os.fdopen(writes, "wb"):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=buffer, closed=False))
        yield writes


def taken(listing: ListingThread[ArchiveInput], count: int) -> list[int]:
    """So many numbers, as they come."""
    numbers = list[int]()

    def take() -> None:
        numbers.extend(each.number for each in [next(listing)] if each)

    until(lambda: len(numbers) >= count, take)
    return numbers


def test_all_comes_out_in_its_order_however_much_it_is() -> None:
    with ListingThread(map(an_input, range(20_000))) as listing:
        assert [each.number for each in listing if each] == list(range(20_000))
    assert not listing.alive


def test_what_is_there_comes_out_while_the_next_one_is_waited_for() -> None:
    reading = Reading(3, 2)
    with ListingThread(reading) as listing:
        assert taken(listing, 3) == [0, 1, 2]
        assert next(listing) is None
        reading.let.set()
        assert [each.number for each in listing if each] == [3, 4]


def test_no_more_is_read_than_there_is_room_for_and_who_waits_for_room_is_stopped() -> None:
    read = itertools.count()
    with ListingThread(map(an_input, read)) as listing:
        numbers = (each.number for each in listing if each)
        assert list(itertools.islice(numbers, 5000)) == list(range(5000))
    assert not listing.alive
    assert next(read) <= 5000 + 1000 + 1


def test_what_the_reader_raises_comes_after_what_it_has_read() -> None:
    def broken() -> Iterator[ArchiveInput]:
        yield an_input(0)
        raise UsageError("line 2: not UTF-8")

    with ListingThread(broken()) as listing:
        scheduler = Scheduler(listing)
        scheduler.joined("a")
        with pytest.raises(UsageError, match="line 2"):
            until(lambda: scheduler.over, scheduler.read_on)
        assert scheduler.counts.known == 1


def test_a_read_that_does_not_end_keeps_nobody_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texelflow.app.archive.inputs.listing_thread._ENDING_S", 0.0)
    reading, stopping = Reading(1, 5), threading.Event()
    with ListingThread(reading, stopping) as listing:
        assert taken(listing, 1) == [0]
    assert stopping.is_set()
    assert listing.alive
    reading.let.set()
    assert reading.ended.wait(PATIENCE_S)
    until(lambda: not listing.alive)


def test_jobs_are_handed_out_while_inputs_are_still_read() -> None:
    reading, figures = Reading(2, 1), ArchiveFigures(0.0)
    with ListingThread(reading) as listing:
        scheduler = Scheduler(figures.read(listing))
        scheduler.joined("a")

        def do() -> None:
            if job := scheduler.next_for("a", 0.0):
                scheduler.finished("a", job, WHOLE, 1.0)

        until(lambda: scheduler.counts.done == 2, do)
        assert scheduler.next_for("a", 2.0) is None
        assert (scheduler.reading, scheduler.nothing_yet, scheduler.over) == (True, True, False)
        reading.let.set()
        until(lambda: scheduler.over, do)
    assert (scheduler.counts.known, scheduler.counts.done, scheduler.reading) == (3, 3, False)


def test_lines_of_a_pipe_that_stays_open_are_inputs_at_once(pipe: int, tmp_path: Path) -> None:
    listing = InputListing(["-"], tmp_path / "out")
    with ListingThread(listing, listing.stopping) as inputs:
        for number in range(3):
            os.write(pipe, f"{tmp_path}/{number}.mp4\n".encode())
            assert taken(inputs, 1) == [number]
        assert next(inputs) is None
    until(lambda: not inputs.alive)  # though the pipe is still open
    assert not listing.is_complete
    os.write(pipe, b"# the reader sees that nobody wants it any more\nlast.mp4\n")


def test_sizes_of_what_was_found_are_told_before_the_next_one_is_found() -> None:
    class Sizes(LocalStore):
        is_local = False

        def measure(self, address: str) -> StoreEntry:
            return StoreEntry(address, False, 5, 7)

    def found() -> Iterator[tuple[FoundFile, FolderStore] | None]:
        yield from ((FoundFile(name, name, StoreEntry(name, False)), Sizes()) for name in "ab")
        yield None
        raise UsageError("who asks for more before the two have come out waits")

    sized = measured(found())
    assert [(each.address, each.entry.size_bytes) for each in (next(sized), next(sized))] == [("a", 5), ("b", 5)]
    with pytest.raises(UsageError):
        next(sized)


def test_an_input_is_hashed_no_further_after_a_stop(tmp_path: Path) -> None:
    file = tmp_path / "long.mp4"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    inputs = ArchiveInputs(ArchiveOptions((str(file),), tmp_path / "out"), tmp_path / "out")
    inputs.stopping.set()
    with pytest.raises(StoppedError):
        inputs._sha256_of(ArchiveInput(0, str(file), "long"))
