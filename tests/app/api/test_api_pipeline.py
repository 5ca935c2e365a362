"""A Pipeline's pictures have the bytes that replay writes, whatever is changed between frames; all else is refused."""

import copy
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import moderngl
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.clips import Recipe, write_clip
from tests.helpers.gpu_resets import GpuResets
from tests.helpers.live_stage import demo_frame
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.pictures import byte_rounding
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.console import Console
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.settings.settings import current_names, specs
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.pipeline_settings import PipelineSettings, first_settings

Frame = npt.NDArray[np.uint8]

EGL: dict[str, Any] = {"backend": "egl"} if sys.platform == "linux" else {}
CORNERS = """#version 430
void main() { gl_Position = vec4(vec2(gl_VertexID == 1, gl_VertexID == 2) * 4.0 - 1.0, 0.0, 1.0); }
"""
HALF = """#version 430
out vec4 color;
void main() { color = vec4(1.0, 1.0, 1.0, 0.5); }
"""
GL = pytest.param("gl", marks=pytest.mark.gl)
EXHAUSTIVE_GL = pytest.param("gl", marks=[pytest.mark.gl, exhaustive])
FRAMES = 5
LOOKS: list[dict[str, Any]] = [
    {"effect": "cutout", "grow": 1.5},
    {"effect": "blur"},
    {"effect": "tint", "smooth": 0.8, "edges": False},
    {"effect": "mask", "gamma": 2.0, "feather": 3.0},
    {"effect": "replace", "background": "room", "mirror": True, "light_wrap": 0.5},
    {"effect": "color", "background": "teal"},
    {"effect": "none"},
    {"effect": "checker", "refine": False},
    {"effect": "color", "zoom": 1.6, "pan": "0.3,0.4"},
    {"effect": "blur", "frame": "person"},
]


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    """Of two people, who move."""
    return [demo_frame(60 + 2 * number) for number in range(FRAMES)]


