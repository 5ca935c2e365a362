"""The pieces of a recording go in, in any order; what joins them comes out, and whether they fit together."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from .jobs import ArchiveInput, Cut, JoinPieces, PieceDone


class CutRecording:
    """The pieces of one input, those that are there and those that are not."""

    def __init__(self, cut_input: ArchiveInput, cut: Cut, finished: Iterable[PieceDone]) -> None:
        """`finished`: pieces of an earlier run; those that were cut otherwise are passed over."""
        self.input, self.sha256, self.ranges = cut_input, cut.sha256, cut.ranges
        self._done: dict[int, PieceDone] = {}
        for piece in finished:
            if 0 <= piece.piece < len(cut.ranges) and piece.range == cut.ranges[piece.piece]:
                self._done[piece.piece] = piece

    @property
    def missing(self) -> list[int]:
        """Numbers of the pieces that have to be rendered."""
        return [number for number in range(len(self.ranges)) if number not in self._done]

    @property
    def complete(self) -> bool:
        """Whether all pieces are there."""
        return len(self._done) == len(self.ranges)

    @property
    def frames(self) -> int:
        """How many the whole recording has."""
        return sum(each.frames for each in self.ranges)

    def add(self, piece: PieceDone) -> None:
        """One more is there."""
        self._done[piece.piece] = piece

    def join(self) -> JoinPieces:
        """What makes one file of them. Checksums have been compared by then, and do not travel."""
        pieces = [self._done[number] for number in range(len(self.ranges))]
        light = tuple(replace(piece, decoded_head=(), decoded_tail=()) for piece in pieces)
        return JoinPieces(self.input, self.sha256, light, render_whole=not pieces_fit(pieces))


def pieces_fit(pieces: Sequence[PieceDone]) -> bool:
    """Whether each one but the last delivered its whole range, and decoded before it what the one before it did."""
    inner = all(piece.frames == piece.range.frames for piece in pieces[:-1])
    return inner and all(
        _meet(before, after) and before.range.last + 1 == after.range.first for before, after in pairwise(pieces)
    )


def _meet(before: PieceDone, after: PieceDone) -> bool:
    shared = min(len(before.decoded_tail), len(after.decoded_head))
    return (
        before.decoded_tail[len(before.decoded_tail) - shared :]
        == after.decoded_head[len(after.decoded_head) - shared :]
    )
