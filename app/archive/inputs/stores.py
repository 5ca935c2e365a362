"""Stores: the file systems in which inputs lie, as folders that are listed one at a time.

A store is this machine's file system, or what fsspec opens (s3://, sftp://, https:// and others). Of folders of a
million files only the names are held at once.
"""

import contextlib
import importlib.util
import os
import re
import stat
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from texelflow.gpu_delegate.base.errors import MediaError, UsageError
from texelflow.gpu_delegate.base.wording import meant

from ...console import one_line

SCHEMES: Mapping[str, str] = MappingProxyType(  # and the package that opens each
    {
        "http": "aiohttp",
        "https": "aiohttp",
        "s3": "s3fs",
        "sftp": "paramiko",
        "ssh": "paramiko",
        "gs": "gcsfs",
        "gcs": "gcsfs",
        "abfs": "adlfs",
        "az": "adlfs",
        "ftp": "ftplib",
        "memory": "fsspec",
    }
)

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://")
_TIMES = ("LastModified", "mtime", "last_modified", "updated", "timeModified", "modified", "created")
_MOST_TOLD = 200  # letters of what a library says
_WEB = ("http", "https")
_WEB_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class StoreEntry:
    """A file or a folder in a folder. `place` is the same for all links to one folder, where a store tells it.

    The name of what is neither is followed by why: "no regular file".
    """

    name: str
    is_folder: bool
    size_bytes: int | None = None
    modified_ns: int | None = None
    place: tuple[int, int] | None = None
    why_not: str = ""
    is_link: bool = False


class FolderStore(Protocol):
    """Folders by address. All methods raise MediaError where something cannot be read."""

    is_local: bool
    takes_threads: bool  # answers several at once

    def entries(self, folder: str) -> Iterator[StoreEntry]:
        """What is in a folder, by name."""
        ...

    def look(self, address: str) -> StoreEntry | None:
        """What is there; None for nothing."""
        ...

    def measure(self, address: str) -> StoreEntry | None:
        """Size and time of a file; None for nothing."""
        ...

    def join(self, folder: str, name: str) -> str:
        """The address of what is in a folder."""
        ...

    def shown(self, name: str) -> str:
        """A name as people read it."""
        ...


def is_address(name: str) -> bool:
    """Whether it is for fsspec: scheme://, and no drive of Windows."""
    return _ADDRESS.match(name) is not None


def store_of(name: str) -> FolderStore:
    """Where a path or an address lies. Raises UsageError for a scheme that is unknown, or lacks its package."""
    found = _ADDRESS.match(name)
    if not found:
        return LocalStore()
    scheme = found[1].lower()
    if "::" in name or scheme not in SCHEMES:
        known = ", ".join(f"{each}://" for each in SCHEMES if each != "memory")
        raise UsageError(f"{one_line(name)[:_MOST_TOLD]}: one of {known} is needed{meant(scheme, SCHEMES)}")
    if "@" in (place := urlsplit(name).netloc) and ":" in place.rpartition("@")[0]:
        raise UsageError(
            f"{scheme}://{place.rpartition('@')[2]}: a password in an address would stand in the manifest; keep it in "
            f"FSSPEC_{scheme.upper()}_PASSWORD, or use keys"
        )
    for package in ("fsspec", SCHEMES[scheme]):
        if importlib.util.find_spec(package) is None:
            raise UsageError(f"{scheme}:// needs {package}: pip install {package}")
    return RemoteStore(name)


class LocalStore:
    """This machine's file systems."""

    is_local = takes_threads = True

    def entries(self, folder: str) -> Iterator[StoreEntry]:
        """By name; each is looked at when it is its turn."""
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            raise MediaError(f"cannot list '{folder}': {error.strerror}") from None
        except ValueError:
            raise MediaError(f"cannot list '{folder!r}': no folder has such a name") from None
        for name in names:
            found = self.look(os.path.join(folder, name))
            yield found or StoreEntry(name, False, why_not="links that lead nowhere")

    def look(self, address: str) -> StoreEntry | None:
        """Links are followed."""
        name = os.path.basename(address)
        try:
            found = os.lstat(address)
            if is_link := stat.S_ISLNK(found.st_mode):
                found = os.stat(address)
        except (OSError, ValueError):
            return None
        if stat.S_ISDIR(found.st_mode):
            return StoreEntry(name, True, place=(found.st_dev, found.st_ino), is_link=is_link)
        why_not = "" if stat.S_ISREG(found.st_mode) else "no regular files"
        return StoreEntry(name, False, found.st_size, found.st_mtime_ns, why_not=why_not, is_link=is_link)

    def measure(self, address: str) -> StoreEntry | None:
        """The same."""
        return self.look(address)

    def join(self, folder: str, name: str) -> str:
        """As the system does."""
        return os.path.join(folder, name)

    def shown(self, name: str) -> str:
        """As it is."""
        return name


