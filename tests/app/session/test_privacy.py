"""Others do not see the room unasked: a second press, private sessions, and every frame that is written meanwhile."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.gpu_resets import GpuResets
from tests.helpers.live_stage import QUICK, Script, Stage, Theatre
from tests.helpers.markers import exhaustive
from tests.model_files.frame_models import picture_network
from texelflow.app.frame.looks.effects import EFFECTS, shows_room
from texelflow.app.media.sources import FileSource
from texelflow.app.settings.config_watch import ConfigWatch

pytestmark = pytest.mark.gl

RED = np.array([255, 0, 0])


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def recording(stage: Stage) -> Script:
    """Begin one by its key."""
    yield from stage.pressed("r", lambda: "recording" in stage.parts.outputs.active)


def show_room_in(path: Path) -> list[int]:
    """The frames of a recording whose upper corners are not the red that is behind people."""
    with FileSource(path) as source:
        pictures = [frame.rgba[..., :3].astype(int) for frame in source]
    assert pictures
    corners = [np.concatenate([picture[:9, :9], picture[:9, -9:]]) for picture in pictures]
    return [number for number, corner in enumerate(corners) if np.abs(corner - RED).max() > 40]


class TestSecondPress:
    @exhaustive
    def test_keys(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.pressed("7", lambda: stage.settings.effect == "none")
            yield from stage.pressed("4", lambda: stage.settings.effect == "blur")
            yield from recording(stage)
            yield from stage.pressed("7", lambda: "effect none shows the room, and it is recorded" in stage.words)
            assert stage.settings.effect == stage.canvas.look.effect == "blur"
            yield from stage.pressed("1", lambda: "effect tint shows the room" in stage.words)
            yield from stage.pressed("7", lambda: "effect none shows the room" in stage.words)
            yield from stage.pressed("7", lambda: stage.settings.effect == "none")
            yield from stage.pressed("6", lambda: stage.settings.effect == "mask")
            yield from stage.pressed("e", lambda: "effect none shows the room" in stage.words)
            yield from stage.until(lambda: not stage.words)
            yield from stage.pressed("e", lambda: stage.settings.effect == "checker")

        theatre.run(script, camera=str(still), effect="blur")

    def test_a_recording_that_begins(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.pressed("1", lambda: stage.settings.effect == "tint")
            yield from stage.pressed("r", lambda: "effect tint shows the room, and it is recorded" in stage.words)
            assert not stage.parts.outputs.active
            yield from recording(stage)

        theatre.run(script, camera=str(still), effect="blur")

    @exhaustive
    def test_the_file_of_settings_names_it(
        self, theatre: Theatre, still: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(QUICK, "effect")  # which would count for more than the file

        def script(stage: Stage) -> Script:
            yield from recording(stage)
            stage.save('[picture]\neffect = "none"\n')
            yield from stage.until(lambda: stage.settings.effect == "none")
            yield from stage.pressed("4", lambda: stage.settings.effect == "blur")
            yield from stage.pressed("7", lambda: stage.settings.effect == "none")

        theatre.run(script, camera=str(still))

    def test_a_file_that_says_something_else_names_no_effect(
        self, theatre: Theatre, still: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(QUICK, "effect")

        def script(stage: Stage) -> Script:
            yield from stage.pressed("7", lambda: stage.settings.effect == "none")
            stage.save("[mask]\ngamma = 2.0\n")
            yield from stage.until(lambda: stage.settings.gamma == 2.0)
            yield from stage.pressed("r", lambda: "effect none shows the room, and it is recorded" in stage.words)
            assert not stage.parts.outputs.active

        theatre.run(script, camera=str(still))

    def test_a_model_that_shows_it(self, theatre: Theatre, still: Path, tmp_path: Path) -> None:
        style = tmp_path / "style.tflite"
        style.write_bytes(picture_network((33, 25), (33, 26)))

        def script(stage: Stage) -> Script:
            yield from recording(stage)
            stage.session.controller.change(model=str(style))
            yield from stage.until(lambda: "style.tflite with effect picture shows the room" in stage.words)
            assert stage.parts.stages.name == stage.settings.model == "selfie"
            yield from stage.pressed("r", lambda: not stage.parts.outputs.active)
            stage.session.controller.change(model=str(style))
            yield from stage.until(lambda: stage.parts.stages.name == str(style))

        theatre.run(script, camera=str(still), effect="blur")


class TestPrivate:
    def test_no_key_shows_the_room(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            for number, effect in enumerate(EFFECTS[:8], start=1):
                if shows_room(effect):
                    yield from stage.pressed(str(number), lambda effect=effect: f"{effect} shows" in stage.words)  # type: ignore[misc]
                    yield from stage.pressed(str(number), lambda effect=effect: f"{effect} shows" in stage.words)  # type: ignore[misc]
                    assert stage.settings.effect == "blur"
            for effect in ("cutout", "mask", "checker", "replace", "color", "blur"):
                yield from stage.pressed("e", lambda effect=effect: stage.settings.effect == effect)  # type: ignore[misc]
            yield from stage.pressed("v", lambda: "side by side shows the room" in stage.words)
            yield from recording(stage)
            yield from stage.pressed("5", lambda: "effect cutout shows the room" in stage.words)
            stage.save('[picture]\neffect = "none"\n[mask]\ngamma = 2.0\n')
            yield from stage.until(lambda: stage.settings.gamma == 2.0)
            assert stage.settings.effect == "blur"
            assert not any(shows_room(effect) for effect in stage.session.controller.effects)
            stage.session.controller.change(threshold=0.2)
            assert "threshold 0.2 (0.5 at least) shows the room" in stage.words
            assert stage.settings.threshold == 0.5
            stage.save("[mask]\ngamma = 0.1\ngrow = 2.0\n")
            yield from stage.until(lambda: stage.settings.grow == 2.0)
            assert stage.settings.gamma == 0.5

        theatre.run(script, camera=str(still), effect="blur", private=True)

    @exhaustive
    def test_a_file_that_turns_it_on_counts_at_once(self, theatre: Theatre, still: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from recording(stage)
            yield from stage.frames(4)
            stage.save("[picture]\nprivate = true\n[mask]\nsmooth = 0.25\n")
            yield from stage.until(lambda: stage.settings.smooth == 0.25)
            assert stage.settings.private
            assert stage.settings.effect == stage.canvas.look.effect == "blur"
            assert stage.canvas.look.clears
            assert not stage.settings.side_by_side
            assert (stage.settings.threshold, stage.settings.grow) == (0.5, 5.0)
            assert "recording" in stage.parts.outputs.active
            yield from stage.frames(4)
            yield from stage.pressed("1", lambda: "effect tint shows the room, and the session is pri" in stage.words)
            stage.save("[mask]\nsmooth = 0.75\n")
            yield from stage.until(lambda: stage.settings.smooth == 0.75)
            assert "what takes effect after restart: private" in stage.words
            assert stage.settings.private

        theatre.run(script, camera=str(still), effect="tint", side_by_side=True, threshold=0.1, grow=9.0)

    def test_what_no_effect_hides_is_not_recorded_on(self, theatre: Theatre, still: Path, tmp_path: Path) -> None:
        style = tmp_path / "style.tflite"
        style.write_bytes(picture_network((33, 25), (33, 26)))

        def script(stage: Stage) -> Script:
            stage.session.controller.change(model=str(style))
            yield from stage.until(lambda: stage.parts.stages.name == str(style))
            yield from stage.pressed("r", lambda: "effect picture shows the room, and it is" in stage.words)
            yield from recording(stage)
            stage.save("[picture]\nprivate = true\n")
            yield from stage.until(lambda: "style.tflite shows the room: recording ended" in stage.words)
            assert not stage.parts.outputs.active
            yield from stage.pressed("r", lambda: "shows the room, and the session is private" in stage.words)
            assert not stage.parts.outputs.active

        theatre.run(script, camera=str(still), effect="blur")

    @pytest.mark.parametrize(
        ("command", "complaint"),
        [
            (
                "live --camera pattern --private --effect none",
                "--private: selfie with effect none shows the room; choose",
            ),
            ("live --camera pattern --private --effect tint --no-window --out a.mp4", "choose --effect replace, color"),
            (
                "live --camera pattern --private --effect cutout --no-window --out a.mp4",
                "hides the room by transparency",
            ),
            ("live --camera pattern --private --side-by-side", "--side-by-side shows the room"),
            ("live --camera pattern --private --threshold 0", "--private: --threshold 0 (0.5 at least) shows the room"),
            ("replay in.mp4 --private --gamma 0.1 --out a.mp4", "--private: --gamma 0.1 (0.5 at least) shows the room"),
            ("archive in.mp4 --private --grow 20 --out a", "--private: --grow 20 (5 at most) shows the room"),
            ("replay in.mp4 --private --feather 50 --out a.mp4", "--private: --feather 50 (20 at most) shows the room"),
            ("live --camera pattern --private --model style.tflite", "style.tflite with effect picture shows the room"),
            ("replay in.mp4 --private --effect tint --out a.mp4", "--private: selfie with effect tint shows the room"),
            ("replay in.mp4 --config private.toml --out a.mp4", "--private: selfie with effect none shows the room"),
        ],
    )
    def test_what_shows_the_room_is_refused_at_start(
        self,
        command: str,
        complaint: str,
        still: Path,
        texelflow: Command,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "in.mp4").write_bytes(still.read_bytes())
        (tmp_path / "style.tflite").write_bytes(picture_network((33, 25), (33, 26)))
        (tmp_path / "private.toml").write_text('[picture]\nprivate = true\neffect = "none"\n')
        before = sorted(tmp_path.iterdir())
        result = texelflow(*command.split())
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert complaint in result.err
        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.parametrize("verb", ["live", "replay", "archive"])
    def test_it_begins_with_blur(self, verb: str, tmp_path: Path) -> None:
        config = tmp_path / "a.toml"
        config.write_text("[picture]\nprivate = true\n")
        assert ConfigWatch(None, {"private": True}, verb).settings.effect == "blur"  # type: ignore[arg-type]
        assert ConfigWatch(config, {}, verb).settings.effect == "blur"  # type: ignore[arg-type]
        assert ConfigWatch(config, {"background": "red"}, verb).settings.effect == "replace"  # type: ignore[arg-type]
        config.write_text('[picture]\nprivate = true\neffect = "tint"\n')
        assert ConfigWatch(config, {}, verb).settings.effect == "tint", "it is refused, not replaced"  # type: ignore[arg-type]


@pytest.mark.parametrize("output", ["--out", "--cutouts"])
def test_transparent_pixels_of_private_pictures_have_no_colors(
    output: str, still: Path, texelflow: Command, tmp_path: Path
) -> None:
    for is_private in (False, True):
        folder = tmp_path / str(is_private)
        effect = ("--effect", "cutout" if output == "--out" else "blur")
        private = ["--private"] * is_private
        assert texelflow("replay", still, "--to", 0, output, folder, *effect, *private).code == 0
        picture = cv2.imread(str(folder / "000000.png"), cv2.IMREAD_UNCHANGED)
        assert picture is not None
        unseen = picture[picture[..., 3] == 0]
        assert len(unseen) > 1000
        assert unseen.any() != is_private


def test_no_written_frame_shows_the_room(theatre: Theatre, people: Path, gpu: GpuResets) -> None:
    """From the first on, over a change of the model, a model that cannot be loaded, and a GPU that is lost."""

    def script(stage: Stage) -> Script:
        yield from stage.frames(4)
        stage.session.controller.change(model="nothing.tflite")
        yield from stage.until(lambda: "loading model nothing.tflite" in stage.words)
        yield from stage.until(lambda: stage.settings.model == "selfie", "its rejection")
        yield from stage.pressed("n", lambda: stage.parts.stages.name == "selfie-landscape")
        yield from stage.frames(4)
        before = stage.window.context
        gpu.reset()
        yield from stage.until(lambda: stage.window.context is not before)
        yield from stage.frames(4)
        stage.session.controller.uses_small_model = False
        yield from stage.until(lambda: stage.parts.stages.name == "selfie")
        stage.session.controller.change(background="dusk")
        yield from stage.frames(2)
        stage.session.controller.change(background="red")
        yield from stage.frames(4)

    look = {"effect": "replace", "background": "red"}
    theatre.run(script, camera=str(people), out=str(theatre.folder / "out.mp4"), **look)
    recorded = sorted(theatre.folder.glob("out*.mp4"))
    assert recorded
    for path in recorded:
        assert len(show_room_in(path)) <= 4, "of them those with another background"
