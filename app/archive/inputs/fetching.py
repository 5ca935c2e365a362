"""Fetches inputs: an address becomes a file of this machine, itself or a copy of what fsspec opens, in a cache."""

import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from texelflow.gpu_delegate.base.cache_folder import cache_folder
from texelflow.gpu_delegate.base.errors import MediaError

from ...console import one_line
from ...media.growing_file import DISK_FULL_ERRORS
from ...threads import ThreadCall
from ..jobs.failures import MachineError, StoppedError, failure_reason
from ..jobs.jobs import ArchiveInput
from .fetch_cache import CachedFile, EndedError, FetchCache, NoRoomError
from .input_files import HeldInput, held_file
from .stores import SCHEMES

FETCH_FOLDER = "archive"  # in texelflow's cache folder

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,30})://")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}")
_CHUNK_BYTES = 1 << 20
_STALL_S = 60.0  # for a chunk
_WAITS_S = (1.0, 4.0)  # between attempts
_LOOK_S = 0.25
_HOUR_S = 3600
_DENIED = range(400, 500)  # answers of a server about the address, but for these:
_PASSING = (408, 425, 429)
_Answer = TypeVar("_Answer")


class InputCache:
    """Opens inputs. Copies are shared with the other workers of this machine."""

    def __init__(
        self, folder: Path | None, most_bytes: int, stopping: threading.Event, waits_s: tuple[float, ...] = _WAITS_S
    ) -> None:
        """Touches nothing. Who waits gives up when `stopping` is set; `waits_s` are those between attempts."""
        place = folder or cache_folder() / FETCH_FOLDER
        self._cache, self._stopping, self._waits_s = FetchCache(place, most_bytes, stopping), stopping, waits_s

    @contextlib.contextmanager
    def open(self, source: ArchiveInput) -> Iterator[HeldInput]:
        """For as long as the with-block lasts. Raises MediaError, MachineError, StoppedError."""
        path = local_path(source.address)
        with contextlib.ExitStack() as stack:
            if path is not None:
                yield stack.enter_context(held_file(source, path))
                return
            check_scheme(source.address)
            copy = stack.enter_context(self._held(source))
            sha256 = copy.sha256 or self._fetched(source, copy)
            yield stack.enter_context(held_file(source, copy.path, sha256))

    @contextlib.contextmanager
    def _held(self, source: ArchiveInput) -> Iterator[CachedFile]:
        suffix = os.path.splitext(urlsplit(source.address).path)[1]
        with contextlib.ExitStack() as stack:
            try:
                held = self._cache.hold(
                    copy_key(source), suffix if _SUFFIX.fullmatch(suffix) else "", source.size_bytes or 0
                )
                copy = stack.enter_context(held)
            except NoRoomError as error:
                raise self._without_room(source, error) from None
            except EndedError:
                raise StoppedError from None
            except OSError as error:
                raise MachineError(f"'{self._cache.folder}' cannot hold copies: {error.strerror}") from None
            yield copy

    def _fetched(self, source: ArchiveInput, copy: CachedFile) -> str:
        """Copy it, and try again where that fails for a passing reason: its sha256."""
        for wait_s in (*self._waits_s, None):
            try:
                sha256 = self._copied(source, copy)
                copy.finish(sha256)
                return sha256
            except (StoppedError, MachineError, MediaError):
                raise
            except Exception as error:  # libraries raise what they like
                if _is_of_address(error):
                    raise MediaError(f"cannot fetch '{source.address}': {_why(error)}") from None
                if _fills_disk(error):
                    self._cache.empty()
                if wait_s is None:
                    place = f"to '{self._cache.folder}'" if _fills_disk(error) else "now"
                    raise MachineError(f"cannot fetch '{source.address}' {place}: {_why(error)}") from None
            if self._stopping.wait(wait_s):
                raise StoppedError
        raise AssertionError("the last attempt raises")

    def _copied(self, source: ArchiveInput, copy: CachedFile) -> str:
        digest, size = hashlib.sha256(), 0
        file, promised = self._waited(lambda: _opened(source.address))
        try:
            room = max(promised or 0, source.size_bytes or 0)
            self._make_room(source, copy, room)
            with copy.path.open("wb") as written:
                while chunk := self._waited(partial(file.read, _CHUNK_BYTES)):
                    digest.update(chunk)
                    written.write(chunk)
                    size += len(chunk)
                    if size > room:  # nobody had said so
                        room = 2 * size
                        self._make_room(source, copy, room)
                written.flush()
                os.fsync(written.fileno())
        finally:
            ThreadCall(file.close)  # may wait for a server
        if promised is not None and size != promised:
            raise ConnectionError(f"{size} of {promised} bytes came")
        return digest.hexdigest()

    def _make_room(self, source: ArchiveInput, copy: CachedFile, size_bytes: int) -> None:
        try:
            self._cache.make_room(size_bytes, copy.path.parent)
        except NoRoomError as error:
            raise self._without_room(source, error) from None
        except EndedError:
            raise StoppedError from None

    def _without_room(self, source: ArchiveInput, error: NoRoomError) -> MachineError:
        return MachineError(f"no room for a copy of '{source.address}' in '{self._cache.folder}': {error}")

    def _waited(self, act: Callable[[], _Answer]) -> _Answer:
        """What a call answers, which may take long, but not for ever. Raises StoppedError, TimeoutError, or its own."""
        call, until = ThreadCall(act), time.monotonic() + _STALL_S
        while not call.ended:
            call.wait(_LOOK_S)
            if self._stopping.is_set():
                raise StoppedError
            if time.monotonic() > until and not call.ended:
                raise TimeoutError(f"nothing came for {_STALL_S:.0f} s")
        return call.answer()


