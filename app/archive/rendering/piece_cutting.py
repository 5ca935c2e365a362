"""Cuts a recording into pieces, or says why it stays whole.

Pieces begin where the recorder begins its encoder anew. They are joined only if they fit: the frames decoded before a
piece have to be those that the piece before it ends with, sample by sample.
"""

from collections.abc import Sequence
from itertools import pairwise

from texelflow.gpu_delegate.base.errors import UsageError

from ...frame.looks.background import is_image
from ...media.media_inputs import InputKind
from ...media.piece_source import FrameIndex
from ...media.video_encoder import SEGMENT_FRAMES
from ...models.finding_loading import ShownModel
from ...models.finding_model import FindingModel
from ...session.derived import LONGEST_LEAD, chosen_look_of, companions_of, mask_memory_of
from ...settings.settings import Settings
from ..jobs.jobs import FrameRange, PieceDone

_KINDS: dict[InputKind, str] = {
    "picture": "it is a picture",
    "sequence": "it is numbered pictures",
    "stream": "it is a pipe",
}


def check_piece_frames(piece_frames: int) -> None:
    """Raise UsageError for a length that no piece can have."""
    if piece_frames < SEGMENT_FRAMES or piece_frames % SEGMENT_FRAMES:
        raise UsageError(f"pieces of {piece_frames} frames: a multiple of {SEGMENT_FRAMES} is needed")


def cut_frames(frames: int, piece_frames: int, lead: int) -> tuple[FrameRange, ...]:
    """Pieces of piece_frames each, but for the last, which has from half of that to one and a half; one if that is all.

    Each has the network see `lead` frames before it, as far as there are so many.
    """
    count = max(1, -(-(2 * frames - piece_frames) // (2 * piece_frames)))
    firsts = [number * piece_frames for number in range(count)]
    lasts = [first - 1 for first in firsts[1:]] + [frames - 1]
    return tuple(FrameRange(first, last, min(lead, first)) for first, last in zip(firsts, lasts, strict=True))


def why_kind_stays_whole(kind: InputKind, settings: Settings) -> str | None:
    """What of an input's kind, or of the settings, forbids to cut it, in words; None if nothing does.

    Raises MediaError for a background that cannot be read.
    """
    if kind != "recording":
        return _KINDS[kind]
    if settings.overlay:
        return "figures are drawn over the picture, and count all frames before"
    memory = mask_memory_of(settings)
    if memory is None or memory > LONGEST_LEAD:
        frames = "all" if memory is None else memory
        return f"masks depend on {frames} frames before them, by --smooth {settings.smooth:g}"
    background = chosen_look_of(settings).background
    if settings.effect == "replace" and background and not is_image(background):
        return "the background moves, and goes on from frame to frame"
    return None


def follows_things(model: ShownModel, settings: Settings) -> bool:
    """Whether something is followed, and numbered, from a recording's first frame on, so that it is not cut either."""
    return isinstance(model, FindingModel) or bool(companions_of(settings))


def why_frames_stay_whole(index: FrameIndex, piece_frames: int) -> str | None:
    """The same of a recording's frames."""
    if index.obstacle:
        return index.obstacle
    if len(cut_frames(index.frames, piece_frames, 0)) == 1:
        return f"it has no more than {piece_frames * 3 // 2} frames"
    return None


def why_apart(pieces: Sequence[PieceDone]) -> str | None:
    """Why all the pieces of a recording, in their order, do not fit together; None if they do."""
    for piece in pieces:
        number, range = piece.piece, piece.range
        if piece.unfit:
            return f"piece {number}: {piece.unfit}"
        if piece.frames != range.frames:
            return f"piece {number} has {piece.frames} frames, not {range.frames}"
    for before, piece in pairwise(pieces):
        if (piece.piece, piece.range.first) != (before.piece + 1, before.range.last + 1):
            return f"piece {piece.piece} does not begin where piece {before.piece} ends"
        if not piece.decoded_head or piece.decoded_head != before.decoded_tail:
            return f"decoding begun for piece {piece.piece} gives other pictures than piece {before.piece} ends with"
    if pieces and (pieces[0].piece, pieces[0].range.first) != (0, 0):
        return "the first piece is missing"
    return None
