"""How long frames took goes in; how long a job may take before its worker counts as hung comes out. Generous.

Twenty times the slowest rate seen, and half an hour besides, and the time to read the input at 1 MB/s. A day where no
rate was seen yet, or where nobody knows how many frames there are. Four times that for a job that seemed to hang once.
"""

from .jobs import Job, JoinPieces, RenderPiece

_GRACE_S = 1800.0
_TIMES = 20.0
_UNKNOWN_S = 86400.0
_BYTES_PER_S = 1e6
_LEAST_FRAMES = 300  # fewer say little of a rate
_ONCE_MORE = 4.0


class JobPatience:
    """Learns from jobs that ended well. `opened_frames` is the most that an input has which is not cut; None: any."""

    def __init__(self, opened_frames: int | None) -> None:
        self._opened_frames = opened_frames
        self._slowest: float | None = None  # seconds for a frame

    def learn(self, frames: int, seconds: float) -> None:
        """A job took so long."""
        self._slowest = max(self._slowest or 0.0, seconds / max(frames, _LEAST_FRAMES))

    def allowed_s(self, job: Job, hung: int) -> float:
        """How long it may take, after it seemed to hang so many times."""
        frames = self._frames(job)
        most = _UNKNOWN_S
        if frames is not None and self._slowest is not None:
            most = _GRACE_S + _TIMES * self._slowest * frames + (job.input.size_bytes or 0) / _BYTES_PER_S
        return most * _ONCE_MORE**hung

    def _frames(self, job: Job) -> int | None:
        if isinstance(job, RenderPiece):
            return job.range.frames + job.range.lead
        if isinstance(job, JoinPieces):
            return None if job.render_whole else sum(piece.range.frames for piece in job.pieces)
        return self._opened_frames
