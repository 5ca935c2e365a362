"""The one generator of random graphs: a seed and a profile give a small model, the same whenever they are asked for."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tests.generators import map_steps, value_steps
from tests.generators.map_steps import LAYERS
from tests.generators.move_steps import MAP_MOVES
from tests.generators.partial_steps import PARTIAL
from tests.generators.random_graphs import Profile, RandomGraph
from tests.generators.repeated_steps import REPEATED
from tests.generators.state_steps import STATES
from tests.generators.subgraph_steps import branched, composite, looped

_SEGMENTATION = Profile(
    map_steps.grow,
    channels=(1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 33, 40),
    sides=(1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 19, 24),
    large_sides=(33, 40, 67),
    kernels=((1, 1), (1, 1), (2, 2), (3, 3), (3, 3), (5, 5), (1, 3), (3, 2), (5, 1)),
    steps=LAYERS,
)
_MOVES = replace(_SEGMENTATION, steps=(*LAYERS, *((3, move) for move in MAP_MOVES)))
_ANY = Profile(
    value_steps.grow,
    channels=(1, 2, 3, 4, 5, 7, 8, 9, 13, 16),
    sides=(1, 2, 3, 4, 5, 6, 7, 9),
    kernels=((1, 1), (1, 1), (2, 2), (3, 3), (1, 3), (3, 2)),
    keeps_batch=False,
    strides_within_windows=True,
    strides_dilated=False,
)
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        # branches, diamonds, several inputs and outputs of any op, of ranks 0 to 4, floats, integers and truth values
        "any": _ANY,
        # the same without what is not continuous, as float twins of quantized graphs
        "quantized": replace(_ANY, continuous=True),
        # the same with ops that have graphs of their own: composites, branches, loops
        "subgraphs": replace(_ANY, further=(composite, branched, looped)),
        # the same with states: variables, recurrent ops, outputs that are inputs of the next run
        "states": replace(_ANY, further=tuple(STATES.values())),
        # networks like those that segment pictures, of ops that the GPU has
        "segmentation": _SEGMENTATION,
        # the same, which move data as often as they compute: moves of moves, views, what reads them
        "moves": _MOVES,
        # the same with ops that the GPU lacks, or is told to lack
        "partial": replace(
            _MOVES,
            steps=(*_MOVES.steps, *PARTIAL),
            strides_within_windows=True,
            custom_ops=False,
            needs_constants=True,
        ),
        # what kernels may repeat: small maps, long vectors, long windows
        "repeated": replace(
            _SEGMENTATION,
            channels=(1, 3, 8, 17, 32, 64, 128, 257, 513),
            sides=(1, 1, 1, 1, 2, 3, 4, 7, 16),
            large_sides=(1, 64, 200),
            kernels=((1, 1), (1, 1), (3, 3), (5, 5), (7, 7), (1, 64), (16, 16), (1, 250), (40, 1)),
            most_weights=300_000,
            steps=(*LAYERS, *REPEATED),
        ),
    }
)


def random_graph(seed: int, profile: str = "any", batch: int = 1) -> RandomGraph:
    """A graph; `.build()` gives the .tflite file, and `.rng` goes on with the seed. Batches are of maps alone."""
    graph = RandomGraph(seed, PROFILES[profile], batch)
    graph.profile.grow(graph)
    return graph
