"""The file format of a rendered piece of a recording: it gives its encoded pictures back exactly, or says it cannot.

A video file would keep other times than the recording's, and little that tells when it is damaged. This one holds what
the pictures belong to, each picture with its time as it came, and their number. A checksum goes on from record to
record, so that none is changed, left out or put elsewhere without notice.
"""

import contextlib
import io
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import Any, BinaryIO

import av

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ..files import check_output
from .video_encoder import SEGMENT_FRAMES, EncodedPicture, VideoEncoder, VideoForm, begins_anew
from .video_file import padding_warnings, write_failure

_MAGIC = b"texelflow piece 1\n"
_LENGTH = struct.Struct("<I")  # of the head
_RECORD = struct.Struct("<BqII")  # kind; a picture's time, or how many there are; bytes of the picture, of its alpha
_SUM = struct.Struct("<I")
_PICTURE, _KEY_PICTURE, _END = 0, 1, 2
_MOST_HEAD_BYTES = 1 << 16
_MOST = (1 << 31) - 1  # of what describes a video
_FRACTIONS = ("time_base", "rate", "sample_aspect_ratio")


class PieceError(MediaError):
    """A piece is damaged, or does not go with the others: to be rendered anew."""


@dataclass(frozen=True)
class PieceHead:
    """What the pictures of a piece belong to; pieces that go together differ in `first` alone.

    `first` is the number of the first frame in the recording; `extradata` is what the encoder tells of the video.
    """

    form: VideoForm
    is_i420: bool
    first: int
    extradata: bytes
    versions: str


class PieceFile:
    """Written as a VideoFile is, without sound."""

    def __init__(self, path: str | os.PathLike[str], form: VideoForm, first: int) -> None:
        """The path ends as the whole does, and nothing is written yet. Raises MediaError, UsageError."""
        check_output(path)
        form.check()
        if first < 0 or not begins_anew(first):
            raise UsageError(f"no piece begins with frame {first}: encoders begin anew every {SEGMENT_FRAMES} frames")
        self.frames = 0
        self.name = f"'{os.fspath(path)}'"
        self.warnings = padding_warnings(form)
        self._path, self._form, self._first = path, form, first
        self._file: BinaryIO | None = None
        self._sum = self._first_pts = self._last_pts = 0

    @property
    def seconds(self) -> float:
        """From the first picture to the end of the last one."""
        if not self.frames:
            return 0.0
        return float((self._last_pts - self._first_pts) * self._form.time_base + 1 / self._form.rate)

    def add(self, picture: EncodedPicture, pts: int, encoder: VideoEncoder) -> None:
        """Write one picture; the first makes the file, which `encoder` describes. Raises MediaError."""
        try:
            if self._file is None:
                self._file, self._first_pts = io.BufferedWriter(io.FileIO(self._path, "w")), pts
                self._write(self._file, _head_bytes(self._head(encoder)))
            kind = _KEY_PICTURE if picture.is_key else _PICTURE
            record = _RECORD.pack(kind, pts, len(picture.data), len(picture.alpha))
            self._write(self._file, record + picture.data + picture.alpha)
        except (OSError, struct.error) as error:  # the last where a time has more than 64 bits
            raise self.failed(error) from error
        self.frames, self._last_pts = self.frames + 1, pts

    def failed(self, error: Exception) -> MediaError:
        """Close the file after an error: what to tell of it."""
        with contextlib.suppress(MediaError):
            self.close(complete=False)
        return write_failure(self.name, error)

    def close(self, complete: bool) -> None:
        """Finish the file; harmless when repeated. One that is not `complete` cannot be read. Raises MediaError."""
        if self._file is None or self._file.closed:
            return
        try:
            with self._file as file:
                if complete:
                    self._write(file, _RECORD.pack(_END, self.frames, 0, 0))
        except OSError as error:
            raise write_failure(self.name, error) from error

    def _head(self, encoder: VideoEncoder) -> PieceHead:
        return PieceHead(self._form, encoder.is_i420, self._first, encoder.extradata, _versions())

    def _write(self, file: BinaryIO, data: bytes) -> None:
        """With a checksum of it and all before."""
        self._sum = zlib.crc32(data, self._sum)
        file.write(data + _SUM.pack(self._sum))


