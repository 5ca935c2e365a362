"""Decides for which frames the network runs, by how much pictures differ and how long frames took.

Nothing is measured here, and no clock is read. A frame without a mask of its own keeps the one before.

The automatic mode moves along a ladder: from every frame with the chosen model over skipping still pictures and the
small model to a mask for every few frames. It goes down as soon as a percentile of some frames exceeds the budget, and
up, rung by rung, when the next one is expected to leave room. A rung that failed soon after it was tried is tried again
after twice the time.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..frame.stages.frame_figures import SWAP
from ..frame.stages.frame_pipeline import DECODE, FrameRecord

Reason = Literal["fresh", "still", "every", "budget"]  # "fresh": the network runs; else why it does not

LONGEST_MS = 1000.0  # without a new mask while the picture is still
MOST_EVERY = 60  # frames to a new mask, whatever is asked for
MOST_UNDER_WAY = 64  # frames decided on whose cost was not told

_SETTLING = 2  # still frames that get a mask nevertheless: what is smoothed over time comes to rest
_COSTS = 15  # of each kind that are remembered
_LEAST, _WINDOW = 6, 24  # frames on a rung before it is judged, and frames that say how many were skipped
_PERCENTILE = 0.75  # of costs: one slow frame means nothing
_FULL, _CROWDED, _ROOMY = 0.95, 0.75, 0.7  # shares of the budget: too much, too much if frames are lost, enough room
_WORTH = 0.9  # of the rung above, or less: else it gives worse masks for next to nothing
_LOST = 0.1  # share of the camera's frames
_PATIENCE = 60  # frames with room before the next rung up
_PROBATION = 300  # frames on a rung after which it counts as held
_MOST_BACK_OFF = 32 * _PATIENCE  # about a minute


@dataclass(frozen=True)
class Work:
    """What is asked for: a mask for every n-th frame, none while pictures are alike by still_db, or automatic."""

    every: int = 1
    skip_still: bool = False
    still_db: float = 35.0
    auto: bool = False


@dataclass(frozen=True)
class Level:
    """A rung of the ladder."""

    every: int = 1
    skip_still: bool = False
    small_model: bool = False


def ladder(has_small_model: bool) -> tuple[Level, ...]:
    """From the most work to the least."""
    rungs = [Level(), Level(skip_still=True)]
    if has_small_model:
        rungs.append(Level(skip_still=True, small_model=True))
    return (*rungs, *(Level(every, True, has_small_model) for every in (2, 3, 4, 6, 8)))


@dataclass(frozen=True)
class WorkCounts:
    """Of frames, by what became of them."""

    fresh: int = 0
    still: int = 0
    every: int = 0
    budget: int = 0

    def __str__(self) -> str:
        """In words: `network ran 412 of 900: 480 still, 8 over budget`."""
        total = self.fresh + self.still + self.every + self.budget
        skipped = ((self.every, "not due"), (self.still, "still"), (self.budget, "over budget"))
        why = ", ".join(f"{count} {reason}" for count, reason in skipped if count)
        return f"network ran {self.fresh} of {total}" + (f": {why}" if why else "")


class _Stay:
    """What was seen of frames since a rung was reached."""

    def __init__(self) -> None:
        self.frames = self.roomy = 0
        self._costs: dict[bool, deque[float]] = {fresh: deque(maxlen=_COSTS) for fresh in (True, False)}
        self._kinds: deque[bool] = deque(maxlen=_WINDOW)
        self._drops: deque[int] = deque(maxlen=_WINDOW)

    def add(self, fresh: bool, share: float, dropped: int) -> None:
        self.frames += 1
        self._kinds.append(fresh)
        self._drops.append(dropped)
        self._costs[fresh].append(share)

    @property
    def says_enough(self) -> bool:
        return self.frames >= _LEAST and bool(self._costs[True])

    @property
    def is_over(self) -> bool:
        """Whether frames took longer than there was time."""
        ran = sum(self._kinds) / len(self._kinds)
        load = ran * self._typical(True) + (1 - ran) * self._typical(False)
        lost = sum(self._drops) / (sum(self._drops) + len(self._drops))
        return load > (_CROWDED if lost > _LOST else _FULL)

    def expected(self, every: int) -> float:
        """The share of the budget with the same model, a mask for every so many frames and nothing still."""
        return (self._typical(True) + (every - 1) * self._typical(False)) / every

    def _typical(self, fresh: bool) -> float:
        costs = sorted(self._costs[fresh])
        return costs[int(_PERCENTILE * (len(costs) - 1))] if costs else 0.0


class Governor:
    """Finds the rung on which a frame takes no longer than there is time for it."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._levels = tuple(levels)
        self._place = 0
        self._back_off = [_PATIENCE] * len(self._levels)
        self._stay = _Stay()

    @property
    def level(self) -> Level:
        """The rung it is on."""
        return self._levels[self._place]

    def observe(self, fresh: bool, share: float, dropped: int = 0) -> bool:
        """Take what a frame on this rung took, as a share of its budget; whether the rung changes by that.

        fresh: with the network. `dropped` frames of the camera were lost before it.
        """
        stay, place = self._stay, self._place
        stay.add(fresh, share, dropped)
        if not stay.says_enough:
            return False
        if stay.is_over:
            self._descend()
        elif place and self._has_room_above():
            stay.roomy += 1
            if stay.roomy >= _PATIENCE and stay.frames >= self._back_off[place - 1]:
                self._go(place - 1)
        else:
            stay.roomy = 0
        return self._place != place

    def _has_room_above(self) -> bool:
        """Whether the rung above is expected to hold. What another model takes is not known: room has to do, then."""
        above, here = self._levels[self._place - 1], self.level
        every = above.every if above.small_model == here.small_model else here.every
        return self._stay.expected(every) < _ROOMY

    def _descend(self) -> None:
        """To the next rung that may hold; where none does, as far down as each rung is worth its worse masks."""
        place = self._lower_place()
        if place == self._place:
            return
        held = self._stay.frames >= _PROBATION
        self._back_off[self._place] = _PATIENCE if held else min(2 * self._back_off[self._place], _MOST_BACK_OFF)
        self._go(place)

    def _lower_place(self) -> int:
        best, here, expected = self._place, self.level, self._stay.expected
        for place, level in enumerate(self._levels[best + 1 :], best + 1):
            if level.every == 1 or level.small_model != here.small_model or expected(level.every) < _FULL:
                return place  # it holds, as far as one knows
            if expected(level.every) > _WORTH * expected(self._levels[place - 1].every):
                break
            best = place
        return best

    def _go(self, place: int) -> None:
        self._place, self._stay = place, _Stay()


