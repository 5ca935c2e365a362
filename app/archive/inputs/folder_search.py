"""Searches a folder of a store, and those below it, for recordings and pictures, one at a time, by name.

What is left out is counted by why. Links are followed, into each folder once; those that lead out of the folder, only
where somebody has asked for that.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from texelflow.gpu_delegate.base.errors import MediaError

from ..results.result_names import MEDIA_ENDINGS
from .file_patterns import FilePattern, PatternPlaces
from .stores import FolderStore, StoreEntry

MOST_DEPTH = 64  # folders within each other
NO_MEDIA = "no recordings or pictures by their endings"
HIDDEN = "hidden"
RESULTS = "in the output folder"
LINKED = "links to folders that were searched before"
LEADS_OUT = "links that lead out of their folder (--follow-links)"
DEEP = f"in folders more than {MOST_DEPTH} deep"


@dataclass(frozen=True)
class FoundFile:
    """Where it is, what its results are named after, and what its store says of it."""

    address: str
    path: str
    entry: StoreEntry


@dataclass
class FolderSearch:
    """Looks for all files with an ending of media, or for what matches a pattern.

    `is_result` says of a folder, or a link to a file, whether it leads to the output folder; `problem` gets a line for
    each folder that cannot be listed.
    """

    store: FolderStore
    pattern: FilePattern | None
    is_result: Callable[[str], bool]
    problem: Callable[[str], None]
    left: Counter[str]
    follow_links: bool = False
    _root: str = ""
    _entered: set[tuple[int, int]] = field(default_factory=set)

    def files(self, folder: str, path: str = "") -> Iterator[FoundFile]:
        """Of a folder; what their paths begin with. Raises MediaError if that one cannot be listed."""
        if self.store.is_local:
            self._root = os.path.realpath(folder)
        root = self.store.look(folder)
        if root and root.place:
            self._entered.add(root.place)
        yield from self._walk(folder, path, self.pattern.start if self.pattern else None)

    def _walk(self, folder: str, path: str, places: PatternPlaces | None) -> Iterator[FoundFile]:
        """`places` is None where all is wanted; else where the pattern stands."""
        for entry in self.store.entries(folder):
            after = self.pattern.step(places, entry.name) if self.pattern and places is not None else None
            if after is not None and not after:
                continue
            address, below = self.store.join(folder, entry.name), path + self.store.shown(entry.name)
            if entry.is_folder:
                if self._enters(address, below, entry, after):
                    yield from self._below(address, f"{below}/", after)
            elif self._takes(address, entry, after):
                yield FoundFile(address, below, entry)

    def _below(self, folder: str, path: str, after: PatternPlaces | None) -> Iterator[FoundFile]:
        """A folder in another: the others go on where it cannot be listed."""
        matched = after is not None and self.pattern is not None and self.pattern.is_whole(after)
        try:
            yield from self._walk(folder, path, None if matched else after)
        except MediaError as error:
            self.problem(str(error))

    def _enters(self, address: str, path: str, entry: StoreEntry, after: PatternPlaces | None) -> bool:
        """Whether a folder is looked into."""
        why = (
            HIDDEN if after is None and entry.name.startswith(".")
            else RESULTS if self.is_result(address)
            else LEADS_OUT if self._leads_out(address, entry)
            else LINKED if entry.place in self._entered
            else DEEP if path.count("/") >= MOST_DEPTH
            else ""
        )  # fmt: skip
        if why:
            self.left[why] += 1
        elif entry.place:
            self._entered.add(entry.place)
        return not why

    def _takes(self, address: str, entry: StoreEntry, after: PatternPlaces | None) -> bool:
        """Whether a file is an input."""
        if after is not None and not (self.pattern and self.pattern.is_whole(after)):
            return False
        says_itself = after is not None and self.pattern is not None and self.pattern.names_an_ending
        why = (
            HIDDEN if after is None and entry.name.startswith(".")
            else NO_MEDIA if not says_itself and not entry.name.lower().endswith(MEDIA_ENDINGS)
            else RESULTS if entry.is_link and self.is_result(address)
            else LEADS_OUT if self._leads_out(address, entry)
            else entry.why_not
        )  # fmt: skip
        if why:
            self.left[why] += 1
        return not why

    def _leads_out(self, address: str, entry: StoreEntry) -> bool:
        """Whether it is a link that is not to be followed."""
        if not entry.is_link or self.follow_links:
            return False
        real, root = os.path.realpath(address), self._root
        return real != root and not real.startswith(root.rstrip(os.sep) + os.sep)
