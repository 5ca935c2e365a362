"""Workers of a real Ray on this machine, started and stopped here."""

import contextlib
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from tests.app.archive.cluster.clusters import Watched, charge_of, job
from tests.helpers.markers import exhaustive
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.archive.cluster.cluster import JobFinished, WorkerJoined, WorkerLost
from texelflow.app.archive.cluster.ray_cluster import RayCluster, RayOptions, check_ray, open_ray, ray_address
from texelflow.app.archive.cluster.ray_worker import RayWorker, device_of_gpu, open_to_others
from texelflow.app.archive.jobs.jobs import InputDone, JobFailed
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.targets.gl.egl import EglDevice

ROOT = Path(__file__).parents[4]
WAIT_S = PATIENCE_S


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
    for process in processes_in(session):
        with contextlib.suppress(OSError):
            found.append(Path("/proc", str(process), "cmdline").read_text(encoding="utf-8"))
    return found


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


def test_a_ray_of_our_own_is_the_users_alone(watched: Watched, joined: WorkerJoined) -> None:
    """Ray makes the folder of its sessions everybody's, and listens on all addresses, unless it is told otherwise."""
    cluster = watched.cluster
    assert isinstance(cluster, RayCluster)
    folder = Path(cluster.temp)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (session,) = {path.resolve() for path in folder.glob("r/session_*")}
    assert session.stat().st_mode & 0o002, "it is nothing to be careful about any more"
    assert not open_to_others(session)
    sockets = {socket for process in processes_in(cluster.process_id) for socket in sockets_of(process)}
    found = [address for inode, address in tcp_listeners().items() if inode in sockets]
    assert len(found) > 3
    assert all(address.endswith("0100007F") for address in found), found
    cluster.submit(joined.worker, job(1, "ok"))
    watched.next(JobFinished)
    cluster.submit(joined.worker, job(2, "sleep 60"))
    cluster.kill(joined.worker)


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
    _, process, gpu, line, _ = RayWorker().start(astuple(replace(charge, version="0.0.1")))
    assert (process, gpu, line) == (os.getpid(), None, f"it has texelflow {charge.version}, this run is by 0.0.1")
    *_, line, _ = RayWorker().start((*astuple(replace(charge, version="0.0.1")), "a field of later versions"))
    assert line == f"it has texelflow {charge.version}, this run is by 0.0.1"
    unseen = replace(charge, token=(charge.token[0], "other"), token_s=0.0)
    *_, line, _ = RayWorker().start(astuple(unseen))
    assert line == f"it does not see {tmp_path}: all nodes have to share it"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("auto", "auto"),
        ("local", "local"),
        ("head", "head:6379"),
        ("10.0.0.1:6380", "10.0.0.1:6380"),
        ("[::1]:7", "[::1]:7"),
    ],
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
    with pytest.raises(UsageError, match=r"pip install 'ray\[default\]'"):
        check_ray()


def processes_in(session: int) -> list[int]:
    """Of one session of processes."""
    found = list[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(folder.name)) == session:
                found.append(int(folder.name))
    return found


def sockets_of(process: int) -> list[str]:
    """Inodes."""
    found = list[str]()
    with contextlib.suppress(OSError):
        for each in Path("/proc", str(process), "fd").iterdir():
            with contextlib.suppress(OSError):
                if (link := os.readlink(each)).startswith("socket:["):
                    found.append(link[8:-1])
    return found


def tcp_listeners() -> dict[str, str]:
    """Addresses, in Linux' hexadecimal, by inode."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]
    ]
    return {row[9]: row[1].partition(":")[0] for row in rows if row[3] == "0A"}


def test_a_folder_is_open_where_nothing_above_it_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "session"
    folder.mkdir(parents=True)
    for path in (folder, *folder.parents[:-1]):
        if path.is_relative_to(tmp_path):
            path.chmod(0o755)
    outside = [path for path in tmp_path.parents if not path.stat().st_mode & 0o001]
    folder.chmod(0o777)
    assert open_to_others(folder) == (not outside)
    folder.chmod(0o1777)
    assert not open_to_others(folder)
    folder.chmod(0o777)
    folder.parent.chmod(0o700)
    assert not open_to_others(folder)
    assert not open_to_others(tmp_path / "none")


@exhaustive
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
