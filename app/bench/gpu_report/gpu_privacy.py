"""Removes from a report what tells whose machine it was made on: names, paths, serial numbers."""

import contextlib
import getpass
import re
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COMMON = frozenset({"root", "user", "admin", "ubuntu", "debian", "pi", "runner", "localhost", "linux"})  # tell nothing
_SHORTEST = 3  # of a name that is looked for: a shorter one is part of too many words
_IDENTIFIERS = (
    re.compile(r"\b(?:GPU-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I),  # UUIDs
    re.compile(r"\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b", re.I),  # MAC addresses
    re.compile(r"\b(?:10|127|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.\d{1,3}){2,3}\b"),  # addresses at home
    re.compile(r"\bserial(?: (?:number|no\.?))?\s*[:=#]\s*\S+", re.I),
    re.compile(r"(?:/home|/Users|/root|[A-Z]:\\Users)(?:[/\\][^\s'\",;:)]+)+"),  # of whoever is at home there
)
REMOVED = "[removed]"


@dataclass(frozen=True)
class PersonalWords:
    """What a report must not hold: paths as they are, names where they stand as words."""

    paths: tuple[str, ...]
    names: tuple[str, ...]


def personal_words() -> PersonalWords:
    """Those of this machine and this user."""
    paths = {str(path) for path in (Path.home(), Path.cwd(), Path(tempfile.gettempdir())) if len(path.parts) > 1}
    return PersonalWords(tuple(sorted(paths, key=len, reverse=True)), tuple(sorted(set(_names()))))


def without_personal(value: Any, words: PersonalWords) -> Any:
    """The same value of JSON, with all texts in it cleaned, those of keys, too."""
    if isinstance(value, str):
        return _cleaned(value, words)
    if isinstance(value, dict):
        return {_cleaned(key, words): without_personal(each, words) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_personal(each, words) for each in value]
    return value


def _cleaned(text: str, words: PersonalWords) -> str:
    for path in words.paths:
        text = text.replace(path, REMOVED)
    for pattern in _IDENTIFIERS:
        text = pattern.sub(REMOVED, text)
    for name in words.names:
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", REMOVED, text, flags=re.I)
    return text


def _names() -> Iterator[str]:
    found = [Path.home().name, socket.gethostname(), socket.gethostname().partition(".")[0]]
    with contextlib.suppress(KeyError, OSError):  # an account without a name
        found.append(getpass.getuser())
    yield from (name for name in found if len(name) >= _SHORTEST and name.lower() not in _COMMON)
