"""Finds the photograph of a person of the scenes, in the folder or fetched into the cache as models are.

Four photographs are in the source distribution of a package. Their EXIF data carries a notice against manipulation and
commercial use: so they are read where a user measures, and nothing of them is stored elsewhere, shown or shipped.
"""

import hashlib
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.cache_folder import cache_folder
from texelflow.gpu_delegate.base.errors import CatalogueError, MediaError

from ...models.download import DownloadProgress, download_source
from ...models.temp_folder import store_whole, temp_folder
from .scene_data import Person

__all__ = ["FETCHED", "ScenePixels", "fetch_photos", "fetched_photo", "read_photo", "read_pixels"]

ScenePixels = npt.NDArray[np.uint8]

_PACKAGE, _VERSION = "face_recognition", "1.3.0"


@dataclass(frozen=True)
class PinnedFile:
    """What a file must be."""

    bytes: int
    sha256: str


_ARCHIVE = PinnedFile(3_182_249, "5e5efdd1686aa566af0d3cc1313b131e4b197657a8ffd03669e6d3fad92705ec")
FETCHED: Mapping[str, PinnedFile] = MappingProxyType(
    {
        "obama": PinnedFile(279_922, "0930e3aa8cae5920329c0c8cbc6a2ab70f47b0e67b432875beaa95cbf7e741f6"),
        "obama2": PinnedFile(184_455, "a7efcc907375274796f39646510704aa86672d59f6d5469d69af3c85590976a6"),
        "obama3": PinnedFile(595_944, "76ac6bf97c36dc2da0ad16a537d6a5ac1b10f48d49aac29a0cca9a17cdbc3ca3"),
        "biden": PinnedFile(353_723, "3c17508bb91554c637a2eabddfae790e5bb1caba93130814fc2ac50be9760c4c"),
    }
)


def read_photo(person: Person, folder: Path) -> ScenePixels:
    """RGB (h, w, 3). Raises MediaError where it is not, CatalogueError for one that has to be fetched first."""
    if person.stored:
        return read_pixels(folder / "photos" / f"{person.name}.jpg")
    path = fetched_photo(person.name)
    if not _holds(path, FETCHED[person.name]):
        raise CatalogueError(f"'{path}' is gone or was changed; run this again to fetch it")
    return read_pixels(path)


def read_pixels(path: Path, kind: int = cv2.IMREAD_COLOR) -> ScenePixels:
    """A picture's pixels, RGB or gray. Raises MediaError if there is none."""
    pixels = cv2.imread(str(path), kind) if path.is_file() else None
    if pixels is None:
        raise MediaError(f"'{path}' is no picture; take it from the repository")
    return np.asarray(pixels[..., ::-1] if pixels.ndim == 3 else pixels, np.uint8)


def fetched_photo(name: str) -> Path:
    """Where a photograph is, or will be once it is fetched."""
    return _folder() / f"{name}.jpg"


def _folder() -> Path:
    return cache_folder() / "scenes"


def fetch_photos(progress: DownloadProgress | None = None) -> None:
    """Have all that are fetched in the cache, where nothing is done if they are there. Raises CatalogueError."""
    if all(_holds(fetched_photo(name), photo) for name, photo in FETCHED.items()):
        return
    try:
        with temp_folder(_folder()) as work:
            archive = download_source(_PACKAGE, _VERSION, _ARCHIVE.sha256, _ARCHIVE.bytes, work, progress)
            if not _holds(archive, _ARCHIVE):
                raise CatalogueError(f"{_PACKAGE} {_VERSION}: wrong checksum; nothing was stored")
            for name, content in _members(archive):
                store_whole(fetched_photo(name), content, work)
    except OSError as error:
        why = error.strerror or str(error)
        raise CatalogueError(
            f"photographs cannot be stored in {_folder()} ({why}): choose another place with TEXELFLOW_CACHE"
        ) from error


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The verified bytes of each photograph in the archive, never more of them than it has."""
    try:
        with tarfile.open(archive, "r:gz") as entries:
            for name, photo in FETCHED.items():
                stream = entries.extractfile(f"{_PACKAGE}-{_VERSION}/tests/test_images/{name}.jpg")
                content = stream.read(photo.bytes + 1) if stream else b""
                if hashlib.sha256(content).hexdigest() != photo.sha256:
                    raise CatalogueError(f"{_PACKAGE} {_VERSION}: {name}.jpg has a wrong checksum; it was not stored")
                yield name, content
    except (KeyError, tarfile.TarError, zlib.error, EOFError) as error:
        raise CatalogueError(f"{_PACKAGE} {_VERSION}: the downloaded archive is damaged ({error})") from error


def _holds(path: Path, wanted: PinnedFile) -> bool:
    """Whether the file is that one: size first, so that only a likely one is read."""
    try:
        return path.stat().st_size == wanted.bytes and hashlib.sha256(path.read_bytes()).hexdigest() == wanted.sha256
    except OSError:
        return False
