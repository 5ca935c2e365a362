"""Several cameras in one real window: each with its own mask and troubles, shared weights, one picture of all."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.gpu_resets import GpuResets
from tests.helpers.live_stage import SIZE, Picture, Script, Stage, Theatre
from tests.helpers.markers import exhaustive
from tests.helpers.mjpeg_server import MjpegServer
from tests.helpers.running import times_of
from tests.helpers.time_codes import read_time_code
from texelflow.app.capture.pattern import time_code_of
from texelflow.app.frame.inference.gl_path import GlPath
from texelflow.app.outputs.output_worker import OutputCounts
from texelflow.app.picture.grid_frame import GridFrame
from texelflow.app.session.grid_clock import GridClock
from texelflow.app.session.grid_stages import GridStages


def clock_of(stage: Stage) -> GridClock:
    assert isinstance(stage.parts.clock, GridClock)
    return stage.parts.clock


def pictures_of(stage: Stage, picture: Picture | None = None) -> list[Picture]:
    """The pictures of all cameras, cut out of the grid."""
    whole = stage.drawn() if picture is None else picture
    places = clock_of(stage).grid.places
    return [whole[at.top : at.top + at.height, at.left : at.left + at.width, :3] for at in places]


def newest_of(stage: Stage, number: int) -> int:
    """The number of the frame of a camera that is shown."""
    drawn = stage.session._drawn
    assert isinstance(drawn, GridFrame)
    return drawn.cameras[number].newest.index


@pytest.fixture
def server() -> Iterator[MjpegServer]:
    with MjpegServer(SIZE) as server:
        yield server


@exhaustive
def test_each_has_its_own_mask_and_further_ones_take_no_weights(theatre: Theatre, still: Path) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(6)
        person, pattern, again = pictures_of(stage)
        assert 0.2 < person.mean() / 255 < 0.8
        assert np.abs(person.astype(int) - again).mean() < 2, "the same clip, maybe some frames later"
        assert pattern.max() < 128, "nobody is in the pattern"
        current = stage.parts.stages.current
        assert isinstance(current, GridStages)
        paths = [camera.stages.segmenter for camera in current.cameras]
        programs = [path.program for path in paths if isinstance(path, GlPath)]
        assert len(programs) == 3
        store = programs[0]._lease._store
        assert store.weights_bytes > 0
        for program in programs:  # each uses all that there is, besides what is its own
            assert program.buffer_bytes - program.tensor_bytes == store.weights_bytes + store.arena_bytes

    theatre.run(script, camera=[str(still), "pattern", str(still)], backend="gl", effect="mask", fps=30.0)


def test_one_that_is_gone_stops_no_other_and_is_recorded_with_it(
    theatre: Theatre, server: MjpegServer, gpu: GpuResets
) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        assert stage.window.size == (2 * SIZE[0] + 4, SIZE[1])
        assert read_time_code(pictures_of(stage)[1]) == time_code_of(newest_of(stage, 1))
        server.refuse()
        yield from stage.until(lambda: bool(stage.parts.clock.state.troubles), "a trouble")
        yield from stage.frames(2)  # one of its pictures may have waited
        before, shown = pictures_of(stage)[0], newest_of(stage, 1)
        yield from stage.until(lambda: newest_of(stage, 1) > shown + 5, "pictures of the other")
        after, moving = pictures_of(stage)
        assert (after == before).all(), "its last picture stays"
        assert read_time_code(moving) == time_code_of(newest_of(stage, 1))
        assert (stage.session.phase, stage.hud.signal) == ("live", "")
        on_screen = pictures_of(stage, stage.on_screen())
        assert (on_screen[0] != after).mean() > 0.05, "what is wrong stands in its picture"
        gone = newest_of(stage, 0)
        server.come_back()
        yield from stage.until(lambda: newest_of(stage, 0) > gone, "its return")
        assert stage.parts.clock.state.troubles == ()
        yield from settings_are_of_all(stage)
        context = stage.window.context
        gpu.reset()
        yield from stage.until(lambda: stage.window.context is not context, "another context")
        yield from stage.frames(3)  # the network takes some of the pattern's pictures for a person
        yield from stage.until(lambda: all(is_blue(picture) for picture in pictures_of(stage)), "the color again")
        counts.append(stage.parts.outputs.counts["recording"])

    counts: list[OutputCounts] = []
    cameras = [server.url, "pattern"]
    records = theatre.run(script, camera=cameras, effect="none", out="out.mp4", masks="masks")
    times = times_of(theatre.folder / "out.mp4")
    assert len(times) >= len(records) - counts[0].dropped - 3
    assert all(one < other for one, other in pairwise(times))
    mask = cv2.imread(str(next((theatre.folder / "masks").iterdir())), cv2.IMREAD_UNCHANGED)
    assert mask is not None
    assert mask.shape == (SIZE[1], 2 * SIZE[0] + 4)
    assert len([*theatre.folder.glob("texelflow-*.png")]) == 1


def is_blue(picture: Picture) -> bool:
    return bool(np.abs(picture - np.array([0, 0, 255])).mean() < 30)


def settings_are_of_all(stage: Stage) -> Script:
    """Keys and settings change what all cameras show."""
    yield from stage.pressed("m", lambda: stage.settings.mirror)
    assert read_time_code(pictures_of(stage)[1][:, ::-1]) == time_code_of(newest_of(stage, 1))
    yield from stage.pressed("m", lambda: not stage.settings.mirror)
    yield from stage.pressed("v", lambda: stage.canvas.shown().size == (2 * (2 * SIZE[0] + 4), SIZE[1]))
    yield from stage.pressed("v", lambda: not stage.settings.side_by_side)
    stage.press("s", "o")
    yield from stage.until(lambda: "written: texelflow-" in stage.words, "a screenshot")
    plain, shown = pictures_of(stage)[1], pictures_of(stage, stage.on_screen())[1]
    assert (plain[-20:] != shown[-20:]).any(), "its rate"
    yield from stage.pressed("d", lambda: clock_of(stage).looks_ahead)
    yield from stage.frames(2)
    code = read_time_code(pictures_of(stage)[1])
    assert code is not None
    assert code < newest_of(stage, 1), "the one before"
    stage.session.controller.change(effect="replace", background="#0000ff", model="selfie-landscape")
    yield from stage.until(lambda: all(is_blue(picture) for picture in pictures_of(stage)), "the color of all")
    yield from stage.until(lambda: stage.session.model == "selfie-landscape", "another model")
    yield from stage.frames(2)
