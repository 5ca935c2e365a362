"""The results of `make quantized`: how models are quantized, inputs, nearness, and what falls short."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.quantized.__main__ import COLUMNS, SCHEMES, Judged, judged, measured, row
from tests.quantized.inputs import NOISE, PICTURES, inputs_of
from tests.quantized.judge import Nearness, faults, nearness, overlap
from tests.quantized.networks import NETWORKS_TO_QUANTIZE, Net
from tests.quantized.quantizer import Scheme, quantized_twin
from texelflow.gpu_delegate.reading.reader import read_model

PERFECT = Nearness(1.0, 0.0, 1.0, 1.0, 1.0)


def small() -> bytes:
    """A quantized network whose values XNNPACK rounds otherwise."""
    net = Net(0)
    net.output(net.resize(net.conv(net.image(7, 9, 3), 4, (3, 3), activation="RELU"), (13, 17)))
    return quantized_twin(net, [[values] for values in inputs_of((1, 7, 9, 3), "float32", pictures=2, noise=1)])


def test_figures_of_a_network_made_here() -> None:
    figures = measured(Judged("small", small), "native", pictures=3, noise=2)
    assert figures["inputs"] == 5
    assert figures["ours"]["values"] == 1 > figures["xnnpack"]["values"]
    assert figures["faults"] == []
    assert len(row(figures)) == len(COLUMNS)


def test_every_network_is_judged_in_every_scheme(tmp_path: Path) -> None:
    (tmp_path / "given.tflite").write_bytes(b"")
    found = list(judged("", tmp_path))
    assert len(found) == len(NETWORKS_TO_QUANTIZE) * (len(SCHEMES) + 1) + 1
    assert [one.name for one in judged("given", tmp_path)] == ["given"]


def test_inputs_are_different_pictures_and_noise_as_bytes_of_the_type() -> None:
    inputs = inputs_of((1, 9, 7, 3), "int8")
    assert len(inputs) == PICTURES + NOISE == 100
    assert len({values.tobytes() for values in inputs}) == 100
    assert all((a.astype(int) + 128 == b).all() for a, b in zip(inputs, inputs_of((1, 9, 7, 3), "uint8"), strict=True))
    assert len(inputs_of((1, 9, 7, 4), "float32")) == NOISE


def test_scales_follow_the_rules() -> None:
    """Moves keep the scale, LOGISTIC has a fixed one, and parts of a CONCATENATION are brought to one."""
    net = Net(0)
    x = net.image(5, 6, 3)
    gate = net.unary("LOGISTIC", net.conv(x, 4))
    net.output(net.joined([gate, net.conv(x, 3), net.reshaped(gate, 1, 5, 6, 4)], 3))
    samples = [[np.random.default_rng(0).uniform(0, 1, (1, 5, 6, 3)).astype(np.float32)]]
    graph = read_model(quantized_twin(net, samples, Scheme()))
    ops = {node.op: [graph.tensors[i].quantization for i in (*node.outputs, *node.inputs)] for node in graph.nodes}
    assert ops["LOGISTIC"][0].scales == (1 / 256,)  # type: ignore[union-attr]
    assert len({*ops["RESHAPE"]}) == 1
    assert len({*ops["CONCATENATION"]}) == 1
    assert [node.op for node in graph.nodes].count("QUANTIZE") == 2
    assert len(ops["CONV_2D"][2].scales) == 3  # type: ignore[union-attr]


def test_nearness_counts_equal_values_greatest_ones_and_classes() -> None:
    vector = np.arange(20, dtype=np.uint8)[None]
    other = vector.copy()
    other[0, 3] = 90
    found = nearness([[vector], [other]], [[vector], [vector]])
    assert (found.values, found.top, found.classes, found.apart) == (39 / 40, 0.5, None, 87)
    maps = np.zeros((1, 8, 8), np.int32)
    changed = maps.copy()
    changed[0, 0, :4] = 1
    assert nearness([[changed]], [[maps]]).classes == 60 / 64


def test_detections_match_by_class_and_overlap() -> None:
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 0.5, 0.5]]], np.float32)
    right = [boxes, np.array([[1.0, 2.0]]), np.array([[0.9, 0.8]]), np.array([2.0])]
    moved = [boxes * np.float32(0.97), *right[1:]]
    far = [boxes * np.float32(0.9), *right[1:]]
    renamed = [boxes, np.array([[1.0, 3.0]]), *right[2:]]
    found = [nearness([outputs], [right]).detections for outputs in (right, moved, far, renamed)]
    assert found == [1.0, 1.0, 0.0, 0.5]
    assert overlap(boxes[0, 0], boxes[0, 1]) == pytest.approx(0.25)


def test_what_falls_short_is_named() -> None:
    assert faults(PERFECT, PERFECT) == []
    assert faults(replace(PERFECT, values=0.985, top=0.97), replace(PERFECT, values=0.99, top=0.98)) == []
    short = faults(replace(PERFECT, values=0.97, top=0.95, classes=0.9, detections=0.99), replace(PERFECT, values=0.99))
    assert [line.split(":")[0] for line in short] == ["values", "top", "classes", "detections"]
