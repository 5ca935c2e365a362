"""Matrix products and LSTM cells: contradictory files are refused, and what passes make of the others."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.engine import DEVICES, kernel_names
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import lstm_inputs
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.graph import ABSENT
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

Shape = tuple[int, ...]


def product(x: Shape, y: Shape, out: Shape, constant: bool = False, **options: Any) -> bytes:
    m = Sketch(0)
    m.output(m.op("BATCH_MATMUL", [m.input(x), m.random(*y) if constant else m.input(y)], out, **options))
    return m.build()


def cell(shapes: tuple[Shape, ...], outputs: tuple[Shape, ...], **options: Any) -> bytes:
    m = ModelBuilder()
    inputs = [m.input(shape) for shape in shapes]
    settings: dict[str, Any] = {"kernel_type": 1, "activation": "TANH"} | options
    m.output(*m.split("LSTM", inputs, outputs, **settings))
    return m.build()


CELL = ((2, 3), (2, 4), (16, 7), (16,), (2, 4))
CELL_OUTPUTS = ((2, 4), (2, 4), (2, 7), (2, 16))


@pytest.mark.parametrize(
    "model",
    [
        lambda: product((2, 3, 4), (2, 5, 6), (2, 3, 6)),
        lambda: product((2, 3, 4), (2, 6, 4), (2, 3, 6)),
        lambda: product((2, 3, 4), (3, 4, 6), (3, 3, 6)),
        lambda: product((4,), (4, 6), (6,)),
        lambda: product((2, 3, 4), (2, 4, 6), (2, 4, 6), adj_x=True),
        lambda: cell(((2, 3), (3, 4), *CELL[2:]), CELL_OUTPUTS),
        lambda: cell((*CELL[:2], (16, 6), *CELL[3:]), CELL_OUTPUTS),
        lambda: cell((*CELL[:3], (15,), CELL[4]), CELL_OUTPUTS),
        lambda: cell(CELL[:4], CELL_OUTPUTS),
        lambda: cell(CELL, CELL_OUTPUTS[:3]),
    ],
)
def test_a_contradiction_is_one_line(model: Callable[[], bytes]) -> None:
    graph = read_model(model())
    assert len(graph.opaque) == 1
    with pytest.raises(UnsupportedError) as caught:
        compile_graph(graph, DEVICES["software"])
    assert "\n" not in str(caught.value)


def test_the_size_of_a_product_is_inferred() -> None:
    graph = read_model(product((2, 3, 4), (4, 6), (2, 3, 7)))
    assert not graph.opaque
    assert graph.tensors[graph.outputs[0]].shape == (2, 3, 6)


def test_sizes_of_a_cells_outputs_are_inferred() -> None:
    graph = read_model(cell(CELL, (*CELL_OUTPUTS[:3], (2, 15))))
    assert not graph.opaque
    assert tuple(graph.tensors[index].shape for index in graph.outputs) == CELL_OUTPUTS


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"activation": "RELU"}, "an activation other than TANH, or limits"), ({"cell_clip": 0.5}, "or limits")],
)
def test_other_cells_stay_on_the_cpu(options: dict[str, Any], reason: str) -> None:
    (node,) = read_model(cell(CELL, CELL_OUTPUTS, **options)).opaque
    assert reason in node.attributes.reason  # type: ignore[attr-defined]


def test_the_full_cell_may_leave_out_gates() -> None:
    """Of which the first is the second input."""
    m = Sketch(0)
    m.output(m.op("LSTM", [m.input((2, 6)), *lstm_inputs(m, 6, 5, 5, cifg=True)], (2, 5), activation="TANH"))
    graph = read_model(m.build())
    assert not graph.opaque
    assert graph.nodes[0].inputs[1] == ABSENT


@pytest.mark.parametrize(
    ("model", "ops"),
    [
        (product((2, 3, 4), (4, 6), (2, 3, 6), constant=True), ["CONV_2D"]),
        (product((2, 3, 4), (1, 6, 4), (2, 3, 6), constant=True, adj_y=True), ["CONV_2D"]),
        (product((2, 3, 4), (2, 4, 6), (2, 3, 6), constant=True), ["BATCH_MATMUL"]),
        (product((2, 4, 3), (2, 4, 6), (2, 3, 6), adj_x=True), ["TRANSPOSE", "BATCH_MATMUL"]),
    ],
)
def test_products_become_what_kernels_can_say(model: bytes, ops: list[str]) -> None:
    graph, _ = run_passes(read_model(model))
    assert [node.op for node in graph.nodes] == ops


def test_a_cell_is_one_kernel_behind_its_concatenation() -> None:
    m = Sketch(0)
    x, last, state = m.input((1, 3)), m.input((1, 5)), m.input((1, 5))
    outputs = [(1, 5), (1, 5), (1, 8), (1, 20)]
    inputs = [x, last, m.random(20, 8), m.random(20), state]
    m.output(*m.split("LSTM", inputs, outputs, kernel_type=1, activation="TANH")[:2])
    assert len(kernel_names(compile_graph(read_model(m.build()), DEVICES["software"]))) == 2
