"""The index of a manifest: where in the file the last line of each input stands.

It takes 24 bytes an input, and 8 for each folder that results are, or are in; lines stay on disk.

A last line without an end was torn when the run was killed: what comes before it is whole; as the only line, it has
to be the beginning of one that this program writes there. Any other line that is
damaged ends in MediaError, but those of pieces: they are looked at when they are needed, and count as absent.
"""

import errno
import os
import re
import stat
import threading
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from json import JSONDecoder
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError

from ..jobs.jobs import PieceDone
from ..results.result_names import folders_of, hashed_text, same_name_key
from ..results.results import ArchiveResult, DoneResult, FailedResult, PieceResult
from .manifest_lines import MOST_LINE_BYTES, RecordedResult, RunMark, RunRecord, read_manifest_line

_PIECE = b'{"kind":"piece","input":'
_MOST_ADDRESS = 1 << 16
_HEAD = b'{"kind":"run","time":"0000-00-00T00:00:00Z","format":'  # how a manifest begins, but for its digits
_DIGIT = re.compile(rb"[0-9]")
_KIND_SHOWN, _KINDS_TOLD = 40, 100
_MOST_RESULTS = 16  # lines of one input that are looked at, from the last one on


@dataclass(frozen=True)
class _Found:
    """What lines told so far, in their order."""

    hashes: "array[int]" = field(default_factory=lambda: array("Q"))
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    names: "array[int]" = field(default_factory=lambda: array("Q"))
    folders: "array[int]" = field(default_factory=lambda: array("Q"))  # names of results that are folders
    above: set[int] = field(default_factory=set)  # folders that names are in, each once

    def add(self, offset: int, result: ArchiveResult) -> None:
        name = result.input.name
        self.hashes.append(_key(result.input.address))
        self.offsets.append(offset)
        is_folder = isinstance(result, DoneResult) and name in result.done.files.values()  # files have an ending
        self.names.append(_name_key(name))
        if is_folder:
            self.folders.append(_name_key(name))
        for folder in reversed(folders_of(name)):
            if (key := _name_key(folder)) in self.above:
                return  # with those above it
            self.above.add(key)


