"""What a live window shows: against pictures that were looked at, and without ever reading anything back."""

import sys
from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.clips import write_clip
from tests.helpers.live_stage import Picture, Script, Stage, Theatre, demo_frame
from tests.helpers.markers import exhaustive, one_in
from texelflow.app.frame.looks.effects import EFFECTS, HIDING_FACES

DRAWN = [
    effect for effect in EFFECTS if effect not in HIDING_FACES
]  # by the network's output, without a finder beside it
GOLDEN = Path(__file__).parents[2] / "data"
MOST_MEAN_DIFFERENCE, MOST_DIFFERENT = 1.5, 0.02  # of 255; of the pixels that differ by more than 24


class TestNothingIsReadBack:
    """Whatever is drawn and written over it, from the first frame to the last of a session."""

    @one_in(2, "backend", ["gl", "cpu"])
    def test_with_every_effect_and_refinement(self, theatre: Theatre, people: Path, backend: str) -> None:
        some = np.random.default_rng(4)

        def script(stage: Stage) -> Script:
            for effect, edges, smooth, delay in product(DRAWN, (True, False), (0.0, 0.5), (True, False)):
                mirror, beside, wraps, shaped = map(bool, some.integers(0, 2, 4))
                stage.session.controller.change(
                    effect=effect, edges=edges, smooth=smooth, delay_video=delay, mirror=mirror, side_by_side=beside,
                    light_wrap=0.7 * wraps, threshold=0.4 if shaped else 0.5, grow=2 * shaped, feather=6 * shaped,
                )  # fmt: skip
                yield from stage.frames(1)
            stage.press("n", "p", "question")
            yield from stage.until(lambda: stage.parts.stages.name == "selfie-landscape")
            yield from stage.frames(3)
            assert stage.window.context.readback.bytes == before[0]

        before = [0]
        with theatre.opened(camera=str(people), backend=backend, overlay=True, every=3) as stage:
            before[0] = stage.window.context.readback.bytes
            acts = script(stage)
            stage.session.run(lambda: next(acts, acts) is acts)
            stage.window.context.check_errors("all that")
        assert len(stage.records) > 4 * len(DRAWN)
        assert sum(record.readback_bytes for record in stage.records) == 0


class TestGolden:
    """What a person sees, against pictures that were looked at."""

    @exhaustive
    @one_in(
        4,
        ("name", "size", "changes"),
        [
            ("replace", (320, 240), {"effect": "replace", "light_wrap": 0.5}),
            ("beside", (480, 200), {"effect": "blur", "side_by_side": True, "mirror": True}),
            ("panel", (480, 360), {"effect": "color", "panel": True, "backgrounds": "pictures", "start_hint": False}),
            ("signal", (320, 240), {"effect": "cutout"}),
        ],
    )
    def test_two_people(
        self,
        theatre: Theatre,
        name: str,
        size: tuple[int, int],
        changes: dict[str, object],
        request: pytest.FixtureRequest,
    ) -> None:
        def script(stage: Stage) -> Script:
            window = stage.window
            stage.display.xdotool("mousemove", 799, 599)
            yield from stage.frames(1)
            if name == "signal":
                stage.hud.signal = "no picture from camera 0 for 3 s; trying again in 2 s"
            stage.display.xdotool("windowsize", stage.display.window("texelflow"), *size)
            yield from stage.until(lambda: window.size == size and not window.damaged)
            yield from stage.frames(10)  # the mask comes to rest
            if name == "panel":
                assert stage.parts.gallery
                textures = stage.parts.gallery.textures
                yield from stage.until(lambda: not textures.busy)
                yield from stage.frames(2)
            stage.display.xdotool("getmouselocation")  # answered when all that was drawn is there
            shown.append(stage.on_screen())

        shown: list[Picture] = []
        clip = write_clip(theatre.folder / "still.mp4", [demo_frame(60, 2)] * 4)
        theatre.run(script, camera=str(clip), **changes)
        if name in ("panel", "signal") and sys.version_info < (3, 11):
            pytest.skip("stored words are those of the Dear ImGui of Python 3.11 and newer")
        stored = GOLDEN / f"live_{name}.png"
        if request.config.getoption("--update-snapshots"):
            cv2.imwrite(str(stored), shown[0][..., ::-1], (cv2.IMWRITE_PNG_COMPRESSION, 9))
        golden = cv2.imread(str(stored))
        assert golden is not None
        difference = np.abs(golden[..., ::-1].astype(int) - shown[0])
        assert difference.mean() <= MOST_MEAN_DIFFERENCE
        assert (difference.max(-1) > 24).mean() <= MOST_DIFFERENT
