"""TensorFlow Lite's scores of classes can be drawn before the network has run, as canvases do to be ready."""

from pathlib import Path

import pytest

from tests.model_files.frame_models import class_network
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.frame.inference.frame_segmenter import CpuSegmenter
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.models.model_loading import load_frame_model
from texelflow.app.picture.picture import rgba_format
from texelflow.gpu_delegate.targets.llvm import compiler


@pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")
def test_classes_are_prepared_before_the_network_runs(tmp_path: Path) -> None:
    file, pictures, frame = tmp_path / "classes.tflite", NativePictures(1), rgba_format((60, 40))
    file.write_bytes(class_network((48, 32)))
    segmenter = CpuSegmenter(pictures, CpuPath(load_frame_model(str(file)), frame), frame)
    target = pictures.target(frame.upright_size)
    canvas = Canvas(pictures, segmenter, target, "stretch", ChosenLook(Look("classes")))
    canvas.prepare()
    assert canvas.look.effect == "classes"
    for part in (canvas, target, segmenter, pictures):
        part.release()
