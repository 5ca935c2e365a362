"""Publishes a finished file or folder: syncs it to the disk and renames it to its final name, in one step.

`aside` lies on the same file system as the final name. Whoever looks sees what was there before, or all of the new.
"""

import errno
import os
import shutil
import stat
import sys
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError

from .console import one_line
from .media.finished import is_numbered

_OLD = ".old"
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}  # of a file system without them
_MOVE_IT = "move that, or choose another place"


def sync(path: Path) -> None:
    """Have a file, or a folder and all in it, written to the disk itself. Raises MediaError."""
    try:
        _sync(path)
    except OSError as error:
        raise MediaError(f"'{path}' cannot be written to the disk ({error.strerror}); choose another place") from error


def publish(aside: Path, final: Path, exclusive: bool = False) -> bool:
    """Sync it, then give it its final name in one step, and sync the folder that holds the name. Raises MediaError.

    Folders above are made. A file takes the place of a file. A folder cannot take the place of one with something in
    it in one step: that one, of numbered pictures alone (check_place), is moved to `aside` with ".old" added first, and
    removed afterwards. `exclusive`: nothing is replaced; False where something lies there.
    """
    sync(aside)
    try:
        if aside.is_dir() and not exclusive:
            check_place(final)
        made = [folder for folder in final.parents if not folder.exists()]
        final.parent.mkdir(parents=True, exist_ok=True)
        if exclusive:
            if not _moved_to_free(aside, final):
                return False
        elif aside.is_dir() and final.is_dir():
            _replace_folder(aside, final)
        else:
            os.replace(aside, final)
        for folder in dict.fromkeys([final.parent, *(each.parent for each in made)]):
            _sync_folder(folder)
        return True
    except OSError as error:
        raise MediaError(f"'{final}' cannot be written ({error.strerror}); choose another place") from error


def check_place(final: Path) -> None:
    """Raise MediaError where a folder of numbered pictures cannot go, for what lies there is anything but another one.

    Raises OSError where nobody can tell.
    """
    try:
        is_folder = stat.S_ISDIR(final.lstat().st_mode)  # a link to one is not
    except FileNotFoundError:
        return
    try:
        other = _other_than_pictures(final) if is_folder else None
    except PermissionError:  # of one that is not ours
        is_folder, other = False, None
    if not is_folder:
        raise MediaError(f"'{final}' is no folder of pictures that can be replaced; {_MOVE_IT}")
    if other is not None:
        raise MediaError(f"'{final}' has files that are not its pictures: '{one_line(other)}'; {_MOVE_IT}")


def _other_than_pictures(folder: Path) -> str | None:
    """The first name of what is no numbered picture. Raises OSError."""
    with os.scandir(folder) as entries:
        others = (each.name for each in entries if not (is_numbered(each.name) and each.is_file(follow_symlinks=False)))
        return min(others, default=None)


def _moved_to_free(aside: Path, final: Path) -> bool:
    """Rename it, in one step, unless something has the name. Raises OSError."""
    if os.path.lexists(final):
        return False
    if aside.is_dir() or sys.platform == "win32":  # such a rename fails where something is
        try:
            os.rename(aside, final)
        except OSError:
            if os.path.lexists(final):
                return False
            raise
        return True
    try:
        os.link(aside, final)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.replace(aside, final)  # in the moment since it was free
        return True
    os.unlink(aside)
    return True


def _replace_folder(aside: Path, final: Path) -> None:
    old = aside.with_name(aside.name + _OLD)
    if old.exists():
        shutil.rmtree(old)
    os.rename(final, old)
    try:
        os.rename(aside, final)
    except BaseException:
        os.rename(old, final)
        raise
    shutil.rmtree(old)


def _sync(path: Path) -> None:
    """What links lead to is not ours."""
    if path.is_symlink():
        return
    if not path.is_dir():
        with open(path, "r+b" if sys.platform == "win32" else "rb") as file:
            os.fsync(file.fileno())
        return
    for name in os.listdir(path):
        _sync(path / name)
    _sync_folder(path)


def _sync_folder(path: Path) -> None:
    """The names in it. Windows has no such thing, and neither have some file systems."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
