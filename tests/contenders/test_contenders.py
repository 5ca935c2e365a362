"""The tool that times whole models on the CPU: a line for each, whose values are compared."""

from pathlib import Path

import numpy as np

from tests.contenders.__main__ import columns, measured
from tests.model_files.partial_models import quick_with_an_end
from tests.quantized.networks import Net
from tests.quantized.quantizer import quantized_twin


def test_a_line_of_a_model_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "parts.tflite"
    path.write_bytes(quick_with_an_end())
    line, _ = measured(path, 1, 0.05)
    assert line.startswith("| parts | float, 9 of 10 operators | ")
    assert line.count("|") == 4 + len(columns())


def test_a_line_of_a_model(tmp_path: Path) -> None:
    net = Net(0)
    net.output(net.conv(net.image(8, 9, 3), 5))
    path = tmp_path / "small.tflite"
    path.write_bytes(quantized_twin(net, [[np.random.default_rng(0).uniform(0, 1, (1, 8, 9, 3)).astype(np.float32)]]))
    line, _ = measured(path, 1, 0.05)
    assert line.startswith("| small | 8-bit | 0 of 360 | 0.")
    assert line.count("|") == 4 + len(columns())
