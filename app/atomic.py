"""A file or a folder that was written aside goes in; it is on the disk, wholly, under its final name when it comes out.

`aside` lies on the same file system as the final name. Whoever looks sees what was there before, or all of the new.
"""

import os
from pathlib import Path


def sync(path: str | os.PathLike[str]) -> None:
    """Have a file, or a folder and all in it, written to the disk itself. Raises MediaError."""
    raise NotImplementedError


def publish(aside: Path, final: Path) -> None:
    """Sync it, then give it its final name in one step, and sync the folder that holds the name. Raises MediaError.

    Folders above are made. A file takes the place of a file. A folder cannot take the place of one with something in
    it in one step: that one is moved aside first, to `aside` with ".old" added, and removed afterwards.
    """
    raise NotImplementedError
