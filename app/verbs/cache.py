"""`texelflow cache`: lists or removes what the program keeps on disk; fetched models and photographs stay."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.base.cache_folder import cache_folder
from texelflow.gpu_delegate.base.disk_cache import KINDS, CacheEntry, DiskCache
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant, sized
from texelflow.gpu_delegate.targets.gl.program_cache import BINARIES

from ..console import Console, counted

_START, _END = 60, 30  # characters of a long key in the table
_FETCHED = ("models", "scenes")  # folders of what was fetched


@dataclass(frozen=True)
class _Fetched:
    """A folder of files that came over the network."""

    folder: Path
    files: int
    size_bytes: int


def list_cache(console: Console, as_json: bool) -> int:
    """Every entry, the last used one first, and what was fetched besides; the exit code is 0."""
    cache = DiskCache()
    entries, fetched = cache.entries(), list(_fetched())
    total_bytes = sum(entry.size_bytes for entry in entries)
    if as_json:
        kept = [
            {"kind": entry.kind, "key": entry.key, "size_bytes": entry.size_bytes, "used_s": entry.used_s}
            for entry in entries
        ]
        files = [{"folder": str(f.folder), "files": f.files, "size_bytes": f.size_bytes} for f in fetched]
        console.json(
            {
                "folder": str(cache.folder), "entries": kept, "size_bytes": total_bytes,
                "most_bytes": cache.most_bytes, "fetched": files,
            }
        )  # fmt: skip
        return 0
    if entries:
        rows = [(kind, what, sized(size_bytes)) for kind, what, size_bytes in _rows(entries)]
        console.table("Kept, the last used first", ("kind", "what", "size"), rows)
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    console.say(f"{count}, {sized(total_bytes)} of {sized(cache.most_bytes)}, in {cache.folder}")
    for each in fetched:
        console.say(f"fetched, never removed by this program: {counted(each.files, 'file')} in {each.folder}")
    return 0


def clear_cache(kind: str | None, console: Console, as_json: bool) -> int:
    """Remove all entries, or those of a kind; the exit code is 0. Raises UsageError."""
    if kind is not None and kind not in KINDS:
        raise UsageError(f"{kind}: {' or '.join(KINDS)} is needed, or nothing for all{meant(kind, KINDS)}")
    cache = DiskCache()
    try:
        removed = cache.clear(kind)
    except OSError as error:
        if error.strerror is None and os.access(cache.folder, os.W_OK):
            line = f"{cache.folder} cannot be cleared: another process uses it; try again when that has ended"
            raise UsageError(line) from None
        raise UsageError(f"{cache.folder} cannot be cleared ({error.strerror or error}); remove it by hand") from None
    console.say(f"{removed} {'entry' if removed == 1 else 'entries'} removed from {cache.folder}")
    if as_json:
        console.json({"removed": removed, "folder": str(cache.folder)})
    return 0


def _rows(entries: Sequence[CacheEntry]) -> Iterator[tuple[str, str, int]]:
    """Kind, words and bytes of each entry, but one row for all programs of a driver, of which a model has dozens."""
    drivers = {entry: entry.key.rpartition(",")[0] if entry.kind == BINARIES else "" for entry in entries}
    together = Counter(driver for driver in drivers.values() if driver)
    told = set[str]()
    for entry, driver in drivers.items():
        if not driver:
            yield entry.kind, _shortened(entry.key), entry.size_bytes
        elif driver not in told:
            told.add(driver)
            size_bytes = sum(other.size_bytes for other, its in drivers.items() if its == driver)
            yield entry.kind, f"{counted(together[driver], 'program')}: {_shortened(driver)}", size_bytes


def _fetched() -> Iterator[_Fetched]:
    for name in _FETCHED:
        folder = cache_folder() / name
        try:
            sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
        except OSError:
            continue
        yield _Fetched(folder, len(sizes), sum(sizes))


def _shortened(key: str) -> str:
    """A key without the marks of JSON; of a long one the middle is left out: it ends with the model's name."""
    words = re.sub(r'["\[\]]', "", key)
    return words if len(words) <= _START + _END else f"{words[:_START]}...{words[-_END:]}"
