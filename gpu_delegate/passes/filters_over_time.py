"""A pass that replaces SVDF by a layer, moves of what its filters have found, and a weighted sum of that.

The filters are a matrix's factors of low rank: a unit sums what its own have found in the last steps (Nakkiran et al.:
Compressing Deep Neural Networks using a Rank-Constrained Topology, Interspeech 2015).
"""

from ..model.graph import ABSENT, Concatenation, Graph, Node
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.recurrent import Recurrent
from .node_chain import NodeChain


def express_svdf(graph: Graph) -> tuple[Graph, Outcome]:
    """SVDF -> FULLY_CONNECTED, CONCATENATION with what was found before, MUL by weights over time, SUM."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "SVDF":
            _express(NodeChain(edit, graph, node), node)
    return edit.finish()


def _express(chain: NodeChain, node: Node) -> None:
    x, filters, weights, bias, before = node.inputs
    activation = attributes_of(node, Recurrent).activation
    (batch, _), (count, steps), units = chain.shape(x), chain.shape(weights), chain.out.shape[1]
    new = chain.reshape(chain.connected(x, filters), batch, count, 1)
    found = new
    if steps > 1:
        old = chain.part(chain.reshape(before, batch, count, steps), 2, 1, steps - 1)
        found = chain.op("CONCATENATION", old, new, shape=(batch, count, steps), attributes=Concatenation(axis=2))
    of_unit = count // units * steps
    products = chain.op("MUL", chain.reshape(found, batch, units, of_unit), chain.reshape(weights, 1, units, of_unit))
    total = chain.reshape(chain.reduced("SUM", products, 2), batch, units)
    if bias != ABSENT:
        total = chain.op("ADD", total, bias)
    chain.finish(total if activation == "NONE" else chain.op(activation, total), found)
