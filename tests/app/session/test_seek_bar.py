"""The seek bar without a window: which frame is shown while the mouse is dragged, and how long things stay."""

import pytest

from texelflow.app.session.seek_bar import frame_to_preview
from texelflow.app.window.fading import Fading


@pytest.mark.parametrize(
    ("target", "key_frame", "rests", "shown"),
    [(100, 90, False, 100), (500, 250, False, 250), (500, 250, True, 500), (500, None, False, 500), (3, 0, False, 3)],
)
def test_what_is_far_from_a_key_frame_is_shown_where_the_mouse_rests(
    target: int, key_frame: int | None, rests: bool, shown: int
) -> None:
    assert frame_to_preview(target, key_frame, rests) == shown


def test_what_goes_by_itself_stays_fades_and_is_gone() -> None:
    now_s = [100.0]
    line = Fading(4.0, lambda: round(now_s[0] * 1e9))
    assert (line.alpha, line.changes_s(100.0)) == (0, None)
    line.show()
    assert (line.alpha, line.changes_s(100.0)) == (1, 104.0)
    seen = []
    for now_s[0] in (103.9, 104.0, 104.3, 104.59, 104.7):
        seen.append(round(line.alpha, 3))
    assert seen == [1, 1, 0.5, 0.017, 0]
    assert line.changes_s(104.3) == pytest.approx(104.3 + 1 / 30)
    assert line.changes_s(104.59) == pytest.approx(104.59 + 1 / 30), "it must be drawn once more, without"
    assert line.changes_s(104.7) is None
    line.show()
    line.fade()
    now_s[0] += 0.3
    line.fade()
    assert line.alpha == pytest.approx(0.5), "it has begun"
