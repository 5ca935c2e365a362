"""Starts a Ray cluster of several nodes on this machine, each of which can be killed as a whole.

All processes of a node carry a mark in their environment, which those that they start inherit: by it they are found,
and nothing else is. `ray stop` would end clusters of others, too.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from tests.helpers.running import ROOT

HOST = "127.0.0.1"
STORE_BYTES = 80 << 20  # about the least that Ray takes
NODE_MARK = "TEXELFLOW_PROOF_NODE"
_START_S = 120.0
_ATTEMPTS = 3  # where others keep the machine busy: Ray gives a node half a minute to start
_OF_RAY = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")  # IDLE waits for an actor
DRIVER = "driver"  # the name of processes that join the cluster, and are on no node
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_ANY_PORT = ("dashboard-agent-listen-port", "min-worker-port", "max-worker-port")  # several nodes have one machine


@dataclass(frozen=True)
class MarkedProcess:
    """One process of a node. Ray gives those of actors the title ray::CLASS or ray::CLASS.METHOD."""

    pid: int
    title: str
    resident_bytes: int

    @property
    def is_actor(self) -> bool:
        """Whether it is an actor's of a program, busy or waiting."""
        return self.title.startswith("ray::") and not self.title.startswith(_OF_RAY)


class RayNodes:
    """A head that does no work, and nodes that do. Leaving the with-block kills all that it started."""

    def __init__(self) -> None:
        self._ray = (sys.executable, "-m", "ray.scripts.scripts")
        self._token = secrets.token_hex(32)
        self._mark = secrets.token_hex(8)
        self._folder = tempfile.mkdtemp(prefix="tfr")  # short: a socket's path has 107 characters
        self.names: list[str] = []
        with socket.create_server((HOST, 0)) as free:
            self.address = f"{HOST}:{free.getsockname()[1]}"

    def __enter__(self) -> "RayNodes":
        try:
            port = self.address.rpartition(":")[2]
            dashboard = ("--include-dashboard=true", "--dashboard-port=0")
            self._start("head", "--head", f"--port={port}", "--num-cpus=0", f"--temp-dir={self._folder}/r", *dashboard)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(self.names):
            self.kill(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def environment(self) -> Mapping[str, str]:
        """That of a program that joins: with the secret of this cluster, which no other knows."""
        return self._environment_of(DRIVER)

    def add(self, name: str, cpus: int) -> None:
        """One more node, which is there when this returns."""
        self._start(name, f"--address={self.address}", f"--num-cpus={cpus}", "--num-gpus=0")

    def processes(self, name: str) -> list[MarkedProcess]:
        """All of one node that live."""
        return list(marked(f"{NODE_MARK}={self._mark}/{name}"))

    def kill(self, name: str) -> int:
        """SIGKILL to all processes of a node, those that they start meanwhile too; how many there were."""
        count = kill_marked(f"{NODE_MARK}={self._mark}/{name}")
        self.names = [other for other in self.names if other != name]
        return count

    def store_line(self) -> str:
        """What Ray says of the object stores of all nodes, in one line."""
        command = [*self._ray, "memory", f"--address={self.address}", "--stats-only"]
        environment = self._environment_of("asked")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return next(line.strip() for line in done.stdout.splitlines() if "Plasma memory usage" in line)

    def _start(self, name: str, *arguments: str) -> None:
        self.names.append(name)
        command = [
            *self._ray, "start", f"--node-ip-address={HOST}", f"--object-store-memory={STORE_BYTES}",
            "--disable-usage-stats", *(f"--{port}=0" for port in _ANY_PORT), *arguments,
        ]  # fmt: skip
        log = Path(self._folder, f"{name}.txt")
        for _ in range(_ATTEMPTS):
            with log.open("wb") as file:
                code = subprocess.run(
                    command, env=self._environment_of(name), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file,
                    stderr=file, timeout=_START_S, check=False, start_new_session=True,
                ).returncode  # fmt: skip
            if not code:
                return
            kill_marked(f"{NODE_MARK}={self._mark}/{name}")  # what has started in part
        raise RuntimeError(f"ray start of {name} ended with exit code {code}: {log.read_text()[-2000:]}")

    def _environment_of(self, name: str) -> dict[str, str]:
        ray = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self._token,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ADDRESS": "",
        }
        return {**os.environ, **ray, NODE_MARK: f"{self._mark}/{name}"}


def marked(mark: str) -> Iterator[MarkedProcess]:
    """Living processes with this entry in the environment that they were started with."""
    wanted = mark.encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile, or is another user's
            folder = Path("/proc", entry)
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                resident = int((folder / "statm").read_text().split()[1]) * _PAGE_BYTES
                if resident:  # one that is dead, and not yet collected, has nothing
                    yield MarkedProcess(int(entry), title, resident)


def kill_marked(mark: str) -> int:
    """SIGKILL to all of them, those that they start meanwhile too; how many there were."""
    killed, end = set[int](), monotonic() + _START_S
    while found := {process.pid for process in marked(mark)}:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
        assert monotonic() < end, f"processes {sorted(found)} do not end"
        sleep(0.05)
    return len(killed)
