"""A Pipeline takes frames of every kind, and gives pictures of the same; textures never come to RAM."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import moderngl
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.clips import Recipe, write_clip
from tests.helpers.commands import Command
from tests.helpers.live_stage import demo_frame
from tests.helpers.markers import exhaustive
from tests.helpers.running import ROOT
from tests.helpers.traced_calls import calls_of, reading
from texelflow.gpu_delegate.targets.gl.context import Context

Frame = npt.NDArray[np.uint8]

EGL: dict[str, Any] = {"backend": "egl"}
UNEVEN = (0, 20, 90)  # ms
# A program that gives textures and takes textures, and does nothing else
TRACED = """
import moderngl, texelflow
with moderngl.create_context(standalone=True, require=430, backend="egl") as gl:
    with texelflow.Pipeline(context=gl, effect="cutout", quiet=True) as camera:
        for number in range(3):
            texture = gl.texture((320, 240), 3, bytes([60 * number]) * 320 * 240 * 3)
            assert camera(texture).size == (320, 240)
        print(gl.error)
"""


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    """RGBA of two people, who move."""
    opaque = np.full((240, 320, 1), 255, np.uint8)
    return [np.dstack([demo_frame(60 + 2 * number, 2), opaque]) for number in range(3)]


@pytest.fixture(scope="module")
def camera() -> Iterator[texelflow.Pipeline]:
    with texelflow.Pipeline(backend="cpu", effect="tint") as pipeline:
        yield pipeline


def steps_between(texture: moderngl.Texture, picture: Frame) -> int:
    """The greatest difference of any channel, of 255."""
    found = np.frombuffer(texture.read(), np.uint8).reshape(picture.shape)
    return int(np.abs(found.astype(int) - picture).max())


@pytest.fixture(scope="module")
def caller() -> Iterator[moderngl.Context]:
    """A program's own context."""
    made = moderngl.create_context(standalone=True, require=430, **EGL)
    yield made
    made.release()


@pytest.fixture
def gl(caller: moderngl.Context) -> Iterator[moderngl.Context]:
    """The same, current as long as the test runs."""
    with caller:
        yield caller


