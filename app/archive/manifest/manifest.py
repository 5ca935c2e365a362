"""Writes FOLDER/manifest.jsonl: a line for each result, synced to the disk within a second.

One driver at a time writes a folder's manifest, which a lock sees to. What a run that was killed left of a line is cut
off before the next one goes on; all else that was written stays.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ...console import one_line
from ..jobs.worker_config import STAGING
from ..results.result_names import MEDIA_ENDINGS
from ..results.results import ArchiveResult
from ..staging.staged_files import LOCK_NAME, foreign_in, link_among
from .manifest_index import ManifestIndex
from .manifest_lines import ManifestLine, RecordedResult, RunRecord, manifest_line

MANIFEST_NAME = "manifest.jsonl"
SYNC_DELAY_S = 1.0  # at most: what a power cut may take of lines whose results are in place
_NO_RESULTS = {"lost+found"}  # where a whole disk is the folder


class ManifestWriter:
    """An open manifest. Close it: what was put by then is on the disk, and others may write the folder."""

    def __init__(self, path: Path, run: RunRecord, held: contextlib.ExitStack, clock: Callable[[], float]) -> None:
        """Lines go to the end of a file that is whole. `held` is closed in the end. Raises MediaError."""
        self._path, self._run, self._clock = path, run, clock
        self._begun = False
        self._waiting: list[bytes] = []
        self._synced = 0.0
        with _told(path):
            self._file: BinaryIO = path.open("ab", buffering=0)
        self._held = contextlib.ExitStack()
        self._held.callback(self._file.close)
        try:
            with _told(path):
                _sync_folder(path.parent)
        except BaseException:
            self._held.close()
            raise
        self._held.push(held.pop_all())

    def put(self, result: ArchiveResult) -> None:
        """A line more, the run's own before the first; synced at once unless others were within the last second.

        Raises MediaError.
        """
        if not self._begun:
            self._put(self._run)
            self._begun = True
        self._put(RecordedResult(self._run.mark, result))
        self.tick()

    def tick(self) -> None:
        """Sync what has waited for long enough. To be called every now and then, see `due_s`. Raises MediaError."""
        if self.due_s() == 0.0:
            self.sync()

    def due_s(self) -> float | None:
        """How long `tick` may wait; None if it has nothing to do."""
        return max(0.0, self._synced + SYNC_DELAY_S - time.monotonic()) if self._waiting else None

    def sync(self) -> None:
        """All lines are on the disk. Raises MediaError, with the file as it was after the last sync."""
        if not self._waiting:
            return
        with _told(self._path):
            end = self._file.seek(0, os.SEEK_END)
            data = b"".join(self._waiting)
            try:
                while data:
                    data = data[self._file.write(data) :]
                os.fsync(self._file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(end)
                raise
        self._waiting.clear()
        self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and unlock. Raises MediaError. Harmless when repeated."""
        with self._held:
            if not self._file.closed:
                self.sync()

    def _put(self, line: ManifestLine) -> None:
        try:
            self._waiting.append(manifest_line(line, self._clock()))
        except ValueError as error:
            raise MediaError(f"'{self._path}' takes no such line: {error}") from error


def open_manifest(
    folder: Path,
    run: RunRecord,
    resume: bool = False,
    force: bool = False,
    clock: Callable[[], float] = time.time,
    held: contextlib.ExitStack | None = None,
    index: ManifestIndex | None = None,
) -> tuple[ManifestWriter, ManifestIndex]:
    """A folder's manifest, and what earlier runs wrote to it; both are to be closed.

    The folder is made where there is none. `held` is what hold_folder gave, if it is held already; the writer lets go
    of it; `index` is that of the manifest, if it has been read since then. Raises UsageError if it has a manifest that
    nobody allowed to go on with (resume) or to begin anew (force), or another driver at work; MediaError if it is
    damaged or cannot be written.
    """
    path = folder / MANIFEST_NAME
    with held or hold_folder(folder) as holding:
        if not resume:
            _begin_anew(path, force)
        index = index or ManifestIndex(path)
        try:
            if index.torn:
                with _told(path):
                    os.truncate(path, index.end)
            return ManifestWriter(path, run, holding, clock), index
        except BaseException:
            index.close()
            raise


def hold_folder(folder: Path) -> contextlib.ExitStack:
    """Keep other drivers out of a folder, which is made where there is none, until this is closed.

    Raises UsageError if another one is at work there, MediaError if it cannot be written.
    """
    with contextlib.ExitStack() as held:
        _lock(folder, held)
        return held.pop_all()


def check_manifest(folder: Path, resume: bool, force: bool) -> None:
    """Raise UsageError for a folder in which nobody allowed to write.

    One that has a manifest is to be gone on with, or begun anew; so is one without where something lies whose place
    results could take.
    """
    path = folder / MANIFEST_NAME
    with _told(path):
        if (link := link_among(folder / STAGING)) is not None:
            raise UsageError(f"'{link}' is a link, which is not followed: remove it, or choose another folder")
        if path.exists() and path.stat().st_size:
            if not (resume or force):
                raise UsageError(f"'{folder}' has a manifest: --resume goes on with it, --force begins anew")
        elif not force and (found := _unknown_in(folder)):
            raise UsageError(
                f"'{folder}' has '{one_line(found)}' in it, and no manifest: choose another folder; --force writes over"
                " what has the names of results"
            )


def _unknown_in(folder: Path) -> str | None:
    """The name of something that is not ours: a file or a folder that results could take the place of, or that lies in
    the staging folder. Raises OSError.
    """
    if not folder.is_dir():
        return None
    if (foreign := foreign_in(folder / STAGING)) is not None:
        return str(foreign.relative_to(folder))
    with os.scandir(folder) as entries:
        names = (
            each.name
            for each in entries
            if not each.name.startswith(".")
            and each.name not in _NO_RESULTS
            and (each.name.lower().endswith(MEDIA_ENDINGS) or _is_folder(each))
        )
        return min(names, default=None)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is one, or may be: nobody can tell of a link that leads to itself."""
    try:
        return entry.is_dir()
    except OSError:
        return True


def _begin_anew(path: Path, force: bool) -> None:
    check_manifest(path.parent, False, force)
    if force:
        with _told(path):
            path.unlink(missing_ok=True)


def _lock(folder: Path, held: contextlib.ExitStack) -> None:
    import filelock

    path = folder / STAGING / LOCK_NAME
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            held.enter_context(filelock.FileLock(path, timeout=0))
        except filelock.Timeout:
            raise UsageError(f"'{folder}' is being written by another run; wait for it, or choose another") from None
        except NotImplementedError:  # a file system without locks: whoever uses it sees to it that one run writes
            return


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MediaError(f"'{path}' cannot be written: {error.strerror or error}; choose another folder") from error


def _sync_folder(folder: Path) -> None:
    """So that the file's name is there after a power cut; where folders can be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
