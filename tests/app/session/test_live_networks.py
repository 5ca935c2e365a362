"""Live changes from masks to a network's picture and to several classes; effects and recordings follow that."""

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.live_stage import Script, Stage, Theatre
from tests.model_files.frame_models import class_network, picture_network
from texelflow.app.frame.looks.effects import HIDING_FACES, MASK_EFFECTS, Effect
from texelflow.app.frame.refinement.refine import Refiner

pytestmark = pytest.mark.gl


def effect(stage: Stage) -> Effect:
    """What is drawn."""
    return stage.canvas.look.effect


def is_anew(refiner: Refiner) -> bool:
    """Whether it knows no mask."""
    frames: int = refiner._frames
    return frames == 0


def test_models_of_other_tasks_take_over(theatre: Theatre, people: Path, tmp_path: Path) -> None:
    style, classes = tmp_path / "style.tflite", tmp_path / "classes.tflite"
    style.write_bytes(picture_network((33, 25), (33, 26)))
    classes.write_bytes(class_network())

    def changed_to(stage: Stage, model: object) -> Script:
        stage.session.controller.change(model=str(model))
        yield from stage.until(lambda: stage.parts.stages.name == str(model), f"model {model}")
        yield from stage.frames(2)

    def script(stage: Stage) -> Script:
        yield from stage.frames(2)
        assert stage.canvas.effects == (*MASK_EFFECTS, *HIDING_FACES)
        yield from changed_to(stage, style)
        assert effect(stage) == "picture"
        assert stage.settings.effect == "mask", "it comes back with a model that has it"
        assert (stage.parts.outputs.active, stage.settings.masks) == ((), "")
        assert not stage.parts.workload.has_small_model
        assert "has no mask" in stage.words
        whole = stage.drawn().astype(int)
        stage.session.controller.change(strength=0.0)
        yield from stage.frames(1)
        assert np.abs(whole - stage.drawn()).mean() > 10
        stage.window._drops._paths = [people]
        yield from stage.until(lambda: "puts out a picture without transparency" in stage.words)
        assert not stage.settings.background, "what is dropped is not taken in vain"
        yield from stage.pressed("1", lambda: stage.words.startswith("effect tint: style.tflite puts out"))
        stage.session.controller.change(masks="others")
        yield from stage.until(lambda: "no masks are recorded" in stage.words)
        yield from changed_to(stage, classes)
        assert effect(stage) == "mask", "a key for what the model lacks has changed nothing"
        yield from stage.pressed("9", lambda: effect(stage) == "classes")
        assert stage.parts.workload.has_small_model
        yield from stage.frames(2)
        refiner = stage.parts.stages.current.refiner
        assert refiner
        assert is_anew(refiner), "nobody needs the mask"
        stage.session.controller.change(masks="more")
        yield from stage.frames(2)
        assert (effect(stage), is_anew(refiner)) == ("classes", False)
        stage.session.controller.change(masks="", effect="mask", delay_video=True)
        yield from stage.frames(2)
        assert refiner.age == 1
        yield from stage.pressed("9", lambda: effect(stage) == "classes")
        yield from stage.frames(1)
        assert (refiner.age, is_anew(refiner)) == (0, True)

    theatre.run(script, camera=str(people), effect="mask", masks="masks")
    assert list((tmp_path / "masks").glob("*.png"))
