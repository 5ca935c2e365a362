"""Writes vector kernels: the statements by which a work-group takes the steps of a VectorWork in shared memory.

The same statements serve as a dispatch of their own and as the prologue of a pixel kernel, in which every work-group
repeats them. Slice o of a vector is written by thread o, counted round and round, which reads it back without waiting:
threads wait for each other only where one reads what another one has written. They share the input slices of a matrix,
so that adjacent ones read adjacent texels of its weights.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..code.vocabulary import (
    PART,
    THREAD,
    AcrossLanes,
    AddTo,
    Declare,
    ForEach,
    ForRange,
    Keep,
    Lane,
    LoadFrom,
    Name,
    Operand,
    Operation,
    Repeated,
    Shared,
    Splat,
    Statement,
    StoreShared,
    StoreTo,
    Synchronize,
    Value,
    Vector,
    Weight,
    When,
    by_threads,
    combined,
)
from ..model.layout import ceil_div
from ..model.packing import Blob, Float32Array, convolution_blocks, vector_texels
from ..model.rewrite import float_data
from ..plan.vector_work import UNROLL, VectorWork
from .vector_steps import Copied, EachValue, Folded, PixelPart, Product, VectorStep, vector_steps

SUMS = "partial_sums"  # the array with what each thread has added up
_SLICE, _AT, _TURN = (Name(name, "int") for name in ("o", "i", "k"))
_SUM, _FACTOR = Name("sum", "vec4"), Name("v", "vec4")

# Turns of a product's loop. Written out by compilers, more take registers: 4 spill on an Adreno 618, 80 instead of 40
# on an RDNA 2; fewer that they may not write out take a tenth more instructions on Intel's GPUs, a third on AMD's.
_MOST_UNROLLED = 8


class VectorEmitter:
    """Builds the code; `statements`, `shared`, `arrays` and `blob` are the result."""

    def __init__(self, work: VectorWork, inputs: dict[int, str], blob: Blob) -> None:
        self.work = work
        self.inputs = inputs
        self.blob = blob
        self.statements: list[Statement] = []
        self.arrays = {node.outputs[0]: f"g{k}" for k, node in enumerate(work.nodes)}  # of outputs in shared memory
        self.shared = {name: work.shape(tensor).slices for tensor, name in self.arrays.items()}  # in texels
        if work.has_sums:
            self.shared[SUMS] = work.threads
        self._unseen: set[int] = set()  # vectors that only the thread which wrote a slice can read there
        self._sums_are_read = False  # since threads last waited: nothing may be written over them

    def emit(self) -> None:
        """All nodes; their values are there for all threads at the end."""
        for step in vector_steps(self.work):
            if self._reads_others(step) and (self._unseen & set(step.sources) or self._sums_are_read):
                self._wait()
            self._step(step)
            self._unseen.add(step.out)
        if self.work.nodes:
            self._wait()

    def store(self, outputs: Sequence[int]) -> None:
        """Write vectors to the outputs of a kernel that has no other."""
        for k, tensor in enumerate(outputs):
            shape, value = self.work.shape(tensor), Shared(self.arrays[tensor], _SLICE)
            stored = StoreTo(f"out{k}", _SLICE, Keep(value, shape.channels, _SLICE))
            self._add(ForRange(_SLICE, THREAD, shape.slices, self.work.threads, (stored,)))

    def _reads_others(self, step: VectorStep) -> bool:
        """Whether a thread reads other slices of a vector than it writes, or of one that is narrower."""
        slices = self.work.slices(step.out)
        return not isinstance(step, EachValue) or any(self.work.slices(each) != slices for each in step.sources)

    # Statements -------------------------------------------------------------------------------------------------------

    def _add(self, *statements: Statement) -> None:
        self.statements += statements

    def _wait(self) -> None:
        self._add(Synchronize())
        self._unseen.clear()
        self._sums_are_read = False

    def _by_first(self, threads: int, *body: Statement) -> None:
        """What so many threads do."""
        self._add(When(Operation("less", (THREAD, threads)), body))

    def _by_slices(self, slices: int, *body: Statement) -> None:
        self._add(by_threads(_SLICE, slices, self.work.threads, body))

    def _place(self, tensor: int) -> Value:
        """Slice o of those that the work-group needs of a vector."""
        return self.work.range.first + _SLICE if tensor in self.work.narrow else _SLICE

    def _value(self, tensor: int, at: Operand) -> Value:
        """Slice `at` of a vector."""
        data = self.work.graph.tensors[tensor]
        if tensor in self.arrays:
            return Shared(self.arrays[tensor], at)
        if data.is_constant:
            return Weight(Operation("add", (self.blob.vector(float_data(data)), at)))
        return LoadFrom(self.inputs[tensor], at)

    # Steps ------------------------------------------------------------------------------------------------------------

    def _step(self, step: VectorStep) -> None:
        if isinstance(step, EachValue):
            self._each_value(step)
        elif isinstance(step, Product):
            self._product(step)
        elif isinstance(step, PixelPart):
            self._part(step)
        elif isinstance(step, Copied):
            stored = StoreShared(self.arrays[step.out], _SLICE, self._value(step.sources[0], _SLICE))
            self._by_slices(self.work.shape(step.out).slices, stored)
        else:
            assert isinstance(step, Folded)
            (self._channels if step.over_channels else self._pixels)(step)

    def _each_value(self, step: EachValue) -> None:
        channels, at = self.work.shape(step.out).channels, self._place(step.out)
        operands = [
            Repeated(self._value(each, 0)) if repeated else self._value(each, at)
            for each, repeated in zip(step.sources, step.repeated, strict=True)
        ]
        value = step.value(operands, [Weight(self.blob.add(texel)) for texel in step.constants])
        if step.needs_mask and channels % 4:
            value = Keep(value, channels, at)
        self._by_slices(self.work.slices(step.out), StoreShared(self.arrays[step.out], at, value))

    def _part(self, step: PixelPart) -> None:
        (source,), at = step.sources, self._place(step.out)
        place: Value = at + step.first
        if not self.work.shape(source).is_vector:
            place = place * self.work.shape(source).pixels + step.pixel
        value = self._value(source, place)
        if step.needs_mask:
            value = Keep(value, self.work.shape(step.out).channels, at)
        self._by_slices(self.work.slices(step.out), StoreShared(self.arrays[step.out], at, value))

    def _channels(self, step: Folded) -> None:
        """Some threads fold slices, each as many as there are such threads; one folds what they have, and its lanes."""
        fold, (source,) = step.fold, step.sources
        shape, total = self.work.shape(source), Name(fold.name, "vec4")
        together = min(self.work.threads, math.isqrt(shape.slices - 1) + 1)
        value = self._value(source, _AT)
        if shape.channels % 4:
            value = Keep(value, shape.channels, _AT, fold.neutral)
        start = Declare(total, Splat(fold.neutral))
        self._by_first(
            together,
            start,
            ForRange(_AT, THREAD, shape.slices, together, (fold.into(total, value),)),
            StoreShared(SUMS, THREAD, total),
        )
        self._wait()
        one = step.scaled(AcrossLanes(fold.operation, total))
        self._by_first(
            1,
            start,
            ForRange(_AT, 0, together, 1, (fold.into(total, Shared(SUMS, _AT)),)),
            StoreShared(self.arrays[step.out], 0, Vector((one, 0.0, 0.0, 0.0))),
        )
        self._sums_are_read = True

    # Pixels -----------------------------------------------------------------------------------------------------------

    def _pixels(self, step: Folded) -> None:
        """Some threads for each slice fold its pixels, then one folds what they have."""
        fold, (source,), target = step.fold, step.sources, self.arrays[step.out]
        slices, pixels = self.work.shape(step.out).slices, self.work.shape(source).pixels
        total = Name(fold.name, "vec4")
        start = Declare(total, Splat(fold.neutral))
        if slices > self.work.threads:
            stored = StoreShared(target, _SLICE, step.scaled(total))
            self._by_slices(slices, Declare(_AT, _SLICE * pixels), start, *self._loads(step, total, pixels, 1), stored)
            return
        chunks = min(self.work.threads // slices, ceil_div(pixels, UNROLL))
        self._by_first(
            slices * chunks,
            Declare(_AT, THREAD / chunks * pixels + THREAD % chunks),
            start,
            *self._loads(step, total, pixels, chunks),
            StoreShared(SUMS, THREAD, total),
        )
        self._wait()
        first = THREAD * chunks
        self._by_first(
            slices,
            Declare(total, Shared(SUMS, first)),
            ForRange(_AT, 1, chunks, 1, (fold.into(total, Shared(SUMS, first + _AT)),)),
            StoreShared(target, THREAD, step.scaled(total)),
        )
        self._sums_are_read = True

    def _loads(self, step: Folded, total: Name, pixels: int, chunks: int) -> list[Statement]:
        """Every `chunks`-th texel from i on, several at a time; loops whose turns compilers know."""
        whole, rest = divmod(pixels, chunks)
        rounds, left = divmod(whole, UNROLL)
        places = [k * chunks for k in range(UNROLL)]
        found: list[Statement] = []
        if rounds:
            several = (self._folded_loads(step, total, places), AddTo(_AT, UNROLL * chunks))
            found.append(ForEach(((_TURN, rounds),), several))
        if left:
            found.append(self._folded_loads(step, total, places[:left]))
        if rest:
            one = self._folded_loads(step, total, [left * chunks])
            found.append(When(Operation("less", (THREAD % chunks, rest)), (one,)))
        return found

    def _folded_loads(self, step: Folded, total: Name, places: Sequence[int]) -> Statement:
        """Texels of the map, by how far they lie behind i, as part of the fold."""
        texels = self.inputs[step.sources[0]]
        return step.fold.into(total, *(LoadFrom(texels, _AT + place) for place in places))

    # Matrices ---------------------------------------------------------------------------------------------------------

    def _product(self, step: Product) -> None:
        """Each thread multiplies some input slices for one output slice, then one adds these."""
        parts, turns = self.work.parts(step.node)
        outputs, at = self.work.slices(step.out), self._place(step.out)
        weights = self.blob.add(_in_turns(step.matrix, parts, turns))
        bias = Declare(_SUM, Weight(self.blob.add(vector_texels(step.bias)) + at))
        stored = StoreShared(self.arrays[step.out], at, _SUM)
        if parts == 1:
            self._by_slices(outputs, bias, self._products(step, weights, parts, turns), stored)
            return
        self._by_first(
            parts * outputs,
            Declare(_SLICE, THREAD % outputs),
            Declare(PART, THREAD / outputs),
            Declare(_SUM, Splat(0.0)),
            self._products(step, weights, parts, turns),
            StoreShared(SUMS, THREAD, _SUM),
        )
        self._wait()
        others = AddTo(_SUM, Shared(SUMS, PART * outputs + _SLICE))
        self._by_slices(outputs, bias, ForEach(((PART, parts),), (others,)), stored)
        self._sums_are_read = True

    def _products(self, step: Product, weights: int, parts: int, turns: int) -> Statement:
        """Every input slice, or slices `part`, part + parts, ..., times their weights."""
        (source,), all_outputs = step.sources, self.work.shape(step.out).slices
        last = self.work.shape(source).slices - 1
        at: Value = _TURN if parts == 1 else _TURN * parts + PART
        row = 4 * _TURN if parts == 1 else 4 * _TURN * parts + PART
        if turns * parts > last + 1:
            at = Operation("minimum", (at, last))
        place = weights + row * all_outputs + self._place(step.out)
        terms = [Lane(_FACTOR, lane) * Weight(place + lane * parts * all_outputs) for lane in range(4)]
        body = (Declare(_FACTOR, self._value(source, at)), AddTo(_SUM, combined("add", terms)))
        return ForEach(((_TURN, turns),), body, may_unroll=not self.work.is_shared or turns <= _MOST_UNROLLED)


def _in_turns(matrix: Float32Array, parts: int, turns: int) -> Float32Array:
    """Weights (outputs, inputs) as (turns, 4 in, parts, N, 4 out): what is multiplied at once lies together."""
    blocks = convolution_blocks(matrix[:, None, None])[:, 0]  # (S, N, 4 in, 4 out)
    padded = np.pad(blocks, [(0, parts * turns - len(blocks)), (0, 0), (0, 0), (0, 0)])
    return padded.reshape(turns, parts, *blocks.shape[1:]).transpose(0, 3, 1, 2, 4)
