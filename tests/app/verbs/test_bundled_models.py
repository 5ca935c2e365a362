"""A model in a bundle, by every verb and class that takes a path, is what it is alone."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import texelflow
from tests.helpers.commands import Command
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.archive.staging.staging import prepare_staging
from texelflow.app.settings.settings import Settings

MEANING = ("--input-range", "0,1", "--activation", "sigmoid", "--channel", 0)


def masks_of(size: int, stride: int = 1) -> bytes:
    m = ModelBuilder()
    weights, bias = m.constant(np.full((1, 1, 1, 3), 0.5)), m.constant(np.zeros(1))
    x, shape = m.input((1, size, size, 3)), (1, size, size, 1)
    m.output(m.op("CONV_2D", [x, weights, bias], shape, padding="SAME", stride=(stride, stride)))
    return m.build()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for size in (8, 12):
            archive.writestr(f"masks{size}.tflite", masks_of(size))
    path = tmp_path / "masks.task"
    path.write_bytes(bytes(2) + stream.getvalue())
    return path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


VERBS: list[tuple[tuple[object, ...], tuple[object, ...], str]] = [
    (("check",), ("--backend", "native"), "12x12"),
    (("inspect",), ("--no-peaks",), "12x12"),
    (("bench", "model"), ("--backend", "cpu", "--runs", 1, "--warmup", 0), "masks12"),
]


@pytest.mark.gl
@pytest.mark.parametrize(("verb", "options", "shown"), VERBS, ids=lambda value: str(value[0]))
def test_verbs_take_it(
    verb: tuple[object, ...], options: tuple[object, ...], shown: str, bundle: Path, command: Command
) -> None:
    paths = bundle / "masks12.tflite", bundle.parent / "masks12.tflite"
    paths[1].write_bytes(masks_of(12))
    found, alone = (command(*verb, path, *options, "--json") for path in paths)
    assert (found.code, alone.code) == (0, 0), found.err
    assert json.loads(found.out).keys() == json.loads(alone.out).keys()
    assert "masks12" in found.out
    several = command(*verb, bundle, *options)
    line = "a bundle of 2 models; take one of them: masks.task/masks8.tflite, masks.task/masks12.tflite"
    assert several.code == 2
    assert several.err.strip().endswith(line)
    nothing = command(*verb, bundle / "masks9", *options)
    assert nothing.code == 2
    assert "no one model in it is called masks9; there are: masks.task/masks8.tflite" in nothing.err


def test_replay_draws_with_it(bundle: Path, tmp_path: Path, command: Command) -> None:
    clip, out = Path(__file__).parents[3] / "assets" / "people.mp4", tmp_path / "masks"
    model = ("--model", bundle / "masks8", *MEANING, "--backend", "cpu")
    assert command("replay", clip, "--to", 1, "--masks", out, *model).code == 0
    assert len(list(out.iterdir())) == 2
    written = command("replay", clip, "--to", 1, "--out", bundle, *model)
    assert (written.code, "its name must end in" in written.err) == (2, True)


def test_classes_take_it(bundle: Path) -> None:
    path: Any = bundle / "masks8.tflite"
    assert texelflow.Model.load(path).inputs[0].shape == (1, 8, 8, 3)
    with texelflow.Segmenter(path, "cpu", input_range=(0, 1), activation="sigmoid", channel=0, quiet=True) as segment:
        assert (segment.model, segment.backend) == ("masks8.tflite", "cpu")
        assert segment(np.zeros((8, 8, 3), np.uint8)).mean() == pytest.approx(0.5)
    for model in (path, str(bundle / "masks8")):
        with texelflow.Interpreter(model, backend="native") as interpreter:
            assert interpreter(np.ones((8, 8, 3), np.float32)).mean() == pytest.approx(1.5)
    with pytest.raises(ValueError, match=r"a bundle of 2 models; take one of them: masks\.task/masks8"):
        texelflow.Interpreter(str(bundle))


def test_workers_of_an_archive_get_the_bundle(bundle: Path, tmp_path: Path) -> None:
    staged = prepare_staging(Settings(model=str(bundle / "masks8.tflite")), tmp_path / "out")
    assert staged.model == "masks8.tflite"
    assert Path(staged.settings.model).parent.read_bytes() == bundle.read_bytes()
    assert texelflow.Model.load(staged.settings.model).inputs[0].shape == (1, 8, 8, 3)


def test_a_stride_of_nothing_is_one_line(tmp_path: Path) -> None:
    """tflite-runtime computes an output of no size; other runtimes refuse the model."""
    path = tmp_path / "masks.tflite"
    path.write_bytes(masks_of(8, stride=0))
    meaning: dict[str, Any] = {"input_range": (0, 1), "activation": "sigmoid", "channel": 0}
    with (
        pytest.raises(texelflow.ModelError, match="masks"),
        texelflow.Segmenter(path, "cpu", cpu="tflite", **meaning, quiet=True) as segment,
    ):
        segment(np.zeros((8, 8, 3), np.uint8))
