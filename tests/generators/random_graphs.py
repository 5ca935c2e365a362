"""A random graph that grows op by op: its profile, what it knows of its tensors, and how chance picks among them.

A seed and a profile of profiles.py give a graph; steps in map_steps.py, move_steps.py and value_steps.py add ops to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tests.model_files.model_builder import Array
from tests.model_files.moves import ints, reshaped, sliced
from tests.model_files.sketch import GraphCase, Shape, Size, Sketch
from tests.tables.graph_cases import RUN
from texelflow.gpu_delegate.ops.registry import OPS

Item = TypeVar("Item")
MOST_VALUES = 3000  # of a tensor that further ops read
MOST_INPUTS = 8
FUSED = ("NONE", "NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
_NOT_CONTINUOUS = """SIGN FAKE_QUANT CEIL FLOOR ROUND FLOOR_DIV FLOOR_MOD ATAN2 CAST ARG_MAX ARG_MIN TOPK_V2
    L2_NORMALIZATION EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL ONE_HOT GATHER_ND EMBEDDING_LOOKUP
    SCATTER_ND POW DIV"""
NOT_CONTINUOUS = frozenset(_NOT_CONTINUOUS.split())
Step = Callable[["RandomGraph"], "int | None"]  # the same of tensors that it picks; None where none fits
MapStep = Callable[["RandomGraph", int], int]  # adds ops to a graph that read a tensor; gives what they make


@dataclass(frozen=True)
class Profile:
    """What graphs of a kind grow by, at which sizes, and what they leave out."""

    grow: "Callable[[RandomGraph], None]"
    channels: Sequence[int]
    sides: Sequence[int]
    kernels: Sequence[Size]
    large_sides: Sequence[int] = ()
    steps: tuple[tuple[int, MapStep], ...] = ()  # with how likely each is, compared with the others; () for all ops
    keeps_batch: bool = True  # so that any two maps can be resized to each other
    strides_within_windows: bool = False  # XNNPACK pads others in a way of its own
    strides_dilated: bool = True  # whether windows that are dilated may have strides, too
    custom_ops: bool = True  # that TensorFlow Lite alone lacks
    most_weights: int = 1 << 40  # of one op
    needs_constants: bool = False  # by which a delegate finds the file of a model
    further: "tuple[Step, ...]" = ()  # beside the ops of the record, and at least one of them in each graph
    continuous: bool = False  # nothing that jumps where its inputs differ by little: bytes differ by a step


@dataclass(frozen=True)
class Drawn:
    """What an input's values are drawn from."""

    low: float
    high: float
    whole: bool = False


