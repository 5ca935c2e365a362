"""A node with wide integers while a pass rewrites it: its operands as digits, and arithmetic on digits.

An integer stands as a tuple of the numbers of tensors: its digits of 16 bits, the least one first, each in the
integer's shape (gpu_delegate/ops/digit_ops.py).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from ..base.errors import UnsupportedError
from ..model.digits import DIGITS, digits_of
from ..model.graph import Attributes, Graph, Node, Shape, Steps, Tensor
from ..model.operators import MAX_OPERANDS
from ..model.rewrite import Rewriter, fits_float32
from ..ops.digit_ops import DIGIT, MOST_SUMMED, MOST_SUMMED_HALVES, Digit
from .node_chain import NodeChain, reshaped

Digits = tuple[int, ...]
MAY_EXCEED = "integers that may exceed 2^24"
_TRUTH = Steps(0, 1)


class WideNode(NodeChain):
    """A node, of which some inputs or outputs are wide."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node, wide: Mapping[int, Digits]) -> None:
        """`wide` has the digits of each wide tensor."""
        super().__init__(edit, graph, node)
        self._wide, self.graph = wide, graph
        for number, digits in wide.items():
            self._tensors |= {each: digit_tensor(graph.tensors[number], each) for each in digits}

    def refuse(self, reason: str = MAY_EXCEED) -> NoReturn:
        """Raise UnsupportedError."""
        node = self.node
        raise UnsupportedError(f"{node.op} (operator {node.index}, {self.out.name}) does not run on the GPU: {reason}")

    # Operands and results ---------------------------------------------------------------------------------------------

    def digits(self, number: int, dtype: str = "") -> Digits:
        """Those of an operand, of as many bits as its type has, or another one."""
        tensor = self._tensors[number]
        wanted = dtype or tensor.dtype
        if tensor.data is not None:
            return tuple(self.constant(each, "int32") for each in digits_of(tensor.data, wanted))
        if number in self._wide:
            return self._lengthened(self._wide[number], DIGITS[wanted])
        count = DIGITS[wanted]
        return tuple(self.word("DIGIT_OF_FLOAT", number, digit=Digit(k, count)) for k in range(count))

    def _lengthened(self, digits: Digits, count: int) -> Digits:
        """The same integer in another number of digits."""
        if len(digits) >= count:
            return digits[:count]
        return (*digits, *[self.word("SIGN_DIGIT", digits[-1])] * (count - len(digits)))

    def value(self, number: int) -> int:
        """An operand as float32, rounded if it is wide."""
        if number in self._wide:
            return self.joined(self._wide[number])
        tensor = self._tensors.get(number)
        if tensor is None or tensor.data is None or tensor.dtype not in DIGITS or fits_float32(tensor.data):
            return number
        return self.constant(tensor.data.astype(np.float32))

    def joined(self, digits: Digits, dtype: str = "int32") -> int:
        """The floats nearest to integers."""
        attributes = Digit(0, len(digits))
        return self.op("FLOAT_OF_DIGITS", *digits, attributes=attributes, dtype=dtype)

    def give(self, digits: Digits) -> None:
        """Put the nodes in place: the integer becomes what the node wrote."""
        self.give_at(0, digits)
        self.done()

    def give_at(self, place: int, digits: Digits) -> None:
        """Of several outputs."""
        out = self.graph.tensors[self.node.outputs[place]]
        if out.index not in self._wide:
            self._give_one(out, self.joined(digits, out.dtype))
            return
        for target, digit in zip(self._wide[out.index], digits, strict=True):
            self._give_one(digit_tensor(out, target), digit)

    def give_value(self, found: int) -> None:
        """Put the nodes in place: positions or truths are what the node wrote."""
        self._give_one(self.out, found)
        self.done()

    def done(self) -> None:
        """Put the nodes in place."""
        self.edit.replace(self.node, *(replace(node, index=self.node.index) for node in self.nodes))

    def _give_one(self, out: Tensor, found: int) -> None:
        """A copy, which a later pass leaves out."""
        if math.prod(out.shape) == math.prod(self.shape(found)):
            self.nodes.append(reshaped(found, out.index))
        else:
            self.nodes.append(Node("BROADCAST_TO", (found,), (out.index,)))

    # Arithmetic -------------------------------------------------------------------------------------------------------

    def word(self, op: str, *operands: int, digit: Digit | None = None, made: Steps = DIGIT) -> int:
        """One digit, or one truth for each integer."""
        shape = np.broadcast_shapes(*map(self.shape, operands))
        return self.made(op, *operands, shape=shape, attributes=digit or Digit(), steps=made)

    def made(
        self, op: str, *operands: int, shape: Shape, attributes: Attributes | None = None, steps: Steps = DIGIT
    ) -> int:
        """A node that makes whole numbers in a range, integers for all that store them."""
        number = self.op(op, *operands, shape=shape, attributes=attributes, dtype="int32")
        self._tensors[number] = replace(self._tensors[number], steps=steps)
        self.edit.set_tensor(self._tensors[number])
        return number

    def several(self, op: str, inputs: Sequence[int], shapes: Sequence[Shape], attributes: Attributes) -> Sequence[int]:
        """A node that makes digits for several outputs."""
        made = [self.edit.new_tensor(f"{self.out.name}:{op.lower()}", shape, "int32") for shape in shapes]
        for number, shape in zip(made, shapes, strict=True):
            self._tensors[number] = digit_tensor(Tensor(number, self.out.name, shape), number)
            self.edit.set_tensor(self._tensors[number])
        self.nodes.append(Node(op, tuple(inputs), tuple(made), attributes))
        return made

    def numbers(self, value: int, count: int) -> Digits:
        """One integer as digits."""
        return tuple(self.constant(each, "int32") for each in digits_of(np.array(value), _TYPES[count]))

    def sum(self, a: Digits, b: Digits) -> Digits:
        return self._with_carries("SUM_DIGIT", a, b)

    def difference(self, a: Digits, b: Digits) -> Digits:
        return self._with_carries("DIFFERENCE_DIGIT", a, b)

    def negative(self, x: Digits) -> Digits:
        return self.difference(self.numbers(0, len(x)), x)

    def _with_carries(self, op: str, a: Digits, b: Digits) -> Digits:
        """Digits that depend on those before them alone."""
        found = (self.word(op, *a[: k + 1], *b[: k + 1], digit=Digit(k, len(a))) for k in range(len(a)))
        return tuple(found)

    def by_word(self, op: str, a: Digits, b: Digits) -> Digits:
        """Digits that depend on all of both."""
        return tuple(self.word(op, *a, *b, digit=Digit(k, len(a))) for k in range(len(a)))

    def is_less(self, a: Digits, b: Digits) -> int:
        """Truths."""
        return self._truths(self.word("LESS_DIGITS", *a, *b, made=_TRUTH))

    def is_equal(self, a: Digits, b: Digits) -> int:
        """Truths."""
        return self._truths(self.word("EQUAL_DIGITS", *a, *b, made=_TRUTH))

    def _truths(self, number: int) -> int:
        self._tensors[number] = replace(self._tensors[number], dtype="bool", steps=None)
        return self.edit.set_tensor(self._tensors[number])

    def negated(self, truths: int) -> int:
        return self.op("LOGICAL_NOT", truths, dtype="bool")

    def select(self, truths: int, a: Digits, b: Digits) -> Digits:
        shape = np.broadcast_shapes(self.shape(truths), self.shape(a[0]), self.shape(b[0]))
        return tuple(self.made("SELECT_V2", truths, *pair, shape=shape) for pair in zip(a, b, strict=True))

    def larger(self, a: Digits, b: Digits) -> Digits:
        return self.select(self.is_less(a, b), b, a)

    def smaller(self, a: Digits, b: Digits) -> Digits:
        return self.select(self.is_less(a, b), a, b)

    def summed(self, x: Digits, node: Node, count: int, shape: Shape, at: int = 0) -> Digits:
        """What a node that adds up to so many values makes of digits, in place of its input `at`."""
        if count > MOST_SUMMED_HALVES:
            self.refuse(f"sums of {count} wide integers, at most {MOST_SUMMED_HALVES} are added")

        def sums(of: Digits) -> Digits:
            inputs = [(*node.inputs[:at], each, *node.inputs[at + 1 :]) for each in of]
            return tuple(
                self.made(node.op, *each, shape=shape, attributes=node.attributes, steps=_SUMS) for each in inputs
            )

        if count <= MOST_SUMMED:
            parts, op = [sums(x)], "DIGIT_OF_SUMS"
        else:
            halves = [[self.word("HALF_DIGIT", each, digit=Digit(k), made=_HALF) for each in x] for k in range(2)]
            parts, op = [sums(tuple(each)) for each in halves], "DIGIT_OF_SUMS_OF_HALVES"
        return tuple(
            self.word(op, *(each for part in parts for each in part[: k + 1]), digit=Digit(k, len(x)))
            for k in range(len(x))
        )


def digit_tensor(own: Tensor, number: int) -> Tensor:
    """A tensor with one digit of each integer of another one."""
    return Tensor(number, f"{own.name}:digit", own.shape, "int32", steps=DIGIT)


_TYPES = {count: dtype for dtype, count in DIGITS.items()}
_SUMS, _HALF = Steps(0, (1 << 24) - 1), Steps(0, 255)
assert 2 * max(DIGITS.values()) <= MAX_OPERANDS
