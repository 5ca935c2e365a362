"""The command line with bad input and wrong usage: each ends in one clear line and exit code 2."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import av
import numpy as np
import pytest

from tests.helpers.clips import moving, write_clip
from tests.helpers.commands import Command, Result
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.model_builder import ModelBuilder
from texelflow import assets
from texelflow.app.cli import main
from texelflow.gpu_delegate.targets.gl.context import Context

CLIP = Path(assets.__file__).parent / "people.mp4"
FRAGMENTED = {"movflags": "frag_keyframe+empty_moov"}


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def in_process_of_its_own(*arguments: object, **environment: str) -> Result:
    """The same with another environment."""
    command = [sys.executable, "-m", "texelflow.app.cli", *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


# Recordings


def folder(place: Path) -> Path:
    return place


def empty(place: Path) -> Path:
    (place / "empty.mp4").touch()
    return place / "empty.mp4"


def text(place: Path) -> Path:
    (place / "text.mp4").write_text("Dear diary, this is not a video.\n" * 100)
    return place / "text.mp4"


def noise(place: Path) -> Path:
    (place / "noise.mp4").write_bytes(np.random.default_rng(1).bytes(100_000))
    return place / "noise.mp4"


def sound_only(place: Path) -> Path:
    path = place / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        assert isinstance(stream, av.AudioStream)
        stream.codec_context.layout = "mono"
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 4096), np.float32), "fltp", "mono")
        sound.sample_rate = 48000
        container.mux(stream.encode(sound))
        container.mux(stream.encode(None))
    return path


def index_lost(place: Path) -> Path:
    path = write_clip(place / "lost.mp4", moving(30))
    path.write_bytes(path.read_bytes()[:-2000])
    return path


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda place: place / "missing.mp4", "does not exist"),
        (folder, "is a folder"),
        (empty, "is empty"),
        (text, "not a video"),
        (noise, "not a video"),
        (sound_only, "no video stream"),
        (index_lost, "untrunc"),
    ],
)
def test_refuses_a_recording(make: Callable[[Path], Path], fragment: str, tmp_path: Path, texelflow: Command) -> None:
    path = make(tmp_path)
    output = tmp_path / "out.mp4"
    for verb in (("replay", path, "--out", output), ("check", path)):
        complaint = texelflow(*verb).complaint
        assert fragment in complaint
        assert str(path) in complaint
    assert not output.exists()


# Options


@one_in(
    3,
    ("arguments", "fragment"),
    [
        (["replay", CLIP, "--effect", "sparkle"], "--effect sparkle: one of tint"),
        (["replay", CLIP, "--effect", "blurr"], "is needed; did you mean blur?"),
        (["replay", CLIP, "--efect", "blur"], "did you mean --effect? `texelflow"),
        (["replya", CLIP], "No such command 'replya'; did you mean replay?"),
        (["bench", "modle"], "did you mean model?"),
        (["inspect", "selfie", "--tuning", "hardwear"], "did you mean hardware?"),
        (["inspect", "selfie", "--planner", "BEST"], "is needed for offsets; did you mean best?"),
        (["check", "selfie", "--backend", "delegat"], "did you mean delegate?"),
        (["bench", "model", "selfie", "--backend", "delegat"], "did you mean delegate?"),
        (["replay", CLIP, "--format", "webp"], "did you mean webm?"),
        (["replay", CLIP, "--background", "#12345"], "#12345"),
        (["replay", CLIP, "--background", "missing.png"], "missing.png"),
        (["replay", CLIP, "--effect", "tint", "--background", "#ffffff"], "--background goes with"),
        (["replay", CLIP, "--effect", "color", "--background", "picture.png"], "takes a color"),
        (["replay", CLIP, "--fit", "squeeze"], "--fit squeeze"),
        (["replay", CLIP, "--backend", "vulkan"], "--backend vulkan"),
        (
            ["replay", CLIP, "--cpu", "tflit"],
            "one of auto, native, tflite is needed; did you mean tflite?",
        ),
        (["replay", CLIP, "--threads", "65"], "--threads 65: a whole number from 1 to 64, or 0, is needed"),
        (["demo", "--threads", "-1"], "--threads -1: a whole number"),
        (["bench", "frame", "--cpu", "fast"], "--cpu fast: one of auto, native, tflite"),
        (["bench", "frame", "--backend", "gl", "--cpu", "native"], "are for the CPU: leave them or --backend gl out"),
        (["bench", "model", "--cpu", "nativ"], "--cpu nativ: native or tflite is needed here; did you mean native?"),
        (["bench", "model", "--cpu", "native", "--threads", "65"], "--threads 65: it goes from 1 to 64"),
        (["replay", CLIP, "--from", "soon"], "'soon' is not a position"),
        (["replay", CLIP, "--from", "20", "--to", "10"], "before it begins"),
        (["replay", CLIP, "--from", "100000", "--backend", "cpu"], "frames are 0 to 239"),
        (["replay", CLIP, "--from", "5s", "--to", "30", "--backend", "cpu"], "give a later end"),
        (["replay", CLIP, "--input-range", "1"], "--input-range 1"),
        (["replay", CLIP, "--input-range", "1,0"], "--input-range 1,0"),
        (["replay", CLIP, "--activation", "relu"], "--activation relu"),
        (["replay", CLIP, "--channel", "7"], "--channel 7"),
        (["replay", CLIP, "--channel", "many"], "--channel"),
        (["replay", CLIP, "--model", "selfy"], "did you mean 'selfie'"),
        (
            ["bench", "quality", "--model", "iris-landmark"],
            "is a model for iris landmarks; those that segment are: selfie, selfie-",
        ),
        (["bench", "frame", "--model", "iris-landmark", "--masks", "m.npy"], "finds things and has no mask"),
        (["replay", CLIP, "--log", "log.txt"], ".json or .csv"),
        (["replay", CLIP, "--out", "x.exe"], ".mp4"),
        (["replay", CLIP, "--wat"], "--wat"),
        (["replay"], "INPUT"),
        (["replay", CLIP, "--format", "gif"], "--format gif: one of png, mp4"),
        (["segment"], "segment"),
        (["models", "fetch", "selfy"], "did you mean 'selfie'"),
        (["bench", "frame", "--size", "640"], "--size 640"),
        (["bench", "frame", "--size", "0x480"], "--size 0x480"),
        (["bench", "frame", "--size", "99999x99999"], "16384"),
        (["bench", "frame", "--runs", "0"], "--runs"),
        (["bench", "frame", "--runs", "abc"], "--runs"),
        (["bench", "frame", "--warmup", "-1"], "--warmup"),
        (["bench", "frame", "--backend", "auto"], "gl or cpu"),
        (["bench", "frame", "--precision", "int8"], "--precision int8"),
        (["bench", "frame", "--precision", "bf16"], "--precision bf16 is for the CPU's own code: add --backend cpu"),
        (["replay", CLIP, "--to", "1", "--precision", "bf16"], "for the CPU's own code: add --backend cpu"),
        (["check", "selfie", "--precision", "bf16"], "for the CPU's own code: add --backend native"),
        (["inspect", "selfie", "--precision", "bf16"], "inspect shows programs of the GPU, leave it out"),
        (["tune", "selfie", "--precision", "bf16"], "what is tuned are kernels of the GPU, leave it out"),
        (["bench", "frame", "--memory", "pool"], "--memory pool: one of arena, objects, naive is needed"),
        (["bench", "frame", "--cpu", "native", "--memory", "naive"], "--memory and --planner are for the GPU"),
        (["inspect", "selfie", "--planner", "greedy-by-sise"], "--planner greedy-by-sise: one of naive, "),
        (["live", "--force"], "--force; nothing is written over here: a name that is taken gets the next free number"),
        (["live", "--camera", "0", "--camera", "0"], "--camera 0 is there twice, and a camera can be opened once"),
        (["live", *["--camera", "pattern"] * 2, "--sound"], "--sound goes with one camera: of several no sound is"),
        (["live", *["--camera", "pattern"] * 2, "--latency-test"], "--latency-test is of one camera"),
        (["live", *["--camera", "pattern"] * 10], "or a list of up to 9 such, is needed"),
        (["live", "--memory", "naive", "--planner", "best"], "--planner best: naive memory is planned by no other"),
        (["bench", "model", "--compile-budget", "nan"], "--compile-budget nan: a number from 0"),
        (["inspect", "selfie", "--compile-budget", "-1"], "--compile-budget -1"),
        (["check", "selfie", "--compile-budget", "1e9"], "--compile-budget 1e+09"),
        (["bench", "frame", "--masks", "missing/masks.npy"], "missing"),
        (["bench", "frame", "--frames", "x" * 300], "xxx' is not a file"),
        (["bench", "model", "selfie", "--runs", "0"], "--runs"),
    ],
)
def test_refuses_wrong_options(arguments: list[object], fragment: str, texelflow: Command) -> None:
    assert fragment in texelflow(*arguments).complaint


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "selfie", "--backend", "native"],
        ["check", CLIP, "--to", "1", "--backend", "native"],
        ["bench", "model", "selfie", "--cpu", "native"],
        ["replay", CLIP, "--to", "1", "--backend", "cpu", "--log", "log.csv"],
    ],
)
def test_bf16_is_refused_where_the_cpu_lacks_it(
    arguments: list[object], texelflow: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEXELFLOW_CPU", "avx2")
    assert "bf16 needs code for AVX512-BF16" in texelflow(*arguments, "--precision", "bf16").complaint


def test_live_refuses_masks_of_a_model_without_any(tmp_path: Path, texelflow: Command) -> None:
    outputs = "--out", tmp_path / "out.mp4", "--masks", tmp_path / "masks"
    result = texelflow("live", "--camera", "pattern", "--no-window", *outputs, "--model", "pose-detection")
    assert "--masks: pose-detection finds things and has no mask" in result.complaint
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("option", ["--out", "--log", "--masks"])
def test_refuses_outputs_that_cannot_be_written(option: str, tmp_path: Path, texelflow: Command) -> None:
    (tmp_path / "file").touch()
    name = {"--out": "x.mp4", "--log": "x.csv", "--masks": "masks"}[option]
    complaint = texelflow("replay", CLIP, "--to", "1", "--backend", "cpu", option, tmp_path / "file" / name).complaint
    assert str(tmp_path / "file") in complaint


def test_refuses_to_overwrite_the_recording(tmp_path: Path, texelflow: Command) -> None:
    clip = Path(shutil.copy(CLIP, tmp_path / "clip.mp4"))
    before = clip.read_bytes()
    assert "is the input itself" in texelflow("replay", clip, "--out", tmp_path / "." / "clip.mp4").complaint
    assert clip.read_bytes() == before


# Models


def relu(shape: tuple[int, ...]) -> bytes:
    model = ModelBuilder()
    model.output(model.op("RELU", [model.input(shape)], shape))
    return model.build()


MEANING = ("--input-range", "0,1", "--activation", "none", "--channel", 0)  # of a model's numbers


def unsupported() -> bytes:
    model = ModelBuilder()
    x = model.input((1, 4, 4, 3))
    model.output(model.op("BITCAST", [x], model.tensors[x].shape))
    return model.build()


def dynamic() -> bytes:
    model = ModelBuilder()
    x = model.tensor((1, 4, 4, 3), signature=(1, -1, -1, 3))
    model.inputs.append(x)
    model.output(model.op("RELU", [x], (1, 4, 4, 3)))
    return model.build()


def long_vector() -> bytes:
    """A model whose last vector claims a thousand million entries."""
    data = bytearray(relu((1, 4, 4, 3)))
    at = data.index(b"\4\0\0\0\1\0\0\0\4\0\0\0\4\0\0\0\3\0\0\0")  # the length of a shape, and the shape
    data[at : at + 4] = (1_000_000_000).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "fragment"),
    [
        (b"", "is empty"),
        (b"no flatbuffer at all", "not a TensorFlow Lite model"),
        (relu((1, 4, 4, 3))[:200], "damaged"),
        (long_vector(), "damaged"),
        (relu((1, 1 << 20, 1 << 20, 3)), f"{12 << 40} bytes"),
    ],
    ids=["empty", "text", "truncated", "long vector", "overflow"],
)
def test_refuses_a_model(data: bytes, fragment: str, tmp_path: Path, texelflow: Command) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    replay = ("replay", CLIP, "--model", path, *MEANING, "--backend", "gl")
    for verb in (replay, ("bench", "model", path), ("check", path), ("inspect", path)):
        complaint = texelflow(*verb).complaint
        assert fragment in complaint
        assert "model" in complaint


@pytest.mark.gl
def test_names_of_files_may_hold_anything(tmp_path: Path, texelflow: Command) -> None:
    odd = "odd\n\x1b[31m[b]\udcff.mp4"
    clip = tmp_path / odd
    complaint = texelflow("replay", clip).complaint
    assert complaint.endswith("odd \ufffd[31m[b]\ufffd.mp4' does not exist; check the spelling and the folder")
    clip.write_bytes(CLIP.read_bytes())
    for command in (
        ("check", clip, "--to", 0),
        ("replay", clip, "--to", 0, "--backend", "cpu", "--log", f"{clip}.csv"),
    ):
        result = texelflow(*command)
        assert result.code == 0, result.err
        assert "\x1b[31m" not in result.out + result.err


@pytest.mark.gl
def test_what_a_failed_run_would_replace_stays(tmp_path: Path, texelflow: Command) -> None:
    video, log = tmp_path / "out.mp4", tmp_path / "log.json"
    for path in (video, log):
        path.write_text("precious")
    command = "replay", CLIP, "--from", 100000, "--backend", "cpu", "--force", "--out", video
    assert "frames are 0 to 239" in texelflow(*command, "--log", log).complaint
    assert "its name must end in" in texelflow(*command, "--masks", log).complaint
    assert video.read_text() == log.read_text() == "precious"


@exhaustive
@pytest.mark.gl
@one_in(
    2,
    ("data", "line"),
    [
        (unsupported(), "none of 1 operator on the GPU, all on the CPU: "),
        (dynamic(), "1 dispatch of the network a frame"),  # for the sizes that it has
    ],
    ids=["unsupported", "dynamic"],
)
def test_says_what_the_delegate_does(data: bytes, line: str, tmp_path: Path, texelflow: Command) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    result = texelflow("replay", CLIP, "--to", 0, "--model", path, *MEANING, "--backend", "gl")
    assert result.code == 0, result.err
    assert line in result.out + result.err


@exhaustive
@pytest.mark.gl
def test_names_how_to_list_the_supported_ops(tmp_path: Path, texelflow: Command) -> None:
    (tmp_path / "model.tflite").write_bytes(unsupported())
    assert "texelflow inspect --ops" in texelflow("check", tmp_path / "model.tflite").err


def test_refuses_a_model_that_is_no_segmentation(tmp_path: Path, texelflow: Command) -> None:
    model = ModelBuilder()
    model.output(model.op("RELU", [model.input((1, 7))], (1, 7)))
    (tmp_path / "model.tflite").write_bytes(model.build())
    assert "[1, 7]" in texelflow("replay", CLIP, "--model", tmp_path / "model.tflite").complaint


def test_asks_for_what_a_model_does_not_say(tmp_path: Path, texelflow: Command) -> None:
    (tmp_path / "model.tflite").write_bytes(relu((1, 4, 4, 3)))
    complaint = texelflow("replay", CLIP, "--model", tmp_path / "model.tflite").complaint
    for option in ("--input-range", "--activation", "--channel"):
        assert option in complaint


@pytest.mark.gl
def test_refuses_a_tensor_over_the_limits_of_the_device(tmp_path: Path, texelflow: Command) -> None:
    (tmp_path / "large.tflite").write_bytes(relu((1, 4096, 4096, 3)))
    assert "this device allows" in texelflow("bench", "model", tmp_path / "large.tflite").complaint


# Machines


NO_DEVICE = {"__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent"}
TOO_OLD = {"MESA_GL_VERSION_OVERRIDE": "4.1", "MESA_GLES_VERSION_OVERRIDE": "3.0"}
MACHINES = pytest.mark.parametrize(("machine", "fragment"), [("none", "no OpenGL"), ("old", "OpenGL 4.1")])
# Drivers read the environment once, and loading the program takes longer than its work here: a process a machine.
COMMAND_LINES = """
import contextlib, io, json, sys
from texelflow.app.cli import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(arguments)
    print(json.dumps((code, out.getvalue(), err.getvalue())))
