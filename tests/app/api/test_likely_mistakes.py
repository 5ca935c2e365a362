"""Likely mistakes end in one line that says what to write instead: a row each, for others to be added to."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import texelflow
from tests.model_files.finding_models import seeing_network
from tests.model_files.frame_models import class_network

RGB = np.zeros((27, 33, 3), np.uint8)
INPUT = (1, 27, 33, 3)


@dataclass(frozen=True)
class Given:
    """What a mistake is made with: a folder with model.tflite, and that opened in several ways; a file that finds."""

    path: Path
    finder: Path
    segment: texelflow.Segmenter
    model: texelflow.Model


def of_module(module: str, name: str) -> Any:
    """An object of a package that need not be installed."""
    return type(name, (), {"__module__": module})()


class Tensor:
    """As PyTorch's and TensorFlow's: no NumPy array, but what makes one of itself."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return RGB


def elsewhere(work: Callable[[], object]) -> None:
    """Do it on another thread, and raise here what it raises."""
    raised = list[BaseException]()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in raised:
        raise error


def closed(made: Any) -> Any:
    made.close()
    return made


def masks_of(model: Path) -> object:
    """What a Pipeline says it has, once it has drawn a frame."""
    with texelflow.Pipeline(model=str(model), backend="cpu") as camera:
        camera(RGB)
        return camera.mask


Mistake = tuple[str, Callable[[Given], object], str]

FRAMES: list[Mistake] = [
    ("a path", lambda g: g.segment("photo.jpg"), "cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB) reads one"),  # type: ignore[arg-type]
    ("what cv2.imread gives of no file", lambda g: g.segment(cv2.imread("nowhere.jpg")),
     "not NoneType; cv2.imread and VideoCapture.read give None where they have no picture"),
    ("a Pillow image", lambda g: g.segment(of_module("PIL.Image", "Image")),
     "not Image; numpy.asarray(image.convert('RGB')) makes one of it"),
    ("a tensor", lambda g: g.segment(Tensor()), "not Tensor; numpy.asarray(frame) makes one of it"),  # type: ignore[arg-type]
    ("floats of 0 to 1", lambda g: g.segment(RGB / 255), "; (frame * 255).clip(0, 255).astype(numpy.uint8) makes it"),
    ("floats of 0 to 255", lambda g: g.segment(RGB + 200.0), "; frame.clip(0, 255).astype(numpy.uint8) makes it"),
    ("16 bits", lambda g: g.segment(RGB.astype(np.uint16)), "; (frame >> 8).astype(numpy.uint8) makes it of 16 bits"),
    ("a matrix of truths", lambda g: g.segment(RGB > 0), "; frame.astype(numpy.uint8) * 255 makes it"),
    ("gray", lambda g: g.segment(RGB[..., 0]), "; cv2.cvtColor(frame, cv2.COLOR_GRAY2RGB) makes it of a gray one"),
    ("gray, with its channel", lambda g: g.segment(RGB[..., :1]), "; cv2.cvtColor(frame, cv2.COLOR_GRAY2RGB)"),
    ("a batch of one", lambda g: g.segment(RGB[None]), "not uint8 (1, 27, 33, 3); frame[0] is the one of this batch"),
    ("a batch", lambda g: g.segment(np.stack([RGB, RGB])), "; call it with one frame after the other"),
    ("channels first", lambda g: g.segment(RGB.transpose(2, 0, 1)), "; frame.transpose(1, 2, 0) has channels last"),
    ("channels first, in a batch", lambda g: g.segment(RGB.transpose(2, 0, 1)[None]),
     "; frame[0].transpose(1, 2, 0) is the one of this batch"),
    ("after close()", lambda g: closed(texelflow.Segmenter(g.path, "cpu"))(RGB), "is closed; make another one"),
]  # fmt: skip

MODELS: list[Mistake] = [
    ("misspelt", lambda _: texelflow.Segmenter("selfi"), "did you mean 'selfie'?"),
    ("a file that is not there", lambda _: texelflow.Segmenter("nowhere.tflite"), "no such file; check the path"),
    ("a Model", lambda g: texelflow.Segmenter(g.model), "not Model; give the name or path that it was made with"),  # type: ignore[arg-type]
    ("of Keras", lambda _: texelflow.Segmenter(of_module("keras.src.models.functional", "Functional")),
     "not Functional; tf.lite.TFLiteConverter.from_keras_model(model).convert() gives the bytes of a .tflite file"),
    ("of PyTorch", lambda _: texelflow.Model.load(of_module("torch.nn.modules.container", "Sequential")),
     "not Sequential; litert_torch.convert(model, sample_inputs).export('model.tflite') writes a file"),
    ("its bytes", lambda g: texelflow.Segmenter(g.path.read_bytes()),  # type: ignore[arg-type]
     "not bytes; write its bytes to a file, or give them to texelflow.Interpreter(model_content=...)"),
    ("a frame", lambda _: texelflow.Segmenter(RGB), "; first segment = texelflow.Segmenter(model), then"),  # type: ignore[arg-type]
    ("for something else", lambda _: texelflow.Segmenter("face-landmark"), "texelflow.Pipeline(model=...).findings"),
    ("a file for something else", lambda g: texelflow.Segmenter(g.finder),
     "it finds things (yolo-boxes), which live, replay and texelflow.Pipeline show; texelflow.Pipeline(model="),
    ("a mask of what finds things", lambda g: masks_of(g.finder),
     "finder.tflite finds things and has no mask; findings has them, and model='selfie' makes masks of people"),
]  # fmt: skip

