"""Tracks the pieces of a recording that was cut, and says what makes one file of them when all are there."""

from collections.abc import Iterable
from dataclasses import replace

from ..jobs.jobs import ArchiveInput, Cut, JoinPieces, PieceDone
from ..rendering.piece_cutting import why_apart


class CutRecording:
    """The pieces of one input, those that are there and those that are not."""

    def __init__(self, cut_input: ArchiveInput, cut: Cut, finished: Iterable[PieceDone]) -> None:
        """`finished`: pieces of an earlier run; those that were cut otherwise are passed over."""
        self.input, self.sha256, self.ranges = cut_input, cut.sha256, cut.ranges
        self._done: dict[int, PieceDone] = {}
        self.unfit = False  # one of the pieces cannot be part of the whole
        for piece in finished:
            if 0 <= piece.piece < len(cut.ranges) and piece.range == cut.ranges[piece.piece]:
                self.add(piece)

    @property
    def missing(self) -> list[int]:
        """Numbers of the pieces that have to be rendered; none if one cannot be part of the whole."""
        return [] if self.complete else [number for number in range(len(self.ranges)) if number not in self._done]

    @property
    def complete(self) -> bool:
        """Whether all pieces are there, or one that forbids joining them."""
        return len(self._done) == len(self.ranges) or self.unfit

    def add(self, piece: PieceDone) -> None:
        """One more is there."""
        self._done[piece.piece] = piece
        self.unfit |= bool(piece.unfit)

    def join(self) -> JoinPieces:
        """What makes one file of them, or renders it all anew. Checksums are compared here, and do not travel."""
        pieces = [self._done[number] for number in sorted(self._done)]
        why = why_apart(pieces) or ""
        light = tuple(replace(piece, decoded_head=(), decoded_tail=()) for piece in pieces)
        return JoinPieces(self.input, self.sha256, light, render_whole=bool(why), why_whole=why)
