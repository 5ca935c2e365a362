"""Starts a Python program in a process that imports nothing from the current folder.

By default `python -c` imports from the current folder first: a recording's folder with a pip.py in it would run.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["OURS", "python_command"]

_PACKAGE = Path(__file__).parents[2]
# The folder that our package is installed in; None where it is used in its repository: Python knows it then.
OURS = _PACKAGE.parent if (_PACKAGE / "__init__.py").exists() else None
# Isolated, Python finds its own packages; the rest is passed on: user installations, PYTHONPATH. The environment is
# not read again there: it may name the current folder.
_START = "import json, sys; sys.path[:] = dict.fromkeys([*json.loads(sys.argv.pop(1)), *sys.path])"


def python_command(program: str, *arguments: str, trusted: Path | None = None) -> list[str]:
    """The command that runs `program` with what this process can import, but for what lies in the current folder.

    `trusted` is a folder to import from even if it is the current one: OURS for a program that imports our
    package, which is already run from there.
    """
    handed = json.dumps(list(_import_folders(sys.path, trusted)))
    return [sys.executable, "-I", "-c", f"{_START}\n{program}", handed, *arguments]


def _import_folders(folders: Sequence[str], trusted: Path | None) -> Iterator[str]:
    """The folders without the current one, and with `trusted`: in its place, or at the end if it has none."""
    missing = trusted
    for folder in folders:
        if trusted is not None and _same(folder, trusted):
            missing = None
            yield str(trusted)
        elif not _same(folder, os.curdir):
            yield folder
    if missing is not None:
        yield str(missing)


def _same(folder: str, other: str | Path) -> bool:
    """Whether both are one folder, by whatever name; Python writes the current one as an empty string, too."""
    try:
        return os.path.samefile(folder or os.curdir, other)
    except (OSError, ValueError):
        return False
