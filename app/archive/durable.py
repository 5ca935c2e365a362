"""Files that were written aside go in; once they are on the disk they get their names, all at once or not at all."""

import contextlib
import os
import shutil
import sys
from pathlib import Path


def sync_file(path: Path) -> None:
    """Wait until a file's bytes are on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY if sys.platform != "win32" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where systems can do that. Raises OSError."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(aside: Path, place: Path, trash: Path) -> int:
    """Give a file or folder its name, in place of what may be there; the bytes of it. Raises OSError.

    Both are on one file system. A folder that was there is moved to `trash`, where there must be nothing, first.
    """
    bytes_in_all = _sync_all(aside)
    _make_folders(place.parent)
    if place.is_dir() and not place.is_symlink():
        os.replace(place, trash)
        shutil.rmtree(trash, ignore_errors=True)
    elif aside.is_dir():
        with contextlib.suppress(FileNotFoundError):
            place.unlink()
    os.replace(aside, place)
    sync_folder(place.parent)
    return bytes_in_all


def bytes_of(path: Path) -> int:
    """Of a file, or of all files in a folder. Raises OSError."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())


def _sync_all(path: Path) -> int:
    if not path.is_dir():
        sync_file(path)
        return path.stat().st_size
    files = [Path(entry.path) for entry in os.scandir(path) if entry.is_file()]
    for file in files:
        sync_file(file)
    sync_folder(path)
    return sum(file.stat().st_size for file in files)


def _make_folders(folder: Path) -> None:
    """It and those above it, with their names on the disk."""
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)
