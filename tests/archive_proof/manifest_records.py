"""Reads a manifest with code of its own, apart from the program's, and what it says of each input."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

MANIFEST = "manifest.jsonl"
STAGING = ".archive"
LOCK = f"{STAGING}/driver.lock"  # stays

Line = dict[str, Any]


@dataclass(frozen=True)
class ArchiveRecords:
    """All whole lines of a manifest, in their order."""

    lines: tuple[Line, ...]

    def of_kind(self, *kinds: str) -> list[Line]:
        """The lines of some kinds: run, piece, done, failed."""
        return [line for line in self.lines if line["kind"] in kinds]

    def job_seconds(self) -> float:
        """The median of what pieces and recordings that were not cut took; NaN where there is none."""
        whole = [line["seconds"] for line in self.of_kind("done") if line["pieces"] == 1 and line["frames"] > 1]
        times = [*whole, *(line["seconds"] for line in self.of_kind("piece"))]
        return median(times) if times else math.nan

    def frames(self) -> int:
        """That are rendered and will not be lost."""
        whole = [line for line in self.of_kind("done") if line["pieces"] == 1]
        return sum(int(line["frames"]) for line in (*whole, *self.of_kind("piece")))


def read_records(out: Path) -> ArchiveRecords:
    """The manifest in an output folder, which may be growing."""
    path = out / MANIFEST
    data = path.read_bytes() if path.exists() else b""
    return ArchiveRecords(tuple(json.loads(line) for line in data.split(b"\n")[:-1]))


def files_below(folder: Path) -> Iterator[str]:
    """Relative paths of all files, those of the staging folder too."""
    for path in sorted(folder.rglob("*")):
        if not path.is_dir():
            yield path.relative_to(folder).as_posix()


def twice(names: Sequence[str]) -> list[str]:
    """Those that come more than once."""
    return sorted({name for name in names if names.count(name) > 1})
