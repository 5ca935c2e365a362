"""GLSL of one pixel kernel: a Body and a Tile go in, the text of main()'s body and the weights it reads come out.

Ops emit only their own arithmetic (gpu_delegate/ops); positions, padding, loads, stores, loops and registers are
handled here. Identifiers are ordinals (in0, out0, a1_0_2), never names from the model, so that equal kernels have equal
source.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from . import pixel_parts, sum_parts
from .body import Accumulate, Body, Hold, Phase, Root
from .expressions import Slice, Weights
from .graph import Node
from .group_sums import GroupSums
from .indices import Index
from .layout import MapShape, Storages, shape_of
from .moves import Place, moved
from .nodes import expression, has_weights, is_elementwise, needs_mask, record_of
from .packing import Blob, Float32Array
from .rewrite import float_data
from .tile import Tile


@dataclass
class Scope:
    """Values and taps that are already computed inside one pair of braces."""

    values: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


class Emitter:
    """Builds the source; `lines` and `blob` are the result."""

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
        self.lines: list[str] = []
        self.preamble: list[str] = []
        self.shared: list[str] = []  # declarations of arrays
        self.rows = range(tile.rows)
        self._scopes = [Scope()]
        self._fresh = 0
        self._positions: dict[str, str] = {}
        self._held_names: dict[int, str] = {}
        self._bases: dict[tuple[int, str], int] = {}
        self._inputs = inputs
        self.outputs = {tensor: f"out{k}" for k, tensor in enumerate(body.outputs)}

    # Text ---------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Append a line of the kernel, indented for the open blocks."""
        self.lines.append("    " * len(self._scopes) + text)

    def name(self, prefix: str) -> str:
        """An unused identifier."""
        self._fresh += 1
        return f"{prefix}{self._fresh}"

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """Code emitted inside is put in braces; its declarations are visible only there."""
        self.line((head + " {").lstrip())
        self._scopes.append(Scope())
        yield
        self._scopes.pop()
        self.line("}")

    def once(self, key: str, prefix: str, declaration: str) -> str:
        """Declare `declaration` (with {} for the name) unless an enclosing scope has it; the name."""
        for scope in self._scopes:
            if key in scope.names:
                return scope.names[key]
        name = self.name(prefix)
        self.line(declaration.format(name))
        self._scopes[-1].names[key] = name
        return name

    def position(self, key: str, prefix: str, declaration: str) -> str:
        """Like once(), for values that depend on the thread only: declared before all loops."""
        if key not in self._positions:
            self._positions[key] = f"{prefix}{len(self._positions)}"
            self.preamble.append("    " + declaration.format(self._positions[key]))
        return self._positions[key]

    # Values -------------------------------------------------------------------------------------------------------

    def shape(self, tensor: int) -> MapShape:
        return shape_of(self.graph.tensors[tensor])

    def is_plain(self, tensor: int) -> bool:
        """Whether a tensor of one channel is stored as one float for each pixel."""
        return self.storages[tensor].lanes == 1

    def value(self, tensor: int, at: Slice) -> list[str]:
        """Slice `at` of a value for each of the thread's pixels."""
        if tensor in self.body.held:
            return [self.held(tensor, row, at.register) for row in self.rows]
        for scope in self._scopes:
            if (tensor, at.text) in scope.values:
                return scope.values[tensor, at.text]
        node = self.body.producers.get(tensor)
        found = self._load(tensor, at) if node is None else self._compute(node, at)
        self._scopes[-1].values[tensor, at.text] = found
        return found

    def _load(self, tensor: int, at: Slice) -> list[str]:
        shape = self.shape(tensor)
        if tensor in self.vectors:
            return [f"{self.vectors[tensor]}[{at.text}]"] * self.tile.rows
        if self.graph.tensors[tensor].is_constant and shape.is_vector:
            base = self.blob.vector(float_data(self.graph.tensors[tensor]))
            return [
                self.once(f"const {base} {at.text}", "c", f"vec4 {{}} = WEIGHT({base} + {at.text});")
            ] * self.tile.rows
        if (node := self.body.through.get(tensor)) is not None:
            return self.declare([moved(self, node, self.place(shape, row), at) for row in self.rows], "v")
        source = self._inputs[tensor]
        if shape.is_vector:
            return [self.once(f"{source} {at.text}", "u", f"vec4 {{}} = READ({source}, {at.text});")] * self.tile.rows
        pixels = [self._pixel(shape, row) for row in self.rows]
        return [
            self.once(f"{source} {at.text} {pixel}", "v", f"vec4 {{}} = {self.read(tensor, at, pixel)};")
            for pixel in pixels
        ]

    def read(self, tensor: int, at: Slice, pixel: str) -> str:
        """Slice `at` of an input at a pixel, given by its index in the map."""
        if tensor in self.vectors:  # it has but one
            return f"{self.vectors[tensor]}[{at.text}]"
        return f"READ({self._inputs[tensor]}, {self.texel(self.shape(tensor), at, pixel)})"

    def texel_at(self, tensor: int, at: Slice, place: Place) -> str:
        """Slice `at` of an input at (b, y, x)."""
        if (node := self.body.through.get(tensor)) is not None:
            return moved(self, node, place, at)
        shape, (b, y, x) = self.shape(tensor), place
        return self.read(tensor, at, b.times(shape.height).plus(y).times(shape.width).plus(x).text)

    def operand(self, tensor: int, at: Slice, channels: int) -> list[str]:
        """Like value(), with one channel repeated over `channels` where the tensor has but one."""
        if self.shape(tensor).channels == 1 and channels > 1:
            return [v + ".xxxx" for v in self.value(tensor, Slice("0", 0))]
        return self.value(tensor, at)

    def _compute(self, node: Node, at: Slice) -> list[str]:
        if is_elementwise(node):
            return self.declare(self._elementwise(node, at))
        stream = record_of(node).emission.stream
        assert stream is not None, "the plan streams what can be streamed"
        return stream(self, node, at)

    def declare(self, expressions: list[str], prefix: str = "t") -> list[str]:
        """A new vec4 for each expression; their names."""
        names = [self.name(prefix) for _ in expressions]
        for name, text in zip(names, expressions, strict=True):
            self.line(f"vec4 {name} = {text};")
        return names

    def _elementwise(self, node: Node, at: Slice) -> list[str]:
        channels = self.shape(node.outputs[0]).channels
        operands = [self.operand(i, at, channels) for i in node.inputs]
        texts = [expression(node, list(row)) for row in zip(*operands, strict=True)]
        if needs_mask(node):
            return [self.masked(text, channels, at) for text in texts]
        return texts

    def masked(self, text: str, channels: int, at: Slice) -> str:
        """The value with zeros in the lanes past the last channel."""
        return text if self._is_whole(channels, at) else f"keep({text}, {channels} - 4 * ({at.text}))"

    def lanes_or(self, text: str, channels: int, at: Slice, other: str) -> str:
        """The value with another one in the lanes past the last channel."""
        if self._is_whole(channels, at):
            return text
        return f"mix(vec4({other}), {text}, lessThan(ivec4(0, 1, 2, 3), ivec4({channels} - 4 * ({at.text}))))"

    @staticmethod
    def _is_whole(channels: int, at: Slice) -> bool:
        """Whether all four lanes of a slice have channels."""
        return channels % 4 == 0 or at.index not in (None, channels // 4)

    # Registers ----------------------------------------------------------------------------------------------------

    def held(self, tensor: int, row: int, index: int) -> str:
        """The register of a held value for one of the thread's pixels and, by index, one of its slices."""
        name = self._held_names.setdefault(tensor, f"a{len(self._held_names)}")
        return f"{name}_{row}_{index}"

    def held_slices(self, tensor: int) -> range:
        """Indices of the slices of a held value that this thread computes."""
        total = self.shape(tensor).slices
        return range(self.tile.z_slices if self.splits else total)

    @property
    def splits(self) -> bool:
        """Whether output slices are distributed over the grid's z."""
        return self.tile.z_slices > 0

    def output_slice(self, index: int) -> Slice:
        """Slice `index` of those that this thread computes."""
        if not self.splits:
            return Slice(str(index), index)
        if index >= self._sure_slices:  # a thread without it computes the last one instead, and does not store it
            return Slice(f"min(z0 + {index}, {self._all_slices - 1})", place=index)
        return Slice("z0" if index == 0 else f"(z0 + {index})", place=index)

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
        domain = self.body.domain
        y = Index.variable("y0", 0, domain.rows - self.tile.rows).plus(row)
        x = Index.variable("x0", 0, domain.width - 1)
        place = y.over(domain.height), y.modulo(domain.height), x
        sizes = shape.batch, shape.height, shape.width
        b, y, x = (Index.of(0) if size == 1 else index for index, size in zip(place, sizes, strict=True))
        return b, y, x

    def moved(self, node: Node, row: int, at: Slice) -> str:
        """Slice `at` of a node that moves data, at the thread's pixel `row`."""
        return moved(self, node, self.place(self.shape(node.outputs[0]), row), at)

    def source(self, tensor: int) -> str:
        """The name under which the kernel reads a tensor in memory."""
        return self._inputs[tensor]

    def index(self, shape: MapShape, at: Slice, row: int) -> str:
        """Texel of the thread's pixel `row` in a map of the domain's size."""
        return self.texel(shape, at, self.pixel(row))

    def pixel(self, row: int) -> str:
        """The index of the thread's pixel `row` in a map of the domain's size."""
        (width, _), pixels = self.tile.area(self.body.domain), self.body.domain.pixels
        text = f"(y0 + {row}) * {width} + x0"
        if (row + 1) * width > pixels and self.tile.flat:
            text = f"min({text}, {pixels - 1})"
        return self.position(f"pixel {row}", "i", f"int {{}} = {text};")

    def _pixel(self, shape: MapShape, row: int) -> str:
        """The same in a map that may be smaller: where its size is 1, it is broadcast."""
        domain, at = self.body.domain, f"(y0 + {row})"
        if (shape.batch, shape.height, shape.width) == (domain.batch, domain.height, domain.width):
            return self.pixel(row)
        y, x = at, "x0" if shape.width > 1 else "0"
        if shape.rows == 1:
            return x
        if shape.rows < domain.rows:
            y = f"{at} / {domain.height}" if shape.batch > 1 else f"{at} % {domain.height}"
        return self.position(f"repeated {y} {x}", "i", f"int {{}} = {y} * {shape.width} + {x};")

    def map_row(self) -> str:
        """The thread's first row, counted from the top of its map of the batch."""
        if self.body.domain.batch == 1:
            return "y0"
        return self.position("map row", "q", f"int {{}} = y0 % {self.body.domain.height};")

    def _row_start(self, shape: MapShape, row: str) -> str:
        """The first pixel of a row of an input, in the thread's map of the batch."""
        if self.body.domain.batch > 1:
            batch = self.position("batch", "n", f"int {{}} = y0 / {self.body.domain.height};")
            row = f"({batch} * {shape.height} + {row})"
        return self.position(f"row {row} {shape.width}", "r", f"int {{}} = {row} * {shape.width};")

    @staticmethod
    def texel(shape: MapShape, at: Slice, pixel: str) -> str:
        """Position in memory of slice `at` of a pixel, given by its index in the map."""
        if at.index is not None:
            return pixel if at.index == 0 else f"{at.index * shape.pixels} + {pixel}"
        return f"({at.text}) * {shape.pixels} + {pixel}"

    def axis(self, base: str, stride: int, offset: int, size: int, last: int) -> tuple[str, str]:
        """Source coordinate base * stride + offset along one axis, clamped, and its validity ("" if always valid).

        base runs from 0 to `last`.
        """
        text = f"{base} * {stride} + {offset}"
        if offset >= 0 and last * stride + offset < size:
            return self.position("at " + text, "p", f"int {{}} = {text};"), ""
        at = self.position(f"at {text} {size}", "p", f"int {{}} = clamp({text}, 0, {size - 1});")
        return at, self.position(f"in {text} {size}", "k", f"bool {{}} = uint({text}) < {size}u;")

    def strided_axis(self, base: str, stride: int, offset: int, size: int) -> tuple[str, str]:
        """Source coordinate (base + offset) / stride of a transposed convolution, clamped, and its validity."""
        text = f"{base} + {offset}"
        at = self.position(
            f"over {text} {stride} {size}", "p", f"int {{}} = clamp(({text}) / {stride}, 0, {size - 1});"
        )
        valid = f"({text}) >= 0 && ({text}) % {stride} == 0 && ({text}) / {stride} < {size}"
        return at, self.position(f"on {text} {stride} {size}", "k", f"bool {{}} = {valid};")

    def tap(
        self, tensor: int, at: Slice, row: tuple[str, str], column: tuple[str, str], outside: str = "vec4(0.0)"
    ) -> str:
        """One texel of an input at source coordinates from axis(), `outside` where they are not valid."""
        if (node := self.body.through.get(tensor)) is not None:
            load = moved(self, node, self._place_of(self.shape(tensor), row[0], column[0]), at)
            return self._checked_tap(tensor, at, row, column, outside, load)
        start = "0" if tensor in self.vectors else self._row_start(self.shape(tensor), row[0])
        load = self.read(tensor, at, f"{start} + {column[0]}")
        return self._checked_tap(tensor, at, row, column, outside, load)

    def _place_of(self, shape: MapShape, row: str, column: str) -> Place:
        """(b, y, x) of source coordinates, in the thread's map of the batch."""
        batch = Index.of(0)
        if self.body.domain.batch > 1:
            name = self.position("batch", "n", f"int {{}} = y0 / {self.body.domain.height};")
            batch = Index.variable(name, 0, shape.batch - 1)
        y, x = Index.variable(row, 0, shape.height - 1), Index.variable(column, 0, shape.width - 1)
        return batch, y, x

    def _checked_tap(
        self, tensor: int, at: Slice, row: tuple[str, str], column: tuple[str, str], outside: str, load: str
    ) -> str:
        valid = " && ".join(v for v in (row[1], column[1]) if v)
        if valid:
            valid = self.position("and " + valid, "k", f"bool {{}} = {valid};")
            load = f"{valid} ? {load} : {outside}"
        return self.once(f"tap {tensor} {at.text} {row[0]} {column[0]} {valid}", "v", f"vec4 {{}} = {load};")

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
        while len(self._scopes) > 1:
            self._scopes.pop()
            self.line("}")

    def leave(self, condition: str) -> None:
        """Threads for which the condition holds do no more: they end, or pass by all that follows, up to the sums."""
        if not self.sums.are_left:
            self.line(f"if ({condition}) return;")
            return
        self.line(f"if (!({condition})) {{")
        self._scopes.append(Scope())

    def _phase(self, phase: Phase) -> None:
        accumulates = any(isinstance(root, Accumulate) for root in phase.roots)
        for root in phase.roots:
            if isinstance(root, Hold):
                names = ", ".join(
                    self.held(root.tensor, row, k) for row in self.rows for k in self.held_slices(root.tensor)
                )
                self.line(f"vec4 {names};")
        if self.splits and not accumulates:
            for index in range(self.tile.z_slices):
                with self.block(f"if (z0 + {index} < {self._all_slices})" if index >= self._sure_slices else ""):
                    self._roots(phase, self.output_slice(index))
        elif phase.unrolled or (self.tile.baked and self._has_weights(phase)) or phase.slices == 1:
            for index in range(phase.slices):
                if self.tile.shares_pixels:
                    pixel_parts.emit_slice(self, phase, index)
                    continue
                with self.block():
                    self._roots(phase, Slice(str(index), index))
        elif self.tile.shares_pixels:
            pixel_parts.emit_loop(self, phase)
        else:
            count = phase.slices // (self.tile.parts if accumulates else 1)
            at = Slice("s") if count == phase.slices else Slice(f"(part * {count} + s)")
            with self.block(f"for (int s = 0; s < {count}; ++s)"):
                self._roots(phase, at)

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
        start(self, node)
        if self.tile.parts > 1:
            sum_parts.start(self, node)

    def _finish(self, node: Node) -> None:
        if self.tile.parts > 1:
            (pixel_parts.emit_join if self.tile.shares_pixels else sum_parts.join)(self, node)
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
            self.line(f"{self.held(tensor, row, at.register)} = {value};")

    def _store(self, tensor: int, at: Slice) -> None:
        shape = self.shape(tensor)
        values = self.value(tensor, at)
        for row, value in enumerate(values):
            target = self.index(shape, at, row)
            stored = f"{value}.x" if self.is_plain(tensor) else self.masked(value, shape.channels, at)
            self.line(f"WRITE({self.outputs[tensor]}, {target}, {stored});")
        for line in self.sums.collect(tensor, at, [self.masked(value, shape.channels, at) for value in values]):
            self.line(line)

    # Weights ------------------------------------------------------------------------------------------------------

    def weights(self, node: Node, what: str, values: Float32Array) -> Weights:
        """Weights of a node: literals if the tile has them and a thread has all slices, else texels of the blob."""
        if self.tile.baked and not self.splits:
            return Weights(values, None)
        if (node.outputs[0], what) not in self._bases:
            self._bases[node.outputs[0], what] = self.blob.add(values)
        return Weights(values, self._bases[node.outputs[0], what])
