"""Who hides faces sees frames before they are drawn: each once, in their order, and hides by all that it knows."""

import numpy as np

from texelflow.app.frame.finding.finding_stage import FindingStage
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.tracking.face_covers import HELD_MS, FaceCover

MS = 1000 / 30


class Known:
    """Finds faces where they are said to be, by a frame's number; notes which frames it saw."""

    def __init__(self, places: dict[int, float]) -> None:
        self.places, self.seen = places, list[int]()

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        self.seen.append(frame.index)
        x = self.places.get(frame.index)
        return () if x is None else (Finding("face", 0.9, FrameRegion(x, 120, 40, 40)),)

    def begin_anew(self) -> None:
        self.seen.append(-1)


def frames(count: int, first: int = 0) -> list[VideoFrame]:
    picture = np.zeros((240, 320, 4), np.uint8)
    return [VideoFrame(n, n, n * MS, rgba_picture(picture.copy())) for n in range(first, first + count)]


def hidden(covers: tuple[FaceCover, ...], x: float) -> bool:
    return any(
        abs(x - each.center_x) < each.half_width and abs(120 - each.center_y) < each.half_height for each in covers
    )


def test_a_face_is_hidden_before_it_is_found() -> None:
    guard = Known({n: 20.0 * n - 60 for n in range(8, 20)})
    stage, clip = FindingStage(None, kept=3, guard=guard), frames(20)
    for number, frame in enumerate(clip):
        stage.upcoming = tuple(clip[number + 1 : number + 6])
        stage.run(frame)
        if number != 3:  # of which only one frame with the face is known, and not yet how it moves
            assert hidden(stage.covers(), 20.0 * number - 60) == (number > 3), number
        assert bool(stage.faces()) == bool(stage.found()) == (number >= 8)
        if number:
            assert bool(stage.faces(1)) == (number >= 9)
    assert guard.seen == list(range(20))


def test_a_frame_that_is_left_out_is_no_trouble() -> None:
    guard = Known(dict.fromkeys(range(20), 100))
    stage, clip = FindingStage(None, guard=guard), frames(12)
    for number in (0, 1, 4, 5, 11):
        stage.upcoming = tuple(clip[number + 1 : number + 4])
        stage.run(clip[number])
        assert hidden(stage.covers(), 100)
    assert guard.seen == [0, 1, 2, 3, 4, 5, 6, 7, 8, 11]


def test_what_was_hidden_stays_so_for_a_while_at_what_may_be_no_cut() -> None:
    guard = Known({0: 100, 1: 100, 2: 100})
    stage, clip = FindingStage(None, guard=guard), frames(40)
    for frame in clip[:3]:
        stage.run(frame)
    stage.begin_anew()
    for frame in clip[3:]:
        stage.run(frame)
        assert hidden(stage.covers(0, {1}), 100) == (frame.time_ms <= clip[3].time_ms + HELD_MS)
    assert guard.seen.count(-1) == 1


def test_a_finder_beside_it_sees_frames_as_they_are_drawn() -> None:
    guard, finder = Known(dict.fromkeys(range(9), 100)), Known(dict.fromkeys(range(9), 200))
    stage, clip = FindingStage(finder, guard=guard), frames(6)
    for number, frame in enumerate(clip[:3]):
        stage.upcoming = tuple(clip[number + 1 :])
        stage.run(frame)
        assert [found.box[0] for found in stage.found()] == [180, 80]
        assert [found.box[0] for found in stage.faces()] == [80]
    assert (finder.seen, guard.seen) == ([0, 1, 2], [0, 1, 2, 3, 4, 5])
