"""Every quantized op alone against TensorFlow Lite's reference kernels, sums of all pairs of bytes, and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from tests.model_files.model_builder import ModelBuilder, Shape
from tests.quantized.networks import Net
from tests.quantized.op_runs import ADDED_AS_UINT8, OpNearness, measured_ops
from tests.quantized.ours import our_run
from tests.quantized.quantizer import Scheme, hybrid_twin, quantized_twin
from tests.quantized.runs import TfliteRun
from tests.quantized.single_ops import model_of
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.plan.admission import rewrite_graph
from texelflow.gpu_delegate.reading.reader import read_model

ON_GL = ("conv 3x3 strided relu6", "depthwise", "fully connected", "add", "mul vector", "hard_swish", "mean")
ONLY_NEAR = ("l2 normalization",)  # of uint8, in which floats are used
RESIZED = ("resize bilinear", "resize bilinear doubled", "resize bilinear aligned", "resize bilinear half")
EQUAL = 0.95  # of the values of those


def check(found: list[OpNearness], exact: bool) -> None:
    for one in found:
        assert one.apart <= 1, one
        assert one.equal == 1 or (not exact and one.op in ONLY_NEAR and one.equal >= EQUAL), one


@pytest.mark.parametrize(("dtype", "shape"), [("int8", (1, 5, 8, 1))])
def test_every_op_is_computed_as_by_the_reference_kernels(dtype: str, shape: Shape) -> None:
    """`make quantized` has both types, more shapes, and all of them on OpenGL."""
    found = measured_ops("native", dtype, shape)
    assert len(found) > 55
    check(found, exact=dtype == "int8")


@pytest.mark.parametrize("shape", [(3, 6, 5, 13), (1, 5, 8, 3)])
def test_maps_of_uint8_are_resized_in_the_order_of_the_reference_kernel(shape: Shape) -> None:
    """Half of a step is met often, so that each rounding shows."""
    _, *found = measured_ops("native", "uint8", shape, ("add", *RESIZED))  # of which one reads both inputs
    assert [one.apart for one in found] == [0] * len(RESIZED)


@pytest.mark.parametrize(
    ("scale", "scale_of_root", "zero_point"),
    [
        (8.083602551778313e-06, 0.09563625603914261, -128),  # of a transformer: near the middle between two steps
        (1.3224645272202906e-06, 1.4904361963272095, -64),
        (3.3257732866331935e-05, 0.27781909704208374, -29),
        (0.01, 0.5, -100),
    ],
)
@pytest.mark.parametrize("way", ["native", pytest.param("gl", marks=pytest.mark.gl)])
def test_roots_are_whole_numbers_before_they_are_steps(
    way: str, scale: float, scale_of_root: float, zero_point: int
) -> None:
    model = ModelBuilder()
    x = model.tensor((1, 1, 1, 256), "int8", scales=(scale,), zero_points=(-128,))
    root = model.tensor((1, 1, 1, 256), "int8", scales=(scale_of_root,), zero_points=(zero_point,))
    model.inputs.append(x)
    model.output(*model.op_of("RSQRT", [x], [root]))
    values = [np.arange(-128, 128, dtype=np.int8).reshape(1, 1, 1, 256)]
    (right,) = TfliteRun(model.build())(values)
    with our_run(model.build(), way) as run:
        assert (run(values)[0] == right).all()


@pytest.mark.gl
def test_ops_of_bytes_on_opengl() -> None:
    found = measured_ops("gl", "uint8", (3, 6, 5, 13), ON_GL)
    assert len(found) == len(ON_GL)
    check(found, exact=True)


def test_sums_are_right_for_every_pair_of_bytes() -> None:
    """In scales of a published network: floats make 6 of the steps 10 and -4, and TensorFlow Lite 7."""
    model = ModelBuilder()
    scales, zero_points = (0.18986915051937103, 0.1699049174785614, 0.18754954636096954), (-6, -31, -14)
    a, b, out = (
        model.tensor((1, 256, 256, 1), "int8", scales=(scale,), zero_points=(zero_point,))
        for scale, zero_point in zip(scales, zero_points, strict=True)
    )
    model.inputs += [a, b]
    model.output(*model.op_of("ADD", [a, b], [out]))
    values = [axis.astype(np.int8)[None, ..., None] for axis in np.mgrid[-128:128, -128:128]]
    (right,) = TfliteRun(model.build())(values)
    assert right[0, 4 + 128, -35 + 128] == 7 - 14
    with our_run(model.build(), "native") as run:
        assert (run(values)[0] == right).all()


def test_integer_weights_of_floats_are_what_they_mean() -> None:
    net = Net(3)
    x = net.depthwise(net.conv(net.image(7, 9, 3), 5, (3, 3)), activation="RELU6")
    net.output(net.connected(net.reshaped(x, 1, 7 * 9 * 5), 4))
    values = np.random.default_rng(0).uniform(-1, 1, (1, 7, 9, 3)).astype(np.float32)
    hybrid = hybrid_twin(net)
    float_twin = ModelBuilder([], list(net.ops), list(net.inputs), list(net.outputs))
    known = read_model(hybrid).tensors
    for number, tensor in enumerate(net.tensors):
        real, stored = tensor, known.get(number)
        if stored and stored.dtype == "int8" and stored.data is not None and stored.quantization:
            shape = [-1 if k == stored.quantization.dimension else 1 for k in range(len(stored.shape))]
            scales = np.array(stored.quantization.scales, np.float32)
            scales = scales.reshape(shape if scales.size > 1 else ())
            real = replace(tensor, data=(np.asarray(stored.data, np.float32) * scales).tobytes())
        float_twin.tensors.append(real)
    with our_run(hybrid, "native") as run:
        (found,) = run([values])
    (right,) = TfliteRun(float_twin.build())([values])
    assert np.abs(found - right).max() < 1e-5


@pytest.mark.parametrize("name", ADDED_AS_UINT8)
def test_int8_sums_stay_with_tensorflow_lite(name: str) -> None:
    samples = [[np.ones((1, 3, 4, 5), np.float32)] * 2]
    graph = read_model(quantized_twin(model_of([name], (1, 3, 4, 5)), samples, Scheme()))
    with pytest.raises(UnsupportedError, match="add as if it were uint8"):
        rewrite_graph(graph)


def small(op: str, dtype: str, out_scale: float = 0.1, zero_point: int = 0, **options: object) -> bytes:
    """An op of one input in a scale of 0.1."""
    model = ModelBuilder()
    x = model.tensor((1, 3, 4, 5), dtype, scales=(0.1,), zero_points=(zero_point,))
    y = model.tensor((1, 3, 4, 5), dtype, scales=(out_scale,), zero_points=(0,))
    model.inputs.append(x)
    model.output(*model.op_of(op, [x], [y], **options))
    return model.build()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (small("NEG", "int8"), "int8"),
        (small("RELU_N1_TO_1", "int16"), "int16"),
        (small("AVERAGE_POOL_2D", "int16", kernel=(16, 16), stride=(1, 1), padding="SAME"), "windows of 256 values"),
        (small("RELU", "int8", 0.0), "a scale of 0"),
        (small("RELU", "int8", zero_point=1 << 40), "int8 with a zero point of 1099511627776"),
        (small("RELU", "uint8", zero_point=-1), "uint8 with a zero point of -1"),
        (small("MAX_POOL_2D", "int8", 0.2, kernel=(2, 2), stride=(1, 1), padding="SAME"), "different scales"),
    ],
)
def test_what_has_no_form_is_refused_in_one_line(model: bytes, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason) as caught, our_run(model, "native"):
        pass
    assert "\n" not in str(caught.value)
