"""A network that finds things in pictures: its graph, what its input's numbers mean, and how its outputs are read."""

from dataclasses import dataclass, field

from texelflow.gpu_delegate.model.graph import Graph

from ..picture.picture import ImageSize
from .decoders.decoding import Decoding

__all__ = ["FindingModel"]


@dataclass(frozen=True)
class FindingModel:
    """A network from a picture to what is found there."""

    name: str
    graph: Graph = field(repr=False)
    reads: tuple[int, ...]  # the outputs of its graph that the decoder takes, in the decoder's order
    input_range: tuple[float, float]  # what black and white are for the network
    input_size: ImageSize
    decoding: Decoding
    decoder: str  # its name
    remembers = True  # what it finds is followed from frame to frame
    repeats_edges: bool = False  # past the frame's edges: what MediaPipe has for regions around one thing; else black
