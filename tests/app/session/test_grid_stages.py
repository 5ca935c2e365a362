"""For which pictures of a camera among others the network runs, whenever those come and masks are due."""

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.picture.grid_frame import CameraFrame
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.session.grid_stages import CameraStages
from texelflow.app.session.model_stages import ModelStages

PICTURE = rgba_picture(np.zeros((2, 2, 4), np.uint8))


@dataclass(frozen=True)
class Heard(ModelStages):
    """Of one stage, which notes the numbers of frames and whether the network was to see them."""

    seen: dict[int, bool] = field(default_factory=dict)

    def run(self, place: int, frame: VideoFrame, fresh: bool, finds: bool = True) -> None:
        assert frame.index not in self.seen, "twice"
        self.seen[frame.index] = fresh

    def begin_anew(self) -> None:
        """There is nothing to forget."""


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=30))
def test_a_mask_that_was_due_comes_with_the_next_picture(steps: list[tuple[bool, bool, bool]]) -> None:
    nothing = cast(Any, None)
    heard = Heard(nothing, None, None, (), nothing, lambda: None)
    camera, frame, due = CameraStages(heard), CameraFrame(VideoFrame(0, 0, 0.0, PICTURE)), False
    for number, (is_new, is_fresh, is_cut) in enumerate(steps, start=1):
        version = camera.version
        if is_new:
            frame = CameraFrame(VideoFrame(number, 0, 0.0, PICTURE), cut=is_cut)
        is_first = number == 1
        camera.run(0, frame, is_fresh)
        due |= is_fresh or (is_new and is_cut)
        assert (camera.version > version) == (is_new or is_first)
        if is_new or is_first:
            assert heard.seen[frame.newest.index] == due
            due = False
    assert len(heard.seen) == len({number for number, step in enumerate(steps, 1) if step[0] or number == 1})
