"""Expands names from the command line to every recording and picture that they mean, one at a time.

A name is a file, a folder with all that is in it, a pattern (*, ?, [, **), a list of paths (@FILE, FILE.txt, FILE.list
or - for standard input), or an address of a file, a folder or a pattern that fsspec opens. Their order is that of the
names, and in folders that of the letters, so that it is the same each time.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError, TexelflowError, UsageError

from ...console import one_line
from ...media.pipe import PIPE
from ..jobs.failures import StoppedError
from ..jobs.jobs import ArchiveInput
from ..results.result_names import MEDIA_ENDINGS, KnownNames, NameBook, hashed_text
from .fetching import local_path
from .file_patterns import FilePattern, fixed_folder, has_pattern
from .folder_search import RESULTS, FolderSearch, FoundFile
from .listing_thread import NOTHING_YET_S, ListingThread
from .measuring import measured
from .path_lists import LIST_ENDINGS, PathList
from .stores import FolderStore, LocalStore, StoreEntry, is_address, store_of

TWICE = "named twice"

_MOST_PROBLEMS = 20  # that are kept in words
_WEB = ("http://", "https://")


@dataclass(frozen=True)
class InputSource:
    """What one name means: a file, or all that a folder holds, or what matches a pattern in it.

    `path` is what paths of files in a folder begin with, for their results: a slash at its end, or nothing.
    """

    store: FolderStore
    place: str
    file: FoundFile | None = None
    pattern: FilePattern | None = None
    path: str = ""


class InputListing:
    """Iterate over it once. `left` counts what is left out, by why; `problems` are the first that could not be listed.

    `found` counts inputs so far, `is_complete` says whether those are all, and `problem_count` what went wrong. Who
    iterates on a thread sets `stopping` to end it.
    """

    def __init__(
        self,
        names: Sequence[str],
        out: Path,
        known: KnownNames | None = None,
        of_folders: bool = False,
        follow_links: bool = False,
    ) -> None:
        """`known` are names of results that an earlier run gave; `of_folders`: results are folders of pictures.

        `follow_links`: in folders, also those that lead out of them.

        Raises UsageError for a name that means nothing, and for one in the output folder, before anything is done.
        """
        self.left, self.problems = Counter[str](), list[str]()
        self.found, self.problem_count, self.is_complete = 0, 0, False
        self.stopping = threading.Event()
        self._follow_links = follow_links
        self._out, self._book = os.path.realpath(out), NameBook(known, of_folders)
        self._sources = [self._checked(name) for name in names]
        several = len(names) > 1 or any(isinstance(each, PathList) for each in self._sources)
        self._seen: set[int] | None = set() if several else None

    def __iter__(self) -> Iterator[ArchiveInput]:
        """Raises UsageError for a bad line of a list on standard input, StoppedError, and nothing else."""
        for each in measured(self._files_in_time()):
            name, entry = self._book.name_for(each.address, each.path), each.entry
            self.found += 1
            yield ArchiveInput(self.found - 1, each.address, name, entry.size_bytes, entry.modified_ns)
        self.is_complete = True

    def _files_in_time(self) -> Iterator[tuple[FoundFile, FolderStore] | None]:
        """The same as `_files`, and None whenever standard input has nothing more for now."""
        if not any(isinstance(each, PathList) and each.file == PIPE for each in self._sources):
            yield from self._files()
            return
        files = ListingThread(self._files())
        try:
            for each in files:
                yield each
                if each is None and self.stopping.wait(NOTHING_YET_S):
                    raise StoppedError
        finally:
            files.stop()  # it may wait for standard input

    def _files(self) -> Iterator[tuple[FoundFile, FolderStore]]:
        """All of them, each once, and where they lie."""
        for named in self._sources:
            for source in self._of_list(named) if isinstance(named, PathList) else (named,):
                for each in self._of(source):
                    if self._is_new(each.address):
                        yield each, source.store

    def left_out(self) -> str:
        """A line about what is no input; '' if nothing was left out."""
        return f"left out: {_counts(self.left)}" if self.left else ""

    def not_listed(self) -> Iterator[str]:
        """A line about each of the first places that could not be listed, and how many more there were."""
        yield from self.problems
        if self.problem_count > len(self.problems):
            yield f"{self.problem_count - len(self.problems)} more could not be listed"

    def _checked(self, name: str) -> InputSource | PathList:
        """What a name on the command line means. Raises UsageError if that is nothing."""
        if name == PIPE or name.startswith("@") or (name.lower().endswith(LIST_ENDINGS) and not is_address(name)):
            listed = PathList(name if name == PIPE else name.removeprefix("@"))
            listed.check()
            return listed
        try:
            name = _without_scheme(name)
            source = _source_of(name, os.path.basename(name.rstrip("/")))
            if source is None:
                raise UsageError(f"{_short(name)}: no such file or folder")
            if source.file and source.file.entry.why_not:
                raise UsageError(f"{_short(name)}: not a regular file")
            if isinstance(source.store, LocalStore) and self._is_result(source.place):
                raise UsageError(f"{_short(name)} is in the output folder; choose another one for --out")
            first = next(self._of(source, tells=True), None)
        except MediaError as error:
            raise UsageError(str(error)) from None
        if first is None:
            why = f"; left out: {_counts(self.left)}" if self.left else ""
            raise UsageError(f"{_short(name)}: no recordings or pictures there{why}")
        self.left.clear()
        self.problems.clear()
        self.problem_count = 0
        return source

    def _of(self, source: InputSource, tells: bool = False) -> Iterator[FoundFile]:
        """All that it means. `tells` raises MediaError where its folder cannot be listed."""
        if source.file:
            yield source.file
            return
        search = FolderSearch(
            source.store, source.pattern, self._is_result, self._problem, self.left, self._follow_links
        )
        try:
            yield from search.files(source.place, source.path)
        except MediaError as error:
            if tells:
                raise
            self._problem(str(error))

    def _of_list(self, listed: PathList) -> Iterator[InputSource]:
        """A line that means nothing is an input, too, which will be said to have failed."""
        last_folder, in_results = "", False
        for number, line in listed.lines():
            try:
                source = _source_of_line(_without_scheme(line), listed.folder)
            except TexelflowError as error:
                self._problem(f"{listed.file}, line {number}: {error}")
                continue
            is_plain = source.file and not source.file.entry.is_link
            folder = os.path.dirname(source.place) if is_plain else source.place
            if folder != last_folder:
                last_folder, in_results = folder, self._is_result(folder)
            if in_results:
                self.left[RESULTS] += 1
            else:
                yield source

    def _is_new(self, address: str) -> bool:
        if self._seen is None:
            return True
        key = hashed_text(address)
        if key in self._seen:
            self.left[TWICE] += 1
            return False
        self._seen.add(key)
        return True

    def _is_result(self, folder: str) -> bool:
        """Whether a local folder or file is in the output folder."""
        if is_address(folder):
            return False
        real = os.path.realpath(folder)
        return real == self._out or real.startswith(self._out.rstrip(os.sep) + os.sep)

    def _problem(self, line: str) -> None:
        self.problem_count += 1
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(one_line(line))


def _source_of(name: str, path: str) -> InputSource | None:
    """What a path or an address means, None for nothing. `path` is what results of a file are named after.

    Raises TexelflowError.
    """
    if not name:
        return None
    store, remote = store_of(name), is_address(name)
    place, of_the_web = name if remote else os.path.abspath(name), name.lower().startswith(_WEB)
    magic = has_pattern(name, of_the_web)
    if remote and not magic and name.partition("?")[0].lower().endswith(MEDIA_ENDINGS):
        path = store.shown(path.partition("?")[0] if of_the_web else path)
        return InputSource(store, name, FoundFile(name, path, StoreEntry(path, False)))  # a list may have millions
    entry = None if remote and magic else store.look(place)
    if entry is None and magic:
        folder, pattern = fixed_folder(place, of_the_web)
        return InputSource(store, folder, None, pattern)
    if entry is None:
        return None
    return InputSource(store, place, None if entry.is_folder else FoundFile(place, store.shown(path), entry))


def _source_of_line(line: str, folder: str) -> InputSource:
    """As of a line in a list. A file that is missing is an input all the same: its worker will say so."""
    place = _place_of_line(line, folder)
    path = _path_of_line(place, folder)
    source = _source_of(place, path)
    if source is None:
        return InputSource(store_of(place), place, FoundFile(place, path, StoreEntry(path, False)))
    return source if source.file else replace(source, path=_with_slash(_path_of_line(source.place, folder)))


def _without_scheme(name: str) -> str:
    """file:///a/b.mp4 is a path of this machine. Raises MediaError for another machine's."""
    path = local_path(name) if name.lower().startswith("file://") else None
    return name if path is None else str(path)


def _place_of_line(line: str, folder: str) -> str:
    return line if is_address(line) else os.path.abspath(os.path.join(folder, os.path.expanduser(line)))


def _path_of_line(place: str, folder: str) -> str:
    """A path below the list's folder from there on; any other from its root or its host on."""
    if is_address(place):
        host, _, path = place.partition("://")[2].partition("/")
        return f"{host.rpartition('@')[2].partition(':')[0]}/{path}"
    within, above = f"{place}{os.sep}", folder.rstrip(os.sep) + os.sep
    path = place[len(above) :] if within.startswith(above) else os.path.splitdrive(place)[1]
    return path.replace(os.sep, "/")


def _with_slash(path: str) -> str:
    return path.rstrip("/") + "/" if path else ""


def _counts(left: Counter[str]) -> str:
    return ", ".join(f"{why} {count}" for why, count in left.copy().most_common())  # a thread may still count


def _short(name: str) -> str:
    return one_line(name)[:200]
