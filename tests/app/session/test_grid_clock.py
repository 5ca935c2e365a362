"""When a frame of several cameras is due, and what is told of them together."""

from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.capture.supervise import CaptureState
from texelflow.app.frame.stages.frame_figures import CameraFigures
from texelflow.app.overlay.captions import caption_of, is_slow
from texelflow.app.session.grid_clock import grid_state, wait_ns_of

LIVE, NEWS = CaptureState("live"), CaptureState("live", "b now sends 320x240")
GONE, ENDED = CaptureState("lost", "a is gone"), CaptureState("ended", "c has come to its end")
cameras = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=9)


@given(cameras, st.integers(0, 10**9), st.sampled_from([0.0, 1e9 / 60, 1e9 / 30]))
def test_a_frame_waits_for_cameras_that_are_well_and_not_for_long(
    cameras: list[tuple[bool, bool]], since_ns: int, period_ns: float
) -> None:
    new, well = zip(*cameras, strict=True)
    wait_ns = wait_ns_of(new, well, since_ns, period_ns)
    assert (wait_ns is None) == (not any(new))
    if wait_ns is not None:
        assert 0 <= wait_ns <= max(0, period_ns - since_ns)
        if all(is_new or not is_well for is_new, is_well in cameras):
            assert wait_ns == 0
        elif since_ns == 0 and period_ns:
            assert wait_ns > period_ns / 2


def test_what_is_told_of_all() -> None:
    assert grid_state([LIVE, LIVE]).phase == "live"
    some = grid_state([GONE, NEWS, ENDED])
    assert (some.phase, some.message, some.troubles) == ("live", NEWS.message, (GONE.message, ENDED.message))
    none = grid_state([GONE, ENDED])
    assert (none.phase, none.message) == ("lost", "a is gone; c has come to its end")
    assert grid_state([ENDED, ENDED]).phase == "ended"


def test_a_line_on_each_camera() -> None:
    camera = CameraFigures("V4L2 /dev/video2, MJPG 640x480, 30 fps", "driver", 29.6, 100, 3, 0, budget_ms=1000 / 30)
    assert caption_of(camera) == ["video2", "30 fps", "dropped 3"]
    assert not is_slow(camera)
    slow = CameraFigures("http://camera/stream", "stream", 20.0, 9, 0, 0, 1, budget_ms=1000 / 30)
    assert caption_of(slow) == ["http://camera/stream", "20 fps", "dropped 0", "lost 1"]
    assert is_slow(slow)
    gone = CameraFigures("http://camera/stream", "stream", 0.0, 9, 0, 0, trouble="no picture for 3 s")
    assert caption_of(gone) == ["no picture for 3 s"]
