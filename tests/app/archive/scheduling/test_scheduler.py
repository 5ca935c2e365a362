"""What the scheduler hands out next, whom it blames, and when it gives up."""

import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise

import pytest

from tests.helpers.archive_jobs import PIECE, WHOLE, a_cut, a_piece, an_input
from texelflow.app.archive.jobs.jobs import ArchiveInput, Cut, Job, JobFailed, JoinPieces, RenderPiece
from texelflow.app.archive.results.results import DoneResult, FailedResult, SkippedInput
from texelflow.app.archive.scheduling.scheduler import Scheduler, SchedulerLimits
from texelflow.gpu_delegate.base.errors import MediaError


def started(inputs: list[ArchiveInput], limits: SchedulerLimits | None = None, workers: str = "ab") -> Scheduler:
    """Each worker is a node of its own."""
    scheduler = Scheduler(iter(inputs), limits)
    for name in workers:
        scheduler.joined(name, f"node {name}")
    return scheduler


def asked(scheduler: Scheduler, worker: str, now: float = 0.0) -> Job:
    job = scheduler.next_for(worker, now)
    assert job is not None
    return job


def test_the_largest_come_first_and_inputs_without_a_size_as_they_are_named() -> None:
    sizes = [5, None, 9, 7, None, 1]
    scheduler = started([an_input(number, size) for number, size in enumerate(sizes)], workers="a")
    order = []
    while not scheduler.over:
        job = asked(scheduler, "a")
        order.append(job.input.number)
        scheduler.finished("a", job, WHOLE, 1.0)
    assert order == [2, 3, 0, 5, 1, 4]


def test_no_more_is_read_than_is_looked_ahead() -> None:
    read = []
    inputs = (read.append(number) or an_input(number) for number in count())  # type: ignore[func-returns-value]
    scheduler = Scheduler(inputs, SchedulerLimits(read_ahead=50))
    scheduler.joined("a")
    for _ in range(1000):
        scheduler.finished("a", asked(scheduler, "a"), WHOLE, 0.0)
    assert len(read) == 1000 + 49


def test_nothing_is_kept_of_inputs_that_are_decided() -> None:
    tracemalloc.start()
    try:
        scheduler = Scheduler((an_input(number) for number in range(6000)), SchedulerLimits(read_ahead=100))
        scheduler.joined("a")
        peaks = []
        for number in range(6000):
            scheduler.finished("a", asked(scheduler, "a"), WHOLE, 0.0)
            if number % 2000 == 1999:
                peaks.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert scheduler.over
    assert max(peaks) < peaks[0] + 20_000


def test_pieces_of_the_recording_that_a_worker_had_last_come_first_and_pieces_before_new_inputs() -> None:
    scheduler = started([an_input(number) for number in range(6)])
    first, second = asked(scheduler, "a"), asked(scheduler, "b")
    scheduler.finished("a", first, a_cut(3), 1.0)
    scheduler.finished("b", second, a_cut(3), 1.0)
    order = [(worker, asked(scheduler, worker, 2.0).input.number) for worker in "ba"]
    assert order == [("b", second.input.number), ("a", first.input.number)]
    scheduler.joined("c", "node c")
    assert isinstance(asked(scheduler, "c", 3.0), RenderPiece)


def test_a_loss_is_blamed_on_the_job_that_was_being_done() -> None:
    scheduler = started(
        [an_input(number, 10 - number) for number in range(9)], SchedulerLimits(losses=2, short_s=math.inf)
    )
    blamed, waiting = asked(scheduler, "a"), asked(scheduler, "a")
    assert scheduler.lost("a", "killed") == ()
    assert asked(scheduler, "b") == waiting
    assert asked(scheduler, "b") == blamed
    scheduler.finished("b", waiting, WHOLE, 1.0)
    (failed,) = scheduler.lost("b", "killed again")
    assert failed == FailedResult(blamed.input, "lost", "killed again", 2)


