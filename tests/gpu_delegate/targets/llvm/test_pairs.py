"""Products in bfloat16: sums are those of rounded values, all else stays float32, and loops are half as long.

A CPU that has them is emulated (tests/helpers/emulated.py).
"""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from tests.gpu_delegate.targets.llvm.test_bytes import KINDS
from tests.helpers.emulated import emulated_network
from tests.helpers.x86 import inner_loop
from tests.quantized.networks import Net
from tests.quantized.quantizer import quantized_twin
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.code.product_forms import in_pairs, rounded_bits
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Conv2D, Graph, Node
from texelflow.gpu_delegate.model.operators import attributes_of
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.model.rewrite import float_data
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import assembly
from texelflow.gpu_delegate.targets.llvm.image import image_of, parse_image
from texelflow.gpu_delegate.targets.llvm.loading import image_key
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native

CAPABLE = replace(KINDS["avx512-vnni"], features=f"{KINDS['avx512-vnni'].features},+avx512bf16")
BF16 = CAPABLE.with_precision("bf16")
Float64Array = npt.NDArray[np.float64]


def rounded(values: Float32Array) -> Float64Array:
    """To the eight bits that bfloat16 has, the nearest or even; below 2^-126 to 0."""
    fractions, powers = np.frexp(values.astype(np.float64))
    found = np.ldexp(np.rint(fractions * 256), powers - 8)
    return np.where(np.abs(values) < 2.0**-126, 0.0, found)


def test_weights_are_rounded_to_the_nearest() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 20_000, np.uint32)
    bits[:3000] = bits[:3000] & 0xFFFF0000 | 0x8000  # in the middle
    bits[3000:4000] &= 0x807FFFFF  # below 2^-126
    values = bits.view(np.float32)
    values = values[np.abs(values) < 1e38]
    found = (rounded_bits(values) << 16).astype(np.uint32).view(np.float32)
    assert np.array_equal(found, rounded(values))
    most = np.array([np.inf, -np.inf, np.finfo(np.float32).max], np.float32)
    assert rounded_bits(most).tolist() == [0x7F80, 0xFF80, 0x7F80]
    assert np.isnan((rounded_bits(np.full(1, np.nan, np.float32)) << 16).astype(np.uint32).view(np.float32)[0])


def test_weights_are_two_in_an_int() -> None:
    words = in_pairs(np.array([[1.0, -2.0], [0.5, 3.0], [4.0, 0.0]], np.float32)).view(np.uint32)
    assert [[f"{word:08x}" for word in row] for row in words.tolist()] == [
        ["3f003f80", "4040c000"],
        ["00004080", "00000000"],
    ]


CONVOLUTIONS = (  # height, width, channels, outputs, window, stride
    (7, 9, 3, 9, (3, 3), 2),  # as first layers have it
    (6, 5, 4, 13, (3, 3), 1),
    (11, 13, 17, 33, (1, 1), 1),  # by a panel, whose last pixels are in vectors of eight
    (5, 8, 22, 33, (3, 3), 1),
    (4, 33, 64, 10, (1, 1), 1),
    (13, 2, 6, 5, (5, 1), 1),
    (8, 18, 2, 8, (2, 2), 2),
    (1, 1, 23, 19, (1, 1), 1),  # vectors
    (1, 1, 150, 130, (1, 1), 1),
)


def convolved(graph: Graph, node: Node, x: Float64Array) -> Float64Array:
    """Sums of float64 of values as they are; bias apart."""
    conv, weights = attributes_of(node, Conv2D), rounded(float_data(graph.tensors[node.inputs[1]]))
    pad, (down, across) = conv.padding, conv.stride
    x = np.pad(x, ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0)))
    _, height, width, outputs = graph.tensors[node.outputs[0]].shape
    total = np.zeros((1, height, width, outputs))
    for ky in range(weights.shape[1]):
        for kx in range(weights.shape[2]):
            window = x[:, ky : ky + down * (height - 1) + 1 : down, kx : kx + across * (width - 1) + 1 : across]
            total += window @ weights[:, ky, kx].T
    return total


def absolute(graph: Graph, node: Node) -> Graph:
    """With magnitudes as weights."""
    weights = graph.tensors[node.inputs[1]]
    return graph.with_changes(graph.nodes, {weights.index: replace(weights, data=np.abs(float_data(weights)))})


def test_sums_are_those_of_rounded_values() -> None:
    """Products of eight bits are exact in float32; sums of n of them err by n * 2^-24 of the sum of magnitudes at most,
    and by 2^-126 for each that is rounded to 0.
    """
    net, rng = Net(11), np.random.default_rng(1)
    outputs = []
    for height, width, channels, each, window, stride in CONVOLUTIONS:
        source = net.input((1, height, width, channels))
        outputs.append(net.conv(source, each, window, stride=(stride, stride)))
    net.output(*outputs)
    graph = read_model(net.build())
    values = [rng.uniform(-2, 2, graph.tensors[i].shape).astype(np.float32) for i in graph.inputs]
    for array in values:
        array.ravel()[::7] *= 1e-39  # below 2^-126
    network = emulated_network(graph, BF16)
    assert "llvm.fma" not in network.compiled.text
    listing = assembly(network.compiled.text, replace(BF16, cpu="sapphirerapids"))
    assert "llvm." not in listing, "LLVM knows all instructions that are emulated here, of vectors of any length"
    assert all(re.search(rf"vdpbf16ps\s.*%{vector}mm", listing) for vector in "xyz")
    producers = graph.producers()
    for x, found, tensor in zip(values, network.run(values), graph.outputs, strict=True):
        node = producers[tensor]
        bias = float_data(graph.tensors[node.inputs[2]]).astype(np.float64)
        wanted = convolved(graph, node, rounded(x)) + bias
        size = convolved(absolute(graph, node), node, np.abs(rounded(x))) + np.abs(bias)
        terms = np.prod(graph.tensors[node.inputs[1]].shape[1:]) + 1
        assert np.all(np.abs(found - wanted) <= terms * 2.0**-24 / (1 - terms * 2.0**-24) * size + terms * 2.0**-126)
        exact = convolved(graph, node, x.astype(np.float64))
        assert np.abs(found - exact - bias).max() > 1e-4, "it is not float32 that is tested"


