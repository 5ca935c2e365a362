"""Writes the code of one pixel kernel: the statements of a planned Body under a Tile, and the weights that they read.

Ops emit only their own arithmetic (gpu_delegate/ops); positions, padding, loads, stores, loops and registers are
handled here. Identifiers are ordinals (in0, out0, a1_0_2), never names from the model, so that equal kernels have equal
source.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..code.expressions import Slice, Weights
from ..code.indices import Index, Place, Validity
from ..code.kernel_writer import Pack
from ..code.product_forms import FLOAT_PRODUCTS, Products
from ..code.thread_pixels import index_in_smaller, index_of_pixel, place_of_pixel
from ..code.vocabulary import (
    PART,
    X0,
    Y0,
    Z0,
    ZEROS,
    Assign,
    Declare,
    Element,
    ForEach,
    Keep,
    Lane,
    Leave,
    LoadFrom,
    Name,
    Not,
    Operand,
    Operation,
    Repeated,
    Reserve,
    Shared,
    SourceIndex,
    Statement,
    StoreTo,
    Synchronize,
    Tap,
    Texel,
    Value,
    Weight,
    When,
    combined,
    type_of,
    values_in,
)
from ..device.tile import Tile
from ..model.graph import Node, Size2
from ..model.layout import MapShape, Storages, ceil_div, shape_of
from ..model.packing import Blob, Float32Array, vector_texels
from ..model.rewrite import float_data
from ..ops.nodes import constants_of, elementwise_value, has_weights, is_elementwise, needs_mask, record_of
from ..plan.body import Accumulate, Body, Hold, Phase, Root
from ..plan.split_k import is_shared_by_outputs, shares_folds
from . import split_k_sums
from .epilogue_reduction import GroupSums
from .moved_values import moved
from .weights_recipe import Pieces

SLICE = Name("s", "int")  # of loops over slices
_POSITIONS = frozenset("fiknpqr")  # with what the names of positions begin, and no others


@dataclass
class Scope:
    """The statements inside one pair of braces, and the values that are already computed there."""

    statements: list[Statement] = field(default_factory=list)
    values: dict[tuple[int, Operand], Sequence[Value]] = field(default_factory=dict)
    named: list[Value] = field(default_factory=list)


class Emitter:
    """Builds the code; `preamble`, `statements` and `blob` are the result."""

    def __init__(
        self,
        body: Body,
        tile: Tile,
        inputs: dict[int, str],
        vectors: dict[int, str],
        blob: Blob,
        storages: Storages,
        sums: GroupSums,
    ) -> None:
        self.body = body
        self.graph = body.graph
        self.tile = tile
        self.vectors = vectors  # tensors that the reduction prologue left in shared memory, and their arrays
        self.blob = blob
        self.storages = storages
        self.sums = sums
        self.preamble: list[Statement] = []
        self.shared: dict[str, int] = {}  # arrays in the work-group's memory, and how many texels each has
        self.rows = range(tile.rows)
        self._scopes = [Scope()]
        self._names: dict[Value, Name] = {}  # of the values that open scopes have named
        self._remaining: list[Value] = []  # conditions under which threads do what is emitted from there on
        self.own: int | None = None  # a held value of which each part computes slices of its own
        self.shares_folds = False  # whether all parts compute what is emitted, a reduction over pixels
        self._fresh = 0
        self._positions: dict[Value, Name] = {}
        self._varying: set[str] = set()  # positions in the loop over a window, which are others for each tap
        self._held_names: dict[int, str] = {}
        self._weights: dict[tuple[int, str], Weights] = {}
        self._pieces: list[tuple[int, Callable[[Body, int], Float32Array]]] = []  # of the blob, for a WeightsRecipe
        self.is_for_all = True  # whether the code is that of all bodies with this key, whatever their weights
        self._pixels: dict[int, Operand] = {}
        self._inputs = inputs
        self.outputs = {tensor: f"out{k}" for k, tensor in enumerate(body.outputs)}

    # Statements ---------------------------------------------------------------------------------------------------

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What was emitted, without the preamble."""
        return tuple(self._scopes[0].statements)

    def add(self, statement: Statement) -> None:
        """Append a statement to the open block."""
        self._scopes[-1].statements.append(statement)

    def declare(self, values: Sequence[Operand], prefix: str = "t") -> list[Name]:
        """A new variable for each value."""
        names = [self._new(prefix, value) for value in values]
        for name, value in zip(names, values, strict=True):
            self.add(Declare(name, value))
        return names

    def _new(self, prefix: str, value: Operand) -> Name:
        assert prefix not in _POSITIONS, f"{prefix} names positions, which are counted by themselves"
        self._fresh += 1
        return Name(f"{prefix}{self._fresh}", type_of(value))

    @contextmanager
    def loop(self, *over: tuple[Name, int]) -> Iterator[None]:
        """What is emitted inside is repeated for each number, or done once; its declarations stay there."""
        self._scopes.append(Scope())
        yield
        self.add(ForEach(over, self._close()))

    @contextmanager
    def when(self, condition: Validity) -> Iterator[None]:
        """What is emitted inside is done where a condition holds; its declarations stay there."""
        self._scopes.append(Scope())
        yield
        body = self._close()
        self.add(When(condition, body) if isinstance(condition, Value) else ForEach((), body))

    def _close(self) -> tuple[Statement, ...]:
        """The statements of the innermost block, which ends: what it has named is not known any more."""
        scope = self._scopes.pop()
        for value in scope.named:
            del self._names[value]
        return tuple(scope.statements)

    def once(self, prefix: str, value: Value) -> Name:
        """The variable that has this value: a new one unless an enclosing block has one."""
        if (name := self._names.get(value)) is None:
            (name,) = self.declare([value], prefix)
            self._names[value] = name
            self._scopes[-1].named.append(value)
        return name

    def position(self, prefix: str, value: Value) -> Name:
        """Like once(), for values that depend on the thread, then declared before all loops, or on a tap."""
        assert prefix in _POSITIONS, f"{prefix} names what is declared in loops, which is counted by itself"
        if self._varying and any(isinstance(each, Name) and each.name in self._varying for each in values_in(value)):
            name = self.once("j", value)
            self._varying.add(name.name)
            return name
        if (found := self._positions.get(value)) is None:
            found = self._positions[value] = Name(f"{prefix}{len(self._positions)}", type_of(value))
            self.preamble.append(Declare(found, value))
        return found

    @contextmanager
    def window_loop(self, *over: tuple[Name, int]) -> Iterator[None]:
        """A loop over taps of a window: positions that depend on one are declared in it."""
        with self.loop(*over):
            self._varying = {name.name for name, _ in over}
            yield
            self._varying = set()

    def share_array(self, name: str, texels: int) -> None:
        """Have an array of vec4s in the work-group's memory, which nobody reads any more for what it held before."""
        if name in self.shared:
            self.add(Synchronize())
        self.shared[name] = max(texels, self.shared.get(name, 0))

    def looped_axes(self, kernel: Size2) -> tuple[bool, bool]:
        """Whether the rows of a window, and its columns, are a loop."""
        return (self._is_loop(math.prod(kernel)),) * 2

    def _is_loop(self, taps: int) -> bool:
        return taps > self.tile.written_taps

    # Values -------------------------------------------------------------------------------------------------------

    def shape(self, tensor: int) -> MapShape:
        return shape_of(self.graph.tensors[tensor])

    def is_plain(self, tensor: int) -> bool:
        """Whether a tensor of one channel is stored as one float for each pixel."""
        return self.storages[tensor].lanes == 1

    def value(self, tensor: int, at: Slice) -> Sequence[Value]:
        """Slice `at` of a value for each of the thread's pixels."""
        if tensor in self.body.held:
            return [self.held(tensor, row, at.register) for row in self.rows]
        for scope in self._scopes:
            if (tensor, at.at) in scope.values:
                return scope.values[tensor, at.at]
        node = self.body.producers.get(tensor)
        found = self._load(tensor, at) if node is None else self._compute(node, at)
        self._scopes[-1].values[tensor, at.at] = found
        return found

    def _load(self, tensor: int, at: Slice) -> Sequence[Value]:
        shape = self.shape(tensor)
        if tensor in self.vectors:
            return [Shared(self.vectors[tensor], at)] * len(self.rows)
        if self.graph.tensors[tensor].is_constant and shape.is_vector:
            base = self._constant(tensor)
            return [self.once("c", Weight(Element(base, (at,))))] * len(self.rows)
        if (node := self.body.through.get(tensor)) is not None:
            return self.declare([moved(self, node, self.place(shape, row), at) for row in self.rows], "v")
        if shape.is_vector:
            return [self.once("u", LoadFrom(self._inputs[tensor], at))] * len(self.rows)
        return [self.once("v", self.read(tensor, at, self._pixel(shape, row))) for row in self.rows]

    def read(self, tensor: int, at: Slice, pixel: Operand) -> Value:
        """Slice `at` of an input at a pixel, given by its index in the map."""
        if tensor in self.vectors:  # it has but one
            return Shared(self.vectors[tensor], at)
        return LoadFrom(self._inputs[tensor], self.texel(tensor, at, pixel))

    def in_memory(self, tensor: int, at: Index, pixel: Index) -> Value:
        """Slice `at` of a tensor at a pixel, given by its index in the map, from where the kernel has it."""
        shape, data = self.shape(tensor), self.graph.tensors[tensor]
        if tensor in self.vectors:
            return Shared(self.vectors[tensor], at.code)
        address = at.times(self.slice_stride(tensor)).plus(pixel)
        if data.is_constant and shape.is_vector:
            return Weight(address.plus(self._constant(tensor)).code)
        return LoadFrom(self._inputs[tensor], address.code)

    def channel_in_memory(self, tensor: int, channel: Index, pixel: Index) -> Value | None:
        """Of textures and buffers a texel is the least that is read."""
        return None

    def texel_at(self, tensor: int, at: Slice, place: Place) -> Value:
        """Slice `at` of an input at (b, y, x)."""
        if (node := self.body.through.get(tensor)) is not None:
            return moved(self, node, place, at)
        shape, (b, y, x) = self.shape(tensor), place
        return self.read(tensor, at, b.times(shape.height).plus(y).times(shape.width).plus(x).code)

    def operand(self, tensor: int, at: Slice, channels: int) -> Sequence[Value]:
        """Like value(), with one channel repeated over `channels` where the tensor has but one."""
        if self.shape(tensor).channels == 1 and channels > 1:
            return [Repeated(v) for v in self.value(tensor, Slice(0))]
        return self.value(tensor, at)

    def _compute(self, node: Node, at: Slice) -> Sequence[Value]:
        if is_elementwise(node):
            return self.declare(self._elementwise(node, at))
        stream = record_of(node).emission.stream
        assert stream is not None, "the plan streams what can be streamed"
        return stream(self, node, at)

    def _elementwise(self, node: Node, at: Slice) -> Sequence[Value]:
        channels = self.shape(node.outputs[0]).channels
        operands = [self.operand(i, at, channels) for i in node.inputs]
        weights = self.weights(node, "constants", lambda _, each: constants_of(each))
        constants = [self.once("c", weights.texel(k)) for k in range(len(weights.values))]
        values = [elementwise_value(node, row, constants) for row in zip(*operands, strict=True)]
        return [self.masked(value, channels, at) for value in values] if needs_mask(node) else values

    def masked(self, value: Value, channels: int, at: Slice) -> Value:
        """The value with zeros in the lanes past the last channel."""
        return value if self._is_whole(channels, at) else Keep(value, channels, at)

    def lanes_or(self, value: Value, channels: int, at: Slice, other: float) -> Value:
        """The value with another one in the lanes past the last channel."""
        return value if self._is_whole(channels, at) else Keep(value, channels, at, other)

    @staticmethod
    def _is_whole(channels: int, at: Slice) -> bool:
        """Whether all four lanes of a slice have channels."""
        return channels % 4 == 0 or at.index not in (None, channels // 4)

    # Registers ----------------------------------------------------------------------------------------------------

    def held(self, tensor: int, row: int, index: int) -> Name:
        """The register of a held value for one of the thread's pixels and, by index, one of its slices."""
        key = ~tensor if tensor == self.own else tensor
        name = self._held_names.setdefault(key, f"a{len(self._held_names)}")
        return Name(f"{name}_{row}_{index}", "vec4")

    def held_slices(self, tensor: int) -> range:
        """Indices of the slices of a held value that this thread computes."""
        total = self.shape(tensor).slices
        if tensor == self.own:
            return range(ceil_div(total, self.tile.parts))
        return range(self.tile.z_slices if self.splits else total)

    @property
    def splits(self) -> bool:
        """Whether output slices are distributed over the grid's z."""
        return self.tile.z_slices > 0

    def output_slice(self, index: int) -> Slice:
        """Slice `index` of those that this thread computes."""
        if self.own is not None:
            return split_k_sums.own_slice(self, self.own, index)
        if not self.splits:
            return Slice(index)
        if index >= self._sure_slices:  # a thread without it computes the last one instead, and does not store it
            return Slice(Operation("minimum", (Z0 + index, self._all_slices - 1)), place=index)
        return Slice(Z0 if index == 0 else Z0 + index, place=index)

    @property
    def _all_slices(self) -> int:
        return self.shape(self.body.outputs[0]).slices

    @property
    def _sure_slices(self) -> int:
        """Output slices that every thread has."""
        return self.tile.sure_slices(self._all_slices)

    # Positions ----------------------------------------------------------------------------------------------------

    def place(self, shape: MapShape, row: int) -> Place:
        """(b, y, x) of the thread's pixel `row`, in a map that may be smaller: where its size is 1, it is broadcast."""
        place = self.own_place(row)
        sizes = shape.batch, shape.height, shape.width
        b, y, x = (Index.of(0) if size == 1 else index for index, size in zip(place, sizes, strict=True))
        return b, y, x

    def own_place(self, row: int) -> Place:
        """(b, y, x) of the thread's pixel `row`."""
        return place_of_pixel(self.tile, self.body.domain, row)

    def moved(self, node: Node, row: int, at: Slice) -> Value:
        """Slice `at` of a node that moves data, at the thread's pixel `row`."""
        return moved(self, node, self.place(self.shape(node.outputs[0]), row), at)

    def target(self, tensor: int) -> str:
        """The name under which the kernel writes an output."""
        return self.outputs[tensor]

    @property
    def domain(self) -> MapShape:
        """The map whose pixels are distributed over threads."""
        return self.body.domain

    def index(self, tensor: int, at: Slice, row: int) -> Operand:
        """Texel of the thread's pixel `row` in a map of the domain's size."""
        return self.texel(tensor, at, self.pixel(row))

    def pixel(self, row: int) -> Operand:
        """The index of the thread's pixel `row` in a map of the domain's size."""
        if (found := self._pixels.get(row)) is None:
            index = index_of_pixel(self.tile, self.body.domain, row)
            found = self._pixels[row] = self.position("i", index) if isinstance(index, Value) else index
        return found

    def _pixel(self, shape: MapShape, row: int) -> Operand:
        """The same in a map that may be smaller: where its size is 1, it is broadcast."""
        domain = self.body.domain
        if (shape.batch, shape.height, shape.width) == (domain.batch, domain.height, domain.width):
            return self.pixel(row)
        index, is_long = index_in_smaller(self.tile, domain, shape, row)
        return self.position("i", index) if is_long and isinstance(index, Value) else index

    def map_row(self) -> Name:
        """The thread's first row, counted from the top of its map of the batch."""
        return Y0 if self.body.domain.batch == 1 else self.position("q", Y0 % self.body.domain.height)

    def map_place(self, row: int) -> tuple[Value, int, Value]:
        """(y, rows further down, x) of the thread's pixel `row`, in its map of the batch."""
        return self.map_row(), row, X0

    def _batch(self) -> Name:
        """The thread's map of the batch."""
        return self.position("n", Y0 / self.body.domain.height)

    def _row_start(self, shape: MapShape, row: Operand) -> Value:
        """The first pixel of a row of an input, in the thread's map of the batch."""
        first = self._batch() * shape.height + row if self.body.domain.batch > 1 else row
        return self.position("r", Operation("multiply", (first, shape.width)))

    def slice_stride(self, tensor: int) -> int:
        """Positions in memory from one slice of a map to the next."""
        return self.shape(tensor).pixels

    def texel(self, tensor: int, at: Slice, pixel: Operand) -> Operand:
        """Position in memory of slice `at` of a pixel, given by its index in the map."""
        return pixel if at.index == 0 else Texel(at.at, self.slice_stride(tensor), pixel)

    def tap(self, tensor: int, at: Slice, row: SourceIndex, column: SourceIndex, outside: Value = ZEROS) -> Name:
        """One texel of an input at source coordinates from axis(), `outside` where they are not valid."""
        if (node := self.body.through.get(tensor)) is not None:
            value = moved(self, node, self._place_of(self.shape(tensor), row[0], column[0]), at)
        else:
            start = 0 if tensor in self.vectors else self._row_start(self.shape(tensor), row[0])
            value = self.read(tensor, at, Operation("add", (start, column[0])))
        valid = [each for each in (row[1], column[1]) if each is not None]
        if valid:
            condition = combined("both", valid)
            value = Tap(value, condition if self.tile.loads_at_use else self.position("k", condition), outside)
        return self.once("v", value)

    def _place_of(self, shape: MapShape, row: Operand, column: Operand) -> Place:
        """(b, y, x) of source coordinates, in the thread's map of the batch."""
        batch = Index.of(0) if self.body.domain.batch == 1 else Index.variable(self._batch(), 0, shape.batch - 1)
        y, x = Index.variable(row, 0, shape.height - 1), Index.variable(column, 0, shape.width - 1)
        return batch, y, x

    # Phases -------------------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole kernel."""
        for phase in self.body.phases:
            for root in phase.roots:
                if isinstance(root, Accumulate):
                    self._start(root.node)
            self._phase(phase)
            for root in phase.roots:
                if isinstance(root, Accumulate):
                    self._finish(root.node)
        for condition in reversed(self._remaining):
            self.add(When(condition, self._close()))

    def leave(self, condition: Value) -> None:
        """Threads for which a condition holds do no more: they end, or pass by all that follows, up to the sums."""
        if not self.sums.are_left:
            self.add(Leave(condition))
            return
        self._remaining.append(Not(condition))
        self._scopes.append(Scope())

    def _phase(self, phase: Phase) -> None:
        accumulates = any(isinstance(root, Accumulate) for root in phase.roots)
        for root in phase.roots:
            if isinstance(root, Hold):
                slices = self.held_slices(root.tensor)
                self.add(Reserve(tuple(self.held(root.tensor, row, k) for row in self.rows for k in slices)))
        if self.tile.shares_pixels:
            split_k_sums.emit_phase(self, phase, SLICE)
        elif self.splits and not accumulates:
            if shares_folds(self.body, self.tile):
                split_k_sums.share_folds(self, 0)
            for index in range(self.tile.z_slices):
                exists = index < self._sure_slices or Operation("less", (Z0 + index, self._all_slices))
                with self.when(exists if self.tile.parts == 1 else split_k_sums.and_own(self, exists, index)):
                    self._roots(phase, self.output_slice(index))
        elif phase.unrolled or (self.tile.baked and self._has_weights(phase)) or phase.slices == 1:
            for index in range(phase.slices):
                with self.loop():
                    self._roots(phase, Slice(index))
        else:
            count = phase.slices // (self.tile.parts if accumulates else 1)
            with self.loop((SLICE, count)):
                self._roots(phase, Slice(SLICE if count == phase.slices else PART * count + SLICE))

    def _has_weights(self, phase: Phase) -> bool:
        nodes = [self.body.producers.get(v) for v in phase.evaluates]
        nodes += [root.node for root in phase.roots if isinstance(root, Accumulate)]
        return any(node is not None and has_weights(node) for node in nodes)

    def _roots(self, phase: Phase, at: Slice) -> None:
        for root in phase.roots:
            self.root(root, at)

    def root(self, root: Root, at: Slice) -> None:
        """What a loop computes for one slice."""
        if isinstance(root, Accumulate):
            self._accumulate(root.node, at)
        elif isinstance(root, Hold):
            self._hold(root.tensor, at)
        elif (store := self._scatter(root.tensor)) is not None:
            store(self, self.body.producers[root.tensor])
        else:
            self._store(root.tensor, at)

    def _start(self, node: Node) -> None:
        start = record_of(node).emission.start
        assert start is not None
        if self.tile.shares_pixels and is_shared_by_outputs(self.body, node):
            self.own = node.outputs[0]
        start(self, node)
        if self.tile.parts > 1 and self.own is None:
            split_k_sums.start_parts(self, node)

    def _finish(self, node: Node) -> None:
        if self.tile.parts > 1:
            (split_k_sums.finish if self.tile.shares_pixels else split_k_sums.join)(self, node)
        if (finish := record_of(node).emission.finish) is not None:
            finish(self, node)

    def _accumulate(self, node: Node, at: Slice) -> None:
        accumulate = record_of(node).emission.accumulate
        assert accumulate is not None
        accumulate(self, node, at)

    def _scatter(self, tensor: int) -> "Callable[[Emitter, Node], None] | None":
        """What stores a value at other pixels than the thread's, if its op does so."""
        node = self.body.producers.get(tensor)
        return None if node is None else record_of(node).emission.store

    def _hold(self, tensor: int, at: Slice) -> None:
        node = self.body.producers.get(tensor)
        if node is None:
            values = self._load(tensor, at)
        elif is_elementwise(node):
            values = self._elementwise(node, at)
        else:
            values = self._compute(node, at)
        for row, value in enumerate(values):
            self.add(Assign(self.held(tensor, row, at.register), value))

    def _store(self, tensor: int, at: Slice) -> None:
        shape = self.shape(tensor)
        values = self.value(tensor, at)
        for row, value in enumerate(values):
            target = self.index(tensor, at, row)
            stored = Lane(value, 0) if self.is_plain(tensor) else self.masked(value, shape.channels, at)
            self._store_at(row, StoreTo(self.outputs[tensor], target, stored))
        masked = [self.masked(value, shape.channels, at) for value in values]
        self._scopes[-1].statements += self.sums.collect(tensor, at, masked)

    def _store_at(self, row: int, statement: StoreTo) -> None:
        """Store what was computed for the thread's pixel `row`."""
        self.add(statement)

    # Weights ------------------------------------------------------------------------------------------------------

    def products(self, node: Node) -> Products:
        """How sums of products with a node's weights are computed."""
        return FLOAT_PRODUCTS

    def weights(self, node: Node, what: str, pack: Pack) -> Weights:
        """Weights of a node, packed once."""
        key = node.outputs[0], what
        if (found := self._weights.get(key)) is None:
            found = self._weights[key] = self._added(node, what, pack)
        return found

    def _added(self, node: Node, what: str, pack: Pack) -> Weights:
        """Weights of a node: literals if the tile has them and a thread has all slices, else texels of the blob."""
        if self.tile.has_literals and not self._is_loop(record_of(node).taps(self.graph, node)):
            self.is_for_all = False
            return Weights(pack(self.graph, node), None)
        return self._packed(node, pack)

    def _packed(self, node: Node, pack: Pack) -> Weights:
        """Weights of a node in the blob."""
        values = pack(self.graph, node)
        self._pieces.append((node.outputs[0], lambda body, out: pack(body.graph, body.producers[out])))
        return Weights(values, self.blob.add(values))

    @property
    def pieces(self) -> Pieces:
        """All that is in the blob, if nothing else has added to it."""
        assert len(self._pieces) == len(self.blob.pieces), "a recipe has every piece of the blob"
        return self._pieces

    def _constant(self, tensor: int) -> int:
        """The position of a constant vector in the blob."""
        self._pieces.append((tensor, lambda body, constant: vector_texels(float_data(body.graph.tensors[constant]))))
        return self.blob.vector(float_data(self.graph.tensors[tensor]))
