"""8-bit networks in the code of CPUs of all kinds, whose own instructions are emulated: every byte is right."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.emulated import emulated_network
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.model_builder import ModelBuilder
from tests.quantized.networks import Net
from tests.quantized.quantizer import Scheme, quantized_twin
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph, Node
from texelflow.gpu_delegate.ops.requantize import channel_rounding
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native

KINDS = {
    "avx2": AVX2,
    "avx-vnni": replace(AVX2, features="+avxvnni"),
    "avx512": AVX512,
    "avx512-vnni": replace(AVX512, features=f"{AVX512.features},+avx512vnni"),
    "neon": NEON,
    "dotprod": replace(NEON, features="+dotprod"),
}
SCHEMES = {"int8": Scheme(), "uint8": Scheme(dtype="uint8", per_channel=False)}
Values = tuple[npt.NDArray[Any], ...]


@cache
def quantized(kind: str) -> tuple[Graph, Values, Values]:
    """A network with odd sizes and channel counts, values for it, and what the reference kernels make of them."""
    net = Net(7)
    x = net.conv(net.image(19, 21, 3), 13, (3, 3), stride=(2, 2), activation="RELU6")
    y = net.depthwise(x, (3, 3), activation="RELU6")
    y = net.conv(y, 22, activation="RELU")
    y = net.conv(net.depthwise(y, (5, 5), stride=(2, 2)), 13, (3, 3))
    y = net.pool("MAX_POOL_2D", y, (2, 2), stride=(1, 1), padding="SAME")
    shape = net.shape(y)
    z = net.op("RESIZE_BILINEAR", [x, net.constant(shape[1:3], "int32")], shape)
    y = net.joined([net.binary("ADD", y, z), net.conv(y, 7)], 3)
    net.output(net.conv(net.mean(y), 17), net.conv(y, 5))
    rng = np.random.default_rng(0)
    samples = [[rng.uniform(0, 1, (1, 19, 21, 3)).astype(np.float32)] for _ in range(3)]
    graph = read_model(quantized_twin(net, samples, SCHEMES[kind]))
    reference = Reference(graph, keep_all_tensors=True)
    limits = np.iinfo(reference.input_dtypes[0])
    values = [rng.integers(limits.min, limits.max + 1, reference.input_shapes[0]).astype(limits.dtype)]
    return graph, tuple(values), tuple(reference.run(values))


# Of each kind one scheme in turn, then the other
@one_in(2, ("kind", "scheme"), [(kind, [*SCHEMES][(nth + n) % 2]) for nth, kind in enumerate(KINDS) for n in (0, 1)])
def test_every_kind_of_cpu(scheme: str, kind: str) -> None:
    graph, values, expected = quantized(scheme)
    target: CpuTarget = KINDS[kind]
    network = emulated_network(graph, target)
    for found, wanted in zip(network.run(list(values)), expected, strict=True):
        assert np.array_equal(found, wanted)


def check(graph: Graph, kind: str, largest: float = 0.0) -> None:
    """All outputs are the reference kernels', but for so much."""
    reference, rng, values = Reference(graph, keep_all_tensors=True), np.random.default_rng(5), list[npt.NDArray[Any]]()
    for shape, dtype in zip(reference.input_shapes, reference.input_dtypes, strict=True):
        limits = np.iinfo(dtype)
        values.append(rng.integers(limits.min, limits.max + 1, shape).astype(dtype))
    outputs = emulated_network(graph, KINDS[kind]).run(values)
    for found, wanted in zip(outputs, reference.run(values), strict=True):
        assert np.abs(found.astype(np.float64) - wanted).max() <= largest * np.abs(wanted).max()


@pytest.mark.parametrize("kind", KINDS)
def test_one_convolution_between_floats(kind: str) -> None:
    """Its input is stored as floats, as all inputs are; sums are exact, of no more products than the op says."""
    net = Net(3)
    net.output(net.conv(net.image(16, 15, 16), 32, (3, 3)))
    samples = [[np.random.default_rng(0).uniform(0, 1, (1, 16, 15, 16)).astype(np.float32)]]
    check(read_model(quantized_twin(net, samples)), kind)


@one_in(4, ("height", "kind"), product((3, 6, 9), ("avx2", "avx512", "neon")))
def test_windows_over_the_maps_of_a_batch(kind: str, height: int) -> None:
    """No group of rows has some of two maps."""
    net = Net(2)
    x = net.conv(net.input((3, height, 5, 10)), 10)
    net.output(net.depthwise(x, (3, 3)), net.pool("AVERAGE_POOL_2D", x, (2, 2), stride=(1, 1), padding="SAME"))
    samples = [[np.random.default_rng(0).uniform(0, 1, (3, height, 5, 10)).astype(np.float32)]]
    check(read_model(quantized_twin(net, samples)), kind)


