"""Inputs that lie elsewhere, fetched from a real server of this machine: whole, once, and no more than have room."""

import hashlib
import importlib.util
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.archive.inputs import fetch_cache, fetching
from texelflow.app.archive.inputs.fetching import InputCache, local_path
from texelflow.app.archive.jobs.failures import MachineError, StoppedError
from texelflow.app.archive.jobs.jobs import ArchiveInput
from texelflow.app.stale_files import locked
from texelflow.gpu_delegate.base.errors import MediaError

pytest.importorskip("fsspec")

ROOM = 1 << 20


class Server:
    """Files by path, and what was asked for; `troubles` are answers that come before the right one."""

    def __init__(self) -> None:
        self.files = dict[str, bytes]()
        self.troubles = list[str]()
        self.reads = list[str]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer(with_body=False)

            def do_GET(self) -> None:
                self._answer(with_body=True)

            def _answer(self, with_body: bool) -> None:
                data = outer.files.get(self.path)
                trouble = outer.troubles.pop(0) if with_body and outer.troubles else ""
                if data is None or trouble.isdecimal():
                    self.send_error(int(trouble or 404))
                    return
                if with_body:
                    outer.reads.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if trouble == "short":
                    self.wfile.write(data[: len(data) // 2])
                    self.close_connection = True
                elif with_body and trouble != "silent":
                    self.wfile.write(data)
                elif with_body:
                    time.sleep(5)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def stopping() -> threading.Event:
    return threading.Event()


@pytest.fixture
def cache(tmp_path: Path, stopping: threading.Event) -> InputCache:
    return InputCache(tmp_path / "cache", ROOM, stopping, waits_s=(0.01, 0.01))


def at(server: Server, name: str, data: bytes, time_ns: int = 1) -> ArchiveInput:
    """A file of the server's, as lists of inputs have it."""
    server.files[name] = data
    return ArchiveInput(0, server.address + name, "result", len(data), time_ns)


def copies(tmp_path: Path) -> int:
    return len(list((tmp_path / "cache").glob("*/data*")))


def test_a_copy_is_whole_and_fetched_once(server: Server, cache: InputCache, tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000
    source = at(server, "/talk%20one.mp4?key=x", data)
    for _ in range(2):
        with cache.open(source) as held:
            assert held.path.read_bytes() == data
            assert held.path.suffix == ".mp4"
            assert held.sha256() == hashlib.sha256(data).hexdigest()
    assert len(server.reads) == 1
    with cache.open(at(server, "/talk%20one.mp4?key=x", data[1:], 2)) as held:
        assert held.path.read_bytes() == data[1:], "another time, another file"


def test_workers_of_a_machine_share_copies(server: Server, tmp_path: Path, stopping: threading.Event) -> None:
    """All of them read at once what one of them has fetched."""
    source, together = at(server, "/talk.mp4", b"x" * 5000), threading.Barrier(3)

    def read() -> bytes:
        with InputCache(tmp_path / "cache", ROOM, stopping).open(source) as held:
            together.wait(PATIENCE_S)
            return held.path.read_bytes()

    with ThreadPoolExecutor(3) as threads:
        assert [each.result() for each in [threads.submit(read) for _ in range(3)]] == [b"x" * 5000] * 3
    assert len(server.reads) == 1


def test_what_was_used_least_lately_makes_room(server: Server, cache: InputCache, tmp_path: Path) -> None:
    sources = [at(server, f"/{number}.mp4", bytes([number]) * (ROOM * 2 // 5)) for number in range(4)]
    for source in (sources[0], sources[1], sources[0], sources[2], sources[0]):
        with cache.open(source) as held:
            assert held.path.stat().st_size == ROOM * 2 // 5
        assert copies(tmp_path) <= 2
        time.sleep(0.02)
    assert server.reads == ["/0.mp4", "/1.mp4", "/2.mp4"], "the first one was used in between"
    with cache.open(sources[0]) as first, cache.open(sources[3]) as last:
        assert (first.path.exists(), last.path.exists()) == (True, True), "who uses one keeps it"


def test_what_is_larger_than_the_cache(server: Server, cache: InputCache) -> None:
    source = at(server, "/large.mp4", bytes(ROOM + 1))
    with pytest.raises(MachineError, match="no room for a copy"), cache.open(source):
        pass
    unknown = ArchiveInput(0, source.address, "result")
    with pytest.raises(MachineError, match="no room for a copy"), cache.open(unknown):
        pass


@pytest.mark.parametrize("trouble", ["503", "429", "short"])
def test_what_passes_is_tried_again(server: Server, cache: InputCache, trouble: str) -> None:
    source = at(server, "/talk.mp4", b"x" * 5000)
    server.troubles = [trouble, trouble]
    with cache.open(source) as held:
        assert held.path.read_bytes() == b"x" * 5000


@pytest.mark.parametrize("trouble", ["500", "short"])
def test_what_does_not_pass_is_the_machines(server: Server, cache: InputCache, trouble: str, tmp_path: Path) -> None:
    source = at(server, "/talk.mp4", b"x" * 5000)
    server.troubles = [trouble] * 9
    with pytest.raises(MachineError, match="cannot fetch"), cache.open(source):
        pass
    assert not copies(tmp_path)


@pytest.mark.parametrize("code", ["401", "403", "404", "410"])
def test_what_is_denied_is_the_inputs(server: Server, cache: InputCache, code: str) -> None:
    source = at(server, "/talk.mp4", b"x")
    server.troubles = [code] * 9
    with pytest.raises(MediaError, match="cannot fetch"), cache.open(source):
        pass


def test_nobody_is_there(cache: InputCache) -> None:
    with (
        pytest.raises(MachineError, match="cannot fetch"),
        cache.open(ArchiveInput(0, "http://127.0.0.1:9/x.mp4", "x")),
    ):
        pass


def test_a_server_that_says_nothing(
    server: Server, cache: InputCache, stopping: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = at(server, "/talk.mp4", b"x" * 5000)
    server.troubles = ["silent"] * 9
    monkeypatch.setattr(fetching, "_STALL_S", 0.3)
    with pytest.raises(MachineError, match="cannot fetch"), cache.open(source):
        pass
    monkeypatch.undo()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: cache.open(source).__enter__())
        reads = len(server.reads)
        until(lambda: len(server.reads) > reads)
        stopping.set()
        assert isinstance(waiting.exception(5), StoppedError)


@pytest.mark.parametrize(
    ("address", "kind", "words"),
    [
        ("gopher://x/y.mp4", MediaError, "one of .*http://"),
        ("s3::http://x/y.mp4", MediaError, "No such file"),
        ("simplecache::s3://x/y.mp4", MediaError, "No such file"),
        ("http://x/a::b.mp4", MediaError, "one of .*http://"),
        ("file://elsewhere/y.mp4", MediaError, "another machine's file"),
    ],
)
def test_addresses_that_nothing_opens(cache: InputCache, address: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words), cache.open(ArchiveInput(0, address, "result")):
        pass


def test_a_package_that_is_missing(cache: InputCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("s3fs", "paramiko") else 1)
    for address, package in (("s3://bucket/x.mp4", "s3fs"), ("sftp://host/x.mp4", "paramiko")):
        with (
            pytest.raises(MachineError, match=rf"pip install {package}$"),
            cache.open(ArchiveInput(0, address, "result")),
        ):
            pass


def test_a_lock_that_somebody_keeps_is_not_waited_for_without_end(
    server: Server, cache: InputCache, tmp_path: Path, stopping: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, source = tmp_path / "cache", at(server, "/talk.mp4", b"x" * 5000)
    folder.mkdir()
    with locked(folder), ThreadPoolExecutor(1) as threads:
        with monkeypatch.context() as patched:
            patched.setattr(fetch_cache, "_LOCK_PATIENCE_S", 0.1)
            with pytest.raises(MachineError, match="another process has locked it for"), cache.open(source):
                pass
        waiting = threads.submit(lambda: cache.open(source).__enter__())
        stopping.set()
        assert isinstance(waiting.exception(5), StoppedError)


def test_files_of_this_machine(tmp_path: Path) -> None:
    assert local_path("/a/b c.mp4") == Path("/a/b c.mp4")
    assert local_path("file:///a/b%20c.mp4") == Path("/a/b c.mp4")
    assert local_path("c:/a.mp4") == Path("c:/a.mp4")
