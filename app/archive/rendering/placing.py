"""Moves finished results to the output folder without replacing anybody else's file.

A name that is taken gets the next number: a-2, a-3. What lies at a place is taken for the result of the same input only
where a line of the manifest holds its digest, or where it has the very bytes that should come there.
"""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

from texelflow.gpu_delegate.base.errors import MediaError

from ...atomic import publish
from ...media.finished import finished_by
from ..results.result_files import link_above, look_at_result, result_digest
from .rendering import result_name

_MOST_NUMBERS = 10_000

PlaceStanding = Literal["free", "replaced", "kept", "taken"]


@dataclass(frozen=True)
class PlaceRules:
    """What may be replaced: what has these digests, by path in the folder.

    `overwrites` (--force): also any file, and any folder of pictures, that was there before the run began (`began_ns`,
    by the clock of the folder's file system). `tag` is what finished files are tagged with that were made by the same
    settings of the same input.
    """

    own: Mapping[str, str]
    overwrites: bool = False
    began_ns: int = 0
    tag: str | None = None


@dataclass(frozen=True)
class PlacedResults:
    """Where results are, and what can be seen of them, by kind."""

    name: str
    files: Mapping[str, str]  # paths in the folder
    file_bytes: Mapping[str, int]
    file_sha256: Mapping[str, str]
    file_modified_ns: Mapping[str, int]


def place_results(out: Path, name: str, files: Mapping[str, Path], rules: PlaceRules) -> PlacedResults:
    """Give all of them one name that is free, or theirs. Raises MediaError."""
    digests = {kind: result_digest(file) for kind, file in files.items()}
    for number in count(1):
        called = name if number == 1 else f"{name}-{number}"
        places = {kind: result_name(called, kind, file) for kind, file in files.items()}
        wanted = [(places[kind], file, digests[kind]) for kind, file in files.items()]
        if all(standing_at(out, *each, rules) != "taken" for each in wanted) and all(
            _placed(out, *each, rules) for each in wanted
        ):
            return _seen(out, called, places)
        if number == _MOST_NUMBERS:
            break
    raise MediaError(f"'{out / name}' and {_MOST_NUMBERS} numbers after it are taken; choose another folder")


def standing_at(out: Path, place: str, file: Path, digest: str | None, rules: PlaceRules) -> PlaceStanding:
    """What may be done at a place for a file with that digest. Raises MediaError where nobody can tell."""
    path = out / place
    try:
        if (link := link_above(out, place)) is not None:
            raise MediaError(
                f"'{link}' is a link, and results stay in the output folder; move it, or choose another one"
            )
        found = path.lstat()
    except FileNotFoundError:
        return "free"
    except OSError as error:
        raise MediaError(f"'{path}' cannot be written ({error.strerror}); choose another place") from error
    is_new = found.st_ctime_ns >= rules.began_ns > 0  # another job of this run has made it, or somebody else
    if rules.overwrites and not is_new and stat.S_ISDIR(found.st_mode) == file.is_dir() and look_at_result(path):
        return "replaced"
    there = result_digest(path)
    if there is None:
        return "taken"
    if there == digest:
        return "kept"
    if there == rules.own.get(place):
        return "replaced"
    # by another attempt at the same job, in this run: a copy of it, or one whose worker was lost
    return "kept" if is_new and rules.tag is not None and finished_by(path) == rules.tag else "taken"


def _placed(out: Path, place: str, file: Path, digest: str | None, rules: PlaceRules) -> bool:
    """Whether it is there now; not where somebody else came first."""
    while (standing := standing_at(out, place, file, digest, rules)) != "taken":
        if standing == "kept" or publish(file, out / place, exclusive=standing == "free"):
            return True
    return False


def _seen(out: Path, name: str, places: Mapping[str, str]) -> PlacedResults:
    stamps = {kind: look_at_result(out / place) for kind, place in places.items()}
    digests = {kind: result_digest(out / place) for kind, place in places.items()}
    if None in stamps.values() or None in digests.values():
        raise MediaError(f"'{out / name}' was changed while it was written")
    return PlacedResults(
        name,
        dict(places),
        {kind: stamp.size_bytes for kind, stamp in stamps.items() if stamp},
        {kind: digest for kind, digest in digests.items() if digest},
        {kind: stamp.modified_ns for kind, stamp in stamps.items() if stamp},
    )
