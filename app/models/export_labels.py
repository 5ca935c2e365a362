"""Reads names of classes that YOLO's exporter writes behind a model: a dictionary in the first file of an archive."""

import ast
import io
import json

from texelflow.gpu_delegate.base.zip_archive import UNREADABLE_ARCHIVE, ArchiveError, Bounds, open_archive, read_start
from texelflow.gpu_delegate.reading.reader import printable_name

__all__ = ["exported_labels"]

_MOST_FILES = Bounds(entries=1024, directory_bytes=1 << 18)
_MOST_BYTES, _MOST_LABELS = 1 << 16, 1024


def exported_labels(data: bytes) -> tuple[str, ...]:
    """By number, from 0 on; none where there is no such file, or it is not whole.

    It is JSON, or Python's text of a dictionary, with `names` from numbers to names or a list of these.
    """
    try:
        with open_archive(io.BytesIO(data), _MOST_FILES) as archive:
            first = next(iter(archive.namelist()), "")
            text = read_start(archive, first, _MOST_BYTES).decode("utf-8").strip()
        said = (json.loads if first.endswith(".json") else ast.literal_eval)(text) if text.startswith("{") else {}
    except (ArchiveError, SyntaxError, TypeError, MemoryError, RecursionError, *UNREADABLE_ARCHIVE):
        return ()
    names = said.get("names") if isinstance(said, dict) else None
    if isinstance(names, dict):
        numbered = {str(number): name for number, name in names.items()}
        names = [numbered.get(str(number)) for number in range(len(numbered))]
    if not isinstance(names, list | tuple) or len(names) > _MOST_LABELS or not all(isinstance(n, str) for n in names):
        return ()
    return tuple(printable_name(name) for name in names)
