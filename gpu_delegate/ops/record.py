"""What an op is: one record with everything that reading, planning, emitting, writing and testing need to know of it.

A record lies in the file of its family in gpu_delegate/ops/; registry.py collects them by name. What the engine can do
is listed nowhere else: nodes.py, support.py, bounds.py and `texelflow inspect --ops` ask the records. Passes name the
ops that they are about.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..code.evaluate import Values
from ..code.expressions import Slice
from ..code.indices import Index, Validity
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import AddTo, Arithmetic, Assign, Name, Statement, TexelNumbers, Value, combined
from ..code.whole_numbers import WholeRange
from ..model.graph import Attributes, Graph, Node, Shape, Tensor
from ..model.operators import EncodedOperator, Operator

# elementwise   each output value depends on the input values at the same position
# window        each output value depends on a window of the input, for each channel separately
# movement      output values are input values, or constants, at other positions
# contraction   each output value is a sum over all input channels, with constant or computed weights
# reduction     one value for many positions
# scatter       results are stored at other pixels than those they are computed from: all the work is in the store
# folded        a value that is known before anything runs
# state         reads or writes what is kept from run to run: passes make inputs and outputs of it
Role = Literal["elementwise", "window", "movement", "contraction", "reduction", "scatter", "folded", "state"]


@dataclass(frozen=True)
class OptionsStruct:
    """The options of an op: the schema's class, and the fields of TensorFlow Lite's C struct in order, as Name:kind.

    Kinds: i an int, f a float, b a bool, l a list of ints, e an enumeration that is one more than the schema's, 0 being
    unknown, t the type of an output, of which int32 and int64 have the schema's numbers, s a text.
    """

    table: str
    layout: str


ACTIVATED_STRUCT = "FusedActivationFunction:i"
WINDOW_STRUCT = "Padding:e StrideW:i StrideH:i"


@dataclass(frozen=True)
class FileForm:
    """How a .tflite file says an op: its functions, and which of the file's inputs become the node's."""

    parse: Callable[[Operator], Attributes]  # verifies shapes; raises ModelError, UnsupportedError
    write: Callable[[Graph, Node], EncodedOperator]
    data: tuple[int, ...] | None = (0,)  # positions in the file, in the node's order; None: all of them
    count: tuple[int, int] = (1, 1)  # fewest and most inputs in the file
    outputs: tuple[int, int] = (1, 1)  # fewest and most outputs in the file
    dtypes: tuple[str, ...] = ("float32",)  # that the data inputs may have; none for whichever
    first_dtypes: tuple[str, ...] = ()  # that the first of them may have, if it differs
    out_dtypes: tuple[str, ...] = ("float32",)
    variables: tuple[int, ...] = ()  # positions in the node's inputs of what it keeps from run to run
    keeps_type: bool = False  # whether outputs have the type of the inputs, or of the first where others may differ
    builtin: str = ""  # the op that is written instead, if it is another one
    version: int = 1  # version to write: the lowest that has everything that the reader accepts
    struct: OptionsStruct | None = None  # of its options in TensorFlow Lite's memory, where the reader asks for any
    is_custom: bool = False  # whether it is written as a custom op, which TensorFlow Lite alone cannot run


@dataclass(frozen=True)
class ByteRules:
    """What TensorFlow Lite's specification of 8-bit quantization demands of an op's tensors.

    What a file says otherwise is left to the CPU: TensorFlow Lite's kernels ignore it, each in its own way. Of all ops
    scales are positive and zero points are integers of the type; tensors other than weights have one of each.
    """

    one_type: bool = True  # of all inputs and outputs that have a scale
    may_be_narrow: bool = False  # input 1 may be int8 beside int16
    may_widen: bool = False  # int16 may be made of bytes, from its least integer on
    one_scale: bool = False  # the same: the op keeps integers, and no kernel looks at what they mean
    output: tuple[float, int] | None = None  # the scale that all kernels assume, and the zero point of int8
    most_scale: float = math.inf  # scales of the inputs are below
    weights: int | None = None  # of input 1, which has 0 as its zero point if int8, the dimension of several scales


NO_RULES, ONE_SCALE = ByteRules(), ByteRules(one_scale=True)


@dataclass(frozen=True)
class Emission:
    """The functions that emit an op's arithmetic in a pixel kernel; which of them an op has depends on its role."""

    stream: "Callable[[KernelWriter, Node, Slice], Sequence[Value]] | None" = (
        None  # one slice for each of the thread's pixels
    )
    start: "Callable[[KernelWriter, Node], None] | None" = None  # declares the sums of a contraction or reduction
    accumulate: "Callable[[KernelWriter, Node, Slice], None] | None" = None  # adds one input slice to them
    finish: "Callable[[KernelWriter, Node], None] | None" = None  # makes the results of the sums, if they are not these
    store: "Callable[[KernelWriter, Node], None] | None" = None  # of a scatter


