"""A camera in a real window: what each key does, what the file of settings does, and what the window's states mean."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

import cv2
import numpy as np
import pytest

from tests.helpers.display import SCREEN
from tests.helpers.live_stage import SIZE, Script, Stage, Theatre
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.running import times_of
from tests.helpers.time_codes import read_time_code
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.capture.pattern import time_code_of
from texelflow.app.frame.looks.effects import BUILT_IN_BACKGROUNDS, MASK_EFFECTS
from texelflow.app.media.sources import FileSource
from texelflow.app.session.clock import NewestWins
from texelflow.app.settings.settings import Settings
from texelflow.app.window.keys import LIVE


class TestKeys:
    """Each key, pressed for real."""

    def test_each_key_is_tried_here(self) -> None:
        tried = {"r", "c", "p", "n", "m", "v", "g", "d", "a", "e", *"123456789", "s", "o", "f", "?", "h", "escape", "q"}
        tried |= {"x", "u", "b", "t", "+", "=", "-", "0", "left", "right", "up", "down"}
        assert {key for binding in LIVE for key in binding.actions} == tried

    @one_in(
        3,
        ("key", "name", "words", "in_force"),
        [
            ("m", "mirror", "flip horizontally", lambda stage: stage.canvas.look.mirror),
            ("v", "side_by_side", "side by side", lambda stage: stage.canvas.shown().size == (2 * SIZE[0], SIZE[1])),
            ("g", "edges", "edges", lambda stage: stage.refinement.edges),
            ("d", "delay_video", "delay video", lambda stage: stage.refinement.delay == 1),
            ("a", "auto", "keep frame rate", lambda stage: stage.parts.workload.work.auto),
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

    def test_zoom_and_where_it_is(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            before = stage.drawn()
            yield from stage.pressed("equal", lambda: stage.settings.zoom == 1.1)
            yield from stage.pressed("plus", lambda: stage.settings.zoom == 1.21)
            assert stage.words == "zoom 1.21"
            middle = stage.drawn()
            assert (middle != before).mean() > 0.2
            for key, pan in (("Left", "0.434,0.500"), ("Up", "0.434,0.434"), ("Right", "0.500,0.434")):
                yield from stage.pressed(key, lambda pan=pan: stage.settings.pan == pan)  # type: ignore[misc]
                assert (stage.drawn() != middle).mean() > 0.1
            yield from stage.pressed("Down", lambda: stage.settings.pan == "0.500,0.500")
            yield from stage.until(lambda: (stage.drawn() == middle).all(), "the same picture again")
            yield from stage.pressed("minus", lambda: stage.settings.zoom == 1.1)
            yield from stage.pressed("0", lambda: stage.settings.zoom == 1)
            yield from stage.until(lambda: (stage.drawn() == before).all(), "the first picture again")

        theatre.run(script, effect="none", camera=str(still))

    def test_a_picture_that_is_held(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            yield from stage.pressed("x", lambda: stage.settings.freeze)
            yield from stage.frames(1)
            held = stage.code()
            yield from stage.frames(6)
            assert stage.code() == held
            yield from stage.pressed("x", lambda: not stage.settings.freeze)
            yield from stage.until(lambda: stage.code() != held, "a newer picture")
            yield from stage.pressed("x", lambda: stage.settings.freeze)
            yield from stage.pressed("6", lambda: stage.settings.effect == "mask")
            assert not stage.settings.freeze, "a held picture would show what the effect hides"

        theatre.run(script, effect="none")

    def test_the_next_background_and_silence(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            for name in (*BUILT_IN_BACKGROUNDS, next(iter(BUILT_IN_BACKGROUNDS))):
                yield from stage.pressed("b", lambda name=name: stage.settings.background == name)  # type: ignore[misc]
                assert stage.settings.effect == "replace"
            yield from stage.pressed("u", lambda: stage.settings.mute)
            assert stage.words == "mute on"

        theatre.run(script, camera=str(still), effect="none")

    def test_whom_the_picture_follows(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            for mode in ("person", "group", "off"):
                yield from stage.pressed("t", lambda mode=mode: stage.settings.frame == mode)  # type: ignore[misc]
                assert stage.words == f"follow {mode}"

        theatre.run(script, effect="none", camera=str(still))

    def test_a_mirror_turns_the_picture_around(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            assert stage.code() == time_code_of(stage.records[-1].index)
            yield from stage.pressed("m", lambda: stage.settings.mirror)
            assert read_time_code(stage.drawn()[:, ::-1]) == time_code_of(stage.records[-1].index)

        theatre.run(script, effect="none")

    @exhaustive
    def test_effects(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            seen = []
            for number, effect in enumerate(MASK_EFFECTS, start=1):
                yield from stage.pressed(str(number), lambda effect=effect: stage.settings.effect == effect)  # type: ignore[misc]
                assert stage.canvas.look.effect == effect
                seen.append(stage.drawn().tobytes())
            yield from stage.pressed("e", lambda: stage.settings.effect == MASK_EFFECTS[0])
            yield from stage.pressed("9", lambda: "does not have the 2 to 256 classes" in stage.words)
            assert stage.settings.effect == MASK_EFFECTS[0]
            assert len(set(seen)) == len(MASK_EFFECTS)

        theatre.run(script, camera=str(still))

    def test_what_is_written_over_the_picture(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(3)
            yield from stage.until(lambda: not stage.words)
            plain = stage.on_screen()
            for key, presses in (("o", 2), ("question", 1), ("h", 1), ("p", 1)):
                stage.press(key)
                yield from stage.until(lambda: (stage.on_screen() != plain).mean() > 0.05, f"what {key} shows")
                stage.press(*[key] * presses)
                yield from stage.until(lambda: (stage.on_screen() == plain).all(), "its end")
            assert stage.settings == before

        before = Settings(camera=str(still), size="160x120", fps=60.0, backend="cpu", effect="none", start_hint=False)
        theatre.run(script, camera=str(still), effect="none")

    def test_a_line_at_start_fades_with_a_key_and_is_in_no_recording(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            hint = stage.hud.hint
            yield from stage.frames(2)
            assert hint.alpha == 1
            with_hint, picture = stage.on_screen(), stage.drawn()
            stage.press("z")  # which means nothing
            yield from stage.until(lambda: 0 < hint.alpha < 1, "its fading")
            yield from stage.until(lambda: hint.alpha == 0, "its end")
            yield from stage.until(lambda: (stage.on_screen() == picture[..., :3]).all(), "the picture alone")
            assert (with_hint != picture[..., :3]).any()

        theatre.run(script, camera=str(still), effect="none", start_hint=True)

    def test_recording(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            for number in (1, 2):
                yield from stage.pressed("r", lambda: stage.hud.recording.startswith(f"texelflow-{number}.mp4"))  # noqa: B023
                assert stage.words.endswith(f"recording to texelflow-{number}.mp4")
                yield from stage.frames(8)
                yield from stage.pressed("r", lambda: f"written: texelflow-{number}.mp4 (" in stage.words)  # noqa: B023
                assert stage.hud.recording == ""

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
            yield from stage.pressed("s", lambda: stage.words.startswith("written: texelflow-"))

        theatre.run(script, effect="none")
        (path,) = theatre.folder.glob("*.png")
        picture = cv2.imread(str(path))
        assert picture is not None
        assert picture.shape == (*SIZE[::-1], 3)
        assert read_time_code(picture[..., ::-1].astype(np.uint8)) == int(path.stem.partition("-")[2])

    def test_a_virtual_camera_where_there_is_none(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            yield from stage.pressed("c", lambda: stage.words.startswith("no virtual camera: "))
            assert not stage.settings.virtual_camera

        theatre.run(script)

    @exhaustive
    def test_the_small_model_and_back(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            for name in ("selfie-landscape", "selfie"):
                yield from stage.pressed("n", lambda name=name: stage.words.splitlines()[-1:] == [f"model {name}"])  # type: ignore[misc]
                assert stage.parts.stages.name == name

        theatre.run(script)

    @pytest.mark.parametrize("keys", [["q"], ["Escape"], ["f", "Escape", "Escape"]])
    def test_the_end(self, theatre: Theatre, keys: list[str]) -> None:
        with theatre.opened() as stage:
            stage.press(*keys)
            end = monotonic() + PATIENCE_S
            stage.session.run(lambda: monotonic() > end)
            assert stage.session.controller.left

    def test_the_close_button(self, theatre: Theatre) -> None:
        with theatre.opened() as stage:
            theatre.display.ask_to_close(theatre.display.window("texelflow"))
            end = monotonic() + PATIENCE_S
            stage.session.run(lambda: monotonic() > end)
            assert stage.window.closed


class TestFileOfSettings:
    def test_it_counts_as_soon_as_it_is_saved(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            stage.save('[picture]\neffect = "none"\nmirror = true\n')
            yield from stage.until(lambda: stage.settings.mirror, "reading it again")
            assert stage.words == "flip horizontally on"
            assert stage.canvas.look.effect == "tint", "flags are stronger"
            yield from stage.pressed("m", lambda: not stage.settings.mirror)
            for wrong, complaint in (
                ('[picture]\nefect = "mask"\n', "line 2: [picture] efect is no setting; did you mean effect?"),
                ("[mask]\n\nsmooth = 7\n", "live.toml, line 3: [mask] smooth = 7: a number from 0 to 1 is needed"),
            ):
                before = stage.settings
                stage.save(wrong)
                yield from stage.until(lambda text=complaint: text in stage.words, complaint)  # type: ignore[misc]
                assert stage.settings == before, "they stay as they are"
            stage.save('[mask]\nsmooth = 0.25\n[model]\nfit = "crop"\n')
            yield from stage.until(lambda: stage.refinement.smooth == 0.25)
            assert "settings read again; what takes effect after restart: fit" in stage.words
            assert stage.settings.fit == "stretch"

        theatre.run(script)

    @exhaustive
    def test_outputs_begin_and_end_by_it(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            stage.save('[output]\nout = "a.mp4"\nmasks = "mattes.mp4"\ncutouts = "people"\n')
            yield from stage.until(lambda: len(stage.parts.outputs.active) == 3)
            yield from stage.frames(8)
            assert all(name in stage.hud.recording for name in ("a.mp4", "mattes.mp4", "people"))
            stage.save('[output]\nmasks = "mattes"\n')
            yield from stage.until(lambda: stage.parts.outputs.active == ("masks",))
            yield from stage.frames(8)
            stage.save('[output]\nrecord = "nowhere/a.mp4"\n')
            yield from stage.until(lambda: "nowhere" in stage.words)
            assert stage.parts.outputs.active == ()
            assert stage.settings.out == ""
            stage.save('[output]\nrecord = "settings.mp4"\nmattes = "mattes"\n')
            yield from stage.until(lambda: "settings.mp4: that is the file of settings" in stage.words)
            assert [*stage.parts.outputs.active] == ["masks"], "names of earlier versions go on working"
            assert stage.config.read_text().startswith("[output]")

        (theatre.folder / "settings.mp4").symlink_to(theatre.config)
        records = theatre.run(script, effect="none")
        shown = {record.index for record in records}
        for name in ("a.mp4", "mattes.mp4"):
            assert len(times_of(theatre.folder / name)) >= 5
        for folder, channels in (("people", 4), ("mattes", 1)):
            paths = [*(theatre.folder / folder).iterdir()]
            assert len(paths) >= 5
            for path in paths:
                picture = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
                assert picture is not None
                assert picture.size == SIZE[0] * SIZE[1] * channels
                assert int(path.stem) in shown

    @exhaustive
    def test_backgrounds(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            stage.save('[picture]\nbackground = "gone.jpg"\n')
            yield from stage.until(lambda: "another background is shown" in stage.words, "a complaint")
            assert "gone.jpg" in stage.words
            yield from stage.frames(2)
            before = stage.drawn()[:8, :8]
            stage.save('[picture]\nbackground = "blue.png"\n')
            cv2.imwrite("blue.png", np.full((9, 9, 3), (255, 0, 0), np.uint8))
            yield from stage.until(lambda: (stage.drawn()[:8, :8, :3] == (0, 0, 255)).all(), "another background")
            stage.save("")
            yield from stage.until(lambda: (stage.drawn()[:8, :8] == before).all(), "the first background")

        theatre.run(script, effect="replace", camera=str(still))


def clock_of(stage: Stage) -> NewestWins:
    assert isinstance(stage.parts.clock, NewestWins)
    return stage.parts.clock


class TestDelay:
    @pytest.mark.parametrize("effect", ["none", "cutout"])
    def test_each_frame_is_shown_when_the_next_one_comes(self, theatre: Theatre, effect: str) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(3)
            for _ in range(5):
                waiting = clock_of(stage)._held[-1]
                assert waiting
                yield from stage.frames(1)
                record = stage.records[-1]
                assert (record.index, record.captured_ns) == (waiting.index, waiting.captured_ns), "ages are its own"
                assert stage.code() == time_code_of(waiting.index)
            yield from stage.pressed("d", lambda: not stage.settings.delay_video)
            newest = clock_of(stage)._held[-1]
            assert newest
            assert stage.code() == time_code_of(newest.index) == time_code_of(stage.records[-1].index)

        theatre.run(script, effect=effect, delay_video=True)


class TestWindow:
    def test_full_screen_and_back(self, managed_theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            window = stage.window
            yield from stage.frames(1)
            yield from stage.pressed("f", lambda: window.size == SCREEN and not window.damaged)
            assert stage.settings.fullscreen
            assert read_time_code(stage.on_screen()) is not None
            yield from stage.pressed("Escape", lambda: window.size == SIZE and not window.damaged)

        managed_theatre.run(script, effect="none")

    def test_another_size(self, managed_theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            window = stage.window
            yield from stage.frames(1)
            stage.display.xdotool("windowsize", stage.display.window("texelflow"), 400, 300)
            yield from stage.until(lambda: window.size == (400, 300) and not window.damaged)
            yield from stage.frames(1)
            assert stage.code() == time_code_of(stage.records[-1].index)
            assert stage.drawn().shape[:2] == SIZE[::-1]

        managed_theatre.run(script, effect="none")

    def test_minimized_it_draws_nothing_but_records_on(self, managed_theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            display, capture = stage.display, stage.capture
            number = display.window("texelflow")
            yield from stage.frames(2)
            display.minimize(number)
            yield from stage.until(lambda: stage.window.minimized)
            shown, captured = len(stage.records), capture.counts.captured
            yield from stage.until(lambda: capture.counts.captured > captured + 5)
            assert len(stage.records) == shown
            stage.session.controller.change(out="hidden.mp4")
            yield from stage.frames(8)
            assert stage.records[shown].index > captured, "what waited to be shown has not waited for that long"
            display.minimize(number, False)
            yield from stage.until(lambda: not stage.window.minimized)
            stage.session.controller.change(out="")
            yield from stage.until(lambda: "written: hidden.mp4" in stage.words)

        managed_theatre.run(script, effect="none", delay_video=True)
        assert len(times_of(managed_theatre.folder / "hidden.mp4")) >= 8