class Workload:
    """Decides for one frame after the other; belongs to the loop that shows them.

    Where no mask is needed (effect none) nothing is asked here, and reset() is called when one is needed again.
    """

    def __init__(self, work: Work, has_small_model: bool = True) -> None:
        """Raises ValueError if `every` is no number of frames."""
        self._counts: dict[Reason, int] = {"fresh": 0, "still": 0, "every": 0, "budget": 0}
        self._has_small_model = has_small_model
        self._under_way: dict[int, bool] = {}  # frames on this rung whose cost is not told yet: with the network or not
        self._since: int | None = None  # frames since the last with a mask of its own
        self._fresh_ms = 0.0  # when that was
        self._still = 0  # still frames in a row
        self.work = work

    @property
    def work(self) -> Work:
        """The options; setting them starts the automatic mode afresh."""
        return self._work

    @work.setter
    def work(self, work: Work) -> None:
        if work.every < 1:
            raise ValueError(f"a mask for every {work.every} frames")
        self._work, self._asked = work, Level(work.every, work.skip_still)
        self._governor = Governor(ladder(self._has_small_model)) if work.auto else None
        self._under_way.clear()

    @property
    def has_small_model(self) -> bool:
        """Whether there is one to change to; if that changes the automatic mode starts afresh."""
        return self._has_small_model

    @has_small_model.setter
    def has_small_model(self, has: bool) -> None:
        if has != self._has_small_model:
            self._has_small_model = has
            self.work = self._work

    @property
    def level(self) -> Level:
        """What is done now: the options, and less where the automatic mode says so."""
        asked = self._asked
        if self._governor is None:
            return asked
        rung = self._governor.level
        return Level(max(asked.every, rung.every), asked.skip_still or rung.skip_still, rung.small_model)

    @property
    def compares(self) -> bool:
        """Whether decide() has a use for how much pictures differ."""
        return self.level.skip_still

    @property
    def counts(self) -> WorkCounts:
        """Of all frames so far."""
        return WorkCounts(**self._counts)

    def decide(
        self, frame_number: int, time_ms: float, similarity_db: float | None = None, small_model: bool = False
    ) -> Reason:
        """Whether the network runs for the next frame, and why not.

        similarity_db: to the picture that the network saw last; None: not known, which means that it moved.
        small_model: which of the two runs now. What it takes says nothing of a rung whose model is still being made.
        """
        reason = self._reason(time_ms, similarity_db)
        fresh = reason == "fresh"
        self._counts[reason] += 1
        self._since = 1 if fresh or self._since is None else self._since + 1
        if fresh:
            self._fresh_ms = time_ms
        if self._governor and small_model == self._governor.level.small_model:
            self._under_way[frame_number] = fresh
            if len(self._under_way) > MOST_UNDER_WAY:
                self._under_way.pop(next(iter(self._under_way)))
        return reason

    def observe(self, frame_number: int, busy_ms: float, budget_ms: float, dropped: int = 0) -> None:
        """Take what a frame took, by busy_ms(), and the time between two frames of the camera, 0 if unknown.

        `dropped` frames of the camera before it found no use.
        """
        fresh = self._under_way.pop(frame_number, None)
        if self._governor is None or fresh is None or budget_ms <= 0:
            return
        if self._governor.observe(fresh, busy_ms / budget_ms, dropped):
            self._under_way.clear()

    def reset(self) -> None:
        """The next frame gets a mask: the mask there is belongs to other pictures, or to another model."""
        self._since = None
        self._still = 0

    def _reason(self, time_ms: float, similarity_db: float | None) -> Reason:
        alike = similarity_db is not None and similarity_db >= self._work.still_db
        self._still = self._still + 1 if alike else 0
        if self._since is None or self._since >= MOST_EVERY:
            return "fresh"
        level = self.level
        if level.skip_still and self._still > _SETTLING and 0 <= time_ms - self._fresh_ms < LONGEST_MS:
            return "still"
        if self._since < self._work.every:
            return "every"
        return "budget" if self._since < level.every else "fresh"


def busy_ms(record: FrameRecord) -> float:
    """What a frame took of the GL thread's time or the device's, whichever is more, without waiting for the screen."""
    stages = [stage for stage in record.stages if stage.name not in (DECODE, SWAP)]
    return max(sum(stage.cpu_ms for stage in stages), sum(stage.gpu_ms or 0.0 for stage in stages))
