"""The lines of the manifest: writes what happened as a line, and reads it back.

A manifest is JSON, one object a line, ASCII. `kind` is run, piece, done or failed (docs/archive.md has all fields).
What is read may be anybody's: lines are bounded, every field is checked, and names stay within the folder. Fields and
kinds of later versions are passed over.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from ..jobs.jobs import Agreement, ArchiveInput, FrameRange, InputDone, PieceDone
from ..results.results import ArchiveResult, DoneResult, FailedResult, PieceResult
from ..staging.work_folder import PIECES

MANIFEST_FORMAT = 1
MOST_LINE_BYTES = 1 << 20
_MOST_ITEMS = 10_000  # of a list
_LARGEST = 1 << 63
_LONGEST_PATH = 4096  # letters


@dataclass(frozen=True)
class RunMark:
    """What results depend on besides their input: stands on every line."""

    settings_digest: str
    model: str
    model_sha256: str
    versions: Mapping[str, str]  # texelflow, ray, python

    def same_results(self, other: "RunMark") -> bool:
        """Whether both make the same of an input. The versions of Ray and Python are told, and decide nothing."""
        return self._deciding() == other._deciding()

    def _deciding(self) -> tuple[str, ...]:
        return self.settings_digest, self.model, self.model_sha256, self.versions.get("texelflow", "")


@dataclass(frozen=True)
class RunRecord:
    """A run that began: the settings that its lines' digest stands for."""

    mark: RunMark
    settings: Mapping[str, object]  # plain values by name
    lead: int = 0  # frames that a piece begins before what it delivers
    piece_frames: int | None = None  # None: nothing is cut


@dataclass(frozen=True)
class RecordedResult:
    """A result, and what made it. Inputs that were read have the number -1."""

    mark: RunMark
    result: ArchiveResult


ManifestLine: TypeAlias = RunRecord | RecordedResult