def test_a_loss_that_is_one_too_many_takes_the_inputs_other_pieces_with_it() -> None:
    scheduler = started([an_input(0)], SchedulerLimits(losses=1, short_s=math.inf))
    scheduler.finished("a", asked(scheduler, "a"), a_cut(8), 0.0)
    held = [asked(scheduler, "a"), asked(scheduler, "a")]
    assert all(isinstance(job, RenderPiece) for job in held)
    (failed,) = scheduler.lost("a", "killed")
    assert failed == FailedResult(an_input(0), "lost", "killed", 1)
    assert scheduler.over
    assert (scheduler.counts.waiting, scheduler.counts.outstanding) == (0, 0)


def test_a_worker_that_leaves_with_nothing_to_do_blames_nothing() -> None:
    scheduler = started([])
    assert scheduler.lost("a", "the node is idle") == ()
    assert scheduler.counts.lost == 0


def test_towards_the_end_no_job_waits_at_a_worker_while_others_have_nothing_to_do() -> None:
    scheduler = started([an_input(number) for number in range(3)], SchedulerLimits(short_s=math.inf))
    assert scheduler.next_for("a", 0.0)
    assert scheduler.next_for("a", 0.0) is None
    assert scheduler.next_for("b", 0.0)


def test_a_second_job_waits_at_a_worker_only_where_jobs_are_short() -> None:
    for took, expected in ((1.9, 2), (2.1, 1)):
        scheduler = started([an_input(number) for number in range(20)])
        scheduler.finished("a", asked(scheduler, "a"), WHOLE, took)
        assert sum(scheduler.next_for("a", took) is not None for _ in range(3)) == expected


def test_where_nothing_waits_a_slow_job_gets_a_copy_on_another_node_and_the_first_end_counts() -> None:
    scheduler = started([an_input(0)], workers="abc")
    scheduler.joined("aa", "node a")
    job = asked(scheduler, "a")
    assert scheduler.next_for("b", 59.0) is None
    assert scheduler.next_for("aa", 61.0) is None
    assert asked(scheduler, "b", 61.0) == job
    assert scheduler.next_for("c", 61.0) is None
    assert scheduler.finished("b", job, WHOLE, 80.0) == (DoneResult(job.input, WHOLE),)
    assert scheduler.over
    assert scheduler.finished("a", job, WHOLE, 90.0) == ()
    assert scheduler.counts.done == 1


def test_a_copy_that_fails_leaves_the_job_to_the_other_worker_and_is_not_made_again() -> None:
    scheduler = started([an_input(0)], workers="abc")
    job = asked(scheduler, "a")
    assert asked(scheduler, "b", 61.0) == job
    assert scheduler.finished("b", job, JobFailed("machine", "no memory"), 70.0) == ()
    assert scheduler.next_for("c", 200.0) is None
    assert scheduler.lost("a", "killed") == ()
    assert asked(scheduler, "c", 200.0) == job


def test_what_a_lost_worker_answers_later_is_nobodys_business() -> None:
    scheduler = started([an_input(0)])
    job = asked(scheduler, "a")
    scheduler.lost("a", "silent")
    assert scheduler.finished("a", job, WHOLE, 1.0) == ()
    assert asked(scheduler, "b", 1.0) == job


def test_the_same_reason_twice_is_the_inputs_own() -> None:
    scheduler = started([an_input(0), an_input(1)])
    job = asked(scheduler, "a")
    assert scheduler.finished("a", job, JobFailed("input", "no frames"), 1.0) == ()
    assert asked(scheduler, "a", 1.0) != job, "another worker tries it"
    assert asked(scheduler, "b", 1.0) == job
    assert scheduler.finished("b", job, JobFailed("input", "no frames"), 1.0) == (
        FailedResult(job.input, "input", "no frames", 2),
    )


def test_an_input_that_failed_leaves_none_of_its_pieces_behind() -> None:
    scheduler = started([an_input(0)], workers="abc")
    scheduler.finished("a", asked(scheduler, "a"), a_cut(8), 0.0)
    first, second = asked(scheduler, "a"), asked(scheduler, "b")
    ends_early = JobFailed("input", "it ends early")
    assert scheduler.finished("a", first, ends_early, 1.0) == ()
    assert asked(scheduler, "c", 1.0) == first
    assert len(scheduler.finished("c", first, ends_early, 2.0)) == 1
    counts = scheduler.counts
    assert (counts.failed, counts.waiting, counts.outstanding, counts.recordings_cut) == (1, 0, 0, 0)
    assert scheduler.over
    assert isinstance(second, RenderPiece)
    assert scheduler.finished("b", second, a_piece(second), 3.0) == ()