@dataclass(frozen=True)
class Example:
    """The smallest use of an op: what `support` compiles and the tests compare with TensorFlow Lite."""

    shapes: tuple[Shape, ...] = ((1, 8, 8, 8),)  # of the inputs that are computed at run time, which come first
    out: Shape = (1, 8, 8, 8)
    others: tuple[Shape, ...] = ()  # of further outputs
    others_dtype: str = ""  # of these, if it is another one
    constants: tuple[Shape, ...] = ()  # of those that follow
    kept: tuple[Shape, ...] = ()  # of variables, which follow those
    attributes: Attributes = field(default_factory=Attributes)
    dtype: str = "float32"  # of the inputs
    constant_dtype: str = ""  # of constants, if it is another one
    out_dtype: str = "float32"


def zero(node: Node) -> float:
    """What is where nothing else is."""
    return 0.0


def none(node: Node) -> int | None:
    """The answer of an op that looks nothing up."""
    return None


Coordinates = tuple[Index, Index, Index, Index]  # (b, y, x, c) of a value


@dataclass(frozen=True)
class Origin:
    """Where a value comes from: an input of the node, a position there, and the condition under which it does."""

    operand: int  # position in the node's inputs
    at: Coordinates
    when: Validity = True


@dataclass(frozen=True)
class Movement:
    """How an op moves data, on tensors of rank 4: the map from each position of the output to where its value is.

    Sources are tried in order; where the condition of none holds, the value is `fill`. They depend on the position's
    coordinates alone, so that the map can be put into whatever reads the output.
    """

    sources: Callable[[Graph, Node, Coordinates], tuple[Origin, ...]]
    together: Callable[[Graph, Node], bool]  # whether slices of four channels stay together, lane by lane
    in_order: bool = False  # whether all values stay in their order, BHWC
    fill: Callable[[Node], float] | None = None  # None where a condition always holds
    lookup: Callable[[Node], int | None] = none  # the dimension whose coordinate the second input's values replace


@dataclass(frozen=True)
class Reducer:
    """How two values become one."""

    name: str  # of the variable that values are folded into
    neutral: float  # the value that changes nothing
    operation: Arithmetic
    averages: bool = False  # whether the result is divided by the number of values

    def into(self, total: Name, *values: Value) -> Statement:
        """The statement that folds values into a variable."""
        if self.operation == "add":
            return AddTo(total, combined("add", values))
        return Assign(total, combined(self.operation, (total, *values)))


Evaluation = Callable[[Node, Sequence[Values], Tensor], Values]  # a node, its inputs' values, its output without one
RangeRule = Callable[[Graph, Node, Sequence[WholeRange]], WholeRange]  # the ranges of the inputs to that of an output
ShapeCheck = Callable[[Node, list[Shape], Shape], bool]  # the shapes of inputs and output to whether they agree


def nothing(graph: Graph, node: Node) -> int:
    """The count of an op that has none."""
    return 0


