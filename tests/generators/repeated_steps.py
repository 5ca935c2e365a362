"""Steps of what kernels may repeat: slices, joints and windows of small maps and long vectors, recurrent cells."""

from tests.generators.map_steps import convolved
from tests.generators.random_graphs import MapStep, RandomGraph

MOST_TAPS = 512  # of a window that is as large as its map
MOST_JOINED = 400  # channels


def sliced(graph: RandomGraph, x: int) -> int:
    """Some channels of it."""
    size, channels = graph.shape(x)[1:3], graph.shape(x)[3]
    first = int(graph.rng.integers(0, max(1, channels // 2)))
    last = int(graph.rng.integers(first + 1, channels + 1))
    corners = ((0, 0, 0, first), (1, *size, last), (1, 1, 1, 1))
    inputs = [x, *(graph.constant(corner, "int32") for corner in corners)]
    out = graph.op("STRIDED_SLICE", inputs, (1, *size, last - first))
    return graph.remember(out, graph.most[x])


def joined(graph: RandomGraph, x: int) -> int:
    """With others of its size."""
    if graph.shape(x)[3] > MOST_JOINED:
        return sliced(graph, x)
    others = [other for other in graph.made if graph.shape(other)[:3] == graph.shape(x)[:3]]
    return graph.remember(graph.concatenation(x, graph.pick(others), graph.unary("TANH", x)), graph.most[x])


def whole_window(graph: RandomGraph, x: int) -> int:
    """A window as large as its map: one pixel is left."""
    _, height, width, channels = graph.shape(x)
    if height * width > MOST_TAPS:
        return convolved(graph, x)
    most = max(1, graph.profile.most_weights // (height * width * channels))
    return graph.conv(x, min(graph.pick(graph.profile.channels), most), (height, width), padding="VALID")


def cell(graph: RandomGraph, x: int) -> int:
    """Gates of one matrix, of which each is a slice, and a state: a recurrent cell that converters write out."""
    vector, channels = graph.mean(x), graph.pick((16, 32, 64, 128))
    for _ in range(graph.pick((1, 1, 2))):
        state = graph.image(1, 1, channels)
        gates = graph.binary("ADD", graph.conv(vector, 3 * channels), graph.conv(state, 3 * channels))
        read, kept, new = (_gate(graph, gates, k * channels, channels) for k in range(3))
        old = graph.binary("MUL", graph.unary("LOGISTIC", kept), state)
        vector = graph.binary("ADD", old, graph.binary("MUL", graph.unary("LOGISTIC", read), graph.unary("TANH", new)))
    return graph.remember(vector, 2.0)


def _gate(graph: RandomGraph, gates: int, first: int, channels: int) -> int:
    corners = ((0, 0, 0, first), (1, 1, 1, first + channels), (1, 1, 1, 1))
    return graph.op(
        "STRIDED_SLICE", [gates, *(graph.constant(corner, "int32") for corner in corners)], (1, 1, 1, channels)
    )


REPEATED: tuple[tuple[int, MapStep], ...] = ((8, cell), (5, sliced), (3, joined), (4, whole_window))
