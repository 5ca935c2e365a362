"""Known errors and limits of the original delegate: here the results are TensorFlow Lite's.

Most of it is one model with an output for each quirk, as one GL program and as this CPU's code.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.engine import DEVICES, on_cpu, run
from tests.helpers.markers import exhaustive
from tests.helpers.native import native_networks
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.moves import cut, gathered, ints, joined, padded, reshaped, transposed
from tests.model_files.sketch import Sketch
from tests.tables.op_vectors import VECTORS, vector_graph
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Conv2D, Graph, Padding, Pool2D
from texelflow.gpu_delegate.model.operators import attributes_of
from texelflow.gpu_delegate.passes.pipeline import PASSES, run_passes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions

_AROUND = ((0, 0), (1, 2), (2, 1), (0, 0))


def _padded_pool(op: str) -> Callable[[Sketch], int]:
    return lambda m: m.pool(op, m.pad(m.image(5, 7, 5), *_AROUND), (3, 3), padding="VALID")


def _padded_convolution(m: Sketch) -> int:
    return m.conv(padded(m, m.image(5, 7, 5), 2.5, *_AROUND), 3, (3, 3), padding="VALID")


def _padded_depthwise(m: Sketch) -> int:
    return m.depthwise(padded(m, m.image(5, 7, 5), -1.5, *_AROUND), (3, 3), padding="VALID")


def _floored(op: str) -> Callable[[Sketch], int]:
    return lambda m: m.binary(op, m.image(4, 6, 5), m.constant([0.5, 1.5, 0.7, 2.0, 1.1]))


def _limited_leaky(m: Sketch) -> int:
    """The original passes over the lower limit where there is a slope."""
    return m.binary("MAXIMUM", m.unary("LEAKY_RELU", m.image(4, 6, 5), alpha=0.5), m.constant(-0.25))


def _compared(m: Sketch) -> tuple[int, ...]:
    """Read by several, and an output itself: the original wants one reader, CAST or SELECT."""
    x = m.image(4, 6, 5)
    condition = m.binary("GREATER", x, m.constant(0.0), dtype="bool")
    chosen = m.op("SELECT_V2", [condition, x, m.constant(7.0)], (1, 4, 6, 5))
    return condition, chosen, m.unary("CAST", condition)


def _shrunk(m: Sketch) -> int:
    return cut(m, m.input((2, 5, 7, 5)), (1, 0, -1, 0), (2, 5, 0, 5), (1, 1, 1, 1), shrink_axis_mask=5)


QUIRKS: Mapping[str, Callable[[Sketch], int | tuple[int, ...]]] = MappingProxyType(
    {
        "zeros are no part of an average": _padded_pool("AVERAGE_POOL_2D"),
        "zeros count in a maximum": _padded_pool("MAX_POOL_2D"),
        "a value that is not zero, convolution": _padded_convolution,
        "a value that is not zero, depthwise": _padded_depthwise,
        "a value that is not zero, alone": lambda m: padded(m, m.image(4, 5, 3), -7.0, *_AROUND),
        "FLOOR": lambda m: m.unary("FLOOR", m.image(4, 6, 5)),
        "FLOOR_DIV": _floored("FLOOR_DIV"),
        "FLOOR_MOD": _floored("FLOOR_MOD"),
        "paddings of three dimensions, with a batch": lambda m: m.pad(m.input((3, 5, 4)), (1, 2), (0, 1), (2, 0)),
        "paddings of a batch": lambda m: m.pad(m.input((2, 3, 4, 5)), (1, 1), (0, 0), (0, 0), (0, 0)),
        "bilinear, to fewer pixels": lambda m: m.resize(m.image(9, 11, 5), (4, 5)),
        "nearest, to fewer pixels": lambda m: m.resize(m.image(9, 11, 5), (4, 5), "RESIZE_NEAREST_NEIGHBOR"),
        "taller and narrower": lambda m: m.resize(m.image(5, 11, 3), (9, 4), half_pixel_centers=True),
        "an axis that shapes leave open": lambda m: joined(m, 1, m.image(2, 2, 2), m.image(2, 2, 2)),
        "a table joined along its rows": lambda m: joined(m, 0, m.input((2, 2)), m.input((2, 2))),
        "a constant map joined": lambda m: joined(m, 3, m.image(3, 4, 5), m.random(1, 3, 4, 3)),
        "one input joined with itself": lambda m: joined(m, 2, *[m.image(3, 4, 5)] * 2),
        "a batch that changes": lambda m: reshaped(m, m.input((3, 4, 2, 5)), 2, 6, 2, 5),
        "ends of a slice that its shape does not tell": _shrunk,
        "backwards": lambda m: cut(m, m.image(5, 7, 5), (0, 4, -1, -1), (1, 0, -8, -6), (1, -1, -2, -1)),
        "softmax with beta": lambda m: m.unary("SOFTMAX", m.image(4, 6, 5), beta=0.25),
        "a mean over channels": lambda m: m.mean(m.image(4, 6, 5), (3,)),
        "a mean over a batch": lambda m: m.mean(m.input((3, 4, 6, 5)), (0, 2)),
        "a difference of one input": lambda m: m.binary("SUB", *[m.image(4, 6, 5)] * 2),
        "a sum of one input": lambda m: m.binary("ADD", *[m.image(4, 6, 5)] * 2),
        "a constant map, product": lambda m: m.binary("MUL", m.image(4, 6, 5), m.random(4, 6, 5)),
        "a constant map, quotient": lambda m: m.binary("DIV", m.random(1, 4, 6, 5), m.constant(0.5)),
        "a row repeated over a map": lambda m: m.binary("ADD", m.image(4, 6, 5), m.image(1, 6, 5)),
        "GELU by its definition": lambda m: m.unary("GELU", m.image(4, 6, 5), approximate=False),
        "GELU by tanh": lambda m: m.unary("GELU", m.image(4, 6, 5), approximate=True),
        "a symmetric mirror": lambda m: m.op(
            "MIRROR_PAD", [m.image(3, 4, 5), ints(m, _AROUND)], (1, 6, 7, 5), mode=1
        ),
        "limits behind a slope": _limited_leaky,
        "comparisons with several readers": _compared,
        "a transpose, a gather, a sign": lambda m: m.unary(
            "SIGN", gathered(m, transposed(m, m.image(4, 6, 5), 0, 3, 1, 2), 2, 3, 0, 3)
        ),
        "a batch in everything": lambda m: m.pool("MAX_POOL_2D", m.conv(m.image(6, 5, 3, 3), 5, (3, 3)), (2, 2)),
        "sums of four inputs": lambda m: m.op("ADD_N", [m.image(4, 5, 3) for _ in range(4)], (1, 4, 5, 3)),
    }
)  # fmt: skip


class _Model:
    """All quirks side by side: the file, inputs, and TensorFlow Lite's outputs by the quirk."""

    def __init__(self) -> None:
        sketch = Sketch(0)
        drawn = {name: draw(sketch) for name, draw in QUIRKS.items()}
        self.names = [name for name, made in drawn.items() for _ in (made if isinstance(made, tuple) else (made,))]
        sketch.output(*(i for made in drawn.values() for i in (made if isinstance(made, tuple) else (made,))))
        self.graph: Graph = read_model(data := sketch.build())
        rng = np.random.default_rng(1)
        self.inputs = [rng.uniform(-2, 2, self.graph.tensors[i].shape).astype(np.float32) for i in self.graph.inputs]
        self.wanted = on_cpu(data, self.inputs)

    def differing(self, outputs: Sequence[npt.NDArray[Any]]) -> list[str]:
        pairs = zip(self.names, outputs, self.wanted, strict=True)
        return [name for name, a, b in pairs if a.shape != b.shape or not np.allclose(a, b, rtol=1e-5, atol=1e-5)]


