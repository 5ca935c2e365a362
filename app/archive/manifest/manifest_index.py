"""The index of a manifest: where in the file the last line of each input stands.

It is a private SQLite database, made anew each time: 2 MB of it are in memory, the rest is in a temporary file that
nobody else opens and that is gone at the end. Only places of pieces that are not joined are in memory, 100 bytes each.
Lines stay in the manifest.

A last line without an end was torn when the run was killed: what comes before it is whole; as the only line, it has
to be the beginning of one that this program writes there. Any other line that is
damaged ends in MediaError, but those of pieces: they are looked at when they are needed, and count as absent.
"""

import errno
import os
import re
import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from json import JSONDecoder
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from texelflow.gpu_delegate.base.errors import MediaError

from ..jobs.jobs import PieceDone
from ..results.result_names import same_name_key
from ..results.results import ArchiveResult, DoneResult, FailedResult, PieceResult
from .manifest_lines import MOST_LINE_BYTES, RecordedResult, RunMark, RunRecord, read_manifest_line

_PIECE = b'{"kind":"piece","input":'
_MOST_ADDRESS = 1 << 16
_HEAD = b'{"kind":"run","time":"0000-00-00T00:00:00Z","format":'  # how a manifest begins, but for its digits
_DIGIT = re.compile(rb"[0-9]")
_KIND_SHOWN, _KINDS_TOLD = 40, 100
_VARIABLES, _FOLDERS = ("SQLITE_TMPDIR", "TMPDIR"), ("/var/tmp", "/usr/tmp", "/tmp")  # of temporary files, by SQLite
_MOST_RESULTS = 16  # lines of one input that are looked at, from the last one on
# Addresses may be no Unicode; keys of names are equal for those that are one on some file system
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -2000; -- KiB in memory
CREATE TABLE results (place INTEGER PRIMARY KEY, address BLOB, name TEXT, key BLOB, is_folder INTEGER);
"""
_INDEXES = """
CREATE INDEX results_by_address ON results (address);
CREATE INDEX results_by_key ON results (key);
CREATE INDEX folders_by_key ON results (key) WHERE is_folder;
"""
_OWN_RESULTS = f"""
SELECT place FROM (SELECT * FROM results WHERE address = ?1 ORDER BY place DESC LIMIT {_MOST_RESULTS}) AS own
WHERE NOT EXISTS (SELECT * FROM results WHERE key = own.key AND address <> ?1) ORDER BY place DESC
"""
_OWN_NAME = """
SELECT name FROM (SELECT * FROM results WHERE address = ?1 ORDER BY place DESC LIMIT 1) AS last
WHERE ?1 = (SELECT address FROM results WHERE key = last.key ORDER BY place LIMIT 1)
"""


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
        self._pieces: dict[str, list[int]] = {}  # of inputs that neither are done nor have failed since
        self._database = sqlite3.connect(_database(), check_same_thread=False)
        try:
            self._open()
            self._read()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise MediaError(f"'{path}' cannot be read: {error.strerror}") from error
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over, one line each."""
        kinds = ", ".join(f"{lines} of {kind!a}" for kind, lines in self._unknown.most_common(5))
        torn = [f"{self._path}: its last line was torn, and is left out"] if self.torn else []
        return (*torn, *([f"{self._path}: lines of a later version are passed over: {kinds}"] if kinds else []))

    @property
    def database_bytes(self) -> int:
        """What its database takes, in memory and in the temporary file."""
        (pages,), (page_bytes,) = self._ask("PRAGMA page_count"), self._ask("PRAGMA page_size")
        return int(pages * page_bytes)

    def result_of(self, address: str) -> RecordedResult | None:
        """The last line of an input that was done or failed."""
        last = self._ask("SELECT place FROM results WHERE address = ? ORDER BY place DESC LIMIT 1", _bytes(address))
        return next(self._results_at(last), None)

    def last_results(self) -> Iterator[RecordedResult]:
        """The last line of each input, in the order of the file. Raises ValueError where the file was changed since."""
        return self._results_at(self._ask("SELECT max(place) AS last FROM results GROUP BY address ORDER BY last"))

    def own_files(self, address: str) -> tuple[tuple[str, str], ...]:
        """Paths and sha256 of results that an input has, or had; none where lines of other inputs have their name."""
        found = (line.result for line in self._results_at(self._ask(_OWN_RESULTS, _bytes(address))))
        done = [result.done for result in found if isinstance(result, DoneResult)]
        return tuple(
            (each.files[kind], sha256)
            for each in done
            for kind, sha256 in each.file_sha256.items()
            if kind in each.files
        )

    def pieces_of(self, address: str, sha256: str, mark: RunMark) -> Iterator[PieceDone]:
        """Pieces of an input with these contents, made the same way, in the order in which they were finished."""
        for place in self._pieces.get(address, ()):
            try:
                line = read_manifest_line(self._line_at(place))
            except ValueError:
                continue
            if isinstance(line, RecordedResult) and isinstance(line.result, PieceResult):
                result, same = line.result, line.mark.same_results(mark)
                if same and (result.input.address, result.sha256) == (address, sha256):
                    yield result.piece

    def name_of(self, address: str) -> str | None:
        """The name that an input's results have; None if it has none yet, or another input had it first."""
        return next(iter(self._ask(_OWN_NAME, _bytes(address))), None)

    def has_name(self, name: str) -> bool:
        """Whether some input's results have that name, in large or small letters."""
        return self._has("key = ?", _key(name))

    def has_below(self, folder: str) -> bool:
        """Whether some input's name lies in that folder, or below."""
        return self._has("key > ? AND key < ?", _key(folder) + b"/", _key(folder) + b"0")  # 0 comes after /

    def has_folder(self, name: str) -> bool:
        """Whether a folder of that name is, or was, some input's result."""
        return self._has("key = ? AND is_folder", _key(name))

    def close(self) -> None:
        """Lookups are over: later ones raise ValueError. Harmless when repeated."""
        with self._reading:
            if self._file:
                self._file.close()
            self._database.close()

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

    def _read(self) -> None:
        try:
            self._database.executescript(_TABLES)
            for number, line in self._lines():
                self._learn(number, line)
            self._database.executescript(_INDEXES)
        except sqlite3.Error as error:
            raise self._without_room(error) from error

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

    def _learn(self, number: int, line: bytes) -> None:
        try:
            if number > 1 and line.startswith(_PIECE):
                start = line[len(_PIECE) : len(_PIECE) + _MOST_ADDRESS].decode("ascii")
                self._pieces.setdefault(self._text_at_start(start), []).append(self.end)
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
            self._add(read.result)
            self.done += isinstance(read.result, DoneResult)
            self.failed += isinstance(read.result, FailedResult)

    def _add(self, result: ArchiveResult) -> None:
        address, name = result.input.address, result.input.name
        is_folder = isinstance(result, DoneResult) and name in result.done.files.values()  # files have an ending
        row = self.end, _bytes(address), name, _key(name), is_folder
        self._database.execute("INSERT INTO results VALUES (?, ?, ?, ?, ?)", row)
        self._pieces.pop(address, None)

    def _text_at_start(self, json_text: str) -> str:
        try:
            text, _ = self._decoder.raw_decode(json_text)
        except (ValueError, RecursionError):
            raise ValueError("it is not JSON") from None
        if not isinstance(text, str):
            raise ValueError("its 'input' is not text")
        return text

    def _has(self, condition: str, *values: bytes) -> bool:
        return bool(self._ask(f"SELECT 1 FROM results WHERE {condition} LIMIT 1", *values))

    def _ask(self, query: str, *values: bytes) -> list[Any]:
        """The first column of all rows."""
        with self._reading:
            try:
                return [row[0] for row in self._database.execute(query, values)]
            except sqlite3.ProgrammingError as error:
                raise ValueError(str(error)) from None  # it is closed
            except sqlite3.Error as error:
                raise self._without_room(error) from error

    def _results_at(self, places: Iterable[int]) -> Iterator[RecordedResult]:
        for place in places:
            line = read_manifest_line(self._line_at(place))
            if isinstance(line, RecordedResult):
                yield line

    def _line_at(self, offset: int) -> bytes:
        if self._file is None:
            return b""
        with self._reading:
            self._file.seek(offset)
            return self._file.readline(MOST_LINE_BYTES + 1)

    def _without_room(self, error: sqlite3.Error) -> MediaError:
        return MediaError(f"the temporary index of '{self._path}' fails: {error}; TMPDIR names a folder for it")

    def _damaged(self, number: int, why: str) -> MediaError:
        return MediaError(f"'{self._path}', line {number} is damaged: {why}; remove that line, or --force begins anew")


def _database() -> str:
    """A temporary file of SQLite's; memory where it would find no folder for it but the current one."""
    named = (folder for variable in _VARIABLES if (folder := os.environ.get(variable)))
    has_folder = any(os.path.isdir(each) and os.access(each, os.W_OK | os.X_OK) for each in (*named, *_FOLDERS))
    return "" if has_folder or os.name == "nt" else ":memory:"


def _begins_a_run(torn: bytes) -> bool:
    """Whether it is a part of a manifest's first line, from its beginning on; so is nothing."""
    return _HEAD.startswith(_DIGIT.sub(b"0", torn[: len(_HEAD)]))


def _key(name: str) -> bytes:
    return _bytes(same_name_key(name))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
