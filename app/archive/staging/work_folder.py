"""Makes a work folder for each job, and removes it afterwards, as well as what earlier attempts left."""

import contextlib
import hashlib
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..jobs.jobs import Job, JoinPieces, OpenInput, RenderPiece

WORK = "work"  # in the staging folder
PIECES = "pieces"
_DIGITS = 24
_DEAD_S = 600.0


@contextlib.contextmanager
def work_folder(staging: Path, job: Job) -> Iterator[Path]:
    """A folder in `staging`. Another attempt may be under way elsewhere, as a backup copy; one that wrote nothing for
    ten minutes, by the file server's clock, is taken to be dead, and removed.

    Raises OSError.
    """
    own = staging / WORK / job_key(job)
    folder = _made_in(own)
    folder.chmod(0o755)  # what is made here is for everybody
    now = folder.stat().st_mtime
    for left in own.iterdir():
        if left != folder and now - _written(left) > _DEAD_S:
            _remove(left)
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


def piece_name(job: RenderPiece, made_from: str, file: Path) -> str:
    """Where a file of a piece goes, below the staging folder: one place for each input, as its bytes are, each range
    of its frames, and all that decides what is made of them.
    """
    frames = f"{job.range.first}-{job.range.last}-{job.range.lead}"
    return f"{PIECES}/{name_key(job.input.name)}-{job.sha256[:_DIGITS]}-{name_key(made_from)}-{frames}-{file.name}"


def name_key(name: str) -> str:
    """A name for files that stands for any text, such as the name of an input's results."""
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]


def _made_in(own: Path) -> Path:
    prefix = f"{platform.node()[:64]}-{os.getpid()}-"
    own.mkdir(parents=True, exist_ok=True)
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=own))
    except FileNotFoundError:  # another attempt came to its end that very moment
        own.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=own))


def _written(left: Path) -> float:
    """When something was last written in a folder that another attempt made."""
    newest = math.nan
    with contextlib.suppress(OSError):
        newest = left.stat().st_mtime
        for path in left.iterdir():
            with contextlib.suppress(OSError):
                newest = max(newest, path.stat().st_mtime)
    return newest


def _remove(left: Path) -> None:
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            left.unlink()
