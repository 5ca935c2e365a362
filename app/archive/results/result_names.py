"""Names results after their inputs' paths: always below the output folder, and no name twice.

A name has "/" between its parts and no ending. It is the same on every system, so that the folder can be shared.
"""

import hashlib
import re
from typing import Protocol
from unicodedata import normalize

from ...frame.looks.thumbnails import VIDEO_ENDINGS
from ...media.image_file import IMAGE_ENDINGS

MEDIA_ENDINGS = (
    *(*IMAGE_ENDINGS, *VIDEO_ENDINGS),
    *(".3gp", ".asf", ".flv", ".h264", ".hevc", ".m2ts", ".mjpeg", ".mjpg", ".mpeg", ".mpg", ".mts", ".mxf"),
    *(".ogv", ".ts", ".vob", ".wmv", ".y4m"),
)  # by which folders are searched; what a file holds decides what it is
MOST_PART_BYTES = (
    200  # file systems have 255; endings, numbers and what is added to a name while it is written need some
)
MOST_NAME_BYTES = 800

_FORBIDDEN = frozenset('<>:"|?*\\')  # in names on some file systems
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)", re.IGNORECASE)  # devices of Windows
_OF_RESULTS = re.compile(r"(?:\.(png|mp4|m4v|mkv|mov|webm|json|jsonl|part)|[-.](masks))$", re.IGNORECASE)
_DIGEST_LETTERS = 12
_KEY_BYTES = 15  # a hash that no two of 10^9 names share, in the least memory that an int of Python takes for it


def without_media_ending(path: str) -> str:
    """talk.mp4 becomes talk; talk.2024 stays."""
    cut = next((len(ending) for ending in MEDIA_ENDINGS if path.lower().endswith(ending)), 0)
    return path[: len(path) - cut] if cut and path[-cut - 1 : -cut] not in ("", "/") else path


def shareable_name(path: str) -> str:
    """The name nearest to a path that stays below the folder, can be seen, and can be written on every file system.

    No part of it ends as files of results do: with an ending of theirs, or with -masks. Such a name stays as it is.
    """
    parts = [_safe_part(part) for part in path.split("/") if part.strip(" .")] or ["input"]
    name = "/".join(parts)
    if len(name.encode()) <= MOST_NAME_BYTES:
        return name
    kept = list[str]()
    while parts and len("/".join((*kept, parts[-1])).encode()) <= MOST_NAME_BYTES - _DIGEST_LETTERS - 1:
        kept.insert(0, parts.pop())
    return "/".join((_digest(name), *kept))


def _safe_part(text: str) -> str:
    shown = "".join(letter if letter.isprintable() and letter not in _FORBIDDEN else "_" for letter in text)
    shown = _OF_RESULTS.sub(lambda found: f"_{found[1] or found[2]}", shown.strip(" ").rstrip(" ."))
    if len(shown.encode()) > MOST_PART_BYTES:
        most = MOST_PART_BYTES - _DIGEST_LETTERS - 1
        shown = f"{shown.encode()[:most].decode(errors='ignore').rstrip(' .')}-{_digest(shown)}"
    if shown.startswith("."):
        shown = f"_{shown[1:]}"
    return _RESERVED.sub(r"_\1", shown, count=1) if _RESERVED.match(shown) else shown


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LETTERS]


def same_name_key(name: str) -> str:
    """Equal for names that are one on some file system: in large or small letters, however accents are written."""
    return normalize("NFC", normalize("NFC", name).casefold())


def hashed_text(text: str) -> int:
    """A number that stands for a text where many are remembered."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_KEY_BYTES).digest(), "big")


class KnownNames(Protocol):
    """Names that an earlier run gave, as ManifestIndex has them."""

    def name_of(self, address: str) -> str | None:
        """That of an input's results; None if it has none yet, or another input had it first."""
        ...

    def has_name(self, name: str) -> bool:
        """Whether some input has it, in large or small letters."""
        ...

    def has_below(self, folder: str) -> bool:
        """Whether some input's name lies in that folder, or below."""
        ...

    def has_folder(self, name: str) -> bool:
        """Whether a folder of that name is some input's result."""
        ...


class NameBook:
    """Gives each input a name that no other has. A name that was given in an earlier run is kept."""

    def __init__(self, known: KnownNames | None = None, of_folders: bool = False) -> None:
        """`of_folders`: results are folders themselves, so that none may lie in another one, or in an earlier one."""
        self._known, self._of_folders = known, of_folders
        self._taken, self._above = set[int](), set[int]()  # names, and folders that they are in
        self._numbers = dict[int, int]()  # the last of a name that was wanted more than once

    def name_for(self, address: str, path: str) -> str:
        """The name of the results of what lies at an address; `path` is what it is called, and may be anything."""
        known = self._known.name_of(address) if self._known else None
        if known is not None and self._is_usable(known):
            self._take(known)
            return known
        wanted = shareable_name(without_media_ending(path))
        if any(self._is_result(folder) for folder in folders_of(wanted)):
            wanted = shareable_name(wanted.replace("/", "_"))
        name, first = wanted, _key(wanted)
        while self._is_name(name) or self._is_above(name):
            self._numbers[first] = number = self._numbers.get(first, 1) + 1
            name = f"{wanted}-{number}"
        self._take(name)
        return name

    def _is_usable(self, known: str) -> bool:
        """Whether a name that an earlier run gave can be kept."""
        return shareable_name(known) == known and _key(known) not in self._taken and not self._lies_amid_others(known)

    def _lies_amid_others(self, known: str) -> bool:
        """Whether a name was given by a run whose results were files, and will not do now that some are folders."""
        in_result = self._known is not None and any(map(self._known.has_folder, folders_of(known)))
        return in_result or self._is_above(known)

    def _is_name(self, name: str) -> bool:
        return _key(name) in self._taken or bool(self._known and self._known.has_name(name))

    def _is_above(self, name: str) -> bool:
        """Whether a folder of that name would have results of others in it."""
        return self._of_folders and (_key(name) in self._above or bool(self._known and self._known.has_below(name)))

    def _is_result(self, folder: str) -> bool:
        """Whether others' results may not lie in that folder: it is one itself, or will be."""
        return self._is_name(folder) if self._of_folders else bool(self._known and self._known.has_folder(folder))

    def _take(self, name: str) -> None:
        self._taken.add(_key(name))
        if self._of_folders:
            self._above.update(map(_key, folders_of(name)))


def _key(name: str) -> int:
    return hashed_text(same_name_key(name))


def folders_of(name: str) -> list[str]:
    """a and a/b of a/b/c."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
