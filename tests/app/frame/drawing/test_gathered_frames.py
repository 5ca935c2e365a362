"""Whole frames made stage by stage, by lists in a loop and by native code: the same calls, the same picture."""

import contextlib
import ctypes
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.markers import exhaustive, on_both_apis
from tests.model_files.frame_models import class_network
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.inference.gl_path import GlPath
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.refinement.refine import Refiner
from texelflow.app.frame.stages.frame_pipeline import FramePipeline, Stage, gathers_always
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.call_list import RECORDED
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE = (70, 51)
LOOK = Look("blur", threshold=0.4, feather=5.0, grow=1.5)
AGAIN = 6  # frames after which textures that take turns are the same: 3 of the frame, 2 of masks
WAYS = ("one by one", "loop", "native")


class WatchedGL:
    """Between a context and its driver: writes down each call of what lists may hold, as the driver gets it."""

    def __init__(self, load: opengl.Load, endings: dict[str, str]) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self._load, self._names = load, {name + endings.get(name, ""): name for name in RECORDED}
        self._thunks: dict[str, Any] = {}

    def load(self, name: str) -> int:
        """The address of an entry point, or of what writes down and calls it."""
        address = self._load(name)
        if name not in self._names or not address:
            return address
        if name not in self._thunks:
            arguments, result = opengl.c_types(self._names[name])
            kinds = [ctypes.c_void_p if kind in (ctypes.Array, ctypes.c_char_p) else kind for kind in arguments]
            prototype = ctypes.CFUNCTYPE(result, *kinds)
            self._thunks[name] = prototype(self._writer(self._names[name], prototype(address)))
        return ctypes.cast(self._thunks[name], ctypes.c_void_p).value or 0

    def _writer(self, name: str, real: Any) -> Any:
        def call(*arguments: Any) -> Any:
            self.seen.append((name, *_content(name, arguments)))
            return real(*arguments)

        return call


def _content(name: str, arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments, with what stands at addresses in their place."""
    counts = {
        "glBindTextures": {2: 4 * arguments[1]},
        "glBindBuffersRange": {3: 4 * arguments[2], 4: 8 * arguments[2], 5: 8 * arguments[2]},
        "glUniform1fv": {2: 4 * arguments[1]},
        "glPushDebugGroup": {3: arguments[2]},
        "glTexSubImage2D": {8: 4 * SIZE[0] * SIZE[1]},
    }.get(name, {}) if len(arguments) > 2 else {}  # fmt: skip
    return [ctypes.string_at(each, counts[place]) if place in counts else each for place, each in enumerate(arguments)]


def frames() -> Iterator[VideoFrame]:
    rng = np.random.default_rng(4)
    for index in range(AGAIN):
        yield VideoFrame(index, index, 33.0 * index, rgba_picture(rng.integers(0, 256, (*SIZE[::-1], 4), np.uint8)))


class Film:
    """Frames through all that live draws, in one context, in one of the ways."""

    def __init__(self, context: Context, model: Path) -> None:
        self.context = context
        self.path = GlPath(context, load_segmentation(str(model)), rgba_format(SIZE), kept=3)
        pictures = GlPictures(context)
        self.refiner = Refiner(pictures, self.path, "stretch")
        self.target = OffscreenTarget(context, SIZE)
        self.canvas = Canvas(pictures, self.path, self.target, "stretch", ChosenLook(LOOK), refiner=self.refiner)
        refine = Stage("refine", lambda _: self.refiner.run(), gathers_always)
        self.stages = (*self.path.stages, refine, self.canvas.stage)
        self._first = FramePipeline(self.stages, context, timing="wall")

    def run(self, way: str) -> bytes:
        """The last picture."""
        calls = self.context.calls
        calls.is_plain, calls.gathers = way == "one by one", way != "one by one"
        if way == "native":
            calls.load()
            calls.wait()
            assert calls.make
        pipeline = FramePipeline(self.stages, self.context, timing="wall")
        self.refiner.reset()
        for frame in frames():
            pipeline.submit(frame)
        assert [record.index for record in pipeline.drain()] == [*range(AGAIN)]
        gl, picture = self.context.gl, np.zeros((*SIZE[::-1], 4), np.uint8)
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, self.target.framebuffer)
        gl.glReadPixels(0, 0, *SIZE, opengl.RGBA, opengl.UNSIGNED_BYTE, picture.ctypes.data)
        return picture.tobytes()

    def release(self) -> None:
        for part in (self.canvas, self.refiner, self.path, self.target):
            part.release()


@exhaustive
@on_both_apis
def test_each_way_makes_the_same_calls_and_pictures(context: Context, tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(class_network())
    native = context._native
    assert native
    gl = context.gl
    endings = opengl.es_endings(gl.version, gl.extensions) if gl.is_es else {}
    watched = WatchedGL(native.load_opengl_function, endings)
    own = Context.from_current(watched.load)
    with contextlib.suppress(DeviceError):  # moderngl's, which the one context tells of what the other does
        context.check_errors("opening another")
    film = Film(own, tmp_path / "net.tflite")
    for _ in range(2):  # once as it is, once to be recorded
        film.run("loop")
    seen, pictures = {}, {}
    for way in WAYS:
        watched.seen.clear()
        pictures[way] = film.run(way)
        seen[way] = watched.seen[:]
    film.release()
    own.release()
    assert seen["native"] == seen["loop"]
    assert seen["native"] == seen["one by one"]
    assert pictures["native"] == pictures["loop"] == pictures["one by one"]
    assert len(set(pictures["native"])) > 100
    assert sum(call[0] == "glDispatchCompute" for call in seen["native"]) == AGAIN * (film.path.dispatches + 1)
    assert len(seen["native"]) > AGAIN * 100


@pytest.mark.parametrize("way", ["loop", "native"])
@pytest.mark.parametrize("timing", ["gpu", "wall"])
def test_errors_of_gathered_stages_are_told(context: Context, timing: Any, way: str) -> None:
    calls, cache = context.calls, CallCache(context.calls)
    if way == "native":
        calls.load()
        calls.wait()
    make, calls.make = calls.make, calls.make if way == "native" else None
    bind = Stage("bind", lambda frame: cache.run(frame.index < 3, lambda: context.gl.glUseProgram(0)), gathers_always)

    def fail(frame: VideoFrame) -> None:
        cache.run(("broken", frame.index < 3), lambda: context.gl.glBindTexture(0xBAD * (frame.index == 3) or 0xDE1, 0))

    pipeline = FramePipeline((bind, Stage("broken", fail, gathers_always), bind), context, timing=timing)
    told = "running stage broken of frame 3" if timing == "wall" else "frame 3"
    with pytest.raises(DeviceError, match=rf"{told}.*INVALID_ENUM"):
        deque(map(pipeline.submit, frames()))
    pipeline.release()
    calls.make = make