def test_what_is_no_sum_of_products_stays_as_it_is() -> None:
    """And so do sums that would gain nothing."""
    net = Net(2)
    x = net.depthwise(net.image(9, 11, 8), (3, 3), activation="RELU6")
    x = net.binary("ADD", x, net.pool("AVERAGE_POOL_2D", x, (2, 2), stride=(1, 1), padding="SAME"))
    steps = net.constant(np.random.default_rng(0).integers(-127, 128, (20, 30)) / 64)
    y = net.op("FULLY_CONNECTED", [net.input((1, 30)), steps], (1, 20))  # of bytes, which are exact and shorter
    net.output(x, y, net.conv(net.input((1, 6, 7, 1)), 12, (3, 3)))
    graph = read_model(net.build())
    programs = [compile_native(graph, CAPABLE.with_precision(each)) for each in ("fp32", "bf16")]
    assert programs[0].text == programs[1].text
    assert programs[0].weights.tobytes() == programs[1].weights.tobytes()


def test_quantized_networks_stay_exact() -> None:
    net = Net(1)
    net.output(net.conv(net.image(5, 5, 8), 16))
    graph = read_model(quantized_twin(net, [[np.random.default_rng(0).uniform(0, 1, (1, 5, 5, 8)).astype(np.float32)]]))
    program = compile_native(graph, BF16)
    assert program.text == compile_native(graph, CAPABLE).text
    assert program.precision == "fp32"


def test_networks_are_near_to_float32() -> None:
    """Sums over groups of channels, too, transposed ones, and those of what several ops in one kernel make."""
    net = Net(6)
    x = net.conv(net.image(9, 9, 3), 16, (3, 3), stride=(2, 2), activation="RELU6")
    x = net.conv(x, 16, (3, 3), groups=2, activation="RELU")
    x = net.binary("MUL", x, net.unary("LOGISTIC", net.conv(net.mean(x), 16)))
    net.output(net.transpose(net.binary("ADD", x, x), 40, (2, 2), (2, 2), "SAME"))
    graph = read_model(net.build())
    values = [np.random.default_rng(0).uniform(-1, 1, (1, 9, 9, 3)).astype(np.float32)]
    (wanted,), (found,) = Reference(graph).run(values), emulated_network(graph, BF16).run(values)
    assert 1e-4 < np.abs(found - wanted).max() / np.ptp(wanted) < 0.02


@cache
def pointwise() -> Graph:
    net = Net(3)
    net.output(net.conv(net.image(14, 14, 64), 384))
    return read_model(net.build())


def test_a_panel_is_rounded_once_and_loops_are_half_as_long() -> None:
    loops = {
        each: inner_loop(assembly(compile_native(pointwise(), target).text, target))
        for each in ("fp32", "bf16")
        for target in [CAPABLE.with_precision(each)]
    }
    assert loops["fp32"].count("vfmadd") == 2 * loops["bf16"].count("vdpbf16ps") == 64
    assert loops["bf16"].count("\n") <= 0.55 * loops["fp32"].count("\n")
    assert not re.findall("vcvt|vperm|vbroadcast", loops["bf16"])


def test_keys_and_images_tell_precisions_apart() -> None:
    graph, targets = pointwise(), [CAPABLE, BF16]
    assert len({image_key(graph, target, 1) for target in targets}) == 2
    images = [image_of(compile_native(graph, target), (), ()) for target in targets]
    assert images[0].weights_digest != images[1].weights_digest
    assert images[1].weights.nbytes < 0.6 * images[0].weights.nbytes
    for image, precision in zip(images, ("fp32", "bf16"), strict=True):
        written = image.to_bytes()
        again = parse_image(written, {image.weights_digest: image.weights}.get)
        assert again
        assert again.precision == precision
        other = written.replace(f'"precision": "{precision}"'.encode(), f'"precision": "{precision[::-1]}"'.encode())
        assert parse_image(other, {image.weights_digest: image.weights}.get) is None


@pytest.mark.parametrize("target", [AVX2, AVX512, NEON], ids=lambda target: target.name)
def test_a_cpu_without_them_is_told(target: CpuTarget) -> None:
    with pytest.raises(
        DeviceError, match=f"bf16 needs code for AVX512-BF16, .*: this is {target.name} on {target.cpu}"
    ):
        target.with_precision("bf16")
    with pytest.raises(DeviceError, match="fp16 is for the GPU"):
        CAPABLE.with_precision("fp16")
