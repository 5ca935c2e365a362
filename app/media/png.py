"""Writes PNG files, each whole or not at all, or one PNG after the other to a stream."""

import os
from pathlib import Path
from types import TracebackType

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError

from ..files import check_writable
from ..stale_files import written_aside
from .finished import finished_by, last_picture, tagged_png
from .output_stream import OutputStream

PngPixels = npt.NDArray[np.uint8]  # gray (H, W), RGB (H, W, 3) or RGBA (H, W, 4) with straight alpha


def encode_png(image: PngPixels) -> bytes:
    """A picture as PNG; the same bytes each time. Raises cv2.error, ValueError."""
    if image.ndim == 3:
        image = image[..., [2, 1, 0, 3][: image.shape[2]]]  # OpenCV's order
    done, data = cv2.imencode(".png", image)
    if not done:
        raise ValueError(f"an image of {image.shape} is no PNG")
    return data.tobytes()


def write_png(path: str | os.PathLike[str], image: PngPixels, made_by: str | None = None) -> None:
    """Write a picture as PNG, wholly or not at all. Raises MediaError.

    `made_by` is told by finished.finished_by.
    """
    name = os.fspath(path)
    check_writable(name)
    try:
        _replace(name, tagged_png(encode_png(image), made_by))
    except (OSError, ValueError, cv2.error) as error:
        if isinstance(error, ValueError):
            raise MediaError(f"'{name}' cannot be written: {error}") from error
        reason = getattr(error, "strerror", None) or "the image cannot be encoded"
        raise MediaError(f"'{name}' cannot be written: {reason}; choose another place") from error


def mark_folder(last: str | os.PathLike[str], made_by: str) -> None:
    """Tag a folder of numbered pictures as finished, by the last one that was written there. Raises MediaError."""
    _retag(os.fspath(last), made_by)


def unmark_folder(folder: str | os.PathLike[str]) -> None:
    """Take the tag from a folder before anything is written there. Raises MediaError."""
    try:
        last = last_picture(folder)
    except OSError as error:
        raise MediaError(f"the folder '{folder}' cannot be read ({error.strerror}); choose another place") from error
    if last is not None and finished_by(last) is not None:
        _retag(last, None)


def _retag(name: str, made_by: str | None) -> None:
    try:
        data = Path(name).read_bytes()
        if (tagged := tagged_png(data, made_by)) != data:
            _replace(name, tagged)
    except OSError as error:
        raise MediaError(f"'{name}' cannot be written: {error.strerror}; choose another place") from error


def _replace(name: str, data: bytes) -> None:
    """Write a file aside, and then under its name. Raises OSError."""
    with written_aside(os.path.dirname(name)) as file:
        file.write(data)
        file.close()  # Windows moves no open file
        os.replace(file.name, name)


class PngStream:
    """Writes pictures to a stream, as `ffmpeg -f image2pipe -c:v png` reads them. A context manager, as Recorder is."""

    def __init__(self, stream: OutputStream) -> None:
        self._stream = stream
        self.warnings: list[str] = []
        self.frames = 0

    def __enter__(self) -> "PngStream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, image: PngPixels, pts: int = 0) -> None:
        """Add one picture; PNG has no times. Raises MediaError; BrokenPipeError if the reader left, OutputError."""
        try:
            data = encode_png(image)
        except (ValueError, cv2.error) as error:
            raise MediaError(f"an image of {image.shape} is no PNG") from error
        self._stream.append(data)
        self.frames += 1

    def close(self, complete: bool = True) -> None:
        """Nothing is under way: each picture is whole."""
