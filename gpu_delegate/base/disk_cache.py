"""The cache on disk: bytes by kind and key, shared by all processes and bounded in size.

All that the program finds out and keeps is here; models and photographs that were fetched are not, because they are
what a person asked for, and need a network to come again. An entry is a file with a header that says what it is and a
checksum: a damaged one counts as absent and is removed. Files are replaced whole. Who writes holds a lock, and removes
what was used least recently until all entries together are within the bound. Where a cache cannot be written, nothing
is kept, and nothing fails: what is no regular file is never opened, and for locks that others hold a process waits some
seconds in all.
"""

import contextlib
import hashlib
import json
import mmap
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter

from .cache_folder import cache_folder

MOST_BYTES = 256 << 20
KINDS = ("runtimes", "tuning", "objects", "networks", "weights", "backends", "graphs", "binaries")  # each is a folder
CONTENT_ALIGNMENT_BYTES = 64  # of an entry's content in its file

_FOLDER = "entries"
_LOCK = "lock"
_TEMPORARY = ".writing-"
_MOST_HEADER_BYTES = 4096
_MOST_KEY_BYTES = 3000  # as JSON in the header
_PATIENCE_S = 5.0  # with other processes that hold a lock for long, in all
_USUAL_S = 0.25  # for which who writes may hold it
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe without a writer would be waited for


_Change = bytes | Callable[[bytes | None], bytes]  # new content, or what makes it of the old


@dataclass(frozen=True)
class CacheEntry:
    """What is known of a kept entry without its content."""

    kind: str
    key: str
    size_bytes: int  # of its file
    used_s: float  # when it was last read or written, in seconds since the epoch
    path: Path


