"""Programs for ai-edge-litert, of which the import alone is changed: they print the same in each runtime and ours."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.gpu_delegate.reading.test_signatures import several
from tests.helpers.runtimes import RUNTIMES
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.quantized_models import small_quantized
from tests.model_files.state_models import drawn, lstm
from tests.quantized.networks import Net
from tests.quantized.quantizer import Scheme, quantized_twin

PROGRAMS = Path(__file__).parents[2] / "litert_programs"
IMPORT = "from ai_edge_litert.interpreter import Interpreter\n"
OURS = "from texelflow import Interpreter\n"
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def classifier(scheme: Scheme | None = None) -> bytes:
    """Scores of 8 classes (1, 8) for a picture (1, 12, 16, 3)."""
    net = Net(5)
    x = net.conv(net.image(12, 16, 3), 8, (3, 3), activation="RELU6")
    mean = net.op("MEAN", [net.conv(x, 8), net.constant((1, 2), "int32")], (1, 8), keep_dims=False)
    net.output(net.op("SOFTMAX", [mean], (1, 8), beta=1.0))
    if scheme is None:
        return net.build()
    rng = np.random.default_rng(0)
    return quantized_twin(net, [[rng.random((1, 12, 16, 3), np.float32)] for _ in range(3)], scheme)


def of_any_batch() -> bytes:
    m, rng = ModelBuilder(), np.random.default_rng(0)
    x = m.tensor((1, 6, 8, 3), signature=(-1, 6, 8, 3))
    m.inputs.append(x)
    weights, bias = m.constant(rng.normal(0, 0.3, (6, 3, 3, 3))), m.constant(rng.normal(0, 1, 6))
    y = m.op("CONV_2D", [x, weights, bias], (1, 3, 4, 6), padding="SAME", stride=(2, 2), activation="RELU")
    m.output(m.op("MEAN", [y, m.constant((1, 2), "int32")], (1, 6), keep_dims=False))
    return m.build()


MODELS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "float": ("label_image.py", classifier),
    "uint8": ("label_image.py", lambda: classifier(Scheme("uint8", per_channel=False))),
    "signatures": ("call_signatures.py", several),
    "batches": ("resize_batches.py", of_any_batch),
    "int8": ("bytes_of_steps.py", small_quantized),
    "states": ("stream_of_sound.py", lambda: drawn(lstm)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_it_prints_the_same(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, make = MODELS[kind]
    model = tmp_path / "model.tflite"
    model.write_bytes(make())
    arguments: tuple[object, ...] = (model,)
    if name == "label_image.py":
        (tmp_path / "labels.txt").write_text("".join(f"class {number}\n" for number in range(8)))
        pixels = np.random.default_rng(3).integers(0, 256, (24, 32, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "picture.png")
        arguments = ("-m", model, "-i", tmp_path / "picture.png", "-l", tmp_path / "labels.txt", "--num_threads", 2)
    text = (PROGRAMS / name).read_text()
    assert text.count(IMPORT) == 1
    imports = [IMPORT.replace("ai_edge_litert", runtime) for runtime in RUNTIMES]
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    printed = []
    for each in (*imports, OURS):
        exec(compile(text.replace(IMPORT, each), name, "exec"), {"__name__": "__main__"})
        printed.append(re.sub(" +$", "", capsys.readouterr().out, flags=re.M))  # one of its errors ends in a space
    *theirs, ours = printed
    assert len(ours.splitlines()) >= 5
    for other in theirs:
        assert NUMBER.sub("#", ours) == NUMBER.sub("#", other)
        wanted, found = ([float(each) for each in NUMBER.findall(out)] for out in (other, ours))
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=0 if kind == "uint8" else 2e-6)
