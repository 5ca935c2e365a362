"""The process that speaks with Ray: reads commands on stdin, writes what workers do on stdout, ends with its parent.

It is apart because what Ray's own code does where a cluster is lost, or was none, is to wait, or to end its process.
"""

import contextlib
import importlib.util
import os
import queue
import secrets
import shutil
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from ...console import one_line
from ...stale_files import locked
from .cluster import ClusterEnded, ClusterNode, NodeRefused, NodeTold, WorkerJoined, WorkerLost
from .in_order import InOrder
from .job_server import WorkerStart
from .pipe_frames import receive_frame, send_frame
from .ray_errors import death_reason, refusal_reason
from .ray_messages import (
    JobReturned,
    JobSent,
    RayAnswer,
    RayOpened,
    RayRefused,
    RayRequest,
    WorkerEnding,
)
from .ray_worker import RayWorker
from .worker_places import NodeRecord, NodeSize, node_names, places_of, spread

_STORE_BYTES = 80 << 20  # about the least that Ray takes; nothing is put there
_NODES_EVERY_S = 2.0
_HEAD_ANSWERS_S = 20.0
_WITHOUT_NODES_S = 30.0
_NICENESS = 10
_MOST_LOG = 1 << 16
_OTHER_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # on Linux, too; without them Ray listens on loopback alone
_CONTROL = "control"  # calls that do not wait for the job at hand


def serve_ray() -> None:
    """One run, from the request to the end of stdin, and of this process."""
    try:
        _serve()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)  # threads that read and watch never end


def _serve() -> None:
    commands, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints is no answer
    request: RayRequest = receive_frame(commands)
    with contextlib.ExitStack() as stack:
        if request.address is None:
            stack.enter_context(locked(request.temp))
            stack.callback(shutil.rmtree, request.temp, ignore_errors=True)
        try:
            opened, gcs_address = _open(request)
        except BaseException as error:
            send_frame(answers, RayRefused(_refusal(error)))
            return
        import ray

        stack.callback(ray.shutdown)
        if request.address is None and sys.platform != "win32":
            os.setpriority(os.PRIO_PGRP, 0, _NICENESS)  # all that Ray has started here, every thread
        send_frame(answers, opened)
        run = _RayRun(request, answers)
        run.guarded(run.run, commands, gcs_address)


def _open(request: RayRequest) -> tuple[RayOpened, str]:
    """Ray, started or joined, and where its head listens."""
    token = None
    if request.address is None:
        token = secrets.token_hex(32)
        for name in ("RAY_ADDRESS", "RAY_TMPDIR", "RAY_AUTH_TOKEN_PATH"):
            os.environ.pop(name, None)
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
        os.environ[_OTHER_MACHINES] = "0"
    import ray

    start: Any = ray.init
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if request.address is None:
        # Ray makes the folder of its sessions everybody's; the one above it is the user's alone
        temp = os.path.join(request.temp, "r")
        own = {"include_dashboard": request.dashboard, "object_store_memory": _STORE_BYTES, "_temp_dir": temp}
        try:
            context = start("local", num_cpus=request.cpus, **own, **quiet)
        except Exception as error:  # it has half a minute, which is not enough on a machine that is busy just now
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
            context = start("local", num_cpus=request.cpus, **own, **quiet)
    else:
        context = start(request.address, **quiet)
    link = context.dashboard_url or None
    if link and "://" not in link:
        link = f"http://{link}"
    if importlib.util.find_spec("ray._private.authentication") is None:
        token = None  # older versions know none
    return RayOpened(ray.__version__, link, token), context.address_info["gcs_address"]


def _refusal(error: BaseException | None) -> str:
    """The error's text, those of what it came from, and what Ray's own code wrote."""
    texts = list[str]()
    while error is not None:
        texts.append(str(error) or type(error).__name__)
        error = error.__cause__ or error.__context__
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            sys.stderr.flush()
            texts.append(os.pread(2, _MOST_LOG, 0).decode(errors="replace"))
    return refusal_reason("\n".join(texts))


@dataclass
class _Node:
    """A node that lives."""

    told: ClusterNode
    size: NodeSize
    record: NodeRecord = field(default_factory=NodeRecord)
    is_refused: bool = False
    is_noted: bool = False  # what there is to say of it has been said


@dataclass
class _Worker:
    """An actor, and where it is."""

    name: str
    actor: Any
    node: _Node
    uses_gpu: bool
    process: int | None = None  # once it is ready
    jobs: InOrder[tuple[bytes, int]] = field(default_factory=InOrder)

    @property
    def is_ready(self) -> bool:
        return self.process is not None


