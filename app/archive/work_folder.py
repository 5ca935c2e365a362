"""A job goes in; a new folder for what it writes comes out. It is removed behind it, as what earlier attempts left."""

import contextlib
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .jobs import Job, JoinPieces, OpenInput, RenderPiece

WORK = "work"  # in the staging folder
PIECES = "pieces"
_DIGITS = 24


@contextlib.contextmanager
def work_folder(staging: Path, job: Job) -> Iterator[Path]:
    """A folder in `staging`. An attempt that is still under way elsewhere fails, for it is taken to be dead.

    Raises OSError.
    """
    own = staging / WORK / job_key(job)
    own.mkdir(parents=True, exist_ok=True)
    for left in own.iterdir():
        _remove(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{platform.node()[:64]}-{os.getpid()}-", dir=own))
    folder.chmod(0o755)  # what is made here is for everybody
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            own.rmdir()


def job_key(job: Job) -> str:
    """The same for all attempts at a job, and of no other."""
    kinds = {OpenInput: "whole", RenderPiece: "piece", JoinPieces: "join"}
    number = f"-{job.piece}" if isinstance(job, RenderPiece) else ""
    return f"{kinds[type(job)]}-{name_key(job.input.name)}{number}"


def piece_name(job: RenderPiece, file: Path) -> str:
    """Where a file of a piece goes, below the staging folder: one place for each input, as its bytes are."""
    return f"{PIECES}/{name_key(job.input.name)}-{job.sha256[:_DIGITS]}-{job.piece}-{file.name}"


def name_key(name: str) -> str:
    """A name for files that stands for that of an input's results."""
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]


def _remove(left: Path) -> None:
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            left.unlink()
