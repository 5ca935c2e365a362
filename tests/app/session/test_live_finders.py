"""Live with a model that finds things: it takes over from masks and gives way to them, in a grid, and after a reset."""

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.clips import Recipe, write_clip
from tests.helpers.gpu_resets import GpuResets
from tests.helpers.live_stage import Script, Stage, Theatre, demo_frame
from tests.helpers.markers import exhaustive
from texelflow.app.session.grid_stages import GridStages

pytestmark = pytest.mark.gl

FINDER = "face-detection-short"


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two people who do not move, at 320x240."""
    recipe = Recipe(codec_options={"crf": "4", "preset": "ultrafast", "g": "1"})
    return write_clip(tmp_path_factory.mktemp("faces") / "faces.mp4", [demo_frame(60, 2)] * 6, recipe)


def seen(stage: Stage) -> set[str]:
    """The kinds of what is found in the frame that is shown."""
    return {found.kind for found in stage.parts.stages.findings}


@pytest.mark.parametrize("backend", ["cpu", pytest.param("gl", marks=exhaustive)])
def test_models_that_find_things_take_over_and_give_way(backend: str, theatre: Theatre, faces: Path) -> None:
    def changed_to(stage: Stage, model: str) -> Script:
        stage.session.controller.change(model=model)
        yield from stage.until(lambda: stage.parts.stages.name == model, f"model {model}")
        yield from stage.frames(2)

    def script(stage: Stage) -> Script:
        yield from stage.frames(2)
        assert (seen(stage), "find" in stage.parts.pipeline.names) == (set(), False)
        yield from changed_to(stage, FINDER)
        assert (stage.canvas.look.effect, seen(stage)) == ("findings", {"face"})
        assert stage.records[-1].findings == stage.parts.stages.findings
        marked = stage.drawn().astype(int)
        stage.session.controller.change(effect="none")
        yield from stage.frames(2)
        assert (np.abs(marked - stage.drawn()).max(2) > 40).mean() > 0.005, "boxes are drawn"
        stage.session.controller.change(effect="tint")
        stage.session.controller.change(masks="masks")
        yield from stage.until(lambda: "no masks are recorded" in stage.words)
        stage.window._drops._paths = [faces]
        yield from stage.until(lambda: "finds things and has no mask" in stage.words)
        yield from changed_to(stage, "selfie")
        assert (stage.canvas.look.effect, seen(stage)) == ("tint", set())
        assert "find" not in stage.parts.pipeline.names
        stage.session.controller.change(effect="pixelate-faces")  # a finder comes beside the segmentation
        assert stage.canvas.look.effect == "pixelate-faces", "until then all of the frame is hidden"
        yield from stage.until(lambda: "find" in stage.parts.pipeline.names, "a finder of faces")
        yield from stage.frames(2)
        assert seen(stage) == {"face"}
        stage.session.controller.change(effect="mask")
        yield from stage.until(lambda: "find" not in stage.parts.pipeline.names, "an end of it")
        yield from stage.frames(1)

    theatre.run(script, camera=str(faces), size="320x240", backend=backend)


@exhaustive
def test_cameras_in_a_grid_have_finders_of_their_own(theatre: Theatre, faces: Path) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.until(lambda: len(stage.parts.stages.findings) == 2, "a face in each picture")
        current = stage.parts.stages.current
        assert isinstance(current, GridStages)
        one, other = (found.box[0] for found in stage.parts.stages.findings)
        assert abs(abs(one - other) - 324) < 8, "of the same clip, side by side, with a gap of 4"

    theatre.run(script, camera=[str(faces), str(faces)], size="320x240", model=FINDER)


@exhaustive
def test_goes_on_after_a_reset(theatre: Theatre, faces: Path, gpu: GpuResets) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        assert seen(stage) == {"face"}
        gpu.reset()
        yield from stage.frames(4)
        assert seen(stage) == {"face"}

    theatre.run(script, camera=str(faces), size="320x240", model=FINDER, backend="gl")
