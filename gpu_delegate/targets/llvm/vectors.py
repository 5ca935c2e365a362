"""Writes nodes on 1x1xC tensors, and reductions over pixels, as a function of LLVM's language.

What they compute is said by kernels/vector_steps.py, and here how a CPU does it. Lanes are channels, but in reductions
over pixels, whose lanes are pixels. A function of one node takes a range of its parts, so that threads can share it;
one of several does all of them.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np

from ...code.product_forms import PAIR_PRODUCTS, InPairs, OfBytes, ScaledBytes, products_of_bytes, scaled_bytes
from ...code.vocabulary import Arithmetic
from ...device.tile import Tile
from ...kernels.vector_steps import EachValue, Folded, PixelPart, Product, vector_steps
from ...model.graph import Node
from ...model.layout import Storages, aligned, ceil_div, plane_floats
from ...model.packing import Float32Array
from ...model.rewrite import float_data
from ...ops.nodes import elementwise_value, is_constant_vector, record_of
from ...plan.storages import byte_storage
from ...plan.vector_nodes import is_vector_part
from ...plan.vector_work import VectorWork, input_names
from .bytes_code import ByteCode
from .ir import (
    FLOAT,
    HALF,
    I32,
    I64,
    POINTER,
    Function,
    Module,
    Register,
    constants,
    filled,
    integer,
    lanes_of,
    number,
    vector,
)
from .lanes import Lanes
from .machine import CpuTarget
from .native_elementwise import elementwise_vectors
from .native_kernel import LlvmKernel
from .pairs_code import PairCode
from .planes import slice_planes
from .vector_math import math_of

HEAVY_FLOATS = 1 << 14  # that a node reads: from so many on, threads may share its work
CHAINS = 8  # sums that are independent of each other: a multiply-add takes four cycles, two begin in each
MOST_PACKED = 1 << 14  # values of a vector that are packed on the stack
SLICE = 4  # channels that a reduction over pixels computes together
PARAMETERS = (
    ("ptr noalias readonly", "tensors"),
    ("ptr noalias readonly", "weights"),
    *(("i32", name) for name in ("y0", "y1", "z0", "z1")),
)


def in_functions(work: VectorWork) -> list[tuple[Node, ...]]:
    """Vector nodes in groups that become a function each: one that reads much is alone."""
    groups: list[tuple[Node, ...]] = []
    was_heavy = True
    for node in work.nodes:
        heavy = _floats_read(work, node) >= HEAVY_FLOATS
        if heavy or was_heavy:
            groups.append((node,))
        else:
            groups[-1] = (*groups[-1], node)
        was_heavy = heavy
    return groups


def _floats_read(work: VectorWork, node: Node) -> int:
    """Weights and values that a node reads."""
    if is_vector_part(work.graph, node):
        return work.shape(node.outputs[0]).channels
    sizes = (tensor.shape for i in node.inputs if (tensor := work.graph.tensors.get(i)) is not None)
    return sum(math.prod(size) for size in sizes)


def vector_function(module: Module, symbol: str, work: VectorWork, target: CpuTarget, storages: Storages) -> LlvmKernel:
    """Add the function of vector nodes to a module: it stores the outputs of all of them."""
    inputs = tuple(input_names((), work))
    outputs = tuple(node.outputs[0] for node in work.nodes)
    writer = _Writer(module.function(symbol, PARAMETERS), work, target, storages, (*inputs, *outputs))
    writer.write()
    records = [record_of(node) for node in work.nodes]
    return LlvmKernel(
        name="+".join(record.kernel_name for record in records),
        symbol=symbol,
        nodes=work.nodes,
        inputs=inputs,
        outputs=outputs,
        weights=writer.weights,
        row_groups=1,
        rows=1,
        slice_blocks=writer.parts,
        macs=sum(record.macs(work.graph, node) for record, node in zip(records, work.nodes, strict=True)),
        tile=Tile(),
    )


class _Writer:
    """Writes one function, node by node."""

    def __init__(
        self, function: Function, work: VectorWork, target: CpuTarget, storages: Storages, tensors: Sequence[int]
    ) -> None:
        self.f = function
        self.work = work
        self.graph = work.graph
        self.storages = storages
        self.target = target
        self.lanes = target.lanes
        self.kind = vector(FLOAT, self.lanes)
        self.ints = vector(I32, self.lanes)
        lanes = Lanes(function, target)
        self._bytes, self._pairs = ByteCode(lanes, target), PairCode(lanes)
        addresses, self._blob, *_ = function.parameters
        self._pointers = {
            tensor: function.load(POINTER, function.at(addresses, k, POINTER), 8) for k, tensor in enumerate(tensors)
        }
        self._weights: list[Float32Array] = []
        self._count = 0
        self.parts = 1

    @property
    def weights(self) -> tuple[Float32Array, ...]:
        """All that the function reads behind its second argument, one piece behind the other."""
        return tuple(self._weights)

    def write(self) -> None:
        """The whole function."""
        for step in vector_steps(self.work):
            out = self._pointer(step.out)
            if isinstance(step, EachValue):
                self._each_value(step, out)
                continue
            source = self._pointer(step.sources[0])
            if isinstance(step, Product):
                self._product(step, source, out)
            elif isinstance(step, PixelPart):
                self._part(step, source, out)
            elif isinstance(step, Folded):
                (self._channels if step.over_channels else self._pixels)(step, source, out)
            else:
                self._copy(source, out, self._channels_of(step.out))
        self.f.give_back()

    # Memory -----------------------------------------------------------------------------------------------------------

    def _constant(self, values: Float32Array) -> Register:
        """Where values lie among the weights: whole vectors, filled up with zeros."""
        flat = np.ascontiguousarray(values, np.float32).reshape(-1)
        place = self.f.at(self._blob, self._count)
        self._weights.append(np.pad(flat, (0, -flat.size % self.lanes)))
        self._count += self._weights[-1].size
        return place

    def _pointer(self, tensor: int) -> Register:
        """Where a vector or map lies."""
        if tensor in self._pointers:
            return self._pointers[tensor]
        assert is_constant_vector(self.graph, tensor)
        return self._constant(float_data(self.graph.tensors[tensor]))

    def _channels_of(self, tensor: int) -> int:
        return self.work.shape(tensor).channels

    def _load(self, pointer: Register, offset: Register | int) -> Register:
        return self.f.load(self.kind, self.f.at(pointer, offset))

    def _store(self, pointer: Register, offset: Register | int, value: Register, channels: int) -> None:
        """So many lanes of a value, and zeros up to the end of the slice that they end in."""
        stored = min(4 * ceil_div(channels, 4), self.lanes)
        if channels < stored:
            value = self._kept(value, channels, number(0.0))
        if stored < self.lanes:
            value = self.f.shuffle(value, value, range(stored))
        self.f.store(value, self.f.at(pointer, offset))

    def _kept(self, value: Register, channels: int, other: Register) -> Register:
        """The first lanes of a value, another number in those behind."""
        mask = constants([Register("true" if lane < channels else "false", "i1") for lane in range(self.lanes)])
        return self.f.choose(mask, value, filled(other, self.lanes))

    def _scaled(self, index: Register, factor: int) -> Register:
        """An index times a number."""
        return self.f.binary("mul nsw", index, integer(factor, I64)) if factor != 1 else index

    def _each(self, count: int, body: Callable[[Register], None]) -> None:
        """What is written by `body` for each index below a number."""
        if count == 1:
            body(integer(0, I64))
        elif count > 1:
            with self.f.loop(integer(0, I64), integer(count, I64)) as index:
                body(index)

    def _each_part(self, count: int, body: Callable[[Register], None], last: Callable[[], None] | None) -> None:
        """`body` for each of so many parts, then the last one if it is another; a node alone does those it is told."""
        if len(self.work.nodes) > 1:
            self._each(count, body)
            if last:
                last()
            return
        self.parts = count + (last is not None)
        z0, z1 = (self.f.convert("sext", value, I64) for value in self.f.parameters[4:])
        if count:
            stop = self.f.call("llvm.smin.i64", I64, z1, integer(count, I64)) if last else z1
            with self.f.loop(z0, stop) as index:
                body(index)
        if last:
            with self.f.when(self.f.compare("icmp sgt", z1, integer(count, I64))):
                last()

    # Nodes ------------------------------------------------------------------------------------------------------------

    def _each_value(self, step: EachValue, out: Register) -> None:
        channels = self._channels_of(step.out)
        sources = [*zip(map(self._pointer, step.sources), step.repeated, strict=True)]

        def block(offset: Register | int, count: int) -> None:
            operands = [
                self.f.splat(self.f.load(FLOAT, pointer), self.lanes) if repeats else self._load(pointer, offset)
                for pointer, repeats in sources
            ]
            self._store(out, offset, elementwise_vectors(self.f, elementwise_value(step.node, ()), operands), count)

        full, rest = divmod(channels, self.lanes)
        self._each(full, lambda index: block(self._scaled(index, self.lanes), self.lanes))
        if rest:
            block(full * self.lanes, rest)

    def _part(self, step: PixelPart, source: Register, out: Register) -> None:
        """Channels of a vector, or of one pixel of a map, whose planes are far apart."""
        shape, storage = self.work.shape(step.sources[0]), self.storages[step.sources[0]]
        channels = self._channels_of(step.out)
        if shape.is_vector:
            self._copy(self.f.at(source, SLICE * step.first), out, channels)
            return
        stride, planes = plane_floats(shape), slice_planes(storage)
        place = self.f.at(source, step.first * planes * stride + step.pixel)

        def values(index: Register, count: int) -> None:
            first = self.f.at(place, self._scaled(index, planes * stride))
            if storage.is_bytes:
                word = self.f.splat(self.f.load(I32, first), self.lanes)
                found = [self.f.lane(each, 0) for each in self._bytes_of(word, count, storage.low)]
            else:
                found = [self.f.load(FLOAT, self.f.at(first, k * stride)) for k in range(count)]
            target = self._scaled(index, SLICE)
            for k in range(SLICE):
                value = found[k] if k < count else number(0.0)
                self.f.store(value, self.f.at(self.f.at(out, target), k))

        full, rest = divmod(channels, SLICE)
        self._each(full, lambda index: values(index, SLICE))
        if rest:
            values(integer(full, I64), rest)

    def _product(self, step: Product, source: Register, out: Register) -> None:
        """Vectors of outputs, each a sum over inputs; blocks of them share what they read."""
        matrix, bias = step.matrix, step.bias
        form: OfBytes | InPairs | None = self._form(step)
        scaled = None if form else scaled_bytes(matrix)
        if not form and not scaled and self._multiplies_pairs(step):
            form = PAIR_PRODUCTS
        outputs, inputs = matrix.shape
        if form:
            source = self._as_parts(source, inputs, form)
            bias, matrix = form.bias(bias, lambda: step.matrix), form.rows(matrix)
            inputs = matrix.shape[1]
        vectors = min(CHAINS, ceil_div(outputs, self.lanes))
        width = vectors * self.lanes
        full, rest = divmod(outputs, width)

        def packed(first: int, width: int) -> Float32Array:
            if scaled:
                return _packed_bytes(scaled.rows_from(first), bias[first:], width)
            return _packed(matrix[first:], bias[first:], width)

        whole = packed(0, width)[:full]
        blocks = self._constant(whole)

        def block(index: Register) -> None:
            offset = self._scaled(index, width)
            place = self.f.at(blocks, self._scaled(index, math.prod(whole.shape[1:])))
            self._products(place, source, self.f.at(out, offset), inputs, width, form, scaled is not None)

        def last() -> None:
            place = self._constant(packed(full * width, self.lanes * ceil_div(rest, self.lanes)))
            self._products(place, source, self.f.at(out, full * width), inputs, rest, form, scaled is not None)

        self._each_part(full, block, last if rest else None)

    def _multiplies_pairs(self, step: Product) -> bool:
        """Whether products are in bfloat16: not those of steps, which are exact, nor of bytes, which are half of it."""
        asked = self.target.precision == "bf16" and not self.graph.tensors[step.sources[0]].steps
        return asked and 1 < step.matrix.shape[1] <= MOST_PACKED

    def _form(self, step: Product) -> OfBytes | None:
        """How products of bytes are summed; None of floats, and of vectors too long for the stack."""
        steps = self.graph.tensors[step.sources[0]].steps
        storage, together = byte_storage([steps]), self.target.products_together
        if storage is None or step.matrix.shape[1] > MOST_PACKED:
            return None
        is_arm, subtracts = not self.target.is_x86, self.target.subtracts_products
        found = products_of_bytes(storage.low, step.matrix, step.bias, together, is_arm, subtracts)
        return found if isinstance(found, OfBytes) else None

    def _as_parts(self, source: Register, inputs: int, form: OfBytes | InPairs) -> Register:
        """Where a vector lies as ints of so many bytes or halves, or a whole number each; or in bfloat16."""
        element = f"i{32 // form.together}" if isinstance(form, OfBytes) else HALF
        parts = self.f.reserve(element, aligned(inputs, self.lanes))

        def block(index: Register) -> None:
            offset = self._scaled(index, self.lanes)
            values = self._load(source, offset)
            if isinstance(form, OfBytes):
                low = filled(integer(form.low), self.lanes)
                stored = self.f.binary("sub", self.f.convert("fptosi", values, self.ints), low)
                stored = stored if form.together == 1 else self.f.convert("trunc", stored, vector(element, self.lanes))
            else:
                twice = self._pairs.rounded(values, values)
                stored = self.f.shuffle(twice, twice, range(self.lanes))
            self.f.store(stored, self.f.at(parts, offset, element))

        self._each(ceil_div(inputs, self.lanes), block)
        return parts

    def _products(
        self,
        place: Register,
        source: Register,
        out: Register,
        inputs: int,
        outputs: int,
        form: OfBytes | InPairs | None,
        expands: bool,
    ) -> None:
        """One block of outputs: its bias, then a row of weights for each input, several of them side by side.

        Of bytes an input is an int of several, in bfloat16 of two. Weights that it `expands` are bytes, behind a bias
        and a scale of each output.
        """
        vectors = ceil_div(outputs, self.lanes)
        width, beside = vectors * self.lanes, max(1, CHAINS // vectors)
        sums_ints = isinstance(form, OfBytes)
        kind, zero = (self.ints, integer(0)) if sums_ints else (self.kind, number(0.0))
        one, many = (I32, self.ints) if form else (FLOAT, self.kind)
        sums = [[self.f.reserve(kind) for _ in range(vectors)] for _ in range(min(beside, inputs))]
        for number_of_row, row in enumerate(sums):
            for k, each in enumerate(row):
                first = number_of_row == 0 and not expands
                start = self.f.load(kind, self.f.at(place, k * self.lanes)) if first else filled(zero, self.lanes)
                self.f.store(start, each, 64)

        def add(first: Register | int, count: int) -> None:
            base = first if isinstance(first, Register) else integer(first, I64)
            if expands:
                rows = self.f.at(self.f.at(place, 2 * width), self._scaled(base, width), "i8")
            else:
                rows = self.f.at(place, self.f.binary("add nsw", self._scaled(base, width), integer(width, I64)))
            values = self.f.at(source, base)
            for j in range(count):
                value = self.f.splat(self.f.load(one, self.f.at(values, j)), self.lanes)
                for k, each in enumerate(sums[j]):
                    total = self.f.load(kind, each, 64)
                    at = j * width + k * self.lanes
                    weight = self._expanded(rows, at) if expands else self.f.load(many, self.f.at(rows, at))
                    self.f.store(self._added(total, value, weight, form), each, 64)

        turns, left = divmod(inputs, len(sums))
        self._each(turns, lambda index: add(self._scaled(index, len(sums)), len(sums)))
        if left:
            add(turns * len(sums), left)
        for k in range(vectors):
            parts = [self.f.load(kind, row[k], 64) for row in sums]
            if sums_ints:
                whole = reduce(partial(self.f.binary, "add"), parts)
                total = self.f.convert("sitofp", whole, self.kind)
            else:
                total = self._joined(parts, "add")
            if expands:
                shift, scale = (self.f.load(kind, self.f.at(place, j * width + k * self.lanes)) for j in (0, 1))
                total = self.f.fma(total, scale, shift)
            self._store(out, k * self.lanes, total, min(self.lanes, outputs - k * self.lanes))

    def _added(self, total: Register, value: Register, weight: Register, form: OfBytes | InPairs | None) -> Register:
        if isinstance(form, OfBytes):
            return self._bytes.add_parts(total, value, weight, form.together)
        if form:
            return self._pairs.add(total, self.f.convert("bitcast", value, self._pairs.lanes.pair_kind), weight)
        return self.f.fma(value, weight, total)

    def _expanded(self, rows: Register, at: int) -> Register:
        """Bytes as floats."""
        stored = self.f.load(vector("i8", self.lanes), self.f.at(rows, at, "i8"))
        return self.f.convert("sitofp", self.f.convert("sext", stored, self.ints), self.kind)

    # Reductions -------------------------------------------------------------------------------------------------------

    def _fold(self, operation: Arithmetic, left: Register, right: Register) -> Register:
        """Two values as one."""
        return math_of(self.f, [left]).arithmetic(operation, left, right)

    def _joined(self, values: Sequence[Register], operation: Arithmetic) -> Register:
        """All values as one, two by two."""
        level = list(values)
        while len(level) > 1:
            pairs = [self._fold(operation, *level[k : k + 2]) for k in range(0, len(level) - 1, 2)]
            level = [*pairs, *level[2 * len(pairs) :]]
        return level[0]

    def _across(self, values: Sequence[Register], operation: Arithmetic) -> Register:
        """Four lanes, one for each of one, two or four vectors, in turn: all lanes of that one folded.

        Halves of two vectors are folded side by side in one, until there is but one vector.
        """
        level, lanes = list(values), self.lanes
        part = lanes  # lanes that still belong to one value
        while part > 1:
            half = part // 2
            low = [lane for lane in range(lanes) if lane % part < half]
            if len(level) > 1:
                low += [lane + lanes for lane in low]
            else:
                lanes = max(SLICE, lanes // 2)
                low = (low * SLICE)[:lanes]
            high = [lane + half for lane in low]
            pairs = [(level[k], level[min(k + 1, len(level) - 1)]) for k in range(0, len(level), 2)]
            level = [self._halved(*pair, low, high, operation) for pair in pairs]
            part = half
        return level[0]

    def _halved(
        self, left: Register, right: Register, low: Sequence[int], high: Sequence[int], operation: Arithmetic
    ) -> Register:
        return self._fold(operation, self.f.shuffle(left, right, low), self.f.shuffle(left, right, high))

    def _times(self, value: Register, factor: float) -> Register:
        if factor == 1.0:
            return value
        lanes = lanes_of(value.type)
        return self.f.binary("fmul", value, filled(number(factor), lanes))

    def _pixels(self, step: Folded, source: Register, out: Register) -> None:
        """A reduction over pixels, four planes at once: their lanes are pixels until the end."""
        shape = self.work.shape(step.sources[0])
        full, rest = divmod(shape.channels, SLICE)
        stride, storage = plane_floats(shape), self.storages[step.sources[0]]

        def slice_of(index: Register, count: int = SLICE) -> None:
            place = self.f.at(source, self._scaled(index, slice_planes(storage) * stride))

            def values(first: Register, row: int) -> list[Register]:
                if storage.is_bytes:
                    return self._bytes_of(self._word(place, first, row), count, storage.low)
                planes = (self.f.at(place, k * stride) for k in range(count))
                return [self._load(self.f.at(plane, first), row * self.lanes) for plane in planes]

            total = self._folded_planes(step, values, count, shape.pixels)
            self.f.store(total, self.f.at(out, self._scaled(index, SLICE)))

        self._each_part(full, slice_of, (lambda: slice_of(integer(full, I64), rest)) if rest else None)

    def _word(self, place: Register, first: Register, row: int) -> Register:
        """Ints of bytes, of a vector of pixels behind another one."""
        return self.f.load(self.ints, self.f.at(self.f.at(place, first), row * self.lanes))

    def _bytes_of(self, word: Register, count: int, low: int) -> list[Register]:
        """The first channels of ints of bytes, as floats."""
        found = []
        for k in range(count):
            moved = self.f.binary("lshr", word, filled(integer(8 * k), self.lanes))
            whole = self.f.binary("and", moved, filled(integer(255), self.lanes))
            above = self.f.binary("add", whole, filled(integer(low), self.lanes))
            found.append(self.f.convert("sitofp", above, self.kind))
        return found

    def _folded_planes(
        self, folded: Folded, values: Callable[[Register, int], list[Register]], count: int, pixels: int
    ) -> Register:
        """A vector of four floats: so many planes' pixels folded, zeros where there is no plane.

        `values` gives a vector of each plane: from a pixel on, and so many vectors behind it.
        """
        fold = folded.fold
        neutral = filled(number(fold.neutral), self.lanes)
        totals = [[self.f.reserve(self.kind) for _ in range(count)] for _ in range(CHAINS // SLICE)]
        for variable in (each for row in totals for each in row):
            self.f.store(neutral, variable, 64)

        def into(variable: Register, value: Register) -> None:
            self.f.store(self._fold(fold.operation, self.f.load(self.kind, variable, 64), value), variable, 64)

        def step(index: Register) -> None:
            first = self._scaled(index, len(totals) * self.lanes)
            for row, variables in enumerate(totals):
                for variable, value in zip(variables, values(first, row), strict=True):
                    into(variable, value)

        turns, left = divmod(pixels, len(totals) * self.lanes)
        self._each(turns, step)
        for number_of_row, first in enumerate(range(pixels - left, pixels, self.lanes)):
            for k, value in enumerate(values(integer(first, I64), 0)):
                if pixels - first < self.lanes:
                    value = self._kept(value, pixels - first, number(fold.neutral))
                into(totals[number_of_row][k], value)
        loaded = [[self.f.load(self.kind, each, 64) for each in row] for row in totals]
        joined = [self._joined(column, fold.operation) for column in zip(*loaded, strict=True)]
        zeros = filled(number(0.0), self.lanes)
        return self._times(self._across([*joined, *[zeros] * (SLICE - len(joined))], fold.operation), folded.factor)

    def _copy(self, source: Register, out: Register, channels: int) -> None:
        full, rest = divmod(channels, self.lanes)

        def block(offset: Register | int, count: int) -> None:
            self._store(out, offset, self._load(source, offset), count)

        self._each(full, lambda index: block(self._scaled(index, self.lanes), self.lanes))
        if rest:
            block(full * self.lanes, rest)

    def _channels(self, step: Folded, source: Register, out: Register) -> None:
        """A reduction of a vector's channels to one."""
        fold, (full, rest) = step.fold, divmod(self._channels_of(step.sources[0]), self.lanes)
        total = self.f.reserve(self.kind)
        self.f.store(filled(number(fold.neutral), self.lanes), total, 64)

        def into(value: Register) -> None:
            self.f.store(self._fold(fold.operation, self.f.load(self.kind, total, 64), value), total, 64)

        self._each(full, lambda index: into(self._load(source, self._scaled(index, self.lanes))))
        if rest:
            into(self._kept(self._load(source, full * self.lanes), rest, number(fold.neutral)))
        one = self._times(self._across([self.f.load(self.kind, total, 64)], fold.operation), step.factor)
        zeros = filled(number(0.0), SLICE)
        self.f.store(self.f.shuffle(one, zeros, [0, SLICE, SLICE, SLICE]), out)


