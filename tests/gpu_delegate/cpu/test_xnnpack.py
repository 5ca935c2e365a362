"""Instances in TensorFlow Lite on the CPU that share packed weights: equal outputs, refusals, memory, runtimes."""

import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import exhaustive, one_in
from tests.model_files.model_builder import selfie_like
from tests.model_files.sketch import GraphCase, Sketch
from tests.tables.graph_cases import CASES
from texelflow import Segmenter
from texelflow.app.frame.inference.backends import CpuChoice
from texelflow.app.frame.inference.cpu_choice import chosen_cpu_path
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import rgba_format
from texelflow.gpu_delegate.base.errors import ModelError, UsageError
from texelflow.gpu_delegate.cpu import interpreter, shared_interpreter, xnnpack
from texelflow.gpu_delegate.cpu.interpreter import InterpreterOptions, LocalInterpreter
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.cpu.xnnpack import XnnpackCache, XnnpackLibrary, why_not_shared
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.programs.weights_cache import WeightsCache
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model

tflite = pytest.importorskip("tflite_runtime.interpreter", reason="no wheels of tflite-runtime for this Python")
INSTANCES = 8
UNSHARED = ("moved integers, transpose", "moved truth values, transpose")  # types that XNNPACK lacks
FAILING = "DEQUANTIZE constant that is an output"  # in the XNNPACK of tflite-runtime 2.14
RUN = [case for case in CASES if not case.refused and case.name != FAILING]
SAMPLE = [*RUN[::3], *(case for case in RUN if case.name in UNSHARED)]


@pytest.fixture(autouse=True)
def _known_anew() -> Iterator[None]:
    why_not_shared.cache_clear()
    yield
    why_not_shared.cache_clear()


def image_of(graph: Graph) -> npt.NDArray[np.float32]:
    return np.random.default_rng(3).random(graph.tensors[graph.inputs[0]].shape, np.float32)


@one_in(2, "is_hard", [False, True], ids=["soft", "hard"])
def test_outputs_are_those_of_instances_without_it(is_hard: bool) -> None:
    graphs = [read_model(selfie_like(1)), read_model(selfie_like(2, size=(62, 46)), "other")]
    cache = ModelSharing()
    made = [(graph, Reference(graph, 1, weights_cache=cache)) for graph in [*graphs, *graphs]]
    assert {reference.unshared for _, reference in made} == {""}
    with pytest.raises(UsageError, match="call finalize_soft"):
        made[0][1].run(image_of(graphs[0]))
    cache.finalize_hard() if is_hard else cache.finalize_soft()
    for graph, reference in made:
        assert reference.run(image_of(graph))[0].tobytes() == Reference(graph, 1).run(image_of(graph))[0].tobytes()
    cache.finalize_hard()  # after soft finalization, too
    with pytest.raises(UsageError, match="takes no further instance"):
        Reference(graphs[0], 1, weights_cache=cache)
    assert made[0][1].run(image_of(graphs[0]))[0].std() > 0


@exhaustive
def test_further_instances_of_the_same_models_alone() -> None:
    graph = read_model(selfie_like(1))
    cache = ModelSharing()
    first = Reference(graph, 1, weights_cache=cache)
    cache.finalize_soft()
    (wanted,) = first.run(image_of(graph))
    assert Reference(graph, 2, weights_cache=cache).run(image_of(graph))[0].tobytes() == wanted.tobytes()
    with pytest.raises(UsageError, match=r"the weight .* of model is not the one"):
        Reference(read_model(selfie_like(2)), 1, weights_cache=cache)
    del first
    gc.collect()
    assert cache._held == [], "XNNPACK's cache goes with its last interpreter"
    again = Reference(graph, 1, weights_cache=cache)  # whose weights are packed anew
    assert again.run(image_of(graph))[0].tobytes() == wanted.tobytes()


@one_in(3, "case", SAMPLE, ids=lambda case: case.name)
def test_ops_that_xnnpack_has_and_lacks(case: GraphCase) -> None:
    graph = case.graph()
    inputs = case.inputs(graph)
    cache = ModelSharing()
    shared = Reference(graph, 1, weights_cache=cache)
    cache.finalize_hard()
    lacking = "XNNPACK does not take model: there are no packed weights to be shared"
    assert shared.unshared == (lacking if case.name in UNSHARED else "")
    for found, wanted in zip(shared.run(inputs), Reference(graph, 1).run(inputs), strict=True):
        assert found.tobytes() == wanted.tobytes()


