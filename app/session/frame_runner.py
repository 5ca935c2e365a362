"""Runs frames, one after the other, through the stages of the model: which work on each is needed, and when.

No clock is read here, and nothing is shown or written: a session (session.py) takes frames from a clock, and Pipeline
of the library takes them from its caller.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ..picture.cuts import CutDetector
from ..picture.exposure import RENEWED
from ..picture.video_frame import VideoFrame
from ..settings.settings import Settings
from .clock import Due
from .derived import lead_of
from .frame_parts import FrameParts
from .motion import MotionCheck


class Takers(NamedTuple):
    """What is taken of the next frame: its mask, whatever the picture shows, and its picture."""

    mask: bool
    picture: bool


class FrameRunner:
    """One frame after the other, each with what it needs of those before it. Belongs to the context's thread."""

    def __init__(self, parts: FrameParts, renews_exposure: bool, takers: Callable[[], Takers]) -> None:
        """renews_exposure: every so many frames the exposure begins anew, so that pieces of a recording are as the
        whole. `takers` are asked for each frame.
        """
        self._parts, self._renews_exposure, self._takers = parts, renews_exposure, takers
        self._seen: int | None = None  # the number of the frame that the network saw last
        self._masked = True  # whether the last frame needed a mask
        self._motion = MotionCheck()
        self._cuts, self._cut_at = CutDetector(), dict[int, bool]()  # of the last frames, by their numbers

    def run(self, due: Due, settings: Settings) -> None:
        """All of one frame, by settings that the stages follow already. Raises DeviceError."""
        if due.cut:
            self.begin_anew()
        frame = self.prepare(due, settings)
        if frame is not None:
            self.submit(frame, due)

    def prepare(self, due: Due, settings: Settings) -> VideoFrame | None:
        """Make what comes before the frame itself, and decide on the work on it: what submit() is to get.

        None for one of the lead, with which all is done. Raises DeviceError.
        """
        due = self._with_cuts(due)
        self._parts.stages.current.look_ahead(due.upcoming)
        self._follow_needs()
        ahead = self._prepare_masks(due, settings)
        if due.lead:
            return None
        stages, frame = self._parts.stages, due.frame
        newest = ahead or frame
        stages.age, stages.catches_up = int(ahead is not None), ahead is None and self._seen == frame.index
        stages.fresh = self._runs_network(newest, settings)
        stages.finds = stages.fresh or not self._masked
        if self._seen != newest.index:
            self._expose(newest, settings)
        self._seen = newest.index
        return replace(frame, picture=ahead.picture, convert=ahead.convert) if ahead else frame

    def _with_cuts(self, due: Due) -> Due:
        """Begin anew at a cut in the source itself, and do not look ahead across one."""
        if due.cut:
            self._cuts.begin_anew()
            self._cut_at.clear()
        if not self._masked or len(due.frame.pictures) > 1:  # of several cameras each has its own
            return due
        if self._is_cut(due.frame) and not due.cut:
            self.begin_anew()
        return replace(due, ahead=None) if due.ahead and self._is_cut(due.ahead) else due

    def _is_cut(self, frame: VideoFrame) -> bool:
        """Whether the frame has nothing to do with the one before, which was asked for before."""
        if frame.index not in self._cut_at:
            last = list(self._cut_at.items())[-1:]
            self._cut_at = {**dict(last), frame.index: self._cuts.is_cut(frame.picture)}
        return self._cut_at[frame.index]

    def submit(self, frame: VideoFrame, due: Due) -> None:
        """Run what prepare() gave for a due frame through the pipeline, which has the record. Raises DeviceError."""
        self._parts.pipeline.submit(frame, due.dropped, due.repeated)

    def draw_again(self, frame: VideoFrame) -> None:
        """Draw the frame that was submitted last by the look as it is now; its mask is made if none was needed."""
        if self._follow_needs():
            self._parts.stages.prepare(frame, age=0)
            self._seen = frame.index
        self._parts.stages.redraw(frame)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._seen = None
        self._parts.stages.begin_anew()
        self._parts.workload.reset()

    def begin_model(self) -> None:
        """Another model has taken over, which has seen nothing."""
        self._motion.forget()

    def _prepare_masks(self, due: Due, settings: Settings) -> VideoFrame | None:
        """Make the mask of a frame that needs one before the frame ahead of it, which comes out: None without one.

        A machine that is too slow for every frame is spared that.
        """
        frame, ahead, stages = due.frame, due.ahead, self._parts.stages
        if ahead and self._seen != frame.index:
            if due.dropped:
                return None
            self._expose(frame, settings)
            stages.prepare(frame, age=0, fresh=self._masked)
            self._seen = frame.index
        if due.lead and (ahead or self._seen != frame.index):
            newest = ahead or frame
            self._expose(newest, settings)
            stages.prepare(newest, age=int(ahead is not None), fresh=self._masked)
            self._seen = newest.index
        return ahead

    def _expose(self, frame: VideoFrame, settings: Settings) -> None:
        """Of a recording some frames are exposed without those before: those with which the leads of pieces begin."""
        stages = self._parts.stages
        if self._renews_exposure and (frame.index + lead_of(settings, stages.current.remembers)) % RENEWED == 0:
            stages.expose_anew()

    def _follow_needs(self) -> bool:
        """Notice whether masks are needed, and refined; True if they are again: then those before are forgotten."""
        stages, takers = self._parts.stages, self._takers()
        canvas, before = stages.current.canvas, (self._masked, stages.refines)
        self._masked = canvas is None or canvas.look.needs_mask or takers.mask
        stages.refines = canvas is None or canvas.look.effect != "classes" or takers.mask
        stages.shows = takers.picture
        if before >= (self._masked, stages.refines):  # of both the network comes first
            return False
        self.begin_anew()
        return True

    def _runs_network(self, frame: VideoFrame, settings: Settings) -> bool:
        """Whether the network sees the frame."""
        workload = self._parts.workload
        if not self._masked:
            workload.reset()
            return False
        similarity = self._motion.similarity_db(*frame.pictures) if workload.compares else None
        small = self._parts.stages.name != settings.model
        fresh = workload.decide(frame.index, frame.time_ms, similarity, small) == "fresh"
        if fresh and workload.compares:
            self._motion.keep(*frame.pictures)
        return fresh