class RandomGraph(Sketch):
    """A graph that grows. What it knows of its tensors is for steps, which keep values about one."""

    def __init__(self, seed: int, profile: Profile, batch: int = 1) -> None:
        super().__init__(seed)
        self.seed, self.profile, self.batch = seed, profile, batch
        self.made: list[int] = []  # tensors that a step may read
        self.exact: set[int] = set()  # tensors that GPU and CPU have alike
        self.most: dict[int, float] = {}  # estimates of the largest magnitude
        self.drawn: dict[int, Drawn] = {}  # of inputs
        self.fed: dict[int, int] = {}  # inputs that are outputs of the run before
        self.inner_outputs: list[int] = []  # values that are read and outputs as well
        self._case: GraphCase | None = None

    def values(self, seed: int) -> list[Array]:
        """Inputs of the graph."""
        rng = np.random.default_rng([self.seed, seed])
        found = []
        for tensor in self.inputs:
            about, known = self.drawn[tensor], self.tensors[tensor]
            drawn = rng.uniform(about.low, about.high, known.shape)
            kept = drawn > 0 if known.dtype == "bool" else np.rint(drawn) if about.whole else drawn
            found.append(np.asarray(kept, known.dtype))
        return found

    # Chance ---------------------------------------------------------------------------------------------------------

    def pick(self, choices: Sequence[Item]) -> Item:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def below(self, limit: int) -> int:
        """1 to limit - 1."""
        return int(self.rng.integers(1, limit))

    def random(self, *shape: int) -> int:
        """Weights that keep values about as large as they were."""
        fan_in = float(np.prod(shape[1:] if shape and shape[0] > 1 else shape[1:3])) if len(shape) > 1 else 3.0
        return self.constant(self.rng.uniform(-1, 1, shape) * (3.0 / max(fan_in, 3.0)) ** 0.5)

    # Tensors --------------------------------------------------------------------------------------------------------

    def dtype(self, tensor: int) -> str:
        return self.tensors[tensor].dtype

    def about(self, tensor: int) -> float:
        """How large its values may be."""
        return self.most.get(tensor, 2.0)

    def total(self, tensor: int) -> int:
        """How many values it has."""
        return int(np.prod(self.shape(tensor), dtype=np.int64))

    def free_axes(self, x: int) -> tuple[int, ...]:
        """Dimensions of a tensor that a step may change."""
        return tuple(range(int(self.profile.keeps_batch), len(self.shape(x))))

    def remember(self, tensor: int, most: float) -> int:
        """A map that later steps may read, as large as it is known to be, or as this."""
        self.most.setdefault(tensor, most)
        if len(self.shape(tensor)) == 4:
            self.made.append(tensor)
        return tensor

    def keep(self, tensor: int) -> None:
        """A tensor that later ops may read; a large one is cut first."""
        if not self.total(tensor):
            return
        if self.total(tensor) > MOST_VALUES:
            sizes = [min(size, 5) for size in self.shape(tensor)]
            most, exact = self.about(tensor), tensor in self.exact
            tensor = sliced(self, tensor, [0] * len(sizes), sizes)
            self.note(tensor, most, exact)
        self.made.append(tensor)

    def note(self, tensor: int, most: float, exact: bool = False) -> int:
        self.most[tensor] = most
        if exact or self.dtype(tensor) != "float32":
            self.exact.add(tensor)
        return tensor

    def like(self, tensor: int, x: int) -> int:
        """What is as large and as exact as another."""
        return self.note(tensor, self.about(x), x in self.exact)

    def some_shape(self, rank: int) -> Shape:
        if rank == 4:
            return (
                self.batch,
                self.pick(self.profile.sides),
                self.pick(self.profile.sides),
                self.pick(self.profile.channels),
            )
        return tuple(self.pick(self.profile.sides) for _ in range(rank - 1)) + (
            (self.pick(self.profile.channels),) if rank else ()
        )

    def fresh(self, dtype: str = "float32", rank: int = 4, shape: Shape | None = None, low: float = -2.0) -> int:
        """A new input; every other of floats has whole numbers, of which many are equal."""
        found = super().input(self.some_shape(rank) if shape is None else shape, dtype)
        most = 9.0 if dtype == "int32" else 2.0
        self.drawn[found] = Drawn(max(low, -most), most, dtype != "float32" or self.chance(0.3))
        self.note(found, most, exact=True)
        if dtype == "int32" and self.chance(0.8):  # of which the GPU knows that float32 holds them
            self.most[found] = 2 * most
            found = self.bounded(found, most)
        self.made.append(found)
        return found

    def value(
        self, dtype: str = "float32", ranks: Sequence[int] = (0, 1, 2, 3, 4), exact: bool = False, most: float = 1e9
    ) -> int:
        """A tensor of this kind: mostly the last, else any, else a new input."""
        found = [
            x
            for x in self.made
            if self.dtype(x) == dtype
            and len(self.shape(x)) in ranks
            and (x in self.exact or not exact)
            and (self.about(x) <= most or not exact)
        ]
        if not found or (self.chance(0.04) and len(self.inputs) < MOST_INPUTS):
            x = self.fresh(dtype, self.pick([rank for rank in ranks if rank] or ranks))
        else:
            x = found[-1] if self.chance(0.5) else self.pick(found)
        return self.bounded(x, most)

    def bounded(self, x: int, most: float) -> int:
        if self.about(x) <= most or self.dtype(x) == "bool":
            return x
        if self.dtype(x) == "int32":
            above = self.binary("MAXIMUM", x, ints(self, -int(most)), dtype="int32")
            return self.note(self.binary("MINIMUM", above, ints(self, int(most)), dtype="int32"), most)
        op, limit = self.pick((("TANH", 1.0), ("RELU6", 6.0), ("LOGISTIC", 1.0), ("RELU_N1_TO_1", 1.0)))
        if limit > most:
            op, limit = "TANH", 1.0
        return self.note(self.unary(op, x), limit)

    def positive(self, x: int) -> int:
        """Values from a half to three halves."""
        return self.note(self.binary("ADD", self.unary("LOGISTIC", x), self.constant(0.5)), 1.5)

    def partner(self, x: int, exact: bool = False) -> int:
        """What can be computed with a tensor, value by value: of its shape, or of one that is repeated for it."""
        dtype, shape = self.dtype(x), self.shape(x)
        same = [y for y in self.made if self.dtype(y) == dtype and (y in self.exact or not exact)]
        fitting = [y for y in same if _fits(self.shape(y), shape)]
        if fitting and self.chance(0.6):
            return self.pick(fitting)
        part = tuple(n if self.chance(0.7) else 1 for n in shape)[self.pick((0, 0, *range(len(shape) + 1))) :]
        if self.chance(0.6) or len(self.inputs) >= MOST_INPUTS:
            drawn = self.rng.uniform(-2, 2, part) if dtype == "float32" else self.rng.integers(-9, 9, part)
            return self.note(self.constant(drawn > 0 if dtype == "bool" else drawn, dtype), 9.0, exact=True)
        return self.fresh(dtype, shape=part)

    # Graphs of the table ----------------------------------------------------------------------------------------------

    def from_table(self, name: str) -> int | None:
        """A graph of the table, whose inputs are tensors of this one, reshaped and bounded as it needs them."""
        rows = [case for case in RUN if case.op == name and case.tolerance <= 1e-5]
        if not rows:
            return None
        self._case = self.pick(rows)
        try:
            drawn = self._case.draw(self)
        finally:
            self._case = None
        outputs = drawn if isinstance(drawn, tuple) else (drawn,)
        for tensor in outputs[1:]:
            self.made.append(tensor)
        for tensor in outputs:
            self.note(tensor, 1e3, exact=False)
        return outputs[0]

    def input(self, shape: Shape, dtype: str = "float32") -> int:
        """While a graph of the table is drawn, what it asks for: often something that is there."""
        case = self._case
        if case is None:
            return super().input(shape, dtype)
        count = int(np.prod(shape))
        found = [x for x in self.made if self.dtype(x) == dtype and count <= self.total(x) <= MOST_VALUES]
        fresh = dtype != "float32" or not found or not _takes_floats_alone(case.op)
        if fresh or self.chance(0.3):
            x = super().input(shape, dtype)
            self.drawn[x] = Drawn(case.low, case.high, dtype != "float32")
            self.note(x, max(abs(case.low), abs(case.high)), exact=True)
            return x
        x = self.pick(found)
        flat = reshaped(self, x, self.total(x))
        x = reshaped(self, sliced(self, flat, [0], [count]), *shape)
        spread = self.binary("MUL", self.unary("LOGISTIC", x), self.constant(case.high - case.low))
        return self.binary("ADD", spread, self.constant(case.low))


def _takes_floats_alone(op: str) -> bool:
    """Whether what is not the same to the last bit may go into a graph about an op."""
    file = OPS[op].file
    types = () if file is None else (*file.dtypes, *file.first_dtypes, *file.out_dtypes)
    return op not in NOT_CONTINUOUS and set(types) == {"float32"}


def _fits(shape: Shape, wanted: Shape) -> bool:
    """Whether a tensor is repeated to this shape, or has it."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def described(sketch: Any) -> str:
    """A line for each op: its name, tensors and options."""

    def text(tensor: int) -> str:
        if tensor < 0:
            return "-"
        known = sketch.tensors[tensor]
        of_scale = f" of {known.scales[0]:.3g} from {known.zero_points[0]}" if known.scales else ""
        what = "constant " if known.data is not None else "input " if tensor in sketch.inputs else ""
        return f"{what}{tensor}:{known.dtype}{list(known.shape)}{of_scale}"

    lines = [
        f"{', '.join(map(text, op.outputs))} = {op.name}({', '.join(map(text, op.inputs))})"
        + "".join(f" {key}={value}" for key, value in op.options.items())
        for op in sketch.ops
    ]
    return "\n".join([*lines, f"outputs {', '.join(map(str, sketch.outputs))}"])
