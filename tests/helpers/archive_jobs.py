"""Small jobs of an archive and their results, for tests of what hands them out."""

from texelflow.app.archive.jobs.jobs import ArchiveInput, Cut, FrameRange, InputDone, PieceDone, RenderPiece

PIECE = 300
WHOLE = InputDone("c0ffee", 10, 1200, {"out": "a.mp4"}, {"out": 4}, 1.0, "host:1", "cpu", "native", pieces=4)


def an_input(number: int, size: int | None = 1000) -> ArchiveInput:
    return ArchiveInput(number, f"/in/{number}.mp4", str(number), size, 7)


def a_cut(pieces: int) -> Cut:
    ranges = tuple(FrameRange(first * PIECE, first * PIECE + PIECE - 1, min(first, 1) * 20) for first in range(pieces))
    return Cut("c0ffee", ranges, 0.5)


def a_piece(job: RenderPiece, apart: bool = False, unfit: str = "") -> PieceDone:
    head, tail = (job.range.first - 1,), (job.range.last + (5 if apart else 0),)
    return PieceDone(job.piece, job.range, job.range.frames, {"out": "p"}, 1.0, "host:1", head, tail, unfit=unfit)
