"""The public package: it loads little, and a Segmenter makes masks of frames, from any thread, and refuses all else."""

import os
import pydoc
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit
from texelflow.gpu_delegate.base import errors
from texelflow.gpu_delegate.targets.gl import context as context_module

Frame = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.float32]

ROOT = Path(__file__).parents[3]
TOLERANCE = 2e-3
GL = pytest.param("gl", marks=pytest.mark.gl)


def expected(frame: Frame, model: str = "selfie", fit: Fit = "stretch", options: SpecOptions | None = None) -> Mask:
    """What the frame job on the CPU makes of an RGBA frame."""
    loaded = load_segmentation(model, options)
    path = CpuPath(loaded, rgba_format((frame.shape[1], frame.shape[0])), fit, preprocessing="auto", as_read=True)
    return path.run(rgba_picture(frame))


def run(program: str) -> subprocess.CompletedProcess[str]:
    """A program in Python, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.fixture(scope="module", params=[GL, "cpu"])
def segment(request: pytest.FixtureRequest) -> Iterator[texelflow.Segmenter]:
    with texelflow.Segmenter("selfie", request.param) as segmenter:
        yield segmenter


@pytest.fixture(scope="module")
def on_cpu() -> Iterator[texelflow.Segmenter]:
    with texelflow.Segmenter("selfie", "cpu") as segmenter:
        yield segmenter


@pytest.fixture
def affine(tmp_path: Path) -> Path:
    """A network that gives 3 x - 1 for x, three classes: beyond 0..1 on both sides."""
    model = ModelBuilder()
    tripled = model.op("MUL", [model.input((1, 8, 8, 3)), model.constant(np.full(3, 3))], (1, 8, 8, 3))
    model.output(model.op("ADD", [tripled, model.constant(np.full(3, -1))], (1, 8, 8, 3)))
    path = tmp_path / "affine.tflite"
    path.write_bytes(model.build())
    return path


class TestPackage:
    def test_importing_it_and_asking_for_help_loads_little(self) -> None:
        program = (
            "import sys, texelflow\n"
            "from texelflow.app.cli import main\n"
            "assert texelflow.TexelflowError and main(['--help']) == 0\n"
            "print(sorted({'numpy', 'cv2', 'moderngl', 'av'} & {name.partition('.')[0] for name in sys.modules}))"
        )
        done = run(program)
        assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr

    def test_all_that_is_promised_is_there_and_explained(self) -> None:
        text = pydoc.plain(pydoc.render_doc(texelflow))
        for name in texelflow.__all__:
            assert name in dir(texelflow)
            assert name in text or name == "__version__"
        assert "frame: uint8 (H, W, 3) RGB or (H, W, 4) RGBA" in text
        assert texelflow.__version__ in text
        kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
        assert kinds <= set(texelflow.__all__)

    def test_what_is_not_there_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'segmenters'"):
            _ = texelflow.segmenters


class TestMasks:
    def test_they_are_the_frame_jobs(self, segment: texelflow.Segmenter, frame_rgba: Frame) -> None:
        mask = segment(frame_rgba)
        assert (mask.dtype.name, mask.shape) == ("float32", (480, 640))
        assert mask.flags.writeable
        np.testing.assert_allclose(mask, expected(frame_rgba), rtol=0, atol=TOLERANCE)
        assert mask.max() > 0.9

    def test_of_any_layout_in_memory(self, segment: texelflow.Segmenter, frame_rgba: Frame) -> None:
        mask = segment(frame_rgba).tobytes()
        rgb = frame_rgba[..., :3]
        wide = np.zeros((500, 700, 3), np.uint8)
        wide[10:490, 20:660] = rgb
        frozen = rgb.copy()
        frozen.flags.writeable = False
        other_alpha = frame_rgba.copy()
        other_alpha[..., 3] = 7
        layouts = {
            "RGB in RGBA": rgb,
            "rows apart": wide[10:490, 20:660],
            "read-only": frozen,
            "BGR backwards": np.ascontiguousarray(rgb[..., ::-1])[..., ::-1],
            "upside down twice": np.ascontiguousarray(rgb[::-1])[::-1],
            "columns first": np.asfortranarray(rgb),
            "RGBA upside down twice": np.ascontiguousarray(frame_rgba[::-1, ::-1])[::-1, ::-1],
            "RGBA by columns": np.asfortranarray(frame_rgba),
            "another alpha": other_alpha,
        }
        assert [name for name, frame in layouts.items() if segment(frame).tobytes() != mask] == []

    def test_of_changing_sizes(self, segment: texelflow.Segmenter, frame_rgba: Frame) -> None:
        before = segment(frame_rgba).tobytes()
        for frame in (frame_rgba[:333, :251], frame_rgba[:1, :1]):
            np.testing.assert_allclose(segment(frame), expected(frame), rtol=0, atol=TOLERANCE)
        assert segment(frame_rgba).tobytes() == before

    @pytest.mark.gl
    def test_another_size_costs_three_shaders(self, frame_rgba: Frame, monkeypatch: pytest.MonkeyPatch) -> None:
        compiled: list[str] = []
        real = context_module.compile_program

        def counting(context: Any, sources: Any, label: str) -> int:
            compiled.append(label)
            return real(context, sources, label)

        monkeypatch.setattr(context_module, "compile_program", counting)
        with texelflow.Segmenter(backend="gl") as segment:
            assert len(compiled) > 20
            compiled.clear()
            segment(frame_rgba)
            segment(frame_rgba)
            assert sorted(compiled) == ["exposure", "image_to_tensor", "mask_to_frame"]

    @pytest.mark.parametrize("backend", [GL, "cpu"])
    @one_in(
        3,
        ("fit", "options"),
        [
            ("crop", SpecOptions((0, 1), "none", 0)),
            ("letterbox", SpecOptions((-1, 1), "sigmoid", 1)),
            ("stretch", SpecOptions((0, 1), "softmax", 2)),
        ],
    )
    def test_what_a_models_numbers_mean_is_said(
        self, affine: Path, frame_rgba: Frame, backend: Any, fit: Fit, options: SpecOptions
    ) -> None:
        frame, (low, high) = np.ascontiguousarray(frame_rgba[:200]), options.input_range or (0, 1)
        activation: Any = options.activation
        with texelflow.Segmenter(
            affine, backend, input_range=(low, high), activation=activation, channel=options.channel, fit=fit
        ) as segment:
            mask = segment(frame)
        wanted = expected(frame, str(affine), fit, options)
        np.testing.assert_allclose(mask, np.clip(wanted, 0, 1), rtol=0, atol=TOLERANCE)
        if activation == "none":
            assert wanted.min() < 0 or wanted.max() > 1
        assert (mask.min() >= 0, mask.max() <= 1) == (True, True)


class TestSegmenter:
    def test_says_which_it_is(self, segment: texelflow.Segmenter) -> None:
        assert segment.model == "selfie"
        assert segment.renderer
        assert repr(segment) == f"<texelflow.Segmenter 'selfie': {segment.backend}, {segment.renderer}>"

    @pytest.mark.gl
    def test_auto_decides_in_silence(self, capfd: pytest.CaptureFixture[str]) -> None:
        with texelflow.Segmenter() as segment, texelflow.Segmenter(backend="gl") as gl:
            assert (segment.backend == "cpu") == ("llvmpipe" in gl.renderer)
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize(
        ("frame", "said"),
        [
            (
                type("Image", (), {"__module__": "PIL.Image"})(),
                "not Image; numpy.asarray(image.convert('RGB')) makes one",
            ),
            ([[1]], "a frame is a NumPy array of uint8 (H, W, 3) RGB or (H, W, 4) RGBA, not list"),
            (np.zeros((4, 4, 3)), "a frame is uint8 (H, W, 3) RGB or (H, W, 4) RGBA, not float64 (4, 4, 3)"),
            (np.zeros((4, 4), np.uint8), "not uint8 (4, 4)"),
            (np.zeros((1, 4, 4, 3), np.uint8), "not uint8 (1, 4, 4, 3)"),
            (np.zeros((4, 4, 2), np.uint8), "not uint8 (4, 4, 2)"),
            (np.zeros((0, 4, 3), np.uint8), "a frame has 1 to 16384 pixels a side and at most 128 million in all"),
            (np.broadcast_to(np.zeros((1, 1, 3), np.uint8), (1, 20000, 3)), "not 20000x1"),
            (np.broadcast_to(np.zeros((1, 1, 4), np.uint8), (16000, 16000, 4)), "not 16000x16000"),
        ],
    )
    def test_refuses_what_is_no_frame(self, on_cpu: texelflow.Segmenter, frame: Any, said: str) -> None:
        with pytest.raises(texelflow.UsageError) as refused:
            on_cpu(frame)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)

    @pytest.mark.gl
    def test_goes_on_after_a_size_that_the_gpu_does_not_take(
        self, frame_rgba: Frame, context: context_module.Context
    ) -> None:
        if context.limits.storage_block_bytes >= 16384 * 8192 * 4:
            pytest.skip("this GPU takes frames of every size that there may be")
        with texelflow.Segmenter(backend="gl") as segment:
            before = segment(frame_rgba).tobytes()
            for size in ((16384, 8192), (8192, 16384)):
                with pytest.raises(texelflow.DeviceError, match=r"a mask of .* is too large for .*; try backend cpu"):
                    segment(np.broadcast_to(np.zeros((1, 1, 4), np.uint8), (*size, 4)))
            assert segment(frame_rgba).tobytes() == before

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"backend": "cuda"}, "backend is one of 'auto', 'gl', 'cpu', not 'cuda'"),
            ({"fit": "squeeze"}, "fit is one of"),
            ({"precision": "int8"}, "precision is one of"),
            ({"model": 3}, "a model is a name of the catalogue or a path, not int"),
            ({"model": b"selfie"}, "not bytes"),
            ({"model": "nowhere"}, "'nowhere' is neither a .tflite file nor a model of the catalogue"),
            ({"channel": 4}, "selfie: channel 4: the model's output has the classes 0 to 0"),
            ({"input_range": (1, 0)}, "selfie: input_range 1,0: the first number must be below the second"),
            ({"activation": "relu"}, "selfie: activation relu: one of none, sigmoid, softmax is needed"),
        ],
    )
    def test_refuses_arguments_by_their_names(self, arguments: dict[str, Any], said: str) -> None:
        with pytest.raises(texelflow.TexelflowError) as refused:
            texelflow.Segmenter(**arguments)
        assert said in str(refused.value)
        assert "--" not in str(refused.value)

    def test_asks_for_what_nobody_says(self, affine: Path) -> None:
        with pytest.raises(
            texelflow.UsageError, match=r"give input_range, .* give activation none.* give channel 0..2"
        ):
            texelflow.Segmenter(affine)

    def test_is_used_from_many_threads(self, segment: texelflow.Segmenter, frame_rgba: Frame) -> None:
        frames = [np.ascontiguousarray(frame_rgba[: 480 - 40 * n, : 640 - 40 * n]) for n in range(3)] * 3
        wanted = [segment(frame).tobytes() for frame in frames]
        with ThreadPoolExecutor(9) as pool:
            found = list(pool.map(lambda frame: segment(frame).tobytes(), frames))
        assert found == wanted

    @pytest.mark.parametrize("backend", [GL, "cpu"])
    def test_is_closed_while_others_use_it(self, backend: Any, frame_rgba: Frame) -> None:
        segment = texelflow.Segmenter(backend=backend)
        wanted, others = segment(frame_rgba).tobytes(), threading.Barrier(4)

        def use() -> str:
            others.wait()
            try:
                while True:
                    assert segment(frame_rgba).tobytes() == wanted
            except texelflow.UsageError as error:
                return str(error)

        with ThreadPoolExecutor(3) as pool:
            ends = [pool.submit(use) for _ in range(3)]
            others.wait()
            segment.close()
            assert {end.result(timeout=30) for end in ends} == {"this Segmenter is closed; make another one"}
        segment.close()
        assert repr(segment) == "<texelflow.Segmenter 'selfie': closed>"

    @exhaustive
    def test_several_are_made_at_once_and_leave_stderr_alone(self) -> None:
        before = os.fstat(2)
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda _: texelflow.Segmenter(backend="cpu"), range(8)))
        for segmenter in made:
            segmenter.close()
        assert os.path.samestat(before, os.fstat(2))

    @exhaustive
    @pytest.mark.gl
    def test_what_is_forgotten_or_forked_ends_without_a_word(self) -> None:
        program = (
            "import numpy as np, os, sys, texelflow\n"
            "frame = np.zeros((48, 64, 3), np.uint8)\n"
            "for backend in ('gl', 'cpu'): texelflow.Segmenter(backend=backend)(frame)\n"
            "kept = texelflow.Segmenter(backend='cpu', weights_cache=(cache := texelflow.WeightsCache()))\n"
            "cache.finalize_soft(); kept(frame)\n"
            "if child := os.fork():\n"
            "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
            "try:\n"
            "    kept(frame)\n"
            "except texelflow.UsageError as error:\n"
            "    kept.close()\n"
            "    os._exit(7 if 'fork' in str(error) else 8)\n"
        )
        done = run(program)
        assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
