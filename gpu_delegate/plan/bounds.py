"""Limits on the weights and the source text of kernels; what exceeds them is refused before it is generated."""

from ..base.errors import UnsupportedError
from ..model.graph import Graph, Node
from ..ops.nodes import record_of

MOST_TEXT_TAPS = 120_000  # of all windows that are no loops: as many as can be generated in about ten seconds
MOST_SOURCE_BYTES = 1 << 16  # of a kernel: drivers take longer than in proportion, and spill registers
MOST_WEIGHT_BYTES = 1 << 30  # of all ops, in the form that kernels read


def check_weights(graph: Graph) -> None:
    """Raises UnsupportedError for more than MOST_WEIGHT_BYTES; weights that ops share are counted for each of them."""
    needed_bytes = sum(weight_bytes(graph, node) for node in graph.nodes)
    if needed_bytes > MOST_WEIGHT_BYTES:
        what = f"its weights would take {needed_bytes >> 20} MiB, {MOST_WEIGHT_BYTES >> 20} are allowed"
        raise UnsupportedError(f"{graph.name}: {what}; use a smaller model")


def check_text(graph: Graph) -> None:
    """Raises UnsupportedError for more than MOST_TEXT_TAPS: taps of short windows stand in a kernel's source."""
    taps = sum(record_of(node).text_taps(graph, node) for node in graph.nodes)
    if taps > MOST_TEXT_TAPS:
        what = f"its windows would take {taps} taps of text, {MOST_TEXT_TAPS} are allowed"
        raise UnsupportedError(f"{graph.name}: {what}; use a smaller model")


def check_source(name: str, source: str) -> None:
    """Raises UnsupportedError for a kernel of more than MOST_SOURCE_BYTES; its ops then stay on the CPU."""
    if not is_short(source):
        what = f"{len(source) >> 10} KB of GLSL, at most {MOST_SOURCE_BYTES >> 10} are allowed"
        raise UnsupportedError(f"{name}: its kernel would take {what}")


def is_short(source: str) -> bool:
    """Whether a kernel's text is within the bound."""
    return len(source) <= MOST_SOURCE_BYTES


def weight_bytes(graph: Graph, node: Node) -> int:
    """What a node, or what a pass turns it into, adds to the weights of its kernel."""
    return record_of(node).weight_bytes(graph, node)
