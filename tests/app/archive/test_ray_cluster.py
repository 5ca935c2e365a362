"""Workers of a real Ray on this machine, started and stopped here."""

import contextlib
import os
import pickle
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import astuple, replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import pytest

from texelflow.app.archive.cluster import ClusterEvent, JobFinished, WorkerJoined, WorkerLost
from texelflow.app.archive.jobs import ArchiveInput, InputDone, JobFailed, OpenInput
from texelflow.app.archive.ray_cluster import RayCluster, RayOptions, check_ray, open_ray, ray_address
from texelflow.app.archive.ray_worker import RayWorker, WorkerCharge, device_of_gpu
from texelflow.gpu_delegate.egl import EglDevice
from texelflow.gpu_delegate.errors import UsageError

ROOT = Path(__file__).parents[3]
RUNNER = ("tests.app.archive.ray_runners", "AddressRunner")
WAIT_S = 60.0
EventType = TypeVar("EventType", WorkerJoined, JobFinished, WorkerLost)


def job(number: int, what: str) -> OpenInput:
    return OpenInput(ArchiveInput(number, what, str(number)))


class Watched:
    """A cluster, and its events one by one."""

    def __init__(self, cluster: RayCluster) -> None:
        self.cluster, self._events = cluster, deque[ClusterEvent]()

    def next(self, kind: type[EventType]) -> EventType:
        """The next event, which has to be of that kind."""
        self._events.extend(() if self._events else self.cluster.wait(WAIT_S))
        event = self._events.popleft()
        assert isinstance(event, kind), event
        return event


def charge_of(folder: Path) -> WorkerCharge:
    """What workers get, and a token in the folder that they look for."""
    token = folder / "token"
    token.write_text("seen", encoding="utf-8")
    return WorkerCharge(version("texelflow"), (str(token), "seen"), RUNNER, pickle.dumps("mark"))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("RAY_ADDRESS", "192.0.2.1:6379")  # a local Ray stays local
        with open_ray(RayOptions(workers=1, dashboard=False), charge_of(tmp_path_factory.mktemp("output"))) as opened:
            yield Watched(opened)
    assert processes_of(opened.process_id) == []
    assert not Path(opened.temp).exists()


@pytest.fixture
def joined(watched: Watched) -> WorkerJoined:
    """The worker: each test leaves one behind that has just joined."""
    return watched.next(WorkerJoined)


def processes_of(session: int) -> list[str]:
    """Command lines of all processes in a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(folder.name)) == session:
                found.append((folder / "cmdline").read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
def test_jobs_are_done_in_order_and_a_killed_worker_is_made_anew(watched: Watched, joined: WorkerJoined) -> None:
    first, second, third = job(1, "ok"), job(2, "raise"), job(3, "sleep 60")
    for each in (first, second, third):
        watched.cluster.submit(joined.worker, each)
    finished = watched.next(JobFinished)
    assert finished.job == first
    assert isinstance(finished.outcome, InputDone)
    assert finished.outcome.notes == ("mark",)
    process, niceness = finished.outcome.worker.split(" nice ")
    assert int(process) == joined.process
    assert int(niceness) >= 10
    assert 10 << 20 < finished.memory_bytes < 1 << 30
    assert watched.next(JobFinished).outcome == JobFailed("machine", "RuntimeError: a mistake of two lines")
    os.kill(joined.process, signal.SIGKILL)
    assert watched.next(WorkerLost) == WorkerLost(joined.worker, "its process was killed, or crashed")
    again = watched.next(WorkerJoined)
    assert again.worker != joined.worker
    assert again.node == joined.node
    watched.cluster.submit(again.worker, third := job(3, "ok"))
    assert watched.next(JobFinished).job == third
    watched.cluster.submit(again.worker, job(4, "sleep 60"))
    watched.cluster.kill(again.worker)


@pytest.mark.slow
def test_a_worker_stops_in_the_middle_of_a_job(watched: Watched, joined: WorkerJoined) -> None:
    for each in (first := job(1, "sleep 60"), second := job(2, "ok")):
        watched.cluster.submit(joined.worker, each)
    time.sleep(0.2)
    watched.cluster.stop()
    stopped = JobFailed("machine", "stopped")
    events = [watched.next(JobFinished), watched.next(JobFinished)]
    assert [(event.job, event.outcome) for event in events] == [(first, stopped), (second, stopped)]
    watched.cluster.wake()
    assert watched.cluster.wait(WAIT_S) == []


def test_a_node_of_another_version_or_without_the_folder_is_refused(tmp_path: Path) -> None:
    charge = charge_of(tmp_path)
    _, process, gpu, line = RayWorker().start(astuple(replace(charge, version="0.0.1")))
    assert (process, gpu, line) == (os.getpid(), None, f"it has texelflow {charge.version}, this run is by 0.0.1")
    *_, line = RayWorker().start((*astuple(replace(charge, version="0.0.1")), "a field of later versions"))
    assert line == f"it has texelflow {charge.version}, this run is by 0.0.1"
    unseen = replace(charge, token=(charge.token[0], "other"), token_s=0.0)
    *_, line = RayWorker().start(astuple(unseen))
    assert line == f"it does not see {tmp_path}: all nodes have to share it"


@pytest.mark.parametrize(
    ("text", "address"),
    [("auto", "auto"), ("head", "head:6379"), ("10.0.0.1:6380", "10.0.0.1:6380"), ("[::1]:7", "[::1]:7")],
)
def test_addresses(text: str, address: str) -> None:
    assert ray_address(text) == address


@pytest.mark.parametrize("text", ["", ":6379", "ray://head:10001", "head:port", "head:0", "head:65536", "::1:6379"])
def test_what_is_no_address_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--cluster .*host:port is needed[^\n]*$"):
        ray_address(text)


def test_where_nobody_listens_one_line_says_so(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with (
            pytest.raises(UsageError, match=f"^--cluster {address}: nobody answers there \\(Connection refused\\)"),
            open_ray(RayOptions(address), charge_of(tmp_path)),
        ):
            raise AssertionError("it opened")


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'ray\[default\]' fsspec"):
        check_ray()


def test_a_gpu_of_rays_is_found_among_those_of_opengl() -> None:
    software = EglDevice(0, 1, is_software=True)
    first, second = EglDevice(1, 2, cuda=1), EglDevice(2, 3, cuda=0)
    assert device_of_gpu([software, first, second], "0") == second
    assert device_of_gpu([software, first, second], "2") is None
    plain = [software, EglDevice(1, 2), EglDevice(2, 3)]
    assert device_of_gpu(plain, "1") == plain[2]
    assert device_of_gpu(plain, "2") is None
    assert device_of_gpu(plain, "GPU-8e1f") is None
    assert device_of_gpu(plain[:2], "GPU-8e1f") == plain[1]
    assert device_of_gpu([software], "0") is None
