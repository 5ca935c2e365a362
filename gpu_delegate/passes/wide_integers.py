"""A pass that says integers beyond those of float32 by digits of 16 bits, each of them a tensor of its own.

A wide integer is one of which float32 may not have all digits, while they count (exact_integers.py). It becomes two
tensors, or four if it has 64 bits. What only moves integers moves each digit; FORMS has a function for what computes
with them. Inputs and outputs have all digits in one tensor (gpu_delegate/model/digits.py). All other integers stay as
they are: float32 has them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..model.digits import DIGIT_BITS, DIGITS, END_OF_DIGITS, digits_of, shape_of_digits
from ..model.graph import (
    ABSENT,
    Activated,
    Concatenation,
    Graph,
    Node,
    Pad,
    Reduce,
    Steps,
    StridedSlice,
    Tensor,
)
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter, fits_float32
from ..ops.cast import Cast
from ..ops.digit_ops import Digit
from ..ops.matrix_product import MatrixProduct
from ..ops.registry import OPS
from ..ops.running_sum import RunningSum
from .exact_integers import wide_integers
from .node_chain import reshaped
from .wide_node import MAY_EXCEED, Digits, WideNode, digit_tensor


def split_wide_integers(graph: Graph) -> tuple[Graph, Outcome]:
    """Integers that float32 may not have -> digits of 16 bits. Raises UnsupportedError where an op has no form."""
    if not any(tensor.dtype in DIGITS for tensor in graph.tensors.values()):
        return graph, Outcome(0)
    found = wide_integers(graph)
    edit, wide = Rewriter(graph), dict[int, Digits]()
    for number in sorted(found.tensors):
        own = graph.tensors[number]
        made = (edit.set_tensor(digit_tensor(own, edit.next_index)) for _ in range(DIGITS[own.dtype]))
        wide[number] = tuple(made)
    for place, node in enumerate(graph.nodes):
        chain = WideNode(edit, graph, node, wide)
        if place in found.nodes:
            _FORMS.get(node.op, _moved)(chain)
        elif (inputs := tuple(map(chain.value, node.inputs))) != node.inputs:
            edit.replace(node, *chain.nodes, replace(node, inputs=inputs))
    changed, outcome = edit.finish()
    return _with_border(changed, graph, wide, edit.next_index), outcome


# Inputs and outputs ---------------------------------------------------------------------------------------------------


def _with_border(graph: Graph, before: Graph, wide: Mapping[int, Digits], free: int) -> Graph:
    """Inputs are cut into digits, outputs put together; of constants that are outputs the digits are known.

    States are digits in any case: other programs of the model may have them, too.
    """
    border, renamed = _Border(free), dict[int, int]()
    kept = {number for state in before.states for number in (state.read, state.written) if number != ABSENT}
    for number in dict.fromkeys((*before.inputs, *before.outputs)):
        own, is_input = before.tensors[number], number in before.inputs
        if number in wide:
            border.add(own, wide[number], is_input)
        elif number in kept and own.dtype in DIGITS:
            renamed[number] = border.add_floats(own, is_input)
        elif own.data is not None and own.dtype in DIGITS and not fits_float32(own.data):
            border.add_constant(own)
    if not border.tensors:
        return graph
    nodes = [_renamed(node, renamed) for node in graph.nodes] if renamed else graph.nodes
    return graph.with_changes((*border.first, *nodes, *border.last), border.tensors)


def _renamed(node: Node, numbers: Mapping[int, int]) -> Node:
    inputs, outputs = (tuple(numbers.get(i, i) for i in side) for side in (node.inputs, node.outputs))
    return replace(node, inputs=inputs, outputs=outputs)


class _Border:
    """Nodes in front of all others and behind them, and their tensors."""

    def __init__(self, free: int) -> None:
        """No tensor has the number `free` or a greater one."""
        self.first, self.last, self.tensors, self._free = list[Node](), list[Node](), dict[int, Tensor](), free

    def add(self, own: Tensor, digits: Digits, is_input: bool) -> None:
        """All digits of an input or output in one tensor, with its number."""
        whole = replace(digit_tensor(own, own.index), name=own.name, shape=shape_of_digits(own.shape, own.dtype))
        self.tensors[own.index] = whole
        size, *others = own.shape or (1,)
        rows = [self._row(own, each) for each in digits]
        self.tensors |= {each: digit_tensor(own, each) for each in digits}
        if not is_input:
            self.last += [reshaped(digit, row) for digit, row in zip(digits, rows, strict=True) if row != digit]
            self.last.append(Node("CONCATENATION", tuple(rows), (own.index,), Concatenation(axis=0)))
            return
        for k, (digit, row) in enumerate(zip(digits, rows, strict=True)):
            part = StridedSlice((k * size, *(0,) * len(others)), (size, *others), (1,) * (1 + len(others)))
            self.first.append(Node("STRIDED_SLICE", (own.index,), (row,), part))
            if row != digit:
                self.first.append(reshaped(row, digit))

    def add_floats(self, own: Tensor, is_input: bool) -> int:
        """The same of an input or output that is computed with as floats; the number of these."""
        count = DIGITS[own.dtype]
        floats, *digits = range(self._free + 1, self._free + 2 + count)
        self._free += 1 + count
        self.tensors[floats] = replace(own, index=floats)
        self.add(own, tuple(digits), is_input)
        if is_input:
            self.first.append(Node("FLOAT_OF_DIGITS", tuple(digits), (floats,), Digit(0, count)))
        else:
            cut = (Node("DIGIT_OF_FLOAT", (floats,), (each,), Digit(k, count)) for k, each in enumerate(digits))
            self.last[:0] = cut
        return floats

    def _row(self, own: Tensor, digit: int) -> int:
        """A digit in a tensor that has a dimension."""
        if own.shape:
            return digit
        self._free += 1
        self.tensors[self._free] = replace(digit_tensor(own, self._free), shape=(1,))
        return self._free

    def add_constant(self, own: Tensor) -> None:
        assert own.data is not None, "it is constant"
        shape = shape_of_digits(own.shape, own.dtype)
        data = digits_of(own.data, own.dtype).reshape(shape).astype(own.dtype)
        self.tensors[own.index] = replace(own, shape=shape, data=data)


# Forms ----------------------------------------------------------------------------------------------------------------


def _moved(chain: WideNode) -> None:
    """What only moves values, each digit as the others; where they lie is said by a float."""
    node, graph = chain.node, chain.graph
    record = OPS.get(node.op)
    if record is None or record.role != "movement":
        chain.refuse()
    dtype = chain.out.dtype
    parts: list[list[int] | Digits] = []
    for at, number in enumerate(node.inputs):
        moves = number != ABSENT and at != record.where and graph.tensors[number].dtype == dtype
        parts.append(chain.digits(number) if moves else [chain.value(number)] * DIGITS[dtype])
    found = []
    for k, inputs in enumerate(zip(*parts, strict=True)):
        attributes = node.attributes
        if isinstance(attributes, Pad):
            attributes = replace(attributes, value=float(int(attributes.value) >> DIGIT_BITS * k & END_OF_DIGITS - 1))
        shapes = [graph.tensors[i].shape for i in node.outputs]
        found.append(chain.several(node.op, inputs, shapes, attributes))
    for place in range(len(node.outputs)):
        chain.give_at(place, tuple(outputs[place] for outputs in found))
    chain.done()


def _selected(chain: WideNode) -> None:
    condition, a, b = chain.node.inputs
    chain.give(chain.select(condition, chain.digits(a), chain.digits(b)))


_OfTwo = Callable[[WideNode, Digits, Digits], Digits]


def _computed(compute: _OfTwo) -> Callable[[WideNode], None]:
    """Of two operands, and with an activation behind them."""

    def form(chain: WideNode) -> None:
        first, *others = map(chain.digits, chain.node.inputs)
        for other in others:
            first = compute(chain, first, other)
        chain.give(_activated(chain, first))

    return form


def _activated(chain: WideNode, x: Digits) -> Digits:
    attributes = chain.node.attributes
    activation = attributes.activation if isinstance(attributes, Activated) else "NONE"
    if activation == "NONE":
        return x
    if activation not in _LIMITS:
        chain.refuse(f"{activation} of integers that may exceed 2^24")
    low, high = _LIMITS[activation]
    x = chain.larger(x, chain.numbers(low, len(x)))
    return x if high is None else chain.smaller(x, chain.numbers(high, len(x)))


_WITH_OUTSIDE = Steps(-1, END_OF_DIGITS)
_LIMITS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {"RELU": (0, None), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1), "RELU_0_TO_1": (0, 1)}
)


def _product(chain: WideNode, a: Digits, b: Digits) -> Digits:
    return chain.by_word("PRODUCT_DIGIT", a, b)


def _squared_difference(chain: WideNode, a: Digits, b: Digits) -> Digits:
    difference = chain.difference(a, b)
    return _product(chain, difference, difference)


def _divided(op: str, most_digits: int = 2) -> Callable[[WideNode], None]:
    def compute(chain: WideNode, a: Digits, b: Digits) -> Digits:
        if len(a) > most_digits:
            chain.refuse(f"{MAY_EXCEED}, of 64 bits")
        return chain.by_word(op, a, b)

    return _computed(compute)


def _negative(chain: WideNode) -> None:
    chain.give(chain.negative(chain.digits(chain.node.inputs[0])))


def _absolute(chain: WideNode) -> None:
    x = chain.digits(chain.node.inputs[0])
    chain.give(chain.select(chain.is_less(x, chain.numbers(0, len(x))), chain.negative(x), x))


def _cast(chain: WideNode) -> None:
    chain.give(chain.digits(chain.node.inputs[0], chain.out.dtype))


def _compared(is_less: bool, is_swapped: bool = False, is_negated: bool = False) -> Callable[[WideNode], None]:
    def form(chain: WideNode) -> None:
        a, b = map(chain.digits, chain.node.inputs)
        a, b = (b, a) if is_swapped else (a, b)
        found = chain.is_less(a, b) if is_less else chain.is_equal(a, b)
        chain.give_value(chain.negated(found) if is_negated else found)

    return form


def _sum(chain: WideNode) -> None:
    x, node = chain.node.inputs[0], chain.node
    count = math.prod(chain.shape(x)) // max(1, math.prod(chain.out.shape))
    chain.give(chain.summed(chain.digits(x), node, count, chain.out.shape))


def _running_sum(chain: WideNode) -> None:
    x, node = chain.node.inputs[0], chain.node
    count = chain.shape(x)[attributes_of(node, RunningSum).axis]
    chain.give(chain.summed(chain.digits(x), node, count, chain.out.shape))


def _placed(chain: WideNode) -> None:
    """A product with a matrix of zeros and ones, which says where values are added."""
    matrix, x = chain.node.inputs
    if chain.graph.tensors[matrix].dtype != "float32" or attributes_of(chain.node, MatrixProduct) != MatrixProduct():
        chain.refuse()
    chain.give(chain.summed(chain.digits(x), chain.node, chain.shape(matrix)[-1], chain.out.shape, at=1))


def _extreme(chain: WideNode) -> None:
    found, _ = _extreme_digits(chain, chain.node.op)
    chain.give(tuple(chain.reshape(each, *chain.out.shape) for each in found))


def _position(chain: WideNode) -> None:
    """The first place with the greatest or least integer."""
    op = "REDUCE_MAX" if chain.node.op == "ARG_MAX" else "REDUCE_MIN"
    found, x = _extreme_digits(chain, op)
    truths = chain.op("CAST", chain.is_equal(x, found), attributes=Cast("bool", "float32"), dtype="float32")
    out = chain.out
    chain.give_value(chain.op("ARG_MAX", truths, shape=out.shape, attributes=chain.node.attributes, dtype=out.dtype))


def _extreme_digits(chain: WideNode, op: str) -> tuple[Digits, Digits]:
    """The greatest or least integer, all dimensions kept, and the integers: digit by digit from the last one on.

    Integers that are not among the first any more have a digit that none can have.
    """
    x = chain.digits(chain.node.inputs[0])
    reduce = replace(attributes_of(chain.node, Reduce), keep_dims=True)
    shape = tuple(1 if k in reduce.axes else size for k, size in enumerate(chain.shape(x[0])))
    last = chain.word("SUM_DIGIT", x[-1], chain.constant(END_OF_DIGITS // 2, "int32"))  # in order
    outside = chain.constant(-1 if op == "REDUCE_MAX" else END_OF_DIGITS, "int32")
    found, left = list[int](), last
    for digit in (*x[-2::-1], None):
        best = chain.made(op, left, shape=shape, attributes=reduce)
        found.append(best)
        if digit is not None:
            equal = chain.op("EQUAL", left, best, dtype="bool")
            shape_of_all = chain.shape(digit)
            left = chain.made("SELECT_V2", equal, digit, outside, shape=shape_of_all, steps=_WITH_OUTSIDE)
    found[0] = chain.word("SUM_DIGIT", found[0], chain.constant(END_OF_DIGITS // 2, "int32"))
    return tuple(reversed(found)), x


_FORMS: Mapping[str, Callable[[WideNode], None]] = MappingProxyType(
    {
        **dict.fromkeys(("SELECT", "SELECT_V2"), _selected),
        **dict.fromkeys(("ADD", "ADD_N"), _computed(WideNode.sum)),
        "SUB": _computed(WideNode.difference),
        "MUL": _computed(_product),
        "SQUARED_DIFFERENCE": _computed(_squared_difference),
        "MAXIMUM": _computed(WideNode.larger),
        "MINIMUM": _computed(WideNode.smaller),
        "DIV": _divided("QUOTIENT_DIGIT"),
        "FLOOR_DIV": _divided("FLOOR_QUOTIENT_DIGIT"),
        "FLOOR_MOD": _divided("FLOOR_REMAINDER_DIGIT", most_digits=4),
        "NEG": _negative,
        "ABS": _absolute,
        "CAST": _cast,
        "LESS": _compared(is_less=True),
        "GREATER": _compared(is_less=True, is_swapped=True),
        "GREATER_EQUAL": _compared(is_less=True, is_negated=True),
        "LESS_EQUAL": _compared(is_less=True, is_swapped=True, is_negated=True),
        "EQUAL": _compared(is_less=False),
        "NOT_EQUAL": _compared(is_less=False, is_negated=True),
        "SUM": _sum,
        "CUMSUM": _running_sum,
        "BATCH_MATMUL": _placed,
        **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), _extreme),
        **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _position),
    }
)