def joined_from(scheduler: Scheduler, apart: bool) -> JoinPieces:
    cut = asked(scheduler, "a")
    scheduler.finished("a", cut, a_cut(3), 0.0)
    for _ in range(3):
        job = asked(scheduler, "a")
        assert isinstance(job, RenderPiece)
        scheduler.finished("a", job, a_piece(job, apart), 0.0)
    job = asked(scheduler, "a")
    assert isinstance(job, JoinPieces)
    return job


def test_pieces_are_joined_in_their_order_without_their_checksums() -> None:
    scheduler = started([an_input(0)], workers="a")
    job = joined_from(scheduler, apart=False)
    assert [piece.piece for piece in job.pieces] == [0, 1, 2]
    assert not any(piece.decoded_head or piece.decoded_tail for piece in job.pieces)
    assert not job.render_whole
    scheduler.finished("a", job, WHOLE, 0.0)
    assert scheduler.counts.frames == 3 * PIECE


def test_pieces_that_do_not_fit_are_rendered_in_one_go_and_the_reason_is_told() -> None:
    scheduler = started([an_input(0)], workers="a")
    job = joined_from(scheduler, apart=True)
    assert job.render_whole
    assert "piece 1" in job.why_whole
    scheduler.finished("a", job, WHOLE, 0.0)
    assert scheduler.counts.frames == 3 * PIECE + WHOLE.frames


def test_a_recording_whose_pieces_cannot_be_joined_is_rendered_in_one_go_before_it_fails() -> None:
    scheduler = started([an_input(0)], workers="a")
    scheduler.finished("a", joined_from(scheduler, apart=False), JobFailed("input", "piece 1 is gone"), 0.0)
    job = asked(scheduler, "a")
    assert isinstance(job, JoinPieces)
    assert job.render_whole


def test_finished_pieces_of_an_earlier_run_are_used_where_the_cut_is_the_same() -> None:
    ranges = a_cut(3).ranges
    old = [a_piece(RenderPiece(an_input(0), "c0ffee", number, ranges[number], False)) for number in (0, 2)]
    moved = replace(old[1], piece=1)
    scheduler = Scheduler([an_input(0)], finished_pieces=lambda _input, _cut: [*old, moved])
    scheduler.joined("a")
    scheduler.finished("a", asked(scheduler, "a"), a_cut(3), 0.0)
    job = asked(scheduler, "a")
    assert isinstance(job, RenderPiece)
    assert job.piece == 1
    scheduler.finished("a", job, a_piece(job), 0.0)
    assert isinstance(asked(scheduler, "a"), JoinPieces)


def test_results_that_cannot_be_written_end_the_run() -> None:
    scheduler = started([an_input(number) for number in range(9)])
    first, second = asked(scheduler, "a"), asked(scheduler, "b")
    assert scheduler.finished("a", first, JobFailed("output", "the disk is full"), 1.0) == ()
    assert scheduler.fatal == "the disk is full"
    assert scheduler.next_for("a", 1.0) is None
    assert not scheduler.over
    assert len(scheduler.finished("b", second, WHOLE, 1.0)) == 1
    assert scheduler.over


def test_a_worker_whose_machine_lacks_something_rests_while_others_work() -> None:
    scheduler = started([an_input(number) for number in range(50)])
    for _ in range(3):
        scheduler.finished("a", asked(scheduler, "a"), JobFailed("machine", "no OpenGL"), 10.0)
    assert scheduler.next_for("a", 11.0) is None
    scheduler.finished("b", asked(scheduler, "b", 11.0), WHOLE, 12.0)
    assert scheduler.next_for("a", 69.0) is None
    scheduler.finished("a", asked(scheduler, "a", 71.0), JobFailed("machine", "no OpenGL"), 71.0)
    assert scheduler.next_for("a", 71.0 + 119.0) is None
    scheduler.finished("a", asked(scheduler, "a", 71.0 + 121.0), WHOLE, 200.0)
    assert scheduler.next_for("a", 201.0)
    assert scheduler.fatal is None