@pytest.fixture(scope="module")
def clip(frames: Sequence[Frame], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of these bytes."""
    recipe = Recipe("png", "rgb24", codec_options={})
    return write_clip(tmp_path_factory.mktemp("clip") / "people.mov", frames, recipe)


@pytest.fixture
def linear(tmp_path: Path) -> Path:
    """A network whose three classes are red, green and blue, stretched."""
    model = ModelBuilder()
    doubled = model.op("MUL", [model.input((1, 8, 8, 3)), model.constant(np.full(3, 2))], (1, 8, 8, 3))
    model.output(model.op("ADD", [doubled, model.constant(np.full(3, -0.5))], (1, 8, 8, 3)))
    path = tmp_path / "linear.tflite"
    path.write_bytes(model.build())
    return path


@pytest.fixture(scope="module")
def camera() -> Iterator[texelflow.Pipeline]:
    with texelflow.Pipeline(backend="cpu") as pipeline:
        yield pipeline


def read(folder: Path) -> list[Frame]:
    """The PNG files of a folder, RGB, RGBA or gray."""
    found = []
    for path in sorted(folder.iterdir()):
        picture = np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED), np.uint8)
        codes = {2: None, 3: cv2.COLOR_BGR2RGB}.get(picture.ndim if picture.ndim == 2 else picture.shape[2])
        code = cv2.COLOR_BGRA2RGBA if picture.ndim == 3 and picture.shape[2] == 4 else codes
        found.append(picture if code is None else np.asarray(cv2.cvtColor(picture, code), np.uint8))
    return found


def replayed(clip: Path, folder: Path, **flags: Any) -> tuple[list[Frame], list[Frame]]:
    """The pictures and the masks that replay writes."""
    out, masks = folder / "pictures", folder / "masks"
    options = ReplayOptions(clip, {"out": str(out), "masks": str(masks), **flags})
    assert replay(options, Console(quiet=True))[1] == 0
    return read(out), read(masks)


class TestPictures:
    @one_in(
        17,
        ("look", "backend"),
        product(LOOKS, ("gl", "cpu")),
        ids=lambda value: value if isinstance(value, str) else value["effect"],
    )
    def test_they_and_their_masks_are_replays(
        self, clip: Path, frames: Sequence[Frame], tmp_path: Path, context: Context, backend: Any, look: Any
    ) -> None:
        pictures, masks = replayed(clip, tmp_path, backend=backend, delay_video=False, **look)
        with texelflow.Pipeline(backend=backend, **look) as camera:
            for number, frame in enumerate(frames):
                before = frame.copy()
                picture = camera(frame)
                assert picture.tobytes() == pictures[number].tobytes(), number
                assert picture.shape[2] == (4 if look["effect"] == "cutout" else 3)
                mask = camera.mask
                assert (mask.dtype.name, mask.shape) == ("float32", frame.shape[:2])
                assert 0 <= mask.min() <= mask.max() <= 1
                np.testing.assert_allclose(mask * 255, masks[number], rtol=0, atol=byte_rounding(context) + 1e-4)
                assert frame.tobytes() == before.tobytes()
        assert max(mask.max() for mask in masks) > 200

    @exhaustive
    @pytest.mark.parametrize("backend", [GL, "cpu"])
    def test_with_a_look_ahead_they_come_a_frame_later(
        self, clip: Path, frames: Sequence[Frame], tmp_path: Path, context: Context, backend: Any
    ) -> None:
        pictures, masks = replayed(clip, tmp_path, backend=backend, effect="blur", delay_video=True)
        with texelflow.Pipeline(backend=backend, effect="blur", delay_video=True) as camera:
            camera(frames[0])
            found = [camera(frame) for frame in frames[1:]]
            last = camera.flush()
            assert last is not None
            assert [picture.tobytes() for picture in (*found, last)] == [picture.tobytes() for picture in pictures]
            np.testing.assert_allclose(camera.mask * 255, masks[-1], rtol=0, atol=byte_rounding(context) + 1e-4)
            assert camera.flush() is None

    @pytest.mark.parametrize("settings", [{"effect": "none"}, {"effect": "mask", "refine": False}])
    def test_come_a_frame_later_also_where_that_makes_none_better(
        self, frames: Sequence[Frame], settings: dict[str, Any]
    ) -> None:
        with texelflow.Pipeline(backend="cpu", **settings) as camera:
            pictures = [camera(frame).tobytes() for frame in frames]
            camera.reset()
            camera.set(delay_video=True)
            found = [*(camera(frame).tobytes() for frame in frames), camera.flush().tobytes()]
        assert found == [pictures[0], *pictures]

    def test_of_rgba_are_the_same_with_alpha(self, camera: texelflow.Pipeline, frames: Sequence[Frame]) -> None:
        camera.reset()
        rgb = [camera(frame) for frame in frames[:2]]
        camera.reset()
        rgba = [camera(np.dstack([frame, np.full(frame.shape[:2], 7, np.uint8)])) for frame in frames[:2]]
        assert [picture[..., :3].tobytes() for picture in rgba] == [picture.tobytes() for picture in rgb]
        assert {picture[..., 3].min() for picture in rgba} == {255}

    def test_depend_on_those_before_until_it_is_reset(
        self, camera: texelflow.Pipeline, frames: Sequence[Frame]
    ) -> None:
        camera.reset()
        first, second = camera(frames[0]), camera(frames[4])
        camera.reset()
        alone = camera(frames[4])
        camera.reset()
        assert camera(frames[0]).tobytes() == first.tobytes()
        assert alone.tobytes() != second.tobytes()

    @pytest.mark.parametrize("backend", [EXHAUSTIVE_GL, "cpu"])
    def test_of_another_size_begin_anew(self, frames: Sequence[Frame], backend: Any) -> None:
        small = np.ascontiguousarray(frames[3][:101, :75])
        with texelflow.Pipeline(backend=backend) as camera:
            first, one = camera(frames[0]), camera(small)
            assert (one.shape, camera.mask.shape) == (small.shape, small.shape[:2])
            camera.reset()
            assert camera(small).tobytes() == one.tobytes()
            camera.reset()
            assert camera(frames[0]).tobytes() == first.tobytes()

    def test_are_the_callers_own(self, camera: texelflow.Pipeline, frames: Sequence[Frame]) -> None:
        picture, mask = camera(frames[0]), camera.mask
        kept = picture.tobytes(), mask.tobytes()
        camera(frames[4])
        assert camera.mask.tobytes() != kept[1]
        assert (picture.tobytes(), mask.tobytes()) == kept
        picture[:] = 0

    def test_tell_what_they_took(self, camera: texelflow.Pipeline, frames: Sequence[Frame]) -> None:
        camera(frames[0])
        stages = ("decode", "image_to_tensor", "network", "upload", "refine", "composite", "read")
        assert tuple(camera.figures) == stages
        assert all(0 <= took_ms < 1e5 for took_ms in camera.figures.values())


class TestSettings:
    @pytest.mark.parametrize("backend", [EXHAUSTIVE_GL, "cpu"])
    def test_count_from_the_next_frame_on(self, frames: Sequence[Frame], backend: Any) -> None:
        """A picture by changed settings is that of a Pipeline which has had them from the first frame."""
        with texelflow.Pipeline(backend=backend, effect="blur") as camera:
            looks: list[dict[str, Any]] = [{"background": "#204060"}, {"effect": "cutout", "gamma": 1.5}]
            for look in looks:
                camera.reset()
                camera(frames[0])
                camera.set(**look)
                changed = camera(frames[1])
                with texelflow.Pipeline(backend=backend, **{"gamma": 1.0, **look}) as other:
                    other(frames[0])
                    assert other(frames[1]).tobytes() == changed.tobytes()

    @pytest.mark.parametrize("backend", [EXHAUSTIVE_GL, "cpu"])
    def test_another_model_begins_anew(self, frames: Sequence[Frame], linear: Path, backend: Any) -> None:
        numbers: Any = {"input_range": (0, 1), "activation": "none", "channel": 0}
        with (
            texelflow.Pipeline(backend=backend) as camera,
            texelflow.Pipeline(backend=backend, model=linear, **numbers) as other,
        ):
            first = camera(frames[0]).tobytes()
            with pytest.raises(texelflow.UsageError, match="give input_range"):
                camera.set(model=linear)
            camera.set(model=linear, **numbers)
            assert (camera.model, camera.settings["model"]) == (other.model, str(linear))
            assert camera(frames[1]).tobytes() == other(frames[1]).tobytes()
            camera.set(channel=2)
            other.set(channel=2)
            wrong: list[dict[str, Any]] = [{"model": "nowhere"}, {"strength": 0.5}, {"channel": 3}]
            for refused in wrong:
                with pytest.raises(texelflow.TexelflowError):
                    camera.set(**refused)
            assert camera(frames[2]).tobytes() == other(frames[2]).tobytes()
            camera.set(model="selfie", input_range="", activation="auto", channel="")
            camera.reset()
            assert camera(frames[0]).tobytes() == first

    def test_masks_that_a_picture_does_not_need_are_made_when_they_are_asked_for(self, frames: Sequence[Frame]) -> None:
        with texelflow.Pipeline(backend="cpu", effect="none") as camera, texelflow.Pipeline(backend="cpu") as other:
            camera(frames[0])
            reused = frames[1].copy()
            assert camera(reused).tobytes() == frames[1].tobytes()
            reused[:] = 0
            other(frames[1])
            assert camera.mask.tobytes() == other.mask.tobytes()
            for frame in frames[2:4]:  # and from then on they are kept still
                camera(frame)
                other(frame)
                assert camera.mask.tobytes() == other.mask.tobytes()

    def test_time_stamps_decide_what_a_still_picture_costs(self, frames: Sequence[Frame]) -> None:
        noise = np.random.default_rng(3)
        with texelflow.Pipeline(backend="cpu", skip_still=True, refine=False) as camera:
            took, before = list[bool](), b""
            for time in (5.0, 5.1, 5.2, 5.3, 5.4, 6.5, 6.6):
                camera(frames[0] ^ noise.integers(0, 2, frames[0].shape, np.uint8), time=time)
                mask = camera.mask.tobytes()
                took.append(mask != before)
                before = mask
        assert took == [True, True, True, False, False, True, False]

    def test_are_those_of_live_that_concern_the_picture(self) -> None:
        others = {"tune", "side_by_side", "small_model", "auto", "freeze", "gestures", "face_delay"}
        sections = {"model", "picture", "mask", "framing", "work"}
        wanted = [spec.name for spec in specs() if spec.section in sections and spec.name not in others]
        assert [*current_names(PipelineSettings.__annotations__)] == wanted

    def test_are_given_as_python_has_them(self, tmp_path: Path) -> None:
        settings, _ = first_settings(
            {"model": tmp_path / "a.tflite", "input_range": (-1, 1.5), "channel": 3, "smooth": np.float32(0.25)}
        )
        assert settings.model == str(tmp_path / "a.tflite")
        assert (settings.input_range, settings.channel, settings.smooth) == ("-1,1.5", "3", 0.25)
        assert first_settings({"background": "room"})[0].effect == "replace"

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"efect": "blur"}, "efect is no setting of a Pipeline; did you mean effect?"),
            ({"camera": 0}, "camera is no setting of a Pipeline: it takes the frames that you give it"),
            ({"out": "a.mp4"}, "out is no setting of a Pipeline: pictures and masks come back to you"),
            ({"overlay": True}, "overlay is no setting of a Pipeline: it has no window"),
            ({"auto": True}, "auto is no setting of a Pipeline: no frame rate is kept here; every= and skip_still="),
            ({"softness": 1}, "softness is no setting of a Pipeline; use feather"),
            ({"effect": "bluur"}, "effect bluur: one of tint, "),
            ({"effect": "bluur"}, "; did you mean blur?"),
            ({"smooth": 2}, "smooth 2: a number from 0 to 1 is needed"),
            ({"every": 1.5}, "every 1.5: a whole number from 1 to 60 is needed"),
            ({"background": "nowhere.png"}, "cannot read background nowhere.png"),
            ({"precision": "fp16", "backend": "cpu"}, "precision fp16 is for the GPU"),
            ({"private": True, "effect": "none"}, "private: selfie with effect none shows the room"),
            ({"effect": "classes"}, "effect classes: selfie does not have the 2 to"),
            ({"model": "nowhere"}, "'nowhere' is neither a .tflite file nor a model"),
            ({"background": np.zeros((4, 4, 3), np.uint8)}, "background is an array, not a setting's value; write the"),
            ({"rate": 0}, "rate=0: a number from 0.001 to 1e+06 is needed"),
            ({"context": "gl"}, "context is a moderngl.Context, not str"),
            ({"weights_cache": 1}, "weights_cache is a WeightsCache, not int"),
        ],
    )
    def test_others_are_refused_in_one_line(self, settings: Any, said: str) -> None:
        with pytest.raises(texelflow.TexelflowError) as refused:
            texelflow.Pipeline(**{"backend": "cpu", **settings})
        assert said in str(refused.value)
        assert not {"\n", "--"} & {*str(refused.value)}
        assert "--" not in str(refused.value)

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"backend": "gl"}, "backend cannot change while it runs: make another Pipeline"),
            ({"fit": "crop", "threads": 3}, "fit, threads cannot change while it runs"),
            ({"blurr": 3}, "did you mean blur?"),
            ({"background": "nowhere.png"}, "cannot read background nowhere.png"),
        ],
    )
    def test_what_cannot_change_is_refused_and_changes_nothing(
        self, camera: texelflow.Pipeline, frames: Sequence[Frame], settings: Any, said: str
    ) -> None:
        camera.reset()
        before, values = camera(frames[0]), dict(camera.settings)
        with pytest.raises(texelflow.TexelflowError) as refused:
            camera.set(**settings)
        assert said in str(refused.value)
        camera.reset()
        assert (camera(frames[0]).tobytes(), dict(camera.settings)) == (before.tobytes(), values)

    def test_private_stays(self, frames: Sequence[Frame]) -> None:
        with texelflow.Pipeline(backend="cpu", private=True) as camera:
            for refused in ({"private": False}, {"effect": "none"}, {"threshold": 0.1}):
                with pytest.raises(texelflow.UsageError):
                    camera.set(**refused)
            assert camera.settings["effect"] == "blur"


class TestPipeline:
    def test_is_not_copied(self, camera: texelflow.Pipeline) -> None:
        with pytest.raises(texelflow.UsageError, match="cannot be copied or pickled"):
            copy.copy(camera)

    def test_says_which_it_is(self, camera: texelflow.Pipeline) -> None:
        assert (camera.model, camera.backend) == ("selfie", "cpu")
        assert repr(camera) == f"<texelflow.Pipeline blur by 'selfie': cpu, {camera.renderer}>"

    def test_says_what_is_drawn_of_a_model_without_masks(self) -> None:
        with texelflow.Pipeline(model="face-detection-short", backend="cpu") as camera:
            assert repr(camera).startswith("<texelflow.Pipeline findings by 'face-detection-short': cpu")

    @pytest.mark.parametrize(
        ("frame", "said"),
        [
            (None, "not NoneType; cv2.imread and VideoCapture.read give None"),
            ((True, np.zeros((4, 4, 3), np.uint8)), "its second half: ok, frame = capture.read()"),
            ([[[0, 0, 0]]] * 4, "not 4 of them; numpy.array(frame, numpy.uint8) is one of lists"),
            (np.zeros((8, 4, 2), np.uint8), "not uint8 (8, 4, 2)"),
            (np.zeros((4, 4, 3)), "not float64 (4, 4, 3)"),
            (np.zeros((4, 4), np.uint8), "not uint8 (4, 4)"),
            (np.zeros((0, 4, 3), np.uint8), "a frame has 1 to 16384 pixels a side"),
        ],
    )
    def test_refuses_what_is_no_frame(self, camera: texelflow.Pipeline, frame: Any, said: str) -> None:
        with pytest.raises(texelflow.UsageError) as refused:
            camera(frame)
        assert said in str(refused.value)

    @pytest.mark.parametrize("time", ["now", float("nan"), True, float("inf")])
    def test_refuses_what_is_no_time(self, camera: texelflow.Pipeline, frames: Sequence[Frame], time: Any) -> None:
        with pytest.raises(texelflow.UsageError, match=r"^time=.*: a number is needed$"):
            camera(frames[0], time=time)

    @pytest.mark.parametrize("backend", [EXHAUSTIVE_GL, "cpu"])
    def test_is_closed_while_others_use_it(self, frames: Sequence[Frame], backend: Any) -> None:
        camera = texelflow.Pipeline(backend=backend)
        with pytest.raises(texelflow.UsageError, match="no frame has come yet"):
            _ = camera.mask
        others = threading.Barrier(3)

        def use() -> str:
            others.wait()
            try:
                while True:
                    assert camera(frames[0]).shape == frames[0].shape
                    assert camera.mask.shape == frames[0].shape[:2]
            except texelflow.UsageError as error:
                return str(error)

        with ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(use) for _ in range(2)]
            others.wait()
            camera(frames[0])
            camera.close()
            assert {end.result(timeout=30) for end in ends} == {"this Pipeline is closed; make another one"}
        camera.close()
        assert repr(camera) == "<texelflow.Pipeline blur by 'selfie': closed>"

    @exhaustive
    @pytest.mark.parametrize("backend", [GL, "cpu"])
    def test_two_share_weights(self, frames: Sequence[Frame], backend: Any, camera: texelflow.Pipeline) -> None:
        cache = texelflow.WeightsCache()
        with (
            texelflow.Pipeline(backend=backend, weights_cache=cache) as one,
            texelflow.Pipeline(backend=backend, effect="tint", weights_cache=cache) as other,
        ):
            with pytest.raises(texelflow.UsageError, match="finalize"):
                one(frames[0])
            cache.finalize_soft()
            pictures = [(one(frame), other(frame)) for frame in frames[:3]]
            assert other.mask.tobytes() == one.mask.tobytes()
        if backend == "cpu":
            camera.reset()
            assert [camera(frame).tobytes() for frame in frames[:3]] == [mine.tobytes() for mine, _ in pictures]

    @pytest.mark.gl
    def test_draws_in_a_callers_context_and_leaves_it_as_it_was(self, frames: Sequence[Frame]) -> None:
        with texelflow.Pipeline(backend="gl") as camera:
            pictures, mask = [camera(frame).tobytes() for frame in frames[:2]], camera.mask.tobytes()
        with moderngl.create_context(standalone=True, require=430, **EGL) as own:
            framebuffer = own.simple_framebuffer((30, 20))
            framebuffer.use()
            triangle = own.program(CORNERS, fragment_shader=HALF)
            vertices = own.vertex_array(triangle, [])
            own.enable_only(moderngl.BLEND | moderngl.CULL_FACE)
            framebuffer.scissor, framebuffer.color_mask = (3, 3, 20, 10), (True, False, True, True)
            framebuffer.use()
            own.sampler(filter=(moderngl.LINEAR_MIPMAP_LINEAR, moderngl.LINEAR)).use(0)

            def drawn() -> bytes:
                vertices.render(moderngl.TRIANGLES, 3)
                return bytes(framebuffer.read(components=4))

            first, second = drawn(), drawn()
            assert second != first  # it is blended
            with texelflow.Pipeline(context=own) as camera:
                framebuffer.clear()
                assert drawn() == first
                assert [camera(frame).tobytes() for frame in frames[:2]] == pictures
                assert camera.mask.tobytes() == mask
                with ThreadPoolExecutor(1) as pool, pytest.raises(texelflow.UsageError, match="the thread that made"):
                    pool.submit(camera, frames[0]).result()
                assert drawn() == second
                camera.set(effect="tint")
            framebuffer.clear()
            assert drawn() == first

    @pytest.mark.gl
    def test_goes_on_after_the_gpu_was_reset(self, frames: Sequence[Frame], gpu: GpuResets) -> None:
        with texelflow.Pipeline(backend="gl") as camera:
            camera(frames[0])
            camera.set(effect="tint")
            gpu.reset()
            with pytest.raises(texelflow.ContextLostError):
                _ = camera.mask
            pictures = [camera(frame).tobytes() for frame in frames[1:3]]
            camera.reset()
            assert [camera(frame).tobytes() for frame in frames[1:3]] == pictures

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
    def test_belongs_to_its_process(self, frames: Sequence[Frame]) -> None:
        cache = texelflow.WeightsCache()
        with texelflow.Pipeline(backend="cpu", weights_cache=cache) as camera:
            cache.finalize_soft()
            child = os.fork()
            if not child:
                try:
                    camera(frames[0])
                except texelflow.UsageError as error:
                    camera.close()
                    os._exit(7 if "forked" in str(error) else 8)
                os._exit(9)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            camera(frames[0])
