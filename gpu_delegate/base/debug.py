"""The environment variable DEBUG: its level of detail, lines on stderr, and the folder of debug files.

The table below tells users all that they need, and CONTRIBUTING.md has it, too. Values other than a digit from 0 to 5
are ignored, since other programs use a DEBUG of their own.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

OFF, RUN, DISPATCHES, MEMORY, GLSL, TENSORS = range(6)

LEVELS: Mapping[int, str] = MappingProxyType(
    {
        RUN: "the run: what was decided and why, compile times, bytes planned; graphs are verified; tracebacks",
        DISPATCHES: "each dispatch of each run: grid, work-group, bytes, ms, GMAC/s, GB/s; the GPU is waited for",
        MEMORY: "where each tensor lies and how long it lives; each barrier and its reason",
        GLSL: "the GLSL of every program, as files in `texelflow-debug/`",
        TENSORS: "every stored tensor of the first runs, as .npy files there",
    }
)
FOLDER = "texelflow-debug"
MOST_NAME = 100
MOST_FOLDER_BYTES, MOST_FILES = 256 << 20, 4096  # of one context, so that a forgotten DEBUG=5 does not fill the disk


def level(environment: Mapping[str, str] = os.environ) -> int:
    """The level that is set, from 0 to 5."""
    value = environment.get("DEBUG", "")
    return int(value) if value in {"0", "1", "2", "3", "4", "5"} else OFF


def tell(wanted: int, line: str) -> None:
    """Write a line to stderr if DEBUG is at least `wanted`."""
    if level() >= wanted:
        say(line)


def say(line: str) -> None:
    """Write a line to stderr without control characters: names come from models."""
    print("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line), file=sys.stderr)


def safe_name(label: str) -> str:
    """A label as part of a file's name: letters, digits, `_`, `-`, `+`, `.` inside; never empty, never long."""
    return re.sub(r"[^A-Za-z0-9_+.-]+", "_", label)[:MOST_NAME].strip("._-") or "unnamed"


class Folder:
    """A folder of bounded size, created with its first file. Failures are reported in one line and never end a run."""

    def __init__(self, path: Path, most_bytes: int = MOST_FOLDER_BYTES) -> None:
        self._path = path.absolute()
        self._left_bytes = most_bytes
        self._named: dict[str, int] = {}  # hashes of contents
        self._works = True

    def write(self, label: str, ending: str, content: bytes) -> None:
        """Save content as LABEL.ENDING; different content under the same label gets a number."""
        if not self._works:
            return
        name, number = f"{safe_name(label)}.{ending}", 1
        while self._named.get(name, hash(content)) != hash(content):
            number += 1
            name = f"{safe_name(label)}-{number}.{ending}"
        if name not in self._named:
            self._named[name] = hash(content)
            self._works = self._store(name, content)

    def _store(self, name: str, content: bytes) -> bool:
        if len(content) > self._left_bytes or len(self._named) > MOST_FILES:
            say(f"debug: {self._path} has reached its size limit; nothing more is written")
            return False
        if len(self._named) == 1:
            say(f"debug: files are written to {self._path}")
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            (self._path / name).unlink(missing_ok=True)  # it may be a link to a file of somebody else
            (self._path / name).write_bytes(content)
        except OSError as error:
            say(f"debug: nothing is written to {self._path}: {error.strerror or error}")
            return False
        self._left_bytes -= len(content)
        return True
