"""A pass that replaces LSTM by a fully connected layer for each gate, and arithmetic."""

from collections.abc import Sequence

import numpy as np

from ..model.graph import Activated, Attributes, Concatenation, Graph, Node, StridedSlice, Tensor
from ..model.rewrite import Outcome, Rewriter, float_data
from ..ops.lstm import GATES
from ..ops.recurrent import LongShortTerm


def express_lstm(graph: Graph) -> tuple[Graph, Outcome]:
    """LSTM -> CONCATENATION, FULLY_CONNECTED for each gate, arithmetic.

    state = logistic(input) tanh(new) + logistic(forget) last state, activation = logistic(output) tanh(state). Where
    the gates are read, or their weights are computed, they are one FULLY_CONNECTED and a STRIDED_SLICE for each.
    """
    edit = Rewriter(graph)
    read = {*graph.consumers(), *graph.outputs}
    for node in graph.nodes:
        if node.op == "LSTM" and not isinstance(node.attributes, LongShortTerm):
            edit.replace(node, *_Cell(edit, graph, node, node.outputs[3] in read).nodes)
    return edit.finish()


class _Cell:
    """The nodes of one LSTM, in order."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node, gates_are_read: bool) -> None:
        self._edit, self._node = edit, node
        x, last, weights, bias, state = node.inputs
        activation, new_state, both, gates, *after = node.outputs
        self._shape, self._name = graph.tensors[activation].shape, graph.tensors[activation].name
        self.nodes = [Node("CONCATENATION", (x, last), (both,), Concatenation(axis=1), node.index)]
        parameters = [graph.tensors[weights], graph.tensors[bias]]
        if gates_are_read or not all(tensor.is_constant for tensor in parameters):
            self._add("FULLY_CONNECTED", both, weights, bias, out=gates)
            found_gates = [self._slice(gates, number) for number in range(GATES)]
        else:
            found_gates = [self._layer(both, parameters, number) for number in range(GATES)]
        read, new, forget, written = found_gates
        kept = self._add("MUL", self._add("LOGISTIC", forget), state)
        found = self._add("MUL", self._add("LOGISTIC", read), self._add("TANH", new))
        self._add("ADD", found, kept, out=new_state)
        self._add("MUL", self._add("LOGISTIC", written), self._add("TANH", new_state), out=activation)
        for value, out in zip((activation, new_state), after, strict=False):  # where it keeps both
            self._add("RESHAPE", value, out=out)

    def _slice(self, gates: int, number: int) -> int:
        """One of all gates."""
        begin, (rows, units) = (0, number * self._shape[1]), self._shape
        return self._add("STRIDED_SLICE", gates, attributes=StridedSlice(begin, (rows, units), (1, 1)))

    def _layer(self, both: int, parameters: Sequence[Tensor], number: int) -> int:
        """A gate by the rows of weights and bias that are its own."""
        own = (
            self._edit.new_constant(f"{tensor.name}:{number}", np.split(float_data(tensor), GATES)[number])
            for tensor in parameters
        )
        return self._add("FULLY_CONNECTED", both, *own)

    def _add(self, op: str, *inputs: int, out: int = -1, attributes: Attributes | None = None) -> int:
        """A node with an output of the states' shape, a new one where none is given."""
        out = self._edit.new_tensor(f"{self._name}:{op.lower()}", self._shape) if out < 0 else out
        attributes = attributes or (Activated() if op in ("ADD", "MUL", "FULLY_CONNECTED") else Attributes())
        self.nodes.append(Node(op, inputs, (out,), attributes, self._node.index))
        return out
