"""Keeps compiled programs in one file, as TensorFlow Lite's delegates serialize.

As TensorFlow Lite's delegates serialize: DIR/TOKEN_FINGERPRINT.bin, written to a temporary file, synced and renamed,
read under a lock. A file that is damaged or of another kind counts as absent, and is replaced.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..base.disk_cache import as_entry, file_lock, parse_entry, read_whole, write_whole
from .delegate_options import GpuDelegateOptions

MOST_FILE_BYTES = 256 << 20

_HEADER = b"texelflow programs 1\n"
_LENGTH_BYTES = 8

_Entries = dict[tuple[str, str], bytes]  # content by kind and key


@dataclass(frozen=True)
class Serialization:
    """Where a delegate keeps its programs, and what they depend on beside the device."""

    folder: Path
    token: str
    options: str

    def path(self, *device: object) -> Path:
        """The file for a device: its name has the token and a fingerprint of the options and the device."""
        fingerprint = hashlib.sha256(repr((self.token, self.options, device)).encode(errors="surrogatepass"))
        return self.folder / f"{self.token}_{fingerprint.hexdigest()[:16]}.bin"


def serialization_of(options: GpuDelegateOptions) -> Serialization | None:
    """What the options ask for: with the flag, a directory and a token, all three, as in TensorFlow Lite."""
    folder, token = options.serialization_dir, options.model_token
    if folder is None or token is None or not options.is_serializing:
        return None
    counted = (options.compiling, options.max_delegated_partitions, options.min_nodes_per_partition)
    return Serialization(Path(os.fsdecode(folder)), token, repr(counted))


class SerializedFile:
    """Entries as of a DiskCache, all in one file. `failure` says why the last ones could not be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure = ""
        self._entries: _Entries | None = None  # until the file has been read

    def get(self, kind: str, key: str) -> bytes | None:
        """The content of an entry, None where there is none."""
        if self._entries is None and not self.path.parent.is_dir():  # a lock would make it
            self._entries = {}
        if self._entries is None:
            with file_lock(self._lock):  # where that cannot be had it is read all the same: files are replaced whole
                self._entries = self._read()
        return self._entries.get((kind, key))

    def put_all(self, entries: Iterable[tuple[str, str, bytes]]) -> bool:
        """Add entries, each a kind, a key and content, to those that are there now; whether that is done."""
        new = {(kind, key): content for kind, key, content in entries}
        try:
            if not self.path.parent.is_dir():
                raise FileNotFoundError("no such directory")
            with file_lock(self._lock):
                self._entries = self._read() | new
                data = join_entries(self._entries)
                write_whole(self.path, data if len(data) <= MOST_FILE_BYTES else join_entries(new), is_synced=True)
            self.failure = ""
        except OSError as error:
            self.failure = f"{self.path} cannot be written ({error.strerror or error})"
        return not self.failure

    @property
    def _lock(self) -> Path:
        return self.path.with_name(self.path.name + ".lock")

    def _read(self) -> _Entries:
        data = read_whole(self.path, MOST_FILE_BYTES)
        return (data and split_entries(data)) or {}


def join_entries(entries: Mapping[tuple[str, str], bytes]) -> bytes:
    """A file of entries, which are content by kind and key."""
    parts = [_HEADER]
    for (kind, key), content in entries.items():
        entry = as_entry(kind, key, content)
        parts += [len(entry).to_bytes(_LENGTH_BYTES, "little"), entry]
    return b"".join(parts)


def split_entries(data: bytes) -> _Entries | None:
    """All entries of a file, None where any of it is damaged. Whatever the bytes are, nothing is raised."""
    if not data.startswith(_HEADER):
        return None
    found, at = _Entries(), len(_HEADER)
    while at < len(data):
        end = at + _LENGTH_BYTES + int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
        entry = parse_entry(data[at + _LENGTH_BYTES : end]) if end <= len(data) else None
        if entry is None:
            return None
        found[entry[0], entry[1]] = entry[2]
        at = end
    return found