def local_path(address: str) -> Path | None:
    """The path of a file of this machine; None for what has to be fetched. Raises MediaError."""
    found = _ADDRESS.match(address)
    if found is None:
        return Path(address)
    if found[1].lower() != "file":
        return None
    place = urlsplit(address)
    if place.netloc not in ("", "localhost"):
        raise MediaError(f"cannot open '{one_line(address)}': another machine's file")
    return Path(unquote(place.path))


def check_scheme(address: str) -> None:
    """Raise MediaError for an address that nothing here opens, MachineError where its package is missing."""
    found = _ADDRESS.match(address)
    scheme = found[1].lower() if found else ""
    if scheme not in SCHEMES or "::" in address:
        known = ", ".join(f"{each}://" for each in SCHEMES if each != "memory")
        raise MediaError(f"cannot open '{one_line(address)}': one of {known} is needed")
    for package in ("fsspec", SCHEMES[scheme]):
        if importlib.util.find_spec(package) is None:
            raise MachineError(f"{scheme}:// needs {package}: pip install {package}")


def copy_key(source: ArchiveInput) -> str:
    """The name of the copy's folder. What has no time is fetched anew after an hour, and by each run."""
    hour = f"hour {int(time.monotonic() // _HOUR_S)} of {os.getppid()}" if source.modified_ns is None else ""
    told = f"{source.address}\n{source.size_bytes}\n{source.modified_ns}\n{hour}"
    return hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()


def _opened(address: str) -> tuple[Any, int | None]:
    """A file of fsspec's, to be read from its beginning to its end, and its size where that is told."""
    import fsspec

    files, path = fsspec.core.url_to_fs(address, skip_instance_cache=True, **_options(urlsplit(address).scheme.lower()))
    file = files.open(path, "rb")
    size = getattr(file, "size", None)
    return file, size if isinstance(size, int) else None


def _options(scheme: str) -> dict[str, Any]:
    """Time limits, in the words of each library; that of a chunk holds for all."""
    if scheme in ("http", "https"):
        import aiohttp

        return {"client_kwargs": {"timeout": aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=_STALL_S)}}
    if scheme == "s3":
        return {"config_kwargs": {"connect_timeout": 20, "read_timeout": _STALL_S}}
    return {"timeout": 20} if scheme in ("sftp", "ssh") else {}


def _is_of_address(error: Exception) -> bool:
    """Whether nothing is there, or it is denied: the same at any time."""
    told: BaseException = error
    while isinstance(told, FileNotFoundError) and told.__cause__:  # what a library takes any failure for
        told = told.__cause__
    status = getattr(told, "status", None)
    if isinstance(status, int):
        return status in _DENIED and status not in _PASSING
    return isinstance(told, (FileNotFoundError, PermissionError, IsADirectoryError))


def _fills_disk(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in DISK_FULL_ERRORS


def _why(error: Exception) -> str:
    """One line."""
    if isinstance(error, FileNotFoundError):
        return failure_reason(error.__cause__) if error.__cause__ else "nothing is there"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full"
    return failure_reason(error)
