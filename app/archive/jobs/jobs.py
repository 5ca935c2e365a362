"""The jobs that workers are given, and the outcomes that come back: small plain data, both.

An input begins with OpenInput. One that is short is done there; one that is long comes back as a Cut: each of its
pieces is rendered by RenderPiece, on any worker, and JoinPieces makes one file of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class ArchiveInput:
    """One recording or picture. `name` is that of its results, relative to the output folder, without an ending.

    `address` is an absolute path, or what fsspec opens (s3://bucket/key). Size and time are None where nobody tells.
    `own` are paths and sha256 of results that it has in the output folder, by the manifest's lines.
    """

    number: int
    address: str
    name: str
    size_bytes: int | None = None
    modified_ns: int | None = None
    own: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class FrameRange:
    """A piece of a recording: frames first to last, both included, and before them `lead` that the network sees."""

    first: int
    last: int
    lead: int

    @property
    def frames(self) -> int:
        """How many are delivered."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class Agreement:
    """Masks of sampled frames against TensorFlow Lite's: the least IoU, and the largest difference, 0 to 1."""

    frames: int
    least_iou: float
    largest_error: float


@dataclass(frozen=True)
class OpenInput:
    """Look at an input: do all of it, or say how it is cut."""

    input: ArchiveInput


@dataclass(frozen=True)
class RenderPiece:
    """Render one piece of an input that was cut."""

    input: ArchiveInput
    sha256: str
    piece: int  # its number, from 0
    range: FrameRange
    is_last: bool


@dataclass(frozen=True)
class JoinPieces:
    """Make one file of all pieces of an input, with the sound of the whole."""

    input: ArchiveInput
    sha256: str
    pieces: "tuple[PieceDone, ...]"
    render_whole: bool = False  # pieces did not fit together: render all of it in one go
    why_whole: str = ""  # in words, for the notes of what comes of it


Job: TypeAlias = OpenInput | RenderPiece | JoinPieces


@dataclass(frozen=True)
class Cut:
    """An input is long: these are its pieces, in their order."""

    sha256: str
    ranges: tuple[FrameRange, ...]
    seconds: float  # of work


@dataclass(frozen=True)
class PieceDone:
    """A piece is in the staging folder, whole and synced to the disk."""

    piece: int
    range: FrameRange
    frames: int  # that were delivered
    files: Mapping[str, str]  # by kind (out, masks): names in the staging folder
    seconds: float
    worker: str  # host and process that made it
    decoded_head: tuple[int, ...] = ()  # checksums of decoded frames before the piece, which the piece before has, too
    decoded_tail: tuple[int, ...] = ()  # and of its own last ones
    agreement: Agreement | None = None
    notes: tuple[str, ...] = ()
    backend: str = ""
    renderer: str = ""
    cut_off: str | None = None  # what is missing at the end of the last piece
    unfit: str = ""  # why it cannot be part of the whole, which has to be rendered in one go then; there are no files


@dataclass(frozen=True)
class InputDone:
    """All results of an input are in place."""

    sha256: str
    input_bytes: int
    frames: int
    files: Mapping[str, str]  # by kind (out, masks): paths relative to the output folder
    file_bytes: Mapping[str, int]
    seconds: float  # of work, all pieces together
    worker: str
    backend: str
    renderer: str
    pieces: int = 1
    lead: int = 0
    agreement: Agreement | None = None
    cut_off: str | None = None  # what is missing at the input's end
    notes: tuple[str, ...] = field(default=())
    file_sha256: Mapping[str, str] = field(default_factory=dict)  # by kind; lines of earlier versions have none
    file_modified_ns: Mapping[str, int] = field(default_factory=dict)  # the same
    name: str = ""  # of the results, where the input's own was taken


FailureCause = Literal["input", "machine", "output"]


@dataclass(frozen=True)
class JobFailed:
    """A job ended in an error. input: the same wherever it runs; machine: this worker lacks something, another may not.

    output: results cannot be written (a full disk, no permission), wherever it runs.
    """

    cause: FailureCause
    reason: str  # one line
    seconds: float = 0.0


JobOutcome: TypeAlias = Cut | PieceDone | InputDone | JobFailed
