"""A recording played in a real window (Xvfb), driven by real keys; pictures are compared with golden ones."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from time import monotonic

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive
from tests.helpers.replay_stage import Played, Script, Stage, opened, run
from tests.helpers.waiting import PATIENCE_S
from texelflow import assets
from texelflow.app.frame.looks.effects import EFFECTS, MASK_EFFECTS
from texelflow.app.models.model_loading import SegmentationModel, load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.app.window.glfw_window import Window
from texelflow.app.window.loading_screen import WindowClosedError
from texelflow.gpu_delegate.base.errors import DeviceError, MediaError

FRAMES, RATE, GOP = 120, 10, 20
GOLDEN = Path(__file__).parents[2] / "data"
AWAY = 799, 599  # outside of windows
MOST_MEAN_DIFFERENCE, MOST_DIFFERENT = 1.5, 0.02  # of 255; of the pixels that differ by more than 24


@pytest.fixture(scope="module")
def model() -> SegmentationModel:
    return load_segmentation("selfie", SpecOptions())


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 s of 160x120 with a key frame every 2 s."""
    recipe = Recipe(rate=RATE, codec_options={"crf": "20", "preset": "ultrafast", "g": str(GOP)})
    return write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", moving(FRAMES, 160, 120), recipe)


class TestPlaying:
    def test_a_file_is_played_to_its_end_and_stays_there(
        self, display: Display, model: SegmentationModel, clip: Path
    ) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.until(lambda: stage.words == "the end")
            assert stage.playback.paused
            assert stage.here == 29
            stage.press("space")
            yield from stage.until(lambda: stage.here < 29)
            assert not stage.playback.paused

        played = run(display, model, clip, script, last=29, speed=4)
        first = played.records[: played.numbers.index(29) + 1]
        assert sum(1 + record.dropped for record in first) == 30
        assert [record.index for record in first] == sorted({record.index for record in first})

    @exhaustive
    def test_recorded_frames_are_never_dropped_and_cannot_be_left_out(
        self, display: Display, model: SegmentationModel, clip: Path, tmp_path: Path
    ) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.until(lambda: stage.here >= 2)
            stage.press("Right", "End", "a", "l")
            mouse = "mousemove", "--window", display.window(clip.name)
            display.xdotool(
                *mouse, 60, 110, *mouse, 80, 110, "mousedown", 1, *mouse, 10, 110, "mouseup", 1, "mousemove", *AWAY
            )
            yield from stage.until(lambda: stage.playback.paused)

        played = run(display, model, clip, script, last=29, speed=100, out=str(tmp_path / "out.mp4"))
        assert played.numbers == list(range(30))
        assert not any(record.dropped for record in played.records)

    def test_a_loop_begins_again(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.until(lambda: len(stage.played.records) > 1 and stage.played.numbers[-2] > stage.here)
            stage.press("l")
            yield from stage.until(lambda: stage.playback.paused)
            assert stage.here == 9

        run(display, model, clip, script, last=9, speed=4, loop=True)

    def test_what_fails_ends_it_with_its_own_line(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        with (
            pytest.raises(MediaError, match="no frame in the range"),  # found while opening, or later
            opened(clip, model, first=FRAMES + 5) as (session, _, _),
        ):
            session.run(lambda: False)


class TestKeys:
    """Each key, pressed for real."""

    def play(self, display: Display, model: SegmentationModel, clip: Path, script: Callable[[Stage], Script]) -> Played:
        return run(display, model, clip, script)

    def test_pausing_and_stepping(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            playback = stage.playback
            yield from stage.until(lambda: stage.here >= 1)
            stage.press("space")
            yield from stage.until(lambda: playback.paused)
            here = stage.here
            stage.press("period", "period")
            yield from stage.at(here + 2)
            stage.press("comma", "comma", "comma")
            yield from stage.at(here - 1)
            assert playback.paused
            stage.press("space")
            yield from stage.until(lambda: stage.here > here + 3)
            stage.press("period")
            yield from stage.until(lambda: playback.paused)

        run(display, model, clip, script)

    def test_keys_that_are_held(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.paused_at(10)
            display.xdotool("keydown", "period")
            yield from stage.until(lambda: stage.here >= 15)
            display.xdotool("keyup", "period")
            display.xdotool("keydown", "o")
            yield from stage.until(lambda: stage.settings.overlay)
            end = monotonic() + 1  # by then held keys are repeated
            while monotonic() < end:
                assert stage.settings.overlay
                yield
            display.xdotool("keyup", "o")

        display.repeat_keys(True)
        try:
            run(display, model, clip, script)
        finally:
            display.repeat_keys(False)

    def test_seeking(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.paused_at(7)
            yield from stage.until(lambda: stage.source.keyframe_before(FRAMES - 1) is not None)
            stage.press("Right")
            yield from stage.at(40)  # the key frame before 5.7 s
            stage.press("shift+Right", "shift+Right")
            yield from stage.at(60)
            stage.press("shift+Left")
            yield from stage.at(50)
            stage.press("Left")
            yield from stage.at(0)
            stage.press("End")
            yield from stage.at(FRAMES - 1)
            stage.press("Home")
            yield from stage.at(0)

        run(display, model, clip, script)

    def test_speed(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            pacer = stage.playback.pacer
            yield from stage.paused_at(0)
            stage.press("bracketleft")
            yield from stage.until(lambda: pacer.speed == 0.75)
            stage.press("bracketright", "bracketright")
            yield from stage.until(lambda: pacer.speed == 1.5)
            assert stage.words == "playback speed 1.5"
            stage.press("BackSpace")
            yield from stage.until(lambda: pacer.speed == 1)

        run(display, model, clip, script)

    def test_a_part_is_repeated_between_marks(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            playback = stage.playback
            yield from stage.paused_at(30)
            stage.press("a")
            yield from stage.until(lambda: playback.marks == (30, None))
            yield from stage.paused_at(33)
            stage.press("b")
            yield from stage.until(lambda: playback.marks == (30, 33))
            stage.played.records.clear()
            stage.press("space")
            yield from stage.until(lambda: stage.played.numbers.count(30) > 2)
            assert set(stage.played.numbers) <= {30, 31, 32, 33}, "frames that are late are dropped"
            stage.press("a")
            yield from stage.until(lambda: playback.marks == (None, 33))
            yield from stage.until(lambda: stage.here > 34)

        run(display, model, clip, script)

    def test_effects_change_the_picture_while_paused(
        self, display: Display, model: SegmentationModel, clip: Path
    ) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.paused_at(5)
            count, seen = len(stage.played.records), []
            for number, effect in enumerate(MASK_EFFECTS, start=1):
                stage.press(str(number))
                yield from stage.until(lambda effect=effect: stage.canvas.look.effect == effect)  # type: ignore[misc]
                yield from stage.settled()
                seen.append(display.picture()[:120, :160].tobytes())
            stage.press("1", "e")
            yield from stage.until(lambda: stage.canvas.look.effect == MASK_EFFECTS[1])
            stage.press("9")
            yield from stage.until(lambda: "does not have the 2 to 256 classes" in stage.words)
            assert stage.settings.effect == MASK_EFFECTS[1]
            assert len(set(seen)) == len(MASK_EFFECTS)
            assert len(stage.played.records) == count

        run(display, model, clip, script)

    def test_a_recording_without_transparency_says_so(
        self, display: Display, model: SegmentationModel, clip: Path, tmp_path: Path
    ) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.until(lambda: stage.here >= 0)
            stage.press(str(EFFECTS.index("cutout") + 1))
            yield from stage.until(lambda: "effect cutout shows the room, and it is recorded" in stage.words)
            stage.press(str(EFFECTS.index("cutout") + 1))
            yield from stage.until(lambda: "keeps the whole picture" in stage.words)

        run(display, model, clip, script, out=str(tmp_path / "opaque.mp4"))

    def test_overlay_and_help(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.paused_at(5)
            yield from stage.until(lambda: not stage.words)
            yield from stage.settled()
            plain = display.picture()
            steps = (
                ("o", (True, "compact", False)), ("question", (True, "compact", True)), ("o", (True, "full", True)),
                ("o", (False, "compact", True)), ("question", (False, "compact", False)),
            )  # fmt: skip
            seen = []
            for key, state in steps:
                stage.press(key)
                yield from stage.until(lambda state=state: now(stage) == state)  # type: ignore[misc]
                yield from stage.settled()
                seen.append(display.picture())
            assert (seen[0] != plain).any()
            assert (seen[1] != plain).any()
            assert all((picture == seen[1]).all() for picture in seen[2:4]), "beside the help there are no figures"
            assert (seen[4] == plain).all()

        def now(stage: Stage) -> tuple[bool, str, bool]:
            return stage.settings.overlay, stage.settings.overlay_style, stage.hud.help

        run(display, model, clip, script)

    @pytest.mark.parametrize("keys", [["q"], ["Escape"], ["f", "Escape", "Escape"]])
    def test_the_end(self, display: Display, model: SegmentationModel, clip: Path, keys: list[str]) -> None:
        with opened(clip, model) as (session, _, _):
            display.window(clip.name)
            display.press(*keys)
            end = monotonic() + PATIENCE_S
            session.run(lambda: monotonic() > end)
            assert monotonic() < end

    def test_the_close_button(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        with opened(clip, model) as (session, _, _):
            display.ask_to_close(display.window(clip.name))
            end = monotonic() + PATIENCE_S
            session.run(lambda: monotonic() > end)
            assert monotonic() < end


class TestMouse:
    """The bar at the bottom, dragged for real: its middle is the middle of the file, wherever its ends are."""

    def test_dragging(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        middle = FRAMES // 2 - 1  # on the screen at half of the last frame's time

        def script(stage: Stage) -> Script:
            number, bar = display.window(clip.name), stage.hud.seek_bar
            assert bar is not None
            yield from stage.until(lambda: stage.here >= 1 and stage.source.count is not None)
            assert bar.alpha == 0
            for x in (70, 80):
                display.xdotool("mousemove", "--window", number, x, 110)
                yield from stage.until(lambda: stage.session.parts.view.stirred or bar.alpha > 0)
            yield from stage.until(lambda: bar.pointed)
            display.xdotool("mousedown", 1)
            yield from stage.at(middle)
            assert stage.playback.paused
            display.xdotool("mousemove", "--window", number, 1000, 110)
            yield from stage.at(FRAMES - 1)
            display.xdotool("mousemove", "--window", number, 0, 110)
            yield from stage.at(0)
            display.xdotool("mousemove", "--window", number, 80, 60, "mouseup", 1)
            yield from stage.until(lambda: not bar.held and stage.here >= middle + 2)
            assert middle in stage.played.numbers
            assert not stage.playback.paused
            assert stage.session.controller.touched
            display.xdotool("mousemove", *AWAY)  # the screen's own pointer is in pictures of it

        run(display, model, clip, script)


class TestScreenshots:
    def test_they_are_the_picture_and_never_overwrite(
        self,
        display: Display,
        model: SegmentationModel,
        clip: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "clip-000005.png").write_bytes(b"precious")

        def script(stage: Stage) -> Script:
            yield from stage.paused_at(5)
            stage.press("s")
            yield from stage.until(lambda: stage.words.startswith("written: clip-000005-2.png"))
            yield from stage.settled()
            shown.append(display.picture()[:120, :160])

        shown: list[npt.NDArray[np.uint8]] = []
        run(display, model, clip, script)
        assert (tmp_path / "clip-000005.png").read_bytes() == b"precious"
        saved = cv2.imread(str(tmp_path / "clip-000005-2.png"))
        assert saved is not None
        assert np.abs(saved[:60, :, ::-1].astype(int) - shown[0][:60]).max() <= 1  # below, the message lies over it
        assert len(list(tmp_path.iterdir())) == 2

    def test_a_folder_that_takes_none_is_told(
        self, display: Display, model: SegmentationModel, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "gone"
        folder.mkdir()
        monkeypatch.chdir(folder)

        def script(stage: Stage) -> Script:
            yield from stage.paused_at(5)
            folder.rmdir()
            stage.press("s")
            yield from stage.until(lambda: "cannot be written" in stage.words)

        run(display, model, clip, script)
        with pytest.raises(DeviceError, match="the current folder cannot be used"):
            Window((9, 9), "nowhere")


class TestWindow:
    def test_resized_while_paused_it_is_drawn_again(
        self, display: Display, model: SegmentationModel, clip: Path
    ) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.paused_at(5)
            number = display.window(clip.name)
            display.xdotool("windowsize", number, 400, 300)
            yield from stage.until(lambda: stage.window.size == (400, 300))
            yield from stage.until(lambda: not stage.window.damaged)
            assert display.picture()[10:290, 10:390].any(-1).mean() > 0.99

        run(display, model, clip, script)

    def test_pixels_that_are_not_square(self, display: Display, model: SegmentationModel, tmp_path: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.paused_at(1)
            assert stage.window.size == (320, 120)
            yield from stage.settled()
            assert display.picture()[:120, :320].any(-1).mean() > 0.99

        wide = write_clip(tmp_path / "wide.mp4", moving(3, 160, 120), Recipe(aspect=Fraction(2)))
        run(display, model, wide, script)

    def test_full_screen(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.paused_at(5)
            stage.press("f")
            yield from stage.until(lambda: stage.window.fullscreen and not stage.window.damaged)
            assert display.picture().any(-1).mean() > 0.99
            stage.press("f")
            yield from stage.until(lambda: not stage.window.fullscreen)

        run(display, model, clip, script)

    def test_minimized_it_plays_on_without_drawing(
        self, display: Display, model: SegmentationModel, clip: Path
    ) -> None:
        def script(stage: Stage) -> Script:
            number = display.window(clip.name)
            yield from stage.until(lambda: stage.here >= 1)
            display.minimize(number)
            yield from stage.until(lambda: stage.window.minimized)
            drawn, here = len(stage.played.records), stage.here
            yield from stage.until(lambda: stage.here >= here + 5)
            assert len(stage.played.records) == drawn
            stage.press("space")
            yield from stage.until(lambda: stage.playback.paused)
            display.minimize(number, False)
            yield from stage.until(lambda: stage.played.numbers[-1] == stage.here)
            assert len(stage.played.records) == drawn + 1

        run(display, model, clip, script)


class TestColdStart:
    def test_the_network_is_compiled_in_sight(self, display: Display, model: SegmentationModel, clip: Path) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.until(lambda: stage.here >= 3)

        first, second = run(display, model, clip, script, backend="gl").records[:2]
        assert first.index == 0
        passed_ms = (second.end_ns - first.start_ns) / 1e6
        assert second.time_ms < passed_ms + 1000 / RATE, "the time of compiling is not the recording's"

    def test_meanwhile_it_shows_the_first_frame_dim_and_can_be_closed(
        self, display: Display, model: SegmentationModel, clip: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def endless(*_: object) -> Iterator[tuple[int, int]]:
            display.window(clip.name)
            end = monotonic() + PATIENCE_S
            while display.picture()[100:120, 140:160].mean() < 30:  # a third of the clip's colors there
                assert monotonic() < end
                yield 1, 2
            assert display.picture()[:120, :160].max() > 200  # the bar
            display.press("q")
            while monotonic() < end:
                yield 1, 2

        monkeypatch.setattr("texelflow.app.session.model_stages.path_in_steps", endless)
        with pytest.raises(WindowClosedError), opened(clip, model):
            pass


class TestGolden:
    """What a person sees, against pictures that were looked at."""

    @exhaustive
    @pytest.mark.parametrize(("effect", "size"), [("tint", (280, 160)), ("cutout", (160, 200))])
    def test_the_demo_clip(
        self,
        display: Display,
        model: SegmentationModel,
        effect: str,
        size: tuple[int, int],
        request: pytest.FixtureRequest,
    ) -> None:
        shown: list[npt.NDArray[np.uint8]] = []

        def script(stage: Stage) -> Script:
            yield from stage.paused_at(60)
            stage.hud.seek_bar = None  # it is tried without a window, where words are compared
            display.xdotool("windowsize", display.window("people"), *size)
            yield from stage.until(lambda: stage.window.size == size and not stage.window.damaged)
            yield from stage.settled()
            shown.append(display.picture()[: size[1], : size[0]])

        people = Path(assets.__file__).parent / "people.mp4"
        run(display, model, people, script, effect=effect)
        stored = GOLDEN / f"window_{effect}.png"
        if request.config.getoption("--update-snapshots"):
            cv2.imwrite(str(stored), shown[0][..., ::-1])
        golden = cv2.imread(str(stored))
        assert golden is not None
        difference = np.abs(golden[..., ::-1].astype(int) - shown[0])
        assert difference.mean() <= MOST_MEAN_DIFFERENCE
        assert (difference.max(-1) > 24).mean() <= MOST_DIFFERENT