class _RayRun:
    """One thread makes all decisions; Ray's threads, and those that watch, put into its inbox."""

    def __init__(self, request: RayRequest, answers: BinaryIO) -> None:
        self._request, self._answers, self._lock = request, answers, threading.Lock()
        self._inbox = queue.SimpleQueue[Any]()
        self._nodes: dict[str, _Node] = {}
        self._workers: dict[str, _Worker] = {}
        self._made = 0
        self._stopping = False
        self._last_refusal = ""
        self._usable_at = time.monotonic()
        import ray

        actor_class: Any = ray.remote
        self._remote = actor_class(concurrency_groups={_CONTROL: 1})(RayWorker)

    def run(self, commands: BinaryIO, gcs_address: str) -> None:
        """Until the end of commands."""
        for watch in ((self._listen, commands), (self._watch_nodes,), (self._watch_head, gcs_address)):
            threading.Thread(target=self.guarded, args=watch, daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                message = self._inbox.get(timeout=1.0)
                if message == "close":
                    return
                self._take(message)
            if not self._stopping:
                self._make_workers(time.monotonic())

    def _answer(self, answer: RayAnswer) -> None:
        with self._lock, contextlib.suppress(OSError):
            send_frame(self._answers, answer)

    def guarded(self, watch: Any, *arguments: Any) -> None:
        """Call it; where it fails, nothing more will happen."""
        try:
            watch(*arguments)
        except Exception as error:
            traceback.print_exc()
            self._answer(ClusterEnded(one_line(f"Ray fails: {error}")[:400]))

    # Threads that watch -----------------------------------------------------------------------------------------------

    def _listen(self, commands: BinaryIO) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._inbox.put(receive_frame(commands))
        self._inbox.put("close")

    def _watch_nodes(self) -> None:
        import ray

        nodes: Any = ray.nodes
        while True:
            began = time.monotonic()
            self._inbox.put([node for node in nodes() if node["Alive"]])
            time.sleep(max(_NODES_EVERY_S, 10 * (time.monotonic() - began)))

    def _watch_head(self, gcs_address: str) -> None:
        """Ray's own calls wait for a head that is gone, for a minute; then its code ends this process."""
        host, _, port = gcs_address.rpartition(":")
        answered = time.monotonic()
        while time.monotonic() - answered < _HEAD_ANSWERS_S:
            with contextlib.suppress(OSError):
                socket.create_connection((host.strip("[]"), int(port)), timeout=_NODES_EVERY_S).close()
                answered = time.monotonic()
            time.sleep(_NODES_EVERY_S)
        self._answer(ClusterEnded(f"Ray's head at {gcs_address} does not answer any more"))

    # What has happened ------------------------------------------------------------------------------------------------

    def _take(self, message: Any) -> None:
        import ray

        if isinstance(message, JobSent):
            worker = self._workers.get(message.worker)
            if worker:
                worker.jobs.submitted(message.number)
                self._follow(worker, worker.actor.run.remote(message.job), message.number)
        elif isinstance(message, WorkerEnding):
            worker = self._workers.get(message.worker)
            if worker:
                ray.kill(worker.actor)
                self._forget(worker)
        elif message == "stop":
            self._stopping = True
            for worker in self._workers.values():
                worker.actor.stop.options(concurrency_group=_CONTROL).remote()
        elif isinstance(message, list):
            self._see_nodes(message)
        else:
            self._take_result(*message)

    def _follow(self, worker: _Worker, reference: Any, number: int | None) -> None:
        """Have what comes of a call put into the inbox, with the number of its job; None for a start."""
        future: Future[Any] = reference.future()
        future.add_done_callback(lambda done: self._inbox.put((worker, number, done)))

    def _take_result(self, worker: _Worker, number: int | None, done: "Future[Any]") -> None:
        if self._workers.get(worker.name) is not worker:
            return
        error = done.exception()
        if error is not None:
            self._lose(worker, error)
        elif number is None:
            self._start(worker, WorkerStart(*done.result()))
        else:
            worker.node.record.finished()
            for each, outcome in worker.jobs.finished(number, done.result()):
                self._answer(JobReturned(worker.name, each, *outcome))

    def _start(self, worker: _Worker, start: WorkerStart) -> None:
        import ray

        without_opengl = worker.uses_gpu and start.gpu is None
        if start.refusal:
            self._refuse(worker.node, start.refusal)
        elif without_opengl and worker.node.size.gpus:
            worker.node.size = replace(worker.node.size, gpus=0)
            self._answer(NodeTold(worker.node.told, "OpenGL does not have the GPUs that Ray counts; its CPUs work"))
        if start.refusal or without_opengl:
            ray.kill(worker.actor)
            self._workers.pop(worker.name, None)
            return
        if start.note and not worker.node.is_noted:
            worker.node.is_noted = True
            self._answer(NodeTold(worker.node.told, start.note))
        worker.process = start.process
        worker.node.record.started()
        self._answer(WorkerJoined(worker.name, worker.node.told, start.process, start.gpu))

    def _lose(self, worker: _Worker, error: BaseException) -> None:
        import ray

        ray.kill(worker.actor)  # perhaps it is alive, and only the way to it was interrupted
        cause = getattr(error, "cause", None)
        reason = one_line(f"{type(cause).__name__}: {cause}" if cause else death_reason(str(error)))[:400]
        reason += self._last_words(worker)
        node_lost = "node has died" in str(error) or worker.node.told.id not in self._nodes
        self._forget(worker)
        if worker.is_ready:
            self._answer(WorkerLost(worker.name, reason, node_lost))
        record, node = worker.node.record, worker.node
        others = any(each.node is not node and each.is_ready for each in self._workers.values())
        if not node.is_refused and not node_lost and record.unfit(others):
            self._refuse(node, f"{record.lost_in_a_row} workers ended in a row with nothing finished: {reason}")

    def _last_words(self, worker: _Worker) -> str:
        """What a worker of our own Ray wrote of its crash."""
        for log in Path(self._request.temp).glob(f"r/session_2*/logs/worker-*-{worker.process}.err"):
            with contextlib.suppress(OSError):
                for line in log.read_text(encoding="utf-8", errors="replace")[-_MOST_LOG:].splitlines():
                    if line.startswith(("Fatal Python error", "[failure_signal_handler", "*** SIG")):
                        return f": {one_line(line)[:200]}"
        return ""

    def _forget(self, worker: _Worker) -> None:
        self._workers.pop(worker.name, None)
        worker.node.record.lost(worker.is_ready, time.monotonic())

    def _refuse(self, node: _Node, line: str) -> None:
        """No worker is made there any more; those that work go on."""
        if not node.is_refused:
            node.is_refused = True
            self._last_refusal = f"{node.told.name}: {line}"
            self._answer(NodeRefused(node.told, line))

    # Nodes and their workers ------------------------------------------------------------------------------------------

    def _see_nodes(self, living: list[Mapping[str, Any]]) -> None:
        names = node_names([(node["NodeID"], node["NodeManagerHostname"]) for node in living])
        for node in living:
            if node["NodeID"] not in self._nodes:
                resources = node["Resources"]
                size = NodeSize(resources.get("CPU", 0), resources.get("GPU", 0), self._request.address is None)
                self._nodes[node["NodeID"]] = _Node(ClusterNode(node["NodeID"], names[node["NodeID"]]), size)
        for gone in set(self._nodes) - set(names):
            self._answer(NodeTold(self._nodes.pop(gone).told, "it is lost; others do its work"))
            for worker in [each for each in self._workers.values() if each.node.told.id == gone]:
                self._workers.pop(worker.name, None)
                if worker.is_ready:
                    self._answer(WorkerLost(worker.name, f"its node {worker.node.told.name} was lost", node_lost=True))

    def _make_workers(self, now: float) -> None:
        fit = {name: node for name, node in self._nodes.items() if not node.is_refused}
        wanted = spread({name: places_of(node.size) for name, node in fit.items()}, self._request.workers)
        for name, count in wanted.items():
            there = sum(worker.node is fit[name] for worker in self._workers.values())
            if there < count and now >= fit[name].record.not_before:
                for _ in range(count - there):
                    self._make_worker(fit[name])
        if self._workers or any(wanted.values()):
            self._usable_at = now
        elif self._nodes and (self._last_refusal or now - self._usable_at > _WITHOUT_NODES_S):
            self._stopping = True
            why = self._last_refusal or "no node has a GPU or a CPU for workers"
            self._answer(ClusterEnded(f"no node is left to work: {why}"))

    def _make_worker(self, node: _Node) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._made += 1
        place = NodeAffinitySchedulingStrategy(node.told.id, soft=False)
        uses_gpu = node.size.gpus >= 1
        needs = {"num_gpus": 1, "num_cpus": 0} if uses_gpu else {"num_cpus": 1}
        ways = {"max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": place}
        actor = self._remote.options(**needs, **ways).remote()
        worker = self._workers[f"worker {self._made}"] = _Worker(f"worker {self._made}", actor, node, uses_gpu)
        self._follow(worker, actor.start.remote(astuple(self._request.charge)), None)