class ManifestIndex:
    """What earlier runs wrote. Lookups read the file, which may grow meanwhile; several threads may ask."""

    def __init__(self, path: Path) -> None:
        """Read all of it; a manifest that is not there is empty. Raises MediaError."""
        self._path, self._decoder = path, JSONDecoder()
        self._file: BinaryIO | None = None
        self._reading = threading.Lock()
        self.end = 0  # bytes of whole lines: what comes after them is torn
        self.torn = 0  # bytes of that
        self.last_run: RunRecord | None = None
        self.done = self.failed = 0  # lines
        self._unknown: Counter[str] = Counter()
        self._pieces: dict[int, list[int]] = {}  # of inputs that neither are done nor have failed since
        found = _Found()
        try:
            self._open()
            for number, line in self._lines():
                self._learn(number, line, found)
        except OSError as error:
            self.close()
            raise MediaError(f"'{path}' cannot be read: {error.strerror}") from error
        except BaseException:
            self.close()
            raise
        self._owners = _contested(found.names, found.hashes)
        self._hashes, self._offsets = _sorted(found.hashes, found.offsets)
        self._names, self._folders = (
            np.unique(np.frombuffer(each, np.uint64)) for each in (found.names, found.folders)
        )
        self._above = np.sort(np.fromiter(found.above, np.uint64, len(found.above)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over, one line each."""
        kinds = ", ".join(f"{lines} of {kind!a}" for kind, lines in self._unknown.most_common(5))
        torn = [f"{self._path}: its last line was torn, and is left out"] if self.torn else []
        return (*torn, *([f"{self._path}: lines of a later version are passed over: {kinds}"] if kinds else []))

    @property
    def memory_bytes(self) -> int:
        """Memory that places of lines take, those of pieces aside."""
        kept = self._hashes, self._offsets, self._names, self._folders, self._above
        return sum(each.nbytes for each in kept)

    def result_of(self, address: str) -> RecordedResult | None:
        """The last line of an input that was done or failed."""
        return next(self.results_of(address), None)

    def results_of(self, address: str) -> Iterator[RecordedResult]:
        """The same, and those before it, of which the last ones count."""
        key = np.uint64(_key(address))
        first, last = (int(np.searchsorted(self._hashes, key, side)) for side in ("left", "right"))
        for place in range(last - 1, max(first, last - _MOST_RESULTS) - 1, -1):
            line = read_manifest_line(self._line_at(int(self._offsets[place])))
            if isinstance(line, RecordedResult) and line.result.input.address == address:
                yield line

    def last_results(self) -> Iterator[RecordedResult]:
        """The last line of each input, in the order of the file. Raises ValueError where the file was changed since."""
        last = np.append(self._hashes[1:] != self._hashes[:-1], True)[: len(self._hashes)]
        for offset in np.sort(self._offsets[last]):
            line = read_manifest_line(self._line_at(int(offset)))
            if isinstance(line, RecordedResult):
                yield line

    def own_files(self, address: str) -> tuple[tuple[str, str], ...]:
        """Paths and sha256 of results that an input has, or had; none where lines of other inputs have their name."""
        found = (
            line.result for line in self.results_of(address) if _name_key(line.result.input.name) not in self._owners
        )
        done = [result.done for result in found if isinstance(result, DoneResult)]
        return tuple(
            (each.files[kind], sha256)
            for each in done
            for kind, sha256 in each.file_sha256.items()
            if kind in each.files
        )

    def pieces_of(self, address: str, sha256: str, mark: RunMark) -> Iterator[PieceDone]:
        """Pieces of an input with these contents, made the same way, in the order in which they were finished."""
        for offset in self._pieces.get(_key(address), ()):
            try:
                line = read_manifest_line(self._line_at(offset))
            except ValueError:
                continue
            if isinstance(line, RecordedResult) and isinstance(line.result, PieceResult):
                result, same = line.result, line.mark.same_results(mark)
                if same and (result.input.address, result.sha256) == (address, sha256):
                    yield result.piece

    def name_of(self, address: str) -> str | None:
        """The name that an input's results have; None if it has none yet, or another input had it first."""
        line = self.result_of(address)
        name = line.result.input.name if line else None
        return name if name is not None and self._owners.get(_name_key(name), _key(address)) == _key(address) else None

    def has_name(self, name: str) -> bool:
        """Whether some input's results have that name, in large or small letters; once in 10^13 names it errs."""
        return _holds(self._names, name)

    def has_below(self, folder: str) -> bool:
        """Whether some input's name lies in that folder, or below."""
        return _holds(self._above, folder)

    def has_folder(self, name: str) -> bool:
        """Whether a folder of that name is, or was, some input's result."""
        return _holds(self._folders, name)

    def close(self) -> None:
        """Lookups are over: later ones raise ValueError. Harmless when repeated."""
        with self._reading:
            if self._file:
                self._file.close()

    def __enter__(self) -> "ManifestIndex":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        try:
            is_file = stat.S_ISREG(os.stat(self._path).st_mode)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:  # of links that lead to each other
                raise
            is_file = False
        if not is_file:
            raise MediaError(f"'{self._path}' is not a regular file; choose another folder")
        self._file = self._path.open("rb", buffering=1 << 18)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines and their numbers, from 1; `end` is where each begins."""
        for number in count(1):
            line = self._file.readline(MOST_LINE_BYTES + 1) if self._file else b""
            if len(line) > MOST_LINE_BYTES:
                raise self._damaged(number, f"it is longer than {MOST_LINE_BYTES} bytes")
            if not line.endswith(b"\n"):
                if number == 1 and not _begins_a_run(line):
                    raise self._damaged(number, "it does not begin a run")
                self.torn = os.fstat(self._file.fileno()).st_size - self.end if self._file else 0
                return
            yield number, line
            self.end += len(line)

    def _learn(self, number: int, line: bytes, found: _Found) -> None:
        try:
            if number > 1 and line.startswith(_PIECE):
                start = line[len(_PIECE) : len(_PIECE) + _MOST_ADDRESS].decode("ascii")
                self._pieces.setdefault(_key(self._text_at_start(start)), []).append(self.end)
                return
            read = read_manifest_line(line)
            if number == 1 and not isinstance(read, RunRecord):
                raise ValueError("it does not begin a run")
        except ValueError as error:
            raise self._damaged(number, str(error)) from None
        if isinstance(read, RunRecord):
            self.last_run = read
        elif isinstance(read, str):
            self._unknown[read[:_KIND_SHOWN] if len(self._unknown) < _KINDS_TOLD else "others"] += 1
        else:
            self._pieces.pop(_key(read.result.input.address), None)
            found.add(self.end, read.result)
            self.done += isinstance(read.result, DoneResult)
            self.failed += isinstance(read.result, FailedResult)

    def _text_at_start(self, json_text: str) -> str:
        try:
            text, _ = self._decoder.raw_decode(json_text)
        except (ValueError, RecursionError):
            raise ValueError("it is not JSON") from None
        if not isinstance(text, str):
            raise ValueError("its 'input' is not text")
        return text

    def _line_at(self, offset: int) -> bytes:
        if self._file is None:
            return b""
        with self._reading:
            self._file.seek(offset)
            return self._file.readline(MOST_LINE_BYTES + 1)

    def _damaged(self, number: int, why: str) -> MediaError:
        return MediaError(f"'{self._path}', line {number} is damaged: {why}; remove that line, or --force begins anew")


def _begins_a_run(torn: bytes) -> bool:
    """Whether it is a part of a manifest's first line, from its beginning on; so is nothing."""
    return _HEAD.startswith(_DIGIT.sub(b"0", torn[: len(_HEAD)]))


def _key(text: str) -> int:
    """Eight bytes that stand for it."""
    return hashed_text(text) & 0xFFFF_FFFF_FFFF_FFFF


def _name_key(name: str) -> int:
    return _key(same_name_key(name))


def _holds(keys: npt.NDArray[np.uint64], name: str) -> bool:
    """Whether a name's is among keys that are sorted."""
    key = np.uint64(_name_key(name))
    place = int(np.searchsorted(keys, key))
    return place < len(keys) and bool(keys[place] == key)


def _contested(names: "array[int]", hashes: "array[int]") -> dict[int, int]:
    """Names that lines of several inputs have, and the input that had each first."""
    keys, inputs = np.frombuffer(names, np.uint64), np.frombuffer(hashes, np.uint64)
    order = np.argsort(keys, kind="stable")
    keys, inputs = keys[order], inputs[order]
    twice = np.unique(keys[1:][(keys[1:] == keys[:-1]) & (inputs[1:] != inputs[:-1])])
    return {int(key): int(inputs[np.searchsorted(keys, key)]) for key in twice}


def _sorted(hashes: "array[int]", offsets: "array[int]") -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """By hash, and lines of the same one as they stand in the file."""
    keys, places = np.frombuffer(hashes, np.uint64), np.frombuffer(offsets, np.uint64)
    order = np.argsort(keys, kind="stable")
    return keys[order], places[order]