class TestInRam:
    @exhaustive
    @pytest.mark.parametrize("effect", ["cutout"])
    def test_pyavs_frames_give_what_replay_writes_of_their_recording(
        self, frames: list[Frame], tmp_path: Path, effect: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        recipe = Recipe(time_base=Fraction(1, 1000), pts=UNEVEN)
        clip = write_clip(tmp_path / "clip.mkv", [frame[..., :3] for frame in frames], recipe)
        options = "--effect", effect, "--backend", "cpu", "--no-delay-video", "--out", tmp_path / "out"
        assert Command(capsys)("replay", clip, *options).code == 0
        with texelflow.Pipeline(backend="cpu", effect=effect) as camera, av.open(str(clip)) as container:
            for number, frame in enumerate(container.decode(video=0)):
                picture = camera(frame, time=frame.time)
                assert (picture.format.name, picture.pts, picture.time_base) == (
                    "rgba",
                    UNEVEN[number],
                    frame.time_base,
                )
                bgra = np.asarray(cv2.imread(str(tmp_path / "out" / f"{number:06d}.png"), cv2.IMREAD_UNCHANGED))
                wanted = cv2.cvtColor(bgra, cv2.COLOR_BGRA2RGBA)
                assert np.array_equal(picture.to_ndarray(format="rgba"), wanted), number

    def test_each_kind_gives_the_same_kind(self, camera: texelflow.Pipeline, frames: list[Frame]) -> None:
        image = pytest.importorskip("PIL.Image")
        rgba = frames[0]
        camera.reset()
        wanted = camera(rgba)
        for mode in ("RGB", "RGBA"):
            camera.reset()
            picture = camera(image.fromarray(rgba).convert(mode))
            assert (type(picture), picture.mode) == (image.Image, mode)
            assert np.array_equal(np.asarray(picture)[..., :3], wanted[..., :3])
        frame = av.VideoFrame.from_ndarray(rgba, "rgba").reformat(format="yuv420p")
        rows = frame.to_ndarray()
        planes = rows[:240], rows[240:300].reshape(120, 160), rows[300:].reshape(120, 160)
        camera.reset()
        drawn = camera(frame)
        camera.reset()
        luma, *chroma = camera(planes)
        assert drawn.format.name == "yuv420p"
        assert [plane.shape for plane in (luma, *chroma)] == [plane.shape for plane in planes]
        found = np.concatenate([luma.ravel(), *(plane.ravel() for plane in chroma)])
        assert np.array_equal(found, drawn.to_ndarray().ravel())
        back = drawn.to_ndarray(format="rgb24").astype(int)
        assert np.abs(back - wanted[..., :3]).mean() < 6

    @exhaustive
    def test_planes_may_change_behind_a_call(self, frames: list[Frame]) -> None:
        def planes(frame: Frame) -> tuple[Frame, ...]:
            nv12 = av.VideoFrame.from_ndarray(frame, "rgba").reformat(format="nv12")
            rows = np.asarray(nv12.to_ndarray(), np.uint8)
            return rows[:240], rows[240:].reshape(120, 160, 2)

        with (
            texelflow.Pipeline(backend="cpu", effect="tint", delay_video=True) as one,
            texelflow.Pipeline(backend="cpu", effect="tint", delay_video=True) as other,
        ):
            room = tuple(np.empty_like(plane) for plane in planes(frames[0]))
            for frame in frames:
                for place, plane in zip(room, planes(frame), strict=True):
                    place[:] = plane
                wanted = one(planes(frame))
                assert all(map(np.array_equal, other(room), wanted))

    def test_textures_need_a_context(self, camera: texelflow.Pipeline) -> None:
        with pytest.raises(
            texelflow.UsageError, match=r"a texture is taken in its own context: make a Pipeline\(context"
        ):
            camera((1, 320, 240))


@pytest.mark.gl
class TestTextures:
    @pytest.fixture
    def drawing(self, gl: moderngl.Context) -> Iterator[texelflow.Pipeline]:
        with texelflow.Pipeline(context=gl, effect="cutout") as pipeline:
            yield pipeline

    def test_textures_give_the_pictures_of_arrays_and_nothing_is_read(
        self, gl: moderngl.Context, drawing: texelflow.Pipeline, frames: list[Frame]
    ) -> None:
        frames = frames[:2]  # an even number: then each run begins where the one before began in the rings of textures
        for _ in range(2):
            drawing.reset()
            wanted = [drawing(frame) for frame in frames]
        opened = drawing._work.compute.context
        assert isinstance(opened, Context)
        for kind in ("RGBA", "RGB", "name"):
            drawing.reset()
            for frame, picture in zip(frames, wanted, strict=True):
                channels = 3 if kind == "RGB" else 4
                texture = gl.texture((320, 240), channels, frame[..., :channels].tobytes(), alignment=1)
                before = opened.readback.bytes, opened.readback.calls
                given: Any = drawing((texture.glo, 320, 240)) if kind == "name" else drawing(texture)
                assert (opened.readback.bytes, opened.readback.calls) == before
                assert gl.error == "GL_NO_ERROR"
                found = gl.external_texture(given[0], (320, 240), 4, 0, "f1") if kind == "name" else given
                assert (found.size, found.components) == ((320, 240), 4)
                assert steps_between(found, picture) <= 1  # llvmpipe's last bits are others in other runs
                texture.release()
        assert drawing.mask.shape == (240, 320)
        assert "read" in drawing.figures

    @exhaustive
    def test_with_a_look_ahead_they_come_a_frame_later(self, gl: moderngl.Context, frames: list[Frame]) -> None:
        with texelflow.Pipeline(context=gl, effect="tint", delay_video=True) as camera:
            wanted = [*(camera(frame) for frame in frames), camera.flush()]
            camera.reset()
            texture = gl.texture((320, 240), 4)
            found = list[int]()
            for frame in frames:
                texture.write(frame.tobytes())
                found.append(steps_between(camera(texture), wanted[len(found)]))
            found.append(steps_between(camera.flush(), wanted[-1]))
        assert max(found) <= 1
        assert np.abs(wanted[1].astype(int) - wanted[2]).max() > 50
        texture.release()

    def test_what_does_not_fit_is_refused(self, gl: moderngl.Context, drawing: texelflow.Pipeline) -> None:
        released = gl.texture((4, 4), 4)
        released.release()
        refused: list[tuple[Any, str]] = [
            (gl.texture((4, 4), 1), "3 or 4 components of f1, f2 or f4 and one sample a pixel, not 1 of f1"),
            (gl.texture((4, 4), 4, dtype="u1"), "not 4 of u1"),
            (gl.texture((4, 4), 4, samples=4), "not 4 of f1, 4 samples"),
            ((9999, 4, 4), "there is no texture 9999 in the Pipeline's context"),
            (released, "has been released"),
        ]
        for value, said in refused:
            with pytest.raises(texelflow.UsageError) as error:
                drawing(value)
            assert said in str(error.value)
        assert gl.error == "GL_NO_ERROR"

    def test_of_another_context_are_refused(self, gl: moderngl.Context, drawing: texelflow.Pipeline) -> None:
        other = moderngl.create_context(standalone=True, require=430, **EGL)
        texture = other.texture((4, 4), 4)
        with gl, pytest.raises(texelflow.UsageError, match="belongs to another moderngl context"):
            drawing(texture)
        other.release()
        gl.__enter__()  # type: ignore[no-untyped-call]

    @exhaustive
    def test_skip_still_looks_at_frames_in_ram(self, gl: moderngl.Context) -> None:
        camera = texelflow.Pipeline(context=gl, skip_still=True)
        with camera, pytest.raises(texelflow.UsageError, match="skip_still compares frames in RAM"):
            camera(gl.texture((64, 48), 4))

    @exhaustive
    @pytest.mark.skipif(shutil.which("apitrace") is None, reason="needs apitrace")
    def test_apitrace_sees_nothing_read(self, tmp_path: Path) -> None:
        trace = tmp_path / "calls.trace"
        command = ["apitrace", "trace", "-a", "egl", "-o", str(trace), sys.executable, "-c", TRACED]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout.split()[-1:]) == (0, ["GL_NO_ERROR"]), done.stderr
        calls = calls_of(trace)
        assert sum(call.startswith("glDispatchCompute(") for call in calls) > 30
        assert sum(call.startswith("glBlitFramebuffer(") for call in calls) >= 6
        assert reading(calls) == []