@one_in(4, ("numbers", "kind"), product([(1, 0.3), (3, -7.0), (30000, 1.0)], ("avx2", "avx-vnni", "dotprod")), ids=str)
def test_floats_that_are_whole_numbers(kind: str, numbers: tuple[int, float]) -> None:
    """A bias that is none, and sums beyond what ints and floats have."""
    (weight, bias), m = numbers, ModelBuilder()
    x = m.tensor((1, 5, 6, 300), "int8", scales=(1.0,), zero_points=(0,))
    m.inputs.append(x)
    z = m.tensor((1, 5, 6, 300), "int8", scales=(1.0,), zero_points=(0,))
    m.op_of("MAX_POOL_2D", [x], [z], kernel=(2, 2), stride=(1, 1), padding="SAME")
    y = m.op("DEQUANTIZE", [z], (1, 5, 6, 300))
    weights = m.constant(np.random.default_rng(0).integers(weight // 2, weight + 1, (5, 3, 3, 300)))
    shape = (1, 5, 6, 5)
    y = m.op("CONV_2D", [y, weights, m.constant(np.full(5, bias))], shape, stride=(1, 1), padding="SAME")
    mean = m.op("MEAN", [y, m.constant([1, 2], "int32")], (1, 5), keep_dims=False)
    m.output(y, m.op("FULLY_CONNECTED", [mean, m.constant(np.eye(5)), m.constant(np.full(5, bias))], (1, 5)))
    check(read_model(m.build()), kind, 1e-5)


@one_in(3, ("window", "kind"), product([(7, 7), (1, 9)], ("avx512-vnni", "dotprod")))
def test_long_windows(kind: str, window: tuple[int, int]) -> None:
    net = Net(4)
    x = net.conv(net.image(11, 13, 3), 9)
    net.output(net.conv(net.depthwise(x, window), 6, window))
    samples = [[np.random.default_rng(0).uniform(0, 1, (1, 11, 13, 3)).astype(np.float32)]]
    check(read_model(quantized_twin(net, samples)), kind)


@pytest.mark.parametrize("kind", ["avx2", "dotprod"])
def test_every_shift(kind: str) -> None:
    """A convolution's products in ever other scales of the output: from shifts to the left up to those by 31 bits."""
    net = Net(3)
    net.output(net.conv(net.image(3, 5, 6), 6))
    rng = np.random.default_rng(1)
    graph = read_model(quantized_twin(net, [[rng.uniform(0, 1, (1, 3, 5, 6)).astype(np.float32)]]))
    tensor = graph.tensors[graph.outputs[0]]
    assert tensor.quantization
    (scale,) = tensor.quantization.scales
    found = []
    for power in (-9, -6, -3, 0, 21, 22, 23):
        quantization = replace(tensor.quantization, scales=(float(np.float32(scale * 1.37 * 2.0**power)),))
        changed = graph.with_changes(graph.nodes, {tensor.index: replace(tensor, quantization=quantization)})
        values = [rng.integers(-128, 128, (1, 3, 5, 6)).astype(np.int8)]
        (wanted,) = Reference(changed, keep_all_tensors=True).run(values)
        network = emulated_network(changed, KINDS[kind])
        assert np.array_equal(network.run(values)[0], wanted), power
        found += [shift for node in network.compiled.graph.nodes for shift in shifts_of(network.compiled.graph, node)]
    assert {0, 31} <= {*found}


def shifts_of(graph: Graph, node: Node) -> Sequence[int]:
    """To the right, of a node that rounds sums on ints; those of another one are none."""
    rounding = channel_rounding(graph, node)
    return [] if rounding is None else [int(shift) for shift in rounding[1]]


@one_in(3, "kind", ["avx2", "avx512-vnni", "neon"])
def test_columns_of_few_channels_are_channels(kind: str) -> None:
    """Of windows whose words have room for them; those of three channels, or of one column, have none."""
    net = Net(6)
    grey, pair, picture = net.image(17, 14, 1), net.image(13, 11, 2), net.image(9, 9, 3)
    tall = net.conv(grey, 21, (10, 4), stride=(2, 2))
    spread = net.conv(grey, 24, (3, 3), dilation=(1, 2))
    deep = net.depthwise(grey, (8, 10), multiplier=8, stride=(2, 2))
    wide = net.conv(pair, 33, (3, 4), stride=(1, 3), padding="VALID")
    net.output(tall, spread, deep, wide, net.conv(picture, 32, (3, 3)), net.conv(grey, 32, (5, 1)))
    rng = np.random.default_rng(0)
    shapes = [(1, 17, 14, 1), (1, 13, 11, 2), (1, 9, 9, 3)]
    graph = read_model(quantized_twin(net, [[rng.uniform(0, 1, shape).astype(np.float32) for shape in shapes]]))
    (found,) = [report for report in compile_native(graph, KINDS[kind]).passes if report.name == "columns_to_channels"]
    assert found.applied == 4
    check(graph, kind)


def test_means_of_channels_in_vectors_of_two_registers() -> None:
    """On this machine's own CPU: what LLVM is not to look into has to fit into one register."""
    net = Net(3)
    net.output(net.op("MEAN", [net.image(5, 20, 3), net.constant((3,), "int32")], (1, 5, 20, 1), keep_dims=True))
    samples = [[np.random.default_rng(1).uniform(0, 1, (1, 5, 20, 3)).astype(np.float32)] for _ in range(2)]
    graph = read_model(quantized_twin(net, samples, Scheme()))
    (network,) = native_networks({"mean": graph}).values()
    values = np.random.default_rng(2).integers(-128, 128, (1, 5, 20, 3)).astype(np.int8)
    for found, wanted in zip(network.run([values]), Reference(graph, keep_all_tensors=True).run([values]), strict=True):
        assert np.array_equal(found, wanted)
