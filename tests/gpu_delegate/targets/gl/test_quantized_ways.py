"""A quantized model through every way in and out gives the same bytes everywhere."""

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.delegated import inferred, interpreter_of
from tests.helpers.engine import on_gpu
from tests.helpers.markers import one_in
from tests.model_files.model_builder import Array, ModelBuilder
from tests.model_files.quantized_models import HEIGHT, SCHEMES, WIDTH, small_quantized
from tests.quantized.op_by_op import first_fault
from tests.quantized.runs import TfliteRun
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import ABSENT, Quantization
from texelflow.gpu_delegate.model.graph_digest import graph_digest
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.saving.saved_graph import restore_graph, save_graph
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork


@one_in(3, "name", SCHEMES)
def test_all_ways_give_the_same_bytes(context: Context, name: str, tmp_path: Path) -> None:
    model = small_quantized(SCHEMES[name])
    graph = read_model(model)
    source, result = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    limits, rng = np.iinfo(source.dtype), np.random.default_rng(1)
    values = rng.integers(limits.min, limits.max, (1, HEIGHT, WIDTH, 3), endpoint=True).astype(source.dtype)
    compiled = compile_graph(graph, SOFTWARE)
    assert compiled.tensor(source.index) == source
    assert compiled.graph.tensors[source.index].steps
    (found,) = on_gpu(context, compiled, [values])
    assert (found.dtype.name, found.shape) == (result.dtype, result.shape)

    restored = restore_graph(save_graph(compiled), graph)
    assert restored
    assert restored.graph.tensors[source.index].steps == compiled.graph.tensors[source.index].steps
    ways = {"a saved graph": on_gpu(context, restored, [values])[0]}
    cache = DiskCache(tmp_path)
    for turn in ("made", "loaded"):  # from an image on disk
        network = NativeNetwork.load(graph, threads=1, cache=cache)
        (ways[f"native code, {turn}"],) = network.run(values)
        network.close()
    delegate = GpuDelegate(model=model, quiet=True)
    (ways["the delegate"],) = inferred(interpreter_of(model, delegate), [values])
    assert delegate.summary.startswith(f"{len(graph.nodes)} of {len(graph.nodes)}")
    for way, bytes_ in ways.items():
        np.testing.assert_array_equal(bytes_, found, err_msg=way)

    (wanted,) = Reference(graph, judges=True).run(values)
    assert np.abs(found.astype(np.int64) - wanted).max() <= 1
    assert (found == wanted).mean() > 0.98
    assert len(np.unique(wanted)) > 20


def test_other_types_than_the_files_are_refused(context: Context) -> None:
    graph = read_model(small_quantized())
    with pytest.raises(UsageError, match=r"takes an array of int8 of shape \(1, 9, 14, 3\), not float32 of shape"):
        on_gpu(context, compile_graph(graph, SOFTWARE), [np.zeros((1, HEIGHT, WIDTH, 3), np.float32)])


def test_constants_of_bytes_are_known_and_what_reads_inputs_is_not() -> None:
    """QUANTIZE, at the border, becomes other nodes, of which none stands for it."""
    graph = read_model(small_quantized(SCHEMES["uint8 around int8"]))
    assert [node.op for node in (graph.nodes[0], graph.nodes[-1])] == ["QUANTIZE"] * 2
    refusals = find_refusals(graph, SOFTWARE)
    assert (dict(refusals.reasons), refusals.constants) == ({}, frozenset())
    constants = [i for node in graph.nodes for i in node.inputs if i != ABSENT and graph.tensors[i].is_constant]
    assert constants
    assert all(graph.tensors[i].quantization for i in constants)


def test_what_integers_mean_tells_models_apart() -> None:
    graph = read_model(small_quantized())
    source = graph.tensors[graph.inputs[0]]
    assert source.quantization
    other = Quantization((source.quantization.scales[0] * 2,), source.quantization.zero_points)
    changed = graph.with_changes(
        new_tensors={source.index: source.__class__(**{**vars(source), "quantization": other})}
    )
    assert graph_digest(changed) != graph_digest(graph)