ConstantTexels = tuple[TexelNumbers, ...]


def no_texels(node: Node) -> ConstantTexels:
    """The constants of an op that has none."""
    return ()


def one(graph: Graph, node: Node) -> int:
    """The count of an op that reads one pixel for one pixel, or all channels."""
    return 1


def never(graph: Graph, node: Node) -> bool:
    """The answer of an op whatever the node."""
    return False


def always(graph: Graph, node: Node) -> bool:
    """The other answer of an op whatever the node."""
    return True


@dataclass(frozen=True)
class OpRecord:
    """One op. Functions take the graph and a node of this op."""

    name: str  # TensorFlow Lite's, or a custom op's own
    role: Role
    file: FileForm | None = None  # None where only passes make the op
    example: Example = Example()
    short_name: str = ""  # in the names of kernels; the name in lower case where there is none
    emission: Emission = Emission()
    arithmetic: Callable[..., Value] | None = None  # of an elementwise op: of its attributes and operands, a vec4 each
    constants: Callable[[Node], ConstantTexels] = (
        no_texels  # numbers of its attributes, which kernels read as operands behind
    )
    finite: bool = True  # whether the arithmetic gives finite values in padding lanes; else they are set to zero
    movement: Movement | None = None
    reducer: Reducer | None = None  # of a reduction that folds values into one of them, or their sum or product
    evaluate: Evaluation | None = None  # its value of constants, where none of the three above says it; of any rank
    of_shape: Callable[[Shape], Values] | None = None  # its value, if it follows from the shape of its input alone
    ranges: tuple[RangeRule, ...] = ()  # of whole numbers, for each output, where none of the three says it
    bounds: tuple[float, float] = (-math.inf, math.inf)  # of its values, where its arithmetic does not say them
    undone_by: tuple[str, ...] = ()  # elementwise ops that give back what it was given, if types between have it all
    channels_stay: Callable[[Graph, Node], bool] = (
        never  # whether a moving op leaves channels as they are, of which any other number would do, too
    )
    agrees: ShapeCheck | None = None  # what shapes say of each other, where its role does not
    where: int | None = None  # the input whose values say where others lie
    chooses: bool = False  # whether results are values of its operands, where its role does not say so
    fits: Callable[[Graph, Node], bool] = always  # whether its emission can do this node
    pixelwise: Callable[[Graph, Node], bool] = (
        never  # a contraction or reduction that reads just the pixel that it writes
    )
    weighted: bool = False  # whether input 1 has weights, OHWI or 1HWC, among the constants of the kernel
    from_memory: tuple[int, ...] = ()  # further inputs that a contraction or window reads at places of its own
    groups: Callable[[Graph, Node], int] = (
        one  # of channels, of a contraction: each output slice reads those of its own
    )
    multiplies_rows: bool = False  # whether pixels in a row, and no others, share what is read of those
    macs: Callable[[Graph, Node], int] = nothing  # multiply-accumulates as the op is defined
    weight_bytes: Callable[[Graph, Node], int] = nothing  # that it, or what a pass makes of it, adds to its kernel
    taps: Callable[[Graph, Node], int] = one  # pixels of its window, each written out in the shader
    text_taps: Callable[[Graph, Node], int] = nothing  # the length of its source, in taps of a pool
    quantized: ByteRules | None = None  # of 8-bit integers; None: one scale if it moves values, else nothing more

    @property
    def kernel_name(self) -> str:
        """What names of kernels call it."""
        return self.short_name or self.name.lower()

    @property
    def keeps_order(self) -> bool:
        """Whether it moves no value to another place in the order of a file."""
        return self.movement is not None and self.movement.in_order

    @property
    def byte_rules(self) -> ByteRules:
        """What is demanded of its 8-bit integers."""
        return self.quantized or (ONE_SCALE if self.role in ("movement", "scatter") else NO_RULES)
