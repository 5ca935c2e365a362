"""The networks with made-up weights, against what others have published about them."""

from pathlib import Path

import numpy as np
import pytest

from texelflow.app.models.mobilebert import WORDS, mobilebert
from texelflow.app.models.network_builder import Network
from texelflow.app.models.networks import ALL_NETWORKS, drawn, write_network
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.reading.writer import write_model


@pytest.mark.parametrize("name", ALL_NETWORKS)
def test_layers_are_the_published_ones(name: str) -> None:
    network, (_, said) = drawn(name), ALL_NETWORKS[name]
    graph = network.graph(name)
    assert [graph.tensors[tensor].shape for tensor in graph.outputs] == list(said.outputs)
    assert said.operators in (None, len(graph.nodes))
    for found, published in ((network.parameters, said.parameters_m), (network.macs, said.macs_m)):
        if published:
            assert found / 1e6 == pytest.approx(published, rel=0.01, abs=said.rounded_m * (published > 100))
    if said.file_mb:
        constants = [tensor.data for tensor in graph.tensors.values() if tensor.data is not None]
        assert sum(values.nbytes for values in constants) / 1e6 == pytest.approx(said.file_mb, rel=0.005, abs=0.03)


def test_tensorflow_lite_runs_a_file_and_finds_no_class_certain(tmp_path: Path) -> None:
    path = write_network("mobilenet-v2", tmp_path)
    interpreter = load_interpreter_module().Interpreter(str(path))
    interpreter.allocate_tensors()
    source, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    interpreter.set_tensor(source["index"], np.random.uniform(-1, 1, source["shape"]).astype(np.float32))
    interpreter.invoke()
    found = interpreter.get_tensor(result["index"])
    assert found.sum() == pytest.approx(1, abs=1e-5)
    assert 1e-3 < found.max() < 0.5


def test_tensorflow_lite_attends_to_the_words_that_are_there_alone() -> None:
    net = Network()
    mobilebert(net, blocks=1)
    file = write_model(net.graph("mobilebert"))
    assert not read_model(file, "mobilebert").opaque
    interpreter = load_interpreter_module().Interpreter(model_content=file)
    interpreter.allocate_tensors()
    words, mask, segments = (detail["index"] for detail in interpreter.get_input_details())
    given, there = np.arange(WORDS, dtype=np.int32)[None], np.ones((1, WORDS), np.int32)
    there[0, 299:302] = 0  # words see those beside them
    answers = []
    for place, word in ((0, 0), (300, 9), (200, 9)):
        given[0, place] = word
        for tensor, values in ((words, given), (mask, there), (segments, given % 2)):
            interpreter.set_tensor(tensor, values)
        interpreter.invoke()
        answers.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
    first, hidden, seen = np.array(answers)[:, :, 0, :100]
    assert np.isfinite(first).all()
    np.testing.assert_allclose(hidden, first, rtol=1e-5)
    assert np.abs(seen - first).max() > 1e-4


def test_the_reader_finds_in_a_file_what_was_drawn(tmp_path: Path) -> None:
    name = "ssd-mobilenet"
    found = load_model(write_network(name, tmp_path))
    assert [node.attributes for node in found.nodes] == [node.attributes for node in drawn(name).graph(name).nodes]
