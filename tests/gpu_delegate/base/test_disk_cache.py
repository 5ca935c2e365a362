"""The cache on disk: entries come back intact and stay within the bound, whatever other processes or files do."""

import os
import subprocess
import sys
from pathlib import Path

import filelock
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.helpers.commands import Command
from tests.helpers.waiting import PATIENCE_S
from texelflow.gpu_delegate.base.cache_folder import cache_folder
from texelflow.gpu_delegate.base.disk_cache import DiskCache, parse_entry

KIND = "tuning"
COUNTS = """
import sys
from pathlib import Path
from texelflow.gpu_delegate.base.disk_cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), 2000)
for number in range(60):
    assert cache.change("tuning", "count", lambda old: b"%d" % (int(old or b"0") + 1))
    assert cache.put("tuning", f"{sys.argv[2]} {number}", bytes(300))
"""
WAITS = """
import sys
from pathlib import Path
from time import perf_counter
from texelflow.gpu_delegate.base.disk_cache import DiskCache
for _ in range(4):
    start_s = perf_counter()
    assert not DiskCache(Path(sys.argv[1])).put("tuning", "a key", b"content")
    print(perf_counter() - start_s)
"""


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path, most_bytes=10_000)


def size_bytes(cache: DiskCache) -> int:
    return sum(path.stat().st_size for path in cache.folder.glob("*/*"))


def file_of(cache: DiskCache) -> Path:
    (path,) = cache.folder.glob(f"{KIND}/*")
    return path


def test_what_is_kept_comes_back(cache: DiskCache) -> None:
    assert cache.get(KIND, "a key") is None
    assert cache.put(KIND, "a key", b"old")
    assert cache.put(KIND, "a key", b"\x00\n{}")
    assert cache.put("runtimes", "a key", b"another kind")
    assert cache.put(KIND, "\udcff\u2003", b"")  # as in names of files that are no UTF-8
    assert DiskCache(cache.folder.parent).get(KIND, "a key") == b"\x00\n{}"
    assert {(e.kind, e.key) for e in cache.entries()} == {
        (KIND, "a key"), ("runtimes", "a key"), (KIND, "\udcff\u2003")
    }  # fmt: skip
    assert cache.clear(KIND) == 2
    assert [(e.kind, e.key) for e in cache.entries()] == [("runtimes", "a key")]


@given(st.binary(max_size=300))
@example(b'{"kind": "tuning", "key": "a", "sha256": "0"}\n')
@example(b"[" * 5000 + b"\n")
@example(b"1" * 4000 + b"\n")
@example(b'{"kind": 1, "key": null, "sha256": []}\n')
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert parse_entry(data) is None


@pytest.mark.parametrize("damage", ["empty", "cut", "bit", "another", "folder"])
def test_a_damaged_entry_is_absent_and_goes(damage: str, cache: DiskCache) -> None:
    cache.put(KIND, "a key", b"content")
    path = file_of(cache)
    data = bytearray(path.read_bytes())
    if damage == "another":  # whole, but of another key
        path.unlink()
        cache.put(KIND, "another", b"content")
        file_of(cache).rename(path)
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        data[-1] ^= 1
        path.write_bytes({"empty": b"", "cut": bytes(data[:-1]), "bit": bytes(data)}[damage])
    assert cache.get(KIND, "a key") is None
    if damage != "folder":
        assert not path.exists()
        assert cache.put(KIND, "a key", b"new")
        assert cache.get(KIND, "a key") == b"new"
    assert cache.clear() == (damage != "folder")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to a pipe"])
def test_what_is_no_regular_file_is_absent(kind: str, cache: DiskCache, tmp_path: Path) -> None:
    assert cache.put(KIND, "a key", b"content")
    path = file_of(cache)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    assert cache.get(KIND, "a key") is None
    assert cache.entries() == ()
    assert cache.put(KIND, "a key", b"content") == (kind != "folder")
    assert (cache.get(KIND, "a key") == b"content") == (kind != "folder")


def test_a_lock_that_is_no_regular_file_is_not_waited_for(cache: DiskCache) -> None:
    cache.folder.mkdir(parents=True)
    os.mkfifo(cache.folder / "lock")
    assert not cache.put(KIND, "a key", b"content")
    assert cache.get(KIND, "a key") is None


def test_a_lock_held_elsewhere_is_waited_for_once(tmp_path: Path) -> None:
    (tmp_path / "entries").mkdir()
    command = [sys.executable, "-c", WAITS, str(tmp_path)]
    with filelock.FileLock(tmp_path / "entries" / "lock"):
        found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    first_s, *others_s = map(float, found.stdout.split())
    assert 4 < first_s < 20, found.stderr
    assert sum(others_s) < 3, others_s


def test_what_was_used_least_recently_goes(cache: DiskCache) -> None:
    for number in range(8):
        cache.put(KIND, str(number), bytes(1000))
        os.utime(next(e.path for e in cache.entries() if e.key == str(number)), (number, number))
    (cache.folder / KIND / ".writing-killed").write_bytes(bytes(100))
    assert cache.get(KIND, "0") is not None  # used again
    assert cache.put(KIND, "large", bytes(3000))
    assert size_bytes(cache) <= 10_000
    assert {e.key for e in cache.entries()} == {"large", "0", "7", "6", "5", "4", "3"}
    assert not cache.put(KIND, "too large", bytes(10_000))
    assert len(cache.entries()) == 7
    assert not list(cache.folder.glob("*/.writing-*"))


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNTS, str(tmp_path)]
    running = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in ("a", "b")]
    errors = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], errors
    cache = DiskCache(tmp_path)
    assert cache.get(KIND, "count") == b"120"
    assert size_bytes(cache) <= 2000


def test_a_cache_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(tmp_path / "file")
    assert not cache.put(KIND, "a key", b"content")
    assert cache.get(KIND, "a key") is None
    assert cache.entries() == ()
    assert cache.clear() == 0


def test_the_verb_lists_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    model = cache_folder() / "models" / "own.tflite"
    model.parent.mkdir()
    model.write_bytes(b"model")
    DiskCache().put(KIND, "a GPU", bytes(2048))
    texelflow = Command(capsys)
    listed = texelflow("cache", "list").out
    assert "a GPU" in listed
    assert "1 entry, 2.1 KiB of 256.0 MiB" in listed
    assert f"1 file in {model.parent}" in listed
    assert "did you mean tuning?" in texelflow("cache", "clear", "tunin").complaint
    with filelock.FileLock(DiskCache().folder / "lock"):
        assert "cannot be cleared: another process uses it; try again" in texelflow("cache", "clear").complaint
    assert "1 entry removed" in texelflow("cache", "clear").out
    assert '"entries": []' in texelflow("cache", "list", "--json").out
    assert model.exists()
