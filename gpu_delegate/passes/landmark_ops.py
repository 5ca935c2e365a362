"""A pass that replaces MediaPipe's ops on landmarks and crops by ops that have kernels."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..model.graph import Concatenation, Graph, Node
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.cast import Cast
from ..ops.landmarks import LandmarkMatrix
from .custom_ops import neighbors, sampled
from .node_chain import NodeChain


def express_landmark_ops(graph: Graph) -> tuple[Graph, Outcome]:
    """Landmarks2TransformMatrix, TransformLandmarks, TransformTensorBilinear -> GATHER and arithmetic."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op in _FORMS:
            _FORMS[node.op](NodeChain(edit, graph, node))
    return edit.finish()


def gather_by_integers(graph: Graph) -> tuple[Graph, Outcome]:
    """GATHER by indices that are computed as floats -> CAST, GATHER: TensorFlow Lite wants integers."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "GATHER" and (places := graph.tensors[node.inputs[1]]).dtype == "float32":
            whole = edit.new_tensor(f"{places.name}:whole", places.shape, "int32")
            cast = Node("CAST", (places.index,), (whole,), Cast("float32", "int32"))
            edit.replace(node, cast, replace(node, inputs=(node.inputs[0], whole, *node.inputs[2:])))
    return edit.finish()


def _matrix(chain: NodeChain) -> None:
    """The box around landmarks in the turned plane, as a map from pixels of the crop.

    The angle is never computed: the cosine and the sine of its difference to another one follow from the line itself.
    Points are pairs (x, y) along the last dimension.
    """
    given, (landmarks,) = attributes_of(chain.node, LandmarkMatrix), chain.node.inputs
    cosine, sine = _turn(chain, landmarks, given)
    around = chain.gather(chain.part(landmarks, 2, 0, 2), chain.constant(given.points, "int32"), 1)
    points = _turned(chain, around, cosine, sine, 1.0)
    low, high = (chain.reduced(op, points, 1) for op in ("REDUCE_MIN", "REDUCE_MAX"))
    factors = [factor / side for factor, side in zip(given.scale, given.size, strict=True)][::-1]
    steps = chain.op("MUL", chain.op("SUB", high, low), chain.constant(factors))
    half = chain.op("MUL", chain.op("ADD", high, low), chain.constant(0.5))
    middle = _turned(chain, half, cosine, sine, -1.0)
    across, down = (chain.part(steps, 2, k) for k in (0, 1))
    columns = [
        chain.op("MUL", across, _joined(chain, 2, cosine, chain.op("NEG", sine))),
        chain.op("MUL", down, _joined(chain, 2, sine, cosine)),
    ]
    height, width = given.size
    back = [
        chain.op("MUL", column, chain.constant(side / 2)) for column, side in zip(columns, (width, height), strict=True)
    ]
    origin = chain.op("SUB", chain.op("SUB", middle, back[0]), back[1])
    none = chain.constant(np.zeros((1, 1, 2)))
    rows = chain.reshape(_joined(chain, 1, *columns, none, origin), 1, 4, 2)
    rest = chain.constant(np.array([[[0, 0], [0, 0], [1, 0], [0, 1]]]))
    chain.finish(chain.transpose(_joined(chain, 2, rows, rest), 0, 2, 1))


def _crop(chain: NodeChain) -> None:
    """Between the four values around the place in the map that a matrix gives each pixel; zero outside of the map."""
    x, matrix = chain.node.inputs
    _, height, width, channels = chain.shape(x)
    _, out_height, out_width, _ = chain.out.shape
    grid = [np.arange(out_width).reshape(1, 1, -1, 1) + 0.5, np.arange(out_height).reshape(1, -1, 1, 1) + 0.5]
    places, inside = [], []
    for row, size in enumerate((width, height)):
        factors = [_entry(chain, matrix, row, column) for column in (0, 1, 3)]
        terms = [chain.op("MUL", chain.constant(at), factor) for at, factor in zip(grid, factors, strict=False)]
        moved = chain.op("SUB", factors[2], chain.constant(0.5))
        place = chain.op("ADD", chain.op("ADD", *terms), moved)
        places.append(place)
        inside.append(chain.op("EQUAL", chain.within(place, size - 1), place, dtype="bool"))
    columns, rows = (neighbors(chain, place, size) for place, size in zip(places, (width, height), strict=True))
    value = sampled(chain, chain.reshape(x, height * width, channels), width, columns, rows)
    both = chain.op("LOGICAL_AND", *inside, dtype="bool")
    chain.finish(chain.op("SELECT_V2", both, value, chain.constant(0.0)))


def _mapped(chain: NodeChain) -> None:
    """The first two coordinates through a matrix, without its third column; a third one stays."""
    landmarks, matrix = chain.node.inputs
    columns = [chain.reshape(chain.part(chain.part(matrix, 1, 0, 2), 2, column), 1, 1, 2) for column in (0, 1, 3)]
    terms = [chain.op("MUL", chain.part(landmarks, 2, k), columns[k]) for k in (0, 1)]
    moved = chain.op("ADD", chain.op("ADD", *terms), columns[2])
    if chain.shape(landmarks)[2] == 3:
        moved = _joined(chain, 2, moved, chain.part(landmarks, 2, 2))
    chain.finish(moved)


def _turn(chain: NodeChain, landmarks: int, given: LandmarkMatrix) -> tuple[int, int]:
    """Cosine and sine of the angle by which a line has to be turned; a line without a length counts as one along x."""
    first, second = (chain.part(chain.part(landmarks, 1, end), 2, 0, 2) for end in given.ends)
    line = chain.op("SUB", second, first)
    across, down = (chain.part(line, 2, k) for k in (0, 1))
    squares = chain.op("ADD", chain.op("MUL", across, across), chain.op("MUL", down, down))
    length = chain.op("SQRT", squares)
    is_point = chain.op("EQUAL", length, chain.constant(0.0), dtype="bool")
    own = chain.op("SELECT_V2", is_point, chain.constant(1.0), chain.op("DIV", across, length))
    up = chain.op("SELECT_V2", is_point, chain.constant(0.0), chain.op("DIV", down, length))
    cosine, sine = math.cos(given.angle), math.sin(given.angle)
    return _weighed(chain, own, cosine, up, sine), _weighed(chain, own, sine, up, -cosine)


def _turned(chain: NodeChain, points: int, cosine: int, sine: int, sign: float) -> int:
    """Points (x, y) by an angle, or with a negative sign back."""
    x, y = (chain.part(points, 2, k) for k in (0, 1))
    slope = sine if sign > 0 else chain.op("NEG", sine)
    first = chain.op("SUB", chain.op("MUL", x, cosine), chain.op("MUL", y, slope))
    second = chain.op("ADD", chain.op("MUL", x, slope), chain.op("MUL", y, cosine))
    return _joined(chain, 2, first, second)


def _weighed(chain: NodeChain, one: int, weight: float, other: int, weight_of_other: float) -> int:
    first = chain.op("MUL", one, chain.constant(weight))
    return chain.op("ADD", first, chain.op("MUL", other, chain.constant(weight_of_other)))


def _entry(chain: NodeChain, matrix: int, row: int, column: int) -> int:
    return chain.reshape(chain.part(chain.part(matrix, 1, row), 2, column), 1, 1, 1, 1)


def _joined(chain: NodeChain, axis: int, *parts: int) -> int:
    """Tensors one behind the other along a dimension."""
    whole = chain.shape(parts[0])
    size = sum(chain.shape(part)[axis] for part in parts)
    shape = (*whole[:axis], size, *whole[axis + 1 :])
    return chain.op("CONCATENATION", *parts, shape=shape, attributes=Concatenation(axis=axis))


_FORMS: Mapping[str, Callable[[NodeChain], None]] = MappingProxyType(
    {"Landmarks2TransformMatrix": _matrix, "TransformLandmarks": _mapped, "TransformTensorBilinear": _crop}
)
