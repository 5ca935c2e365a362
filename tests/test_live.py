"""A camera in a real window: what each key does, what the file of settings does, and what the window's states mean."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

import cv2
import numpy as np
import pytest

from app.capture.pattern import read_time_code, time_code_of
from app.frame.effects import EFFECTS
from app.media.sources import FileSource
from app.settings.settings import Settings
from app.window.keys import LIVE
from tests.display import SCREEN
from tests.live_stage import PATIENCE_S, SIZE, Script, Stage, Theatre
from tests.running import times_of


class TestKeys:
    """Each key, pressed for real."""

    def test_each_key_is_tried_here(self) -> None:
        tried = {"r", "c", "p", "n", "m", "v", "g", "d", "a", "e", *"123456789", "s", "o", "f", "?", "h", "escape", "q"}
        assert {key for binding in LIVE for key in binding.actions} == tried

    @pytest.mark.parametrize(
        ("key", "name", "words", "in_force"),
        [
            ("m", "mirror", "mirror", lambda stage: stage.canvas.look.mirror),
            ("v", "side_by_side", "side by side", lambda stage: stage.canvas.shown().size == (2 * SIZE[0], SIZE[1])),
            ("g", "edges", "edges", lambda stage: stage.parts.scenes.current.refiner.refinement.edges),
            ("d", "delay_video", "delay video", lambda stage: stage.parts.scenes.current.refiner.refinement.delay == 1),
            ("a", "auto", "auto", lambda stage: stage.parts.workload.work.auto),
        ],
    )
    def test_what_is_on_or_off(
        self, theatre: Theatre, key: str, name: str, words: str, in_force: Callable[[Stage], bool]
    ) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            before = getattr(stage.settings, name)
            assert in_force(stage) == before
            for value in (not before, before):
                yield from stage.pressed(key, lambda value=value: getattr(stage.settings, name) == value)  # type: ignore[misc]
                assert in_force(stage) == value
                assert stage.words == f"{words} {'on' if value else 'off'}"

        theatre.run(script)

    def test_a_mirror_turns_the_picture_around(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            assert stage.code() == time_code_of(stage.records[-1].index)
            yield from stage.pressed("m", lambda: stage.settings.mirror)
            assert read_time_code(stage.drawn()[:, ::-1]) == time_code_of(stage.records[-1].index)

        theatre.run(script, effect="none")

    def test_effects(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            seen = []
            for number, effect in enumerate(EFFECTS, start=1):
                yield from stage.pressed(str(number), lambda effect=effect: stage.settings.effect == effect)  # type: ignore[misc]
                assert stage.canvas.look.effect == effect
                seen.append(stage.drawn().tobytes())
            yield from stage.pressed("e", lambda: stage.settings.effect == EFFECTS[0])
            yield from stage.pressed("9", lambda: stage.words == f"there are effects 1 to {len(EFFECTS)}")
            assert stage.settings.effect == EFFECTS[0]
            assert len(set(seen)) == len(EFFECTS)

        theatre.run(script, camera=str(still))

    def test_what_is_written_over_the_picture(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(3)
            yield from stage.until(lambda: not stage.words)
            plain = stage.on_screen()
            for key in ("o", "question", "h", "p"):
                stage.press(key)
                yield from stage.until(lambda: (stage.on_screen() != plain).mean() > 0.05, f"what {key} shows")
                stage.press(key)
                yield from stage.until(lambda: (stage.on_screen() == plain).all(), "its end")
            assert stage.settings == before

        before = Settings(camera=str(still), size="160x120", fps=60.0, backend="cpu", effect="none")
        theatre.run(script, camera=str(still), effect="none")

    def test_recording(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            for number in (1, 2):
                yield from stage.pressed("r", lambda: stage.board.recording == "recording")
                assert stage.words == f"recording to texelflow-{number}.mp4"
                yield from stage.frames(8)
                yield from stage.pressed("r", lambda: stage.words.startswith(f"saved texelflow-{number}.mp4"))  # noqa: B023
                assert stage.board.recording == ""

        records = theatre.run(script, effect="none")
        taken_ms = {time_code_of(record.index): record.time_ms for record in records}
        for number in (1, 2):
            with FileSource(theatre.folder / f"texelflow-{number}.mp4") as file:
                shown = [(frame.time_ms, read_time_code(frame.rgba)) for frame in file]
            assert len(shown) >= 8
            late = [time_ms - taken_ms[code or 0] for time_ms, code in shown]
            assert max(late) - min(late) < 0.01, "times are those of the capture"

    def test_a_screenshot(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            yield from stage.pressed("s", lambda: stage.words.startswith("saved texelflow-"))

        theatre.run(script, effect="none")
        (path,) = theatre.folder.glob("*.png")
        picture = cv2.imread(str(path))
        assert picture is not None
        assert picture.shape == (*SIZE[::-1], 3)
        assert read_time_code(picture[..., ::-1]) == int(path.stem.partition("-")[2])

    def test_a_virtual_camera_where_there_is_none(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            yield from stage.pressed("c", lambda: stage.words.startswith("no virtual camera: "))
            assert not stage.settings.virtual_camera

        theatre.run(script)

    def test_the_small_model_and_back(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            for name in ("selfie-landscape", "selfie"):
                yield from stage.pressed("n", lambda name=name: stage.words == f"model {name}")  # type: ignore[misc]
                assert stage.parts.scenes.name == stage.settings.model == name

        theatre.run(script)

    @pytest.mark.parametrize("keys", [["q"], ["Escape"], ["f", "Escape", "Escape"]])
    def test_the_end(self, theatre: Theatre, keys: list[str]) -> None:
        with theatre.opened() as stage:
            stage.press(*keys)
            end = monotonic() + PATIENCE_S
            stage.session.run(lambda: monotonic() > end)
            assert stage.session.desk.left

    def test_the_close_button(self, theatre: Theatre) -> None:
        with theatre.opened() as stage:
            theatre.display.ask_to_close(theatre.display.window("texelflow"))
            end = monotonic() + PATIENCE_S
            stage.session.run(lambda: monotonic() > end)
            assert stage.parts.window.closed