@pytest.mark.parametrize(("dtype", "lowest"), [("int8", -128), ("uint8", 0)])
def test_logarithms_near_the_lowest_step_are_those_of_the_default_kernels(dtype: str, lowest: int) -> None:
    """The reference kernel takes all that are 15.5 to 16 below the greatest for 16 below."""
    m, shape = ModelBuilder(), (60, 20)
    x = m.tensor(shape, dtype, scales=(1 / 16,), zero_points=(lowest + 100,))
    m.inputs.append(x)
    y = m.tensor(shape, dtype, scales=(1 / 16,), zero_points=(lowest + 255,))
    m.output(*m.op_of("LOG_SOFTMAX", [x], [y]))
    model, graph = m.build(), read_model(m.build())
    values = np.random.default_rng(0).integers(lowest, lowest + 20, shape).astype(dtype)
    values[:, 7] = lowest + 255
    (usual,), (reference,) = inferred(interpreter_of(model), [values]), Reference(graph, judges=True).run(values)
    network = NativeNetwork.load(graph, threads=1)
    (found,) = map(np.array, network.run(values))
    network.close()
    np.testing.assert_array_equal(found, usual)
    assert (found != reference).any()
    assert not first_fault(graph, {y: found}, {y: reference})


def by_both(context: Context, model: bytes, values: Array) -> tuple[Array, Array]:
    """A model's one output in native code and on OpenGL."""
    graph = read_model(model)
    network = NativeNetwork.load(graph, threads=1)
    (native,) = map(np.array, network.run(values))
    network.close()
    (found,) = on_gpu(context, compile_graph(graph, device_of(context)), [values])
    return native, found


@pytest.mark.gl
@one_in(
    3,
    "scales",
    [(0.5, 0.25, 8.0), (0.05, 0.02, 0.05), (0.1, 0.04, 0.2)],
    ids=["ties on both sides of 0", "a product that float32 rounds down", "and up"],
)
@pytest.mark.parametrize(("dtype", "count"), [("int8", 1), ("int8", 32), ("uint8", 1)])
def test_connected_layers_round_once_away_from_zero(
    context: Context, dtype: str, count: int, scales: tuple[float, float, float]
) -> None:
    """ai-edge-litert's do; tflite-runtime 2.14 rounds twice, by a product of scales in float32."""
    m, rng, middle = ModelBuilder(), np.random.default_rng(1), 128 if dtype == "uint8" else 0
    of_input, of_weights, of_output = scales
    x = m.tensor((200, 4), dtype, scales=(of_input,), zero_points=(middle + 3,))
    m.inputs.append(x)
    data, values = (rng.integers(middle - 127, middle + 128, shape).astype(dtype) for shape in ((32, 4), (200, 4)))
    weights = m.tensor((32, 4), dtype, data.tobytes(), scales=(of_weights,) * count, zero_points=(middle,) * count)
    y = m.tensor((200, 32), dtype, scales=(of_output,), zero_points=(middle,))
    m.output(*m.op_of("FULLY_CONNECTED", [x, weights, ABSENT], [y]))
    (wanted,) = TfliteRun(m.build())([values])
    for found in by_both(context, m.build(), values):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.gl
@one_in(
    3,
    ("op", "scales", "zero_points"),
    [
        ("SQRT", (0.05, 0.03), (-128, 3)),
        ("SQRT", (0.004, 0.004), (-128, -128)),
        ("SQRT", (1.3, 0.1), (-128, -100)),
        ("LOG", (1 / 128, 4.0), (-128, 24)),
        ("LOG", (0.02, 0.03), (-20, 5)),
    ],
)
def test_roots_and_logarithms_of_all_bytes(
    context: Context, op: str, scales: tuple[float, float], zero_points: tuple[int, int]
) -> None:
    """Roots lose their fractions; the logarithm of 0 is the lowest step, however far below others that is."""
    m = ModelBuilder()
    x, y = (
        m.tensor((256,), "int8", scales=(scale,), zero_points=(zero_point,))
        for scale, zero_point in zip(scales, zero_points, strict=True)
    )
    m.inputs.append(x)
    m.output(*m.op_of(op, [x], [y]))
    values = np.arange(-128, 128).astype(np.int8)
    (wanted,) = TfliteRun(m.build())([values])
    for found in by_both(context, m.build(), values):
        np.testing.assert_array_equal(found, wanted)
