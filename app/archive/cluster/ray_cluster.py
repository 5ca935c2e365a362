"""The cluster of Ray's workers: started on this machine, or joined by its address.

Ray runs in processes of its own (ray_process.py); a local one, with all its files, is gone when this is left, and when
this program is killed.
"""

import contextlib
import importlib.util
import itertools
import os
import pickle
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.isolated_python import OURS, python_command
from texelflow.gpu_delegate.targets.llvm.machine import usable_cores

from ...stale_files import remove_if_stale
from ..jobs.jobs import Job
from .cluster import ClusterEnded, ClusterEvent, JobFinished, WorkerLost
from .job_server import WorkerCharge
from .pipe_frames import receive_frame, send_frame
from .ray_errors import last_words
from .ray_messages import (
    JobReturned,
    JobSent,
    RayCommand,
    RayOpened,
    RayRefused,
    RayRequest,
    WorkerEnding,
)

RAY_PORT = 6379
LOCAL_RAY = "local"  # in place of an address: a Ray of our own, on this machine, for this run alone
# Run from the root: Ray's workers import from the folder that its driver was started in, and recordings may lie there
_PROGRAM = f"from {__package__}.ray_process import serve_ray; serve_ray()"
_ANSWER_S, _JOIN_S, _START_S = 5.0, 60.0, 180.0
_END_S = 20.0
_PREFIX = "texelflow-ray-"
_LONGEST_TEMP = 34  # so that sockets in it have names of less than 100 characters
_STALE_S = 60.0  # nobody needs longer to lock a new folder


@dataclass(frozen=True)
class RayOptions:
    """Which Ray, and how many workers; see ArchiveOptions."""

    address: str = LOCAL_RAY
    workers: int | None = None
    dashboard: bool = True


def check_ray() -> None:
    """Raise UsageError where Ray is not installed."""
    try:
        found = importlib.util.find_spec("ray")
    except ValueError:
        found = None
    if found is None:
        raise UsageError("--cluster needs Ray, which is not installed: pip install 'ray[default]'")


def ray_address(text: str) -> str:
    """What --cluster names, as host:port, auto or local. Raises UsageError."""
    if text in ("auto", LOCAL_RAY):
        return text
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(RAY_PORT)
    if "://" in text:
        raise UsageError(f"--cluster {text[:80]}: the head's host:port is needed, as `ray start --head` tells it")
    bare = host.startswith("[") and host.endswith("]")
    if not host or (":" in host and not bare) or not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        raise UsageError(
            f"--cluster {text[:80]}: host:port is needed, such as 10.0.0.1:{RAY_PORT}, or auto, or {LOCAL_RAY}"
        )
    return f"{host}:{port}"