class RemoteStore:
    """What fsspec opens. Addresses keep the form in which the first was given, its host and user among it."""

    is_local = False

    def __init__(self, address: str) -> None:
        import fsspec

        self._scheme = urlsplit(address).scheme.lower()
        with _one_line_errors(address):
            self._files: Any = fsspec.core.url_to_fs(address)[0]
        self.takes_threads = self._scheme in _WEB or bool(self._files.async_impl)

    def entries(self, folder: str) -> Iterator[StoreEntry]:
        """Each directly in it, once."""
        with _one_line_errors(folder):
            place = str(self._files._strip_protocol(folder))
            base = place.rstrip("/") + "/"
            listed = self._files.ls(base if self._scheme in _WEB else place, detail=True)
            self._files.invalidate_cache(place)  # which would keep all folders in memory
        names = dict[str, Mapping[str, Any]]()
        for info in listed:
            name = str(info.get("name", ""))
            name = name[len(base) :] if name.startswith(base) else name.lstrip("/") if base == "/" else ""
            if (name := name.rstrip("/")) and "/" not in name and not (self._scheme in _WEB and set(name) & set("?#")):
                names.setdefault(name, info)
        yield from (_entry(name, names[name]) for name in sorted(names))

    def look(self, address: str) -> StoreEntry | None:
        """As the store tells it; a page of the web that lists others is a folder."""
        name = address.rstrip("/").rpartition("/")[2]
        try:
            with _one_line_errors(address):
                if self._scheme in _WEB:
                    return StoreEntry(name, True) if self._files.exists(address) else None
                return _entry(name, self._files.info(self._files._strip_protocol(address)))
        except _NothingThereError:
            return None

    def measure(self, address: str) -> StoreEntry | None:
        """As the store, or a server's headers, have it."""
        if self._scheme not in _WEB:
            return self.look(address)
        asked = urllib.request.Request(address, method="HEAD")
        with _one_line_errors(address), urllib.request.urlopen(asked, timeout=_WEB_TIMEOUT_S) as answer:
            size, date = answer.headers.get("Content-Length", ""), answer.headers.get("Last-Modified")
            told = {"size": int(size) if size.isdecimal() else None, "mtime": date and parsedate_to_datetime(date)}
            return _entry(address.rpartition("/")[2], {"type": "file", **told})

    def join(self, folder: str, name: str) -> str:
        """With a slash."""
        return f"{folder.rstrip('/')}/{name}"

    def shown(self, name: str) -> str:
        """Without percent signs, where the address is one of the web."""
        return unquote(name, errors="replace") if self._scheme in _WEB else name


class _NothingThereError(MediaError):
    """An address at which nothing is."""


@contextlib.contextmanager
def _one_line_errors(address: str) -> Iterator[None]:
    """Within it whatever a library raises becomes MediaError, in one line."""
    where = one_line(address)[:_MOST_TOLD]
    try:
        yield
    except FileNotFoundError:
        raise _NothingThereError(f"{where}: nothing is there") from None
    except Exception as error:
        why = one_line(str(error))[:_MOST_TOLD] or type(error).__name__
        raise MediaError(f"{where}: {why}") from None


def _entry(name: str, info: Mapping[str, Any]) -> StoreEntry:
    kind, size = info.get("type"), info.get("size")
    known = kind in ("file", "link", None)
    return StoreEntry(
        name, kind == "directory", size if isinstance(size, int) else None, _modified_ns(info),
        why_not="" if known or kind == "directory" else "no regular files",
    )  # fmt: skip


def _modified_ns(info: Mapping[str, Any]) -> int | None:
    """When it was changed, in the form that a store has for it."""
    told = next((info[key] for key in _TIMES if info.get(key)), None)
    if isinstance(told, str):
        try:
            told = datetime.fromisoformat(told.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(told, datetime):
        aware = told if told.tzinfo else told.replace(tzinfo=timezone.utc)
        told = aware.timestamp()
    return int(told * 1e9) if isinstance(told, (int, float)) and abs(told) < 1e11 else None