@pytest.fixture(scope="module")
def model() -> _Model:
    return _Model()


@exhaustive
@pytest.mark.parametrize("device", ["software", "hardware"])
def test_the_gpu_has_none_of_them(context: Context, model: _Model, device: str) -> None:
    with Program(context, compile_graph(model.graph, DEVICES[device])) as program:
        assert model.differing(run(program, model.inputs)) == []


@exhaustive
def test_nor_has_the_cpus_own_code(model: _Model) -> None:
    assert model.differing(native_networks({0: model.graph})[0].run(model.inputs)) == []


def ops_behind_passes(draw: Callable[[Sketch], int | tuple[int, ...]]) -> Graph:
    sketch = Sketch(0)
    drawn = draw(sketch)
    sketch.output(*(drawn if isinstance(drawn, tuple) else (drawn,)))
    return run_passes(read_model(sketch.build()), PASSES)[0]


@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_zeros_are_never_merged_into_a_pool(op: str) -> None:
    graph = ops_behind_passes(_padded_pool(op))
    pools = [node.attributes for node in graph.nodes if isinstance(node.attributes, Pool2D)]
    assert [pool.padding for pool in pools] == [Padding()]
    assert len(graph.nodes) == 2


@pytest.mark.parametrize("draw", [_padded_convolution, _padded_depthwise])
def test_another_value_is_never_merged_into_a_convolution(draw: Callable[[Sketch], int]) -> None:
    graph = ops_behind_passes(draw)
    assert len(graph.nodes) == 2
    assert attributes_of(graph.nodes[-1], Conv2D).padding == Padding()


@pytest.mark.parametrize("op", ["FLOOR", "FLOOR_DIV", "FLOOR_MOD", "CEIL", "ROUND"])
def test_floor_and_its_kin_stay(op: str) -> None:
    draw = _floored(op) if "_" in op else lambda m: m.unary(op, m.image(4, 6, 5))
    assert [node.op for node in ops_behind_passes(draw).nodes] == [op]


def test_a_kernel_that_is_missing_leaves_all_others_on_the_gpu() -> None:
    """The original gives the whole partition up; here that operator runs on the CPU, between two partitions."""
    model = ModelBuilder()
    shape = (1, 4, 6, 5)
    x = model.op("RELU", [model.op("NEG", [model.input(shape)], shape)], shape)
    y = model.op("TheirOwnOp", [x], shape)
    model.output(model.op("ADD", [model.op("EXP", [y], shape), x], shape))
    found = compile_partitions(read_model(model.build()), SOFTWARE)
    assert list(found.reasons) == [2]
    assert [list(partition.nodes) for partition in found.partitions] == [[0, 1], [3, 4]]


def test_what_its_opengl_lacks_is_one_partition() -> None:
    """All but integers that could be too large for floats, as far as a partition knows."""
    lacking = ("TRANSPOSE", "REDUCE_", "SPLIT", "CAST", "SELECT", "GATHER", "EQUAL", "SIGN", "CUMSUM")
    graphs = [vector_graph(case) for case in VECTORS if case["op"].startswith(lacking) and "IntTest" not in case["id"]]
    assert len(graphs) > 30
    for graph in graphs:
        found = compile_partitions(graph, SOFTWARE)
        assert (len(found.partitions), dict(found.reasons)) == (1, {}), graph.name
