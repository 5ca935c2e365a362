"""The name of an output goes in; whether it is a folder, that folder, and numbered PNG files in it come out."""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.errors import MediaError, UsageError

from ..frame.effects import Effect
from ..leftovers import remove_if_left
from ..media.recorder import write_png


def wants_folder(out: Path, effect: Effect) -> bool:
    """Whether --out names a folder for PNG files, not a video: it is one, or has no suffix.

    Raises UsageError for a video of a transparent effect.
    """
    if os.path.isdir(out) or not out.suffix:  # unlike Path.is_dir, never raises
        return True
    if effect == "cutout":
        folder = out.with_suffix("")
        raise UsageError(f"--out {out}: a video has no transparency; give a folder for PNG files, as --out {folder}")
    return False


def write_numbered(folder: Path, index: int, picture: npt.NDArray[np.uint8]) -> None:
    """A picture of a sequence, named by its frame's number. Raises MediaError."""
    try:
        write_png(folder / f"{index:06d}.png", picture)
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
    for part in folder.glob("*.png.part"):
        remove_if_left(part)
    return folder
