"""A pass that replaces LSTM in its full form, RNN, and both over time, by layers and arithmetic for each step.

Of a gate, what the inputs of all steps give is one product of matrices in front of the steps, and all gates of a step
are another one (Appleyard, Kociský, Blunsom: Optimizing Performance of Recurrent Neural Networks on GPUs, 2016,
arXiv 1604.01946).
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..model.graph import ABSENT, Axis, Graph, Node, Tensor
from ..model.layout import aligned_channels
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter, float_data
from ..ops.lstm import (
    BIASES,
    GATES,
    INPUT_WEIGHTS,
    LAST_ACTIVATION,
    LAST_CELL,
    LAST_WEIGHTS,
    NEW,
    NORMS,
    PROJECTION,
    PROJECTION_BIAS,
    peephole_of,
)
from ..ops.recurrent import LongShortTerm, Recurrent
from ..ops.rnn import RNN_STATE
from .folding import computed_constants
from .node_chain import NodeChain

LEAST_VARIANCE = 1e-8  # added to that of a gate before it is divided by its root, as TensorFlow Lite does

_IN, _FORGET, _OUT = (gate for gate in range(GATES) if gate != NEW)
_Floats = npt.NDArray[np.float32]


def express_recurrence(graph: Graph) -> tuple[Graph, Outcome]:
    """LSTM in its full form, RNN, both over time -> FULLY_CONNECTED of all inputs, then for each step, arithmetic."""
    edit = Rewriter(graph)
    nodes = [node for node in graph.nodes if isinstance(node.attributes, Recurrent) and node.op != "SVDF"]
    known = known_tensors(graph) if nodes else {}
    for node in nodes:
        kind = _Lstm if isinstance(node.attributes, LongShortTerm) else _Rnn
        kind(edit, graph, node, known).express()
    return edit.finish()


def known_tensors(graph: Graph) -> Mapping[int, Tensor]:
    """Constants, and what is computed of them alone."""
    found = {index: tensor for index, (_, tensor) in computed_constants(graph, lambda _: None).items()}
    return {**graph.tensors, **found}


class _Layer:
    """The nodes of one layer. Rows are those of a batch."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node, known: Mapping[int, Tensor]) -> None:
        self.chain, self._known = NodeChain(edit, graph, node), known
        self.options = attributes_of(node, Recurrent)
        shape = graph.tensors[node.inputs[0]].shape
        first, second = (shape[0], 1) if len(shape) == 2 else (shape[:2])
        self.time_major = len(shape) == 3 and self.options.time_major
        self.batch, self.steps = (second, first) if self.time_major else (first, second)
        self.x = self.chain.reshape(node.inputs[0], first * second, shape[-1])

    def has(self, position: int) -> bool:
        inputs = self.chain.node.inputs
        return len(inputs) > position and inputs[position] != ABSENT

    def values(self, position: int) -> _Floats:
        """Of a constant input."""
        return float_data(self._known[self.chain.node.inputs[position]])

    def constant(self, position: int) -> int:
        return self.chain.constant(self.values(position))

    def kept(self, position: int, values: int) -> int:
        """An input that it keeps, as rows of so many values."""
        return self.chain.reshape(self.chain.node.inputs[position], self.batch, values)

    def rows_of(self, x: int, step: int) -> int:
        """What all steps have, (rows of all steps, values), in one step."""
        if self.steps == 1:
            return x
        begin, stride = (step * self.batch, 1) if self.time_major else (step, self.steps)
        return self.chain.rows(x, begin, self.batch, stride)

    def activated(self, x: int, activation: str) -> int:
        return x if activation == "NONE" else self.chain.op(activation, x)

    def clipped(self, x: int, most: float) -> int:
        if not most:
            return x
        below = self.chain.op("MINIMUM", x, self.chain.constant(most))
        return self.chain.op("MAXIMUM", below, self.chain.constant(-most))

    def finish(self, found: list[int], *kept: int) -> None:
        """The activations of all steps, and what is kept."""
        if self.steps == 1:
            self.chain.finish(found[0], *kept)
            return
        axis = 0 if self.time_major else 1
        shape = (self.batch, *self.chain.shape(found[0])[1:])
        whole = (*shape[:axis], self.steps, *shape[axis:])
        self.chain.finish(self.chain.op("PACK", *found, shape=whole, attributes=Axis(axis)), *kept)