def _packed(matrix: Float32Array, bias: Float32Array, width: int) -> Float32Array:
    """Rows OI and a bias of O -> (blocks, 1 + I, width): a block's bias, then its weights for each input."""
    rows = np.concatenate([bias.reshape(-1, 1), matrix], axis=1)
    blocks = ceil_div(len(rows), width)
    padded = np.pad(rows, ((0, blocks * width - len(rows)), (0, 0)))
    return np.ascontiguousarray(padded.reshape(blocks, width, -1).transpose(0, 2, 1))


def _packed_bytes(scaled: ScaledBytes, bias: Float32Array, width: int) -> Float32Array:
    """The same of bytes -> (blocks, floats of a block): bias, scales, then weights, four in the bits of a float."""
    blocks = ceil_div(len(bias), width)
    heads, whole = np.zeros((2, blocks * width), np.float32), np.zeros((blocks * width, scaled.whole.shape[1]), np.int8)
    heads[:, : len(bias)] = bias, scaled.scales
    whole[: len(bias)] = scaled.whole
    rows = np.ascontiguousarray(whole.reshape(blocks, width, -1).transpose(0, 2, 1)).reshape(blocks, -1)
    return np.concatenate(
        [heads.reshape(2, blocks, width).transpose(1, 0, 2).reshape(blocks, -1), rows.view(np.float32)], 1
    )