def test_what_xnnpack_takes_and_fails_to_run_fails_alike() -> None:
    (case,) = (case for case in CASES if case.name == FAILING)
    graph = case.graph()
    inputs = case.inputs(graph)
    cache = ModelSharing()
    shared = Reference(graph, 1, weights_cache=cache)
    cache.finalize_hard()
    for reference in (shared, Reference(graph, 1)):
        with pytest.raises(ModelError, match="cannot run this model on the CPU: failed to setup XNNPACK runtime"):
            reference.run(inputs)


def test_segmenters_share_and_free_it_when_the_last_is_closed() -> None:
    frame = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    cache, segmenter = WeightsCache(), partial(Segmenter, "selfie", "cpu", cpu="tflite", threads=1)
    made = [segmenter(weights_cache=cache) for _ in range(2)]
    cache.finalize_soft()
    masks = [segment(frame) for segment in (*made, segmenter())]
    assert masks[0].tobytes() == masks[1].tobytes() == masks[2].tobytes()
    made[0].close()
    assert made[1](frame).tobytes() == masks[2].tobytes()
    assert cache._sharing._held
    made[1].close()
    assert cache._sharing._held == []


def test_xnnpack_itself_refuses_instances_after_hard_finalization() -> None:
    model, options = write_model(read_model(selfie_like(1))), InterpreterOptions(1, 1)
    cache = XnnpackCache(XnnpackLibrary(tflite), len(model))
    made = LocalInterpreter(model, options, sharing=cache.delegate(1))
    cache.finalize(is_hard=True)
    with pytest.raises(ModelError, match="cannot run this model on the CPU"):
        LocalInterpreter(model, options, sharing=cache.delegate(1))
    assert made.run([image_of(read_model(model))])[0].std() > 0
    made.close()
    with pytest.raises(UsageError, match="is closed"):
        made.run([image_of(read_model(model))])
    gc.collect()  # what was refused goes ahead of the cache, too
    cache.close()
    cache.close()


def test_a_runtime_without_one_is_named_and_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    for module in (interpreter, shared_interpreter):
        monkeypatch.setattr(module, "load_interpreter_module", lambda *_: litert)
    cache, model = ModelSharing(), load_segmentation("selfie")
    path, line = chosen_cpu_path(model, rgba_format((64, 48)), CpuChoice("tflite"), NetworkOptions(weights_cache=cache))
    cache.finalize_soft()
    assert line == path.unshared
    assert re.fullmatch(
        r"ai-edge-litert [\d.]+ exports no weights cache of XNNPACK, so each instance on the CPU packs weights of its "
        r"own; tflite-runtime 2\.14 has one",
        line,
    )
    assert path.network(np.zeros((1, 256, 256, 3), np.float32)).shape == (256, 256)


def test_a_cache_that_crashes_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    monkeypatch.setattr(xnnpack, "_PROGRAM", "import os; os.abort()")
    graph, cache = read_model(selfie_like(1)), ModelSharing()
    reference = Reference(graph, 1, weights_cache=cache)
    assert re.fullmatch(
        r"the weights cache of XNNPACK does not work with this tflite-runtime [\d.]+: a trial of it ends with SIGABRT",
        reference.unshared,
    )
    cache.finalize_soft()
    assert reference.run(image_of(graph))[0].std() > 0


MEMORY = """
import json, sys
from pathlib import Path
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
graph = read_model(Path(sys.argv[1]).read_bytes())
def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
for cache in (ModelSharing(), None):
    made = [Reference(graph, 1, weights_cache=cache)]
    before = resident_bytes()
    made += [Reference(graph, 1, weights_cache=cache) for _ in range(int(sys.argv[2]))]
    print(resident_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what memory a process has")
def test_further_instances_take_no_weights(tmp_path: Path) -> None:
    m = Sketch(0)
    m.output(m.conv(m.conv(m.image(4, 4, 512), 1024), 512))
    model = m.build()
    (tmp_path / "model.tflite").write_bytes(model)
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "model.tflite"), str(INSTANCES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shared_bytes, own_bytes = map(int, done.stdout.split())
    assert own_bytes > 0.9 * INSTANCES * len(model)
    assert shared_bytes < 0.5 * INSTANCES * len(model)
