"""Tells a folder of PNG files from a single one by an output's name, and writes numbered PNG files."""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError

from ..media.png import write_png
from ..stale_files import remove_stale_asides

PIPE = "-"


def wants_folder(out: Path) -> bool:
    """Whether --out names a folder for PNG files, not a file: it is one, or has no suffix; - is a pipe."""
    return str(out) != PIPE and (os.path.isdir(out) or not out.suffix)  # unlike Path.is_dir, never raises


def is_picture(out: Path) -> bool:
    """Whether --out names a single PNG file."""
    return out.suffix.lower() == ".png" and not os.path.isdir(out)


def write_numbered(folder: Path, index: int, picture: npt.NDArray[np.uint8]) -> Path:
    """A picture of a sequence, named by its frame's number: its path. Raises MediaError."""
    path = folder / f"{index:06d}.png"
    try:
        write_png(path, picture)
        return path
    except MediaError as error:
        raise MediaError(f"{error}; the pictures before it are whole") from error


def make_folder(folder: Path) -> Path:
    """The folder, made if it is not there, without what a killed run left half-written. Raises MediaError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(f"the folder '{folder}' cannot be made ({error.strerror}); choose another place") from error
    if not os.access(folder, os.W_OK):
        raise MediaError(f"nothing can be written in the folder '{folder}'; check its permissions")
    remove_stale_asides(folder)
    return folder
