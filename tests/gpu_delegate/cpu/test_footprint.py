"""Estimates of what a graph costs in TensorFlow Lite: never too low, small for real models, enforced."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.markers import exhaustive
from tests.helpers.running import ROOT
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu.footprint import MOST_BYTES, MOST_SECONDS, footprint_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.reading.reader import load_model, read_model

MIB = 1 << 20
Draw = Callable[[Sketch], int | tuple[int, ...]]


def model(draw: Draw) -> bytes:
    sketch = Sketch(0)
    outputs = draw(sketch)
    sketch.output(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    return sketch.build()


# Each takes some 60 MiB or more by what it is named after.
DEAR: dict[str, Draw] = {
    "pointers of a convolution": lambda m: m.conv(m.image(70, 70, 1), 1, (41, 41)),
    "pointers of a depthwise one": lambda m: m.depthwise(m.image(70, 70, 4), (41, 41)),
    "pointers of a transposed one": lambda m: m.transpose(m.image(330, 330, 1), 1, (9, 9), (1, 1), "SAME"),
    "pointers of a resize": lambda m: m.resize(m.image(600, 600, 1), (1200, 1200)),
    "copies of a dilated input": lambda m: m.conv(m.image(150, 150, 96), 1, (3, 3), dilation=(2, 2)),
    "outputs and their copies": lambda m: tuple(m.unary("NEG", m.image(400, 400, 8)) for _ in range(8)),
}
MEASURE = """
import json, sys
from pathlib import Path
from tests.fuzz.children import in_child
from tests.fuzz.models import run_once
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
load_interpreter_module()
idle = in_child(lambda: "").most_bytes
found = []
for path in sys.argv[1:]:
    graph = read_model(Path(path).read_bytes())
    for keep_all in (False, True):
        ending = in_child(lambda: str(run_once(graph, keep_all)))
        assert ending.how == "text", ending
        found.append(ending.most_bytes - idle)
print(json.dumps(found))
"""


@exhaustive
def test_takes_no_more_memory_than_expected(tmp_path: Path) -> None:
    for number, draw in enumerate(DEAR.values()):
        (tmp_path / str(number)).write_bytes(model(draw))
    files = [str(tmp_path / str(number)) for number in range(len(DEAR))]
    command = [sys.executable, "-c", MEASURE, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    taken = json.loads(done.stdout)
    expected = [footprint_of(load_model(file), keep).memory_bytes for file in files for keep in (False, True)]
    too_much = [what for what, (most, limit) in enumerate(zip(taken, expected, strict=True)) if most > limit + 24 * MIB]
    assert too_much == []
    dear = [max(pair) for pair in zip(taken[::2], taken[1::2], strict=True)]
    assert min(dear) > 50 * MIB, "or the bounds are tested by nothing"


def relu_chain(m: Sketch) -> int:
    x = m.image(512, 512, 100)
    for _ in range(30):
        x = m.unary("RELU", x)
    return x


def shared_weights(m: Sketch) -> int:
    x, weights = m.input((1, 3000)), m.random(3000, 3000)
    for _ in range(60):
        x = m.op("FULLY_CONNECTED", [x, weights], (1, 3000))
    return x


REFUSED: dict[str, tuple[Draw, bool, str]] = {
    "all tensors of a chain": (relu_chain, True, "MiB of memory"),
    "weights that many share": (shared_weights, False, "MiB of memory"),
    "many outputs": (lambda m: tuple(m.unary("RELU", m.image(999, 999, 8)) for _ in range(70)), False, "MiB of memory"),
    "a large window": (lambda m: m.conv(m.image(600, 600, 1), 1, (41, 41)), False, "MiB of memory"),
    "copies": (lambda m: m.conv(m.image(700, 700, 128), 1, (3, 3), dilation=(2, 2)), True, "MiB of memory"),
    "a slow window": (lambda m: m.pool("MAX_POOL_2D", m.image(900, 900, 4), (90, 90)), False, "might run for "),
}


@pytest.mark.parametrize(("draw", "keep_all", "text"), REFUSED.values(), ids=REFUSED)
def test_refuses_what_is_too_much(draw: Draw, keep_all: bool, text: str) -> None:
    graph = read_model(model(draw), "large")
    with pytest.raises(UnsupportedError, match=text) as caught:
        Reference(graph, keep_all_tensors=keep_all)
    assert str(caught.value).startswith("large: TensorFlow Lite might ")
    assert str(caught.value).isprintable()


def test_a_chain_needs_two_of_its_maps() -> None:
    graph = read_model(model(relu_chain))
    size_bytes = 512 * 512 * 100 * 4
    without, all_of_them = (footprint_of(graph, keep).memory_bytes / size_bytes for keep in (False, True))
    assert (round(without), round(all_of_them)) == (6, 35)  # an input and an output with copies, and what is between


@pytest.mark.parametrize("name", ["selfie", "selfie-landscape"])
def test_real_models_are_far_from_the_limits(name: str, request: pytest.FixtureRequest) -> None:
    graph = load_model(request.getfixturevalue(f"{name.replace('-', '_')}_model"))
    for keep_all in (False, True):
        found = footprint_of(graph, keep_all)
        assert found.memory_bytes < MOST_BYTES / 10
        assert found.run_s < MOST_SECONDS / 10
