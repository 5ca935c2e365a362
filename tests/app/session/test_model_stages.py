"""A model that gives way to another is gone at once: nothing of it waits for Python's garbage collection."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import exhaustive
from texelflow.app.frame.drawing.backdrop import Backdrop
from texelflow.app.frame.inference.backends import ComputeBackend
from texelflow.app.frame.inference.gl_path import GlPath
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget, on_opengl
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import Picture, rgba_format, rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.session.derived import chosen_look_of, refinement_of
from texelflow.app.session.model_stages import (
    Drawn,
    ModelStages,
    SharedParts,
    StageSteps,
    SwitchableStages,
    stages_in_steps,
)
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE = (160, 120)


@pytest.fixture
def without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=["gl", "cpu"])
def shared(request: pytest.FixtureRequest, context: Context) -> Iterator[SharedParts]:
    target, backdrop = OffscreenTarget(context, SIZE), Backdrop(GlPictures(context), SIZE, waits=False)
    machine = ComputeBackend(request.param, context)
    yield SharedParts(machine, rgba_format(SIZE), NetworkOptions(preprocessing="auto"), Drawn(target, backdrop))
    backdrop.release()
    target.release()


def steps(shared: SharedParts, model: str) -> StageSteps:
    settings = Settings(effect="tint")
    return stages_in_steps(shared, load_segmentation(model), chosen_look_of(settings), refinement_of(settings))


def finished(steps: StageSteps) -> ModelStages:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: ModelStages = end.value
            return made


@exhaustive
def test_the_compile_budget_reaches_the_compiler(shared: SharedParts) -> None:
    def characters(budget_s: float) -> int:
        options = replace(shared.options, compiling=CompileOptions(compile_budget_s=budget_s))
        stages = finished(steps(replace(shared, options=options), "selfie"))
        made = stages.segmenter
        total = sum(len(k.source) for k in made.program.compiled.kernels) if isinstance(made, GlPath) else 0
        stages.release()
        return total

    if shared.compute.backend == "gl":
        assert 0 < characters(0.0) < 0.6 * characters(10.0)


def test_another_model_takes_over_and_the_one_before_is_freed(shared: SharedParts, without_collection: None) -> None:
    switchable = SwitchableStages(finished(steps(shared, "selfie")), "selfie")
    frame = VideoFrame(0, 0, 0.0, rgba_picture(np.zeros((SIZE[1], SIZE[0], 4), np.uint8)))
    for stage in switchable.stages:
        stage.run(frame)
    old = switchable.current
    parts = [weakref.ref(part) for part in (old.segmenter, old.refiner, old.canvas)]
    del old
    switchable.change(steps(shared, "selfie-landscape"), "selfie-landscape")
    while switchable.advance() is None:
        assert switchable.name == "selfie"
    assert (switchable.name, switchable.changing) == ("selfie-landscape", False)
    assert [part() for part in parts] == [None] * 3
    for stage in switchable.stages:
        stage.run(frame)
    switchable.release()


def test_what_begins_anew_knows_nothing_of_the_light_before(
    shared: SharedParts, frame_rgba: npt.NDArray[np.uint8]
) -> None:
    small = cv2.resize(frame_rgba, SIZE, interpolation=cv2.INTER_AREA)
    dim, dimmer = (rgba_picture((small * light).astype(np.uint8)) for light in (0.63, 0.6))
    switchable = SwitchableStages(finished(steps(shared, "selfie")), "selfie")

    def drawn(picture: Picture) -> bytes:
        for stage in switchable.stages:
            stage.run(VideoFrame(0, 0, 0.0, picture))
        assert shared.compute.context
        framebuffer = on_opengl(switchable.target).framebuffer
        data: bytes = shared.compute.context.mgl.detect_framebuffer(framebuffer).read(components=4)
        return data

    first, after = drawn(dim), drawn(dimmer)
    switchable.begin_anew()
    assert drawn(dimmer) != after
    switchable.begin_anew()
    assert drawn(dim) == first
    switchable.release()