def test_where_every_machine_lacks_something_the_run_ends() -> None:
    scheduler = started([an_input(number) for number in range(50)])
    for now in range(1000):
        for worker in "ab":
            job = scheduler.next_for(worker, float(now))
            if job:
                assert scheduler.finished(worker, job, JobFailed("machine", "no OpenGL"), float(now)) == ()
    assert scheduler.over
    assert scheduler.fatal == "20 inputs in a row failed, on every worker: no OpenGL"


def test_a_job_that_only_one_machine_lacks_something_for_goes_to_others() -> None:
    scheduler = started([an_input(0)], workers="ab")
    job = asked(scheduler, "a")
    scheduler.finished("a", job, JobFailed("machine", "too large for this GPU"), 0.0)
    assert scheduler.next_for("a", 1.0) is None
    assert asked(scheduler, "b", 1.0) == job


def test_a_job_that_fails_for_the_machines_sake_is_tried_for_minutes_where_there_is_no_other() -> None:
    scheduler, now, began = started([an_input(0)], workers="a"), 0.0, [0.0]
    while not scheduler.over:
        now += 0.5
        if job := scheduler.next_for("a", now):
            began.append(now)
            scheduler.finished("a", job, JobFailed("machine", "no answer from the server"), now)
    assert [after - before for before, after in pairwise(began)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]
    assert scheduler.counts.failed == 1


def test_a_worker_that_hangs_is_overdue_and_twice_is_the_inputs_own_fault() -> None:
    scheduler = started([an_input(0)])
    scheduler.finished("a", asked(scheduler, "a"), a_cut(3), 0.0)
    hung, other = asked(scheduler, "a"), asked(scheduler, "b")
    assert isinstance(other, RenderPiece)
    assert isinstance(hung, RenderPiece)
    scheduler.finished("b", other, a_piece(other), 30.0)  # 0.1 s a frame
    allowed = 1800 + 20 * 0.1 * (PIECE + hung.range.lead)
    assert scheduler.overdue(allowed - 1) == ()
    assert scheduler.overdue(allowed + 1) == ("a",)
    assert scheduler.lost("a", "took too long", hung=True) == ()
    assert asked(scheduler, "b", allowed) == hung
    assert scheduler.overdue(5 * allowed - 1) == ()
    assert scheduler.overdue(5 * allowed + 1) == ("b",)
    (failed,) = scheduler.lost("b", "took too long", hung=True)
    assert failed == FailedResult(hung.input, "input", "took too long", 2)


def test_who_opens_an_input_is_not_overdue_for_a_day_and_longer_for_a_large_one() -> None:
    scheduler = started([an_input(0, 10**9), an_input(1, None)])
    asked(scheduler, "a")
    asked(scheduler, "b")
    assert scheduler.overdue(86_399.0) == ()
    assert scheduler.overdue(86_401.0) == ("b",)
    assert scheduler.overdue(86_401.0 + 50_000.0) == ("a", "b")


def test_an_outcome_that_no_such_job_has_counts_against_the_machine() -> None:
    scheduler = started([an_input(0)], SchedulerLimits(losses=1), workers="a")
    (failed,) = scheduler.finished("a", asked(scheduler, "a"), Cut("c0ffee", (), 1.0), 1.0)
    assert failed == FailedResult(an_input(0), "machine", "the worker answered OpenInput with Cut", 1)


def test_inputs_that_need_no_work_are_read_a_hundred_at_a_time() -> None:
    skipped = [SkippedInput(an_input(number), "failed" if number % 2 else "done") for number in range(250)]
    scheduler = Scheduler(skipped)
    scheduler.joined("a")
    asked_for = 0
    while not scheduler.over:
        assert scheduler.reading
        assert scheduler.next_for("a", 0.0) is None
        asked_for += 1
    assert asked_for == 3
    assert (scheduler.counts.skipped, scheduler.counts.skipped_failed) == (125, 125)


def test_what_the_reader_of_inputs_raises_is_raised() -> None:
    def broken() -> Iterator[ArchiveInput]:
        yield an_input(0)
        raise MediaError("the folder is gone")

    scheduler = Scheduler(broken())
    scheduler.joined("a")
    with pytest.raises(MediaError, match="the folder is gone"):
        scheduler.next_for("a", 0.0)
