"""The state of a source, and when to open it again, decided by what has happened to it.

All functions are pure: times are readings of perf_counter in ns that the caller took.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

CapturePhase = Literal["opening", "live", "stalled", "frozen", "lost", "ended"]
Step = Literal["opening", "open", "failed", "ended"]

SECOND_NS = 1_000_000_000
NOTE_NS = 5 * SECOND_NS  # how long a state mentions a past event
OPEN_PATIENCE_NS = 20 * SECOND_NS  # Media Foundation takes up to 12 s for some cameras
_FIRST_WAIT_NS, _MOST_WAIT_NS = SECOND_NS // 2, 8 * SECOND_NS
_LEAST_PATIENCE_NS, _MOST_PATIENCE_NS = 1_500_000_000, 1_750_000_000  # with a tick of 0.25 s: noticed within 2 s
_FRAMES_MISSED = 4
_FROZEN_ATTEMPTS = 2  # the scene itself may be still: such a source is opened again less often


@dataclass(frozen=True)
class CaptureState:
    """What a person is told of a source; the message is one line, empty while there is nothing to say."""

    phase: CapturePhase
    message: str = ""

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong, if anything is."""
        return () if self.phase == "live" else (self.message,)


@dataclass(frozen=True)
class SourceStatus:
    """All that is known of a source. `step` is that of the present attempt, begun at step_ns.

    picture_ns is when the last picture came, change_ns when the last came that differed from the one before; None
    before the first. attempts counts openings since change_ns.
    """

    step_ns: int
    step: Step = "opening"
    attempts: int = 0
    name: str = "the source"
    patience_ns: int = _LEAST_PATIENCE_NS
    may_stand_still: bool = False
    picture_ns: int | None = None
    change_ns: int | None = None
    trouble: CapturePhase = "opening"  # why it is being opened
    reason: str = ""  # why the last attempt failed
    note: str = ""
    note_ns: int = 0


def patience_ns(fps: float) -> int:
    """How long a source may go without a picture: 1.5 s, or four frames of a slow source, but no more than 1.75 s."""
    frames_ns = _FRAMES_MISSED / fps * SECOND_NS if fps > 0 else 0
    return int(min(max(frames_ns, _LEAST_PATIENCE_NS), _MOST_PATIENCE_NS))


def back_off_ns(attempts: int) -> int:
    """How long to wait after so many attempts in vain: 0.5 s, doubled up to 8 s."""
    return min(_FIRST_WAIT_NS << min(attempts, 10), _MOST_WAIT_NS)


def opening(watch: SourceStatus, now_ns: int) -> SourceStatus:
    """It is being opened once more."""
    trouble = trouble_of(watch, now_ns) or "lost"
    return replace(watch, step="opening", step_ns=now_ns, attempts=watch.attempts + 1, trouble=trouble)


def opened(watch: SourceStatus, now_ns: int, description: str, fps: float, may_stand_still: bool) -> SourceStatus:
    """It is open. Its name is its description up to the first comma."""
    return replace(
        watch,
        step="open",
        step_ns=now_ns,
        name=description.partition(", ")[0],
        patience_ns=patience_ns(fps),
        may_stand_still=may_stand_still,
    )


def pictured(watch: SourceStatus, now_ns: int, changed: bool) -> SourceStatus:
    """A picture came; changed: it differs from the one before, or is the first."""
    if not changed:
        return replace(watch, picture_ns=now_ns)
    return replace(watch, picture_ns=now_ns, change_ns=now_ns, attempts=0, reason="")


def noted(watch: SourceStatus, now_ns: int, note: str) -> SourceStatus:
    """Something happened that the user is told for a while."""
    return replace(watch, note=note, note_ns=now_ns)


def failed(watch: SourceStatus, now_ns: int, reason: str) -> SourceStatus:
    """It could not be opened, or is lost."""
    return replace(watch, step="failed", step_ns=now_ns, trouble="lost", reason=reason)


def ended(watch: SourceStatus, now_ns: int) -> SourceStatus:
    """It came to its end."""
    return replace(watch, step="ended", step_ns=now_ns)


def trouble_of(watch: SourceStatus, now_ns: int) -> CapturePhase | None:
    """What is wrong; None if nothing is, or the source has ended."""
    if watch.step == "ended":
        return None
    if watch.step != "open" or watch.picture_ns is None or watch.change_ns is None or watch.picture_ns < watch.step_ns:
        return watch.trouble
    if now_ns - watch.picture_ns >= watch.patience_ns:
        return "stalled"
    if not watch.may_stand_still and now_ns - watch.change_ns >= watch.patience_ns:
        return "frozen"
    return None


def due_ns(watch: SourceStatus) -> int | None:
    """When to give the present attempt up and open the source again; None: never.

    A source that never delivered a picture or has ended is not opened again automatically.
    """
    if watch.picture_ns is None or watch.change_ns is None or watch.step == "ended":
        return None
    if watch.step == "failed":
        return watch.step_ns + back_off_ns(watch.attempts)
    if watch.step == "opening":
        return watch.step_ns + OPEN_PATIENCE_NS
    silent_ns = max(watch.picture_ns, watch.step_ns) + back_off_ns(watch.attempts)
    still_ns = max(watch.change_ns, watch.step_ns) + back_off_ns(watch.attempts + _FROZEN_ATTEMPTS)
    return watch.patience_ns + (silent_ns if watch.may_stand_still else min(silent_ns, still_ns))


def state_of(watch: SourceStatus, now_ns: int) -> CaptureState:
    """In what state the source is, and what a person is told of it."""
    if watch.step == "ended":
        return CaptureState("ended", f"{watch.name} has come to its end")
    trouble = trouble_of(watch, now_ns)
    if trouble is None:
        return CaptureState("live", watch.note if now_ns - watch.note_ns < NOTE_NS else "")
    return CaptureState(trouble, _complaint(watch, trouble, now_ns) + _prospect(watch, now_ns))


def _complaint(watch: SourceStatus, trouble: CapturePhase, now_ns: int) -> str:
    if trouble == "opening":
        return "opening the source" if watch.step == "opening" else f"waiting for the first picture of {watch.name}"
    if trouble == "stalled":
        return f"no picture from {watch.name} for {_seconds(now_ns, watch.picture_ns)} s"
    if trouble == "frozen":
        return f"the picture from {watch.name} has not changed for {_seconds(now_ns, watch.change_ns)} s"
    return watch.reason


def _prospect(watch: SourceStatus, now_ns: int) -> str:
    due = due_ns(watch)
    if due is None:
        return ""
    if watch.step == "opening":
        return "; trying again"
    return f"; trying again in {max(1, math.ceil((due - now_ns) / SECOND_NS))} s"


def _seconds(now_ns: int, since_ns: int | None) -> int:
    return round((now_ns - (since_ns or now_ns)) / SECOND_NS)
