"""Writes what was found in each frame, one JSON object a line; the file is whole after each line."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ..frame.stages.frame_pipeline import FrameRecord
from ..models.decoders.found import Finding
from ..models.decoders.skeletons import SKELETONS
from .append_safe_file import AppendSafeFile
from .png_files import PIPE

__all__ = ["JsonLines", "line_of"]


class JsonLines:
    """One line for each frame: index, time_ms, size, findings, and classes of the whole picture.

    A pipe gets each line at once.
    """

    def __init__(self, path: Path) -> None:
        """The first line opens the file; the one that it replaces stays until then."""
        self.path = path
        self._file = None if str(path) == PIPE else AppendSafeFile(path)

    def add(self, record: FrameRecord) -> None:
        """One more line. Raises MediaError, OutputError, and BrokenPipeError if the reader of a pipe has left."""
        line = json.dumps(line_of(record), allow_nan=False)
        if self._file:
            self._file.put(line + "\n")
        else:
            print(line, flush=True)

    def close(self) -> None:
        """Close it; harmless when repeated."""
        if self._file:
            self._file.close()

    def __enter__(self) -> "JsonLines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def line_of(record: FrameRecord) -> dict[str, Any]:
    """The object of one frame. Places are pixels of the upright frame, angles radians, clockwise."""
    placed = [found for found in record.findings if found.kind != "class"]
    return {
        "index": record.index,
        "time_ms": round(record.time_ms, 3),
        "size": list(record.size),
        "findings": [dict(_told(found)) for found in placed],
        "classes": [
            {"label": found.label, "score": _rounded(found.score, 4)}
            for found in record.findings
            if found.kind == "class"
        ],
    }


def _told(found: Finding) -> Mapping[str, Any]:
    """All of one finding; what it has nothing of is left out."""
    told: dict[str, Any] = {"kind": found.kind, "label": found.label, "score": _rounded(found.score, 4)}
    told |= {"track": found.track} if found.track else {}
    told["box"] = [_rounded(side, 2) for side in found.box] if found.region or len(found.points) else None
    if region := found.region:
        told["center"] = [_rounded(region.center_x, 2), _rounded(region.center_y, 2)]
        told["region_size"] = [_rounded(region.width, 2), _rounded(region.height, 2)]
        told["angle"] = _rounded(region.angle, 4)
    if len(found.points):
        told["skeleton"] = found.skeleton
        told["points"] = [[_rounded(part, 2) for part in point] for point in found.points.tolist()]
        if len(names := SKELETONS[found.skeleton].names) == len(found.points):
            told["names"] = list(names)
    if len(found.world):
        told["world"] = [[_rounded(part, 4) for part in point] for point in found.world.tolist()]
    if found.certainty is not None:
        told["certainty"] = [_rounded(share, 3) for share in found.certainty.tolist()]
    return told


def _rounded(number: float, digits: int) -> float | None:
    """A number that JSON has; None for those that networks put out and are none."""
    return round(float(number), digits) if -1e30 < number < 1e30 else None
