"""Workers of a real pool on this machine: whatever ends them, another one comes in their place."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.archive.cluster.clusters import Watched, charge_of, job
from tests.helpers.running import ROOT
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.archive.cluster.cluster import ClusterEnded, JobFinished, WorkerJoined, WorkerLost
from texelflow.app.archive.cluster.pool_cluster import PoolCluster, worker_places
from texelflow.app.archive.jobs.jobs import InputDone, JobFailed


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PoolCluster]:
    monkeypatch.chdir(tmp_path)  # workers import nothing from the current folder
    monkeypatch.syspath_prepend(ROOT)
    opened = PoolCluster(charge_of(tmp_path), [None])
    yield opened
    processes = opened.process_ids
    opened.close()
    assert not any(map(is_alive, processes))


def is_alive(process: int) -> bool:
    """Whether it runs, or could: a zombie cannot."""
    with contextlib.suppress(OSError, IndexError):
        stat = Path("/proc", str(process), "stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] != "Z"
    return False


def listening(process: int) -> list[str]:
    """Sockets that a process has, of any kind."""
    return [
        link
        for each in Path("/proc", str(process), "fd").iterdir()
        if (link := os.readlink(each)).startswith("socket:")
    ]


def test_jobs_are_done_in_order_without_a_socket_and_a_lost_worker_is_replaced(pool: PoolCluster) -> None:
    watched = Watched(pool)
    joined = watched.next(WorkerJoined)
    first, second, third = job(1, "ok"), job(2, "raise"), job(3, "sleep 60")
    for each in (first, second, third):
        pool.submit(joined.worker, each)
    finished = watched.next(JobFinished)
    assert finished.job == first
    assert isinstance(finished.outcome, InputDone)
    assert finished.outcome.notes == ("mark",)
    process, niceness = finished.outcome.worker.split(" nice ")
    assert (int(process), int(niceness) >= 10) == (joined.process, True)
    assert 10 << 20 < finished.memory_bytes < 1 << 30
    assert watched.next(JobFinished).outcome == JobFailed("machine", "RuntimeError: a mistake of two lines")
    assert listening(joined.process) == []
    assert Path(f"/proc/{joined.process}/oom_score_adj").read_text() == "1000\n"
    os.kill(joined.process, signal.SIGKILL)
    lost = watched.next(WorkerLost)
    assert lost.worker == joined.worker
    assert lost.reason == "its process was ended by SIGKILL, by somebody, or by the system for want of memory"
    again = watched.next(WorkerJoined)
    assert (again.worker != joined.worker, again.node) == (True, joined.node)
    pool.submit(joined.worker, job(4, "ok"))  # it is not there any more
    pool.submit(again.worker, job(5, "sleep 60"))
    pool.kill(again.worker)
    assert not is_alive(again.process)
    last = watched.next(WorkerJoined)
    pool.submit(last.worker, third := job(3, "ok"))
    assert watched.next(JobFinished).job == third


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("crash", "its process was ended by SIGSEGV: Fatal Python error: Segmentation fault"),
        ("hog", "its process was ended by SIGABRT: Fatal Python error: Aborted"),
    ],
)
def test_what_ends_a_worker_is_told_in_one_line(pool: PoolCluster, what: str, reason: str) -> None:
    watched = Watched(pool)
    pool.submit(watched.next(WorkerJoined).worker, job(1, what))
    assert watched.next(WorkerLost).reason == reason
    pool.submit(watched.next(WorkerJoined).worker, job(2, "ok"))
    assert isinstance(watched.next(JobFinished).outcome, InputDone)


def test_a_worker_that_cannot_run_any_more_is_replaced(pool: PoolCluster) -> None:
    pool._silent_s = 12.0
    watched = Watched(pool)
    joined = watched.next(WorkerJoined)
    pool.submit(joined.worker, job(1, "freeze"))
    lost = watched.next(WorkerLost)
    assert lost.reason.startswith("nothing was heard of it for ")
    assert not is_alive(joined.process)
    assert watched.next(WorkerJoined).worker != joined.worker


def test_workers_are_not_to_blame_for_a_driver_that_did_not_run(
    pool: PoolCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(pool)
    worker = watched.next(WorkerJoined).worker
    monkeypatch.setattr("texelflow.app.archive.cluster.pool_cluster._ASLEEP_S", 0.5)
    pool._silent_s = 1.0
    time.sleep(1.5)  # as after Ctrl-Z
    assert pool.wait(0.0) == []
    pool._silent_s = 60.0
    pool.submit(worker, job(1, "ok"))
    assert watched.next(JobFinished).worker == worker


def test_a_worker_stops_in_the_middle_of_a_job(pool: PoolCluster) -> None:
    watched = Watched(pool)
    worker = watched.next(WorkerJoined).worker
    for each in (first := job(1, "sleep 60"), second := job(2, "ok")):
        pool.submit(worker, each)
    pool.stop()
    stopped = JobFailed("machine", "stopped")
    events = [watched.next(JobFinished), watched.next(JobFinished)]
    assert [(event.job, event.outcome) for event in events] == [(first, stopped), (second, stopped)]
    pool.wake()
    assert pool.wait(PATIENCE_S) == []


def test_workers_that_do_not_start_end_the_run_in_one_line(tmp_path: Path) -> None:
    charge = replace(charge_of(tmp_path), config=pickle.dumps("mark")[:-1])
    cluster = PoolCluster(charge, [None])
    ended = Watched(cluster).next(ClusterEnded)
    assert ended.reason.startswith("workers do not start: its process ended with exit code 1: ")
    assert "\n" not in ended.reason
    assert cluster.process_ids == ()
    cluster.close()
    foreign = PoolCluster(replace(charge, version="0.0.1"), [None])
    assert "this run is by 0.0.1" in Watched(foreign).next(ClusterEnded).reason
    foreign.close()


def test_workers_end_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from pathlib import Path
        from tests.app.archive.cluster.clusters import Watched, charge_of, job
        from texelflow.app.archive.cluster.cluster import WorkerJoined
        from texelflow.app.archive.cluster.pool_cluster import PoolCluster
        pool = PoolCluster(charge_of(Path({str(tmp_path)!r})), [None])
        joined = Watched(pool).next(WorkerJoined)
        pool.submit(joined.worker, job(1, "sleep 600"))
        print(joined.process, flush=True)
        sys.stdin.read()
    """)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, cwd=tmp_path) as driver:
        assert driver.stdout
        process = int(driver.stdout.readline())
        assert is_alive(process)
        driver.kill()
    until(lambda: not is_alive(process))


def test_places_are_gpus_in_turn_or_half_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texelflow.app.archive.cluster.pool_cluster.usable_cores", lambda: 9)
    assert worker_places([], None) == [None] * 4
    assert worker_places([], 2) == [None] * 2
    assert worker_places(["1", "2"], None) == ["1", "2"]
    assert worker_places(["1", "2"], 3) == ["1", "2", "1"]
