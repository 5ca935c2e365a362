"""Pieces of a recording, rendered apart, go in; the file or the folder that one uninterrupted run writes comes out.

Videos are the same byte for byte, with the sound of the recording and the tag of a finished file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.errors import MediaError


class PieceError(MediaError):
    """A piece is damaged, or does not follow the one before: to be rendered anew."""


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
    """Write the video that one run of Recorder writes with these arguments. `target` is written as it grows: see atomic.

    Pieces come from VideoSink with Writing.piece_first, in the order of their frames; target has the same ending.
    A packet is in memory at a time. Raises PieceError, and MediaError where the target cannot be written.
    """
    raise NotImplementedError


def join_folders(pieces: Sequence[Path], target: Path, made_by: str | None = None) -> Joined:
    """Gather the numbered PNG files of folders in the folder `target`, which is made, and tag it as finished.

    Files are linked, not moved, so that a join that was killed can begin again; pieces are the caller's to remove.
    Raises PieceError where a number is there twice, or a folder holds none; MediaError where nothing can be written.
    """
    raise NotImplementedError