OPTIONS: list[Mistake] = [
    ("a backend of another name", lambda _: texelflow.Segmenter(backend="gpu"), "not 'gpu'; 'gl' is the GPU"),  # type: ignore[arg-type]
    ("a choice in capitals", lambda _: texelflow.Segmenter(backend="CPU"), "not 'CPU'; did you mean cpu?"),  # type: ignore[arg-type]
    ("a range as text", lambda _: texelflow.Segmenter(input_range="0,1"), "two numbers are needed, as (0, 1)"),  # type: ignore[arg-type]
    ("a range of one number", lambda _: texelflow.Segmenter(input_range=1), "two numbers are needed, as (0, 1)"),  # type: ignore[arg-type]
    ("a range the other way", lambda _: texelflow.Segmenter(input_range=(1, 0)), "the first number must be below"),
    ("a class by half", lambda _: texelflow.Segmenter(channel=1.5), "the number or the name of a class is needed"),  # type: ignore[arg-type]
    ("a misspelt class", lambda g: texelflow.Segmenter(g.path, channel="persn"), "did you mean person?"),
    ("an activation by number", lambda _: texelflow.Segmenter(activation=3), "'none', 'sigmoid' or 'softmax'"),  # type: ignore[arg-type]
    ("threads as text", lambda _: texelflow.Segmenter(threads="4"), "a whole number from 0 to"),  # type: ignore[arg-type]
    ("the class for an instance", lambda _: texelflow.Segmenter(weights_cache=texelflow.WeightsCache),  # type: ignore[arg-type]
     "not the class: WeightsCache() makes one"),
    ("a cache that nobody uses", lambda _: texelflow.WeightsCache().finalize_soft(), "make an instance with it before"),
    ("a delegate without an interpreter", lambda _: texelflow.GpuDelegate().bind_input(0, None),  # type: ignore[arg-type]
     "make an interpreter with it first"),
    ("a word for a truth", lambda _: texelflow.GpuDelegate(strict="yes"), "strict is True or False, not 'yes'"),  # type: ignore[arg-type]
    ("feedback as a list", lambda g: g.model.with_feedback(["state"]), "a dictionary of inputs' names to outputs'"),  # type: ignore[arg-type]
]  # fmt: skip

PROGRAMS: list[tuple[str, Callable[[texelflow.Program], object], str]] = [
    ("a path", lambda p: texelflow.Program("model.tflite"), "not str: Program(Model.load(path))"),  # type: ignore[arg-type]
    ("a picture without its batch", lambda p: p.write(p.model.inputs[0], np.zeros(INPUT[1:], np.float32)),
     "not float32 of shape (27, 33, 3); values[None] is a batch of one"),
    ("channels first", lambda p: p.write(p.model.inputs[0], np.zeros((1, 3, 27, 33), np.float32)),
     "; values.transpose(0, 2, 3, 1) has channels last"),
    ("bytes", lambda p: p.write(p.model.inputs[0], RGB[None]), "; scale bytes as the model was trained"),
    ("float64", lambda p: p.write(p.model.inputs[0], np.zeros(INPUT)), "; values.astype('float32') has that type"),
    ("a list", lambda p: p.write(p.model.inputs[0], [[0.5]]), "not list; numpy.asarray(values, dtype) makes one"),  # type: ignore[arg-type]
    ("another name", lambda p: p.read("mask"), "a tensor is one of model.inputs and model.outputs (tensor0, "),
    ("another thread", lambda p: elsewhere(p.run), "use it there, or make one in each thread"),
    ("after close()", lambda p: closed(texelflow.Program(p.model)).run(), "this Program is closed; make another one"),
]  # fmt: skip


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Given]:
    path = tmp_path_factory.mktemp("mistakes") / "model.tflite"
    path.write_bytes(class_network())
    finder = path.with_name("finder.tflite")
    finder.write_bytes(seeing_network([np.zeros((1, 6, 84), np.float32)], (64, 64)))
    with texelflow.Segmenter(path, "cpu") as segment:
        yield Given(path, finder, segment, texelflow.Model.load(path))


@pytest.fixture(scope="module")
def program(given: Given) -> Iterator[texelflow.Program]:
    with texelflow.Program(given.model) as made:
        yield made


def check(work: Callable[[], object], said: str) -> None:
    """That it is refused in one line that says so, and nothing of the command line's."""
    with pytest.raises(texelflow.TexelflowError) as refused:
        work()
    text = str(refused.value)
    assert said in text
    assert "\n" not in text
    assert "--" not in text


@pytest.mark.parametrize(("mistake", "said"), [pytest.param(*row[1:], id=row[0]) for row in FRAMES])
def test_frames(given: Given, mistake: Callable[[Given], object], said: str) -> None:
    check(lambda: mistake(given), said)


@pytest.mark.parametrize(("mistake", "said"), [pytest.param(*row[1:], id=row[0]) for row in MODELS])
def test_models(given: Given, mistake: Callable[[Given], object], said: str) -> None:
    check(lambda: mistake(given), said)


@pytest.mark.parametrize(("mistake", "said"), [pytest.param(*row[1:], id=row[0]) for row in OPTIONS])
def test_options(given: Given, mistake: Callable[[Given], object], said: str) -> None:
    check(lambda: mistake(given), said)


@pytest.mark.gl
@pytest.mark.parametrize(("mistake", "said"), [pytest.param(*row[1:], id=row[0]) for row in PROGRAMS])
def test_programs(program: texelflow.Program, mistake: Callable[[texelflow.Program], object], said: str) -> None:
    check(lambda: mistake(program), said)
