"""What the scheduler tells of results, each of which becomes a line of the manifest, and counts for the progress."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..jobs.jobs import ArchiveInput, InputDone, PieceDone


@dataclass(frozen=True)
class SkippedInput:
    """An input that needs no work in this run, for the manifest says what became of it."""

    input: ArchiveInput
    was: Literal["done", "failed"] = "done"
    cut_off: bool = False  # it is done, but something is missing at its end


@dataclass(frozen=True)
class PieceResult:
    """A piece lies in the staging folder."""

    input: ArchiveInput
    sha256: str
    piece: PieceDone


@dataclass(frozen=True)
class DoneResult:
    """All that an input gives is in place."""

    input: ArchiveInput
    done: InputDone


@dataclass(frozen=True)
class FailedResult:
    """Nothing more is tried with an input. `cause` says whose fault it seems; lost: each time its worker was lost."""

    input: ArchiveInput
    cause: Literal["input", "machine", "lost"]
    reason: str  # one line, the last one's
    tries: int


ArchiveResult: TypeAlias = PieceResult | DoneResult | FailedResult


@dataclass
class ArchiveCounts:
    """How far the archive is. Frames and pieces are those that this run has rendered."""

    known: int = 0  # inputs that were read so far
    all_known: bool = False  # there are no more
    done: int = 0
    failed: int = 0
    cut_off: int = 0  # of those done: something is missing at the input's end
    skipped: int = 0  # of those known: done in an earlier run
    skipped_cut_off: int = 0  # of those: something is missing at the input's end
    skipped_failed: int = 0  # and failed in one
    frames: int = 0
    pieces: int = 0
    jobs: int = 0  # that ended well
    lost: int = 0  # workers that were lost at work
    outstanding: int = 0  # jobs handed out and not decided
    waiting: int = 0  # jobs that could be handed out now
    recordings_cut: int = 0  # of which pieces are under way now

    @property
    def undecided(self) -> int:
        """Inputs that are known, and still have to be done."""
        return self.known - self.done - self.failed - self.skipped - self.skipped_failed
