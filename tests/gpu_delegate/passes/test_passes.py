"""Each graph pass on a miniature: what the graph is before and after, where the pass holds back and why.

That a pass does not change what is computed is judged by the CPU on models that it rewrites
(tests/gpu_delegate/cases) and, for the passes that the table cannot reach alone, here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.engine import DEVICES, on_cpu, on_gpu, worst
from tests.model_files.graphs import ops_of
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.graph import Activated, Conv2D, Graph, Padding, Reduce, Resize
from texelflow.gpu_delegate.model.interpolation import interpolation_matrix
from texelflow.gpu_delegate.model.rewrite import Outcome, Pass
from texelflow.gpu_delegate.passes import algebra, convolutions, simplify
from texelflow.gpu_delegate.passes.pipeline import PASSES, run_passes
from texelflow.gpu_delegate.passes.verification import verify
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

Draw = Callable[[Sketch], int | tuple[int, ...]]


def graph_of(draw: Draw) -> Graph:
    return read_model(bytes_of(draw))


def bytes_of(draw: Draw) -> bytes:
    sketch = Sketch(seed=0)
    outputs = draw(sketch)
    sketch.output(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    return sketch.build()


def check(
    step: Pass, draw: Draw, before: list[str], after: list[str], applied: int | None = None, declined: str = ""
) -> Graph:
    """Run one pass on a miniature. Its outputs keep their numbers and shapes, and its input stays as it was."""
    graph = graph_of(draw)
    assert ops_of(graph) == before
    changed, outcome = step(graph)
    assert ops_of(graph) == before, "the pass changed its argument"
    assert ops_of(changed) == after
    assert changed.outputs == graph.outputs
    assert all(changed.tensors[t].shape == graph.tensors[t].shape for t in graph.outputs)
    verify(changed)
    assert outcome.applied == applied if applied is not None else True
    assert (len(outcome.declined) == 1 and declined in outcome.declined[0]) if declined else outcome.declined == ()
    return changed


def check_same_results(context: Context, draw: Draw) -> None:
    """A miniature through all passes, on the GPU and on the CPU."""
    model = bytes_of(draw)
    graph = read_model(model)
    rng = np.random.default_rng(2)
    inputs = [rng.uniform(-1, 1, graph.tensors[t].shape).astype(np.float32) for t in graph.inputs]
    assert worst(on_gpu(context, compile_graph(graph, DEVICES["software"]), inputs), on_cpu(model, inputs)) < 1e-5


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_split_activations(activation: str) -> None:
    changed = check(
        convolutions.split_activations,
        lambda m: m.conv(m.image(4, 5, 3), 5, activation=activation),
        ["CONV_2D"],
        ["CONV_2D", activation],
        1,
    )
    first, second = changed.nodes
    assert isinstance(first.attributes, Activated)
    assert first.attributes.activation == "NONE"
    assert first.outputs == second.inputs


def test_split_activations_leaves_linear_ops() -> None:
    check(convolutions.split_activations, lambda m: m.conv(m.image(4, 5, 3), 5), ["CONV_2D"], ["CONV_2D"], 0)


def test_remove_identities() -> None:
    def draw(m: Sketch) -> int:
        x = m.resize(m.image(4, 5, 3), (4, 5))
        x = m.pad(x, (0, 0), (0, 0), (0, 0), (0, 0))
        x = m.op("RESHAPE", [x, m.constant((1, 4, 5, 3), "int32")], (1, 4, 5, 3))
        x = m.pool("MAX_POOL_2D", x, (1, 1))
        return m.unary("RELU", m.op("CONCATENATION", [x], (1, 4, 5, 3), axis=3))

    before = ["RESIZE_BILINEAR", "PAD", "RESHAPE", "MAX_POOL_2D", "CONCATENATION", "RELU"]
    changed = check(simplify.remove_identities, draw, before, ["RELU"], 5)
    assert changed.nodes[0].inputs == changed.inputs


def test_remove_identities_keeps_an_output_of_the_model() -> None:
    def draw(m: Sketch) -> int:
        return m.resize(m.image(4, 5, 3), (4, 5))

    op = ["RESIZE_BILINEAR"]
    check(simplify.remove_identities, draw, op, op, 0, "is an output of the model")


@pytest.mark.parametrize(
    "draw",
    [
        lambda m: m.resize(m.image(4, 5, 3), (5, 4)),
        lambda m: m.pool("MAX_POOL_2D", m.image(4, 5, 3), (2, 2)),
        lambda m: m.op("CONCATENATION", [m.image(4, 5, 3)] * 2, (1, 4, 5, 6), axis=3),
        lambda m: m.op("RESHAPE", [m.image(4, 5, 3), m.constant((1, 5, 4, 3), "int32")], (1, 5, 4, 3)),
    ],
    ids=["resize", "pool", "concatenation", "reshape"],
)
def test_remove_identities_leaves_what_changes_values(draw: Draw) -> None:
    graph = graph_of(lambda m: m.unary("RELU", draw(m)))  # type: ignore[arg-type]
    assert ops_of(simplify.remove_identities(graph)[0]) == ops_of(graph)


def padded(m: Sketch, *amounts: tuple[int, int]) -> int:
    return m.pad(m.image(7, 8, 3), *amounts)


def test_merge_pad_into_all_readers() -> None:
    def draw(m: Sketch) -> tuple[int, ...]:
        x = padded(m, (0, 0), (1, 2), (3, 0), (0, 0))
        return m.conv(x, 5, (3, 3), padding="VALID"), m.depthwise(x, (3, 3), stride=(2, 2), padding="SAME")

    changed = check(
        convolutions.merge_pad, draw, ["PAD", "CONV_2D", "DEPTHWISE_CONV_2D"], ["CONV_2D", "DEPTHWISE_CONV_2D"]
    )
    first, second = (node.attributes for node in changed.nodes)
    assert isinstance(first, Conv2D)
    assert isinstance(second, Conv2D)
    assert first.padding == Padding(1, 2, 3, 0)
    assert second.padding == Padding(1 + 0, 2 + 1, 3 + 1, 0 + 1)


def test_merge_pad_computes_the_same(context: Context) -> None:
    def draw(m: Sketch) -> int:
        x = padded(m, (0, 0), (1, 2), (3, 0), (0, 0))
        return m.depthwise(m.conv(x, 5, (3, 3), stride=(2, 2), padding="SAME"), (3, 3))

    check_same_results(context, draw)


@pytest.mark.parametrize(
    ("draw", "reader", "reason"),
    [
        (lambda m: m.conv(padded(m, (0, 0), (0, 0), (0, 0), (1, 1)), 5), "CONV_2D", "not zeros around rows"),
        (lambda m: m.unary("RELU", padded(m, (0, 0), (1, 1), (0, 0), (0, 0))), "RELU", "more than convolutions"),
        (
            lambda m: m.pool("AVERAGE_POOL_2D", padded(m, (0, 0), (1, 1), (0, 0), (0, 0)), (2, 2)),
            "AVERAGE_POOL_2D",
            "more than convolutions",
        ),
    ],
    ids=["channels", "relu", "pooling"],
)
def test_merge_pad_declines(draw: Draw, reader: str, reason: str) -> None:
    check(convolutions.merge_pad, draw, ["PAD", reader], ["PAD", reader], 0, reason)


def test_merge_pad_declines_a_value_that_is_not_zero() -> None:
    def draw(m: Sketch) -> int:
        amounts = m.constant(((0, 0), (1, 1), (0, 0), (0, 0)), "int32")
        x = m.op("PADV2", [m.image(4, 4, 3), amounts, m.constant(0.5)], (1, 6, 4, 3))
        return m.conv(x, 5)

    check(convolutions.merge_pad, draw, ["PADV2", "CONV_2D"], ["PADV2", "CONV_2D"], 0, "not zeros around rows")


def test_merge_pad_declines_an_output_of_the_model() -> None:
    def draw(m: Sketch) -> tuple[int, ...]:
        x = padded(m, (0, 0), (1, 1), (0, 0), (0, 0))
        return x, m.conv(x, 5)

    check(convolutions.merge_pad, draw, ["PAD", "CONV_2D"], ["PAD", "CONV_2D"], 0, "more than convolutions")


def test_expand_depthwise_multiplier() -> None:
    changed = check(
        convolutions.expand_depthwise_multiplier,
        lambda m: m.depthwise(m.image(5, 6, 3), (3, 3), multiplier=2),
        ["DEPTHWISE_CONV_2D"],
        ["CONV_2D"],
        1,
    )
    dense = changed.tensors[changed.nodes[0].inputs[1]].data
    assert dense is not None
    assert dense.shape == (6, 3, 3, 3)
    assert all(not dense[o, :, :, i].any() for o in range(6) for i in range(3) if i != o // 2)


def test_expand_depthwise_multiplier_takes_no_endless_memory() -> None:
    graph = graph_of(lambda m: m.depthwise(m.image(2, 2, 5000), (3, 3), multiplier=2))
    with pytest.raises(UnsupportedError, match=r"DEPTHWISE_CONV_2D .*10000 channels with multiplier 2"):
        convolutions.expand_depthwise_multiplier(graph)


def test_expand_depthwise_multiplier_leaves_plain_ones() -> None:
    op = ["DEPTHWISE_CONV_2D"]
    check(convolutions.expand_depthwise_multiplier, lambda m: m.depthwise(m.image(5, 6, 3)), op, op, 0)


def test_connected_to_convolution() -> None:
    changed = check(
        convolutions.connected_to_convolution,
        lambda m: m.connected(m.input((1, 5)), 3),
        ["FULLY_CONNECTED"],
        ["CONV_2D"],
        1,
    )
    assert changed.tensors[changed.nodes[0].inputs[1]].shape == (3, 1, 1, 5)


def test_connected_to_convolution_declines_rows_that_are_not_aligned() -> None:
    op = ["FULLY_CONNECTED"]
    check(
        convolutions.connected_to_convolution,
        lambda m: m.connected(m.image(2, 3, 5), 3),
        op,
        op,
        0,
        "has its rows elsewhere than",
    )


def test_pool_to_mean() -> None:
    def draw(m: Sketch) -> int:
        return m.pool("AVERAGE_POOL_2D", m.image(4, 5, 3), (4, 5), stride=(4, 5), padding="VALID")

    changed = check(convolutions.pool_to_mean, draw, ["AVERAGE_POOL_2D"], ["MEAN"], 1)
    assert changed.nodes[0].attributes == Reduce((1, 2), keep_dims=True)


def test_pool_to_mean_declines_windows() -> None:
    op = ["AVERAGE_POOL_2D"]
    check(
        convolutions.pool_to_mean, lambda m: m.pool(op[0], m.image(4, 5, 3), (2, 2)), op, op, 0, "averages over windows"
    )


def test_transpose_convolution_to_depth() -> None:
    changed = check(
        convolutions.transpose_convolution_to_depth,
        lambda m: m.transpose(m.image(4, 5, 3), 2, (2, 2), (2, 2), "SAME", custom=True),
        ["Convolution2DTransposeBias"],
        ["CONV_2D", "DEPTH_TO_SPACE"],
        1,
    )
    assert changed.tensors[changed.nodes[0].outputs[0]].shape == (1, 4, 5, 8)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [((3, 3), (2, 2), "SAME"), ((3, 3), (2, 2), "VALID"), ((2, 3), (2, 3), "SAME"), ((2, 2), (3, 3), "SAME")],
)
def test_transpose_convolution_to_depth_declines(
    kernel: tuple[int, int], stride: tuple[int, int], padding: str
) -> None:
    op = ["TRANSPOSE_CONV"]
    check(
        convolutions.transpose_convolution_to_depth,
        lambda m: m.transpose(m.image(4, 5, 3), 2, kernel, stride, padding),
        op,
        op,
        0,
        "windows overlap or are padded",
    )


def deep_then_sigmoid(m: Sketch) -> int:
    return m.unary("LOGISTIC", m.transpose(m.image(4, 5, 3), 1, (2, 2), (2, 2), "SAME", custom=True))


def test_elementwise_before_depth_to_space() -> None:
    graph, _ = convolutions.transpose_convolution_to_depth(graph_of(deep_then_sigmoid))
    changed, outcome = convolutions.elementwise_before_depth_to_space(graph)
    assert ops_of(graph) == ["CONV_2D", "DEPTH_TO_SPACE", "LOGISTIC"]
    assert ops_of(changed) == ["CONV_2D", "LOGISTIC", "DEPTH_TO_SPACE"]
    assert outcome.applied > 0
    verify(changed)


def test_elementwise_before_depth_to_space_keeps_an_output_of_the_model() -> None:
    def draw(m: Sketch) -> tuple[int, ...]:
        x = m.transpose(m.image(4, 5, 3), 1, (2, 2), (2, 2), "SAME", custom=True)
        return x, m.unary("LOGISTIC", x)

    graph, _ = convolutions.transpose_convolution_to_depth(graph_of(draw))
    assert ops_of(convolutions.elementwise_before_depth_to_space(graph)[0]) == ops_of(graph)


def test_drop_unused() -> None:
    def draw(m: Sketch) -> int:
        x = m.image(4, 5, 3)
        m.unary("ABS", m.unary("NEG", x))
        return m.unary("RELU", x)

    check(simplify.drop_unused, draw, ["NEG", "ABS", "RELU"], ["RELU"], 2)


def upsampled_conv(m: Sketch, size: tuple[int, int] = (8, 10), **options: Any) -> int:
    return m.conv(m.resize(m.image(4, 5, 7), size, **options), 3)


@pytest.mark.parametrize("options", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str)
def test_hoist_convolution(options: dict[str, bool], context: Context) -> None:
    def draw(m: Sketch) -> int:
        return upsampled_conv(m, (9, 13), **options)

    both = ["RESIZE_BILINEAR", "CONV_2D"]
    changed = check(algebra.hoist_convolution, draw, both, both[::-1])
    assert changed.tensors[changed.nodes[0].outputs[0]].shape == (1, 4, 5, 3)
    check_same_results(context, draw)


@pytest.mark.parametrize(
    ("draw", "reader", "reason"),
    [
        (lambda m: upsampled_conv(m, (3, 4)), "CONV_2D", "is not larger than"),
        (lambda m: m.conv(m.resize(m.image(4, 5, 7), (8, 10)), 3, (3, 3)), "CONV_2D", "one 1x1 convolution alone"),
        (lambda m: m.conv(m.resize(m.image(4, 5, 7), (8, 10)), 3, stride=(2, 2)), "CONV_2D", "convolution alone"),
        (lambda m: m.unary("RELU", m.resize(m.image(4, 5, 7), (8, 10))), "RELU", "one 1x1 convolution alone"),
    ],
    ids=["downsampling", "3x3", "stride", "relu"],
)
def test_hoist_convolution_declines(draw: Draw, reader: str, reason: str) -> None:
    both = ["RESIZE_BILINEAR", reader]
    check(algebra.hoist_convolution, draw, both, both, 0, reason)


@pytest.mark.parametrize("shape", [(3, 1, 1, 5), (3,)], ids=["weights", "bias"])
def test_hoist_convolution_declines_what_is_computed_later(shape: tuple[int, ...]) -> None:
    def draw(m: Sketch) -> int:
        large, values = m.resize(m.image(4, 3, 5), (8, 6)), [m.random(3, 1, 1, 5), m.random(3)]
        values[len(shape) == 1] = m.unary("NEG", m.input(shape))
        return m.op("CONV_2D", [large, *values], (1, 8, 6, 3), stride=(1, 1), dilation=(1, 1), padding="SAME")

    three = ["RESIZE_BILINEAR", "NEG", "CONV_2D"]
    check(algebra.hoist_convolution, draw, three, three, 0, "computed")


def test_hoist_convolution_declines_two_readers() -> None:
    def draw(m: Sketch) -> tuple[int, ...]:
        x = m.resize(m.image(4, 5, 7), (8, 10))
        return m.conv(x, 3), m.unary("RELU", x)

    three = ["RESIZE_BILINEAR", "CONV_2D", "RELU"]
    check(algebra.hoist_convolution, draw, three, three, 0, "alone")


def test_distribute_mean() -> None:
    def draw(m: Sketch) -> int:
        return m.mean(m.binary("ADD", m.image(4, 5, 3), m.image(4, 5, 3)))

    check(algebra.distribute_mean, draw, ["ADD", "MEAN"], ["MEAN", "MEAN", "ADD"])


def test_distribute_mean_declines_a_sum_that_others_read() -> None:
    def draw(m: Sketch) -> tuple[int, ...]:
        x = m.binary("ADD", m.image(4, 5, 3), m.image(4, 5, 3))
        return m.mean(x), m.unary("RELU", x)

    three = ["ADD", "MEAN", "RELU"]
    check(algebra.distribute_mean, draw, three, three, 0, "has other readers, too")


@pytest.mark.parametrize("shape", [(), (3,), (1, 4, 5, 1), (1, 4, 5, 3)], ids=str)
def test_distribute_mean_declines_broadcasts_and_constants(shape: tuple[int, ...]) -> None:
    def draw(m: Sketch) -> int:
        return m.mean(m.binary("ADD", m.image(4, 5, 3), m.random(*shape)))

    check(algebra.distribute_mean, draw, ["ADD", "MEAN"], ["ADD", "MEAN"], 0, "a sum with broadcast or a constant")


def test_mean_before_resize() -> None:
    def draw(m: Sketch) -> int:
        return m.mean(m.resize(m.image(4, 5, 3), (8, 10), half_pixel_centers=True))

    changed = check(algebra.mean_before_resize, draw, ["RESIZE_BILINEAR", "MEAN"], ["RESIZE_BILINEAR", "MEAN"], 1)
    assert changed.nodes[1].inputs == changed.inputs
    assert ops_of(simplify.drop_unused(changed)[0]) == ["MEAN"]


@pytest.mark.parametrize(
    ("size", "options"),
    [((8, 10), {}), ((8, 10), {"align_corners": True}), ((9, 11), {"half_pixel_centers": True})],
    ids=["corners", "aligned", "uneven"],
)
def test_mean_before_resize_declines_uneven_weights(size: tuple[int, int], options: dict[str, Any]) -> None:
    def draw(m: Sketch) -> int:
        return m.mean(m.resize(m.image(4, 5, 3), size, **options))

    both = ["RESIZE_BILINEAR", "MEAN"]
    check(algebra.mean_before_resize, draw, both, both, 0, "does not give all pixels the same weight")


def test_mean_before_resize_takes_no_endless_memory() -> None:
    def draw(m: Sketch) -> int:
        return m.mean(m.resize(m.image(1, 100_000, 1), (1, 200_000), half_pixel_centers=True))

    both = ["RESIZE_BILINEAR", "MEAN"]
    check(algebra.mean_before_resize, draw, both, both, 0, "does not give all pixels the same weight")


@pytest.mark.parametrize("attributes", [Resize(), Resize(align_corners=True), Resize(half_pixel_centers=True)])
@pytest.mark.parametrize(("source", "target"), [(4, 9), (9, 4), (1, 5), (5, 1), (3, 6)])
def test_rows_of_interpolation_sum_to_one(source: int, target: int, attributes: Resize) -> None:
    matrix = interpolation_matrix(source, target, attributes)
    assert matrix.shape == (target, source)
    assert np.allclose(matrix.sum(axis=1), 1)


def test_all_passes_report_what_they_did(selfie_model: object) -> None:
    graph = load_model(str(selfie_model))
    changed, reports = run_passes(graph)
    assert [report.name for report in reports] == [step.__name__ for step in PASSES]
    did = {report.name: report.applied for report in reports}
    for name in ("fold_constants", "pool_to_mean", "transpose_convolution_to_depth", "hoist_convolution"):
        assert did[name] > 0, name
    assert reports[-1].nodes_after == len(changed.nodes) < len(graph.nodes)
    verify(changed)


def test_a_second_run_finds_nothing_left_to_do(selfie_landscape_model: object) -> None:
    once, _ = run_passes(load_model(str(selfie_landscape_model)))
    again, reports = run_passes(once)
    assert ops_of(again) == ops_of(once)
    assert sum(report.applied for report in reports) == 0


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.__name__)
def test_passes_leave_an_empty_graph_alone(step: Pass) -> None:
    graph = graph_of(lambda m: m.image(2, 2, 1))
    assert step(graph) == (graph, Outcome(0))
