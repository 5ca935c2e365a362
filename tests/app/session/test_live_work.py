"""How much is done for a frame in a live session: models that change while it runs, masks that are left out."""

from pathlib import Path

from tests.helpers.clips import write_clip
from tests.helpers.clocks import ManualClock
from tests.helpers.live_stage import Script, Stage, Theatre, demo_frame
from tests.helpers.markers import exhaustive
from texelflow.app.capture.pattern import time_code_of


class TestModels:
    @exhaustive
    def test_frames_go_on_coming_while_another_is_compiled(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(3)
            scenes = stage.parts.stages
            stage.save('[model]\nmodel = "selfie-landscape"\n')
            yield from stage.until(lambda: scenes.changing, "compiling")
            shown = len(stage.records)
            yield from stage.until(lambda: not scenes.changing, "the end of compiling")
            assert len(stage.records) - shown >= 2, "frames came meanwhile"
            assert stage.words.endswith("model selfie-landscape")
            yield from stage.frames(3)

        theatre.run(script, backend="gl", fps=200.0)

    def test_the_frame_at_hand_is_drawn_again_by_another(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            scenes = stage.parts.stages
            yield from stage.frames(1)
            stage.press("n")
            yield from stage.until(lambda: scenes.name == "selfie-landscape")
            assert stage.code() == time_code_of(stage.records[-1].index)
            yield from stage.frames(2)
            assert stage.code() == time_code_of(stage.records[-1].index)

        theatre.run(script, fps=4.0)

    @exhaustive
    def test_it_looks_as_settings_say_by_then(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            stage.press("n")
            yield from stage.until(lambda: stage.parts.stages.changing, "compiling")
            stage.session.controller.change(effect="color", background="#ff0000", smooth=0.25)
            assert stage.parts.stages.changing
            yield from stage.until(lambda: stage.parts.stages.name == "selfie-landscape")
            assert (stage.canvas.look.effect, stage.canvas.look.color) == ("color", (1.0, 0.0, 0.0))
            assert stage.refinement.smooth == 0.25

        theatre.run(script, backend="gl")

    def test_one_that_is_not_there(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            scenes = stage.parts.stages
            yield from stage.frames(1)
            (theatre.folder / "broken.tflite").write_bytes(b"TFL3" * 100)
            for name in ("gone.tflite", "broken.tflite", "nosuch"):
                stage.session.controller.change(model=name)
                yield from stage.until(lambda name=name: stage.words.count(name) == 2)  # type: ignore[misc]
                assert (scenes.name, stage.settings.model) == ("selfie", "selfie")
                yield from stage.frames(2)
            yield from stage.pressed("n", lambda: scenes.name == "selfie-landscape")

        theatre.run(script)

    def test_a_small_one_that_is_not_there(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(1)
            yield from stage.pressed("n", lambda: "'gone.tflite': no such file" in stage.words)
            assert (stage.settings.model, stage.settings.small_model) == ("selfie", "gone.tflite")
            stage.hud.toast.say(" ")
            yield from stage.pressed("n", lambda: "'gone.tflite': no such file" in stage.words)

        theatre.run(script, small_model="gone.tflite")


class TestWork:
    """Frames for which the network does not run."""

    def test_every_third(self, theatre: Theatre, people: Path) -> None:
        def script(stage: Stage) -> Script:
            counts = stage.parts.workload.counts
            while counts.fresh + counts.every < 9 or len({picture for _, picture in seen}) < 3:
                yield from stage.frames(1)
                counts = stage.parts.workload.counts
                assert counts.fresh == 1 + (counts.fresh + counts.every - 1) // 3
                seen.append((counts.fresh, stage.drawn().tobytes()))
            camera = stage.parts.clock.camera(str(counts))
            assert camera
            assert str(counts) in camera.work

        seen: list[tuple[int, bytes]] = []
        theatre.run(script, camera=str(people), every=3, effect="mask", edges=False, smooth=0.0)
        assert len(set(seen)) == len({fresh for fresh, _ in seen}), "a picture for each run of the network"

    def test_masks_begin_anew_where_there_were_none(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            stage.session.controller.change(effect="mask")
            yield from stage.frames(2)
            masks.append(stage.drawn().tobytes())

        masks: list[bytes] = []
        clip = write_clip(theatre.folder / "one.mp4", [demo_frame(60)])
        for effect in ("none", "mask"):
            theatre.run(script, camera=str(clip), effect=effect, edges=False, smooth=1.0)
        assert masks[0] == masks[1]

    def test_pictures_that_stand_still(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            counts = stage.parts.workload
            yield from stage.until(lambda: counts.counts.still > 5)
            assert counts.counts.fresh < counts.counts.still

        theatre.clock = ManualClock()  # the network looks now and then, and on a busy machine at each frame
        theatre.run(script, camera=str(still), skip_still=True)

    def test_no_effect_needs_no_network(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(5)
            fresh = stage.parts.workload.counts.fresh
            assert fresh == 0
            yield from stage.pressed("1", lambda: stage.settings.effect == "tint")
            yield from stage.until(lambda: stage.parts.workload.counts.fresh > 2)

        theatre.run(script, effect="none")

    @exhaustive
    def test_the_automatic_mode_takes_the_small_model(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.until(lambda: stage.parts.stages.name == "selfie-landscape", "going down")
            yield from stage.until(lambda: stage.parts.workload.counts.budget > 0, "leaving frames out")
            yield from stage.pressed("a", lambda: not stage.settings.auto)
            yield from stage.until(lambda: stage.parts.stages.name == "selfie", "going back")

        theatre.run(script, auto=True, fps=1000.0)

    @exhaustive
    def test_nor_is_it_lost_without_one(self, theatre: Theatre) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.until(lambda: "'gone.tflite': no such file" in stage.words)
            assert stage.settings.small_model == ""
            yield from stage.until(lambda: stage.parts.workload.counts.budget > 0, "leaving frames out")

        theatre.run(script, auto=True, fps=1000.0, small_model="gone.tflite")