"""


@dataclass(frozen=True)
class OnMachine:
    """What became of command lines."""

    folder: Path  # that they write into
    frame: Result  # of bench
    masks: Result
    video: Result | None


@pytest.fixture(scope="module")
def on_machine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], OnMachine]:
    """Without OpenGL, none, or with old one."""

    @cache
    def of(machine: str) -> OnMachine:
        place = tmp_path_factory.mktemp(machine)
        commands: list[tuple[object, ...]] = [
            ("bench", "frame", "--runs", 1),
            ("replay", CLIP, "--to", 2, "--masks", place / "masks"),
        ]
        if machine == "none":
            commands.append(("replay", CLIP, "--to", 2, "--out", place / "x.mp4", "--backend", "cpu"))
        done = subprocess.run(
            [sys.executable, "-c", COMMAND_LINES, json.dumps(commands, default=str)],
            env={**os.environ, **(NO_DEVICE if machine == "none" else TOO_OLD)},
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert done.stderr == "", "libraries say nothing"
        frame, masks, *video = (Result(*json.loads(line)) for line in done.stdout.splitlines())
        return OnMachine(place, frame, masks, video[0] if video else None)

    return of


@pytest.fixture
def _mesa(context: Context) -> None:
    if "Mesa" not in context.version:
        pytest.skip("only Mesa can play an older OpenGL")


@exhaustive
@pytest.mark.usefixtures("_mesa")
@MACHINES
def test_needs_opengl_for_the_gpu_path(machine: str, fragment: str, on_machine: Callable[[str], OnMachine]) -> None:
    result = on_machine(machine).frame
    assert fragment in result.complaint
    assert "--backend cpu" in result.complaint


@pytest.mark.usefixtures("_mesa")
@MACHINES
def test_writes_masks_without_opengl(machine: str, fragment: str, on_machine: Callable[[str], OnMachine]) -> None:
    result, masks = on_machine(machine).masks, on_machine(machine).folder / "masks"
    assert result.code == 0
    assert fragment in result.err
    assert "network and drawing run on the CPU" in result.err
    assert "refinement" not in result.err, "the CPU refines them as well"
    assert [path.name for path in sorted(masks.iterdir())] == ["000000.png", "000001.png", "000002.png"]


def test_draws_without_opengl(on_machine: Callable[[str], OnMachine]) -> None:
    on_none = on_machine("none")
    assert on_none.video is not None
    assert on_none.video.code == 0, on_none.video.err
    assert f"written: {on_none.folder}/x.mp4 (0.1 s, 3 frames)" in on_none.video.out


@exhaustive
@pytest.mark.usefixtures("_mesa")
def test_draws_the_same_on_opengl_3_3(tmp_path: Path) -> None:
    old, new = tmp_path / "old.mp4", tmp_path / "new.mp4"
    arguments = ("replay", CLIP, "--from", 60, "--to", 61, "--effect", "replace", "--backend", "cpu", "--out")
    (tmp_path / "llvmlite.py").write_text("raise ImportError('OpenGL draws where there is no LLVM')\n")
    environment = {"PYTHONPATH": str(tmp_path)}
    assert in_process_of_its_own(*arguments, new, **environment).code == 0
    older = {"MESA_GL_VERSION_OVERRIDE": "3.3", "MESA_GLES_VERSION_OVERRIDE": "3.0"}
    assert in_process_of_its_own(*arguments, old, **environment, **older).code == 0
    assert new.read_bytes() == old.read_bytes()


# The program itself


@one_in(
    2,
    ("number", "engine", "library"),
    [(signal.SIGINT, "native", "llvmlite"), (signal.SIGTERM, "tflite", "interpreter_wrapper")],
)
def test_signals_end_in_one_line(number: int, engine: str, library: str) -> None:
    def let_interrupt() -> None:
        signal.signal(number, signal.SIG_DFL)  # a shell that runs the tests in the background ignores some

    command = [sys.executable, "-m", "texelflow.app.cli", "bench", "frame", "--cpu", engine, "--runs", "1000000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=let_interrupt) as process:
        deadline = time.monotonic() + 60
        while library not in mapped(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)  # until that, the last that is loaded, is there
        process.send_signal(number)
        _, complaint = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, complaint) == (128 + number, "texelflow: interrupted\n")


def mapped(process: int) -> str:
    """The files that a process has in its memory."""
    try:
        return Path(f"/proc/{process}/maps").read_text()
    except OSError:
        return ""


def test_help_names_every_verb(texelflow: Command) -> None:
    result = texelflow("--help")
    assert result.code == 0
    for verb in ("replay", "bench", "check", "inspect", "models", "demo"):
        assert verb in result.out


def test_help_does_not_load_the_engine() -> None:
    code = "import sys; from texelflow.app.cli import main; main(['--help']); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_shows_its_version(texelflow: Command) -> None:
    assert texelflow("--version").out.startswith("texelflow 0.")


def test_models_are_listed(texelflow: Command) -> None:
    result = texelflow("models")
    assert result.code == 0
    for name in ("selfie", "selfie-landscape", "Apache-2.0", "face-detection-back", "face detection", "MIT"):
        assert name in result.out


def test_a_defect_ends_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("texelflow.app.models.catalogue.fetch", broken)
    assert main(["models", "fetch", "selfie"]) == 70
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["models", "fetch", "selfie"])