@contextlib.contextmanager
def open_ray(options: RayOptions, charge: WorkerCharge) -> Iterator["RayCluster"]:
    """A cluster, until it is left. Raises UsageError where Ray is lacking, does not answer or does not start."""
    check_ray()
    address = None if options.address == LOCAL_RAY else check_cluster(options.address)
    with contextlib.ExitStack() as stack:
        temp = "" if address else _own_temp(stack)
        cores = max(1, usable_cores() // 2)
        request = RayRequest(address, charge, options.workers, options.workers or cores, temp, options.dashboard)
        cluster = RayCluster(request)
        stack.callback(cluster.close)
        cluster.open()
        yield cluster


class RayCluster:
    """See Cluster. Everything is called on one thread, but for `wake`."""

    dashboard: str | None = None
    token: str | None = None  # that the dashboard of a Ray of our own asks for

    def __init__(self, request: RayRequest) -> None:
        """Starts the process that speaks with Ray."""
        self._request = request
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        pipe = subprocess.PIPE
        command = python_command(_PROGRAM, trusted=OURS)
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._log, start_new_session=True, cwd=os.sep
        )
        self.process_id, self.temp = self._process.pid, request.temp
        self._answers = queue.SimpleQueue[Any]()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._is_open = False
        self._jobs: dict[str, dict[int, Job]] = {}
        self._numbers = itertools.count()

    def open(self) -> None:
        """Wait until Ray answers. Raises UsageError."""
        address, seconds = self._request.address, _JOIN_S if self._request.address else _START_S
        self._send(self._request)
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            answer = RayRefused(f"nothing answers as Ray within {seconds:g} s{self._last_words()}")
        if isinstance(answer, RayOpened):
            self._is_open = True
            self.dashboard, self.token = answer.dashboard, answer.token
            return
        line = answer.line if isinstance(answer, RayRefused) else answer.reason
        where = f"--cluster {address}" if address else "Ray does not start"
        raise UsageError(f"{where}: {line}")

    def submit(self, worker: str, job: Job) -> None:
        """See Cluster."""
        number = next(self._numbers)
        self._jobs.setdefault(worker, {})[number] = job
        self._send(JobSent(worker, number, pickle.dumps(job)))

    def wait(self, seconds: float) -> Sequence[ClusterEvent]:
        """See Cluster."""
        events = list[ClusterEvent]()
        with contextlib.suppress(queue.Empty):
            events += self._event(self._answers.get(timeout=max(0.0, seconds)))
            while True:
                events += self._event(self._answers.get_nowait())
        return events

    def wake(self) -> None:
        """See Cluster."""
        self._answers.put(None)

    def kill(self, worker: str) -> None:
        """See Cluster."""
        self._jobs.pop(worker, None)
        self._send(WorkerEnding(worker))

    def stop(self) -> None:
        """See Cluster."""
        self._send("stop")

    def close(self) -> None:
        """End Ray's process, and with it a Ray of our own. What workers do is lost. Harmless when repeated."""
        try:
            if self._is_open:
                self._send("close")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_S)
        finally:
            self._process.kill()
            self._process.wait()
            if self._request.address is None:
                _end_session(self._process.pid)
            self._reader.join(_ANSWER_S)
            for stream in (self._process.stdin, self._process.stdout, self._log):
                with contextlib.suppress(OSError):
                    if stream:
                        stream.close()

    def _event(self, answer: Any) -> list[ClusterEvent]:
        if isinstance(answer, JobReturned):
            job = self._jobs.get(answer.worker, {}).pop(answer.number, None)
            outcome = pickle.loads(answer.outcome)
            return [JobFinished(answer.worker, job, outcome, answer.memory_bytes)] if job else []
        if isinstance(answer, WorkerLost):
            self._jobs.pop(answer.worker, None)
        return [answer] if answer is not None else []

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError, ValueError):
            while self._process.stdout:
                self._answers.put(receive_frame(self._process.stdout))  # type: ignore[arg-type]
        self._answers.put(ClusterEnded(f"Ray's process has ended{self._last_words()}"))

    def _send(self, command: RayCommand | RayRequest) -> None:
        """What a process that has ended does not get, its end tells."""
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin:
                send_frame(self._process.stdin, command)  # type: ignore[arg-type]

    def _last_words(self) -> str:
        """The last line of what Ray's process had to say."""
        if sys.platform == "win32":
            return ""
        with contextlib.suppress(OSError, ValueError):
            end = os.fstat(self._log.fileno()).st_size
            said = os.pread(self._log.fileno(), 8192, max(0, end - 8192)).decode(errors="replace")
            words = last_words(said)
            return f": {words}" if words else ""
        return ""


def check_cluster(text: str) -> str:
    """See ray_address. Raises UsageError where nobody listens, too: Ray's own code would wait for minutes."""
    address = ray_address(text)
    if address in ("auto", LOCAL_RAY):
        return address
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or f"no answer within {_ANSWER_S:g} s"
        raise UsageError(f"--cluster {address}: nobody answers there ({why}); is `ray start --head` running?") from None
    return address


def _own_temp(stack: contextlib.ExitStack) -> str:
    """A folder for a Ray of our own, removed at the end; what killed programs have left is removed, too."""
    base = tempfile.gettempdir()
    if len(base) + len(_PREFIX) + 9 > _LONGEST_TEMP and os.access("/tmp", os.W_OK):
        base = "/tmp"
    try:
        temp = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
    except OSError as error:
        raise UsageError(f"Ray needs a folder for temporary files: {base}: {error.strerror}") from None
    now = os.stat(temp).st_mtime
    for old in Path(base).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if now - old.stat().st_mtime > _STALE_S:
                remove_if_stale(old)
    stack.callback(shutil.rmtree, temp, ignore_errors=True)
    return temp


def _end_session(leader: int) -> None:
    """Kill what is left of a session of processes, and wait until they are gone. On Linux; elsewhere Ray does so."""
    if sys.platform == "win32":
        return
    until = time.monotonic() + _END_S
    while (left := list(_of_session(leader))) and time.monotonic() < until:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def _of_session(leader: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                yield int(folder.name)
