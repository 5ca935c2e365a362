"""How long a job may take before its worker counts as hung, by how long frames took so far. Generous.

A piece, or joining pieces: half an hour, and twenty times the slowest rate of frames seen. Where nobody knows how many
frames there are, or what one takes: a day, and the time to read the input at 20 kB/s. Four times that for a job that
seemed to hang once.
"""

from ..jobs.jobs import Job, JoinPieces, RenderPiece

_GRACE_S = 1800.0
_TIMES = 20.0
_UNKNOWN_S = 86400.0
_UNKNOWN_BYTES_PER_S = 20_000.0
_LEAST_FRAMES = 300  # fewer say little of a rate
_ONCE_MORE = 4.0


class JobPatience:
    """Learns from jobs that ended well."""

    def __init__(self) -> None:
        self._slowest: float | None = None  # seconds for a frame

    def learn(self, frames: int, seconds: float) -> None:
        """A job took so long."""
        self._slowest = max(self._slowest or 0.0, seconds / max(frames, _LEAST_FRAMES))

    def allowed_s(self, job: Job, hung: int) -> float:
        """How long it may take, after it seemed to hang so many times."""
        frames = _frames_of(job)
        if frames is None or self._slowest is None:
            most = _UNKNOWN_S + (job.input.size_bytes or 0) / _UNKNOWN_BYTES_PER_S
        else:
            most = _GRACE_S + _TIMES * self._slowest * frames
        return most * _ONCE_MORE**hung


def _frames_of(job: Job) -> int | None:
    if isinstance(job, RenderPiece):
        return job.range.frames + job.range.lead
    if isinstance(job, JoinPieces) and not job.render_whole:
        return sum(piece.range.frames for piece in job.pieces)
    return None
