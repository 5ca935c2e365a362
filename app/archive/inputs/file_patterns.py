"""Matches names of files against patterns with *, ? and [, folder by folder.

The folders of a search are walked one by one: in each, `step` says of every name where the pattern stands after it.
"""

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

_MAGIC = re.compile(r"[*?\[]")
_MAGIC_OF_THE_WEB = re.compile(r"[*\[]")  # there a question mark begins what a server is asked
_DEEPER = "**"

PatternPlaces = frozenset[int]  # numbers of the parts that the next name may match


@dataclass(frozen=True)
class FilePattern:
    """The parts of a pattern below its folder; ** is any number of folders. Hidden names need a dot of their own."""

    parts: tuple[str, ...]

    @property
    def start(self) -> PatternPlaces:
        """Where it stands in its folder."""
        return self._with_skipped({0})

    @property
    def names_an_ending(self) -> bool:
        """Whether it says by itself which files are meant, as *.dat does."""
        return re.search(r"\.[A-Za-z0-9]+$", self.parts[-1]) is not None

    def step(self, places: PatternPlaces, name: str) -> PatternPlaces:
        """Where it stands after a name; nowhere if that does not match."""
        hidden = name.startswith(".")
        after = set[int]()
        for place in places:
            if place == len(self.parts):
                continue
            part = self.parts[place]
            if part == _DEEPER:
                after |= set() if hidden else {place}
            elif (not hidden or part.startswith(".")) and fnmatchcase(name, part):
                after.add(place + 1)
        return self._with_skipped(after)

    def is_whole(self, places: PatternPlaces) -> bool:
        """Whether all of it has matched."""
        return len(self.parts) in places

    def _with_skipped(self, places: set[int]) -> PatternPlaces:
        """** may be no folder at all."""
        found = set(places)
        for place, part in enumerate(self.parts):
            if place in found and part == _DEEPER:
                found.add(place + 1)
        return frozenset(found)


def has_pattern(name: str, of_the_web: bool = False) -> bool:
    """Whether a name, which is no file itself, means others."""
    return (_MAGIC_OF_THE_WEB if of_the_web else _MAGIC).search(name) is not None


def fixed_folder(name: str, of_the_web: bool = False) -> tuple[str, FilePattern]:
    """rec/2024-*/**/*.mp4 begins in rec: that folder ("" where there is none), and the pattern in it."""
    if os.sep != "/" and not of_the_web:
        name = name.replace(os.sep, "/")
    found = (_MAGIC_OF_THE_WEB if of_the_web else _MAGIC).search(name)
    magic = found.start() if found else len(name)
    least = name.find("://") + 3 if "://" in name[:magic] else 0
    cut = max(name.rfind("/", 0, magic) + 1, least)
    folder = name[:cut].rstrip("/") if cut > least else name[:cut]
    parts = tuple(part for part in name[cut:].split("/") if part not in ("", "."))
    return folder or name[:cut], FilePattern(parts or ("*",))