def manifest_line(line: ManifestLine, time_s: float) -> bytes:
    """As it stands in the file, with its end. Raises ValueError for one that is too long."""
    time = datetime.fromtimestamp(time_s, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(line, RunRecord):
        fields: dict[str, object] = {"kind": "run", "time": time, "format": MANIFEST_FORMAT, **_mark_fields(line.mark)}
        fields |= {"lead": line.lead, "piece_frames": line.piece_frames, "settings": dict(line.settings)}
    else:
        fields = _result_fields(line.result, time) | _mark_fields(line.mark)
    text = json.dumps(fields, separators=(",", ":"), allow_nan=False)
    if len(text) >= MOST_LINE_BYTES:
        raise ValueError(f"a line of {len(text)} bytes")
    return text.encode("ascii") + b"\n"


def _mark_fields(mark: RunMark) -> dict[str, object]:
    return {
        "settings_digest": mark.settings_digest,
        "model": mark.model,
        "model_sha256": mark.model_sha256,
        "versions": dict(mark.versions),
    }


def _result_fields(result: ArchiveResult, time: str) -> dict[str, object]:
    fields: dict[str, object] = {
        "kind": "piece" if isinstance(result, PieceResult) else "done" if isinstance(result, DoneResult) else "failed",
        "input": result.input.address,  # second: an index of a manifest finds it without reading all of a piece's line
        "time": time,
        "name": result.input.name,
        "bytes": result.input.size_bytes,
        "modified_ns": result.input.modified_ns,
    }
    if isinstance(result, FailedResult):
        return fields | {"cause": result.cause, "reason": result.reason, "tries": result.tries}
    if isinstance(result, DoneResult):
        done = result.done
        return fields | {
            "sha256": done.sha256,
            "bytes_read": done.input_bytes,
            "frames": done.frames,
            "seconds": round(done.seconds, 3),
            "pieces": done.pieces,
            "lead": done.lead,
            "outputs": dict(done.files),
            "output_bytes": dict(done.file_bytes),
            "output_sha256": dict(done.file_sha256),
            "output_modified_ns": dict(done.file_modified_ns),
            "cut_off": done.cut_off,
            "agreement": _agreement_fields(done.agreement),
            "backend": done.backend,
            "renderer": done.renderer,
            "worker": done.worker,
            "notes": list(done.notes),
        }
    piece = result.piece
    return fields | {
        "sha256": result.sha256,
        "piece": piece.piece,
        "first": piece.range.first,
        "last": piece.range.last,
        "lead": piece.range.lead,
        "frames": piece.frames,
        "seconds": round(piece.seconds, 3),
        "files": dict(piece.files),
        "decoded_head": list(piece.decoded_head),
        "decoded_tail": list(piece.decoded_tail),
        "agreement": _agreement_fields(piece.agreement),
        "worker": piece.worker,
        "notes": list(piece.notes),
        "unfit": piece.unfit,
        "cut_off": piece.cut_off,
        "backend": piece.backend,
        "renderer": piece.renderer,
    }


def _agreement_fields(agreement: Agreement | None) -> dict[str, object] | None:
    if agreement is None:
        return None
    least, largest = (
        value if math.isfinite(value) else None for value in (agreement.least_iou, agreement.largest_error)
    )
    return {"frames": agreement.frames, "least_iou": least, "largest_error": largest}


def read_manifest_line(data: bytes) -> ManifestLine | str:
    """What a line says; the name of its kind where that is unknown. Raises ValueError with what is wrong with it."""
    try:
        loaded = json.loads(data.decode("ascii"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ValueError("it is not ASCII") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:  # of JSON, and of numbers without end
        raise ValueError("it is not JSON") from None
    if not isinstance(loaded, dict):
        raise ValueError("it is not an object")
    fields = _Fields(loaded)
    kind = fields.text("kind")
    if kind == "run":
        return _read_run(fields)
    reader = _READERS.get(kind)
    return RecordedResult(_read_mark(fields), reader(fields)) if reader else kind


def _no_constant(_name: str) -> float:
    raise ValueError


class _Fields:
    """The fields of one line, each read as what it has to be."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def _wrong(self, name: str, what: str) -> ValueError:
        return ValueError(f"its '{name}' is not {what}" if name in self._values else f"it has no '{name}'")

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        return value

    def text_or_none(self, name: str) -> str | None:
        return None if self._values.get(name) is None else self.text(name)

    def whole(self, name: str, least: int = 0) -> int:
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _LARGEST:
            raise self._wrong(name, f"a whole number from {least} on")
        return value

    def whole_or_none(self, name: str, least: int = 0) -> int | None:
        return None if self._values.get(name) is None else self.whole(name, least)

    def number(self, name: str) -> float:
        value = self._values.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < _LARGEST:
            raise self._wrong(name, "a number")
        return float(value)

    def number_or_nan(self, name: str) -> float:
        return math.nan if self._values.get(name) is None else self.number(name)

    def items(self, name: str, right: Callable[[object], bool], what: str) -> tuple[Any, ...]:
        value = self._values.get(name)
        if not isinstance(value, list) or len(value) > _MOST_ITEMS or not all(map(right, value)):
            raise self._wrong(name, f"a list of {what}")
        return tuple(value)

    def table(self, name: str, right: Callable[[object], bool], what: str) -> dict[str, Any]:
        value = self._values.get(name)
        if not isinstance(value, dict) or len(value) > _MOST_ITEMS or not all(map(right, value.values())):
            raise self._wrong(name, f"a table of {what}")
        return cast(dict[str, Any], value)

    def table_or_none(self, name: str, right: Callable[[object], bool], what: str) -> dict[str, Any]:
        """Empty where an earlier version did not write it."""
        return {} if self._values.get(name) is None else self.table(name, right, what)

    def inside(self, name: str) -> str:
        if not _is_inside(self._values.get(name)):
            raise self._wrong(name, "a name within the folder")
        return self.text(name)

    def within(self, name: str) -> "_Fields | None":
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, "a table")
        return _Fields(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2 * _LARGEST


def _is_time(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_inside(value: object) -> bool:
    """Whether it is a relative path that stays where it begins, and can be shown."""
    if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST_PATH:
        return False
    if any(part in ("", ".", "..") for part in value.split("/")):
        return False
    path = PurePath(value)
    return not path.anchor and ".." not in path.parts


def _read_mark(fields: _Fields) -> RunMark:
    return RunMark(
        fields.text("settings_digest"),
        fields.text("model"),
        fields.text("model_sha256"),
        fields.table("versions", _is_text, "texts"),
    )


def _read_run(fields: _Fields) -> RunRecord:
    written = fields.whole("format")
    if written > MANIFEST_FORMAT:
        raise ValueError(f"it is of format {written}, and this version reads {MANIFEST_FORMAT}: install a later one")
    settings = fields.table("settings", lambda _value: True, "settings")
    return RunRecord(_read_mark(fields), settings, fields.whole("lead"), fields.whole_or_none("piece_frames", 1))


def _read_input(fields: _Fields) -> ArchiveInput:
    size, modified = fields.whole_or_none("bytes"), fields.whole_or_none("modified_ns", -_LARGEST)
    return ArchiveInput(-1, fields.text("input"), fields.inside("name"), size, modified)


def _read_agreement(fields: _Fields) -> Agreement | None:
    inner = fields.within("agreement")
    if inner is None:
        return None
    return Agreement(inner.whole("frames"), inner.number_or_nan("least_iou"), inner.number_or_nan("largest_error"))


def _read_piece(fields: _Fields) -> ArchiveResult:
    first = fields.whole("first")
    piece = PieceDone(
        piece=fields.whole("piece"),
        range=FrameRange(first, fields.whole("last", first), fields.whole("lead")),
        frames=fields.whole("frames"),
        files=fields.table("files", _is_piece_file, f"names within {PIECES}/"),
        seconds=fields.number("seconds"),
        worker=fields.text("worker"),
        decoded_head=fields.items("decoded_head", _is_whole, "whole numbers"),
        decoded_tail=fields.items("decoded_tail", _is_whole, "whole numbers"),
        agreement=_read_agreement(fields),
        notes=fields.items("notes", _is_text, "texts"),
        unfit=fields.text("unfit"),
        cut_off=fields.text_or_none("cut_off"),
        backend=fields.text_or_none("backend") or "",
        renderer=fields.text_or_none("renderer") or "",
    )
    return PieceResult(_read_input(fields), fields.text("sha256"), piece)


def _is_piece_file(value: object) -> bool:
    return _is_inside(value) and str(value).startswith(f"{PIECES}/") and str(value).count("/") == 1


def _read_outputs(fields: _Fields) -> dict[str, str]:
    """Paths by kind, each called after its input's name: nothing else may be taken for its result."""
    outputs, name = fields.table("outputs", _is_inside, "names within the folder"), fields.inside("name")
    if not all(
        file == name or (file.startswith(f"{name}.") and "/" not in file[len(name) :]) for file in outputs.values()
    ):
        raise ValueError("its 'outputs' are not called after its 'name'")
    return outputs


def _read_done(fields: _Fields) -> ArchiveResult:
    done = InputDone(
        sha256=fields.text("sha256"),
        input_bytes=fields.whole("bytes_read"),
        frames=fields.whole("frames"),
        files=_read_outputs(fields),
        file_bytes=fields.table("output_bytes", _is_whole, "whole numbers"),
        seconds=fields.number("seconds"),
        worker=fields.text("worker"),
        backend=fields.text("backend"),
        renderer=fields.text("renderer"),
        pieces=fields.whole("pieces"),
        lead=fields.whole("lead"),
        agreement=_read_agreement(fields),
        cut_off=fields.text_or_none("cut_off"),
        notes=fields.items("notes", _is_text, "texts"),
        file_sha256=fields.table_or_none("output_sha256", _is_sha256, "sha256"),
        file_modified_ns=fields.table_or_none("output_modified_ns", _is_time, "whole numbers"),
    )
    return DoneResult(_read_input(fields), done)


def _read_failed(fields: _Fields) -> ArchiveResult:
    cause = fields.text("cause")
    reason, tries = fields.text("reason"), fields.whole("tries")
    found = _read_input(fields)
    if cause == "input":
        return FailedResult(found, "input", reason, tries)
    if cause == "machine":
        return FailedResult(found, "machine", reason, tries)
    if cause == "lost":
        return FailedResult(found, "lost", reason, tries)
    raise ValueError("its 'cause' is not input, machine or lost")


_READERS: Mapping[str, Callable[[_Fields], ArchiveResult]] = {
    "piece": _read_piece,
    "done": _read_done,
    "failed": _read_failed,
}