class _Rnn(_Layer):
    """activation = f(weights x + weights last activation + bias)."""

    def express(self) -> None:
        chain, found = self.chain, list[int]()
        given = chain.connected(self.x, self.constant(1), self.constant(3))
        weights = self.constant(2)
        last = self.kept(RNN_STATE, chain.shape(weights)[0])
        for step in range(self.steps):
            total = chain.op("ADD", chain.connected(last, weights), self.rows_of(given, step))
            last = self.activated(total, self.options.activation)
            found.append(last)
        self.finish(found, last)


class _Lstm(_Layer):
    """cell = forget last cell + in new, activation = out f(cell), or a projection of that.

    Without a gate of the input, what is not kept comes in. Gates see the cell through peepholes, that of the output the
    new one. In a matrix of all gates each begins at a whole slice of channels.
    """

    def __init__(self, edit: Rewriter, graph: Graph, node: Node, known: Mapping[int, Tensor]) -> None:
        super().__init__(edit, graph, node, known)
        self.limits = attributes_of(node, LongShortTerm)
        self.gates = [gate for gate in (_IN, _FORGET, NEW, _OUT) if self.has(INPUT_WEIGHTS + gate)]
        self.units, self.outputs = self.values(LAST_WEIGHTS + _OUT).shape
        self.stride = aligned_channels(self.units)
        self.is_normalized = self.has(NORMS + _OUT)
        vectors = [*map(peephole_of, self.gates), *(kind + gate for kind in (NORMS, BIASES) for gate in self.gates)]
        self.vectors = {position: self.constant(position) for position in vectors if self.has(position)}

    def express(self) -> None:
        chain, found = self.chain, list[int]()
        bias = ABSENT if self.is_normalized else chain.constant(self._of_gates(BIASES))
        given = chain.connected(self.x, chain.constant(self._of_gates(INPUT_WEIGHTS)), bias)
        weights = chain.constant(self._of_gates(LAST_WEIGHTS))
        projection = [self.constant(each) for each in (PROJECTION, PROJECTION_BIAS) if self.has(each)]
        last, cell = self.kept(LAST_ACTIVATION, self.outputs), self.kept(LAST_CELL, self.units)
        for step in range(self.steps):
            gates = chain.op("ADD", chain.connected(last, weights), self.rows_of(given, step))
            cell = self._cell(gates, cell)
            shown = self.activated(cell, self.options.activation)
            last = chain.op("MUL", self._gate(gates, _OUT, cell), shown)
            if projection:
                last = self.clipped(chain.connected(last, *projection), self.limits.projection_clip)
            found.append(last)
        self.finish(found, last, cell)

    def _of_gates(self, kind: int) -> _Floats:
        """Weights or biases of all gates."""
        parts = [self.values(kind + gate) for gate in self.gates]
        more = self.stride - self.units
        return np.concatenate([np.pad(part, [(0, more), *[(0, 0)] * (part.ndim - 1)]) for part in parts])

    def _cell(self, gates: int, cell: int) -> int:
        chain = self.chain
        forget, new = self._gate(gates, _FORGET, cell), self._gate(gates, NEW, cell)
        is_coupled = _IN not in self.gates
        entering = chain.op("SUB", chain.constant(1.0), forget) if is_coupled else self._gate(gates, _IN, cell)
        total = chain.op("ADD", chain.op("MUL", forget, cell), chain.op("MUL", entering, new))
        return self.clipped(total, self.limits.cell_clip)

    def _gate(self, gates: int, gate: int, cell: int) -> int:
        chain = self.chain
        found = chain.part(gates, 1, self.gates.index(gate) * self.stride, self.units)
        if gate != NEW and peephole_of(gate) in self.vectors:
            found = chain.op("ADD", found, chain.op("MUL", cell, self.vectors[peephole_of(gate)]))
        if self.is_normalized:
            found = self._normalized(found, gate)
        return self.activated(found, self.options.activation if gate == NEW else "LOGISTIC")

    def _normalized(self, x: int, gate: int) -> int:
        """Layer normalization, whose bias is that of the gate."""
        chain = self.chain
        apart = chain.op("SUB", x, chain.reduced("MEAN", x, 1))
        square = chain.op("MUL", apart, apart)
        variance = chain.op("ADD", chain.reduced("MEAN", square, 1), chain.constant(LEAST_VARIANCE))
        scaled = chain.op("MUL", apart, chain.op("RSQRT", variance))
        return chain.op("ADD", chain.op("MUL", scaled, self.vectors[NORMS + gate]), self.vectors[BIASES + gate])
