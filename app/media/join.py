"""Joins pieces of a recording that were rendered apart to the file or the folder that one uninterrupted run writes.

Videos are the same byte for byte, with the sound of the recording and the tag of a finished file.
"""

import contextlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import av

from texelflow.gpu_delegate.base.errors import MediaError

from .finished import last_picture, numbered_pictures
from .piece_file import PieceError as PieceError
from .piece_file import PieceHead, PieceReader
from .png import mark_folder
from .video_encoder import VideoEncoder, begins_anew
from .video_file import VideoFile


@dataclass(frozen=True)
class Joined:
    """What pieces became: frames in all, seconds of a video (0 of a folder), one line for each thing left out."""

    frames: int
    seconds: float
    warnings: tuple[str, ...] = ()


def join_video(
    pieces: Sequence[Path],
    target: Path,
    audio_from: Path | None = None,
    audio_cut: bool = False,
    made_by: str | None = None,
) -> Joined:
    """Write the video that one run of Recorder writes with these arguments. `target` grows meanwhile: see atomic.

    Pieces come from VideoSink with Writing.piece_first, in the order of their frames; target has the same ending.
    A packet is in memory at a time. Raises PieceError, and MediaError where the target cannot be written.
    """
    head = _head_of_all(pieces)
    if target.suffix.lower() != head.form.ending:
        raise MediaError(f"pieces of {head.form.ending} do not become '{target}'; give that ending")
    file = VideoFile(head.form, target, audio_from, audio_cut, made_by)
    try:
        with contextlib.closing(_encoder(head, file)) as encoder:
            for piece in pieces:
                with PieceReader(piece) as pictures:
                    for picture, pts in pictures:
                        file.add(picture, pts, encoder)
        file.close(complete=True)
    except BaseException:
        with contextlib.suppress(MediaError):
            file.close(complete=False)
        raise
    return Joined(file.frames, file.seconds, tuple(file.warnings))


def join_folders(pieces: Sequence[Path], target: Path, made_by: str | None = None) -> Joined:
    """Gather the numbered PNG files of folders in the folder `target`, which is made, and tag it as finished.

    Files are linked, not moved, so that a join that was killed can begin again; pieces are the caller's to remove.
    Raises PieceError where a number is there twice, or a folder holds none; MediaError where nothing can be written.
    """
    frames = 0
    try:
        if target.exists():
            shutil.rmtree(target)
        target.mkdir(parents=True)
        for piece in pieces:
            names = _numbered(piece)
            for name in names:
                _link(piece / name, target / name)
            frames += len(names)
        last = last_picture(target)
    except OSError as error:
        raise MediaError(f"the folder '{target}' cannot be written: {error.strerror}; choose another place") from error
    if made_by is not None and last is not None:
        mark_folder(last, made_by)
    return Joined(frames, 0.0)


def _head_of_all(pieces: Sequence[Path]) -> PieceHead:
    """Of the first piece, after which all others follow. Raises PieceError."""
    first: PieceHead | None = None
    frames = 0
    for piece in pieces:
        with PieceReader(piece) as reader:
            head = reader.head
            first = first or head
            if replace(head, first=first.first) != first:
                raise PieceError(f"the piece '{piece}' is of another video, or was made by another version")
            if head.first != frames or not begins_anew(frames):
                raise PieceError(f"the piece '{piece}' begins with frame {head.first}; those before end at {frames}")
            frames += reader.frames
    if first is None:
        raise PieceError("there is no piece")
    return first


def _encoder(head: PieceHead, file: VideoFile) -> VideoEncoder:
    """One that describes the video as those of the pieces did. Raises PieceError, MediaError."""
    try:
        encoder = VideoEncoder(head.form, head.is_i420)
    except av.FFmpegError as error:
        raise file.failed(error) from error
    if encoder.extradata != head.extradata:
        encoder.close()
        raise PieceError(f"the pieces of {file.name} were made by another version of the encoder")
    return encoder


def _numbered(piece: Path) -> list[str]:
    """Names of a piece's pictures. Raises PieceError."""
    try:
        names = numbered_pictures(piece)
    except OSError as error:
        raise PieceError(f"the piece '{piece}' cannot be read: {error.strerror}") from error
    if not names:
        raise PieceError(f"the piece '{piece}' holds no picture")
    return names


def _link(path: Path, target: Path) -> None:
    """Two names for one file; a copy where the file system has no such thing. Raises OSError, PieceError."""
    if os.path.lexists(target):
        raise PieceError(f"'{path}' is in another piece, too")
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
