"""Steps with ops that the GPU lacks, or is told to lack: TensorFlow Lite computes these, the GPU what is between.

What is not continuous (the place of a maximum, a value cut off to an integer) is computed of inputs alone, which GPU
and CPU have alike: anything else they round differently.
"""

from typing import Any

import numpy as np

from tests.generators.map_steps import combined, halves, with_halves
from tests.generators.move_steps import of_bounded_size
from tests.generators.random_graphs import MapStep, RandomGraph
from tests.model_files.moves import ints, reshaped

LACKED = frozenset(
    {
        "ARG_MAX", "BATCH_MATMUL", "BITWISE_XOR", "CUMSUM", "GATHER_ND", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION",
        "ONE_HOT", "REVERSE_SEQUENCE", "TOPK_V2", "ZEROS_LIKE",
    }
)  # fmt: skip
MOST_INPUTS_LOOKED_AT = 4


def normalized_locally(graph: RandomGraph, x: int) -> int:
    return graph.unary("LOCAL_RESPONSE_NORMALIZATION", x, radius=graph.below(4), bias=1.0, alpha=0.5, beta=0.5)


def accumulated(graph: RandomGraph, x: int) -> int:
    """Along one dimension; of small values, so that the sum is none too large."""
    out = graph.op("CUMSUM", [graph.unary("TANH", x), ints(graph, graph.pick((1, 2, 3)))], graph.shape(x))
    graph.most[out] = float(max(graph.shape(x)))
    return out


def pooled_by_norm(graph: RandomGraph, x: int) -> int:
    return graph.pool("L2_POOL_2D", x, graph.pick(((1, 1), (2, 2), (3, 2))), table="Pool2DOptions")


def picked(graph: RandomGraph, x: int) -> int:
    """Pixels from anywhere."""
    batch, height, width, channels = graph.shape(x)
    rows, columns = graph.below(6), graph.below(6)
    total = batch * rows * columns
    places = [np.arange(total) // (rows * columns), *(graph.rng.integers(0, n, total) for n in (height, width))]
    indices = ints(graph, np.stack(places, axis=1).reshape(batch, rows, columns, 3))
    return graph.op("GATHER_ND", [x, indices], (batch, rows, columns, channels))


def multiplied(graph: RandomGraph, x: int) -> int:
    """By a matrix for each map."""
    depth, outputs = graph.shape(x)[3], graph.below(12)
    weights = graph.constant(graph.rng.uniform(-1, 1, (1, 1, depth, outputs)) / depth**0.5)
    return graph.op("BATCH_MATMUL", [x, weights], (*graph.shape(x)[:3], outputs))


def sorted_values(graph: RandomGraph, x: int) -> int:
    """The largest values of each pixel. Their places are another output, which nothing reads, or CAST does."""
    count = graph.below(graph.shape(x)[3] + 1)
    shape = (*graph.shape(x)[:3], count)
    outputs = [graph.tensor(shape), graph.tensor(shape, "int32")]
    values, places = graph.op_of("TOPK_V2", [x, ints(graph, count)], outputs)
    if x in graph.inputs and graph.chance(0.7):
        return graph.binary("ADD", values, graph.op("CAST", [places], shape))
    return values


def turned_back(graph: RandomGraph, x: int) -> int:
    batch, height = graph.shape(x)[:2]
    lengths = ints(graph, graph.rng.integers(1, height + 1, batch))
    return graph.op("REVERSE_SEQUENCE", [x, lengths], graph.shape(x), seq_dim=1, batch_dim=0)


def zeroed(graph: RandomGraph, x: int) -> int:
    return graph.binary("ADD", graph.conv(x, graph.shape(x)[3]), graph.unary("ZEROS_LIKE", x))


def of_five_dimensions(graph: RandomGraph, x: int) -> int:
    batch, height, width, channels = graph.shape(x)
    shape = (batch, height, width, 1, channels)
    return reshaped(graph, graph.unary("TANH", reshaped(graph, x, *shape)), batch, height, width, channels)


# Integers that cross --------------------------------------------------------------------------------


def looked_at(graph: RandomGraph) -> int:
    """A map of which GPU and CPU have the same bits."""
    maps = [index for index in graph.inputs if len(graph.shape(index)) == 4]
    if len(maps) < MOST_INPUTS_LOOKED_AT and graph.chance(0.3):
        height, width, channels = (graph.below(9) for _ in range(3))
        return graph.remember(graph.image(height, width, channels, graph.batch), 1.0)
    return graph.pick(maps)


def with_places(graph: RandomGraph, x: int) -> int:
    """A map with where an input is largest, as one channel, or as one of ones and zeros for each."""
    y = looked_at(graph)
    batch, height, width, channels = graph.shape(y)
    places = graph.op("ARG_MAX", [y, ints(graph, 3)], (batch, height, width), "int32", output_type=2)
    if graph.chance(0.5):
        flags = [ints(graph, channels), graph.constant(1.0), graph.constant(0.0)]
        mask = graph.op("ONE_HOT", [places, *flags], (batch, height, width, channels), axis=-1)
    else:
        mask = reshaped(graph, graph.op("CAST", [places], (batch, height, width)), batch, height, width, 1)
    return joint(graph, x, mask)


def with_integers(graph: RandomGraph, x: int) -> int:
    """A map with an input's values as integers, made on the GPU, changed on the CPU, read on the GPU."""
    y = looked_at(graph)
    whole = graph.op("CAST", [y], graph.shape(y), "int32")
    if graph.chance(0.4):
        graph.inner_outputs.append(whole)
    changed = graph.op("BITWISE_XOR", [whole, ints(graph, 1)], graph.shape(y), "int32", table="BitwiseXorOptions")
    return joint(graph, x, graph.op("CAST", [changed], graph.shape(y)))


def joint(graph: RandomGraph, x: int, y: int) -> int:
    """A map and another of any size, added."""
    _, height, width, channels = graph.shape(x)
    if graph.shape(y)[1:3] != (height, width):
        y = graph.resize(y, (height, width))
    return graph.binary("ADD", x, graph.conv(y, channels))


# Constants --------------------------------------------------------------------------------


def with_shared_halves(graph: RandomGraph, x: int) -> int:
    """The same weights for the GPU and for an op that it lacks, which may come first."""
    channels = graph.shape(x)[3]
    weights = halves(graph, 1, 3, 3, channels)
    options: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME", "depth_multiplier": 1}
    is_first = graph.chance(0.5)
    other = normalized_locally(graph, weights) if is_first else 0
    out = graph.op("DEPTHWISE_CONV_2D", [x, weights, halves(graph, channels)], graph.shape(x), **options)
    return graph.binary("ADD", out, graph.mean(other if is_first else normalized_locally(graph, weights)))


def with_output_constant(graph: RandomGraph, x: int) -> int:
    """A constant that is an output, too."""
    bias = halves(graph, graph.shape(x)[3])
    graph.inner_outputs += [bias] if graph.chance(0.5) else []
    return combined(graph, x, bias)


PARTIAL: tuple[tuple[int, MapStep], ...] = (
    *(
        (9, of_bounded_size(step))
        for step in (
            normalized_locally, accumulated, pooled_by_norm, picked, multiplied, sorted_values, turned_back, zeroed,
            of_five_dimensions, with_places, with_integers,
        )
    ),
    (6, with_halves), (4, with_shared_halves), (2, with_output_constant),
)  # fmt: skip