class DiskCache:
    """The entries under a folder, by default the user's, of at most so many bytes in all."""

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.folder = (cache_folder() if folder is None else folder) / _FOLDER
        self.most_bytes = most_bytes

    def get(self, kind: str, key: str) -> bytes | None:
        """The content of an entry, None where there is none or it is damaged."""
        path = self._path(kind, key)
        data = read_whole(path, self.most_bytes)
        if data is None:
            return None
        found = parse_entry(data)
        if found is None or found[:2] != (kind, key):
            _drop(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found[2]

    def mapped(self, kind: str, key: str) -> memoryview | None:
        """The content of an entry in memory that is the file's, not to be written to; None as `get` gives it.

        It begins at a multiple of CONTENT_ALIGNMENT_BYTES. Processes that map the same entry share its memory.
        """
        path = self._path(kind, key)
        view = mapped_whole(path, self.most_bytes)
        found = None if view is None else _taken_apart(view)
        if view is not None and (found is None or found[:2] != (kind, key)):
            _drop(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found and found[2]

    def put(self, kind: str, key: str, content: bytes) -> bool:
        """Keep an entry in place of the one before; whether it is kept. Raises ValueError for a key too long."""
        return self.put_all([(kind, key, content)])

    def put_all(self, entries: Iterable[tuple[str, str, bytes]]) -> bool:
        """The same with many, each a kind, a key and content, in little more time than one; whether all are kept."""
        return self._change([*entries])

    def change(self, kind: str, key: str, changed: Callable[[bytes | None], bytes]) -> bool:
        """Replace an entry by what a function makes of it, with no other process's change in between."""
        return self._change([(kind, key, changed)])

    def _change(self, changes: Sequence[tuple[str, str, _Change]]) -> bool:
        for _, key, _ in changes:
            if len(json.dumps(key)) > _MOST_KEY_BYTES:
                raise ValueError(f"a key of {len(key)} characters")
        with self._locked() as is_locked:
            if not is_locked:
                return False
            try:
                kept = [self._replace(*change) for change in changes]
                self._bound()
            except OSError:
                return False
            return all(kept)

    def _replace(self, kind: str, key: str, changed: _Change) -> bool:
        data = as_entry(kind, key, changed if isinstance(changed, bytes) else changed(self.get(kind, key)))
        if len(data) <= self.most_bytes:
            write_whole(self._path(kind, key), data)
        return len(data) <= self.most_bytes

    def entries(self) -> tuple[CacheEntry, ...]:
        """All entries that are whole, the last used one first; damaged ones are removed."""
        found = list[CacheEntry]()
        for file, status in _files(self.folder):
            if file.name.startswith(_TEMPORARY):
                continue
            path = Path(file)
            content = parse_entry(read_whole(path, self.most_bytes) or b"")
            if content is None:
                _drop(path)
            else:
                found.append(CacheEntry(*content[:2], status.st_size, status.st_mtime, path))
        return tuple(sorted(found, key=lambda entry: entry.used_s, reverse=True))

    def clear(self, kind: str | None = None) -> int:
        """Remove all entries, or those of a kind; how many they were. Raises OSError where they cannot be removed."""
        removed = 0
        with self._locked() as is_locked:
            if not is_locked and self.folder.exists():
                raise PermissionError(f"{self.folder} cannot be changed")
            for file, _ in _files(self.folder):
                path = Path(file)
                if kind is None or path.parent.name == kind:
                    path.unlink(missing_ok=True)
                    removed += 1
        return removed

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
        with file_lock(self.folder / _LOCK) as is_locked:
            yield is_locked

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / hashlib.sha256(json.dumps(key).encode()).hexdigest()[:40]

    def _bound(self) -> None:
        """Remove what was used least recently until the rest fits. The caller holds the lock, so nobody else writes."""
        files = sorted(_files(self.folder), key=lambda file: file[1].st_mtime)
        total_bytes = sum(status.st_size for _, status in files)
        for entry, status in files:
            if entry.name.startswith(_TEMPORARY) or total_bytes > self.most_bytes:
                _drop(Path(entry))
                total_bytes -= status.st_size


def parse_entry(data: bytes) -> tuple[str, str, bytes] | None:
    """Kind, key and content of an entry's file, None for anything else. Whatever the bytes are, nothing is raised."""
    found = _taken_apart(memoryview(data))
    return found and (*found[:2], bytes(found[2]))


def _taken_apart(data: memoryview) -> tuple[str, str, memoryview] | None:
    head, newline, _ = bytes(data[: _MOST_HEADER_BYTES + 1]).partition(b"\n")
    if not newline:
        return None
    try:
        header: object = json.loads(head)
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict) or header.keys() != {"kind", "key", "sha256"}:
        return None
    kind, key, content = header["kind"], header["key"], data[len(head) + 1 :]
    if not isinstance(kind, str) or not isinstance(key, str) or header["sha256"] != _checksum(kind, key, content):
        return None
    return kind, key, content


def as_entry(kind: str, key: str, content: bytes) -> bytes:
    """What parse_entry takes apart."""
    header = json.dumps({"kind": kind, "key": key, "sha256": _checksum(kind, key, content)}).encode()
    spaces = -(len(header) + 1) % CONTENT_ALIGNMENT_BYTES
    return b"".join((header, b" " * spaces, b"\n", content))


def _checksum(kind: str, key: str, content: bytes | memoryview) -> str:
    found = hashlib.sha256(json.dumps([kind, key]).encode() + b"\n")
    found.update(content)
    return found.hexdigest()


def read_whole(path: Path, most_bytes: int) -> bytes | None:
    """A regular file's bytes, of one that is too long only the start; None if there is none."""
    try:
        with open(os.open(path, os.O_RDONLY | _AT_ONCE), "rb") as file:
            return file.read(most_bytes + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError:
        return None


def mapped_whole(path: Path, most_bytes: int) -> memoryview | None:
    """A regular file that is not longer, in memory that is its own; None if there is none, or it is empty."""
    try:
        with open(os.open(path, os.O_RDONLY | _AT_ONCE), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= most_bytes:
                return None
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        return None


def _drop(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def write_whole(path: Path, data: bytes, is_synced: bool = False) -> None:
    """A file under its name or none, whatever happens meanwhile; `is_synced`: also if the power fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, work = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        os.replace(work, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(work)
        raise


def _files(folder: Path) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    """Every file in the folders of the kinds, as long as it is there. A Path of each would take most of the time."""
    for kind in _listed(folder):
        for entry in _listed(kind):
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield entry, status


def _listed(folder: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


class _Patience:
    """How long this process still waits for locks that others hold."""

    def __init__(self) -> None:
        self.left_s = _PATIENCE_S

    @contextlib.contextmanager
    def spent(self) -> Iterator[float]:
        """Gives what is left, and takes off what passes meanwhile beyond the usual."""
        start_s = perf_counter()
        try:
            yield self.left_s
        finally:
            self.left_s = max(0.0, self.left_s - max(0.0, perf_counter() - start_s - _USUAL_S))


@lru_cache(maxsize=1)
def _patience() -> _Patience:
    """The one of this process, whichever cache it uses."""
    return _Patience()


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[bool]:
    """Holds a file as a lock; yields False where it cannot be had: no rights, no room, another holds it for long."""
    try:
        import filelock  # takes 40 ms; most runs only read
    except ImportError:  # Python ends, and what is left over is freed
        yield False
        return
    with contextlib.ExitStack() as held:
        try:
            if not stat.S_ISREG(_mode(path)):
                raise OSError(f"{path} is no regular file")
            with _patience().spent() as left_s:
                held.enter_context(filelock.FileLock(path, timeout=left_s))
        except (OSError, NotImplementedError):  # filelock's own are TimeoutError, and this where there are no locks
            yield False
            return
        yield True


def _mode(path: Path) -> int:
    """A file's mode; where there is none yet, that of the regular file that it is to become."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return stat.S_IFREG