class PieceReader:
    """Gives the pictures of a piece with their times, one after the other. Iterate once, as a context manager.

    `head` is read at once, and `frames`, how many there are.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises PieceError."""
        self._name = f"the piece '{os.fspath(path)}'"
        self._sum = 0
        try:
            self._file = io.BufferedReader(io.FileIO(path))
        except OSError as error:
            raise PieceError(f"{self._name} cannot be read: {error.strerror}") from error
        try:
            self._left_bytes = self._file.seek(0, os.SEEK_END)
            self.frames = self._frames()
            self.head = self._head()
        except OSError as error:
            self._file.close()
            raise PieceError(f"{self._name} cannot be read: {error.strerror}") from error
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "PieceReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[tuple[EncodedPicture, int]]:
        """Raises PieceError where the piece is damaged: after the pictures before it."""
        for _ in range(self.frames):
            record = self._read(_RECORD.size)
            kind, pts, size_bytes, alpha_bytes = _RECORD.unpack(record)
            if kind not in (_PICTURE, _KEY_PICTURE):
                raise self._damaged()
            data, alpha = self._read(size_bytes), self._read(alpha_bytes)
            self._check_sum(record, data, alpha)
            yield EncodedPicture(data, kind == _KEY_PICTURE, alpha), pts
        self._check_sum(self._read(_RECORD.size))
        if self._left_bytes:
            raise self._damaged()

    def _frames(self) -> int:
        """As the last record tells."""
        end_bytes = _RECORD.size + _SUM.size
        if self._left_bytes < end_bytes:
            raise self._damaged()
        self._file.seek(-end_bytes, os.SEEK_END)
        kind, frames, *sizes = _RECORD.unpack_from(self._file.read(end_bytes))
        self._file.seek(0)
        if kind != _END or any(sizes) or not 0 < frames <= self._left_bytes // end_bytes:
            raise self._damaged()
        return int(frames)

    def _head(self) -> PieceHead:
        beginning = self._read(len(_MAGIC) + _LENGTH.size)
        (size_bytes,) = _LENGTH.unpack_from(beginning, len(_MAGIC))
        if not beginning.startswith(_MAGIC) or size_bytes > _MOST_HEAD_BYTES:
            raise self._damaged()
        told = self._read(size_bytes)
        self._check_sum(beginning, told)
        try:
            return _head_of(json.loads(told))
        except (KeyError, TypeError, ValueError, RecursionError, UsageError) as error:
            raise self._damaged() from error

    def _read(self, size_bytes: int) -> bytes:
        """So many bytes; no more are asked for than the file has."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise self._damaged()
        try:
            data = self._file.read(size_bytes)
        except OSError as error:
            raise PieceError(f"{self._name} cannot be read: {error.strerror}") from error
        if len(data) < size_bytes:
            raise self._damaged()
        return data

    def _check_sum(self, *parts: bytes) -> None:
        for part in parts:
            self._sum = zlib.crc32(part, self._sum)
        stored = self._read(_SUM.size)
        if stored != _SUM.pack(self._sum):
            raise self._damaged()

    def _damaged(self) -> PieceError:
        return PieceError(f"{self._name} is damaged, or was never finished")


def _versions() -> str:
    """Of what encodes: others may make other bytes."""
    return f"PyAV {av.__version__}, libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}"


def _head_bytes(head: PieceHead) -> bytes:
    form = {name: _plain(value) for name, value in vars(head.form).items()}
    told = {**vars(head), "form": form, "extradata": head.extradata.hex()}
    data = json.dumps(told).encode("ascii")
    return _MAGIC + _LENGTH.pack(len(data)) + data


def _plain(value: object) -> object:
    return [value.numerator, value.denominator] if isinstance(value, Fraction) else value


def _head_of(told: Mapping[str, Any]) -> PieceHead:
    """Raises KeyError, TypeError, ValueError, UsageError for what no head tells."""
    given = dict(told["form"])
    given |= {name: _fraction(given[name]) for name in _FRACTIONS}
    given |= {name: _number(given[name]) for name in ("width", "height")}
    given |= {"ending": str(given["ending"]), "codec": str(given["codec"]), "alpha": given["alpha"] is True}
    given["quality"] = None if given["quality"] is None else _number(given["quality"])
    form = VideoForm(**given)
    form.check()
    extradata = bytes.fromhex(told["extradata"])
    return PieceHead(form, told["is_i420"] is True, _number(told["first"]), extradata, str(told["versions"]))


def _fraction(pair: Any) -> Fraction:
    above, below = pair
    return Fraction(_number(above), _number(below) or 1)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError("no number of a video's")
    return value
