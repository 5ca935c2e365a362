"""Moves of data at their limits: long chains of maps, many parts, names, and slices put together by lanes."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.case_group import Case
from tests.helpers.engine import DEVICES, on_gpu
from tests.helpers.markers import exhaustive
from tests.model_files.moves import ints, mirrored, reshaped, sliced, transposed
from tests.model_files.sketch import GraphCase, Sketch
from tests.op_table.__main__ import chosen
from tests.tables.move_graphs import MOVE_GRAPHS
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

Step = Callable[
    [Sketch, int, int], int
]  # a sketch, a map and the step's number go in, a map of the same size comes out

DECLARATION = re.compile(r"\b(?:int|bool|float|vec4) (\w+) =")


def compiled(draw: Callable[[Sketch], int], fuse: bool = True) -> CompiledGraph:
    sketch = Sketch(0)
    sketch.output(draw(sketch))
    return compile_graph(read_model(sketch.build()), SOFTWARE, CompileOptions(fuse=fuse))


def chain(step: Step, count: int) -> Callable[[Sketch], int]:
    """Maps behind each other, read by a window."""

    def draw(m: Sketch) -> int:
        x = m.image(9, 9, 5)
        for number in range(count):
            x = step(m, x, number)
        return m.pool("MAX_POOL_2D", x, (3, 3))

    return draw


def mirror(m: Sketch, x: int, number: int) -> int:
    return sliced(m, mirrored(m, x, (0, 0), (1, 2), (2, 1), (0, 0)), (0, 1, 1, 0), (1, 9, 9, 5))


def fold(m: Sketch, x: int, number: int) -> int:
    sizes = (3, 27) if number % 2 else (27, 3)
    return reshaped(m, transposed(m, reshaped(m, x, 1, *sizes, 5), 0, 2, 1, 3), 1, 9, 9, 5)


def reverse(m: Sketch, x: int, number: int) -> int:
    return m.op("REVERSE_V2", [x, ints(m, [1 + number % 2])], m.shape(x))


@pytest.mark.parametrize("step", [mirror, fold, reverse], ids=lambda step: step.__name__)
def test_sources_of_long_chains_stay_short(step: Step) -> None:
    """Each map mentions its coordinates several times: without names a text would grow by a factor with each."""
    for count in (6, 12):
        longest = max(len(kernel.source) for kernel in compiled(chain(step, count)).kernels)
        assert longest < 16000, f"{count} maps take {longest} characters"


@exhaustive
def test_a_thousand_moves_are_planned() -> None:
    assert len(compiled(chain(reverse, 1000)).kernels) > 100


def hidden_names(source: str) -> set[str]:
    """Names declared in a scope where an enclosing one has them already."""
    scopes: list[set[str]] = [set()]
    hidden: set[str] = set()
    for line in source[source.index("void main") :].splitlines():
        names = set(DECLARATION.findall(line))
        hidden |= names & set().union(*scopes)
        in_loop = names if line.lstrip().startswith("for (") else set()  # that belong to the loop alone
        scopes[-1] |= names - in_loop
        scopes += [set(in_loop) for _ in range(line.count("{"))]
        del scopes[len(scopes) - line.count("}") :]
    return hidden


@exhaustive
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
def test_no_name_hides_another(fuse: bool) -> None:
    chains = (("of mirrors", chain(mirror, 3)), ("of folds", chain(fold, 5)))
    cases: list[Case] = [case for op in SUPPORTED_OPS if OPS[op].role == "movement" for case in chosen(op)]
    cases += [*MOVE_GRAPHS, *(GraphCase("chain", *each) for each in chains)]
    for case in cases:
        graph = case.graph()
        for device in DEVICES.values():
            for kernel in compile_graph(graph, device, CompileOptions(fuse=fuse)).kernels:
                assert not hidden_names(kernel.source), case.name


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_views_of_integers(context: Context, precision: Precision) -> None:
    """Integers are stored as float32, whatever the precision of others: ranges of their bytes are twice as long."""
    sketch = Sketch(0)
    whole = sketch.op("CAST", [sketch.image(8, 8, 16)], (1, 8, 8, 16), "int32")
    floats = sketch.unary("NEG", sketch.unary("NEG", sketch.op("CAST", [whole], (1, 8, 8, 16))))
    part = sliced(sketch, whole, (0, 0, 0, 8), (1, 8, 8, 8))
    sketch.output(sketch.op("CAST", [part], (1, 8, 8, 8)), sliced(sketch, floats, (0, 0, 0, 8), (1, 8, 8, 8)))
    plan = compile_graph(read_model(sketch.build()), HARDWARE, CompileOptions(precision=precision))
    assert part in plan.views.inside
    values = np.arange(1024, dtype=np.float32).reshape(1, 8, 8, 16)
    for found in on_gpu(context, plan, [values]):
        assert np.array_equal(found, values[..., 8:])
