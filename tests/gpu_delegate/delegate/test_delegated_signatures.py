"""Models of several signatures: each one's subgraph is delegated, and what loops run that stay on the CPU."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.gpu_delegate.reading.test_signatures import SHAPES, loops, several
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import ModelError, UsageError
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.programs.weights_cache import WeightsCache

pytestmark = pytest.mark.gl

NAMES = ("sum", "product", "difference")


def results(made: Any, seed: int = 0, rows: int | None = None) -> dict[str, npt.NDArray[np.float32]]:
    """What each signature gives, one after the other."""
    rng, found = np.random.default_rng(seed), {}
    for k, name in enumerate(NAMES):
        shape = (rows or SHAPES[k % 2][0], *SHAPES[k % 2][1:])
        inputs = {f"in{n}": rng.uniform(-1, 1, shape).astype(np.float32) for n in range(2)}
        (found[name],) = made.get_signature_runner(name)(**inputs).values()
    return found


def check_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-6, err_msg=name)


def test_each_signature_is_delegated(runtime: Any, capsys: pytest.CaptureFixture[str]) -> None:
    delegate = GpuDelegate(strict=True)
    made = runtime.Interpreter(model_content=several(), experimental_delegates=[delegate])
    plain = runtime.Interpreter(model_content=several())
    for seed in range(2):
        check_equal(results(made, seed), results(plain, seed))
    assert [(each.subgraph, each.nodes) for each in delegate.partitions] == [(0, (0, 1)), (1, (0, 1)), (2, (0, 1))]
    assert delegate.summary == "6 of 6 operators on the GPU in 3 partitions (3 dispatches)"
    assert not capsys.readouterr().err
    with delegate:
        check_equal(results(made, 3), results(plain, 3))
    with pytest.raises(RuntimeError, match="released"):
        results(made)


def test_each_signature_takes_other_sizes(runtime: Any) -> None:
    delegate = GpuDelegate(strict=True)
    made = runtime.Interpreter(model_content=several(), experimental_delegates=[delegate])
    plain = runtime.Interpreter(model_content=several())
    for rows in (3, None, 5):
        check_equal(results(made, 1, rows), results(plain, 1, rows))


def test_signatures_share_a_cache() -> None:
    runtime, cache = load_interpreter_module(), WeightsCache()
    delegates = [GpuDelegate(strict=True, weights_cache=cache) for _ in range(2)]
    made = [runtime.Interpreter(model_content=several(), experimental_delegates=[each]) for each in delegates]
    cache.finalize_hard()
    expected = results(runtime.Interpreter(model_content=several()))
    for each in made:
        check_equal(results(each), expected)


@pytest.mark.parametrize("subgraph", [0, 1, 2])
def test_another_model_is_told_by_any_of_its_subgraphs(subgraph: int, runtime: Any) -> None:
    """Only that subgraph is left to the CPU, and says why."""
    ops = ["ADD", "MUL", "SUB"]
    ops[subgraph] = "MAXIMUM"
    other = several_with_ops(*ops)
    delegate = GpuDelegate(model=other, quiet=True)
    made = runtime.Interpreter(model_content=several(), experimental_delegates=[delegate])
    check_equal(results(made), results(runtime.Interpreter(model_content=several())))
    assert {each.subgraph for each in delegate.partitions} == {0, 1, 2} - {subgraph}
    assert isinstance(delegate.error, ModelError)
    with pytest.raises(RuntimeError, match="is not the model of this interpreter"):
        runtime.Interpreter(model_content=several(), experimental_delegates=[GpuDelegate(model=other, strict=True)])


def test_a_given_model_of_fewer_subgraphs(runtime: Any) -> None:
    delegate = GpuDelegate(model=several_with_ops("ADD"), quiet=True)
    made = runtime.Interpreter(model_content=several(), experimental_delegates=[delegate])
    check_equal(results(made), results(runtime.Interpreter(model_content=several())))
    assert isinstance(delegate.error, UsageError)
    assert "there is no subgraph 2" in str(delegate.error)
    assert [each.subgraph for each in delegate.partitions] == [0]


def several_with_ops(*ops: str) -> bytes:
    """As several(), with other ops."""
    parts = [_one_op(op, k) for k, op in enumerate(ops)]
    parts[0].further, parts[0].signatures = parts[1:], dict(zip(NAMES, range(len(ops)), strict=False))
    return parts[0].build()


def _one_op(op: str, k: int) -> ModelBuilder:
    part, shape = ModelBuilder(), SHAPES[k % 2]
    both = [part.input(shape), part.input(shape)]
    part.output(part.op("ADD", [part.op(op, both, shape), part.constant(np.full(shape[-1], k + 1.0))], shape))
    return part


def mixed() -> bytes:
    """A signature with an operator of the CPU between two partitions, and one of which the GPU has nothing."""
    first, second, shape = ModelBuilder(), ModelBuilder(), (1, 5, 6, 3)
    y = first.op("TANH", [first.input(shape)], shape)
    first.output(first.op("NEG", [first.cpu_op(y)], shape), y)
    second.output(second.cpu_op(second.input(shape)))
    first.further, first.signatures = [second], {"first": 0, "second": 1}
    return first.build()


def test_lines_name_the_subgraph(runtime: Any, capsys: pytest.CaptureFixture[str]) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=1, strict=True)
    made = runtime.Interpreter(model_content=mixed(), experimental_delegates=[delegate])
    plain = runtime.Interpreter(model_content=mixed())
    values = np.random.default_rng(0).normal(0, 1, (1, 5, 6, 3)).astype(np.float32)
    for name in ("first", "second"):
        for ours, theirs in zip(
            *(each.get_signature_runner(name)(in0=values).values() for each in (made, plain)), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
    lines = capsys.readouterr().err.splitlines()
    assert "2 operations will run on the GPU, and the remaining 1 on the CPU." in lines[0]
    assert [line.startswith("subgraph 1: ") for line in lines].count(True) == 2
    assert [(each.subgraph, each.nodes) for each in delegate.partitions] == [(0, (0,)), (0, (2,))]
    assert (set(delegate.reasons), set(delegate.reasons_of(1)), dict(delegate.reasons_of(7))) == ({1}, {0}, {})


@pytest.mark.parametrize(("name", "expected"), [("twos", 128.0), ("threes", 243.0)])
def test_what_loops_of_each_signature_run_is_delegated(name: str, expected: float, runtime: Any) -> None:
    delegate = GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True)
    made = runtime.Interpreter(model_content=loops(), experimental_delegates=[delegate])
    (found,) = made.get_signature_runner(name)(in0=np.ones(1, np.float32)).values()
    assert found == [expected]
    assert [(each.subgraph, each.nodes) for each in delegate.partitions] == [(k, (0,)) for k in (1, 2, 4, 5)]
    assert [dict(delegate.reasons_of(k)) != {} for k in range(6)] == [True, False, False, True, False, False]


def test_the_little_that_a_loop_runs_stays_where_the_loop_is(runtime: Any) -> None:
    delegate = GpuDelegate(strict=True, quiet=True)
    runtime.Interpreter(model_content=loops(), experimental_delegates=[delegate])
    assert not delegate.partitions
