"""Steps that add ops to a map of a random graph, as segmentation networks have them: layers, blocks, gates, wiring.

Networks of them alone hold only ops that the GPU takes, so that whatever goes wrong is the engine's fault.
"""

from typing import Any

import numpy as np

from tests.generators.random_graphs import FUSED, MapStep, RandomGraph
from tests.model_files.sketch import Shape, Size, slid

STRIDES = ((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (3, 2))
SMOOTH = ("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LOGISTIC", "TANH", "ABS", "NEG")
OF_POSITIVE = ("LOG", "SQRT", "RSQRT", "EXP", "SQUARE")
TRANSPOSED = (
    ((2, 2), (2, 2)), ((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (2, 2)),
    ((3, 3), (1, 1)), ((3, 3), (3, 3)), ((2, 3), (2, 1)), ((2, 2), (3, 3)),
)  # fmt: skip
RESIZES: tuple[dict[str, bool], ...] = ({}, {"align_corners": True}, {"half_pixel_centers": True})
LARGEST_SIDE = 70
LARGEST_VALUE = 30.0  # that a tensor may have by a rough estimate before something bounds it
MOST_INPUTS = 3


def grow(graph: RandomGraph) -> None:
    """From one input, step by step; a step reads what was made last, or sometimes anything made before."""
    profile = graph.profile
    sides = profile.large_sides if graph.chance(0.1) else profile.sides
    graph.remember(graph.image(graph.pick(sides), graph.pick(sides), graph.pick(profile.channels), graph.batch), 1.0)
    weights = np.array([weight for weight, _ in profile.steps]) / sum(weight for weight, _ in profile.steps)
    if graph.chance(0.1):
        graph.remember(graph.constant(graph.rng.uniform(-1, 1, graph.shape(graph.made[0]))), 1.0)
    for _ in range(int(graph.rng.integers(1, 11 if graph.chance(0.95) else 40))):
        x = graph.made[-1] if graph.chance(0.75) else graph.pick(graph.made)
        if graph.most[x] > LARGEST_VALUE:
            x = graph.remember(graph.unary(graph.pick(("TANH", "RELU6", "LOGISTIC")), x), 1.0)
        _, step = profile.steps[graph.rng.choice(len(profile.steps), p=weights)]
        graph.remember(step(graph, x), graph.most[x] + 1)
    if profile.needs_constants and all(tensor.data is None for tensor in graph.tensors):
        graph.remember(with_halves(graph, graph.made[-1]), 2.0)
    name_outputs(graph)


def name_outputs(graph: RandomGraph) -> None:
    """The last value, sometimes behind a mask's head, and sometimes others, whether they are consumed or not."""
    last, head = graph.made[-1], []
    if graph.chance(0.3):
        head = [mask_head(graph, last)]
        last = graph.unary("LOGISTIC", head[0])
    written = [op.outputs[0] for op in graph.ops if op.name != "PAD"]  # which has no kernel of its own
    others = [graph.pick(written) for _ in range(int(graph.rng.integers(0, 3)))] if graph.chance(0.5) else []
    others += (head if graph.chance(0.3) else []) + graph.inner_outputs
    graph.output(*dict.fromkeys([last if last in written else written[-1], *others]))


def mask_head(graph: RandomGraph, x: int) -> int:
    if max(graph.shape(x)[1:3]) * 2 > LARGEST_SIDE or graph.chance(0.5):
        return graph.conv(x, 1, graph.pick(((1, 1), (3, 3))))
    kernel, stride = graph.pick((((2, 2), (2, 2)), ((3, 3), (2, 2))))
    custom = graph.chance(0.5) and graph.profile.custom_ops
    return graph.transpose(x, 1, kernel, stride, "SAME", custom)


def convolved(graph: RandomGraph, x: int) -> int:
    """With a window, and as many channels, as a bound on weights allows."""
    options, depth, most = window(graph, x), graph.shape(x)[3], graph.profile.most_weights
    if np.prod(options["kernel"]) * depth > most:
        options = {}
    fitting = most // int(np.prod(options.get("kernel", (1, 1))) * depth)
    return graph.conv(x, min(graph.pick(graph.profile.channels), fitting), activation=graph.pick(FUSED), **options)


def depthwise_step(graph: RandomGraph, x: int) -> int:
    multiplier = graph.pick((1, 1, 1, 1, 2, 3)) if graph.shape(x)[3] < 14 else 1
    options = window(graph, x)
    return graph.depthwise(x, multiplier=multiplier, activation=graph.pick(FUSED), **options)


def window(graph: RandomGraph, x: int, dilated: bool = True) -> dict[str, Any]:
    """Options of a window that fits into the map."""
    options: dict[str, Any] = {"kernel": graph.pick(graph.profile.kernels)}
    if dilated and graph.chance(0.15):
        options["dilation"] = graph.pick(((2, 2), (1, 2), (3, 2)))
    fits = min(slid(graph.shape(x)[1:3], padding="VALID", **options)) > 0
    padding = "VALID" if fits and graph.chance(0.3) else "SAME"
    stride = graph.pick(STRIDES)
    if graph.profile.strides_within_windows:
        stride = (min(stride[0], options["kernel"][0]), min(stride[1], options["kernel"][1]))
    if "dilation" in options and not graph.profile.strides_dilated:
        stride = (1, 1)
    return options | {"stride": stride, "padding": padding}


def transposed(graph: RandomGraph, x: int) -> int:
    kernel, stride = graph.pick(TRANSPOSED)
    if max(n * step for n, step in zip(graph.shape(x)[1:3], stride, strict=True)) > LARGEST_SIDE:
        return convolved(graph, x)
    custom, channels = graph.chance(0.5), min(graph.pick(graph.profile.channels), 17)
    options: dict[str, Any] = {} if custom else {"activation": graph.pick(FUSED)}
    return graph.transpose(
        x, channels, kernel, stride, graph.pick(("SAME", "VALID")), custom and graph.profile.custom_ops, **options
    )


def activated(graph: RandomGraph, x: int) -> int:
    if graph.chance(0.1):
        return graph.unary("LEAKY_RELU", x, alpha=graph.pick((0.1, 0.5, 1.5)))
    return graph.unary(graph.pick(SMOOTH), x)


def of_positive(graph: RandomGraph, x: int) -> int:
    return graph.unary(graph.pick(OF_POSITIVE), graph.positive(x))


def divided(graph: RandomGraph, x: int) -> int:
    others = [other for other in graph.made if graph.shape(other) == graph.shape(x)]
    return graph.binary("DIV", x, graph.positive(graph.pick(others)))


def combined(graph: RandomGraph, x: int, y: int) -> int:
    """Both in a binary op, in either order."""
    op = graph.pick(("ADD", "ADD", "ADD", "SUB", "MUL", "MUL", "MAXIMUM", "MINIMUM"))
    pair = (x, y) if graph.chance(0.7) else (y, x)
    options: dict[str, Any] = {"activation": graph.pick(FUSED)} if op in ("ADD", "SUB", "MUL") else {}
    out = graph.binary(op, *pair, **options)
    first, second = (graph.about(tensor) for tensor in pair)
    graph.most[out] = first * second if op == "MUL" else first + second
    return out


def with_constant(graph: RandomGraph, x: int) -> int:
    _, height, width, channels = graph.shape(x)
    shapes: tuple[Shape, ...] = (
        (), (1,), (channels,), (channels,), (1, 1, 1, channels), (1, channels), (1, height, width, 1),
        (1, height, width, channels), (1, 1, channels), (1, 1, 1, 1),
    )  # fmt: skip
    return combined(graph, x, graph.constant(graph.rng.uniform(-1, 1, graph.pick(shapes))))


def with_other(graph: RandomGraph, x: int) -> int:
    """A value from further back: as it is where it fits, else projected or resized first; sometimes an input."""
    if len(graph.inputs) < MOST_INPUTS and graph.chance(0.15):
        _, height, width, channels = graph.shape(x)
        shapes = ((height, width, channels), (height, width, 1), (1, 1, channels), (1, 1, 1))
        return combined(graph, x, graph.remember(graph.image(*graph.pick(shapes)), 1.0))
    other = graph.pick(graph.made)
    _, height, width, channels = graph.shape(x)
    if (1, 1) not in (graph.shape(other)[1:3], (height, width)) and graph.shape(other)[1:3] != (height, width):
        other = graph.resize(other, (height, width), "RESIZE_BILINEAR", **graph.pick(RESIZES))
    if 1 not in (graph.shape(other)[3], channels) and graph.shape(other)[3] != channels:
        other = graph.conv(other, channels)
    return combined(graph, x, other)


def gated(graph: RandomGraph, x: int) -> int:
    """Squeeze and excite."""
    channels = graph.shape(x)[3]
    small = graph.conv(mean_of(graph, x), graph.pick(graph.profile.channels), activation=graph.pick(("RELU", "RELU6")))
    gate = graph.unary(graph.pick(("LOGISTIC", "TANH")), graph.conv(small, graph.pick((channels, channels, 1))))
    return graph.binary("MUL", x, gate)


def mean_of(graph: RandomGraph, x: int) -> int:
    """A map's mean in one of the ways in which converters write it."""
    if graph.chance(0.3):
        size = graph.shape(x)[1:3]
        return graph.pool("AVERAGE_POOL_2D", x, (size[0], size[1]), stride=size, padding="VALID")
    if graph.chance(0.3):
        others = [other for other in graph.made if graph.shape(other) == graph.shape(x)]
        return graph.mean(graph.binary("ADD", x, graph.pick(others)))
    if graph.chance(0.2):
        x = graph.resize(
            x,
            (graph.pick(graph.profile.sides), graph.pick(graph.profile.sides)),
            "RESIZE_BILINEAR",
            **graph.pick(RESIZES),
        )
    return graph.mean(x)


def masked(graph: RandomGraph, x: int) -> int:
    """One value for each pixel, over all channels."""
    mask = graph.unary("LOGISTIC", graph.conv(x, 1, graph.pick(((1, 1), (3, 3)))))
    graph.inner_outputs += [mask] if graph.chance(0.2) else []
    return combined(graph, x, mask)


def resized(graph: RandomGraph, x: int) -> int:
    height, width = graph.shape(x)[1:3]
    doubled = (2 * height, 2 * width)
    size: Size = (graph.pick(graph.profile.sides), graph.pick(graph.profile.sides))
    if max(doubled) <= LARGEST_SIDE and graph.chance(0.6):
        size = doubled
    op = graph.pick(("RESIZE_BILINEAR", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
    out = graph.remember(graph.resize(x, size, op, **graph.pick(RESIZES)), graph.most[x])
    graph.inner_outputs += [out] if graph.chance(0.1) else []
    return graph.conv(out, graph.pick(graph.profile.channels)) if graph.chance(0.4) else out


def pooled(graph: RandomGraph, x: int) -> int:
    options = window(graph, x, dilated=False)
    return graph.pool(graph.pick(("AVERAGE_POOL_2D", "MAX_POOL_2D")), x, activation=graph.pick(FUSED), **options)


def image_pooled(graph: RandomGraph, x: int) -> int:
    """The mean, transformed and spread over the map again."""
    height, width = graph.shape(x)[1:3]
    small = graph.conv(mean_of(graph, x), graph.shape(x)[3], activation="RELU")
    op = graph.pick(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
    return combined(graph, x, graph.resize(small, (height, width), op, **graph.pick(RESIZES)))


def padded(graph: RandomGraph, x: int) -> int:
    rows, columns = graph.pick(((1, 1), (0, 1), (2, 0))), graph.pick(((1, 1), (0, 1), (0, 0)))
    wide = graph.pad(x, (0, 0), rows, columns, (0, 0))
    return depthwise_step(graph, wide) if graph.chance(0.4) else convolved(graph, wide)


def bottleneck(graph: RandomGraph, x: int) -> int:
    channels, wide = graph.shape(x)[3], graph.pick(graph.profile.channels)
    y = graph.unary("HARD_SWISH", graph.conv(x, wide))
    y = graph.remember(graph.unary("RELU", graph.depthwise(y, graph.pick(((3, 3), (5, 5))))), 2.0)
    if graph.chance(0.3):
        y = gated(graph, y)
    return graph.binary("ADD", graph.conv(y, channels), x)


def doubled(graph: RandomGraph, x: int) -> int:
    """Added to itgraph, and to itgraph again."""
    for _ in range(graph.pick((1, 2, 5))):
        doubled = graph.binary("ADD", x, x)
        graph.most[doubled] = 2 * graph.about(x)
        x = graph.unary("TANH", doubled) if graph.most[doubled] > LARGEST_VALUE else doubled
    return x


def diamonds(graph: RandomGraph, x: int) -> int:
    """Ways that part and meet again, each behind the other."""
    for _ in range(graph.pick((1, 3, 7))):
        x = graph.binary("MUL", graph.unary("TANH", x), graph.unary(graph.pick(("LOGISTIC", "TANH")), x))
    return x


def fibonacci(graph: RandomGraph, x: int) -> int:
    """Each value from the two before it; with bounds, so that it does not grow as those numbers do."""
    before = graph.unary("TANH", x)
    for _ in range(graph.pick((2, 5, 9))):
        before, x = x, graph.binary("ADD", graph.unary("RELU_N1_TO_1", x), before, activation="RELU_N1_TO_1")
    return x


def classified(graph: RandomGraph, x: int) -> int:
    """A vector of rank 2 from the mean, which a map may be scaled by."""
    y = graph.connected(graph.mean(x, keep_dims=graph.chance(0.5)), graph.shape(x)[3], activation=graph.pick(FUSED))
    return combined(graph, x, y) if graph.batch == 1 and graph.chance(0.7) else y


def with_halves(graph: RandomGraph, x: int) -> int:
    """A convolution with weights and biases of 16 bits."""
    channels, kernel = graph.pick(graph.profile.channels), graph.pick(graph.profile.kernels)
    inputs = [x, halves(graph, channels, *kernel, graph.shape(x)[3]), halves(graph, channels)]
    options: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME"}
    return graph.op("CONV_2D", inputs, (*graph.shape(x)[:3], channels), **options)


def halves(graph: RandomGraph, *shape: int) -> int:
    """Weights of 16 bits."""
    fan_in = max(int(np.prod(shape[1:])), 1)
    return graph.half(graph.rng.uniform(-1, 1, shape) * (3.0 / max(fan_in, 3)) ** 0.5)


LAYERS: tuple[tuple[int, MapStep], ...] = (  # what a network may grow by, and how likely each is
    (6, convolved), (4, depthwise_step), (2, transposed), (5, activated),
    (1, of_positive), (3, with_constant), (6, with_other), (3, gated), (2, masked),
    (3, resized), (2, pooled), (2, mean_of), (1, image_pooled), (1, padded),
    (1, divided), (2, bottleneck), (1, classified), (1, doubled), (1, diamonds),
    (1, fibonacci),
)  # fmt: skip
