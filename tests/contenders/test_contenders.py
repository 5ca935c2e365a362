"""The tool that times whole models on the CPU: a line for each, whose values are compared, and which rivals count."""

from pathlib import Path

import numpy as np
import pytest

from tests.contenders.__main__ import columns, counts, largest_error, measured
from tests.contenders.rival_runs import GIVEN, PLAIN, how_it_ended
from tests.contenders.rival_trial import telling_line, tried
from tests.model_files.partial_models import quick_with_an_end
from tests.quantized.networks import Net
from tests.quantized.quantizer import quantized_twin


def test_a_line_of_a_model_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "parts.tflite"
    path.write_bytes(quick_with_an_end())
    line = measured(path, 1, 0.05).line
    assert line.startswith("| parts | float, 9 of 10 operators | ")
    assert line.count("|") == 6 + len(columns())


def test_a_line_of_a_model(tmp_path: Path) -> None:
    net = Net(0)
    net.output(net.conv(net.image(8, 9, 3), 5))
    path = tmp_path / "small.tflite"
    path.write_bytes(quantized_twin(net, [[np.random.default_rng(0).uniform(0, 1, (1, 8, 9, 3)).astype(np.float32)]]))
    line = measured(path, 1, 0.05).line
    assert line.startswith("| small | 8-bit | 0 of 360 | 0.")
    assert line.count("|") == 6 + len(columns())


def test_a_rival_that_does_not_take_a_model_says_why_in_a_line(tmp_path: Path) -> None:
    for name in (GIVEN, PLAIN):
        (tmp_path / name).write_bytes(bytes(64))
    found = tried("XNNPACK", tmp_path, 1)
    assert isinstance(found, str)
    assert "not a valid Flatbuffer" in found
    assert "\n" not in found
    assert str(tmp_path) not in found


def test_what_tells_most_of_what_a_program_wrote() -> None:
    text = "loading\nlayer Pad of /tmp/a/model not exists or registered\n\nthe network is refused\n"
    assert telling_line(text, Path("/tmp/a")) == "layer Pad of model not exists or registered"
    assert telling_line("one\ntwo\n", Path("/tmp/a")) == "two"
    assert telling_line("", Path("/tmp/a"))


def test_how_a_process_ended() -> None:
    assert how_it_ended(-11) == "was ended by SIGSEGV"
    assert how_it_ended(3) == "ended with exit code 3"


def test_the_largest_error_is_a_share_of_its_outputs_largest_value() -> None:
    ones, large = np.ones((2, 3), np.float32), np.full(4, -100, np.float32)
    assert largest_error([ones, large], [ones, large]) == 0
    assert largest_error([ones.ravel(), large + 1], [ones, large]) == pytest.approx(0.01)
    assert largest_error([ones * 1.5, large + 1], [ones, large]) == pytest.approx(0.5)
    assert largest_error([ones.astype(np.uint8)], [ones.astype(np.uint8) + 1]) == pytest.approx(0.5)  # no byte wraps
    assert largest_error([ones * 0.25], [ones * 0]) == 0.25
    for wrong in ([ones[:1], large], [ones], [ones * np.nan, large], [ones, large * np.inf]):
        assert largest_error(wrong, [ones, large]) == np.inf


def test_which_rivals_count() -> None:
    assert counts("MNN", 0.009, 0.0)
    assert not counts("MNN", 0.011, 0.0)
    assert counts("MNN", 0.11, 0.03)
    assert not counts("MNN", 0.13, 0.03)
    assert counts("XNNPACK", np.inf, 0.0)
