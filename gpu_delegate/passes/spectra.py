"""A pass that makes floats of complex numbers: each tensor of them becomes two, of real and of imaginary parts.

RFFT2D is products with matrices of a discrete Fourier transform, X[k] = sum of x[n] exp(-2 pi i k n / N), whose values
are computed in float64; where there are rows, a second one along them. What lies beyond the length has zeros there.
"""

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError
from ..model.graph import ABSENT, Activated, Attributes, Graph, Node, Shape, Transpose
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.spectrum import COMPLEX, Transform


def express_spectra(graph: Graph) -> tuple[Graph, Outcome]:
    """RFFT2D -> products with constant matrices; COMPLEX_ABS, REAL, IMAG -> arithmetic; complex numbers -> floats."""
    if not any(tensor.dtype == COMPLEX for tensor in graph.tensors.values()):
        return graph, Outcome(0)
    expression = _Expression(graph)
    for node in graph.nodes:
        expression.add(node)
    return expression.edit.finish()


class _Expression:
    """The pass at work; tensors are numbers."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.edit = graph, Rewriter(graph)
        self.parts: dict[int, tuple[int, int]] = {}  # of complex tensors
        self.matrices: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.node, self.nodes = Node("", (), ()), list[Node]()

    def add(self, node: Node) -> None:
        """Replace a node that reads or writes complex numbers. Raises UnsupportedError where it has no such form."""
        tensors = self.graph.tensors
        if not any(tensors[i].dtype == COMPLEX for i in (*node.inputs, *node.outputs) if i != ABSENT):
            return
        self.node, self.nodes = node, []
        x, out = node.inputs[0], tensors[node.outputs[0]]
        if node.op == "RFFT2D":
            self.parts[out.index] = self.transformed(x)
        elif x not in self.parts:
            raise UnsupportedError(f"{node.op} (operator {node.index}): complex numbers that come from elsewhere")
        elif node.op in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"):
            real, imaginary = (self.op("RESHAPE", part, shape=out.shape) for part in self.parts[x])
            self.parts[out.index] = real, imaginary
        elif node.op == "COMPLEX_ABS":
            squares = [self.op("SQUARE", part, shape=out.shape) for part in self.parts[x]]
            self.op("SQRT", self.op("ADD", *squares, shape=out.shape), shape=out.shape, out=out.index)
        elif node.op in ("REAL", "IMAG"):
            self.op("RESHAPE", self.parts[x][node.op == "IMAG"], shape=out.shape, out=out.index)
        else:
            raise UnsupportedError(f"{node.op} (operator {node.index}): of complex numbers it has no form")
        self.edit.replace(node, *self.nodes)

    def transformed(self, x: int) -> tuple[int, int]:
        """The parts of what RFFT2D makes of a tensor of floats."""
        *around, rows, columns = self.graph.tensors[x].shape
        length_y, length_x = attributes_of(self.node, Transform).lengths
        places = length_x // 2 + 1
        cosines, sines = self.matrix(length_x, places, columns)
        real, imaginary = (self.product(x, each, (*around, rows, places)) for each in (cosines, sines))
        if rows == length_y == 1:
            return real, imaginary
        count = int(np.prod(around))
        cosines, sines = self.matrix(length_y, length_y, rows)
        real, imaginary = (self.turned(part, (count, rows, places)) for part in (real, imaginary))
        shape = (count, places, length_y)
        terms = [[self.product(part, each, shape) for each in (cosines, sines)] for part in (real, imaginary)]
        real = self.op("SUB", terms[0][0], terms[1][1], shape=shape)
        imaginary = self.op("ADD", terms[0][1], terms[1][0], shape=shape)
        found = (self.turned(part, shape) for part in (real, imaginary))
        real, imaginary = (self.op("RESHAPE", part, shape=(*around, length_y, places)) for part in found)
        return real, imaginary

    def matrix(self, length: int, places: int, count: int) -> tuple[int, int]:
        """Constants (places, count) for `count` values: cosines, and sines with their sign."""
        key = length, places, count
        if key not in self.matrices:
            turns = 2 * np.pi * (np.arange(length) / length)
            values: list[npt.NDArray[np.float64]] = [np.cos(turns), -np.sin(turns)]
            places_of = np.outer(np.arange(places, dtype=np.int32), np.arange(count, dtype=np.int32)) % length
            tables = [each.astype(np.float32)[places_of] for each in values]
            for table in tables:
                table[:, length:] = 0
            cosines, sines = (self.edit.new_constant(f"transform of {length}", table) for table in tables)
            self.matrices[key] = cosines, sines
        return self.matrices[key]

    def product(self, x: int, matrix: int, shape: Shape) -> int:
        return self.op("FULLY_CONNECTED", x, matrix, ABSENT, shape=shape)

    def turned(self, x: int, shape: Shape) -> int:
        """With the last two of three dimensions exchanged."""
        count, rows, columns = shape
        flat = self.op("RESHAPE", x, shape=shape)
        return self.op("TRANSPOSE", flat, shape=(count, columns, rows), attributes=Transpose((0, 2, 1)))

    def op(self, op: str, *inputs: int, shape: Shape, out: int = ABSENT, attributes: Attributes | None = None) -> int:
        """A node of floats, with an output of its own where none is given."""
        if attributes is None:
            attributes = Activated() if op in ("ADD", "SUB", "FULLY_CONNECTED") else Attributes()
        name = self.graph.tensors[self.node.outputs[0]].name
        out = self.edit.new_tensor(f"{name}:{op.lower()}", shape) if out == ABSENT else out
        self.nodes.append(Node(op, inputs, (out,), attributes, self.node.index))
        return out
