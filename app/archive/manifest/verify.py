"""Verifies a folder of results: whether each file is the one that the manifest tells of."""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ...console import Console, counted, one_line
from ..results.result_files import link_above, look_at_result, result_digest
from ..results.results import DoneResult
from .manifest import MANIFEST_NAME
from .manifest_index import ManifestIndex

DIFFERENT = 1  # exit code


@dataclass(frozen=True)
class VerifiedFile:
    """A result by its path in the folder, and what is wrong with it: nothing, or some words."""

    file: str
    input: str
    size_bytes: int
    fault: str


def verify_archive(folder: Path, console: Console, as_json: bool) -> int:
    """Read all results, and say what differs: exit code 0, or 1 where anything does. Nothing is written.

    Raises UsageError for a folder without a manifest, or without a whole line in it; MediaError for a damaged one.
    """
    path, faults, counts = folder / MANIFEST_NAME, 0, Counter[str]()
    with ManifestIndex(path) as index:
        if not index.end:
            lacks = f"{MANIFEST_NAME} has no whole line" if index.torn else f"there is no {MANIFEST_NAME} in it"
            raise UsageError(f"--verify {one_line(str(folder))}: {lacks} to verify it by")
        for line in index.notes:
            console.note(line)
        for found in verified_files(folder, index):
            counts.update(files=1, bytes=found.size_bytes)
            if not found.fault:
                continue
            faults += 1
            if as_json:
                console.json({"event": "differs", "file": found.file, "input": found.input, "reason": found.fault})
            else:
                console.say(one_line(f"{found.file}: {found.fault}"))
    good = counts["files"] - faults
    console.say(f"{good:,} of {counted(counts['files'], 'file')} as the manifest has them, {counts['bytes']:,} bytes")
    if as_json:
        figures = {"files": counts["files"], "differing": faults, "bytes": counts["bytes"], "ok": not faults}
        console.json({"event": "verified", **figures, "manifest": str(path)})
    return DIFFERENT if faults else 0


def verified_files(folder: Path, index: ManifestIndex) -> Iterator[VerifiedFile]:
    """All that the last lines of inputs tell of, in their order. Raises MediaError."""
    try:
        for recorded in index.last_results():
            result = recorded.result
            if isinstance(result, DoneResult):
                for kind, file in result.done.files.items():
                    size, sha256 = result.done.file_bytes.get(kind, -1), result.done.file_sha256.get(kind)
                    yield VerifiedFile(file, result.input.address, max(0, size), fault_of(folder, file, size, sha256))
    except ValueError:
        raise MediaError(f"'{folder / MANIFEST_NAME}' was changed while it was read; try again") from None


def fault_of(folder: Path, file: str, size_bytes: int, sha256: str | None) -> str:
    """What is wrong with a file that should have these bytes, and this digest; "" for nothing. No link is followed."""
    path = folder / file
    try:
        if link_above(folder, file) is not None or stat.S_ISLNK(os.lstat(path).st_mode):
            return "differs: a link is in its place"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    found = look_at_result(path)
    if found is None:
        return "differs: it is no file, or no folder of numbered pictures alone"
    if found.size_bytes != size_bytes:
        return f"differs: {found.size_bytes:,} bytes, not {size_bytes:,}"
    if sha256 is None:
        return "unknown: its line has no digest, for an earlier version wrote it"
    there = result_digest(path)
    return "cannot be read" if there is None else "" if there == sha256 else "differs: other bytes of the same number"
